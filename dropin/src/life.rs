//! MPI begins, and ends: what is settled with all ranks in between.

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use hier::across::{ClusterRules, ClusterSettings};
use hier::transport::Transport;
use hier::transport::mpi::MpiTransport;
use hier::{Collective, HierComm};
use mpi::ffi;

use crate::abi::{self, Word};
use crate::gains::Beneath;
use crate::settings::{self, Settings};
use crate::stats::Stats;
use crate::{communicators, entry, heap, making, memory, types};

/// Ranks that come within this time are waited for awake.
const AT_ONCE: Duration = Duration::from_micros(200);
/// After this time something may be wrong.
const LATE: Duration = Duration::from_secs(10);

/// Nothing was tried.
const UNTOUCHED: u8 = 0;
/// Calls may be carried out here.
const READY: u8 = 1;
/// All calls go to the library.
const OFF: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(UNTOUCHED);
static SETTINGS: OnceLock<Settings> = OnceLock::new();
/// What [`after`] returns.
static TAKEN_AFTER: AtomicU32 = AtomicU32::new(0);

/// The settings of the job.
#[inline]
pub fn settings() -> &'static Settings {
    SETTINGS.get().unwrap_or(&Settings::DEFAULT)
}

/// The call of a communicator other than the world's with which it is taken over.
pub fn after() -> u32 {
    TAKEN_AFTER.load(Ordering::Relaxed)
}

/// Whether calls may be carried out here. A program whose MPI began where nobody saw it (by another language's
/// bindings) is made ready with its first collective on MPI_COMM_WORLD.
#[inline]
pub fn is_ready(comm: Word) -> bool {
    match STATE.load(Ordering::Acquire) {
        READY => true,
        UNTOUCHED if abi::handle(comm) == abi::world() => {
            begin();
            STATE.load(Ordering::Acquire) == READY
        }
        _ => false,
    }
}

/// Makes ready, after MPI has begun. Collective over MPI_COMM_WORLD; all ranks come to the same end.
pub fn begin() {
    if STATE.load(Ordering::Acquire) != UNTOUCHED || !is_running() {
        return;
    }
    STATE.store(OFF, Ordering::Release);
    let Some(world) = World::of_mpi() else { return };
    // A job that another has spawned, and one of a single rank, are served by the library as ever.
    if world.size == 1 {
        if let Err(error) = MpiTransport::world() {
            say_alone(&error.to_string());
        }
        return;
    }
    if world.was_spawned() {
        world.say("this job was spawned by another MPI job. All calls go to the library beneath");
        return;
    }
    world.await_all();
    let text = |name: &str| std::env::var(name).ok();
    let own = Settings::from(text);
    let own = own.map(|own| Settings { beneath: beneath(), ..own });
    let words = own.as_ref().map_or_else(|_| Settings::default().to_words(), |own| own.to_words());
    let agreed = Settings::from_words(world.word_of_first(words));
    SETTINGS.get_or_init(|| agreed);
    // What rank 0 does not understand is said there, and nobody goes on.
    let wrong = if world.rank == 0 { own.err() } else { None };
    if let Some(why) = world.first_fault(wrong.or_else(prepare)) {
        world.say(&format!("{why}. All calls go to the library beneath"));
        return;
    }
    if agreed.disabled == [true; crate::what::COUNT] {
        entry::lead_past(|_| true);
        return;
    }
    let cluster = ClusterSettings::from_environment();
    let keeper = MpiTransport::world()
        .map_err(|error| error.to_string())
        .and_then(|transport| may_fail(&transport).map_or(Ok(transport), Err))
        .and_then(|transport| HierComm::over(Box::new(transport), &cluster).map_err(|error| error.to_string()));
    let (keeper, fault) = match keeper {
        Ok(keeper) => (Some(keeper), None),
        Err(fault) => (None, Some(fault)),
    };
    let is_crowded = keeper.as_ref().and_then(HierComm::single_node).is_some_and(|node| node.crowd() > 1);
    let after = if agreed.after > 0 { agreed.after } else { settings::usual_after(is_crowded) };
    // Whether the ranks outnumber the cores is rank 0's word, like all that is set.
    let [after] = world.word_of_first([u64::from(after)]);
    TAKEN_AFTER.store(after as u32, Ordering::Relaxed);
    // Where one rank has no keeper the others make this nevertheless, and tell each other once.
    let silent = making::make_silent().is_some();
    let fault = fault.or_else(|| (!silent).then(|| "MPI_COMM_WORLD cannot be duplicated".to_owned()));
    if let Some(why) = world.first_fault(fault) {
        drop(keeper);
        making::free_silent();
        world.say(&format!("{why}. All calls go to the library beneath"));
        return;
    }
    let is_asked = cluster.rules.parse().is_ok_and(|rules: ClusterRules| rules.of(Collective::Allreduce).one_sided);
    if is_asked && keeper.as_ref().is_some_and(|keeper| keeper.single_node().is_none()) {
        world.say(
            "PHALANX_CLUSTER: allreduces of an MPI program are not carried out one-sided, since MPI frees windows on all ranks \
             together, and communicators are freed by each rank when it will; they use messages",
        );
    }
    making::keep(keeper);
    heap::keep_freed();
    entry::lead_past(|what| agreed.leaves(what));
    STATE.store(READY, Ordering::Release);
}

