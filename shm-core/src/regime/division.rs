//! How a vector is divided among leaders, and who these are.

use crate::segment::layout::LINE;

/// How a vector is divided: shares of whole units, a unit being the elements of a cache line or more.
#[derive(Clone, Copy, Debug)]
pub struct Division {
    bytes: usize,
    unit: usize,
    leaders: usize,
    slice: usize,
}

impl Division {
    /// Divides `bytes` bytes of `element`-byte elements among `leaders` leaders, in slices of at most `cell` bytes.
    pub fn new(bytes: usize, element: usize, leaders: usize, cell: usize) -> Self {
        let element = element.max(1);
        // The least number of whole elements that is whole lines too, if a cell has room for it.
        let lines = element / gcd(element, LINE) * LINE;
        let unit = if lines <= cell { lines } else { element };
        let mut division = Self { bytes, unit, leaders, slice: cell / unit * unit };
        // Equal slices: no short one at the end that costs a round of its own.
        let rounds = division.rounds() as usize;
        division.slice = (division.longest().div_ceil(rounds)).div_ceil(unit).max(1) * unit;
        division
    }

    /// Bytes of the vector.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The first byte of a share; that of share `leaders` is the end.
    pub fn start(&self, share: usize) -> usize {
        let units = self.bytes.div_ceil(self.unit);
        (units * share / self.leaders * self.unit).min(self.bytes)
    }

    fn longest(&self) -> usize {
        self.bytes.div_ceil(self.unit).div_ceil(self.leaders) * self.unit
    }

    /// Slices of the longest share: rounds of the protocol.
    pub fn rounds(&self) -> u64 {
        self.longest().div_ceil(self.slice).max(1) as u64
    }

    /// Offset and length of a slice; empty where a share has no such slice.
    pub fn range(&self, share: usize, round: u64) -> (usize, usize) {
        let end = self.start(share + 1);
        let at = (self.start(share) + round as usize * self.slice).min(end);
        (at, self.slice.min(end - at))
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The rank of the leader of a share: spread evenly over `size` ranks.
pub fn leader_of(share: usize, leaders: usize, size: usize) -> usize {
    share * size / leaders
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
