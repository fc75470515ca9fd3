//! A job: the segment as its creator sees it (the launcher, or the process whose threads are the ranks).

use std::hash::{BuildHasher, RandomState};
use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::communicator::Communicator;
use crate::error::{Error, Result};
use crate::first_processor;
use crate::plan::Plan;
use crate::seat::{self, Seat};
pub use crate::segment::header::Standing;
use crate::segment::header::{Header, HeaderValues};
use crate::segment::layout::{CHUNK, EXTENT, JobLayout, MOST_RANKS, crowd_of, round_up};
use crate::segment::mapping::Mapping;
use crate::segment::{memory_file, memory_left};
use crate::select::{CONVERT_FROM, Tuning, number_of_bytes};
pub use invitation::Invitation;
#[doc(hidden)]
pub use launchers::{launcher_says_more, refuse_to_be_alone};

mod invitation;
mod launchers;

/// What a job is made of.
#[derive(Clone, Debug)]
pub struct JobSpec {
    /// Ranks: 1 to 256.
    pub ranks: usize,
    /// Cores that all ranks together may use; threads of one core count once. Which processors are threads of one this
    /// crate does not know: what it makes itself ([`new`](JobSpec::new)) counts each processor, within the quota of its
    /// control group. Who knows the machine sets it anew.
    pub cores: usize,
    /// Bytes of the arena, from which all communicators take their blocks; none for a default that is ample for dozens
    /// of duplicates of the world. Only what is taken needs memory.
    pub arena: Option<u64>,
    /// Bytes of the heap, from which all ranks take their [buffers](crate::Buffer); none for as much as the machine has
    /// memory, or the container or the limits of this process allow. Only what is taken needs memory, the rest is
    /// address space.
    pub heap: Option<u64>,
    /// Whether ranks may copy from each other's private memory by way of the kernel, where the system lets them.
    pub cma: bool,
    /// Whether ranks that share cores move to the core of their neighbours when all begin a call that does not go in
    /// lines (`PHALANX_PLACE`). None is bound: the system may move it on. For jobs of which nobody has bound any rank.
    pub place: bool,
    /// Whether private buffers become shared memory (`PHALANX_CONVERT`).
    pub convert: Conversion,
    /// The table by which algorithms are chosen.
    pub tuning: Tuning,
    /// Bytes that every rank can read.
    pub note: Vec<u8>,
}

impl JobSpec {
    /// Ranks for each core, rounded up.
    #[must_use]
    pub fn crowd(&self) -> u32 {
        crowd_of(self.ranks, self.cores)
    }

    /// A job of `ranks` ranks on as many processors as this process may use, as the environment (`PHALANX_ALGORITHM`,
    /// `PHALANX_ARENA`, `PHALANX_HEAP`, `PHALANX_CMA`, `PHALANX_PLACE`, `PHALANX_CONVERT`, `PHALANX_DEBUG`) wants it.
    /// An empty variable asks for nothing.
    ///
    /// # Errors
    /// `Environment` when a variable is not understood.
    pub fn new(ranks: usize) -> Result<Self> {
        Self::by(ranks, Tuning::default(), &variable)
    }

    /// [`new`](JobSpec::new) over a table, with variables that `lookup` has: none for what asks for nothing.
    ///
    /// # Errors
    /// `Environment` when a variable is not understood; `Tuning` when it cannot be carried out.
    pub fn by(ranks: usize, table: Tuning, lookup: &dyn Fn(&str) -> Option<String>) -> Result<Self> {
        let bytes = |name, least| lookup(name).map(|value| read_bytes(name, &value, least)).transpose();
        let allowed = |name| lookup(name).map_or(Ok(true), |value| auto_or_never(name, &value));
        Ok(Self {
            ranks,
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            arena: bytes("PHALANX_ARENA", 1)?,
            heap: bytes("PHALANX_HEAP", 0)?,
            cma: allowed("PHALANX_CMA")?,
            place: allowed("PHALANX_PLACE")?,
            convert: lookup("PHALANX_CONVERT").map_or(Ok(Conversion::Never), |value| read_convert(&value))?,
            tuning: table.by(lookup)?,
            note: Vec::new(),
        })
    }
}

