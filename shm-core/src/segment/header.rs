//! The first page of the segment: what it is, and the words that the whole job shares.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::reach::{Introduction, Turns};
use crate::segment::layout::{self, JobLayout, MOST_RANKS};
use crate::select::tuning::RuleArray;
use crate::select::{Selection, Tuning};

/// "phalanx" and a zero, read as a little-endian number.
const MAGIC: u64 = u64::from_le_bytes(*b"phalanx\0");

/// A number that differs between builds of other sources, by another compiler, or for another machine: they may lay the
/// segment out differently, or go about it differently.
const BUILD: u64 = match u64::from_str_radix(env!("SHM_CORE_BUILD"), 16) {
    Ok(build) => build,
    Err(_) => panic!("the build script wrote no number"),
};

/// The header. All fields but the atomic ones are written once, by the creator, before any rank has the descriptor.
#[repr(C)]
pub(crate) struct Header {
    pub magic: u64,
    /// What its creator was built of.
    pub build: u64,
    pub total: u64,
    pub cookie: u64,
    pub note_bytes: u64,
    pub arena_bytes: u64,
    pub heap_bytes: u64,
    pub ranks: u32,
    /// Cores that the job may use, all ranks together.
    pub cores: u32,
    /// 1 when ranks that want to sleep can make the others pass a barrier; 0 when every publication must fence.
    pub membarrier: u32,
    /// 1 when ranks that share cores move to those of their neighbours.
    pub places: u32,
    /// The process that made the segment.
    pub creator: u32,
    /// KiB of the second-level cache that tables go by, as the creator found it: ranks may not be let see it alike.
    pub l2: u32,
    pub tuning: Tuning<RuleArray>,
    pub shared: SharedWords,
}

/// The words that ranks write while the job runs.
#[repr(C, align(128))]
pub(crate) struct SharedWords {
    /// J1: 0, or the failed rank plus one. Written once.
    pub fault: AtomicU64,
    /// A1: 0, or one plus the rank that works on the map of the arena or of the heap.
    pub map_lock: AtomicU32,
    /// Chunks of the arena that nobody has and whose memory was kept. Guarded by the lock.
    pub kept: AtomicU64,
    /// R1: how many ranks have been found to reach the next one's memory; or why that does not work ([`crate::reach`]).
    pub reach: AtomicU64,
    /// The offset of the world's block.
    pub world: AtomicU64,
}

/// What a rank's standing in the job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Standing {
    /// It has not attached.
    Absent = 0,
    /// It is attached and takes part.
    Attached = 1,
    /// It has dropped its last communicator, in good order.
    Left = 2,
    /// It has failed.
    Failed = 3,
}

impl Standing {
    fn from_word(word: u32) -> Self {
        match word {
            0 => Self::Absent,
            1 => Self::Attached,
            2 => Self::Left,
            _ => Self::Failed,
        }
    }
}

/// The words of one rank that are the same in all its communicators.
#[repr(C, align(128))]
pub(crate) struct RankWords {
    /// W1: ranks about to sleep until this rank publishes.
    pub announced: AtomicU32,
    /// W2: how often they were woken; what they sleep on.
    pub rung: AtomicU32,
    standing: AtomicU32,
    /// R1: the rank's process.
    pub introduction: Introduction,
    /// Of those who read its memory: in a line of its own, which only they look at.
    pub turns: Turns,
}

const _: () = assert!(size_of::<RankWords>() == layout::APART);

impl RankWords {
    pub fn standing(&self) -> Standing {
        // J2: acquire, so that what the rank published before it left is seen after this.
        Standing::from_word(self.standing.load(Ordering::Acquire))
    }

    /// Takes the place of this rank, once in the life of the job.
    pub fn attach(&self, rank: usize) -> Result<()> {
        let claim = self.standing.compare_exchange(
            Standing::Absent as u32,
            Standing::Attached as u32,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        match claim {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::AlreadyAttached { rank, pid: self.introduction.pid() }),
        }
    }

