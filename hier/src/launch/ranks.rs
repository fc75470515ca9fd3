//! The processes of a job: how many still run, and sending signals to them and to all that they started.

use std::cell::OnceCell;
use std::os::fd::OwnedFd;
use std::process::Child;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use rustix::process::{PidfdFlags, pidfd_open};

use super::groups;
use super::outcome::End;

/// One rank: a process, and the process group that it leads.
pub(super) struct Rank {
    child: Child,
    /// Becomes readable when the process ends. `None` where the system has no such thing: then one has to ask.
    pub(super) pidfd: Option<OwnedFd>,
    /// How the process ended, once it has.
    pub(super) end: Option<End>,
    /// G1: while this is false, the number of the group means this group: its leader is not waited for, or it has
    /// other members, and so the system does not give the number to anybody else. (Where somebody else has waited for
    /// the leader, [`End::Unknown`], it may have: between that and the next look there is nothing to hold it by.)
    gone: bool,
}

impl Rank {
    fn group(&self) -> Pid {
        Pid::from_raw(self.pid() as i32)
    }

    /// The process.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }
}

/// All ranks. Dropped, it kills and waits for whatever is left of them.
#[derive(Default)]
pub(super) struct Ranks(Vec<Rank>);

impl Ranks {
    /// Adds the next rank.
    pub(super) fn add(&mut self, child: Child) {
        let pid = rustix::process::Pid::from_child(&child);
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).ok();
        self.0.push(Rank { child, pidfd, end: None, gone: false });
    }

    pub(super) fn all(&self) -> &[Rank] {
        &self.0
    }

    /// The ranks whose process has not ended.
    pub(super) fn running(&self) -> Vec<usize> {
        self.select(|rank| rank.end.is_none())
    }

    /// The ranks of which anything is left: their process, or one that it started.
    pub(super) fn present(&self) -> Vec<usize> {
        self.select(|rank| !rank.gone)
    }

    fn select(&self, which: impl Fn(&Rank) -> bool) -> Vec<usize> {
        (0..self.0.len()).filter(|&rank| which(&self.0[rank])).collect()
    }

    /// Asks whether the process of `rank` has ended since; if so, waits for it (no zombie remains) and says how.
    pub(super) fn collect(&mut self, rank: usize) -> Option<End> {
        let rank = &mut self.0[rank];
        if rank.end.is_some() {
            return None;
        }
        let end = match rank.child.try_wait() {
            Ok(status) => End::from(status?),
            // It is no child of this process any more.
            Err(error) if error.raw_os_error() == Some(Errno::ECHILD as i32) => End::Unknown,
            Err(_) => return None,
        };
        rank.end = Some(end);
        Some(end)
    }

    /// The process groups in which nobody is alive any more, since this was last asked.
    pub(super) fn emptied(&mut self) -> Vec<Pid> {
        let mut emptied = Vec::new();
        // Asked for once, and only if somebody is left.
        let living = OnceCell::new();
        let dead = |group: Pid| {
            let living = living.get_or_init(groups::living).as_ref();
            living.is_some_and(|living| !living.contains(&group.as_raw()))
        };
        for rank in self.0.iter_mut().filter(|rank| rank.end.is_some() && !rank.gone) {
            let empty = killpg(rank.group(), None) == Err(Errno::ESRCH);
            if empty || dead(rank.group()) {
                if !empty {
                    // One that was born while the living were looked for would be missed.
                    let _ = killpg(rank.group(), Signal::SIGKILL);
                }
                rank.gone = true;
                emptied.push(rank.group());
            }
        }
        emptied
    }

    /// Counts everything as gone that could not be ended.
    pub(super) fn give_up(&mut self) {
        self.0.iter_mut().for_each(|rank| rank.gone = true);
    }

    /// Sends `signal` to every group of which something is left.
    pub(super) fn signal(&self, signal: Signal) {
        for rank in self.0.iter().filter(|rank| !rank.gone) {
            let reached = killpg(rank.group(), signal);
            // The process may have left its group, as `setsid` does.
            if rank.end.is_none() && (reached == Err(Errno::ESRCH) || signal == Signal::SIGKILL) {
                let _ = kill(rank.group(), signal);
            }
        }
    }

    /// SIGTERM, also to those that are stopped.
    pub(super) fn terminate(&self) {
        self.signal(Signal::SIGTERM);
        self.signal(Signal::SIGCONT);
    }

    /// Takes the pipe to the standard input of a rank, if it has one.
    pub(super) fn take_input(&mut self, rank: usize) -> Option<std::process::ChildStdin> {
        self.0.get_mut(rank)?.child.stdin.take()
    }

    fn wait(&mut self) {
        // Who is no child any more is waited for already.
        self.0.iter_mut().filter(|rank| rank.end.is_none()).for_each(|rank| drop(rank.child.wait()));
    }
}

impl Drop for Ranks {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
        self.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use nix::sys::wait::waitpid;

    use super::*;

    /// How a rank ended whom somebody else has waited for nobody knows; that it has is seen.
    #[test]
    fn ranks_that_somebody_else_has_waited_for() {
        let child = Command::new("true").process_group(0).spawn().unwrap();
        let mut ranks = Ranks::default();
        ranks.add(child);
        waitpid(ranks.0[0].group(), None).unwrap();
        assert_eq!(ranks.collect(0), Some(End::Unknown));
        assert_eq!((ranks.running(), ranks.collect(0)), (vec![], None));
    }
}
