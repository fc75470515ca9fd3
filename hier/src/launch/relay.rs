//! One output stream of all ranks, read from their pipes by a thread of its own.
//!
//! A thread, so that the launcher goes on to watch over the ranks while the reader of their output takes its time.
//! One for standard output and one for standard error, so that the one does not wait for the other.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::LaunchError;
use super::tag::Tagger;

/// As much as a pipe usually holds.
const PIECE: usize = 64 << 10;
/// Reads of a pipe after the stop: as much as a pipe may hold (1 MiB), and not all that a stray process goes on to
/// write.
const LAST_READS: usize = 17;

/// Held while something is written, so that the lines of two streams that lead to the same place stay whole.
pub(super) type Gate = Arc<Mutex<()>>;

/// Where a stream leads.
pub(super) enum Sink {
    /// To a descriptor of the launcher, each line with its rank.
    Tagged { file: File, gate: Gate },
    /// Into memory, apart for each rank.
    Captured,
}

/// What a stream came to.
#[derive(Debug, Default)]
pub(super) struct Passed {
    /// What was captured, by rank.
    pub(super) captured: Vec<Vec<u8>>,
    /// Why not all of it could be written; a reader that has left is no such reason.
    pub(super) unwritten: Option<io::Error>,
}

/// A thread that reads one stream of all ranks.
pub(super) struct Relay {
    thread: JoinHandle<Passed>,
    /// Closed to say that nothing more is to be waited for.
    stop: PipeWriter,
}

impl Relay {
    /// Starts the thread over the pipes of the ranks, in order of rank.
    pub(super) fn start(pipes: Vec<PipeReader>, sink: Sink) -> Result<Self, LaunchError> {
        let failed = |error| LaunchError::system("reading the output of the ranks", error);
        let (stopped, stop) = io::pipe().map_err(failed)?;
        for pipe in &pipes {
            fcntl(pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).map_err(|errno| failed(errno.into()))?;
        }
        let thread = Builder::new().name("output".to_owned()).spawn(move || Reading::new(pipes, sink).run(&stopped));
        Ok(Relay { thread: thread.map_err(failed)?, stop })
    }

    /// Waits until all is passed on that is in the pipes. Called when the ranks have ended: what a stray process keeps
    /// open is not waited for.
    pub(super) fn finish(self) -> Passed {
        drop(self.stop);
        self.thread.join().unwrap_or_default()
    }
}

struct Reading {
    /// By rank; `None` once it has come to its end.
    pipes: Vec<Option<PipeReader>>,
    tagger: Tagger,
    captured: Vec<Vec<u8>>,
    sink: Sink,
    /// Lines that are to be written next.
    out: Vec<u8>,
    /// The first error of writing, unless it says that the reader has left.
    unwritten: Option<io::Error>,
}

impl Reading {
    fn new(pipes: Vec<PipeReader>, sink: Sink) -> Self {
        let ranks = pipes.len();
        let pipes = pipes.into_iter().map(Some).collect();
        let captured = vec![Vec::new(); ranks];
        Reading { pipes, tagger: Tagger::new(ranks), captured, sink, out: Vec::new(), unwritten: None }
    }

    fn run(mut self, stopped: &PipeReader) -> Passed {
        let mut piece = vec![0; PIECE];
        let mut last_reads = LAST_READS;
        loop {
            let (ready, stop) = self.wait(stopped);
            last_reads -= usize::from(stop);
            let mut any = false;
            for rank in ready {
                any |= self.read(rank, &mut piece);
            }
            if !self.write() {
                // Nobody gets it any more. The ranks are to learn it about as they would without the launcher.
                self.pipes.clear();
            }
            if self.pipes.iter().all(Option::is_none) || (stop && !any) || last_reads == 0 {
                break;
            }
        }
        (0..self.captured.len()).for_each(|rank| self.tagger.finish(rank, &mut self.out));
        self.write();
        Passed { captured: self.captured, unwritten: self.unwritten }
    }

