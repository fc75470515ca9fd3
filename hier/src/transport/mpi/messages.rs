//! The messages that are under way, from their beginning to their end.

use std::ffi::c_int;
use std::time::{Duration, Instant};

use ::mpi::ffi::MPI_Request;
use smallvec::SmallVec;

use super::calls::{self, Arrived, Failure};
use super::expected::{self, Landing};
use super::{Error, MpiTransport, Request, Result, Transport};
use crate::transport::check;
use crate::transport::parts::parts;
use crate::transport::queue::Queue;
use crate::transport::slots::Slots;

/// How long what is given up may take, before all messages of all ranks are ended so that it does.
const PATIENCE: Duration = Duration::from_millis(100);
/// How long it may take from then on: a rank hears of it when it is next in MPI.
const REVOKED: Duration = Duration::from_secs(60);

/// The messages under way.
pub(super) struct Messages {
    pub(super) requests: Slots<Pending>,
    /// Receives, of a rank and a tag, for which messages are to be taken yet, in the order in which they were posted.
    pub(super) posted: Queue<Request>,
    /// Messages that were taken before their receives were posted, in the order in which they came.
    pub(super) early: Queue<Arrived>,
    /// Messages of a wrong length: taken out of the way, so that their sends end.
    pub(super) sinks: Vec<(MPI_Request, Vec<u8>)>,
    /// Memory of posted receives that have ended.
    pub(super) landings: Vec<Landing>,
}

/// A message that has not ended.
pub(super) struct Pending {
    pub(super) peer: usize,
    pub(super) tag: u32,
    /// I2: valid for `bytes` bytes, by contract of `send` and `receive`, until the request has ended.
    pub(super) buffer: *mut u8,
    pub(super) bytes: usize,
    pub(super) receives: bool,
    /// Parts that were begun, and bytes in them.
    pub(super) begun: usize,
    pub(super) begun_bytes: usize,
    /// Requests of parts that have begun and not ended, on pieces of the buffer.
    pub(super) under_way: SmallVec<[MPI_Request; 1]>,
    /// Where MPI puts the message of a receive that was posted.
    pub(super) landing: Option<Landing>,
    /// The bytes of a long message that has come since, perhaps in its place.
    pub(super) displaced: Option<usize>,
    pub(super) failed: Option<Error>,
}

impl Messages {
    /// Gives back what a request had that has ended.
    pub(super) fn end(&mut self, request: &mut Request) {
        if let Some(pending) = self.requests.remove(request) {
            self.landings.extend(pending.landing);
        }
        *request = Request::ended();
    }
}

impl Pending {
    /// Notes that the next part has begun.
    pub(super) fn begin(&mut self, request: MPI_Request, bytes: usize) {
        self.under_way.push(request);
        self.begun += 1;
        self.begun_bytes += bytes;
    }

    pub(super) fn key(&self) -> (usize, u32) {
        (self.peer, self.tag)
    }
}

impl MpiTransport {
    /// A message of which nothing has begun.
    pub(super) fn pending(
        &self,
        peer: usize,
        tag: u32,
        buffer: *mut u8,
        bytes: usize,
        receives: bool,
    ) -> Result<Pending> {
        self.enter()?;
        check(self.rank, self.size, peer, tag)?;
        let (begun, begun_bytes, under_way, landing, displaced, failed) = (0, 0, SmallVec::new(), None, None, None);
        Ok(Pending { peer, tag, buffer, bytes, receives, begun, begun_bytes, under_way, landing, displaced, failed })
    }

    /// The length of the next part that is to begin.
    pub(super) fn next_part(&self, pending: &Pending) -> Option<usize> {
        parts(pending.bytes, self.longest_whole).nth(pending.begun)
    }

    /// Begins the parts of a message to another rank.
    pub(super) fn begin_send(&self, pending: &mut Pending) -> Result<()> {
        while let Some(part) = self.next_part(pending) {
            let data = pending.buffer.wrapping_add(pending.begun_bytes);
            let (peer, tag) = (pending.peer as c_int, expected::marked(pending.tag, pending.bytes));
            // SAFETY: I2: the part lies within the buffer.
            let request = unsafe { calls::send(self.comm, peer, tag, data, part as c_int) };
            pending.begin(request.map_err(|failure| self.failure(failure, Some(pending.peer)))?, part);
        }
        Ok(())
    }

