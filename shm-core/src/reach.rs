//! Reaching into another rank's private memory: one copy by the kernel, without a cell between (process_vm_readv and process_vm_writev,
//! known as cross memory attach).
//!
//! Not every system lets processes of one user read and write each other (Yama's ptrace_scope, containers, sandboxes), so it is tried:
//! each rank reads a word of the next one and writes it back as it was, round a ring. Who may read whom follows from what ranks have in common
//! (user, namespaces, the process that started them), so that a ring in which everybody succeeds has no two kinds of ranks in it. It
//! takes two system calls a rank. Until all have succeeded, and after anybody has failed, reaching is not allowed.
//!
//! Ranks that are threads of one process reach each other by a plain copy.
//!
//! A process number tells processes apart that had the same process id, one after the other or in different namespaces: each process
//! has a random number in its memory, its *beacon*. Whoever reads from it reads the beacon in the same system call; whoever writes to it
//! has read the beacon right before, for no call does both. Between the two the process would have to make room for another one, of the same id; and
//! who is written to waits for it in a call meanwhile, but for the beacon itself, which is written as it was read.

use std::hash::{BuildHasher, RandomState};
use std::io::{IoSlice, IoSliceMut};
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use nix::errno::Errno;
use nix::sys::uio::{RemoteIoVec, process_vm_readv, process_vm_writev};
use nix::unistd::Pid;
use rustix::process::{PTracer, set_ptracer};

use crate::error::{Error, Result};
use crate::segment::mapping::Mapping;

/// In the job's word: reaching is not allowed. The errno that said so is in the bits from `WHY` on, 0 for the job's own wish.
pub(crate) const FORBIDDEN: u64 = 1 << 63;
const WHY: u32 = 32;

/// The most bytes of one system call.
const MOST: usize = 1 << 30;

/// This process's number, where others read it; and whose it is, since a process that was forked has its parent's.
static BEACON: AtomicU64 = AtomicU64::new(0);
static OWNER: Mutex<u32> = Mutex::new(0);

/// Whether ranks copy from each other's private memory, and to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaching {
    /// They do: all ranks have been found to reach the next one's.
    Allowed,
    /// Not yet: some ranks have not tried.
    Unsettled,
    /// The system refuses, in these words.
    Refused(&'static str),
    /// The job was started with `PHALANX_CMA=never`.
    Unwanted,
}

/// One rank's way to the others' memory.
pub(crate) struct Reach {
    mapping: Arc<Mapping>,
    rank: usize,
    /// This process's number.
    own: u64,
}

/// What a rank tells of its process; part of its words in the segment. Written once, `number` last.
#[repr(C)]
pub(crate) struct Introduction {
    /// The process's number; 0 before the rank has attached.
    number: AtomicU64,
    /// Where it lies in that process.
    beacon: AtomicU64,
    /// Its id, as it sees itself.
    pid: AtomicU32,
    /// 1 when this rank has read from the next one, and written to it.
    reached: AtomicU32,
}

impl Introduction {
    pub fn pid(&self) -> u32 {
        self.pid.load(Ordering::Relaxed)
    }
}

impl Reach {
    /// Introduces a rank that attaches, and tries what can be tried already.
    pub fn new(mapping: Arc<Mapping>, rank: usize) -> Self {
        let own = own_number();
        let reach = Self { mapping, rank, own };
        let words = reach.of(rank);
        words.pid.store(std::process::id(), Ordering::Relaxed);
        words.beacon.store(BEACON.as_ptr().addr() as u64, Ordering::Relaxed);
        if reach.word() & FORBIDDEN == 0 {
            admit(reach.mapping.header().creator);
        }
        // R1: who finds the number finds the rest, and a process that lets itself be read.
        words.number.store(own, Ordering::Release);
        reach.attempt(rank);
        let ranks = reach.mapping.layout.ranks;
        let before = (rank + ranks - 1) % ranks;
        if reach.number(before) == own {
            reach.attempt(before);
        }
        reach
    }

    fn of(&self, rank: usize) -> &Introduction {
        &self.mapping.rank(rank).introduction
    }

    fn number(&self, rank: usize) -> u64 {
        // R1, reader.
        self.of(rank).number.load(Ordering::Acquire)
    }

    /// Whether a rank is a thread of this process.
    pub fn is_here(&self, rank: usize) -> bool {
        self.number(rank) == self.own
    }

    fn word(&self) -> u64 {
        self.mapping.header().shared.reach.load(Ordering::Acquire)
    }

