//! Requests under way: a small handle for the caller, the state in a slot of the transport.

/// The handle of a message that is being sent or received. It ends with
/// [`Transport::test`](super::Transport::test) or [`Transport::abandon`](super::Transport::abandon).
///
/// Dropped before it ended, its message goes on, and the buffer must stay valid until the transport is dropped.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "the buffer is in use until the request has ended"]
pub struct Request {
    slot: u32,
    generation: u32,
}

/// The slot of requests that have ended.
const ENDED: u32 = u32::MAX;

impl Request {
    /// A request that has ended.
    pub(super) fn ended() -> Self {
        Self { slot: ENDED, generation: 0 }
    }

    /// Whether it has ended by `test`.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.slot == ENDED
    }
}

/// The states of a transport's requests.
pub(super) struct Slots<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

struct Slot<T> {
    /// How many requests have had the slot: a handle of an earlier one finds nothing.
    generation: u32,
    state: Option<T>,
}

impl<T> Slots<T> {
    pub fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }

    /// Takes a slot.
    pub fn insert(&mut self, state: T) -> Request {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, state: None });
            (self.slots.len() - 1) as u32
        });
        let entry = &mut self.slots[slot as usize];
        entry.state = Some(state);
        Request { slot, generation: entry.generation }
    }

    /// The state of a request, unless it is none of this transport's.
    pub fn get(&mut self, request: &Request) -> Option<&mut T> {
        let entry = self.slots.get_mut(request.slot as usize)?;
        if entry.generation == request.generation { entry.state.as_mut() } else { None }
    }

    /// All states.
    #[cfg_attr(not(feature = "mpi"), allow(dead_code))]
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().filter_map(|slot| slot.state.as_mut())
    }

    /// Gives the slot of a request back.
    pub fn remove(&mut self, request: &Request) -> Option<T> {
        self.get(request)?;
        let entry = self.slots.get_mut(request.slot as usize)?;
        entry.generation = entry.generation.wrapping_add(1);
        self.free.push(request.slot);
        entry.state.take()
    }

    /// A second handle, for the transport's own queues.
    pub fn alias(request: &Request) -> Request {
        Request { ..*request }
    }

    /// Takes all that are under way.
    #[cfg_attr(not(feature = "mpi"), allow(dead_code))]
    pub fn drain(&mut self) -> Vec<T> {
        self.free.clear();
        self.slots.drain(..).filter_map(|slot| slot.state).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_that_is_used_again_is_not_found_by_the_old_handle() {
        let mut slots = Slots::new();
        let (first, second) = (slots.insert('a'), slots.insert('b'));
        let stale = Slots::<char>::alias(&first);
        assert_eq!(slots.remove(&first), Some('a'));
        let third = slots.insert('c');
        assert_eq!(third.slot, stale.slot);
        assert_eq!(slots.get(&stale), None);
        assert_eq!(slots.remove(&stale), None);
        assert_eq!((slots.get(&second).copied(), slots.get(&third).copied()), (Some('b'), Some('c')));
        assert_eq!(slots.get(&Request::ended()), None);
        assert_eq!(slots.iter_mut().collect::<Vec<_>>(), [&'c', &'b']);
        assert_eq!(slots.drain(), ['c', 'b']);
    }
}
