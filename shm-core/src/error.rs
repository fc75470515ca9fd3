//! What can go wrong, with the rank, the sizes and the next thing to try.

use std::fmt;

use crate::segment::memory_file::MEMORY_ADVICE;

/// The result of every call that may fail.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a call did not do what was asked.
///
/// What can be used afterwards:
///
/// | error | state |
/// |---|---|
/// | [`RankFailed`](Error::RankFailed) | no communicator of the job can be used further |
/// | [`Mismatch`](Error::Mismatch), [`Refused`](Error::Refused), [`Dropped`](Error::Dropped), [`Unreachable`](Error::Unreachable) | this communicator cannot be used further, on any rank |
/// | [`Length`](Error::Length), [`Blocks`](Error::Blocks), [`Root`](Error::Root), [`Leaders`](Error::Leaders), [`Tuning`](Error::Tuning) of a collective call | nothing was written. If all ranks were refused alike (and none is 256 such calls ahead of another), the communicator can be used further; if another made the call, that one gets [`Refused`](Error::Refused) |
/// | [`HeapExhausted`](Error::HeapExhausted), [`Memory`](Error::Memory) of a collective call, which wanted memory for its result or its cells | this communicator cannot be used further; the other ranks get [`Refused`](Error::Refused) |
/// | these of `alloc`, and [`ArenaExhausted`](Error::ArenaExhausted) or [`Memory`](Error::Memory) of `split` and `duplicate`, which all ranks get alike | nothing has changed |
/// | [`Busy`](Error::Busy) | that call did nothing |
///
/// The others come where a job or a world is made. Should one come of a call, its communicator cannot be used further.
/// Any call that moves messages through cells may give [`Memory`](Error::Memory), any that has a buffer read where it
/// lies [`Unreachable`](Error::Unreachable); the sections of the calls name what else there is.
/// `{:?}` writes the same as `{}`, so that an error that leaves `main` says what to try next.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A rank of the job ended while others still counted on it.
    #[error(
        "rank {rank} of the job has ended; collectives of this job cannot go on: end this program (the report of the \
         launcher, where there is one, says why that rank has ended)"
    )]
    RankFailed {
        /// Its rank in the job's world.
        rank: usize,
    },

    /// Two ranks made different calls where the same one was due.
    #[error(
        "rank {} and rank {} of this communicator made different calls (rank {own} {} it in {own_call}); \
         all ranks must name the same collective, root, operator, element type and count, in the same order, \
         and go by the same tables and trees (set_tuning, set_plan)",
        ranks[0], ranks[1], if ranks[1] == *own { "noticed" } else { "heard of" }
    )]
    Mismatch {
        /// Two ranks that differ, in this communicator; the second one noticed.
        ranks: [usize; 2],
        /// The rank that was called.
        own: usize,
        /// In which of its calls it noticed, or heard of it: the one that differs, or one after it.
        own_call: String,
    },

    /// Another rank refused its arguments, and so never took part in the call, or could not go on with its own part of
    /// it.
    #[error(
        "rank {rank} of this communicator refused its own arguments to this call, or could not do its part, so that the call cannot finish; its own error says what was wrong"
    )]
    Refused {
        /// The rank that refused, in this communicator.
        rank: usize,
    },

    /// Another rank has dropped its handle of the communicator, and so will never take part in the call.
    #[error(
        "rank {rank} has dropped this communicator, and takes no part in this call; all ranks must make the same calls before they \
         drop a communicator (or call MPI_Comm_free or MPI_Finalize): see whether that rank returns early, on an error of its own, say"
    )]
    Dropped {
        /// The rank that dropped it, in this communicator.
        rank: usize,
    },

    /// Buffers whose lengths do not fit together.
    #[error("rank {rank}: {what}: {found} elements where {expected} are needed; give both buffers the same length")]
    Length {
        /// The rank that was called.
        rank: usize,
        /// Which buffer.
        what: &'static str,
        /// Its length, in elements.
        found: usize,
        /// The length that it should have.
        expected: usize,
    },

    /// Blocks that a buffer does not have, or counts that are not one for each rank.
    #[error("rank {rank} of {size}: {what}: {found} where {expected} are needed{advice}")]
    Blocks {
        /// The rank that was called.
        rank: usize,
        /// Ranks in the communicator.
        size: usize,
        /// Which buffer or list.
        what: &'static str,
        /// What it has.
        found: usize,
        /// What it should have, or have at least, or at most.
        expected: usize,
        /// What to try.
        advice: &'static str,
    },

    /// A root that is not a rank of the communicator, or a call that belongs to the other side of a root.
    #[error("rank {rank} of {size}: root {root}: {why}")]
    Root {
        /// The rank that was called.
        rank: usize,
        /// Ranks in the communicator.
        size: usize,
        /// The root that was named.
        root: usize,
        /// What is wrong with it.
        why: &'static str,
    },

    /// A number of leaders that the communicator cannot have.
    #[error("rank {rank}: {leaders} leaders: a communicator of {size} ranks has 1 to {size}")]
    Leaders {
        /// The rank that was called.
        rank: usize,
        /// How many were asked for.
        leaders: usize,
        /// Ranks in the communicator.
        size: usize,
    },

    /// A number of ranks outside of what one segment serves.
    #[error("{ranks} ranks: a job has 1 to {most} ranks")]
    Ranks {
        /// How many were asked for.
        ranks: usize,
        /// The most there can be.
        most: usize,
    },

    /// The communicator is inside another call of the same rank (an operator that calls a collective, say).
    #[error(
        "rank {rank}: this communicator is in the middle of a call; a user-defined operator must not use the communicator that runs it (duplicate it first), nor be left by a jump"
    )]
    Busy {
        /// The rank that was called.
        rank: usize,
    },

    /// Another rank's memory that the system did not let this rank read or write, though it did at first.
    #[error(
        "rank {own} of the job could not reach the memory of rank {rank} ({cause}); \
         start the job with PHALANX_CMA=never, which copies through shared memory instead"
    )]
    Unreachable {
        /// The rank whose memory it is, in the job's world.
        rank: usize,
        /// The rank that reached for it, in the job's world.
        own: usize,
        /// The system's word on it.
        cause: String,
    },

    /// Memory that could not be had.
    #[error(
        "{}{what}: {bytes} bytes could not be reserved ({cause}); {advice}",
        rank.map_or_else(String::new, |rank| format!("rank {rank}: "))
    )]
    Memory {
        /// The rank that wanted it, in the job's world; none where there were no ranks yet, or it is not known.
        rank: Option<usize>,
        /// What it was for.
        what: &'static str,
        /// How much.
        bytes: u64,
        /// The system's word on it.
        cause: String,
        /// What to try.
        advice: &'static str,
    },

    /// The arena has no block left for another communicator.
    #[error(
        "no room for {} communicator: it needs {needed} bytes, {free} of the arena's {arena} are free{}; \
         {}start the job with a larger arena (PHALANX_ARENA=BYTES)",
        if free == arena { "a" } else { "another" },
        in_pieces(*needed, *free),
        if free == arena { "" } else { "drop communicators that are no longer used, or " }
    )]
    ArenaExhausted {
        /// Bytes of the block.
        needed: u64,
        /// Bytes free in all (perhaps not in one piece).
        free: u64,
        /// Bytes of the arena.
        arena: u64,
    },

    /// The heap has no piece left for another buffer.
    #[error(
        "rank {rank}: no room for another buffer in shared memory: it needs {needed} bytes, {free} of the \
         heap's {heap} are free{}; \
         drop buffers that are no longer used, or start the job with a larger heap (PHALANX_HEAP=BYTES)",
        in_pieces(*needed, *free)
    )]
    HeapExhausted {
        /// The rank that wanted it, in the job's world.
        rank: usize,
        /// Bytes of the buffer, in whole extents.
        needed: u64,
        /// Bytes free in all (perhaps not in one piece).
        free: u64,
        /// Bytes of the heap.
        heap: u64,
    },

    /// A descriptor or mapping that is not a segment of this build.
    #[error("the shared segment is not usable: {why}; {advice}")]
    Segment {
        /// What does not fit.
        why: String,
        /// What to try.
        advice: &'static str,
    },

    /// An environment variable that does not say what it should.
    #[error("environment variable {name}={value:?}: {why}")]
    Environment {
        /// Its name.
        name: &'static str,
        /// Its value, or nothing when it is missing.
        value: String,
        /// What is wrong, and what to try.
        why: String,
    },

    /// This process, or another one, is attached as this rank already.
    #[error(
        "rank {rank} is attached already, by process {pid}; a job's world is taken once a rank: keep the communicator, or duplicate it"
    )]
    AlreadyAttached {
        /// The rank.
        rank: usize,
        /// Who has it.
        pid: u32,
    },

    /// A choice of algorithm or a tuning that cannot be carried out.
    #[error("tuning: {why}")]
    Tuning {
        /// What is wrong, and what would be right.
        why: String,
    },

    /// A system call that failed where it should not.
    #[error(
        "{}{call}: {cause}{}{advice}",
        rank.map_or_else(String::new, |rank| format!("rank {rank}: ")),
        if advice.is_empty() { "" } else { "; " }
    )]
    System {
        /// The rank that called, in the job's world; none where there were no ranks yet, or it is not known.
        rank: Option<usize>,
        /// The call.
        call: &'static str,
        /// The system's word on it.
        cause: String,
        /// What to try; nothing where the cause says too little.
        advice: &'static str,
    },
}

