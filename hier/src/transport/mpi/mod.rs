//! Messages over MPI.

mod calls;
mod expected;
mod messages;
mod quiet;
mod recovery;
mod start;
mod window;

use std::cell::{Cell, RefCell};
use std::ffi::c_int;
use std::time::Duration;

use ::mpi::ffi::MPI_Comm;
use ::mpi::topology::Communicator;

use super::parts::LONGEST_WHOLE;
use super::queue::Queue;
use super::slots::{Request, Slots};
use super::{Error, MOST_TAG, Result, Transport, Window, place_among};
use calls::Failure;
pub use calls::finish;
use messages::{Messages, Pending, sink};
pub use quiet::QuietTransport;
use recovery::{Loss, Recovery};
pub use start::ThreadLevel;

/// How long requests that were dropped may delay the end of the transport.
const FAREWELL: Duration = Duration::from_secs(1);

/// The tag under which the members of a subset find each other: of calls, not of messages, and so of all tags one.
const SUBSET_TAG: c_int = 1;

/// One rank's end of an MPI communicator's group.
///
/// It owns a duplicate of the communicator, so that no receive of the program can match its messages, and has errors
/// returned as values there. Its calls go to the profiling interface (`PMPI_*`, MPI 4.0, 15.2): tools count the
/// program's messages, not these.
///
/// Below `MPI_THREAD_SERIALIZED` it may only be used from the thread that made it; calls from others return
/// [`Error::Thread`]. At that level it is for the program to see to it that no two threads are in MPI at once.
///
/// A message is taken only when its receive is there and its length is right (`MPI_Improbe`, MPI 4.0, 3.8.2): ranks
/// that disagree about a length get an error. Receives are not posted to MPI, since a message that is longer than its
/// receive makes MPICH 4.0 abort the job, and has Open MPI 4.1 write beyond the buffer (by CMA and TCP). It costs one
/// more copy of messages that are short enough to be sent eagerly. Those that a rank [expects](Transport::expect), of
/// 64 KiB at most, are posted.
///
/// Under an MPI with ULFM (Open MPI 5, `mpirun --with-ft ulfm`) it [recovers](Transport::recovers) from ranks that
/// fail.
///
/// Calls on the program's own communicator, to make the duplicate, follow the error handler that the program has set
/// there. Drop it before `MPI_Finalize`; after that nothing is given back.
pub struct MpiTransport {
    /// I1: a duplicate that only this object uses, freed once.
    comm: MPI_Comm,
    /// The same, for making subsets: Open MPI sends messages of its own under the tag of MPI_Comm_create_group, which a
    /// look for messages of any tag would take.
    groups: MPI_Comm,
    rank: usize,
    size: usize,
    level: ThreadLevel,
    /// The thread that made it, by the number that [`start::thread`] gives.
    home: u64,
    messages: RefCell<Messages>,
    longest_whole: usize,
    /// A call has failed: the communicator is not given back, since that may wait for a rank that is gone.
    broken: Cell<bool>,
    /// What MPI can do once a rank has failed.
    recovery: Option<&'static Recovery>,
    revoked: Cell<bool>,
}

// SAFETY: below MPI_THREAD_SERIALIZED every call that reaches MPI is refused outside of the home thread (`enter`); from
// there on MPI allows any thread, and that there is only one at a time follows from `!Sync` and the contract above.
unsafe impl Send for MpiTransport {}

impl MpiTransport {
    /// A transport between the ranks of `communicator`, with the same rank numbers. Collective over them.
    ///
    /// # Errors
    /// [`Error::NotInitialised`], [`Error::Finalised`]; [`Error::Thread`] from a thread that may not use MPI;
    /// [`Error::Singletons`]; [`Error::NoCommunicator`], [`Error::Intercommunicator`]; [`Error::Library`].
    pub fn new<C: Communicator>(communicator: &C) -> Result<Self> {
        // SAFETY: rsmpi's communicators are valid as long as they live.
        unsafe { Self::from_raw(communicator.as_raw()) }
    }

    /// [`new`](MpiTransport::new) for MPI's world.
    ///
    /// # Errors
    /// As there.
    pub fn world() -> Result<Self> {
        start::ready()?;
        // SAFETY: MPI's world is valid between MPI_Init and MPI_Finalize, which was just asked.
        unsafe { Self::from_raw(calls::world()) }
    }