    /// Whether every rank of the job has been found to reach the next one, and none has failed to since. Every rank that may read, and
    /// not only one that wants to be read, should ask in each call that is long enough: asking is how it takes part in finding out.
    ///
    /// The answer turns from no to yes once, when the last rank has asked, and from yes to no when a read is refused after all;
    /// ranks may have different answers at one time. So it is for him who offers memory to ask, and others follow.
    #[inline]
    pub fn allowed(&self) -> bool {
        self.word() == self.mapping.layout.ranks as u64 || self.settle()
    }

    /// Tries what has not been tried, and looks again.
    #[cold]
    pub fn settle(&self) -> bool {
        if self.word() & FORBIDDEN == 0 && self.of(self.rank).reached.load(Ordering::Relaxed) == 0 {
            self.attempt(self.rank);
        }
        self.word() == self.mapping.layout.ranks as u64
    }

    /// What has been found.
    pub fn found(&self) -> Reaching {
        let allowed = self.allowed();
        let word = self.word();
        match ((word & !FORBIDDEN) >> WHY) as i32 {
            0 if word & FORBIDDEN != 0 => Reaching::Unwanted,
            0 if allowed => Reaching::Allowed,
            0 => Reaching::Unsettled,
            errno => Reaching::Refused(Errno::from_raw(errno).desc()),
        }
    }

    /// Has `reader` (this rank, or one that is a thread of this process too) read from the next rank and write to it, if that is there.
    fn attempt(&self, reader: usize) {
        let next = (reader + 1) % self.mapping.layout.ranks;
        let number = self.number(next);
        if number == 0 || self.word() & FORBIDDEN != 0 {
            return;
        }
        let reaches = if number == self.own { Ok(()) } else { self.try_beacon(next) };
        match reaches {
            Ok(()) => {
                if self.of(reader).reached.swap(1, Ordering::Relaxed) == 0 {
                    self.mapping.header().shared.reach.fetch_add(1, Ordering::AcqRel);
                }
            }
            Err(error) => self.forbid(error),
        }
    }

    /// Says that reaching does not work; the first word stands.
    fn forbid(&self, error: Errno) {
        let why = FORBIDDEN | (error as u64) << WHY;
        let update = |word: u64| (word & FORBIDDEN == 0).then_some(why);
        let _ = self.mapping.header().shared.reach.fetch_update(Ordering::AcqRel, Ordering::Acquire, update);
    }

    /// Copies `bytes` bytes at `address` of the memory of `rank` (of the job) to `into`.
    ///
    /// # Errors
    /// `RankFailed` when the rank's process is no more, `Unreachable` when the system refuses, or the place is not there.
    /// Part of the bytes may have been written.
    ///
    /// # Safety
    /// `into` is good for writing `bytes` bytes, which are initialised, and which nobody else uses meanwhile. The rank has said
    /// that `bytes` bytes lie at `address`, with the provenance of its buffer exposed, and neither writes nor frees them meanwhile.
    pub unsafe fn read(&self, rank: usize, address: u64, into: *mut u8, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        if self.number(rank) == self.own {
            let from = std::ptr::with_exposed_provenance::<u8>(address as usize);
            // SAFETY: by contract; the rank is a thread of this process, so that the address is one of this process.
            unsafe { std::ptr::copy_nonoverlapping(from, into, bytes) };
            return Ok(());
        }
        // SAFETY: by contract.
        let into = unsafe { std::slice::from_raw_parts_mut(into, bytes) };
        self.piece_by_piece(rank, bytes, |piece| self.try_read_at(rank, address + piece.start as u64, &mut into[piece]))
    }

    /// Copies the `bytes` bytes at `from` to `address` of the memory of `rank` (of the job).
    ///
    /// # Errors
    /// As [`read`](Reach::read).
    ///
    /// # Safety
    /// `bytes` bytes at `from` are initialised, and nobody writes them meanwhile. The rank has said that as many may be written at
    /// `address`, with the provenance of its buffer exposed, and neither uses nor frees them meanwhile.
    pub unsafe fn write(&self, rank: usize, from: *const u8, address: u64, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        if self.number(rank) == self.own {
            let to = std::ptr::with_exposed_provenance_mut::<u8>(address as usize);
            // SAFETY: by contract; the rank is a thread of this process, so that the address is one of this process.
            unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
            return Ok(());
        }
        // SAFETY: by contract.
        let from = unsafe { std::slice::from_raw_parts(from, bytes) };
        self.piece_by_piece(rank, bytes, |piece| self.try_write_at(rank, address + piece.start as u64, &from[piece]))
    }

