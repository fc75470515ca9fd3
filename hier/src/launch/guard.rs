//! The guard: a small process that ends the ranks when the launcher cannot do it any more.
//!
//! A rank asks the kernel for a SIGKILL when its launcher ends, but what a wrapper such as `sh -c` started in turn
//! does not have that wish, and would go on alone. The guard is forked before the ranks and does nothing but wait at
//! one end of a socket whose other end belongs to the launcher. Each rank writes its process group there before it
//! becomes the program. When the other end closes without a word, the launcher is gone, however it went, and the
//! guard kills every group that it has heard of.
//!
//! It sits in a session of its own with all signals blocked, so that nothing that ends the launcher ends it too, and
//! it holds no other descriptor, so that no reader of the job's output waits for it.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, killpg};
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, recv, send, socketpair};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork, setsid};

use super::MOST_RANKS;

/// A message that ends the guard: the job is over, nobody is to be killed.
const DISMISSED: i32 = 0;

/// The launcher's handle on its guard. Dropped without [`Guard::dismiss`], it lets the guard do its work.
#[derive(Debug)]
pub(super) struct Guard {
    /// I1: this process alone keeps it open: it closes on exec, and guards close all but their own end.
    link: Option<OwnedFd>,
    pid: Pid,
}

impl Guard {
    /// Forks the guard. Done before the job has a segment, so that the guard does not hold it mapped.
    pub(super) fn start() -> io::Result<Self> {
        let (ours, theirs) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?;
        let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK)?;
        // SAFETY: the child runs `stand` only, which makes system calls on values of its own stack and never
        // returns: nothing there allocates or takes a lock that another thread may have held at the fork.
        let forked = unsafe { fork() };
        if let Ok(ForkResult::Child) = forked {
            stand(theirs.as_raw_fd());
        }
        before.thread_set_mask()?;
        match forked? {
            ForkResult::Parent { child } => Ok(Guard { link: Some(ours), pid: child }),
            ForkResult::Child => unreachable!("the child never returns"),
        }
    }

    /// Where a rank introduces itself with [`introduce`].
    pub(super) fn link(&self) -> RawFd {
        self.link.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }

    /// Tells the guard that a process group is empty, so that its number may mean somebody else from here on.
    pub(super) fn forget(&self, group: Pid) {
        // A guard that is gone (somebody killed it) has nothing to forget.
        let _ = say(self.link(), -group.as_raw());
    }

    /// Ends the guard without harm to anybody, and waits for its end.
    pub(super) fn dismiss(self) {
        let _ = say(self.link(), DISMISSED);
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.link = None;
        while waitpid(self.pid, None) == Err(Errno::EINTR) {}
    }
}

/// Tells the guard which process group to end when the launcher is gone. Called by the rank itself between fork and
/// exec, so that there is no moment in which the group could grow unknown to the guard. Async-signal-safe.
pub(super) fn introduce(link: RawFd, group: Pid) -> nix::Result<()> {
    say(link, group.as_raw())
}

fn say(link: RawFd, word: i32) -> nix::Result<()> {
    loop {
        match send(link, &word.to_ne_bytes(), MsgFlags::MSG_NOSIGNAL) {
            Err(Errno::EINTR) => {}
            sent => return sent.map(drop),
        }
    }
}

/// The guard's life. Only system calls: see the fork.
fn stand(link: RawFd) -> ! {
    let _ = setsid();
    // Not the launcher's name: a `pkill -9 phalanx` should leave the guard to its work.
    let _ = prctl::set_name(c"rank-guard");
    close_all_but(link);
    let mut groups = Groups { list: [0; MOST_RANKS], count: 0 };
    let mut word = [0u8; 4];
    loop {
        match recv(link, &mut word, MsgFlags::empty()) {
            Err(Errno::EINTR) => {}
            Ok(4) => match i32::from_ne_bytes(word) {
                DISMISSED => leave(),
                group if group > 0 => groups.add(group),
                group => groups.remove(-group),
            },
            // The end of the stream, or of the socket: the launcher is gone.
            _ => break,
        }
    }
    for &group in &groups.list[..groups.count] {
        let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
        // Stopped or not, and even if it moved to a group of its own.
        let _ = kill(Pid::from_raw(group), Signal::SIGKILL);
    }
    leave()
}

fn leave() -> ! {
    // SAFETY: ends the process without running anything of it, as a forked child should.
    unsafe { libc::_exit(0) }
}

fn close_all_but(link: RawFd) {
    let link = link as libc::c_uint;
    if !close_range(link + 1, libc::c_uint::MAX) || (link > 0 && !close_range(0, link - 1)) {
        // Before Linux 5.9. Numbers beyond this are possible, and rare.
        for fd in (0..65_536).filter(|&fd| fd != link) {
            // SAFETY: nothing in this process uses the descriptor any more.
            unsafe { libc::close(fd as RawFd) };
        }
    }
}

fn close_range(first: libc::c_uint, last: libc::c_uint) -> bool {
    // SAFETY: nothing in this process uses these descriptors any more.
    unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) == 0 }
}

/// The process groups to end, in an array: a forked child does not allocate.
struct Groups {
    list: [i32; MOST_RANKS],
    count: usize,
}

impl Groups {
    fn add(&mut self, group: i32) {
        if let Some(place) = self.list.get_mut(self.count) {
            *place = group;
            self.count += 1;
        }
    }

    fn remove(&mut self, group: i32) {
        if let Some(at) = self.list[..self.count].iter().position(|&known| known == group) {
            self.count -= 1;
            self.list[at] = self.list[self.count];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::Command;

    #[test]
    fn groups_come_and_go() {
        let mut groups = Groups { list: [0; MOST_RANKS], count: 0 };
        (1..=300).for_each(|group| groups.add(group));
        assert_eq!(groups.count, MOST_RANKS);
        groups.remove(1);
        groups.remove(1);
        assert_eq!((groups.count, groups.list[0]), (MOST_RANKS - 1, MOST_RANKS as i32));
    }

    #[test]
    fn a_guard_that_is_left_kills_whom_it_knows() {
        let guard = Guard::start().unwrap();
        let mut known = Command::new("sleep").arg("20").process_group(0).spawn().unwrap();
        let mut forgotten = Command::new("sleep").arg("20").process_group(0).spawn().unwrap();
        for child in [&known, &forgotten] {
            introduce(guard.link(), Pid::from_raw(child.id() as i32)).unwrap();
        }
        guard.forget(Pid::from_raw(forgotten.id() as i32));
        drop(guard);
        assert_eq!(known.wait().unwrap().signal(), Some(libc::SIGKILL));
        assert!(forgotten.try_wait().unwrap().is_none());
        forgotten.kill().unwrap();
        forgotten.wait().unwrap();
    }

    #[test]
    fn a_guard_that_is_dismissed_harms_nobody() {
        let guard = Guard::start().unwrap();
        let mut child = Command::new("sleep").arg("20").process_group(0).spawn().unwrap();
        introduce(guard.link(), Pid::from_raw(child.id() as i32)).unwrap();
        guard.dismiss();
        assert!(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
