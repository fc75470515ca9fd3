//! How a process comes to its rank in a job that another one has made.

use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno;

use super::{JOB, Job, RANK, SEGMENT, SIZE, wrong};
use crate::communicator::Communicator;
use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::seat::Seat;
use crate::segment::mapping::Mapping;
use crate::segment::memory_file;

/// What a launcher, or the first rank of the node, handed to this process.
pub struct Invitation {
    mapping: Arc<Mapping>,
    rank: usize,
}

impl Invitation {
    /// Reads the environment; none when no launcher started this process.
    ///
    /// # Errors
    /// `Environment` when variables are missing or wrong, `Segment` when the descriptor is not the job's segment,
    /// `AlreadyAttached` when this process has answered before.
    pub fn from_environment() -> Result<Option<Self>> {
        static ANSWERED: AtomicBool = AtomicBool::new(false);
        let [rank, size, segment, job] = [RANK, SIZE, SEGMENT, JOB].map(|name| std::env::var(name).ok());
        if segment.is_none() && job.is_none() {
            return match (rank, size) {
                (None, None) => Ok(None),
                _ => Err(missing(SEGMENT)),
            };
        }
        let rank = number(RANK, rank)?;
        let size = number(SIZE, size)?;
        let segment = number(SEGMENT, segment)?;
        let job = job.ok_or_else(|| missing(JOB))?;
        if rank >= size {
            return Err(wrong(
                RANK,
                rank.to_string(),
                format!("there are ranks 0 to {} (PHALANX_SIZE={size})", size.saturating_sub(1)),
            ));
        }
        if ANSWERED.swap(true, Ordering::AcqRel) {
            return Err(Error::AlreadyAttached { rank, pid: std::process::id() });
        }
        let (inherited, file) = inherited(segment)?;
        let mapping = map_of_other(file).map_err(|error| error.of(rank))?;
        let header = mapping.header();
        if format!("{:016x}", header.cookie) != job {
            return Err(wrong(
                JOB,
                job,
                "it is not the mark in the segment's header: the variables belong to another job".to_owned(),
            ));
        }
        if header.ranks as usize != size {
            return Err(wrong(SIZE, size.to_string(), format!("the segment is that of {} ranks", header.ranks)));
        }
        // SAFETY: it is the segment of this job, which was inherited for this very purpose, and is taken over once
        // (ANSWERED).
        drop(unsafe { OwnedFd::from_raw_fd(inherited) });
        Ok(Some(Self { mapping, rank }))
    }

    /// Takes the place of `rank` in the job of `size` ranks whose segment another process has passed as a descriptor,
    /// and whose mark ([`Job::cookie`]) it has told.
    ///
    /// # Errors
    /// `Segment` when the descriptor is not the segment of this job, or that of another build.
    pub fn from_descriptor(file: OwnedFd, rank: usize, size: usize, cookie: u64) -> Result<Self> {
        let mapping = map_of_other(file).map_err(|error| error.of(rank))?;
        let header = mapping.header();
        if header.cookie != cookie || header.ranks as usize != size || rank >= size {
            return Err(Error::Segment {
                why: format!(
                    "it is that of job {:016x} with {} ranks; rank {rank} of {size} of job {cookie:016x} was to have it",
                    header.cookie, header.ranks
                ),
                advice: "the ranks of a node disagree about their job: start it again",
            });
        }
        Ok(Self { mapping, rank })
    }

    /// A handle on the job, by which this process may say what has become of other ranks.
    #[must_use]
    pub fn job(&self) -> Job {
        Job { mapping: Arc::clone(&self.mapping) }
    }

    /// What the launcher noted for all ranks.
    #[must_use]
    pub fn note(&self) -> Vec<u8> {
        self.mapping.note()
    }

    /// Ranks of the job.
    #[must_use]
    pub fn size(&self) -> usize {
        self.mapping.layout.ranks
    }

    /// Takes the place, and returns the world.
    ///
    /// # Errors
    /// `AlreadyAttached` when another process has taken it.
    pub fn accept(self, plan: Arc<dyn Plan>) -> Result<Communicator> {
        Communicator::world_of(Seat::take(self.mapping, self.rank)?, plan)
    }
}

/// Maps a segment that another process has made, once it is found to be one.
fn map_of_other(file: OwnedFd) -> Result<Arc<Mapping>> {
    memory_file::keep_private(&file)?;
    Mapping::of_other(file).map(Arc::new)
}

/// The descriptor of this number, which may have been inherited or be the program's own, and a duplicate of it.
fn inherited(number: usize) -> Result<(RawFd, OwnedFd)> {
    let not_open = |why: String| Error::Segment {
        why,
        advice: "only the program that `phalanx run` starts may use the segment, not programs that it starts in turn; \
                 clear PHALANX_* from their environment",
    };
    let raw = RawFd::try_from(number)
        .ok()
        .filter(|&raw| raw > 2)
        .ok_or_else(|| not_open(format!("{number} is no descriptor of a segment")))?;
    // SAFETY: nothing happens to the descriptor; if there is none the call says so.
    let copy = Errno::result(unsafe { libc::fcntl(raw, libc::F_DUPFD_CLOEXEC, 3) });
    let copy = copy.map_err(|_| not_open(format!("descriptor {raw} is not open in this process")))?;
    // SAFETY: it was just made, and is nobody else's.
    Ok((raw, unsafe { OwnedFd::from_raw_fd(copy) }))
}

fn missing(name: &'static str) -> Error {
    let why =
        "it is not set though other variables of a job are; start the program with `phalanx run`, or clear PHALANX_*";
    wrong(name, String::new(), why.to_owned())
}

fn number(name: &'static str, value: Option<String>) -> Result<usize> {
    let value = value.ok_or_else(|| missing(name))?;
    value.parse().map_err(|_| wrong(name, value.clone(), "a number is expected".to_owned()))
}