/// Whether a value of a switch (`PHALANX_DEBUG`) turns it on: it does unless it is empty or 0.
#[must_use]
pub fn is_on(value: &str) -> bool {
    !value.is_empty() && value != "0"
}

/// A variable of the environment; an empty one asks for nothing.
#[must_use]
pub fn variable(name: &str) -> Option<String> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(|value| value.to_string_lossy().into_owned())
}

/// An arena and a heap are smaller: what their maps take stays small too.
const MOST_BYTES: u64 = 1 << 46;

/// The number of bytes that the variable `name`, of value `value`, stands for; an error when it is none, below `least`,
/// or 64 TiB and more.
fn read_bytes(name: &'static str, value: &str, least: u64) -> Result<u64> {
    number_of_bytes(value).filter(|&bytes| bytes >= least && bytes < MOST_BYTES).ok_or_else(|| {
        let why = format!("a number of bytes is expected, perhaps with a suffix K, M or G, from {least} to 64 TiB");
        wrong(name, value.to_owned(), why)
    })
}

fn auto_or_never(name: &'static str, value: &str) -> Result<bool> {
    match value {
        "auto" => Ok(true),
        "never" => Ok(false),
        _ => Err(wrong(name, value.to_owned(), "auto or never is expected".to_owned())),
    }
}

/// Which private buffers that collectives take again and again are moved into the heap, whole page by whole page, at
/// the addresses that they have, where the system lets it ([`can_convert`]). From then on they are used where they lie,
/// as those of [`alloc`](crate::Communicator::alloc) are.
///
/// Only memory is moved that `malloc` of the GNU C library has mapped for one allocation alone, which it does from 128
/// KiB on: so vectors of Rust, `malloc` of C, `allocate` of Fortran, arrays of NumPy. When such a one is freed, though,
/// `malloc` takes shorter ones from its common heap from then on, where they stay private;
/// `MALLOC_MMAP_THRESHOLD_=131072` in the environment keeps it from that (mallopt(3)).
///
/// The program goes on as before: it may free such buffers, fork, and use them when the job has ended. What it must not
/// do is to make a copy of itself by the bare system call `clone` (without `CLONE_VM`) or by `_Fork`, which would share
/// the pages with its parent; to fork in a signal handler, which may wait for ever for a call that it has interrupted;
/// to count on `madvise(MADV_DONTNEED)` for zeros, since the pages keep what they hold; or to have registered the
/// memory with a device in a way that the kernel does not count as pinned: nothing is moved in a process that has pages
/// locked or pinned. Where it had the kernel put these pages before (`mbind`) is lost. A call on such a buffer takes
/// half a microsecond more: it asks the kernel whether the pages still are those.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Conversion {
    /// None.
    #[default]
    Never,
    /// Those from [`CONVERT_FROM`] on, in jobs that have a core for each rank.
    Auto,
    /// Those of so many bytes and more.
    From(u64),
}

impl Conversion {
    fn least(self, crowd: u32) -> u64 {
        match self {
            Conversion::Auto if crowd <= 1 => CONVERT_FROM,
            Conversion::From(bytes) => bytes,
            _ => u64::MAX,
        }
    }
}

/// What the value of `PHALANX_CONVERT` wants.
fn read_convert(value: &str) -> Result<Conversion> {
    match value {
        "never" => Ok(Conversion::Never),
        "auto" => Ok(Conversion::Auto),
        _ => number_of_bytes(value).map(Conversion::From).ok_or_else(|| {
            let why = "never, auto, or a number of bytes is expected, perhaps with a suffix K, M or G";
            wrong("PHALANX_CONVERT", value.to_owned(), why.to_owned())
        }),
    }
}

