//! User-defined operators: a closure over slices.

use std::mem::MaybeUninit;
use std::num::NonZeroUsize;

use super::{Hint, Operator};
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

/// Where it is made, aligned as an element of a reduction may be.
#[repr(C, align(64))]
struct Room(MaybeUninit<[u8; PIECE]>);

impl<F> User<F> {
    /// Folds `n` elements to all of `dsts`, at most `most` at a time. The results may be operands, so they are made
    /// aside, in `piece`.
    ///
    /// # Safety
    /// As [`Operator::fold_to`]; `piece` is private, aligned for `T`, and has room for `most` elements, of which there
    /// is at least one.
    unsafe fn fold_aside<T: Element>(
        &self,
        (piece, most): (*mut T, usize),
        dsts: &[*mut T],
        operands: &[*const T],
        n: usize,
    ) where
        F: Fn(&mut [T], &[T]),
    {
        let (first, others) = operands.split_first().expect("there is at least one operand");
        let mut at = 0;
        while at < n {
            let len = most.min(n - at);
            // SAFETY: `at + len <= n` elements, all initialised, which nobody writes meanwhile; `len <= most`, and the
            // piece is private.
            unsafe { std::ptr::copy_nonoverlapping(first.wrapping_add(at), piece, len) };
            // SAFETY: `len` elements were just written there.
            let made = unsafe { std::slice::from_raw_parts_mut(piece, len) };
            for operand in others {
                // SAFETY: as for the first operand.
                let next = unsafe { std::slice::from_raw_parts(operand.wrapping_add(at), len) };
                (self.combine)(made, next);
            }
            for dst in dsts {
                // SAFETY: `at + len <= n` elements may be written there; the piece holds `len`.
                unsafe { std::ptr::copy_nonoverlapping(made.as_ptr(), dst.wrapping_add(at), len) };
            }
            at += len;
        }
    }
}

// SAFETY: every piece of the result is made from a copy of the first operand, and written.
unsafe impl<T: Element, F: Fn(&mut [T], &[T])> Operator<T> for User<F> {
    fn is_commutative(&self) -> bool {
        self.commutative
    }

    fn code(&self) -> u8 {
        if self.commutative { 0xfe } else { 0xff }
    }

    unsafe fn fold(&self, dst: *mut T, operands: &[*const T], n: usize) {
        // SAFETY: by contract.
        unsafe { self.fold_to(&[dst], operands, n) }
    }

    unsafe fn fold_to(&self, dsts: &[*mut T], operands: &[*const T], n: usize) {
        if size_of::<T>() > PIECE || align_of::<T>() > align_of::<Room>() {
            let mut piece: Vec<T> = Vec::with_capacity(1);
            // SAFETY: by contract; the vector has room for one element.
            return unsafe { self.fold_aside((piece.as_mut_ptr(), 1), dsts, operands, n) };
        }
        let mut room = Room(MaybeUninit::uninit());
        let most = PIECE / size_of::<T>().max(1);
        // SAFETY: by contract; so many elements fit there, and it is aligned for them.
        unsafe { self.fold_aside((room.0.as_mut_ptr().cast(), most), dsts, operands, n) }
    }
}

// SAFETY: as the operator that is referred to.
unsafe impl<T: Element, O: Operator<T> + ?Sized> Operator<T> for &O {
    fn is_commutative(&self) -> bool {
        (**self).is_commutative()
    }

    fn code(&self) -> u8 {
        (**self).code()
    }

    fn is_wide(&self) -> bool {
        (**self).is_wide()
    }

    fn group(&self) -> NonZeroUsize {
        (**self).group()
    }

    unsafe fn fold(&self, dst: *mut T, operands: &[*const T], n: usize) {
        // SAFETY: by contract.
        unsafe { (**self).fold(dst, operands, n) }
    }

    unsafe fn fold_to(&self, dsts: &[*mut T], operands: &[*const T], n: usize) {
        // SAFETY: by contract.
        unsafe { (**self).fold_to(dsts, operands, n) }
    }

    unsafe fn fold_from(&self, dsts: &[*mut T], operands: &[*const T], hint: Hint, n: usize) {
        // SAFETY: by contract.
        unsafe { (**self).fold_from(dsts, operands, hint, n) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An element that fits no piece, and one that is aligned further than a piece is.
    type Large = [u32; PIECE / 4 + 3];
    #[derive(Clone, Copy, Debug, PartialEq, bytemuck::NoUninit)]
    #[repr(C, align(128))]
    struct Apart([u32; 32]);

    /// Folds to one place and several, in place or not, as a loop over elements and operands does.
    fn is_folded<T: Element + PartialEq>(lengths: &[usize], value: fn(u32) -> T, combine: fn(T, T) -> T) {
        let operator = User::ordered(|left: &mut [T], right: &[T]| {
            assert_eq!(left.len(), right.len());
            left.iter_mut().zip(right).for_each(|(left, &right)| *left = combine(*left, right));
        });
        for &n in lengths {
            for (operands, results, in_place) in
                [(1, 1, false), (2, 1, true), (2, 2, false), (3, 3, true), (5, 2, true)]
            {
                let filled = |place: usize| (0..=n).map(|i| value((place * 7919 + i * 31) as u32)).collect::<Vec<T>>();
                let mut places: Vec<Vec<T>> = (0..operands + results).map(filled).collect();
                let pointers: Vec<*mut T> = places.iter_mut().map(Vec::as_mut_ptr).collect();
                let begin = if in_place { operands - 1 } else { operands };
                let from: Vec<*const T> = pointers[..operands].iter().map(|at| at.cast_const()).collect();
                // SAFETY: `n` elements are at each place; what overlaps is an operand and its result.
                unsafe { operator.fold_to(&pointers[begin..begin + results], &from, n) };
                for (at, place) in places.iter().enumerate() {
                    let is_result = (begin..begin + results).contains(&at);
                    let before = filled(at);
                    for i in 0..=n {
                        let all = (0..operands).map(|operand| value((operand * 7919 + i * 31) as u32));
                        let wanted = if is_result && i < n { all.reduce(combine).unwrap() } else { before[i] };
                        assert!(place[i] == wanted, "{i} of {n} at {at}: {operands} to {results}");
                    }
                }
            }
        }
    }

    #[test]
    fn all_places_get_the_fold() {
        is_folded::<u16>(&[0, 1, 2047, 2048, 2049, 5000], |i| i as u16, |a, b| a.wrapping_mul(3) ^ b);
        is_folded::<[u8; 7]>(&[1, 585, 586, 1200], |i| [i as u8; 7], |a, b| [a[6].wrapping_mul(3) ^ b[0]; 7]);
        is_folded::<()>(&[0, 1, 9000], |_| (), |(), ()| ());
    }

    #[test]
    fn elements_that_fit_no_piece_are_folded() {
        is_folded::<Large>(&[0, 1, 3], |i| [i; PIECE / 4 + 3], |a, b| a.map(|part| part.wrapping_mul(3) ^ b[0]));
        let mixed = |a: Apart, b: Apart| {
            assert!(std::ptr::from_ref(&a).is_aligned());
            Apart(a.0.map(|part| part.wrapping_mul(3) ^ b.0[0]))
        };
        is_folded::<Apart>(&[0, 1, 50], |i| Apart([i; 32]), mixed);
    }
}
