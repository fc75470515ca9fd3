//! A command in a process group of its own, which ends with the value that stands for it.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::error::{Error, Result};

/// A running command with all that it has started. Dropped before its end, it is sent SIGTERM, and SIGKILL once the
/// time to clear up is over.
pub struct Group {
    child: Child,
    grace: Duration,
}

impl Group {
    /// Starts `command`, which has `grace` to clear up when it is ended.
    ///
    /// # Errors
    ///
    /// [`Error::System`] with `what` was not possible.
    pub fn start(command: &mut Command, grace: Duration, what: impl Into<String>) -> Result<Self> {
        let child = command.process_group(0).spawn().map_err(Error::system(what))?;
        Ok(Self { child, grace })
    }

    /// Waits for its end, and looks for it every `pause`: rarely enough not to disturb what it measures. `goes_on` is
    /// asked at each look. `None` when the limit, or its "no", came first: the command has been ended then.
    ///
    /// # Errors
    ///
    /// [`Error::System`].
    pub fn wait(
        mut self,
        limit: Duration,
        pause: Duration,
        mut goes_on: impl FnMut() -> bool,
    ) -> Result<Option<ExitStatus>> {
        let begin = Instant::now();
        loop {
            let ended = self.child.try_wait().map_err(Error::system("wait for a command"))?;
            if !goes_on() || ended.is_some() || begin.elapsed() > limit {
                return Ok(ended);
            }
            sleep(pause);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        let group = Pid::from_raw(self.child.id() as i32);
        let _ = killpg(group, Signal::SIGTERM);
        let begin = Instant::now();
        while begin.elapsed() < self.grace {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            sleep(Duration::from_millis(50));
        }
        let _ = killpg(group, Signal::SIGKILL);
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn hanging(script: &str, grace: u64) -> (Group, String) {
        let mut command = Command::new("sh");
        let group = Group::start(command.args(["-c", script]), Duration::from_millis(grace), "start a shell").unwrap();
        let process = format!("/proc/{}", group.child.id());
        (group, process)
    }

    #[test]
    fn one_that_hangs_is_ended_at_the_limit() {
        let (group, process) = hanging("exec sleep 1000", 5000);
        assert!(group.wait(Duration::from_millis(50), Duration::from_millis(5), || true).unwrap().is_none());
        assert!(!Path::new(&process).exists());
    }

    #[test]
    fn one_that_does_not_listen_is_killed() {
        let (group, process) = hanging("trap '' TERM; while :; do sleep 1000; done", 100);
        assert!(group.wait(Duration::from_secs(100), Duration::from_millis(5), || false).unwrap().is_none());
        assert!(!Path::new(&process).exists());
    }

    #[test]
    fn the_status_of_one_that_ends_is_told() {
        let (group, _) = hanging("exit 7", 100);
        let status = group.wait(Duration::from_secs(100), Duration::from_millis(5), || true).unwrap().unwrap();
        assert_eq!(status.code(), Some(7));
    }
}