/// Whether this system lets private buffers be moved into the heap ([`Conversion`]): Linux 6.11 or later, with /proc.
#[must_use]
pub fn can_convert() -> bool {
    crate::convert::is_possible()
}

/// Bytes of memory that the machine, or the container, has left; none where the system does not say.
#[doc(hidden)]
#[must_use]
pub fn memory_left() -> Option<u64> {
    memory_left::now()
}

/// A handle on a job's segment: its creator's, or one of a process that watches over other ranks.
pub struct Job {
    mapping: Arc<Mapping>,
}

impl Job {
    /// Makes the segment of a job.
    ///
    /// # Errors
    /// `Ranks` for none or too many, `Memory` when the segment cannot be reserved, `ArenaExhausted` when the arena
    /// cannot hold the world's block.
    pub fn create(spec: &JobSpec) -> Result<Self> {
        if !(1..=MOST_RANKS).contains(&spec.ranks) {
            return Err(Error::Ranks { ranks: spec.ranks, most: MOST_RANKS });
        }
        spec.tuning.check()?;
        if let Some(bytes) = [spec.arena, spec.heap].into_iter().flatten().find(|&bytes| bytes >= MOST_BYTES) {
            let (what, cause) = ("an arena or a heap", "64 TiB and more are no size of one".to_owned());
            return Err(Error::Memory { rank: None, what, bytes, cause, advice: memory_file::MEMORY_ADVICE });
        }
        let cores = spec.cores.clamp(1, u32::MAX as usize);
        let l2 = first_processor::l2();
        let mut tuning = spec.tuning.on_machine(l2);
        let arena = match spec.arena {
            Some(bytes) => bytes as usize,
            None => {
                // As far as blocks whose cells are extents lie behind each other.
                let block = tuning.select(spec.ranks, spec.crowd()).block_layout();
                let block = round_up(block.total(), if block.fills_extents() { EXTENT } else { CHUNK });
                (block * 64).clamp(256 << 20, (4 << 30).max(block * 4)) + EXTENT
            }
        };
        let heap = spec.heap.unwrap_or_else(memory_left::default_heap) as usize;
        let layout = JobLayout::new(spec.ranks, spec.note.len(), arena, heap);
        let file = memory_file::create(layout.total() as u64)?;
        memory_file::reserve(&file, "the segment's header", 0, layout.before_arena() as u64)?;
        let mapping = Mapping::of_own(file, layout)?;
        tuning.convert_from = tuning.convert_from.min(spec.convert.least(spec.crowd()));
        let values = HeaderValues {
            ranks: spec.ranks as u32,
            total: layout.total() as u64,
            cookie: RandomState::new().hash_one(std::process::id()),
            note_bytes: spec.note.len() as u64,
            arena_bytes: (layout.chunks * CHUNK) as u64,
            heap_bytes: (layout.extents * EXTENT) as u64,
            cores: cores as u32,
            membarrier: seat::register_for_heavy_fences().is_ok(),
            places: spec.place,
            reach: if spec.cma { 0 } else { crate::reach::FORBIDDEN },
            l2,
            tuning,
        };
        // SAFETY: the segment was just mapped with this layout, and nobody else has its descriptor.
        unsafe { Header::write(mapping.base().cast(), values) };
        // SAFETY: the same; the layout was made for a note of this length.
        unsafe { mapping.write_note(&spec.note) };
        let block = mapping.header().select(spec.ranks).block_layout();
        let world = mapping.take_block(0, &block)?;
        mapping.header().shared.world.store(world, Ordering::Release);
        // SAFETY: the block was just taken with this layout, and is all zero.
        unsafe { Communicator::open_block(&mapping, world, &block, spec.ranks) };
        Ok(Self { mapping: Arc::new(mapping) })
    }

