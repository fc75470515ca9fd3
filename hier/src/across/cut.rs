//! How a vector is cut for the pipeline: so that the order of additions does not depend on it.
//!
//! A schedule combines each of its segments in an order of its own. Were each slice parted into segments anew, the
//! order in which an element is combined would hang on the size of slices, which is found by timing. So the vector is
//! parted into segments once, and a slice is a piece of each of them.

use std::marker::PhantomData;
use std::ops::Range;

use shm_core::Element;

use crate::schedule::segment_range;

/// Pieces begin and end at multiples of so many elements: whole cache lines, whatever the element.
const UNIT: usize = 64;

/// A vector of `count` elements in segments, and slices of so many elements of each segment. An operator's
/// [group](shm_core::operator::Operator::group) of elements counts as one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    count: usize,
    segments: usize,
    /// Elements of a segment in one slice.
    piece: usize,
    /// What parts are given in: so many to an element.
    group: usize,
    /// Whether pieces that lie side by side may be worked on as one.
    joins: bool,
}

impl Cut {
    /// Slices of about `slice` elements.
    pub fn new(count: usize, segments: usize, slice: usize, joins: bool) -> Self {
        let segments = segments.max(1);
        let longest = count.div_ceil(segments).max(1);
        let piece = if slice >= count { longest } else { (slice / segments).next_multiple_of(UNIT).max(UNIT) };
        Self { count, segments, piece: piece.min(longest), group: 1, joins }
    }

    /// The same of a vector whose every element is a group of so many, in which its parts are given.
    pub fn in_groups(self, group: usize) -> Self {
        Self { group, ..self }
    }

    pub fn slices(&self) -> usize {
        self.count.div_ceil(self.segments).div_ceil(self.piece).max(1)
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The elements of a segment in a slice; there may be none.
    pub fn part(&self, slice: usize, segment: usize) -> Range<usize> {
        let segment = segment_range(self.count, self.segments, segment);
        let start = (segment.start + slice * self.piece).min(segment.end);
        start * self.group..(start + self.piece).min(segment.end) * self.group
    }

    /// The elements that a slice has of some segments, in the pieces that a node works on one by one. None is empty.
    pub fn pieces(&self, slice: usize, segments: &[usize]) -> Vec<Range<usize>> {
        let mut pieces: Vec<Range<usize>> = Vec::with_capacity(segments.len());
        for part in segments.iter().map(|&segment| self.part(slice, segment)).filter(|part| !part.is_empty()) {
            match pieces.last_mut() {
                Some(last) if self.joins && last.end == part.start => last.end = part.end,
                _ => pieces.push(part),
            }
        }
        pieces
    }
}

/// Whether shares of vectors of elements of so many bytes are cut alike on nodes of all sizes: a share is whole cache
/// lines of whole elements, if so many fit a cell, whose size hangs on the number of ranks.
pub(super) fn cuts_alike(element: usize) -> bool {
    /// The least cell that there may be, with so few leaders.
    const CELL: usize = 2048;
    match element {
        0 => false,
        // The least common multiple with a line of 64 bytes.
        element => element.saturating_mul(64 >> element.trailing_zeros().min(6)) <= CELL,
    }
}

/// A vector of which parts are on the network while others are worked on.
pub(super) struct Vector<'a, T> {
    pub data: *mut T,
    count: usize,
    lives: PhantomData<&'a mut [T]>,
}

impl<'a, T: Element> Vector<'a, T> {
    pub fn of(vector: &'a mut [T]) -> Self {
        Self { data: vector.as_mut_ptr(), count: vector.len(), lives: PhantomData }
    }

    /// A part of it.
    ///
    /// # Safety
    /// Nobody else uses this part as long as the result lives.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn part(&self, range: Range<usize>) -> &mut [T] {
        assert!(range.start <= range.end && range.end <= self.count);
        // SAFETY: it lies within the vector, which is borrowed for this; by contract nobody else uses it.
        unsafe { std::slice::from_raw_parts_mut(self.data.wrapping_add(range.start), range.len()) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn slices_cover_each_segment_in_order(
            count in 1_usize..20_000,
            segments in 1_usize..40,
            slice in 0_usize..20_000,
            joins: bool,
        ) {
            let cut = Cut::new(count, segments, slice, joins);
            let mut covered = vec![0_u8; count];
            let every: Vec<usize> = (0..segments).collect();
            for i in 0..cut.slices() {
                for piece in cut.pieces(i, &every) {
                    prop_assert!(!piece.is_empty());
                    covered[piece].iter_mut().for_each(|times| *times += 1);
                }
                let all: usize = (0..segments).map(|segment| cut.part(i, segment).len()).sum();
                prop_assert_eq!(all, cut.pieces(i, &every).iter().map(ExactSizeIterator::len).sum::<usize>());
            }
            prop_assert!(covered.iter().all(|&times| times == 1));
            for segment in 0..segments {
                let mut at = segment_range(count, segments, segment).start;
                for part in (0..cut.slices()).map(|i| cut.part(i, segment)) {
                    prop_assert_eq!(part.start, at);
                    at = part.end;
                }
                prop_assert_eq!(at, segment_range(count, segments, segment).end);
            }
        }
    }

    #[test]
    fn a_whole_vector_is_one_piece_for_one_leader() {
        let every = [0, 1, 2, 3, 4, 5, 6];
        assert!(Cut::new(1000, 7, 1000, true).pieces(0, &every).into_iter().eq(std::iter::once(0..1000)));
        assert_eq!(Cut::new(1000, 7, 1000, false).pieces(0, &every).len(), 7);
        assert_eq!(Cut::new(1000, 7, usize::MAX, true).slices(), 1);
    }

    #[test]
    fn odd_elements_have_one_leader() {
        assert!([8, 24, 256].into_iter().all(cuts_alike));
        assert!(![0, 300, 4096].into_iter().any(cuts_alike));
    }

    #[test]
    fn parts_are_whole_groups() {
        let (single, grouped) = (Cut::new(1000, 7, 300, false), Cut::new(1000, 7, 300, false).in_groups(3));
        let parts = |cut: Cut| (0..cut.slices()).flat_map(move |i| (0..7).map(move |segment| cut.part(i, segment)));
        assert!(parts(single).map(|part| 3 * part.start..3 * part.end).eq(parts(grouped)));
    }
}
