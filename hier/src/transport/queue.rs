//! What waits, in order, by the rank and the tag that it waits for.

/// A rank and a tag.
type Key = (usize, u32);

/// Entries in the order in which they came; those of one key are taken in that order. There are few at a time, so that
/// looking through them costs less than a table of keys.
pub(super) struct Queue<T>(Vec<(Key, T)>);

impl<T> Queue<T> {
    pub fn new() -> Self {
        Self(Vec::new())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn push(&mut self, key: Key, entry: T) {
        self.0.push((key, entry));
    }

    /// The place of the first entry of a key.
    pub fn first(&self, key: Key) -> Option<usize> {
        self.0.iter().position(|(of, _)| *of == key)
    }

    pub fn at(&self, place: usize) -> &T {
        &self.0[place].1
    }

    pub fn remove(&mut self, place: usize) -> T {
        self.0.remove(place).1
    }

    /// Undoes a [`remove`](Queue::remove).
    pub fn put_back(&mut self, place: usize, key: Key, entry: T) {
        self.0.insert(place, (key, entry));
    }

    pub fn retain(&mut self, mut keeps: impl FnMut(&T) -> bool) {
        self.0.retain(|(_, entry)| keeps(entry));
    }

    pub fn drain(&mut self) -> impl Iterator<Item = T> {
        self.0.drain(..).map(|(_, entry)| entry)
    }
}

#[cfg(test)]
mod tests {
    use super::Queue;

    #[test]
    fn entries_of_a_key_come_in_their_order() {
        let mut queue = Queue::new();
        for (key, entry) in [((1, 7), 'a'), ((2, 7), 'b'), ((1, 7), 'c')] {
            queue.push(key, entry);
        }
        let place = queue.first((1, 7)).expect("two of them");
        assert_eq!((*queue.at(place), queue.remove(place)), ('a', 'a'));
        assert_eq!(queue.first((1, 7)).map(|place| *queue.at(place)), Some('c'));
        queue.put_back(place, (1, 7), 'a');
        assert_eq!(queue.first((1, 7)).map(|place| *queue.at(place)), Some('a'));
        queue.retain(|&entry| entry != 'a');
        assert_eq!((queue.first((1, 8)), queue.is_empty()), (None, false));
        assert_eq!(queue.drain().collect::<Vec<_>>(), ['b', 'c']);
        assert!(queue.is_empty());
    }
}
