//! The signals that a launcher passes on to its ranks.
//!
//! A handler writes each signal's number into a pipe, where the launcher's loop reads it among everything else that
//! it waits for. Signals that were ignored when the job started (SIGHUP under `nohup`, SIGINT of a background job of
//! a script) stay ignored, and when the job is over all are handled again as before it.
//!
//! SIGCHLD alone is not left ignored ([`Ends`]): of children that end then the system keeps no status.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, PoisonError};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::unistd::{getpid, pipe2, read};

use super::LaunchError;

/// All that are passed on.
const PASSED_ON: [Signal; 8] = [
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGTSTP,
    Signal::SIGCONT,
];

/// The pipe that the handler writes to; -1 when nobody listens.
static PIPE: AtomicI32 = AtomicI32::new(-1);
/// The process that listens: a forked child that is not a program yet has the handler too.
static LISTENER: AtomicI32 = AtomicI32::new(0);

/// Whether a signal asks a job to end.
pub(super) fn asks_to_end(signal: Signal) -> bool {
    matches!(signal, Signal::SIGINT | Signal::SIGTERM | Signal::SIGHUP | Signal::SIGQUIT)
}

/// The signals of this process, from [`Signals::listen`] until it is dropped.
#[derive(Debug)]
pub(super) struct Signals {
    read: OwnedFd,
    write: OwnedFd,
    before: Vec<(Signal, SigAction)>,
}

impl Signals {
    /// Installs the handlers.
    pub(super) fn listen() -> Result<Self, LaunchError> {
        let failed = |errno: Errno| LaunchError::system("handling signals", errno);
        let (read, write) = pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK).map_err(failed)?;
        PIPE.compare_exchange(-1, write.as_raw_fd(), Ordering::SeqCst, Ordering::SeqCst)
            .map_err(|_| LaunchError::SignalsTaken)?;
        LISTENER.store(getpid().as_raw(), Ordering::SeqCst);
        let mut signals = Signals { read, write, before: Vec::new() };
        let action = SigAction::new(SigHandler::Handler(note), SaFlags::SA_RESTART, SigSet::empty());
        for signal in PASSED_ON {
            // SAFETY: the handler only loads two atomics and makes two async-signal-safe system calls.
            let before = unsafe { sigaction(signal, &action) }.map_err(failed)?;
            signals.before.push((signal, before));
            if matches!(before.handler(), SigHandler::SigIgn) {
                signals.give_back(signals.before.len() - 1);
            }
        }
        Ok(signals)
    }

    /// The next signal that came, if one did.
    pub(super) fn next(&self) -> Option<Signal> {
        let mut number = [0u8];
        match read(&self.read, &mut number) {
            Ok(1) => Signal::try_from(i32::from(number[0])).ok(),
            _ => None,
        }
    }

    fn give_back(&self, index: usize) {
        let (signal, before) = &self.before[index];
        // SAFETY: what handled the signal before this job handles it again; it was installed as sound then.
        let _ = unsafe { sigaction(*signal, before) };
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.read.as_fd()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        (0..self.before.len()).for_each(|index| self.give_back(index));
        // A handler that still runs on another thread may hold the number of a pipe that is closed a moment later;
        // it writes one byte then, to nobody. The number goes first, so that none that starts from here sees it.
        let _ = PIPE.compare_exchange(self.write.as_raw_fd(), -1, Ordering::SeqCst, Ordering::SeqCst);
    }
}

/// Has the system keep how children end, until this is dropped: it does not where SIGCHLD is ignored, which programs
/// inherit from those that start them.
pub(super) struct Ends(());

/// The jobs that want it kept, and what was in place before the first of them changed it.
static KEPT: Mutex<(usize, Option<libc::sigaction>)> = Mutex::new((0, None));

impl Ends {
    pub(super) fn keep() -> Result<Self, LaunchError> {
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: a plain struct of C, for which zeros are a value.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: nothing is set; what is in place is written to a struct that lives here.
        unsafe { libc::sigaction(libc::SIGCHLD, std::ptr::null(), &raw mut action) };
        let before = action;
        if action.sa_sigaction == libc::SIG_IGN {
            action.sa_sigaction = libc::SIG_DFL;
        }
        action.sa_flags &= !libc::SA_NOCLDWAIT;
        if (action.sa_sigaction, action.sa_flags) != (before.sa_sigaction, before.sa_flags) {
            set_of_children(&action).map_err(|errno| LaunchError::system("having ends of ranks kept", errno))?;
            kept.1.get_or_insert(before);
        }
        kept.0 += 1;
        Ok(Self(()))
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        kept.0 -= 1;
        if kept.0 == 0
            && let Some(before) = kept.1.take()
        {
            let _ = set_of_children(&before);
        }
    }
}

/// Has SIGCHLD handled so.
fn set_of_children(action: &libc::sigaction) -> nix::Result<()> {
    // SAFETY: what this process had in place, but for what keeps no ends: its handler is good as it was before.
    Errno::result(unsafe { libc::sigaction(libc::SIGCHLD, action, std::ptr::null_mut()) }).map(drop)
}

extern "C" fn note(signal: libc::c_int) {
    let errno = Errno::last_raw();
    let pipe = PIPE.load(Ordering::SeqCst);
    if pipe >= 0 && LISTENER.load(Ordering::SeqCst) == getpid().as_raw() {
        let number = signal as u8;
        // SAFETY: the pointer is to one byte that lives here. A full pipe drops the signal, as the system does with
        // signals that are pending already.
        unsafe { libc::write(pipe, (&raw const number).cast(), 1) };
    }
    Errno::set_raw(errno);
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::signal::raise;

    // One test for all: the handlers are process-wide.
    #[test]
    fn signals_are_heard_in_turn_and_given_back() {
        extern "C" fn nothing(_: libc::c_int) {}
        let mine = SigAction::new(SigHandler::Handler(nothing), SaFlags::empty(), SigSet::empty());
        let ignored = SigAction::new(SigHandler::SigIgn, SaFlags::empty(), SigSet::empty());
        // SAFETY: a handler that does nothing, and no handler.
        unsafe { sigaction(Signal::SIGUSR1, &mine) }.unwrap();
        // SAFETY: as above.
        unsafe { sigaction(Signal::SIGHUP, &ignored) }.unwrap();

        let signals = Signals::listen().unwrap();
        assert!(matches!(Signals::listen(), Err(LaunchError::SignalsTaken)));
        for signal in [Signal::SIGUSR1, Signal::SIGHUP, Signal::SIGTERM] {
            raise(signal).unwrap();
        }
        assert_eq!(signals.next(), Some(Signal::SIGUSR1));
        assert_eq!(signals.next(), Some(Signal::SIGTERM));
        assert_eq!(signals.next(), None);
        drop(signals);

        // SAFETY: only asks, by putting in place what is in place.
        let handled = unsafe { sigaction(Signal::SIGUSR1, &mine) }.unwrap();
        assert!(
            matches!(handled.handler(), SigHandler::Handler(handler) if std::ptr::fn_addr_eq(handler, nothing as extern "C" fn(_)))
        );
        drop(Signals::listen().unwrap());
    }
}
