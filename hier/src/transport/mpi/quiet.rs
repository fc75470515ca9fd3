//! A transport without messages: it lets those of the program move.

use std::time::Duration;

use super::super::{Error, Request, Result, Transport, place_among};
use super::{calls, start};

/// The transport of a group whose ranks are all on one node, and need no messages of their own. It takes no communicator of MPI, of which
/// there are only so many. [`progress`](Transport::progress) lets MPI move, as a rank that waits in a call should do.
///
/// To send or to receive is an error.
#[derive(Clone, Copy, Debug)]
pub struct QuietTransport {
    rank: usize,
    size: usize,
}

impl QuietTransport {
    /// That of `rank` in a group of `size` ranks. Not collective.
    #[must_use]
    pub fn new(rank: usize, size: usize) -> Self {
        Self { rank, size }
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
        calls::turn();
        Ok(())
    }

    fn abandon(&self, _request: Request, _limit: Duration) -> bool {
        true
    }

    fn subset(&self, members: &[usize]) -> Result<Box<dyn Transport>> {
        let rank = place_among(self.rank, self.size, members)?;
        Ok(Box::new(Self { rank, size: members.len() }))
    }

    fn describe(&self) -> String {
        format!("{} ranks of {} on one node, without messages", self.size, start::library())
    }
}