    /// [`new`](MpiTransport::new) for a communicator of C.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Safety
    /// `communicator` is valid, or MPI is not initialised.
    pub unsafe fn from_raw(communicator: MPI_Comm) -> Result<Self> {
        let level = start::ready()?;
        if communicator == calls::no_communicator() {
            return Err(Error::NoCommunicator);
        }
        let failed = |failure: Failure| failure.of(0, None);
        if calls::is_between_groups(communicator).map_err(failed)? {
            return Err(Error::Intercommunicator);
        }
        let world = calls::size(calls::world()).map_err(failed)?;
        start::refuse_singletons(world)?;
        let comm = calls::duplicate(communicator).map_err(failed)?;
        Self::own(comm, level, LONGEST_WHOLE)
    }

    /// The longest message, in bytes, that goes in one part; at least 1, and 1 GiB unless it is set. Must be the same
    /// on all ranks. For networks with a limit of their own, and for tests.
    #[must_use]
    pub fn with_longest_whole(mut self, bytes: usize) -> Self {
        self.longest_whole = bytes.clamp(1, LONGEST_WHOLE);
        self
    }

    /// What MPI granted to threads.
    #[must_use]
    pub fn thread_level(&self) -> ThreadLevel {
        self.level
    }

    /// Takes a communicator over that was just made.
    fn own(comm: MPI_Comm, level: ThreadLevel, longest_whole: usize) -> Result<Self> {
        let failed = |failure: Failure| failure.of(0, None);
        calls::return_errors(comm).map_err(failed)?;
        let (rank, size) = (calls::rank(comm).map_err(failed)?, calls::size(comm).map_err(failed)?);
        let groups = calls::duplicate(comm).map_err(failed)?;
        calls::return_errors(groups).map_err(failed)?;
        let home = start::thread();
        let messages = Messages {
            requests: Slots::new(),
            posted: Queue::new(),
            early: Queue::new(),
            sinks: Vec::new(),
            landings: Vec::new(),
        };
        let (messages, broken) = (RefCell::new(messages), Cell::new(false));
        let (recovery, revoked) = (Recovery::find(), Cell::new(false));
        Ok(Self { comm, groups, rank, size, level, home, messages, longest_whole, broken, recovery, revoked })
    }

    /// Whether the calling thread may use MPI.
    #[inline]
    fn enter(&self) -> Result<()> {
        if self.level < ThreadLevel::Serialized && start::thread() != self.home {
            return Err(Error::Thread { level: self.level.name() });
        }
        Ok(())
    }

    fn failure(&self, failure: Failure, peer: Option<usize>) -> Error {
        self.broken.set(true);
        let loss = self.recovery.and_then(|recovery| recovery.loss(&failure));
        let Some(loss) = loss else { return failure.of(self.rank, peer) };
        self.revoked.set(self.revoked.get() || loss == Loss::Revoked);
        match self.failed().first().copied().or(peer.filter(|_| loss == Loss::Failed)) {
            Some(failed) => Error::Failed { rank: self.rank, failed },
            None => Error::Revoked { rank: self.rank },
        }
    }

    fn recovery(&self) -> Result<&'static Recovery> {
        self.recovery.ok_or_else(|| Error::NoRecovery { rank: self.rank, library: start::library() })
    }

    /// Ends all messages of all ranks, once.
    fn revoke_all(&self) {
        let Some(recovery) = self.recovery.filter(|_| !self.revoked.replace(true)) else { return };
        self.broken.set(true);
        // One that another rank has revoked is no failure.
        let _ = recovery.revoke(self.comm);
        let _ = recovery.revoke(self.groups);
    }
}

impl Transport for MpiTransport {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    unsafe fn send(&self, to: usize, tag: u32, data: *const u8, bytes: usize) -> Result<Request> {
        let mut pending = self.pending(to, tag, data.cast_mut(), bytes, false)?;
        if let Err(error) = self.begin_send(&mut pending) {
            if pending.begun == 0 {
                return Err(error);
            }
            // Some parts are on their way: the caller hears of it when it asks for them.
            pending.failed = Some(error);
        }
        Ok(self.messages.borrow_mut().requests.insert(pending))
    }

    unsafe fn receive(&self, from: usize, tag: u32, into: *mut u8, bytes: usize) -> Result<Request> {
        let pending = self.pending(from, tag, into, bytes, true)?;
        let messages = &mut *self.messages.borrow_mut();
        let key = pending.key();
        let request = messages.requests.insert(pending);
        messages.posted.push(key, Slots::<Pending>::alias(&request));
        // A failure shows when the receive is asked for.
        let _ = self.give_early(messages, key);
        Ok(request)
    }

