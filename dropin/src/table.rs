//! A table of a few words, looked up on every call.

/// What belongs to some words: an open table at most half full, whose size is a power of two.
pub struct Table<T> {
    slots: Box<[Option<(usize, T)>]>,
    shift: u32,
}

impl<T> Table<T> {
    /// The table of these; of several of the same word the first counts.
    pub fn new(entries: Vec<(usize, T)>) -> Self {
        let size = (2 * entries.len()).next_power_of_two().max(2);
        let mut table = Self { slots: (0..size).map(|_| None).collect(), shift: usize::BITS - size.trailing_zeros() };
        for (word, of) in entries {
            let place = table.place(word);
            table.slots[place].get_or_insert((word, of));
        }
        table
    }

    /// What belongs to a word.
    #[inline]
    pub fn find(&self, word: usize) -> Option<&T> {
        self.slots[self.place(word)].as_ref().map(|(_, of)| of)
    }

    /// Where the word is, or would be.
    #[inline]
    fn place(&self, word: usize) -> usize {
        let mut place = word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift;
        while self.slots[place].as_ref().is_some_and(|(other, _)| *other != word) {
            place = (place + 1) & (self.slots.len() - 1);
        }
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_and_others_not() {
        for count in [0, 1, 2, 3, 60, 64, 100] {
            let word = |i: usize| 0x7f00_1234_0000 + 0x160 * i;
            let table = Table::new((0..count).map(|i| (word(i), i)).collect());
            for i in 0..200 {
                assert_eq!(table.find(word(i)), Some(&i).filter(|_| i < count));
            }
        }
        let table = Table::new(vec![(5, 'a'), (5, 'b'), (0, 'c')]);
        assert_eq!((table.find(5), table.find(0)), (Some(&'a'), Some(&'c')));
    }
}
