//! Folding into a cell, and into the own result beside it, piece by piece.
//!
//! A fold stores with ordinary stores. Where the cell is better filled in another way ([`Way`]), a piece is folded to
//! private memory, or to another place where the result is wanted, and copied on while it lies in the first-level
//! cache. So it is where the result itself is stored past the caches.

use crate::counts::note;
use crate::operator::Fold;
use crate::pace::Way;
use crate::payload::{copy_part_in, end_parts};
use crate::segment::layout::LINE;

/// Bytes of a piece.
const PIECE: usize = 4096;

/// Where pieces are folded that are wanted in a cell alone.
#[repr(C, align(64))]
pub(super) struct Piece([u8; PIECE]);

impl Default for Piece {
    fn default() -> Self {
        Self([0; PIECE])
    }
}

/// Folds `bytes` bytes of `operands` into `results`, of which the last one is filled in this way: a cell, or somebody's
/// result. The operands are moved on to their ends.
///
/// # Safety
/// As [`Fold::apply_to`].
pub(super) unsafe fn fold_and_copy(
    fold: &Fold<'_>,
    operands: &mut [*const u8],
    results: &[*mut u8],
    (bytes, way): (usize, Way),
    scratch: &mut Piece,
) {
    let element = fold.element.max(1);
    let (&cell, others) = results.split_last().expect("there is a result");
    if others.is_empty() && element > PIECE {
        // SAFETY: by contract.
        return unsafe { fold.apply(cell, operands, bytes) };
    }
    let mut at = 0;
    while at < bytes {
        let len = piece(element).min(bytes - at);
        let to = others.first().map_or(scratch.0.as_mut_ptr(), |other| other.wrapping_add(at));
        // SAFETY: `at + len <= bytes`, whole elements; the scratch has room for a piece, and is aligned for any
        // element.
        unsafe { fold.apply(to, operands, len) };
        // SAFETY: `len` bytes were just written there; the rest by contract.
        unsafe { copy_part_in(to, cell.wrapping_add(at), len, way) };
        for other in others.iter().skip(1) {
            note::stored(other.wrapping_add(at), len);
            // SAFETY: the same; no two results overlap.
            unsafe { std::ptr::copy_nonoverlapping(to, other.wrapping_add(at), len) };
        }
        operands.iter_mut().for_each(|operand| *operand = operand.wrapping_add(len));
        at += len;
    }
    end_parts(way);
}

/// Bytes of a piece of `element`-byte elements: whole ones, and whole lines too if that is possible.
fn piece(element: usize) -> usize {
    let odd = LINE >> element.trailing_zeros().min(LINE.ilog2());
    let lines = element * odd;
    let unit = if lines <= PIECE { lines } else { element };
    (PIECE / unit).max(1) * unit
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::Sum;

    #[test]
    fn pieces_are_whole_elements_and_lines() {
        for (element, bytes) in [(1, 4096), (8, 4096), (24, 4032), (40, 3840), (100, 3200), (3000, 3000), (5000, 5000)]
        {
            assert_eq!(piece(element), bytes, "{element}");
        }
    }

    #[test]
    fn all_places_get_the_fold() {
        let [a, b]: [Vec<u64>; 2] = [1, 1000].map(|by| (0..1300).map(|i| i * by).collect());
        for n in [0, 1, 511, 512, 513, 1300] {
            for (others, way) in (0..3).flat_map(|others| [(others, Way::Streamed), (others, Way::ByString)]) {
                let (mut own, mut another, mut cell) = (a.clone(), a.clone(), vec![7; 1301]);
                // The own result takes the place of an operand.
                let mut operands = [own.as_ptr().cast::<u8>(), b.as_ptr().cast()];
                let mut results: Vec<*mut u8> = vec![own.as_mut_ptr().cast(), another.as_mut_ptr().cast()];
                results.truncate(others);
                results.push(cell.as_mut_ptr().cast());
                let fold = Fold::new::<u64, _>(&Sum);
                // SAFETY: at least `n` elements are at each place.
                unsafe { fold_and_copy(&fold, &mut operands, &results, (8 * n, way), &mut Piece::default()) };
                let sum = |i: usize| i as u64 * 1001;
                assert!((0..n).all(|i| cell[i] == sum(i)) && cell[n..].iter().all(|&value| value == 7));
                for (result, wanted) in [(&own, others > 0), (&another, others > 1)] {
                    assert!((0..n).all(|i| result[i] == if wanted { sum(i) } else { a[i] }) && result[n..] == a[n..]);
                }
            }
        }
    }
}