    /// Whether the first and the last of `bytes` bytes at `address` of the memory of `rank` can be read; of none, whether its process can. Where the system
    /// refuses that of the process as such, reaching is not allowed any more.
    pub fn reads_ends(&self, rank: usize, address: u64, bytes: usize) -> bool {
        if self.number(rank) == self.own {
            return true;
        }
        let mut ends = [0; 2];
        let last = address + bytes.saturating_sub(1) as u64;
        let places = [address, last].map(|base| RemoteIoVec { base: base as usize, len: 1 });
        let count = if bytes > 0 { places.len() } else { 0 };
        match self.try_read(rank, &places[..count], &mut ends[..count]) {
            Ok(read) => read == count,
            Err(Errno::EFAULT) => false,
            Err(error) => {
                self.forbid(error);
                false
            }
        }
    }

    /// Whether the system lets `writer` write to so many bytes at `buffer` as far as it hangs on the memory there: writes their first and their last byte as
    /// they are, in the way in which another process would.
    ///
    /// # Safety
    /// They are initialised, and nobody else uses them meanwhile.
    pub unsafe fn opens(&self, writer: usize, buffer: *mut u8, bytes: usize) -> bool {
        if bytes == 0 || self.number(writer) == self.own {
            return true;
        }
        let last = buffer.wrapping_add(bytes - 1);
        // SAFETY: by contract.
        let ends = [buffer, last].map(|place| unsafe { place.read() });
        let remote = [buffer, last].map(|place| RemoteIoVec { base: place.expose_provenance(), len: 1 });
        process_vm_writev(Pid::this(), &[IoSlice::new(&ends)], &remote) == Ok(ends.len())
    }

    /// Has `one` move a part of `bytes` bytes, again and again until all are moved; it returns how many it has moved.
    fn piece_by_piece(
        &self,
        rank: usize,
        bytes: usize,
        mut one: impl FnMut(Range<usize>) -> std::result::Result<usize, Errno>,
    ) -> Result<()> {
        let refused = |cause: Errno| Error::Unreachable { rank, own: self.rank, cause: cause.desc().to_owned() };
        let mut done = 0;
        while done < bytes {
            match one(done..bytes.min(done + MOST)) {
                Ok(0) => return Err(refused(Errno::EFAULT)),
                Ok(moved) => done += moved,
                Err(Errno::ESRCH) => return Err(Error::RankFailed { rank }),
                Err(error) => {
                    if error != Errno::EFAULT {
                        self.forbid(error);
                    }
                    return Err(refused(error));
                }
            }
        }
        Ok(())
    }

    /// One system call: returns the bytes that it has read, perhaps not all. With nothing to fill it reads the beacon alone.
    /// ESRCH when the rank's process is no more.
    fn try_read_at(&self, rank: usize, address: u64, into: &mut [u8]) -> std::result::Result<usize, Errno> {
        let place = RemoteIoVec { base: address as usize, len: into.len() };
        self.try_read(rank, if into.is_empty() { &[] } else { std::slice::from_ref(&place) }, into)
    }

    /// The same of several places, two at most, one behind the other.
    fn try_read(&self, rank: usize, places: &[RemoteIoVec], into: &mut [u8]) -> std::result::Result<usize, Errno> {
        let words = self.of(rank);
        let number = self.number(rank);
        let pid = Pid::from_raw(words.pid() as i32);
        let mut found = [0; 8];
        let mut remote = [RemoteIoVec { base: words.beacon.load(Ordering::Relaxed) as usize, len: found.len() }; 3];
        remote[1..=places.len()].copy_from_slice(places);
        let parts = if into.is_empty() { 1 } else { 2 };
        let read = loop {
            let mut local = [IoSliceMut::new(&mut found), IoSliceMut::new(into)];
            match process_vm_readv(pid, &mut local[..parts], &remote[..=places.len()]) {
                Err(Errno::EINTR) => {}
                other => break other?,
            }
        };
        match read.checked_sub(found.len()) {
            Some(read) if u64::from_ne_bytes(found) == number => Ok(read),
            // Another process, which has come to this id, or has it in another namespace.
            _ => Err(Errno::ESRCH),
        }
    }

