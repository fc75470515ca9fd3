//! Receives that MPI is told of before their messages come.
//!
//! A message that MPI expects goes from the network to its memory; one that it does not is put aside, found among all
//! that have come (`MPI_Improbe`), and copied: twice the calls, on a rank that has nothing else to do meanwhile. But a
//! message that is longer than its receive is the end of the job in MPICH 4.0, and goes on beyond the memory in Open
//! MPI 4.1. So short messages have a mark in their tags, and a receive that is posted for one has room for the longest
//! that there are: ranks that disagree about a length get an error here too, whichever of them has the long message.

use std::ffi::c_int;

use smallvec::smallvec;

use super::super::slots::Request;
use super::super::{Error, MOST_TAG, Result};
use super::calls::{self, Posted};
use super::{Messages, MpiTransport, Pending};

/// Messages of so many bytes at most are short.
pub(super) const LONGEST_SHORT: usize = 64 << 10;

/// The mark of short messages, above all tags.
const SHORT: u32 = MOST_TAG + 1;

/// How often a message that is waited for is asked for, before others are looked for.
const LOOKS: u32 = 8;

/// The tag with which MPI carries a message of so many bytes, whole or in parts: no part of a long message is taken for
/// a short one.
pub(super) fn marked(tag: u32, bytes: usize) -> c_int {
    (if bytes <= LONGEST_SHORT { tag | SHORT } else { tag }) as c_int
}

/// The tag without the mark, and whether there was one.
pub(super) fn unmarked(tag: c_int) -> (u32, bool) {
    (tag as u32 & MOST_TAG, tag as u32 & SHORT != 0)
}

/// Memory for the longest of the messages that may come, from which the message goes to where it belongs.
pub(super) type Landing = Box<[u8]>;

impl MpiTransport {
    /// Posts a receive, unless its message may have come already, or goes in parts: returns whether it has.
    pub(super) fn post(&self, messages: &mut Messages, pending: &mut Pending) -> Result<bool> {
        let (key, short) = (pending.key(), LONGEST_SHORT.min(self.longest_whole));
        if pending.bytes > short || messages.early.first(key).is_some() || messages.posted.first(key).is_some() {
            return Ok(false);
        }
        let mut landing = messages.landings.pop().unwrap_or_else(|| vec![0; LONGEST_SHORT].into());
        let (from, tag) = (pending.peer as c_int, marked(pending.tag, pending.bytes));
        // SAFETY: the landing lives as long as the request: with the message, or for ever (`Pending::forget`).
        let request = unsafe { calls::post(self.comm, from, tag, landing.as_mut_ptr(), LONGEST_SHORT as c_int) };
        let request = request.map_err(|failure| self.failure(failure, Some(pending.peer)))?;
        (pending.begun, pending.begun_bytes, pending.under_way) = (1, pending.bytes, smallvec![request]);
        pending.landing = Some(landing);
        Ok(true)
    }

    /// Whether a message for which a receive was posted has come; then it is where it belongs.
    pub(super) fn land(&self, pending: &mut Pending) -> Result<bool> {
        let (Some(request), Some(landing)) = (pending.under_way.first_mut(), &pending.landing) else { return Ok(true) };
        let outcome = calls::test_receive(request);
        if matches!(outcome, Ok(Posted::Waits)) {
            return Ok(false);
        }
        pending.under_way.clear();
        let error = match outcome {
            Ok(Posted::Arrived(arrived)) if arrived == pending.bytes => {
                // SAFETY: I2: the buffer has room for so many bytes, and the landing has no fewer; MPI uses neither any
                // more.
                unsafe { std::ptr::copy_nonoverlapping(landing.as_ptr(), pending.buffer, arrived) };
                return Ok(true);
            }
            Ok(Posted::Arrived(arrived)) => self.wrong_length(pending, arrived),
            Ok(_) => self.wrong_length(pending, pending.displaced.unwrap_or(0)),
            Err(failure) => self.failure(failure, Some(pending.peer)),
        };
        pending.failed = Some(error.clone());
        Err(error)
    }

    /// Whether a long message of so many bytes has come in the place of the one that a posted receive waits for, which
    /// fails then. It may also be the next one, behind a short one that has come, or is on its way in, of which nobody
    /// has heard yet: MPI withdraws a receive unless a message was matched to it, and matches those of a rank in the
    /// order in which they were sent.
    pub(super) fn displaces(&self, pending: &mut Pending, bytes: usize) -> bool {
        if self.land(pending) != Ok(false) {
            return false;
        }
        pending.displaced = Some(bytes);
        pending.under_way.iter_mut().for_each(calls::cancel);
        (0..LOOKS).any(|_| self.land(pending) != Ok(false)) && pending.failed.is_some()
    }

    /// The error of a message that is not as long as its receive.
    pub(super) fn wrong_length(&self, pending: &Pending, arrived: usize) -> Error {
        let Pending { peer, tag, bytes: expected, .. } = *pending;
        Error::Length { rank: self.rank, peer, tag, expected, arrived }
    }

    /// Asks for a message some times, and then looks for others; whether it has ended.
    pub(super) fn await_some(&self, messages: &mut Messages, request: &Request) -> Result<bool> {
        for _ in 0..LOOKS {
            let pending = messages.requests.get(request).ok_or(Error::Request { rank: self.rank })?;
            if self.advance(pending)? {
                return Ok(true);
            }
        }
        self.take_one(messages)?;
        Ok(false)
    }
}

impl Pending {
    /// Leaves the memory of a receive to MPI, which may write to it at any time.
    pub(super) fn forget(mut self) {
        std::mem::forget(self.landing.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_messages_are_told_by_their_tags_which_mpi_promises_to_carry() {
        for tag in [0, 1, 77, MOST_TAG] {
            for (bytes, short) in [(0, true), (LONGEST_SHORT, true), (LONGEST_SHORT + 1, false), (1 << 30, false)] {
                let carried = marked(tag, bytes);
                assert!((0..=32_767).contains(&carried));
                assert_eq!(unmarked(carried), (tag, short));
            }
        }
    }
}
