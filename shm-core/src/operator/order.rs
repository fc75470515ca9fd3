//! In which order blocks are folded, and which lines of an operand are asked for meanwhile.

use super::{Hint, Loads};
use crate::abreast;
use crate::ask;
use crate::segment::layout::LINE;

/// Blocks of a run that are folded before the next run has its turn.
pub(super) const PARTED: usize = 4;

/// How a block of `N` elements is folded.
pub(super) trait Block<T, const N: usize> {
    /// Folds the block at `at`: it is loaded whole of all operands before any of it is stored.
    ///
    /// # Safety
    /// As [`Operator::fold_to`](super::Operator::fold_to), with `at + N` elements at least, on a machine that has the
    /// instructions which these blocks are folded with.
    unsafe fn fold(dsts: &[*mut T], operands: &[*const T], at: usize);
}

/// Folds all whole blocks, and returns the elements of these.
///
/// What two ranks do has loops of its own, whose numbers of operands and results the compiler knows: of two operands to
/// one result, and to two. Where each block goes through lists of both, fewer loads are under way at once.
///
/// # Safety
/// As [`Operator::fold_to`](super::Operator::fold_to), on a machine that has the instructions of `B`.
#[inline(always)]
pub(super) unsafe fn fold_whole<T: Copy, B: Block<T, N>, const N: usize>(
    dsts: &[*mut T],
    operands: &[*const T],
    hint: Option<Hint>,
    n: usize,
) -> usize {
    let order = || hint.and_then(|hint| Some(Order::of(*operands.get(hint.operand)?, hint.loads, (N, n))));
    match (dsts, operands) {
        // SAFETY: by contract.
        (&[dst], &[left, right]) => unsafe { fold_in::<T, B, N>(&[dst], &[left, right], order(), n) },
        // SAFETY: by contract.
        (&[dst, other], &[left, right]) => unsafe { fold_in::<T, B, N>(&[dst, other], &[left, right], order(), n) },
        // SAFETY: by contract.
        _ => unsafe { fold_in::<T, B, N>(dsts, operands, None, n) },
    }
}

/// How blocks follow each other, where an operand is far.
enum Order<T> {
    /// Beside each block one of these is asked for, up to the one that begins at `until`.
    Asking { ahead: *const T, until: usize },
    /// Four runs [abreast].
    Abreast,
}

impl<T> Order<T> {
    /// That of `n` elements of this operand, in blocks of `block` elements; of the first of those that are asked for it
    /// asks for all.
    #[inline(always)]
    fn of(operand: *const T, loads: Loads, (block, n): (usize, usize)) -> Self {
        match loads {
            Loads::Asking(bytes) => {
                ask::all_to_read(operand.cast(), bytes.min(n * size_of::<T>()));
                let ahead = bytes / size_of::<T>();
                // Nothing is asked for past the end: that may be another's to store to.
                let until = (n + 1).saturating_sub(ahead.saturating_add(block));
                Self::Asking { ahead: operand.wrapping_add(ahead), until }
            }
            Loads::Abreast => Self::Abreast,
        }
    }
}

/// Folds all whole blocks, in this order, and returns the elements of these. What does not go abreast goes upwards.
///
/// # Safety
/// As [`fold_whole`].
#[inline(always)]
unsafe fn fold_in<T: Copy, B: Block<T, N>, const N: usize>(
    dsts: &[*mut T],
    operands: &[*const T],
    order: Option<Order<T>>,
    n: usize,
) -> usize {
    let mut at = match order {
        // SAFETY: by contract.
        Some(Order::Abreast) => unsafe { fold_abreast::<T, B, N>(dsts, operands, n) },
        _ => 0,
    };
    while at + N <= n {
        if let Some(Order::Asking { ahead, until }) = order
            && at < until
        {
            let from = ahead.wrapping_add(at).cast::<u8>();
            (0..N * size_of::<T>()).step_by(LINE).for_each(|line| ask::to_read(from.wrapping_add(line)));
        }
        // SAFETY: `at + N <= n`.
        unsafe { B::fold(dsts, operands, at) };
        at += N;
    }
    at
}

/// Folds whole blocks [abreast], but for those that are left at the end, and returns the elements of these.
///
/// # Safety
/// As [`fold_whole`].
#[inline(always)]
unsafe fn fold_abreast<T: Copy, B: Block<T, N>, const N: usize>(
    dsts: &[*mut T],
    operands: &[*const T],
    n: usize,
) -> usize {
    let (parts, walked) = abreast::walk(n, PARTED * N);
    for part in parts {
        for block in 0..PARTED {
            // SAFETY: all blocks of a part lie within `n` elements.
            unsafe { B::fold(dsts, operands, part + block * N) };
        }
    }
    walked
}