/// Why a job whose MPI lets ranks fail (ULFM) is left to it: its programs wait for MPI's own error classes, in calls
/// that others revoke, and go on with communicators of the ranks that live.
fn may_fail(transport: &MpiTransport) -> Option<String> {
    transport.recovers().then(|| "ranks of this job may fail (ULFM), and others go on".to_owned())
}

/// The library that is beneath.
fn beneath() -> Beneath {
    // MPI_MAX_LIBRARY_VERSION_STRING is 256 (Open MPI) or 8192 (MPICH).
    let (mut text, mut length) = (vec![0_u8; 16_384], 0);
    // SAFETY: there is room for any version's text.
    let _ = unsafe { ffi::PMPI_Get_library_version(text.as_mut_ptr().cast(), &mut length) };
    Beneath::of(&String::from_utf8_lossy(&text))
}

/// What this rank needs besides memory; what is wrong, if something is.
fn prepare() -> Option<String> {
    let (mut version, mut subversion) = (0, 0);
    // SAFETY: may be called at any time.
    let code = unsafe { ffi::PMPI_Get_version(&mut version, &mut subversion) };
    if code != abi::SUCCESS || version < 3 {
        return Some(format!(
            "the MPI of this program is of version {version}.{subversion}; Phalanx takes 3.0 or later"
        ));
    }
    if types::learn().is_none() || communicators::begin().is_none() || watch_end().is_none() {
        return Some("the MPI of this program gives no attributes".to_owned());
    }
    None
}

/// Has MPI tell when it ends, whoever ends it: it frees the attributes of MPI_COMM_SELF first (MPI 4.1, 11.2.4).
fn watch_end() -> Option<()> {
    /// # Safety
    /// MPI calls it.
    unsafe extern "C" fn over(_: ffi::MPI_Comm, _: c_int, _: *mut c_void, _: *mut c_void) -> c_int {
        end();
        abi::SUCCESS
    }
    let key = abi::comm_keyval(over)?;
    // SAFETY: the communicator is valid as long as MPI runs.
    let code = unsafe { ffi::PMPI_Comm_set_attr(abi::comm(abi::comm_self()), key, std::ptr::null_mut()) };
    (code == abi::SUCCESS).then_some(())
}

/// Gives all back, and tells what was counted. Collective over MPI_COMM_WORLD, before MPI ends.
pub fn end() {
    if STATE.swap(OFF, Ordering::AcqRel) != READY || !is_running() {
        return;
    }
    memory::keep_for_ever();
    let stats = communicators::end();
    making::keep(None);
    making::free_silent();
    if settings().stats {
        report(&stats);
    }
    types::forget_all();
}