    /// One system call behind a look at the beacon: returns the bytes that it has written, perhaps not all. ESRCH as above.
    fn try_write_at(&self, rank: usize, address: u64, from: &[u8]) -> std::result::Result<usize, Errno> {
        self.try_read_at(rank, 0, &mut [])?;
        let pid = Pid::from_raw(self.of(rank).pid() as i32);
        let remote = [RemoteIoVec { base: address as usize, len: from.len() }];
        loop {
            match process_vm_writev(pid, &[IoSlice::new(from)], &remote) {
                Err(Errno::EINTR) => {}
                other => return other,
            }
        }
    }

    /// Reads the beacon of `rank`, and writes it as it is.
    fn try_beacon(&self, rank: usize) -> std::result::Result<(), Errno> {
        let beacon = self.of(rank).beacon.load(Ordering::Relaxed);
        match self.try_write_at(rank, beacon, &self.number(rank).to_ne_bytes())? {
            8 => Ok(()),
            _ => Err(Errno::EFAULT),
        }
    }
}

/// The number of this process.
fn own_number() -> u64 {
    let mut owner = OWNER.lock().unwrap_or_else(PoisonError::into_inner);
    let pid = std::process::id();
    if *owner != pid {
        // Random keys from the system, new ones for each; never 0.
        BEACON.store(RandomState::new().hash_one((pid, std::time::Instant::now())) | 1, Ordering::Relaxed);
        *owner = pid;
    }
    BEACON.load(Ordering::Relaxed)
}

/// Lets the other ranks read this process where Yama allows that only to those whom a process names: it names the process that
/// has started them all, whose descendants are let in. That is the job's creator if it is an ancestor of this process, and
/// else this one's parent (an MPI's daemon).
fn admit(creator: u32) {
    let restricted =
        std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").is_ok_and(|scope| scope.trim() == "1");
    if !restricted {
        return;
    }
    let parent = rustix::process::getppid();
    let mut ancestor = parent.map_or(0, |pid| pid.as_raw_nonzero().get() as u32);
    while ancestor > 1 && ancestor != creator {
        ancestor = parent_of(ancestor).unwrap_or(0);
    }
    let starter = if ancestor == creator { rustix::process::Pid::from_raw(creator as i32) } else { parent };
    if let Some(starter) = starter {
        // What comes of it is found when the others try.
        let _ = set_ptracer(PTracer::ProcessID(starter));
    }
}

