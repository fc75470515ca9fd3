//! Why a job could not be started.

use std::ffi::OsString;
use std::io;

/// Why a job could not be started. Nothing is left behind by any of them.
///
/// A job that started and then failed is not an error of the launch: see [`Outcome`](super::Outcome).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// A number of ranks that no job has.
    #[error("{ranks} ranks: a job has 1 to {most} ranks; name a number in between (`-n 4`, say)")]
    Ranks {
        /// How many were asked for.
        ranks: usize,
        /// The most there can be.
        most: usize,
    },

    /// There is no such program.
    #[error("cannot start {}: {reason}", program.display())]
    NotFound {
        /// The program as it was named.
        program: OsString,
        /// What is missing, and what to try.
        reason: String,
    },

    /// There is such a file, but the system does not start it.
    #[error("cannot start {}: {reason}", program.display())]
    NotExecutable {
        /// The program as it was named.
        program: OsString,
        /// What is wrong with it, and what to try.
        reason: String,
    },

    /// A rank's process could not be made, or could not be prepared for the job.
    #[error("cannot start rank {rank} of {ranks}: {step}: {source}; {advice}")]
    Start {
        /// The rank; those before it were ended again.
        rank: usize,
        /// Ranks in the job.
        ranks: usize,
        /// What failed.
        step: &'static str,
        /// The system's word on it.
        source: io::Error,
        /// What to try.
        advice: &'static str,
    },

    /// The job's settings are not understood, or its segment could not be made.
    #[error("cannot make the job: {0}")]
    Job(#[source] shm_core::Error),

    /// The machine could not be looked at, and a binding needs that.
    #[error("cannot bind ranks: {0}; `--bind none` starts them without")]
    Machine(#[source] topo::Error),

    /// Signals are process-wide, and another job of this process has them.
    #[error("another job of this process forwards the signals already; let one of them do without `forward_signals`")]
    SignalsTaken,

    /// A system call that failed where it should not.
    #[error("cannot start the job: {what}: {source}; {advice}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The system's word on it.
        source: io::Error,
        /// What to try.
        advice: &'static str,
    },
}

impl LaunchError {
    /// The exit status with which a launcher reports this: 127 when there is no such program, 126 when it cannot be
    /// executed, 2 for a number of ranks that no job has and for a variable that is not understood, 125 when the
    /// launcher itself could not do its work.
    pub fn status(&self) -> u8 {
        match self {
            LaunchError::NotFound { .. } => 127,
            LaunchError::NotExecutable { .. } => 126,
            LaunchError::Ranks { .. } => 2,
            LaunchError::Job(shm_core::Error::Environment { .. } | shm_core::Error::Tuning { .. }) => 2,
            _ => 125,
        }
    }

    /// A failed system call of the launcher itself.
    pub(super) fn system(what: &'static str, source: impl Into<io::Error>) -> Self {
        let source = source.into();
        let advice = advice(&source);
        LaunchError::System { what, source, advice }
    }
}

/// What to try when the system refused a process or a descriptor.
pub(super) fn advice(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EAGAIN) => {
            "the limit of processes is reached: see `ulimit -u` and the container's pids.max, or start fewer ranks"
        }
        Some(libc::ENOMEM) => "memory is short: see `free -m` and the container's memory.max, or start fewer ranks",
        Some(libc::EMFILE | libc::ENFILE) => {
            "the limit of open files is reached: raise it with `ulimit -n 4096`, or start fewer ranks"
        }
        Some(libc::EPERM | libc::EACCES | libc::ENOSYS) => {
            "a sandbox may forbid it: `phalanx doctor` shows what this machine allows"
        }
        _ => "`phalanx doctor` shows what this machine allows",
    }
}
