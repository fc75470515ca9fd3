//! Messages between ranks: what executing a schedule needs of a network, and no more.
//!
//! A [`Transport`] is one rank's end of a group of ranks that can send bytes to each other. There are two:
//! [`local::LocalTransport`], whose ranks are threads of one process, and, with the feature `mpi`, `mpi::MpiTransport`.
//! Programs that are executed over a transport (schedules, [`all_gather`]) do not know which one it is.

pub mod error;
mod exchange;
pub mod local;
#[cfg(feature = "mpi")]
pub mod mpi;
#[cfg(any(test, feature = "mpi"))]
mod parts;
#[cfg(any(test, feature = "mpi"))]
mod queue;
mod slots;
mod window;

use std::time::Duration;

pub use error::{Error, Result};
pub use exchange::{EXCHANGE_TAGS, all_gather, group_of, wait};
pub use slots::Request;
pub use window::Window;

/// The highest tag. MPI promises twice as many (MPI 4.0, 3.2.3: `MPI_TAG_UB` is at least 32767), of which transports
/// use the other half for a word of their own.
pub const MOST_TAG: u32 = 16_383;

/// One rank's end of a group of ranks that send messages to each other.
///
/// A message goes from one rank to another, under a tag. Messages of the same sender, receiver and tag are received in
/// the order in which they were sent; others may overtake each other. A receive names the sender, the tag and the exact
/// length: a message of another length is an error at the receiver.
///
/// A transport may move between threads, but serves one thread at a time. Nothing happens behind the caller's back: a
/// message may need [`test`](Transport::test) or [`progress`](Transport::progress) at both ends to arrive, as in MPI
/// (MPI 4.0, 3.5), and a send may not end before its receive was posted.
///
/// # Errors
/// After [`Error::Length`] the two ranks are out of step, and after [`Error::Gone`], [`Error::Failed`] or
/// [`Error::Library`] a rank is missing: the transport is of no more use between them. After all other errors it is as
/// it was before the call.
///
/// # Ending at an error
/// Every request ends in one of two ways: [`test`](Transport::test) returns `Ok(true)`, or the request is given to
/// [`abandon`](Transport::abandon). An error of `test` does not end the request: it is to be abandoned too, like all
/// others that were under way, before their buffers are used again.
pub trait Transport: Send {
    /// This rank, from 0 on.
    fn rank(&self) -> usize;

    /// Ranks in the group.
    fn size(&self) -> usize;

    /// Begins to send `bytes` bytes to rank `to`, which may be this rank.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::Tag`]; [`Error::Gone`] or [`Error::Library`] when the rank cannot be reached.
    ///
    /// # Safety
    /// `data` is valid for reads of `bytes` bytes, which nobody writes, until the request has ended.
    unsafe fn send(&self, to: usize, tag: u32, data: *const u8, bytes: usize) -> Result<Request>;

    /// Begins to receive `bytes` bytes from rank `from`, which may be this rank.
    ///
    /// # Errors
    /// As of [`send`](Transport::send).
    ///
    /// # Safety
    /// `into` is valid for writes of `bytes` bytes, which nobody else reads or writes, until the request has ended.
    unsafe fn receive(&self, from: usize, tag: u32, into: *mut u8, bytes: usize) -> Result<Request>;

    /// The same, of a message for which this rank waits before it does anything else: the library below may be told of
    /// it at once, so that it goes where it belongs when it comes, and nobody looks for it among all that may come. To
    /// be waited for by [`await_end`](Transport::await_end).
    ///
    /// # Errors
    /// As of [`send`](Transport::send).
    ///
    /// # Safety
    /// As of [`receive`](Transport::receive).
    unsafe fn expect(&self, from: usize, tag: u32, into: *mut u8, bytes: usize) -> Result<Request> {
        // SAFETY: by contract.
        unsafe { self.receive(from, tag, into, bytes) }
    }

    /// Whether the request has ended, as [`test`](Transport::test) says it, after some looks in which all messages
    /// move. One that has come for another request (an alarm, say) was taken when this returns.
    ///
    /// # Errors
    /// As of [`test`](Transport::test).
    fn await_end(&self, request: &mut Request) -> Result<bool> {
        self.test(request)
    }

    /// Whether the request has ended, its buffer being free again. Of a request that has ended: true.
    ///
    /// # Errors
    /// [`Error::Length`], [`Error::Gone`], [`Error::Library`]. The request has not ended:
    /// [`abandon`](Transport::abandon) it.
    fn test(&self, request: &mut Request) -> Result<bool>;

    /// Whether `test` might end the request, as far as was seen before: costs nothing, and lets nothing move.
    fn may_have_ended(&self, request: &Request) -> bool {
        let _ = request;
        true
    }

    /// Lets messages move, of whatever request.
    ///
    /// # Errors
    /// [`Error::Library`], [`Error::Thread`]. Errors of single requests are told by their own `test`.
    fn progress(&self) -> Result<()>;

