//! What a reduction combines with: predefined operators and user-defined ones.
//!
//! An operator folds the contributions of several ranks in one pass: each element of each contribution is loaded
//! once, the result stored once, whatever their number.
//!
//! # Half precision
//!
//! Of `f16` and `bf16` a fold takes sums and products in `f32`, from left to right, and rounds the result once, to
//! nearest, ties to even. What goes on to another rank is of the element's type again. So a result is rounded once where
//! one fold has all contributions: in lines up to the table's `flat_ranks`, in exchanges and shares, in reduce-scatters,
//! in scans of one slice or over two ranks, and in reductions through cells whose tree is flat. It is rounded once more
//! at each inner rank of a tree between a contribution and the root, at each hop of a longer scan along its chain (of
//! rank `r` as often as it has ranks before it), and across nodes once on each node and at each fold between nodes.
//!
//! With `D` folds between a contribution and the result (the depth of the tree: 3 of 8 ranks in a binary one, 8 of 256)
//! a sum `s` of `x`s is off by at most `((1+u)^D - 1) (|x| + |x'| + ..)`, or about `D u` of the sum of magnitudes, with
//! `u = 2^-11` of `f16` and `2^-8` of `bf16`; by `u |s|` where there is one fold. The additions in `f32`, one fewer than
//! there are ranks, add as many times `2^-24` of the magnitudes at most. A product, as long as no partial one leaves the
//! range of normal numbers, is off by that share of its own magnitude. A partial sum of `f16` beyond 65504 becomes
//! infinite where it is rounded, though the whole sum may have been finite.
//!
//! Operators on halves [are wide](Operator::is_wide): they have no [relays](crate::Links::in_relay), in which each rank would
//! round.
//!
//! `PHALANX_ALGORITHM=strict` has every reduction on a node take one fold. Least and greatest values are never rounded.

mod builtin;
mod halves;
mod kernel;
mod order;
mod pieces;
mod user;

pub use builtin::{BitAnd, BitOr, BitXor, LogicalAnd, LogicalOr, LogicalXor, Max, MaxLoc, Min, MinLoc, Product, Sum};
pub use user::User;

use std::num::NonZeroUsize;

use crate::counts::note;
use crate::element::{Element, type_number};
use crate::error::{Error, Result};
use crate::segment::layout::LINE;
use crate::select::Vector;

/// An operand of a fold that was stored by another core, as a rule, and lies in its caches: a hint how to load it, by
/// which no result changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hint {
    /// Its index among the operands. From one that none of them has nothing follows.
    pub operand: usize,
    /// How it is best loaded.
    pub loads: Loads,
}

/// How a fold best loads an operand that another core has stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Loads {
    /// In the order of addresses; its lines are asked for so many bytes ahead of what is being folded.
    Asking(usize),
    /// Four runs of the operands abreast, up to a KiB of each in turn, so that more lines are on their way at once.
    Abreast,
}

/// An operator on vectors of `T`.
///
/// Predefined ones are values of [`Sum`], [`Max`] and so on; [`User`] makes one of a closure. One that is chosen when
/// the program runs is a `&dyn Operator<T>`, for which a call is compiled once for each `T`.
///
/// # Safety
/// [`fold`](Operator::fold) must write all `n` elements of the result: ranks take them for values of `T`.
pub unsafe trait Operator<T: Element> {
    /// Whether the order of the operands may be changed. If not, they are combined in rank order.
    fn is_commutative(&self) -> bool;

    /// A number that goes into the check that all ranks made the same call.
    fn code(&self) -> u8;

    /// Whether operands that are folded at once come to other results than one after the other, as those do that are
    /// combined in a wider type and rounded once. Where they do a reduction folds many at once, though
    /// [relays](crate::Links::in_relay) of ranks that share a core would take less time. It is part of the check that all
    /// ranks made the same call, as the code is.
    fn is_wide(&self) -> bool {
        false
    }

