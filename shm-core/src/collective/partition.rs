//! Buffers in blocks of several lengths, one for each rank.

use crate::element::Element;
use crate::error::{Error, Result};
use crate::regime::blocks::Blocks;

/// A buffer from which each rank gets, or has, a block: `counts[r]` elements from element `displs[r]` on.
///
/// Blocks may overlap, leave gaps, and come in any order.
#[derive(Clone, Copy, Debug)]
pub struct Partition<'a, T> {
    buffer: &'a [T],
    counts: &'a [usize],
    displs: &'a [usize],
}

/// A buffer into which each rank's block is put: `counts[r]` elements from element `displs[r]` on.
///
/// Blocks may leave gaps, which stay as they were, and come in any order; where two overlap either may be found there.
/// In place, what a rank sends from there may not be overlapped.
#[derive(Debug)]
pub struct PartitionMut<'a, T> {
    buffer: &'a mut [T],
    counts: &'a [usize],
    displs: &'a [usize],
}

impl<'a, T: Element> Partition<'a, T> {
    /// Blocks of these counts at these displacements, in elements. What does not fit shows as [`Blocks`](Error::Blocks)
    /// in the call.
    #[must_use]
    pub fn new(buffer: &'a [T], counts: &'a [usize], displs: &'a [usize]) -> Self {
        Self { buffer, counts, displs }
    }

    /// Its blocks on a communicator of `size` ranks.
    pub(crate) fn blocks(&self, rank: usize, size: usize) -> Result<Blocks<'a>> {
        blocks((rank, size), "send partition", self.buffer, self.counts, self.displs)
    }

    pub(crate) fn as_ptr(&self) -> *const u8 {
        self.buffer.as_ptr().cast()
    }
}

impl<'a, T: Element> PartitionMut<'a, T> {
    /// Blocks of these counts at these displacements, in elements. What does not fit shows as [`Blocks`](Error::Blocks)
    /// in the call.
    #[must_use]
    pub fn new(buffer: &'a mut [T], counts: &'a [usize], displs: &'a [usize]) -> Self {
        Self { buffer, counts, displs }
    }

    /// Its blocks on a communicator of `size` ranks.
    pub(crate) fn blocks(&self, rank: usize, size: usize) -> Result<Blocks<'a>> {
        blocks((rank, size), "receive partition", self.buffer, self.counts, self.displs)
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.buffer.as_mut_ptr().cast()
    }
}

/// Looks whether there is a block for each rank, within the buffer.
fn blocks<'a, T: Element>(
    (rank, size): (usize, usize),
    what: &'static str,
    buffer: &[T],
    counts: &'a [usize],
    displs: &'a [usize],
) -> Result<Blocks<'a>> {
    for found in [counts.len(), displs.len()] {
        if found != size {
            let advice = "; give a count and a displacement for each rank";
            return Err(Error::Blocks { rank, size, what, found, expected: size, advice });
        }
    }
    let end = counts.iter().zip(displs).map(|(&count, &displ)| match count {
        0 => 0,
        count => displ.saturating_add(count),
    });
    let expected = end.max().unwrap_or(0);
    if expected > buffer.len() {
        let advice = " by its blocks; counts and displacements are in elements";
        return Err(Error::Blocks { rank, size, what, found: buffer.len(), expected, advice });
    }
    Ok(Blocks::Uneven { counts, displs, unit: size_of::<T>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_must_lie_within_the_buffer() {
        let check = |len, counts: &[usize], displs: &[usize]| {
            Partition::new(&vec![0_u16; len], counts, displs).blocks(1, 2).is_ok()
        };
        assert!(check(5, &[2, 3], &[3, 0]) && check(5, &[5, 5], &[0, 0]) && check(0, &[0, 0], &[9, usize::MAX]));
        assert!(!check(5, &[2, 3], &[4, 0]) && !check(5, &[6, 0], &[0, 0]) && !check(5, &[1, 1], &[usize::MAX, 0]));
        assert!(!check(5, &[1], &[0, 0]) && !check(5, &[1, 1], &[0]) && !check(5, &[1, 1, 1], &[0, 0, 0]));
        let error = Partition::new(&[0_u8; 3], &[2, 2], &[0, 2]).blocks(1, 2).unwrap_err().to_string();
        assert!(error.contains("rank 1 of 2: send partition: 3 where 4"), "{error}");
    }
}