    /// Waits until a message of this group comes, for whatever request, and takes it. Whoever calls it knows that one
    /// must come. Meanwhile all messages move that need no call of [`test`](Transport::test). Returns false, at once,
    /// where the library below has no such call, or would not hear of a rank that fails.
    ///
    /// # Errors
    /// As of [`progress`](Transport::progress).
    fn await_message(&self) -> Result<bool> {
        Ok(false)
    }

    /// Gives a request up, and returns whether its buffer is free. A receive is withdrawn; what is halfway in is waited
    /// for, and so is a send that has begun, for `limit` at most.
    ///
    /// When this returns false (the peer has died in the midst of a large message, say), the library below may still
    /// touch the buffer at any time: it must be leaked, or the process ended.
    #[must_use = "unless the buffer is free, it must be leaked"]
    fn abandon(&self, request: Request, limit: Duration) -> bool;

    /// A transport between some ranks of this one, in the order of `members`, with messages of its own: nothing that is
    /// sent through one is received through another. `members` has this rank in it, and nobody twice.
    ///
    /// Collective over the members, all of which pass the same list. With all ranks as members it makes a duplicate.
    ///
    /// # Errors
    /// [`Error::Members`]; [`Error::Library`], and others of [`test`](Transport::test).
    fn subset(&self, members: &[usize]) -> Result<Box<dyn Transport>>;

    /// The ranks, in order, of which the library below says that they share memory with this one; none if it says
    /// nothing. Collective.
    ///
    /// # Errors
    /// As of [`subset`](Transport::subset).
    fn memory_mates(&self) -> Result<Option<Vec<usize>>> {
        Ok(None)
    }

    /// Memory of `bytes` bytes of each rank that the others may read and write; none where the transport does no such
    /// thing, which some ranks may find out and others not: they must compare.
    ///
    /// Collective: all ranks pass the same length.
    ///
    /// # Errors
    /// As of [`subset`](Transport::subset).
    fn window(&self, bytes: usize) -> Result<Option<Box<dyn Window>>> {
        let _ = bytes;
        Ok(None)
    }

    /// Whether calls can be made now, by this thread: looked at once for a whole collective.
    ///
    /// # Errors
    /// [`Error::Thread`], [`Error::Finalised`].
    fn ready(&self) -> Result<()> {
        Ok(())
    }

    /// Whether the library below can go on once a rank has failed: then calls that need that rank, and all receives,
    /// return [`Error::Failed`], and `failed`, `revoke`, `agree` and `shrink` are of use.
    fn recovers(&self) -> bool {
        false
    }

    /// The ranks that are known to have failed, ascending. Not collective; another rank may know of more.
    fn failed(&self) -> Vec<usize> {
        Vec::new()
    }

    /// Ends all messages under way, and all later ones, on all ranks: they return [`Error::Revoked`]. Not collective:
    /// the others need not call anything. Returns whether the library below can do it.
    fn revoke(&self) -> bool {
        false
    }

    /// Says that messages may be on their way here that nobody will receive: what the library below holds for this
    /// transport is not given back when it is dropped, so that none of them can reach one that is made later.
    fn forsake(&self) {}

    /// Whether all ranks that live say yes, and no other has failed: the same answer on all of them. Works after
    /// [`revoke`](Transport::revoke) too. Collective over the ranks that live.
    ///
    /// # Errors
    /// [`Error::NoRecovery`]; [`Error::Library`].
    fn agree(&self, yes: bool) -> Result<bool> {
        let _ = yes;
        Err(Error::NoRecovery { rank: self.rank(), library: self.describe() })
    }

    /// A transport between the ranks that live, in the same order, and their ranks in this one. This one is of no more
    /// use. Collective over the ranks that live.
    ///
    /// # Errors
    /// [`Error::NoRecovery`]; [`Error::Library`].
    fn shrink(&self) -> Result<(Box<dyn Transport>, Vec<usize>)> {
        Err(Error::NoRecovery { rank: self.rank(), library: self.describe() })
    }

    /// What it is, for people: the library and its version, what it grants.
    fn describe(&self) -> String;
}

/// Checks the arguments that sends and receives have in common.
fn check(rank: usize, size: usize, peer: usize, tag: u32) -> Result<()> {
    if peer >= size {
        return Err(Error::NoSuchRank { rank, size, peer });
    }
    if tag > MOST_TAG {
        return Err(Error::Tag { rank, tag });
    }
    Ok(())
}

/// Checks a list of members: this rank's place in it.
fn place_among(rank: usize, size: usize, members: &[usize]) -> Result<usize> {
    let refuse = |why| Err(Error::Members { rank, members: members.to_vec(), why });
    let mut seen = vec![false; size];
    for &member in members {
        match seen.get_mut(member) {
            None => return refuse("there is no such rank"),
            Some(true) => return refuse("a rank is in it twice"),
            Some(new) => *new = true,
        }
    }
    match members.iter().position(|&member| member == rank) {
        Some(place) => Ok(place),
        None => refuse("the calling rank is not in it; only members call"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_checked() {
        assert_eq!(place_among(2, 4, &[3, 2]), Ok(1));
        for (members, word) in [(&[0, 4][..], "no such rank"), (&[0, 0], "twice"), (&[1, 2], "not in it")] {
            let error = place_among(0, 4, members).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }
}