/// Why so much does not serve, where as much is free as is needed.
fn in_pieces(needed: u64, free: u64) -> &'static str {
    if free >= needed { ", but not in one piece" } else { "" }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error {
    /// A mismatch that was noticed in this call, `call` in words.
    #[cold]
    pub(crate) fn noticed_in(self, call: impl fmt::Display) -> Self {
        match self {
            Self::Mismatch { ranks, own, own_call } => {
                Self::Mismatch { ranks, own, own_call: format!("{own_call}, {call}") }
            }
            other => other,
        }
    }

    /// Says which rank of the job wanted memory, or made the system call.
    pub(crate) fn of(self, rank: usize) -> Self {
        match self {
            Self::Memory { rank: None, what, bytes, cause, advice } => {
                Self::Memory { rank: Some(rank), what, bytes, cause, advice }
            }
            Self::System { rank: None, call, cause, advice } => Self::System { rank: Some(rank), call, cause, advice },
            other => other,
        }
    }

    /// A failed system call as an error.
    pub(crate) fn system(call: &'static str, cause: impl fmt::Display + Into<std::io::Error>) -> Self {
        let words = cause.to_string();
        let advice = match cause.into().raw_os_error() {
            Some(libc::EMFILE) => "raise the limit on open files (ulimit -n), or close some",
            Some(libc::ENFILE) => {
                "raise the system's limit on open files (fs.file-max), or end programs that hold many"
            }
            Some(libc::ENOMEM) => MEMORY_ADVICE,
            Some(libc::EAGAIN) => {
                "raise the limit on processes (ulimit -u, the container's) or on memory (ulimit -v), or use fewer ranks"
            }
            Some(libc::EPERM | libc::EACCES | libc::ENOSYS) => {
                "something forbids this call (a seccomp filter of the container, say): allow it there"
            }
            _ => "",
        };
        Self::System { rank: None, call, cause: words, advice }
    }

    /// Why a table or a variable is not as it should be, whoever asked for it.
    #[doc(hidden)]
    #[must_use]
    pub fn reason(self) -> String {
        match self {
            Self::Environment { why, .. } | Self::Tuning { why } => why,
            other => other.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_that_leaves_main_says_what_to_try() {
        let error = Error::RankFailed { rank: 3 };
        assert_eq!(format!("{error:?}"), error.to_string());
    }

    #[test]
    fn what_is_free_in_pieces_is_said_to_be() {
        let arena = |free| Error::ArenaExhausted { needed: 90, free, arena: 600 }.to_string();
        assert!(arena(94).contains("94 of the arena's 600 are free, but not in one piece; drop"), "{}", arena(94));
        assert!(arena(30).contains("30 of the arena's 600 are free; drop"), "{}", arena(30));
        let heap = |free| Error::HeapExhausted { rank: 0, needed: 90, free, heap: 600 }.to_string();
        assert!(heap(94).contains("are free, but not in one piece; drop"), "{}", heap(94));
        assert!(heap(30).contains("are free; drop"), "{}", heap(30));
    }

    #[test]
    fn failed_system_calls_say_what_to_try() {
        let error = Error::system("memfd_create", nix::errno::Errno::EMFILE).to_string();
        assert!(error.starts_with("memfd_create: EMFILE") && error.contains("; raise") && error.contains("ulimit -n"));
        let error = Error::system("membarrier", rustix::io::Errno::PERM).of(3).to_string();
        assert!(error.starts_with("rank 3: membarrier: ") && error.contains("seccomp"), "{error}");
        let error = Error::system("starting a thread", std::io::Error::from_raw_os_error(libc::EAGAIN)).of(1);
        assert!(error.to_string().contains("ulimit -u"), "{error}");
        assert!(Error::system("memfd_create", nix::errno::Errno::ENOMEM).to_string().ends_with(MEMORY_ADVICE));
        let error = Error::system("fchmod", nix::errno::Errno::EIO).to_string();
        assert_eq!(error, format!("fchmod: {}", nix::errno::Errno::EIO));
    }
}
