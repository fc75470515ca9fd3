//! Folds to several places by operators that know how to fold to one.

use std::ptr;

use super::Operator;
use crate::element::Element;
use crate::segment::layout::MOST_RANKS;

/// Bytes of a piece: it stays in a near cache until it is copied on. Each is a call of the operator, which may not be
/// cheap.
const PIECE: usize = 16 << 10;

/// Operands up to which their list is a short one.
const FEW: usize = 8;

/// [`Operator::fold_to`] by [`Operator::fold`].
///
/// # Safety
/// As `Operator::fold_to`.
pub(super) unsafe fn fold_to<T: Element, O: Operator<T> + ?Sized>(
    operator: &O,
    dsts: &[*mut T],
    operands: &[*const T],
    n: usize,
) {
    let (&first, others) = dsts.split_first().expect("there is at least one destination");
    let group = operator.group().get();
    let piece = (PIECE / (group * size_of::<T>()).max(1)).max(1) * group;
    let is_short = others.is_empty() || n <= piece;
    let (mut few, mut many);
    let here: &mut [*const T] = match operands.len() {
        // Nobody has more operands than there are ranks; who had would go without pieces.
        count if is_short || count > MOST_RANKS => {
            // SAFETY: by contract.
            return unsafe { fold_and_copy(operator, first, others, (operands, n)) };
        }
        count @ ..=FEW => {
            few = [ptr::null(); FEW];
            &mut few[..count]
        }
        count => {
            many = [ptr::null(); MOST_RANKS];
            &mut many[..count]
        }
    };
    let mut at = 0;
    while at < n {
        let len = piece.min(n - at);
        here.iter_mut().zip(operands).for_each(|(here, operand)| *here = operand.wrapping_add(at));
        // SAFETY: `at + len <= n` elements; the results of other pieces are no operands of this one.
        unsafe { operator.fold(first.wrapping_add(at), here, len) };
        for other in others {
            // SAFETY: `len` elements were just written there; as many may be written at the other place, and the two do
            // not overlap.
            unsafe { ptr::copy_nonoverlapping(first.wrapping_add(at), other.wrapping_add(at), len) };
        }
        at += len;
    }
}

/// Folds the operands to the first place at once.
///
/// # Safety
/// As `Operator::fold_to`.
unsafe fn fold_and_copy<T: Element, O: Operator<T> + ?Sized>(
    operator: &O,
    first: *mut T,
    others: &[*mut T],
    (operands, n): (&[*const T], usize),
) {
    // SAFETY: by contract.
    unsafe { operator.fold(first, operands, n) };
    for &other in others {
        // SAFETY: `n` elements were just written at `first`; by contract `n` may be written there, and the two do not
        // overlap.
        unsafe { ptr::copy_nonoverlapping(first, other, n) };
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// Knows how to fold to one place, and keeps the lengths of its calls. The order of operands matters.
    #[derive(Default)]
    struct One(RefCell<Vec<usize>>);

    // SAFETY: all elements are written.
    unsafe impl Operator<[u64; 3]> for One {
        fn is_commutative(&self) -> bool {
            false
        }

        fn code(&self) -> u8 {
            0x70
        }

        unsafe fn fold(&self, dst: *mut [u64; 3], operands: &[*const [u64; 3]], n: usize) {
            self.0.borrow_mut().push(n);
            for i in 0..n {
                // SAFETY: by contract `n` elements are at each place.
                let all = operands.iter().map(|operand| unsafe { operand.wrapping_add(i).read() });
                let value =
                    all.reduce(|a, b| std::array::from_fn(|i| a[i].wrapping_mul(3).wrapping_add(b[i]))).unwrap();
                // SAFETY: the same.
                unsafe { dst.wrapping_add(i).write(value) };
            }
        }
    }

    #[test]
    fn all_places_get_the_fold_piece_by_piece() {
        let most = PIECE / 24;
        for n in [0, 1, most, most + 1, 3 * most + 5] {
            for (operands, results) in
                [(1, 2), (2, 1), (2, 2), (FEW, 3), (FEW + 1, 2), (MOST_RANKS, 2), (MOST_RANKS + 1, 2)]
            {
                let value = |place: usize, i: usize| std::array::from_fn(|part| (place * 7919 + i * 3 + part) as u64);
                let places = |count: usize| -> Vec<Vec<[u64; 3]>> {
                    (0..count).map(|place| (0..=n).map(|i| value(place, i)).collect()).collect()
                };
                let (mut inputs, mut outputs) = (places(operands), places(results - 1));
                let mut wanted = inputs[operands - 1].clone();
                let pointers: Vec<_> = inputs.iter().map(|input| input.as_ptr()).collect();
                // SAFETY: `n` elements are at each place.
                unsafe { One::default().fold(wanted.as_mut_ptr(), &pointers, n) };
                // The first result takes the place of the last operand.
                let first = inputs[operands - 1].as_mut_ptr();
                let dsts: Vec<_> = [first].into_iter().chain(outputs.iter_mut().map(|out| out.as_mut_ptr())).collect();
                let pointers: Vec<_> =
                    inputs[..operands - 1].iter().map(|input| input.as_ptr()).chain([first.cast_const()]).collect();
                let operator = One::default();
                // SAFETY: the same; what overlaps is an operand and its result.
                unsafe { operator.fold_to(&dsts, &pointers, n) };
                assert!(inputs[operands - 1] == wanted, "{n} elements of {operands}");
                for (place, out) in outputs.iter().enumerate() {
                    assert!(out[..n] == wanted[..n] && out[n] == value(place, n), "{n} elements of {operands}");
                }
                let lengths = operator.0.into_inner();
                assert_eq!(lengths.iter().sum::<usize>(), n);
                let whole = results == 1 || operands > MOST_RANKS;
                assert!(whole || lengths.iter().all(|&length| length <= most), "{lengths:?}");
            }
        }
    }
}