    /// How many elements of a vector it takes for one: vectors are cut between such groups alone, their lengths must be
    /// multiples of it (calls refuse others, by [`Blocks`](crate::Error::Blocks)), and so is `n` below. So vectors of
    /// structures whose size is known when the program runs are vectors of their bytes. It is the same on all ranks,
    /// and part of the check that all made the same call.
    fn group(&self) -> NonZeroUsize {
        NonZeroUsize::MIN
    }

    /// `dst[i] = operands[0][i] op operands[1][i] op ..`, from left to right, for `n` elements.
    ///
    /// # Safety
    /// There is at least one operand; each points to `n` initialised elements, aligned for `T`, as is `dst`, where `n`
    /// elements may be written. `dst` may be one of the operands; otherwise nothing overlaps it, and nobody
    /// writes to the operands or touches `dst` during the call.
    unsafe fn fold(&self, dst: *mut T, operands: &[*const T], n: usize);

    /// [`fold`](Operator::fold) with the result stored in each of `dsts`, of which there is at least one.
    ///
    /// Unless it is provided, pieces are folded to the first place, and copied to the others while they are in a near
    /// cache.
    ///
    /// # Safety
    /// As for `fold`; each of `dsts` may be one of the operands, and no two overlap.
    unsafe fn fold_to(&self, dsts: &[*mut T], operands: &[*const T], n: usize) {
        // SAFETY: by contract.
        unsafe { pieces::fold_to(self, dsts, operands, n) }
    }

    /// [`fold_to`](Operator::fold_to), with the same results, where an operand is far.
    ///
    /// # Safety
    /// As for `fold_to`.
    unsafe fn fold_from(&self, dsts: &[*mut T], operands: &[*const T], hint: Hint, n: usize) {
        let _ = hint;
        // SAFETY: by contract.
        unsafe { self.fold_to(dsts, operands, n) }
    }
}

/// Refuses a vector of `count` elements that is not made of whole [groups](Operator::group) of so many, on this rank of
/// so many.
#[doc(hidden)]
#[inline]
pub fn whole_groups(group: NonZeroUsize, count: usize, rank: usize, size: usize) -> Result<()> {
    if count.is_multiple_of(group.get()) {
        return Ok(());
    }
    let (what, advice) =
        ("elements of a vector whose operator takes several for one", "; give whole groups, as the operator has them");
    Err(Error::Blocks { rank, size, what, found: count, expected: count - count % group, advice })
}

/// An operator with its element type forgotten, for protocol code that moves bytes.
#[derive(Clone, Copy)]
pub(crate) struct Fold<'a> {
    /// Bytes of an element, or of a group of them that the operator takes for one.
    pub element: usize,
    pub align: usize,
    /// Tells element types apart, and wide operators from others.
    pub kind: u64,
    pub commutative: bool,
    pub wide: bool,
    pub code: u8,
    operator: *const (),
    call: unsafe fn(*const (), *mut u8, &[*const u8], usize),
    call_to: unsafe fn(*const (), &[*mut u8], &[*const u8], Option<Hint>, usize),
    lives: std::marker::PhantomData<&'a ()>,
}