    /// Ranks of the job.
    #[must_use]
    pub fn size(&self) -> usize {
        self.mapping.layout.ranks
    }

    /// The descriptor of the segment. It is closed on exec: whoever starts ranks clears that in the child.
    #[must_use]
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.mapping.file().as_fd()
    }

    /// The mark of the job, by which those who are handed its segment know that it is the right one.
    #[must_use]
    pub fn cookie(&self) -> u64 {
        self.mapping.header().cookie
    }

    /// The variables by which a rank finds its place, when it sees the segment as descriptor `fd`.
    #[must_use]
    pub fn environment(&self, rank: usize, fd: RawFd) -> Vec<(&'static str, String)> {
        vec![
            (RANK, rank.to_string()),
            (SIZE, self.mapping.layout.ranks.to_string()),
            (SEGMENT, fd.to_string()),
            (JOB, format!("{:016x}", self.mapping.header().cookie)),
        ]
    }

    /// Says that a rank's process has ended; `failed` when it ended badly. Every rank that waits for a failed rank, or
    /// that waits for one that is gone without having done its part, returns `RankFailed`.
    pub fn mark_ended(&self, rank: usize, failed: bool) {
        seat::end(&self.mapping, rank, failed);
    }

    /// A token that ends a rank's part in the job when it is dropped: with the thread, even if a communicator outlives
    /// it.
    pub(crate) fn leave_at_end(&self, rank: usize) -> LeaveAtEnd {
        LeaveAtEnd { mapping: Arc::clone(&self.mapping), rank }
    }

    /// How a rank stands.
    #[must_use]
    pub fn standing(&self, rank: usize) -> Standing {
        self.mapping.rank(rank).standing()
    }

    /// The rank because of which the job cannot go on, if there is one.
    #[must_use]
    pub fn failed_rank(&self) -> Option<usize> {
        match self.mapping.header().shared.fault.load(Ordering::Acquire) {
            0 => None,
            failed => Some(failed as usize - 1),
        }
    }

    /// Bytes of the arena that communicators hold.
    #[must_use]
    pub fn arena_taken(&self) -> u64 {
        self.mapping.arena_taken()
    }

    /// Bytes of the heap that ranks hold: their buffers, and what they keep for the next ones.
    #[must_use]
    pub fn heap_taken(&self) -> u64 {
        self.mapping.heap_taken()
    }

    /// Attaches a rank that is a thread of this process, and returns its world.
    ///
    /// # Errors
    /// `AlreadyAttached`.
    pub fn attach(&self, rank: usize, plan: Arc<dyn Plan>) -> Result<Communicator> {
        Communicator::world_of(Seat::take(Arc::clone(&self.mapping), rank)?, plan)
    }
}

/// See [`Job::leave_at_end`].
pub(crate) struct LeaveAtEnd {
    mapping: Arc<Mapping>,
    rank: usize,
}

impl Drop for LeaveAtEnd {
    fn drop(&mut self) {
        seat::end(&self.mapping, self.rank, std::thread::panicking());
    }
}

const RANK: &str = "PHALANX_RANK";
const SIZE: &str = "PHALANX_SIZE";
const SEGMENT: &str = "PHALANX_SEGMENT";
const JOB: &str = "PHALANX_JOB";

fn wrong(name: &'static str, value: String, why: String) -> Error {
    Error::Environment { name, value, why }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The command's word on a variable is another error; a program may ask for anything.
    #[test]
    fn sizes_that_no_map_is_for_are_refused() {
        for bytes in [MOST_BYTES, 1 << 62, u64::MAX] {
            let spec = JobSpec::new(2).unwrap();
            for spec in [JobSpec { arena: Some(bytes), ..spec.clone() }, JobSpec { heap: Some(bytes), ..spec }] {
                let error = Job::create(&spec).map(|_| ()).unwrap_err();
                assert!(matches!(error, Error::Memory { bytes: found, .. } if found == bytes), "{error}");
            }
        }
    }
}