    /// The ranks whose pipes have something, and whether the stop was given.
    fn wait(&self, stopped: &PipeReader) -> (Vec<usize>, bool) {
        let open: Vec<(usize, &PipeReader)> =
            self.pipes.iter().enumerate().filter_map(|(rank, pipe)| Some((rank, pipe.as_ref()?))).collect();
        let mut polled: Vec<PollFd> = open.iter().map(|(_, pipe)| interest(pipe.as_fd())).collect();
        polled.push(interest(stopped.as_fd()));
        while poll(&mut polled, PollTimeout::NONE) == Err(Errno::EINTR) {}
        let stop = polled.pop().is_some_and(|stop| stop.any() == Some(true));
        // After the stop every pipe is read until it is empty, in the order of the ranks.
        let ready = open.iter().zip(&polled).filter(|(_, fd)| stop || fd.any() == Some(true));
        (ready.map(|((rank, _), _)| *rank).collect(), stop)
    }

    /// Reads once; false when there was nothing.
    fn read(&mut self, rank: usize, piece: &mut [u8]) -> bool {
        let Some(pipe) = &mut self.pipes[rank] else { return false };
        match pipe.read(piece) {
            Ok(0) => {
                self.pipes[rank] = None;
                self.tagger.finish(rank, &mut self.out);
                false
            }
            Ok(length) => {
                match self.sink {
                    Sink::Tagged { .. } => self.tagger.take(rank, &piece[..length], &mut self.out),
                    Sink::Captured => self.captured[rank].extend_from_slice(&piece[..length]),
                }
                true
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => false,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => true,
            Err(_) => {
                self.pipes[rank] = None;
                false
            }
        }
    }

    /// Writes the lines so far; false when they cannot be written.
    fn write(&mut self) -> bool {
        let Sink::Tagged { file, gate } = &mut self.sink else { return true };
        if self.out.is_empty() {
            return true;
        }
        let written = {
            let _whole = gate.lock().unwrap_or_else(PoisonError::into_inner);
            write_all(file, &self.out)
        };
        self.out.clear();
        let Err(error) = written else { return true };
        if error.kind() != io::ErrorKind::BrokenPipe {
            self.unwritten.get_or_insert(error);
        }
        false
    }
}

/// Writes all, also to a descriptor that somebody has set to not wait.
fn write_all(file: &mut File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(length) => bytes = &bytes[length..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let mut room = [PollFd::new(file.as_fd(), PollFlags::POLLOUT)];
                let _ = poll(&mut room, PollTimeout::NONE);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn interest(fd: BorrowedFd<'_>) -> PollFd<'_> {
    PollFd::new(fd, PollFlags::POLLIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captures_each_rank_apart() {
        let (reads, writes): (Vec<_>, Vec<_>) = (0..3).map(|_| io::pipe().unwrap()).unzip();
        let relay = Relay::start(reads, Sink::Captured).unwrap();
        for (rank, mut write) in writes.into_iter().enumerate() {
            write.write_all(&vec![rank as u8; 200_000 * rank]).unwrap();
        }
        let captured = relay.finish().captured;
        assert_eq!(captured.iter().map(Vec::len).collect::<Vec<_>>(), [0, 200_000, 400_000]);
        assert!(captured[2].iter().all(|&byte| byte == 2));
    }

    #[test]
    fn a_pipe_that_stays_open_does_not_hold_the_end() {
        let (read, mut write) = io::pipe().unwrap();
        let relay = Relay::start(vec![read], Sink::Captured).unwrap();
        write.write_all(b"all of this").unwrap();
        assert_eq!(relay.finish().captured, [b"all of this"]);
    }

    #[test]
    fn a_reader_that_left_closes_the_pipes() {
        let (read, mut write) = io::pipe().unwrap();
        let (out_read, out_write) = io::pipe().unwrap();
        drop(out_read);
        let file = File::from(std::os::fd::OwnedFd::from(out_write));
        let relay = Relay::start(vec![read], Sink::Tagged { file, gate: Gate::default() }).unwrap();
        let broken = (0..1000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(2));
            write.write_all(b"hello\n").is_err()
        });
        assert!(broken);
        assert!(relay.finish().unwritten.is_none());
    }

    #[test]
    fn a_full_device_is_told_also_of_the_last_line() {
        for text in [&b"hello\n"[..], b"no end"] {
            let (read, mut write) = io::pipe().unwrap();
            let file = File::options().write(true).open("/dev/full").unwrap();
            let relay = Relay::start(vec![read], Sink::Tagged { file, gate: Gate::default() }).unwrap();
            write.write_all(text).unwrap();
            let error = relay.finish().unwritten.unwrap();
            assert_eq!(error.raw_os_error(), Some(Errno::ENOSPC as i32));
        }
    }
}