    unsafe fn expect(&self, from: usize, tag: u32, into: *mut u8, bytes: usize) -> Result<Request> {
        let mut pending = self.pending(from, tag, into, bytes, true)?;
        let messages = &mut *self.messages.borrow_mut();
        let is_posted = self.post(messages, &mut pending)?;
        let key = pending.key();
        let request = messages.requests.insert(pending);
        if !is_posted {
            messages.posted.push(key, Slots::<Pending>::alias(&request));
            let _ = self.give_early(messages, key);
        }
        Ok(request)
    }

    fn await_end(&self, request: &mut Request) -> Result<bool> {
        if request.has_ended() {
            return Ok(true);
        }
        self.enter()?;
        let messages = &mut *self.messages.borrow_mut();
        let ended = self.await_some(messages, request)?;
        if ended {
            messages.end(request);
        }
        Ok(ended)
    }

    fn test(&self, request: &mut Request) -> Result<bool> {
        if request.has_ended() {
            return Ok(true);
        }
        self.enter()?;
        let messages = &mut *self.messages.borrow_mut();
        let unknown = Error::Request { rank: self.rank };
        let pending = messages.requests.get(request).ok_or_else(|| unknown.clone())?;
        let waits =
            |pending: &Pending| pending.receives && pending.failed.is_none() && self.next_part(pending).is_some();
        if waits(pending) {
            while self.take_one(messages)? && messages.requests.get(request).is_some_and(|pending| waits(pending)) {}
        }
        let pending = messages.requests.get(request).ok_or_else(|| unknown.clone())?;
        let ended = self.advance(pending)?;
        if ended {
            messages.end(request);
        } else if !pending.receives && !messages.posted.is_empty() {
            self.take_one(messages)?;
        }
        Ok(ended)
    }

    fn may_have_ended(&self, request: &Request) -> bool {
        let messages = &mut *self.messages.borrow_mut();
        messages.requests.get(request).is_none_or(|pending| pending.begun > 0 || pending.failed.is_some())
    }

    fn progress(&self) -> Result<()> {
        self.enter()?;
        self.take_one(&mut self.messages.borrow_mut()).map(|_| ())
    }

    fn await_message(&self) -> Result<bool> {
        self.enter()?;
        // Where ranks may fail, and the others live on, nobody waits in the library.
        if self.recovers() {
            return Ok(false);
        }
        let arrived = calls::take_next(self.comm).map_err(|failure| self.failure(failure, None))?;
        if let Some(arrived) = arrived {
            self.keep(&mut self.messages.borrow_mut(), arrived)?;
        }
        Ok(true)
    }

    fn abandon(&self, request: Request, limit: Duration) -> bool {
        if request.has_ended() {
            return true;
        }
        if self.enter().is_err() {
            return false;
        }
        // After its end MPI touches no buffer.
        let is_over = !start::is_running();
        let messages = &mut *self.messages.borrow_mut();
        if self.revoked.get() {
            Self::swallow(messages);
        }
        let Some(pending) = messages.requests.get(&request) else { return false };
        let free = is_over || self.let_end(pending, limit);
        if pending.receives {
            messages.posted.retain(|other| *other != request);
        }
        if free && let Some(pending) = messages.requests.remove(&request) {
            messages.landings.extend(pending.landing);
        }
        free
    }

    fn subset(&self, members: &[usize]) -> Result<Box<dyn Transport>> {
        self.enter()?;
        place_among(self.rank, self.size, members)?;
        let members: Vec<c_int> = members.iter().map(|&member| member as c_int).collect();
        let comm =
            calls::create_group(self.groups, &members, SUBSET_TAG).map_err(|failure| self.failure(failure, None))?;
        Ok(Box::new(Self::own(comm, self.level, self.longest_whole)?))
    }

    fn memory_mates(&self) -> Result<Option<Vec<usize>>> {
        self.enter()?;
        let failed = |failure| self.failure(failure, None);
        let mut shared = calls::split_by_memory(self.comm, self.rank as c_int).map_err(failed)?;
        let mates = calls::ranks_in(shared, self.comm).map_err(failed)?;
        calls::free(&mut shared).map_err(failed)?;
        Ok(Some(mates.into_iter().map(|rank| rank as usize).collect()))
    }

    fn window(&self, bytes: usize) -> Result<Option<Box<dyn Window>>> {
        self.enter()?;
        let comm = calls::duplicate(self.comm).map_err(|failure| self.failure(failure, None))?;
        // Some libraries have no one-sided communication over some networks (Open MPI 4.1 over TCP, unless told to use
        // `--mca osc pt2pt`) and say so only here. The duplicate is not given back: other ranks may still be in the
        // call.
        let window = window::MpiWindow::new(comm, self.rank, self.size, bytes).ok();
        Ok(window.map(|window| Box::new(window) as Box<dyn Window>))
    }