/// The parent of a process: the second field behind its name, which is in brackets.
fn parent_of(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    status.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::process::Child;

    use super::*;
    use crate::communicator::Communicator;
    use crate::job::{Job, JobSpec, Standing};
    use crate::processes::{self, ended};

    const LEN: usize = 3 << 20;

    fn byte(rank: usize, place: usize) -> u8 {
        (place.wrapping_mul(2_654_435_761) >> 13) as u8 ^ rank as u8
    }

    /// Everybody reads from everybody: whole, and at odd places.
    fn all_read_all(world: &Communicator) {
        let (rank, size) = (world.rank(), world.size());
        let own: Vec<u8> = (0..LEN).map(|place| byte(rank, place)).collect();
        let mut addresses = vec![0u64; size];
        addresses[rank] = own.as_ptr().expose_provenance() as u64;
        world.all_reduce_in_place(&mut addresses, crate::operator::BitOr).unwrap();
        let reach = world.seat().reach();
        for (peer, place) in addresses.into_iter().enumerate() {
            for (from, bytes) in [(0, LEN), (1, 5000), (LEN - 1, 1), (4095, 2), (7, 0)] {
                let mut into = vec![0; bytes + 2];
                let address = place + from as u64;
                // SAFETY: the peer's vector is there until the barrier below, `into` is this rank's.
                unsafe { reach.read(peer, address, into[1..].as_mut_ptr(), bytes) }.unwrap();
                let expected = (0..bytes).map(|place| byte(peer, from + place));
                assert!(into[1..=bytes].iter().copied().eq(expected), "rank {rank} from {peer}, {bytes} at {from}");
                assert_eq!((into[0], into[bytes + 1]), (0, 0));
            }
        }
        world.barrier().unwrap();
    }

    /// Everybody writes to everybody, each to a row of its own.
    fn all_write_all(world: &Communicator) {
        const ROW: usize = 70_001;
        let (rank, size) = (world.rank(), world.size());
        let mut own = vec![0u8; size * ROW];
        let mut addresses = vec![0u64; size];
        addresses[rank] = own.as_mut_ptr().expose_provenance() as u64;
        world.all_reduce_in_place(&mut addresses, crate::operator::BitOr).unwrap();
        let reach = world.seat().reach();
        for (peer, place) in addresses.into_iter().enumerate() {
            let row: Vec<u8> = (0..ROW).map(|place| byte(rank, place)).collect();
            for (from, bytes) in [(1, ROW - 2), (5, 0)] {
                let address = place + (rank * ROW + from) as u64;
                // SAFETY: the peer's vector is there until the barrier below, where it looks at it; this row is this rank's alone to write.
                unsafe { reach.write(peer, row[from..].as_ptr(), address, bytes) }.unwrap();
            }
        }
        world.barrier().unwrap();
        // What others have written the compiler cannot know of.
        let own = std::hint::black_box(own);
        for (peer, row) in own.chunks(ROW).enumerate() {
            let expected = (1..ROW - 1).map(|place| byte(peer, place));
            assert!(row[1..ROW - 1].iter().copied().eq(expected), "rank {rank} from {peer}");
            assert_eq!((row[0], row[ROW - 1]), (0, 0));
        }
    }

    /// Broadcasts of private buffers that are as long as those that are lent on trial, of which the ranks of a pair reach some.
    fn all_broadcast(world: &Communicator) {
        broadcast_long(world);
        let reached = world.counters().reached;
        assert_eq!(reached > 0, world.size() == 2, "{reached} bytes on rank {}", world.rank());
    }

    /// A job whose rings hold less than these.
    fn with_short_rings(ranks: usize) -> JobSpec {
        let mut spec = JobSpec::new(ranks).unwrap();
        spec.tuning.force("broadcast:down_cells=4,down_cell=32K").unwrap();
        spec
    }

    fn broadcast_long(world: &Communicator) {
        const LONG: usize = 300_001;
        let rank = world.rank();
        for root in 0..world.size() {
            let process = world.process_at_rank(root);
            for call in 0..40 {
                let mut buffer =
                    if rank == root { (0..LONG).map(|place| byte(call, place)).collect() } else { vec![0; LONG] };
                process.broadcast_into(&mut buffer).unwrap();
                let got = std::hint::black_box(&buffer);
                assert!(
                    got.iter().copied().eq((0..LONG).map(|place| byte(call, place))),
                    "{call} from {root} on {rank}"
                );
            }
        }
    }

    /// Lets no other user's process reach this one, and, of the superuser, this one no other user's.
    fn close() {
        let user = nix::unistd::Uid::from_raw(65534);
        if nix::unistd::setuid(user).is_err() {
            nix::sys::prctl::set_dumpable(false).unwrap();
        }
    }

    #[test]
    fn threads_reach_each_other() {
        for ranks in [1, 2, 5] {
            let plan = Arc::new(crate::FlatPlan) as Arc<dyn crate::Plan>;
            Communicator::threads_of(&with_short_rings(ranks), &plan, |world| {
                // All attached before any of them ran.
                assert_eq!(world.reaching(), Reaching::Allowed);
                all_read_all(&world);
                all_write_all(&world);
                all_broadcast(&world);
            })
            .unwrap();
        }
        let mut spec = JobSpec::new(2).unwrap();
        spec.cma = false;
        let plan = Arc::new(crate::FlatPlan) as Arc<dyn crate::Plan>;
        let found = Communicator::threads_of(&spec, &plan, |world| world.reaching()).unwrap();
        assert_eq!(found, [Reaching::Unwanted; 2]);
    }

    /// What a process of the tests below does: not a test of its own.
    #[test]
    #[ignore = "the other tests start it"]
    fn process() {
        let Ok(role) = std::env::var("REACH_ROLE") else { return };
        let invitation = crate::job::Invitation::from_environment().unwrap().unwrap();
        if role == "stranger" {
            // The superuser reads everything, so that only another user is refused; others are by who closes itself.
            close();
        }
        let world = invitation.accept(Arc::new(crate::FlatPlan)).unwrap();
        // From here on all have attached. Each asks; then all know.
        world.barrier().unwrap();
        let _ = world.reaching();
        world.barrier().unwrap();
        let found = world.reaching();
        match role.as_str() {
            "reader" if std::env::var("REACH_STRANGERS").is_err() => {
                if found == Reaching::Allowed {
                    all_read_all(&world);
                    all_write_all(&world);
                    all_broadcast(&world);
                    errors_name_the_rank(&world);
                }
                println!("found: {found:?}");
            }
            // It closes itself when all have found that they reach each other: what is lent is declined then, once.
            "closing" => {
                if found == Reaching::Allowed {
                    if world.rank() == 1 {
                        close();
                    }
                    world.barrier().unwrap();
                    broadcast_long(&world);
                    assert!(matches!(world.reaching(), Reaching::Refused(_)), "{:?}", world.reaching());
                }
                println!("found: {found:?}");
            }
            _ => {
                assert!(matches!(found, Reaching::Refused(_)), "{found:?}");
                println!("found: Refused");
            }
        }
        world.barrier().unwrap();
    }

    fn errors_name_the_rank(world: &Communicator) {
        let (rank, reach) = (world.rank(), world.seat().reach());
        let peer = (rank + 1) % world.size();
        let mut into = [0u8; 64];
        // SAFETY: nothing lies at this address of another process: the call fails.
        let read = unsafe { reach.read(peer, 64, into.as_mut_ptr(), into.len()) };
        // SAFETY: the same.
        let written = unsafe { reach.write(peer, into.as_ptr(), 64, into.len()) };
        for error in [read.unwrap_err(), written.unwrap_err()] {
            assert!(
                matches!(error, Error::Unreachable { rank, own, .. } if rank == peer && own == world.rank()),
                "{error}"
            );
        }
        assert!(reach.allowed(), "one wrong address is no refusal");
    }

    fn start(job: &Job, rank: usize, role: &str, strangers: bool) -> Child {
        let strangers = strangers.then_some(("REACH_STRANGERS", "1"));
        let environment: Vec<_> = std::iter::once(("REACH_ROLE", role)).chain(strangers).collect();
        processes::start(job, rank, "reach::tests::process", &environment)
    }

    #[test]
    fn processes_reach_each_other() {
        for ranks in [2, 3] {
            let job = Job::create(&with_short_rings(ranks)).unwrap();
            let found = ended((0..ranks).map(|rank| start(&job, rank, "reader", false)).collect());
            assert!(found.iter().all(|word| *word == found[0]), "{found:?}");
            println!("{}", found[0]);
            assert!((0..ranks).all(|rank| job.standing(rank) == Standing::Left));
        }
    }

    #[test]
    fn what_cannot_be_reached_any_more_is_declined() {
        let job = Job::create(&with_short_rings(2)).unwrap();
        let found = ended((0..2).map(|rank| start(&job, rank, "closing", false)).collect());
        assert!(found.iter().all(|word| *word == found[0]), "{found:?}");
        println!("{}", found[0]);
        assert!((0..2).all(|rank| job.standing(rank) == Standing::Left));
    }

    #[test]
    fn a_rank_that_is_refused_is_one_for_all() {
        let job = Job::create(&JobSpec::new(3).unwrap()).unwrap();
        let roles = ["reader", "stranger", "reader"];
        let children = (0..3).map(|rank| start(&job, rank, roles[rank], true)).collect();
        assert_eq!(ended(children), ["Refused"; 3]);
    }

    /// A process that came to the id of a rank, or has it in another namespace, is not read.
    #[test]
    fn another_process_in_the_place_of_a_rank() {
        let job = Job::create(&JobSpec::new(2).unwrap()).unwrap();
        let world = job.attach(0, Arc::new(crate::FlatPlan)).unwrap();
        let reach = world.seat().reach();
        let other = reach.of(1);
        // This very process, under the number of another.
        other.pid.store(std::process::id(), Ordering::Relaxed);
        other.beacon.store(BEACON.as_ptr().addr() as u64, Ordering::Relaxed);
        other.number.store(reach.own ^ 2, Ordering::Release);
        let mut into = [7u8; 8];
        // SAFETY: the place is this test's own; nothing is taken from it.
        let error = unsafe { reach.read(1, into.as_ptr().addr() as u64, into.as_mut_ptr(), 4) }.unwrap_err();
        assert_eq!(error, Error::RankFailed { rank: 1 });
        let from = [9u8; 8];
        // SAFETY: the same.
        let error = unsafe { reach.write(1, from.as_ptr(), into.as_mut_ptr().addr() as u64, 4) }.unwrap_err();
        assert_eq!((error, std::hint::black_box(into)), (Error::RankFailed { rank: 1 }, [7; 8]), "nothing was written");
        // One that is no more. Ids end at 2^22.
        other.pid.store((1 << 22) + 1, Ordering::Relaxed);
        // SAFETY: there is no such process.
        let error = unsafe { reach.read(1, 4096, into.as_mut_ptr(), 4) }.unwrap_err();
        assert_eq!(error, Error::RankFailed { rank: 1 });
        assert!(!reach.allowed());
        assert_eq!(reach.found(), Reaching::Refused(Errno::ESRCH.desc()));
    }
}