/// Gathers what all ranks have counted, and shows it.
fn report(own: &Stats) {
    let Some(world) = World::of_mpi() else { return };
    let Some(texts) = world.gather_texts(&own.to_json()) else { return };
    if world.rank != 0 {
        return;
    }
    let mut sum = Stats::default();
    texts.iter().for_each(|text| sum.add(&Stats::from_json(text)));
    let asked = std::env::var("PHALANX_STATS").unwrap_or_default();
    let (text, path) = match asked.trim() {
        path if path.ends_with(".json") => (sum.to_json(), path),
        path if path.ends_with(".csv") => (sum.to_csv(), path),
        _ => return hier::remark(format_args!("what {} ranks called\n{}", world.size, sum.to_table().trim_end())),
    };
    if let Err(error) = std::fs::write(path, text) {
        hier::remark(format_args!(
            "PHALANX_STATS={path}: {error}; name a file that can be written\n{}",
            sum.to_table().trim_end()
        ));
    }
}

/// Whether MPI has begun and is not over.
fn is_running() -> bool {
    let (mut begun, mut over) = (0, 0);
    // SAFETY: may be called at any time.
    let code = unsafe { ffi::PMPI_Initialized(&mut begun) };
    // SAFETY: the same.
    let second = unsafe { ffi::PMPI_Finalized(&mut over) };
    code == abi::SUCCESS && second == abi::SUCCESS && begun != 0 && over == 0
}

/// Says something in a process whose MPI believes it to be alone: once, where its launcher has told it a rank.
fn say_alone(text: &str) {
    let rank = ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"].iter().find_map(|name| std::env::var(name).ok());
    if rank.is_none_or(|rank| rank.trim() == "0") {
        hier::remark(format_args!("{text}"));
    }
}

/// Waits for a call of all ranks, and leaves the core to those who are not there: a rank that waits in MPICH keeps it
/// for milliseconds. Returns whether the call went well.
pub fn finish(code: c_int, request: &mut ffi::MPI_Request) -> bool {
    // SAFETY: where the call has begun its request is the caller's, who keeps what it reads and writes.
    code == abi::SUCCESS && unsafe { hier::transport::mpi::finish(request) } == abi::SUCCESS
}

/// Everybody's word, by rank; nothing if the library cannot. Collective over a communicator of so many ranks.
pub fn gather(comm: Word, word: u64, ranks: usize) -> Option<Vec<u64>> {
    let mut words = vec![0_u64; ranks];
    // SAFETY: constants that are filled before main.
    let (kind, mut request) = unsafe { (ffi::RSMPI_UINT64_T, ffi::RSMPI_REQUEST_NULL) };
    let (from, to) = ((&raw const word).cast(), words.as_mut_ptr().cast());
    // SAFETY: one word to send, and room for one of each rank; both stay until the call has ended.
    let code = unsafe { ffi::PMPI_Iallgather(from, 1, kind, to, 1, kind, abi::comm(comm), &mut request) };
    finish(code, &mut request).then_some(words)
}

/// MPI_COMM_WORLD, for what is settled at the beginning and told at the end, by the library's own calls.
struct World {
    rank: usize,
    size: usize,
}

impl World {
    fn of_mpi() -> Option<Self> {
        let (mut rank, mut size) = (0, 0);
        // SAFETY: MPI is running.
        let code = unsafe { ffi::PMPI_Comm_rank(abi::comm(abi::world()), &mut rank) };
        // SAFETY: the same.
        let second = unsafe { ffi::PMPI_Comm_size(abi::comm(abi::world()), &mut size) };
        let is_known = code == abi::SUCCESS && second == abi::SUCCESS;
        is_known.then_some(Self { rank: rank as usize, size: size as usize })
    }

    fn was_spawned(&self) -> bool {
        let mut parent = abi::comm(abi::comm_self());
        // SAFETY: MPI is running.
        let code = unsafe { ffi::PMPI_Comm_get_parent(&mut parent) };
        code == abi::SUCCESS && !abi::is_no_comm(abi::word_of_comm(parent))
    }

    fn say(&self, text: &str) {
        if self.rank == 0 {
            hier::remark(format_args!("{text}"));
        }
    }