    fn ready(&self) -> Result<()> {
        self.enter()?;
        if calls::is_finalised() { Err(Error::Finalised) } else { Ok(()) }
    }

    fn recovers(&self) -> bool {
        self.recovery.is_some()
    }

    fn failed(&self) -> Vec<usize> {
        let Some(recovery) = self.recovery.filter(|_| self.ready().is_ok()) else { return Vec::new() };
        // A revoked communicator's own calls let nothing move.
        calls::turn();
        recovery.failed(self.comm).unwrap_or_default()
    }

    fn revoke(&self) -> bool {
        if !self.recovers() || self.ready().is_err() {
            return false;
        }
        self.revoke_all();
        Self::swallow(&mut self.messages.borrow_mut());
        true
    }

    fn forsake(&self) {
        self.broken.set(true);
    }

    fn agree(&self, yes: bool) -> Result<bool> {
        self.ready()?;
        let recovery = self.recovery()?;
        recovery.agree(self.comm, yes).map_err(|failure| self.failure(failure, None))
    }

    fn shrink(&self) -> Result<(Box<dyn Transport>, Vec<usize>)> {
        self.ready()?;
        let recovery = self.recovery()?;
        let failed = |failure: Failure| self.failure(failure, None);
        let (mut from, mut size) = (self.comm, None);
        loop {
            let comm = recovery.shrink(from).map_err(failed)?;
            if from != self.comm {
                let _ = calls::free(&mut from);
            }
            let now = calls::size(comm).map_err(failed)?;
            // A rank that fails by now is noticed by some and not by others: all go on, or all try again.
            let made = Self::own(comm, self.level, self.longest_whole);
            if made.is_err() {
                let _ = recovery.revoke(comm);
            }
            let all = recovery.agree(comm, made.is_ok()).map_err(failed)?;
            match made {
                Ok(transport) if all => {
                    let ranks = calls::ranks_in(comm, self.comm).map_err(failed)?;
                    return Ok((Box::new(transport), ranks.into_iter().map(|rank| rank as usize).collect()));
                }
                // Nobody has failed since the last round: all ranks stop here.
                Err(error) if size == Some(now) => return Err(error),
                Ok(_) if size == Some(now) => return Err(Error::Revoked { rank: self.rank }),
                // The communicator is needed for the next round.
                Ok(transport) => std::mem::forget(transport),
                Err(_) => {}
            }
            (from, size) = (comm, Some(now));
        }
    }

    fn describe(&self) -> String {
        format!(
            "{} ranks of {}, {}, tags up to {MOST_TAG} used, messages above {} bytes in parts{}",
            self.size,
            start::library(),
            self.level.name(),
            self.longest_whole,
            if self.recovers() { ", ranks may fail (ULFM)" } else { "" }
        )
    }
}

impl Drop for MpiTransport {
    fn drop(&mut self) {
        if !start::is_running() {
            return;
        }
        if self.enter().is_err() {
            // MPI may write to what is under way at any time.
            let Messages { requests, sinks, .. } = self.messages.get_mut();
            requests.drain().into_iter().for_each(Pending::forget);
            std::mem::forget(std::mem::take(sinks));
            return;
        }
        // Nobody will ask for what has come: it is received, so that its sends end. A communicator to which more may be
        // on its way is not given back: its number could be that of a new one when it arrives, and MPICH 5 ends the job
        // when messages are left.
        let mut was_quiet = self.messages.get_mut().early.is_empty();
        while let Ok(Some(arrived)) = calls::take(self.comm) {
            was_quiet = false;
            self.messages.get_mut().sinks.extend(sink(arrived).ok().flatten());
        }
        Self::swallow(self.messages.get_mut());
        let Messages { requests, sinks, .. } = self.messages.get_mut();
        let (pending, sinks) = (requests.drain(), std::mem::take(sinks));
        let mut all_ended = was_quiet;
        for mut pending in pending {
            let has_ended = self.let_end(&mut pending, FAREWELL);
            if !has_ended {
                pending.forget();
            }
            all_ended &= has_ended;
        }
        for (mut request, sink) in sinks {
            if !matches!(calls::test(&mut request), Ok(true)) {
                std::mem::forget(sink);
                all_ended = false;
            }
        }
        if all_ended && (!self.broken.get() || self.revoked.get()) {
            let _ = calls::free(&mut self.comm);
            let _ = calls::free(&mut self.groups);
        }
    }
}
