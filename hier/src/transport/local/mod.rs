//! Ranks that are threads of one process, for tests and for emulated clusters.

mod mesh;

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use super::slots::{Request, Slots};
use super::{Error, Result, Transport, check, place_among};
use mesh::{Mesh, Parcel};

/// How messages behave: as a fast network would, or worse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Behaviour {
    /// A send ends only when its receive is posted and the receiver has looked, as in MPI's rendezvous. Otherwise a
    /// send ends at once.
    pub rendezvous: bool,
    /// The longest time for which a message is held back. Each is held for a time of its own, so that those of
    /// different senders and tags overtake each other.
    pub longest_delay: Duration,
    /// Where the random delays begin.
    pub seed: u64,
}

/// One rank's end of a group of ranks that are threads of this process.
///
/// Dropped, it makes the other ranks' calls that need it return [`Error::Gone`]; what it has sent before still arrives.
pub struct LocalTransport {
    mesh: Arc<Mesh>,
    rank: usize,
    inbox: Receiver<Parcel>,
    state: RefCell<State>,
}

/// What matches messages to receives: the sender and the tag.
type Key = (usize, u32);

struct State {
    requests: Slots<Pending>,
    /// Receives that wait, in the order in which they were posted.
    posted: HashMap<Key, VecDeque<Request>>,
    /// Messages that wait, in the order in which they were sent.
    arrived: HashMap<Key, VecDeque<Parcel>>,
    random: u64,
    /// How many subsets were made of the same members.
    subsets: HashMap<Vec<usize>, usize>,
}

/// A request that has not ended.
enum Pending {
    /// A message that its receiver has not taken.
    Sending { to: usize, taken: Arc<AtomicBool> },
    /// A receive that has no message.
    Receiving { key: Key, into: Buffer },
    /// A receive whose message is there.
    Received,
    /// It cannot succeed.
    Failed(Error),
}

struct Buffer {
    start: *mut u8,
    bytes: usize,
}

// SAFETY: by contract of `receive` nobody but the transport uses the memory until the request has ended, and it is
// valid in whatever thread the transport is.
unsafe impl Send for Buffer {}

impl LocalTransport {
    /// The ends of a new group of `size` ranks, by rank.
    #[must_use]
    pub fn group(size: usize, behaviour: Behaviour) -> Vec<Self> {
        let mesh = Arc::new(Mesh::new(size, behaviour));
        (0..size).filter_map(|rank| Self::end(&mesh, rank)).collect()
    }

    fn end(mesh: &Arc<Mesh>, rank: usize) -> Option<Self> {
        let state = State {
            requests: Slots::new(),
            posted: HashMap::new(),
            arrived: HashMap::new(),
            random: mesh.behaviour.seed ^ (rank as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
            subsets: HashMap::new(),
        };
        Some(Self { inbox: mesh.take_inbox(rank)?, mesh: Arc::clone(mesh), rank, state: RefCell::new(state) })
    }

    /// Puts what has come into the buffers that wait for it.
    fn deliver(&self, state: &mut State) {
        while let Ok(parcel) = self.inbox.try_recv() {
            state.arrived.entry((parcel.from, parcel.tag)).or_default().push_back(parcel);
        }
        for (&key, posted) in &mut state.posted {
            let Some(arrived) = state.arrived.get_mut(&key) else { continue };
            while let (Some(request), Some(parcel)) = (posted.front(), arrived.front()) {
                if parcel.held_until.is_some_and(|until| until > Instant::now()) {
                    break;
                }
                if let Some(pending) = state.requests.get(request) {
                    *pending = self.fill(pending, parcel);
                }
                parcel.taken.store(true, Ordering::Release);
                posted.pop_front();
                arrived.pop_front();
            }
        }
        state.posted.retain(|_, posted| !posted.is_empty());
        state.arrived.retain(|_, arrived| !arrived.is_empty());
    }

    /// What becomes of a receive when its message is there.
    fn fill(&self, pending: &Pending, parcel: &Parcel) -> Pending {
        let Pending::Receiving { key: (peer, tag), into } = pending else { return Pending::Received };
        if parcel.bytes.len() != into.bytes {
            return Pending::Failed(Error::Length {
                rank: self.rank,
                peer: *peer,
                tag: *tag,
                expected: into.bytes,
                arrived: parcel.bytes.len(),
            });
        }
        // SAFETY: by contract of `receive` the buffer is valid for so many bytes, checked above, until the request
        // ends, which it has not.
        unsafe { std::ptr::copy_nonoverlapping(parcel.bytes.as_ptr(), into.start, into.bytes) };
        Pending::Received
    }

    fn gone(&self, peer: usize) -> Error {
        Error::Gone { rank: self.rank, peer }
    }
}

impl Transport for LocalTransport {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.mesh.size()
    }

