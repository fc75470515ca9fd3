//! How a message is cut into slices that fill a cell each.

use super::division::unit_of;

/// The slices of a message: whole elements, as many as fit a cell. An empty message is one empty slice.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    bytes: usize,
    /// The first slice, and each that follows; the last one may be shorter.
    first: usize,
    slice: usize,
}

impl Cut {
    /// A message of `bytes` bytes through cells of `cell`.
    #[must_use]
    pub fn new(bytes: usize, cell: usize, element: usize) -> Self {
        let slice = whole_elements(cell, element);
        Self { bytes, first: slice, slice }
    }

    /// The message of a rooted call of `ranks` ranks.
    ///
    /// Of two ranks one waits until the other has filled the first slice. So that is the short one, but not shorter than
    /// a half, and whole lines if others are: through cells of 32 KiB broadcasts of 40 KiB took 10 to 13 percent less time
    /// so, and reductions 6, near and far apart (AMD EPYC, Zen 5). To have one slice more for it did not pay: far apart
    /// broadcasts of 64 KiB back to back took a quarter longer.
    #[must_use]
    pub fn rooted(ranks: usize, bytes: usize, cell: usize, element: usize) -> Self {
        let cut = Self::new(bytes, cell, element);
        if ranks != 2 || bytes <= cut.slice {
            return cut;
        }
        let least = bytes - (bytes - 1) / cut.slice * cut.slice;
        let first = whole_elements(cell / 2, element).max(least);
        Self { first: first.next_multiple_of(unit_of(element.max(1), cell)).min(cut.slice), ..cut }
    }

    /// Bytes of the message.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many slices there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        1 + self.bytes.saturating_sub(self.first).div_ceil(self.slice) as u64
    }

    /// Offset and length of one.
    #[must_use]
    pub fn range(&self, slice: u64) -> (usize, usize) {
        let (at, most) = match slice {
            0 => (0, self.first),
            _ => (self.first + (slice as usize - 1) * self.slice, self.slice),
        };
        (at, most.min(self.bytes - at))
    }
}

/// Bytes of the whole elements that fit so many; of one at least.
pub(super) fn whole_elements(bytes: usize, element: usize) -> usize {
    let element = element.max(1);
    (bytes / element).max(1) * element
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::segment::layout::LINE;

    proptest! {
        #[test]
        fn slices_cover_a_message_in_whole_elements(
            elements in 0usize..3000, element in 1usize..100, lines in 1usize..6, odd in 0usize..64, ranks in 1usize..4,
        ) {
            let (bytes, cell) = (elements * element, lines * LINE + odd / 32 * odd);
            for cut in [Cut::new(bytes, cell, element), Cut::rooted(ranks, bytes, cell, element)] {
                let mut next = 0;
                for slice in 0..cut.count() {
                    let (at, length) = cut.range(slice);
                    prop_assert_eq!(at, next);
                    let in_lines = cell.is_multiple_of(LINE) && LINE.is_multiple_of(element);
                    prop_assert!(!in_lines || at.is_multiple_of(LINE));
                    prop_assert!(length <= cell.max(element) && length % element == 0 && (length > 0 || bytes == 0));
                    next = at + length;
                }
                prop_assert_eq!(next, bytes);
                prop_assert_eq!(cut.count(), Cut::new(bytes, cell, element).count());
            }
        }
    }

    #[test]
    fn the_short_one_is_the_first_where_one_waits_for_it() {
        let all = |cut: Cut| (0..cut.count()).map(|slice| cut.range(slice)).collect::<Vec<_>>();
        assert_eq!(all(Cut::rooted(2, 64, 64, 8)), [(0, 64)]);
        assert_eq!(all(Cut::rooted(2, 264, 256, 8)), [(0, 128), (128, 136)]);
        assert_eq!(all(Cut::rooted(2, 120, 64, 24)), [(0, 24), (24, 48), (72, 48)]);
        assert_eq!(all(Cut::rooted(2, 400, 256, 8)), [(0, 192), (192, 208)]);
        assert_eq!(all(Cut::rooted(2, 512, 256, 8)), [(0, 256), (256, 256)]);
        assert_eq!(all(Cut::rooted(3, 264, 256, 8)), [(0, 256), (256, 8)]);
        assert_eq!(all(Cut::rooted(2, 0, 64, 8)), [(0, 0)]);
    }
}
