//! Standard input for rank 0.
//!
//! A file or a pipe is simply inherited. A terminal is not: it gives its lines to the process group in its
//! foreground, which is the launcher's and not rank 0's, so the launcher reads it and passes on what was typed.

use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::ChildStdin;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags};
use nix::unistd::{getpgrp, isatty, read, tcgetpgrp};

/// Whether rank 0 has to be fed.
pub(super) fn is_terminal() -> bool {
    isatty(io::stdin()) == Ok(true)
}

/// What is typed at the terminal, on its way to rank 0.
pub(super) struct Feed {
    terminal: io::Stdin,
    rank: ChildStdin,
    typed: Vec<u8>,
    /// The terminal has hung up. It does not come back, and would say so at each look.
    gone: bool,
}

impl Feed {
    pub(super) fn new(rank: ChildStdin) -> io::Result<Self> {
        fcntl(&rank, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        Ok(Feed { terminal: io::stdin(), rank, typed: Vec::new(), gone: false })
    }

    /// What to wait for: room in the pipe if something is on its way, else something typed (and in both cases the
    /// end of the pipe). In the background there is nothing to read: the system would stop the launcher for trying.
    pub(super) fn interests(&self) -> [PollFd<'_>; 2] {
        let (terminal, rank) = match (self.typed.is_empty(), self.in_foreground()) {
            (true, true) => (PollFlags::POLLIN, PollFlags::empty()),
            (true, false) => (PollFlags::empty(), PollFlags::empty()),
            (false, _) => (PollFlags::empty(), PollFlags::POLLOUT),
        };
        let terminal = match self.gone {
            false => PollFd::new(self.terminal.as_fd(), terminal),
            true => PollFd::new(self.rank.as_fd(), PollFlags::empty()),
        };
        [terminal, PollFd::new(self.rank.as_fd(), rank)]
    }

    /// Whether the terminal has to be looked at again after a while: nobody says when it comes back.
    pub(super) fn in_background(&self) -> bool {
        !self.gone && !self.in_foreground()
    }

    /// Passes on what there is; false when nothing more will come, or nobody wants it.
    pub(super) fn pass_on(&mut self, terminal: PollFlags, rank: PollFlags) -> bool {
        if rank.contains(PollFlags::POLLERR) {
            return false;
        }
        self.gone |= terminal.intersects(PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL);
        if !self.gone && self.typed.is_empty() && !terminal.is_empty() && self.in_foreground() {
            let mut line = [0; 4096];
            match read(&self.terminal, &mut line) {
                Ok(0) => return false,
                Ok(length) => self.typed.extend_from_slice(&line[..length]),
                Err(Errno::EINTR | Errno::EAGAIN) => {}
                Err(_) => return false,
            }
        }
        while !self.typed.is_empty() {
            match self.rank.write(&self.typed) {
                Ok(length) => drop(self.typed.drain(..length)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        !(self.gone && self.typed.is_empty())
    }

    fn in_foreground(&self) -> bool {
        let terminal: BorrowedFd<'_> = self.terminal.as_fd();
        tcgetpgrp(terminal).is_ok_and(|group| group == getpgrp())
    }
}
