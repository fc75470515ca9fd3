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
    /// Of two ranks one waits until the other has filled the first slice. So that is the short one, but not shorter
    /// than a half, and whole lines if others are: through cells of 32 KiB broadcasts of 40 KiB took 10 to 13 percent
    /// less time so, and reductions 6, near and far apart (AMD EPYC, Zen 5). To have one slice more for it did not pay:
    /// far apart broadcasts of 64 KiB back to back took a quarter longer.
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
#[inline]
pub(crate) fn whole_elements(bytes: usize, element: usize) -> usize {
    let element = element.max(1);
    // As a rule: nothing is divided.
    if element.is_power_of_two() && bytes & (element - 1) == 0 && bytes > 0 {
        return bytes;
    }
    (bytes / element).max(1) * element
}

/// Bytes of what is not cut in two where elements are only moved, through room for so many: an element, so that a call
/// that fails leaves no half of one; but one that is longer is cut anywhere.
#[inline]
pub(crate) fn uncut(element: usize, room: usize) -> usize {
    if element <= room { element } else { 1 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::communicator::Communicator;
    use crate::element::Element;
    use crate::job::JobSpec;
    use crate::protocol::Ring;
    use crate::segment::layout::LINE;

    /// Slots of lines, of up and of down cells that a call on `count` elements takes on three ranks, by these rules.
    fn taken<T: Element + bytemuck::Zeroable>(rules: &str, count: usize, call: fn(&Communicator, &[T])) -> [u64; 3] {
        let mut spec = JobSpec::new(3).unwrap();
        spec.tuning.force(rules).unwrap();
        let taken = spec.on_threads(|comm| {
            let next = || {
                let engine = comm.enter().unwrap();
                [&engine.lines, &engine.up, &engine.down].map(Ring::next_position)
            };
            let elements = vec![T::zeroed(); count];
            // The first call cuts the cells.
            call(&comm, &elements);
            let before = next();
            call(&comm, &elements);
            let after = next();
            std::array::from_fn(|ring| after[ring] - before[ring])
        });
        assert_eq!(taken, vec![taken[0]; 3]);
        taken[0]
    }

    fn broadcast<T: Element>(comm: &Communicator, elements: &[T]) {
        comm.process_at_rank(1).broadcast_into(&mut elements.to_vec()).unwrap();
    }

    fn all_gather<T: Element>(comm: &Communicator, elements: &[T]) {
        comm.all_gather_into(elements, &mut elements.repeat(3)).unwrap();
    }

    /// Unless they are longer than a cell.
    #[test]
    fn elements_that_are_moved_are_not_cut_in_two() {
        let (lines, cells) = ("broadcast:line", "all:cells,cell=64");
        assert_eq!(taken::<u64>(lines, 286, broadcast), [2, 0, 0]);
        assert_eq!(taken::<u128>(lines, 143, broadcast), [3, 0, 0]);
        assert_eq!(taken::<u64>(cells, 30, broadcast), [0, 0, 4]);
        assert_eq!(taken::<[u64; 3]>(cells, 10, broadcast), [0, 0, 5]);
        assert_eq!(taken::<[u64; 15]>(cells, 2, broadcast), [0, 0, 4]);
        assert_eq!(taken::<u64>(cells, 30, all_gather), [0, 4, 0]);
        assert_eq!(taken::<[u64; 3]>(cells, 10, all_gather), [0, 5, 0]);
        assert_eq!(taken::<[u64; 15]>(cells, 2, all_gather), [0, 4, 0]);
    }

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

    /// Cells are whole lines.
    #[test]
    fn elements_that_fill_words_are_cut_as_bytes_are() {
        for (ranks, lines, bytes) in
            (1..4).flat_map(|ranks| (1..6).map(move |lines| (ranks, lines, 3_000 * lines + 72)))
        {
            let all = |element| {
                let cut = Cut::rooted(ranks, bytes, lines * LINE, element);
                (0..cut.count()).map(|slice| cut.range(slice)).collect::<Vec<_>>()
            };
            for element in [2, 4, 8] {
                assert_eq!(all(element), all(1), "{bytes} bytes of {element} through {lines} lines on {ranks} ranks");
            }
        }
    }

    #[test]
    fn whole_elements_are_those_that_fit() {
        let cases = [(64, 8, 64), (64, 24, 48), (1144, 8, 1144), (1144, 16, 1136), (8, 16, 16), (0, 8, 8), (5, 0, 5)];
        for (bytes, element, whole) in cases {
            assert_eq!(whole_elements(bytes, element), whole, "{element} in {bytes}");
        }
        assert_eq!([0, 64, 65].map(|element| uncut(element, 64)), [0, 64, 1]);
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