impl<'a> Fold<'a> {
    pub fn new<T: Element, O: Operator<T>>(operator: &'a O) -> Self {
        /// # Safety
        /// `operator` points to a live `O`; the rest as for `Operator::<T>::fold` of the elements in `bytes` bytes.
        unsafe fn call<T: Element, O: Operator<T>>(
            operator: *const (),
            dst: *mut u8,
            operands: &[*const u8],
            bytes: usize,
        ) {
            // Divided here, where the divisor is a constant. Zero-sized elements have nothing to fold.
            let n = bytes.checked_div(size_of::<T>()).unwrap_or(0);
            // SAFETY: by contract it points to a live `O`.
            let operator = unsafe { &*operator.cast::<O>() };
            // SAFETY: pointers to bytes and to elements are laid out alike.
            let operands = unsafe { std::slice::from_raw_parts(operands.as_ptr().cast::<*const T>(), operands.len()) };
            // SAFETY: by contract as `fold` wants it.
            unsafe { operator.fold(dst.cast(), operands, n) }
        }
        /// # Safety
        /// The same, for `Operator::<T>::fold_to`, or `fold_from` where an operand is far.
        unsafe fn call_to<T: Element, O: Operator<T>>(
            operator: *const (),
            dsts: &[*mut u8],
            operands: &[*const u8],
            hint: Option<Hint>,
            bytes: usize,
        ) {
            let n = bytes.checked_div(size_of::<T>()).unwrap_or(0);
            // SAFETY: by contract it points to a live `O`.
            let operator = unsafe { &*operator.cast::<O>() };
            // SAFETY: pointers to bytes and to elements are laid out alike.
            let operands = unsafe { std::slice::from_raw_parts(operands.as_ptr().cast::<*const T>(), operands.len()) };
            // SAFETY: the same.
            let dsts = unsafe { std::slice::from_raw_parts(dsts.as_ptr().cast::<*mut T>(), dsts.len()) };
            match hint {
                // SAFETY: by contract as `fold_to` wants it.
                None => unsafe { operator.fold_to(dsts, operands, n) },
                // SAFETY: the same.
                Some(hint) => unsafe { operator.fold_from(dsts, operands, hint, n) },
            }
        }
        const { assert!(align_of::<T>() <= LINE, "an element of a reduction is aligned to a cache line at most") };
        Self {
            element: size_of::<T>().saturating_mul(operator.group().get()),
            align: align_of::<T>(),
            // Who takes an operator for a wide one looks for payload elsewhere.
            kind: type_number::<T>() ^ u64::from(operator.is_wide()),
            commutative: operator.is_commutative(),
            wide: operator.is_wide(),
            code: operator.code(),
            operator: std::ptr::from_ref(operator).cast(),
            call: call::<T, O>,
            call_to: call_to::<T, O>,
            lives: std::marker::PhantomData,
        }
    }

    /// The elements in so many bytes; none, where they have no bytes.
    #[inline]
    pub fn count(&self, bytes: usize) -> usize {
        bytes.checked_div(self.element).unwrap_or(0)
    }

    /// What a call of `bytes` bytes moves.
    #[inline]
    pub fn vector(&self, bytes: usize) -> Vector {
        Vector { bytes, element: self.element, align: self.align, commutative: self.commutative }
    }

    /// Folds `bytes` bytes (a multiple of the element's) of each operand into `dst`.
    ///
    /// # Safety
    /// As [`Operator::fold`], with `bytes / element` elements of the type this was made for.
    #[inline]
    pub unsafe fn apply(&self, dst: *mut u8, operands: &[*const u8], bytes: usize) {
        operands.iter().for_each(|&operand| note::loaded(operand, bytes));
        note::stored(dst, bytes);
        // SAFETY: `operator` lives for 'a and is the `O` that `call` was made for; the rest by contract.
        unsafe { (self.call)(self.operator, dst, operands, bytes) }
    }

    /// [`apply`](Fold::apply) with the result stored in each of `dsts`, where an operand may lie in another core's
    /// caches.
    ///
    /// # Safety
    /// As [`Operator::fold_from`], with `bytes / element` elements of the type this was made for.
    #[inline]
    pub unsafe fn apply_to(&self, dsts: &[*mut u8], operands: &[*const u8], hint: Option<Hint>, bytes: usize) {
        operands.iter().for_each(|&operand| note::loaded(operand, bytes));
        dsts.iter().for_each(|&dst| note::stored(dst, bytes));
        // SAFETY: `operator` lives for 'a and is the `O` that `call_to` was made for; the rest by contract.
        unsafe { (self.call_to)(self.operator, dsts, operands, hint, bytes) }
    }
}