    /// Ends this rank's part in the job. The first word on it stands, unless a failure follows a good order.
    pub fn end(&self, standing: Standing) {
        self.standing.fetch_max(standing as u32, Ordering::AcqRel);
    }
}

impl Header {
    /// Fills a fresh header.
    ///
    /// # Safety
    /// `at` points to the beginning of a mapped segment of this layout that nobody else sees yet.
    pub unsafe fn write(at: *mut Header, value: HeaderValues) {
        let header = Header {
            magic: MAGIC,
            build: BUILD,
            total: value.total,
            cookie: value.cookie,
            note_bytes: value.note_bytes,
            arena_bytes: value.arena_bytes,
            heap_bytes: value.heap_bytes,
            ranks: value.ranks,
            cores: value.cores,
            membarrier: u32::from(value.membarrier),
            places: u32::from(value.places),
            creator: std::process::id(),
            l2: value.l2,
            tuning: value.tuning.to_array(),
            shared: SharedWords {
                fault: AtomicU64::new(0),
                map_lock: AtomicU32::new(0),
                kept: AtomicU64::new(0),
                reach: AtomicU64::new(value.reach),
                world: AtomicU64::new(0),
            },
        };
        // SAFETY: by contract the place is mapped, large enough, aligned to a page and unshared.
        unsafe { at.write(header) };
    }

    /// Ranks of the job for each core that it may use, rounded up.
    pub fn crowd(&self) -> u32 {
        layout::crowd_of(self.ranks as usize, self.cores as usize)
    }

    /// What of the table counts on a communicator of `size` ranks. Those of all ranks have longer rows, if there is room.
    pub fn select(&self, size: usize) -> Selection {
        let selection = self.tuning.select(size, self.crowd());
        if size == self.ranks as usize { selection.with_rows(self.arena_bytes) } else { selection }
    }

    /// The layout that this header describes.
    pub fn layout(&self) -> JobLayout {
        let [note, arena, heap] = [self.note_bytes, self.arena_bytes, self.heap_bytes].map(|bytes| bytes as usize);
        JobLayout::new(self.ranks as usize, note, arena, heap)
    }

    /// Checks a segment of `bytes` bytes that somebody else made.
    pub fn check(&self, bytes: u64) -> Result<()> {
        let refuse = |why: String, advice| Err(Error::Segment { why, advice });
        if self.magic != MAGIC {
            return refuse(
                format!("it begins with {:#018x}, not with the mark of a segment", self.magic),
                "start the program with `phalanx run`, and do not set PHALANX_SEGMENT by hand",
            );
        }
        if self.build != BUILD {
            return refuse(
                format!("it was made by another build ({:#018x}) than this program's ({BUILD:#018x})", self.build),
                "build the program and the `phalanx` command from the same sources, with the same compiler",
            );
        }
        let sane = (1..=MOST_RANKS).contains(&(self.ranks as usize))
            && self.note_bytes <= bytes
            && self.arena_bytes <= bytes
            && self.heap_bytes <= bytes
            && self.total == bytes
            && self.layout().total() as u64 == bytes;
        if !sane {
            return refuse(
                format!(
                    "its header speaks of {} bytes and {} ranks, the file has {bytes} bytes",
                    self.total, self.ranks
                ),
                "the segment is damaged: start the job again",
            );
        }
        self.tuning.check()
    }
}

/// What differs between headers.
pub(crate) struct HeaderValues {
    pub ranks: u32,
    pub total: u64,
    pub cookie: u64,
    pub note_bytes: u64,
    pub arena_bytes: u64,
    pub heap_bytes: u64,
    pub cores: u32,
    pub membarrier: bool,
    pub places: bool,
    /// What R1's word begins with.
    pub reach: u64,
    pub l2: u32,
    pub tuning: Tuning,
}
