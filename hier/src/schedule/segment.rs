//! Where the segments of a vector lie.

use std::ops::Range;

use super::Span;

/// The elements of segment `i` of a vector of `count` elements in `segments` segments.
///
/// The segments follow one another, and their sizes differ by at most one: the first `count % segments` have one
/// element more. Where there are fewer elements than segments, the last ones are empty. The same function on all ranks
/// makes them agree on the segments.
///
/// An `i` from `segments` on, and any `i` where `segments` is 0, gets an empty range at the end of the vector.
///
/// ```
/// use hier::schedule::segment_range;
///
/// assert_eq!((0..4).map(|i| segment_range(10, 4, i)).collect::<Vec<_>>(), [0..3, 3..6, 6..8, 8..10]);
/// assert_eq!(segment_range(2, 4, 3), 2..2);
/// ```
pub fn segment_range(count: usize, segments: usize, i: usize) -> Range<usize> {
    if i >= segments {
        return count..count;
    }
    let (each, more) = (count / segments, count % segments);
    let start = |i: usize| i * each + i.min(more);
    start(i)..start(i + 1)
}

impl Span {
    /// The elements of the span in a vector of `count` elements in `segments` segments, in the order in which a message
    /// carries them: up to the end of the vector, and then from its start on, if the span goes round. The second range
    /// is empty where it does not.
    pub fn elements(self, count: usize, segments: u32) -> [Range<usize>; 2] {
        let start = |segment: u32| segment_range(count, segments as usize, segment as usize).start;
        if self.count == 0 {
            return [0..0, 0..0];
        }
        let before_end = segments.saturating_sub(self.first).min(self.count);
        let after = self.count - before_end;
        [start(self.first)..start(self.first + before_end), 0..if after == 0 { 0 } else { start(after) }]
    }

    /// How many elements the span holds in a vector of `count` elements in `segments` segments.
    pub fn len(self, count: usize, segments: u32) -> usize {
        let [first, second] = self.elements(count, segments);
        first.len() + second.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_balanced_and_cover_the_vector() {
        for count in 0..60 {
            for segments in 1..40 {
                let ranges: Vec<_> = (0..segments).map(|i| segment_range(count, segments, i)).collect();
                let sizes = ranges.iter().map(|range| range.len());
                assert!(sizes.clone().max().unwrap() - sizes.clone().min().unwrap() <= 1);
                assert_eq!(ranges.into_iter().flatten().collect::<Vec<_>>(), (0..count).collect::<Vec<_>>());
            }
        }
        assert_eq!(segment_range(7, 0, 0), 7..7);
        assert_eq!(segment_range(usize::MAX, 3, 2).end, usize::MAX);
    }

    #[test]
    fn a_span_is_its_segments_one_after_the_other() {
        for count in [0, 1, 3, 5, 17] {
            for segments in 1..=6 {
                for first in 0..segments {
                    for length in 0..=segments {
                        let span = Span { first, count: length };
                        let expected: Vec<_> = span
                            .segments(segments)
                            .flat_map(|i| segment_range(count, segments as usize, i as usize))
                            .collect();
                        let found: Vec<_> = span.elements(count, segments).into_iter().flatten().collect();
                        assert_eq!(found, expected, "{span:?} of {segments}, {count} elements");
                        assert_eq!(span.len(count, segments), expected.len());
                    }
                }
            }
        }
    }
}
