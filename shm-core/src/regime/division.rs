//! How a vector is divided among leaders, and who these are.

use crate::segment::layout::LINE;

/// How a vector is divided: shares of whole units, a unit being the elements of a cache line or more.
#[derive(Clone, Copy, Debug)]
pub struct Division {
    bytes: usize,
    unit: usize,
    /// Units of the vector, the last of which may be cut off.
    units: usize,
    leaders: usize,
    rounds: usize,
    slice: usize,
}

impl Division {
    /// Divides `bytes` bytes of `element`-byte elements among `leaders` leaders (one if there are none), in slices of
    /// at most `cell` bytes, or one element where that is longer.
    ///
    /// Every call comes here, so it divides by what it must: by lines, as a rule, and by the number of leaders.
    pub fn new(bytes: usize, element: usize, leaders: usize, cell: usize) -> Self {
        let leaders = leaders.max(1);
        let (unit, units, most) = match unit_of(element.max(1), cell) {
            LINE => (LINE, bytes.div_ceil(LINE), cell / LINE),
            unit => (unit, bytes.div_ceil(unit), (cell / unit).max(1)),
        };
        let longest = units.div_ceil(leaders);
        // Equal slices: no short one at the end that costs a round of its own.
        let (rounds, slice) = match longest <= most {
            true => (1, longest),
            false => {
                let rounds = longest.div_ceil(most);
                (rounds, longest.div_ceil(rounds))
            }
        };
        Self { bytes, unit, units, leaders, rounds, slice: slice.max(1) * unit }
    }

    /// Bytes of the vector.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The first byte of a share; that of share `leaders` is the end.
    pub fn start(&self, share: usize) -> usize {
        match share {
            0 => 0,
            end if end == self.leaders => self.bytes,
            _ => (self.units * share / self.leaders * self.unit).min(self.bytes),
        }
    }

    /// Slices of the longest share: rounds of the protocol.
    pub fn rounds(&self) -> u64 {
        self.rounds as u64
    }

    /// Offset and length of a slice; empty where a share has no such slice.
    pub fn range(&self, share: usize, round: u64) -> (usize, usize) {
        let end = self.start(share + 1);
        let at = (self.start(share) + round as usize * self.slice).min(end);
        (at, self.slice.min(end - at))
    }
}

/// Bytes of the least number of whole elements that is whole lines too, if a cell has room for it.
pub(super) fn unit_of(element: usize, cell: usize) -> usize {
    // The divisors of a line are powers of two.
    let lines = match element.is_power_of_two() && element <= LINE {
        true => LINE,
        false => element / gcd(element, LINE) * LINE,
    };
    if lines <= cell { lines } else { element }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The rank of the leader of a share: spread evenly over `size` ranks. Nobody leads a share that there is not: `size`
/// is no rank.
pub fn leader_of(share: usize, leaders: usize, size: usize) -> usize {
    if share >= leaders {
        return size;
    }
    match share.checked_mul(size) {
        Some(product) => product / leaders,
        None => (share as u128 * size as u128 / leaders as u128) as usize,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn no_share_of_no_leaders_is_led() {
        assert_eq!([(0, 0), (3, 0), (2, 2), (usize::MAX, 2)].map(|(share, all)| leader_of(share, all, 8)), [8; 4]);
        assert_eq!([0, 1, 2].map(|share| leader_of(share, 3, 8)), [0, 2, 5]);
        assert_eq!(leader_of(usize::MAX / 2, usize::MAX, 8), 3);
        let long = Division::new(400, 80, 2, 64);
        assert_eq!((long.start(1), long.start(2), long.rounds()), (160, 400, 3));
        let whole = Division::new(4096, 8, 0, 1024);
        assert_eq!((whole.start(0), whole.start(1), whole.rounds()), (0, 4096, 4));
    }

    proptest! {
        #[test]
        fn slices_cover_a_vector_once(n in 0usize..5000, element in 1usize..100, leaders in 1usize..20, cell in 1usize..20) {
            let cell = cell * LINE;
            prop_assume!(element <= cell);
            let bytes = n * element;
            let division = Division::new(bytes, element, leaders, cell);
            prop_assert!(division.slice <= cell);
            let mut at = 0;
            for share in 0..leaders {
                for round in 0..division.rounds() {
                    let (start, len) = division.range(share, round);
                    prop_assert!(len == 0 || start == at);
                    prop_assert_eq!(len % element, 0);
                    at += len;
                }
            }
            prop_assert_eq!(at, bytes);
        }
    }
}
