//! What the threads of a group share: a queue into each rank, and who is gone.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::Behaviour;

/// A message on its way.
pub(super) struct Parcel {
    pub from: usize,
    pub tag: u32,
    pub bytes: Vec<u8>,
    /// Until when the receiver does not see it.
    pub held_until: Option<Instant>,
    /// Whether the send has ended.
    pub taken: Arc<AtomicBool>,
}

/// The queues of a group.
pub(super) struct Mesh {
    pub behaviour: Behaviour,
    inboxes: Vec<Inbox>,
    subsets: Mutex<HashMap<SubsetKey, Subset>>,
}

/// The members of a group that is made of members of another, and which one of the same members it is.
type SubsetKey = (Vec<usize>, usize);

/// Such a group, kept until all members have taken their end; and how many have.
type Subset = (Arc<Mesh>, usize);

struct Inbox {
    sender: Sender<Parcel>,
    receiver: Mutex<Option<Receiver<Parcel>>>,
    gone: AtomicBool,
}

impl Mesh {
    pub fn new(size: usize, behaviour: Behaviour) -> Self {
        let inbox = || {
            let (sender, receiver) = channel();
            Inbox { sender, receiver: Mutex::new(Some(receiver)), gone: AtomicBool::new(false) }
        };
        Self { behaviour, inboxes: (0..size).map(|_| inbox()).collect(), subsets: Mutex::default() }
    }

    pub fn size(&self) -> usize {
        self.inboxes.len()
    }

    /// Where a rank receives: taken once.
    pub fn take_inbox(&self, rank: usize) -> Option<Receiver<Parcel>> {
        locked(&self.inboxes[rank].receiver).take()
    }

    /// Sends; false when the receiver is gone.
    pub fn post(&self, to: usize, parcel: Parcel) -> bool {
        !self.is_gone(to) && self.inboxes[to].sender.send(parcel).is_ok()
    }

    /// Acquire: whatever the rank sent before it left is in the queues.
    pub fn is_gone(&self, rank: usize) -> bool {
        self.inboxes[rank].gone.load(Ordering::Acquire)
    }

    /// Says that a rank is gone, also to groups in which it has not yet taken its place, and will not.
    pub fn leave(&self, rank: usize) {
        self.inboxes[rank].gone.store(true, Ordering::Release);
        for ((members, _), (mesh, _)) in &*locked(&self.subsets) {
            mesh.leave_if_absent(members, rank);
        }
    }

    /// The same in a group of `members` of the group that `gone` was in.
    fn leave_if_absent(&self, members: &[usize], gone: usize) {
        if let Some(place) = members.iter().position(|&member| member == gone)
            && locked(&self.inboxes[place].receiver).is_some()
        {
            self.leave(place);
        }
    }

    /// The `count`-th group of these members. The first of them to ask makes it.
    pub fn subset(&self, members: &[usize], count: usize) -> Arc<Mesh> {
        let mut subsets = locked(&self.subsets);
        let key = (members.to_vec(), count);
        let (mesh, taken) = subsets.entry(key.clone()).or_insert_with(|| {
            let behaviour = Behaviour { seed: self.behaviour.seed.wrapping_add(count as u64), ..self.behaviour };
            (Arc::new(Mesh::new(members.len(), behaviour)), 0)
        });
        *taken += 1;
        let (mesh, all) = (Arc::clone(mesh), *taken == members.len());
        for &member in members.iter().filter(|&&member| self.is_gone(member)) {
            mesh.leave_if_absent(members, member);
        }
        if all {
            subsets.remove(&key);
        }
        mesh
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
