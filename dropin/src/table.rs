//! A table of a few words, looked up on every call.

/// What belongs to some words: an open table at most half full, whose size is a power of two. Its slots are small, so
/// that a look-up takes one cache line, and what belongs to the word the next.
pub struct Table<T> {
    /// A word, and one more than the place of what belongs to it; 0 in empty slots.
    slots: Box<[(usize, usize)]>,
    values: Box<[T]>,
    shift: u32,
}

impl<T> Table<T> {
    /// The table of these; of several of the same word the first counts.
    pub fn new(entries: Vec<(usize, T)>) -> Self {
        let size = (2 * entries.len()).next_power_of_two().max(2);
        let shift = usize::BITS - size.trailing_zeros();
        let mut table = Self { slots: vec![(0, 0); size].into(), values: Box::default(), shift };
        let mut values = Vec::with_capacity(entries.len());
        for (word, of) in entries {
            let place = table.place(word);
            if table.slots[place].1 == 0 {
                values.push(of);
                table.slots[place] = (word, values.len());
            }
        }
        table.values = values.into();
        table
    }

    /// What belongs to a word.
    #[inline(always)]
    pub fn find(&self, word: usize) -> Option<&T> {
        let (_, place) = *self.slots.get(self.place(word))?;
        self.values.get(place.wrapping_sub(1))
    }

    /// Where the word is, or would be.
    #[inline(always)]
    fn place(&self, word: usize) -> usize {
        let mut place = word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift;
        while self.slots.get(place).is_some_and(|&(other, of)| of != 0 && other != word) {
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