    unsafe fn send(&self, to: usize, tag: u32, data: *const u8, bytes: usize) -> Result<Request> {
        check(self.rank, self.size(), to, tag)?;
        let mut state = self.state.borrow_mut();
        let held_until =
            delay(&mut state.random, self.mesh.behaviour.longest_delay).map(|delay| Instant::now() + delay);
        let mut copy = Vec::<u8>::with_capacity(bytes);
        // SAFETY: by contract of this function the source has so many bytes; the destination was just made for them.
        unsafe { std::ptr::copy_nonoverlapping(data, copy.as_mut_ptr(), bytes) };
        // SAFETY: all of them were just written.
        unsafe { copy.set_len(bytes) };
        let taken = Arc::new(AtomicBool::new(!self.mesh.behaviour.rendezvous));
        let parcel = Parcel { from: self.rank, tag, bytes: copy, held_until, taken: Arc::clone(&taken) };
        if !self.mesh.post(to, parcel) {
            return Err(self.gone(to));
        }
        Ok(state.requests.insert(Pending::Sending { to, taken }))
    }

    unsafe fn receive(&self, from: usize, tag: u32, into: *mut u8, bytes: usize) -> Result<Request> {
        check(self.rank, self.size(), from, tag)?;
        let mut state = self.state.borrow_mut();
        let key = (from, tag);
        let request = state.requests.insert(Pending::Receiving { key, into: Buffer { start: into, bytes } });
        state.posted.entry(key).or_default().push_back(Slots::<Pending>::alias(&request));
        Ok(request)
    }

    fn test(&self, request: &mut Request) -> Result<bool> {
        if request.has_ended() {
            return Ok(true);
        }
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        // Asked before the messages are looked at: of a peer that was gone by then, no more will come.
        let unknown = Error::Request { rank: self.rank };
        let peer = match state.requests.get(request).ok_or_else(|| unknown.clone())? {
            Pending::Sending { to, .. } => *to,
            Pending::Receiving { key, .. } => key.0,
            Pending::Received | Pending::Failed(_) => self.rank,
        };
        let peer_is_gone = self.mesh.is_gone(peer);
        self.deliver(state);
        let done = match state.requests.get(request).ok_or(unknown)? {
            Pending::Received => true,
            Pending::Failed(error) => return Err(error.clone()),
            Pending::Sending { taken, .. } => match taken.load(Ordering::Acquire) {
                false if peer_is_gone => return Err(self.gone(peer)),
                taken => taken,
            },
            Pending::Receiving { key, .. } => {
                if peer_is_gone && !state.arrived.contains_key(key) {
                    return Err(self.gone(peer));
                }
                false
            }
        };
        if done {
            state.requests.remove(request);
            *request = Request::ended();
        }
        Ok(done)
    }

    fn progress(&self) -> Result<()> {
        self.deliver(&mut self.state.borrow_mut());
        Ok(())
    }

    fn abandon(&self, request: Request, _: Duration) -> bool {
        let mut state = self.state.borrow_mut();
        if let Some(Pending::Receiving { key, .. }) = state.requests.remove(&request)
            && let Some(posted) = state.posted.get_mut(&key)
        {
            posted.retain(|other| *other != request);
        }
        // A message was copied when it was sent; a receive that is withdrawn is not filled any more.
        true
    }

    fn subset(&self, members: &[usize]) -> Result<Box<dyn Transport>> {
        let place = place_among(self.rank, self.size(), members)?;
        let mut state = self.state.borrow_mut();
        let count = state.subsets.entry(members.to_vec()).or_insert(0);
        *count += 1;
        let mesh = self.mesh.subset(members, *count);
        let end = Self::end(&mesh, place).ok_or(Error::Request { rank: self.rank })?;
        Ok(Box::new(end))
    }

    fn describe(&self) -> String {
        let mut text = format!("{} ranks that are threads of one process", self.size());
        if self.mesh.behaviour.rendezvous {
            text.push_str(", rendezvous");
        }
        if self.mesh.behaviour.longest_delay > Duration::ZERO {
            text.push_str(&format!(", delays up to {:?}", self.mesh.behaviour.longest_delay));
        }
        text
    }
}

impl Drop for LocalTransport {
    fn drop(&mut self) {
        self.mesh.leave(self.rank);
    }
}

/// The next random delay, if there are any (xorshift).
fn delay(random: &mut u64, longest: Duration) -> Option<Duration> {
    let nanoseconds = longest.as_nanos() as u64;
    if nanoseconds == 0 {
        return None;
    }
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    Some(Duration::from_nanos(*random % nanoseconds))
}