    /// Gives a message to the receive that waits for it; without one the message is returned.
    pub(super) fn give(&self, messages: &mut Messages, arrived: Arrived) -> Result<Option<Arrived>> {
        let key = (arrived.from, arrived.tag);
        let Messages { requests, posted, sinks, .. } = messages;
        let failed = |failure| self.failure(failure, Some(key.0));
        while let Some(place) = posted.first(key) {
            let part = requests.get(posted.at(place)).and_then(|pending| Some((self.next_part(pending)?, pending)));
            let Some((part, pending)) = part else {
                drop(posted.remove(place));
                continue;
            };
            if arrived.bytes == part {
                let into = pending.buffer.wrapping_add(pending.begun_bytes);
                // SAFETY: I2: the part lies within the buffer, and is as long as the message.
                let request = unsafe { calls::receive(arrived.message, into, part as c_int) };
                pending.begin(request.map_err(failed)?, part);
                if self.next_part(pending).is_none() {
                    drop(posted.remove(place));
                }
            } else {
                let (rank, (peer, tag)) = (self.rank, key);
                pending.failed = Some(Error::Length { rank, peer, tag, expected: part, arrived: arrived.bytes });
                drop(posted.remove(place));
                sinks.extend(sink(arrived).map_err(failed)?);
            }
            return Ok(None);
        }
        // Not for a receive that was posted: its message is a short one, which MPI would have given to it.
        let is_short = arrived.is_short;
        let may_be_displaced = |pending: &Pending| {
            !is_short
                && pending.landing.is_some()
                && pending.key() == key
                && pending.failed.is_none()
                && pending.displaced.is_none()
        };
        for pending in requests.iter_mut().filter(|pending| may_be_displaced(pending)) {
            if self.displaces(pending, arrived.bytes) {
                sinks.extend(sink(arrived).map_err(failed)?);
                return Ok(None);
            }
        }
        Ok(Some(arrived))
    }

    /// Takes one message that has come, whoever waits for it: what one rank waits for may wait, at the other end, for
    /// another message to be taken here. Returns whether there was one.
    ///
    /// One call of MPI, since one that finds nothing may cost more than one that does. It must take what it finds: in
    /// Open MPI a probe that finds a message, and leaves it, lets nothing else move.
    pub(super) fn take_one(&self, messages: &mut Messages) -> Result<bool> {
        if !messages.sinks.is_empty() {
            messages.sinks.retain_mut(|(request, _)| matches!(calls::test(request), Ok(false)));
        }
        let arrived = calls::take(self.comm).map_err(|failure| self.failure(failure, None))?;
        let Some(arrived) = arrived else { return Ok(false) };
        self.keep(messages, arrived)?;
        Ok(true)
    }

    /// Gives a message to the receive that waits for it, or keeps it for one that is to come.
    pub(super) fn keep(&self, messages: &mut Messages, arrived: Arrived) -> Result<()> {
        if let Some(arrived) = self.give(messages, arrived)? {
            messages.early.push((arrived.from, arrived.tag), arrived);
        }
        Ok(())
    }

    /// Gives what came early to receives that have been posted since.
    pub(super) fn give_early(&self, messages: &mut Messages, key: (usize, u32)) -> Result<()> {
        while let Some(place) = messages.early.first(key) {
            let arrived = messages.early.remove(place);
            if let Some(arrived) = self.give(messages, arrived)? {
                messages.early.put_back(place, key, arrived);
                break;
            }
        }
        Ok(())
    }

    /// Looks after the parts of a message that have begun; whether the message has ended.
    pub(super) fn advance(&self, pending: &mut Pending) -> Result<bool> {
        if let Some(error) = &pending.failed {
            return Err(error.clone());
        }
        if pending.landing.is_some() {
            return self.land(pending);
        }
        while let Some(part) = pending.under_way.first_mut() {
            match calls::test(part) {
                Ok(false) => return Ok(false),
                Ok(true) => {
                    pending.under_way.remove(0);
                }
                Err(failure) => {
                    pending.under_way.remove(0);
                    let error = self.failure(failure, Some(pending.peer));
                    pending.failed = Some(error.clone());
                    return Err(error);
                }
            }
        }
        Ok(self.next_part(pending).is_none())
    }

    /// Waits for what has begun; whether nothing is left. Where MPI can, a message that does not end is ended with all
    /// others.
    pub(super) fn let_end(&self, pending: &mut Pending, limit: Duration) -> bool {
        let begin = Instant::now();
        let limit = if self.recovers() { limit.max(REVOKED) } else { limit };
        if pending.landing.is_some() {
            pending.under_way.iter_mut().for_each(calls::cancel);
        }
        loop {
            pending.under_way.retain_mut(|part| matches!(calls::test(part), Ok(false)));
            if pending.under_way.is_empty() || begin.elapsed() >= limit {
                return pending.under_way.is_empty();
            }
            if begin.elapsed() >= PATIENCE {
                self.revoke_all();
            }
            std::thread::yield_now();
        }
    }

    /// Receives what has come early, and is not wanted any more: its sender waits for that, since MPI ends the sends
    /// only of messages that were not taken.
    pub(super) fn swallow(messages: &mut Messages) {
        let Messages { early, sinks, .. } = messages;
        for arrived in early.drain() {
            sinks.extend(sink(arrived).ok().flatten());
        }
    }
}

/// Begins to receive a message that nobody wants, unless there is no memory for it.
pub(super) fn sink(arrived: Arrived) -> std::result::Result<Option<(MPI_Request, Vec<u8>)>, Failure> {
    let mut sink = Vec::<u8>::new();
    if sink.try_reserve_exact(arrived.bytes).is_err() {
        return Ok(None);
    }
    // SAFETY: the memory was just reserved, and lives until the request has ended or is leaked.
    let request = unsafe { calls::receive(arrived.message, sink.as_mut_ptr(), arrived.bytes as c_int) }?;
    Ok(Some((request, sink)))
}
