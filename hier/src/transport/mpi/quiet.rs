//! A transport without messages: it lets those of the program move.

use std::time::Duration;

use ::mpi::ffi::MPI_Comm;

use super::super::{Error, Request, Result, Transport, place_among};
use super::{calls, start};

/// The transport of a group whose ranks are all on one node, and need no messages of their own. It makes no
/// communicator of MPI, of which there are only so many. [`progress`](Transport::progress) lets MPI move, as a rank
/// that waits in a call should do: it looks for messages on a communicator that has none. (One with other ranks: on
/// MPI_COMM_SELF, MPICH lets nothing move.)
///
/// To send or to receive is an error.
#[derive(Clone, Copy, Debug)]
pub struct QuietTransport {
    rank: usize,
    size: usize,
    /// I1: valid as long as this lives.
    silent: MPI_Comm,
}

// SAFETY: who makes one sees to it that MPI may be called where it is used.
unsafe impl Send for QuietTransport {}

impl QuietTransport {
    /// That of `rank` in a group of `size` ranks. `silent` is a communicator of several ranks on which nobody sends
    /// anything; any number of transports may share it. Not collective.
    ///
    /// # Safety
    /// `silent` is valid as long as the transport, and all that are made of it, live. MPI may be called by each thread
    /// that uses them.
    #[must_use]
    pub unsafe fn new(rank: usize, size: usize, silent: MPI_Comm) -> Self {
        Self { rank, size, silent }
    }
}

impl Transport for QuietTransport {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    unsafe fn send(&self, _to: usize, _tag: u32, _data: *const u8, _bytes: usize) -> Result<Request> {
        Err(Error::Request { rank: self.rank })
    }

    unsafe fn receive(&self, _from: usize, _tag: u32, _into: *mut u8, _bytes: usize) -> Result<Request> {
        Err(Error::Request { rank: self.rank })
    }

    fn test(&self, request: &mut Request) -> Result<bool> {
        if request.has_ended() { Ok(true) } else { Err(Error::Request { rank: self.rank }) }
    }

    fn progress(&self) -> Result<()> {
        calls::look(self.silent);
        Ok(())
    }

    fn abandon(&self, _request: Request, _limit: Duration) -> bool {
        true
    }

    fn subset(&self, members: &[usize]) -> Result<Box<dyn Transport>> {
        let rank = place_among(self.rank, self.size, members)?;
        Ok(Box::new(Self { rank, size: members.len(), silent: self.silent }))
    }

    fn describe(&self) -> String {
        format!("{} ranks of {} on one node, without messages", self.size, start::library())
    }
}
