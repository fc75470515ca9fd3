//! User-defined operators: a closure over slices.

use super::{Far, Operator};
use crate::element::Element;

/// An operator made of a closure `f(left, right)` that stores `left op right` in `left`, element by element.
///
/// The closure may look at neighbouring elements only within what one element of the vector means to it (use
/// an array or structure as the element): slices are cut anywhere between elements. It must give the same result on
/// every rank, and must not use the communicator that runs it, but to ask for its ranks and counters.
///
/// ```
/// use shm_core::{Communicator, operator::User};
/// // The product of 2x2 matrices does not commute: it is taken in rank order.
/// let product = User::ordered(|left: &mut [[i64; 4]], right: &[[i64; 4]]| {
///     for (l, r) in left.iter_mut().zip(right) {
///         *l = [l[0] * r[0] + l[1] * r[2], l[0] * r[1] + l[1] * r[3], l[2] * r[0] + l[3] * r[2], l[2] * r[1] + l[3] * r[3]];
///     }
/// });
/// let results = Communicator::threads(3, |comm| {
///     let mine = [1, comm.rank() as i64, 0, 2];
///     let mut all = [[0; 4]];
///     comm.all_reduce_into(&[mine], &mut all, &product).unwrap();
///     all[0]
/// }).unwrap();
/// assert_eq!(results, vec![[1, 4, 0, 8]; 3]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct User<F> {
    combine: F,
    commutative: bool,
}

impl<F> User<F> {
    /// An operator whose operands may be taken in any order.
    pub const fn commutative(combine: F) -> Self {
        Self { combine, commutative: true }
    }

    /// An operator whose operands are combined in rank order (associativity is still needed).
    pub const fn ordered(combine: F) -> Self {
        Self { combine, commutative: false }
    }
}

/// Bytes of the private piece in which a result is made.
const PIECE: usize = 4096;

// SAFETY: every piece of the result is made from a copy of the first operand, and written.
unsafe impl<T: Element, F: Fn(&mut [T], &[T])> Operator<T> for User<F> {
    fn is_commutative(&self) -> bool {
        self.commutative
    }

    fn code(&self) -> u8 {
        if self.commutative { 0xfe } else { 0xff }
    }

    unsafe fn fold(&self, dst: *mut T, operands: &[*const T], n: usize) {
        // The result may be one of the operands, so it is made aside, a piece at a time.
        let (first, others) = operands.split_first().expect("there is at least one operand");
        let most = (PIECE / size_of::<T>().max(1)).max(1);
        let mut piece: Vec<T> = Vec::with_capacity(most.min(n));
        let mut at = 0;
        while at < n {
            let len = most.min(n - at);
            // SAFETY: `at + len <= n` elements, all initialised, which nobody writes meanwhile.
            let first = unsafe { std::slice::from_raw_parts(first.wrapping_add(at), len) };
            piece.clear();
            piece.extend_from_slice(first);
            for operand in others {
                // SAFETY: as for the first operand.
                let next = unsafe { std::slice::from_raw_parts(operand.wrapping_add(at), len) };
                (self.combine)(&mut piece, next);
            }
            let place = dst.wrapping_add(at);
            // SAFETY: `at + len <= n` elements may be written there; `piece` is private and holds `len`.
            unsafe { std::ptr::copy_nonoverlapping(piece.as_ptr(), place, len) };
            at += len;
        }
    }
}

// SAFETY: as the operator that is referred to.
unsafe impl<T: Element, O: Operator<T>> Operator<T> for &O {
    fn is_commutative(&self) -> bool {
        (**self).is_commutative()
    }

    fn code(&self) -> u8 {
        (**self).code()
    }

    unsafe fn fold(&self, dst: *mut T, operands: &[*const T], n: usize) {
        // SAFETY: by contract.
        unsafe { (**self).fold(dst, operands, n) }
    }

    unsafe fn fold_to(&self, dsts: &[*mut T], operands: &[*const T], n: usize) {
        // SAFETY: by contract.
        unsafe { (**self).fold_to(dsts, operands, n) }
    }

    unsafe fn fold_from(&self, dsts: &[*mut T], operands: &[*const T], far: Far, n: usize) {
        // SAFETY: by contract.
        unsafe { (**self).fold_from(dsts, operands, far, n) }
    }
}
