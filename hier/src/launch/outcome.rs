//! How ranks ended, and what a job came to.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use nix::sys::signal::Signal;

/// How the process of a rank ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum End {
    /// It exited with this status.
    Exited(u8),
    /// A signal killed it.
    Killed {
        /// The number of the signal.
        signal: i32,
        /// Whether the system wrote a core dump.
        core: bool,
    },
    /// Nobody knows how: another thread of the launching process waited for it (`waitpid(-1)`).
    Unknown,
}

impl End {
    /// Whether it exited with status 0.
    pub fn success(self) -> bool {
        self == End::Exited(0)
    }

    /// As an exit status: its own, 128 and the number of the signal, or 1 where it is not known.
    pub fn status(self) -> u8 {
        match self {
            End::Exited(status) => status,
            End::Killed { signal, .. } => 128u8.saturating_add(u8::try_from(signal).unwrap_or(127)),
            End::Unknown => 1,
        }
    }

    /// The predicate of a sentence about so many ranks.
    pub(super) fn of(self, ranks: usize) -> String {
        let said = self.to_string();
        match said.strip_prefix("was ") {
            Some(rest) if ranks > 1 => format!("were {rest}"),
            _ => said,
        }
    }
}

impl From<ExitStatus> for End {
    fn from(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => End::Exited(code as u8),
            (None, Some(signal)) => End::Killed { signal, core: status.core_dumped() },
            (None, None) => unreachable!("waited for the end of a process, and got neither status nor signal"),
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            End::Exited(status) => write!(f, "exited with status {status}"),
            End::Killed { signal, core } => {
                write!(f, "was killed by {}{}", signal_name(signal), if core { ", core dumped" } else { "" })
            }
            End::Unknown => write!(f, "was waited for by somebody else in the launching process, who has its status"),
        }
    }
}

/// `SIGKILL (signal 9)`, or the bare number of a real-time signal.
fn signal_name(signal: i32) -> String {
    match Signal::try_from(signal) {
        Ok(known) => format!("{} (signal {signal})", known.as_str()),
        Err(_) => format!("signal {signal}"),
    }
}

/// The failure that ended a job: the rank that failed first, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// The rank.
    pub rank: usize,
    /// Its process.
    pub pid: u32,
    /// How it ended. An exit with status 0 is a failure too when the rank left others waiting.
    pub end: End,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} (pid {}) {}", self.rank, self.pid, self.end)?;
        f.write_str(match self.end {
            End::Exited(0) => {
                " before it had left the job, while others still counted on it \
                 (every rank must make the same collective calls and drop its communicators before it exits; a panic \
                 that leaves a call, caught or not, ends the rank's part)"
            }
            End::Killed { signal: libc::SIGKILL, .. } => " (if nobody sent that, memory may have run out: see `dmesg`)",
            End::Killed { signal: libc::SIGBUS, .. } => " (a mapped file or memory was not there)",
            End::Killed { signal: libc::SIGPIPE, .. } => " (the reader of its output had gone)",
            End::Killed { signal: libc::SIGXCPU, .. } => " (the limit of processor time: see `ulimit -t`)",
            _ => "",
        })
    }
}

/// What a job came to, all ranks ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome {
    /// How each rank ended, by rank.
    pub statuses: Vec<End>,
    /// The failure that ended the job, if one did.
    pub first_failure: Option<Failure>,
    /// The signal that told the launcher to end the job, if one did.
    pub interrupted: Option<i32>,
    /// What each rank wrote to its standard output, by rank; empty unless it was [captured](super::Output::Captured).
    pub captured: Vec<Vec<u8>>,
    /// Why not all of the output could be passed on where it was [tagged](super::Output::Tagged), as with a full disk. A
    /// reader that has left (`| head`) is no such reason.
    pub unwritten: Option<String>,
}

impl Outcome {
    /// Whether all ranks ended with status 0, in good order, and all that they wrote was passed on.
    pub fn success(&self) -> bool {
        self.status() == 0
    }

    /// The exit status of the whole: that of the first failure (128 and the number of a signal), 1 when the first
    /// failure was an exit with status 0 that left others waiting, 1 when no rank failed and output could not be
    /// written, 0 when all went well.
    pub fn status(&self) -> u8 {
        match &self.first_failure {
            Some(failure) => failure.end.status().max(1),
            None => u8::from(self.unwritten.is_some()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_say_what_they_were() {
        assert_eq!(End::from(ExitStatus::from_raw(3 << 8)), End::Exited(3));
        assert_eq!(End::from(ExitStatus::from_raw(9)), End::Killed { signal: 9, core: false });
        assert_eq!(
            End::from(ExitStatus::from_raw(0x80 | 11)).to_string(),
            "was killed by SIGSEGV (signal 11), core dumped"
        );
        assert_eq!(End::Killed { signal: 36, core: false }.to_string(), "was killed by signal 36");
        assert_eq!(End::Killed { signal: 9, core: false }.status(), 137);
        assert_eq!(End::Exited(255).to_string(), "exited with status 255");
    }

    #[test]
    fn a_job_that_failed_never_has_status_0() {
        let failure = Failure { rank: 1, pid: 7, end: End::Exited(0) };
        assert!(failure.to_string().contains("before it had left the job"), "{failure}");
        let well =
            Outcome { statuses: vec![], first_failure: None, interrupted: None, captured: vec![], unwritten: None };
        assert_eq!((well.status(), well.success()), (0, true));
        let outcome = Outcome { first_failure: Some(failure), ..well.clone() };
        assert_eq!((outcome.status(), outcome.success()), (1, false));
        let outcome = Outcome { unwritten: Some("no space".to_owned()), ..well };
        assert_eq!((outcome.status(), outcome.success()), (1, false));
    }
}