    /// Waits for all ranks, in a way that meets no call of a rank that knows nothing of this: a job in which some load
    /// the library and others do not waits here, and is told why.
    fn await_all(&self) {
        // SAFETY: a constant that is filled before main.
        let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
        // SAFETY: MPI is running.
        let code = unsafe { ffi::PMPI_Ibarrier(abi::comm(abi::world()), &mut request) };
        let (begin, mut is_over, mut is_told) = (Instant::now(), code != abi::SUCCESS, false);
        while !is_over {
            let mut flag = 0;
            // SAFETY: the request is the one above; nobody wants its status.
            let code = unsafe { ffi::PMPI_Test(&mut request, &mut flag, ffi::RSMPI_STATUS_IGNORE) };
            is_over = flag != 0 || code != abi::SUCCESS;
            let waited = begin.elapsed();
            if waited > AT_ONCE && !is_over {
                std::thread::sleep(AT_ONCE);
            }
            // Of two programs in one job, one has the first rank, the other the last.
            if waited > LATE && !is_told && (self.rank == 0 || self.rank + 1 == self.size) {
                is_told = true;
                hier::remark(format_args!(
                    "rank {} has waited for other ranks for {} s in MPI_Init: if this is not a slow start, some ranks of the \
                     job do not load libphalanx_mpi.so; have all load it, or none",
                    self.rank,
                    LATE.as_secs()
                ));
            }
        }
    }

    /// Rank 0's words.
    fn word_of_first<const N: usize>(&self, mut words: [u64; N]) -> [u64; N] {
        self.broadcast(0, words.as_mut_ptr().cast(), 8 * N);
        words
    }

    fn broadcast(&self, root: usize, bytes: *mut u8, count: usize) {
        // SAFETY: a constant that is filled before main.
        let kind = unsafe { ffi::RSMPI_UINT8_T };
        let world = abi::comm(abi::world());
        // SAFETY: a constant that is filled before main.
        let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
        // SAFETY: the callers' bytes, of which all ranks have as many, and which stay until the call has ended.
        let code = unsafe { ffi::PMPI_Ibcast(bytes.cast(), count as c_int, kind, root as c_int, world, &mut request) };
        // An error ends the job, or shows in the agreement that follows.
        finish(code, &mut request);
    }

    /// The fault of the first rank that has one, told to all; nothing if nobody has any.
    fn first_fault(&self, own: Option<String>) -> Option<String> {
        let text = own.unwrap_or_default();
        let Some(words) = gather(abi::world(), text.len() as u64, self.size) else {
            return Some("the library cannot gather words".to_owned());
        };
        let first = words.iter().position(|&length| length > 0)?;
        let mut bytes = text.into_bytes();
        bytes.resize(words[first] as usize, 0);
        self.broadcast(first, bytes.as_mut_ptr(), bytes.len());
        Some(format!("rank {first}: {}", String::from_utf8_lossy(&bytes)))
    }

    /// Everybody's text, on rank 0.
    fn gather_texts(&self, own: &str) -> Option<Vec<String>> {
        let world = abi::comm(abi::world());
        // SAFETY: constants that are filled before main.
        let (bytes, words) = (unsafe { ffi::RSMPI_UINT8_T }, unsafe { ffi::RSMPI_INT32_T });
        let length = own.len() as i32;
        let mut lengths = vec![0_i32; self.size];
        // SAFETY: one word to send, and room for one of each rank.
        let code = unsafe {
            ffi::PMPI_Gather((&raw const length).cast(), 1, words, lengths.as_mut_ptr().cast(), 1, words, 0, world)
        };
        if code != abi::SUCCESS {
            return None;
        }
        let places: Vec<i32> =
            lengths.iter().scan(0, |end, length| Some(std::mem::replace(end, *end + length))).collect();
        let mut all = vec![0_u8; lengths.iter().map(|&length| length as usize).sum()];
        // SAFETY: as many bytes as was told, and room for everybody's where they belong.
        let code = unsafe {
            ffi::PMPI_Gatherv(
                own.as_ptr().cast(),
                length,
                bytes,
                all.as_mut_ptr().cast(),
                lengths.as_ptr(),
                places.as_ptr(),
                bytes,
                0,
                world,
            )
        };
        let texts = places.iter().zip(&lengths).map(|(&place, &length)| {
            let text = all.get(place as usize..(place + length) as usize).unwrap_or_default();
            String::from_utf8_lossy(text).into_owned()
        });
        (code == abi::SUCCESS).then(|| texts.collect())
    }
}
