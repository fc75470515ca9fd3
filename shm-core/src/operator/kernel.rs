//! The loops: fold several operands in one pass, a register-sized block at a time.
//!
//! A block of each operand is loaded whole before the block of the result is stored, so that the result may be one of
//! the operands; it is stored to several places if it is wanted in several. The block is a local array that the
//! compiler keeps in vector registers; the same body is compiled for the base instruction set and for AVX2 and AVX-512,
//! and chosen once by what the machine has.

use std::marker::PhantomData;

use super::Hint;
#[cfg(target_arch = "x86_64")]
use super::Loads;
use super::order::{Block, fold_whole};

/// Bytes of a block: four 512-bit or eight 256-bit registers.
const BLOCK: usize = 256;

/// An associative operation on two elements.
pub(super) trait Scalar<T> {
    /// Whether blocks are half as long: of 32 choices between 64-bit integers the compiler makes shuffles, of 16 it
    /// makes vector instructions.
    const NARROW: bool = false;

    fn combine(left: T, right: T) -> T;
}

/// `dst[i] = operands[0][i] op operands[1][i] op ..`.
///
/// # Safety
/// As [`Operator::fold`](super::Operator::fold).
#[inline]
pub(super) unsafe fn fold<T: Copy, S: Scalar<T>>(dst: *mut T, operands: &[*const T], n: usize) {
    // A single element, the commonest reduction there is, is folded before a loop over elements would have been set up.
    if n == 1 {
        // SAFETY: by contract.
        return unsafe { fold_one::<T, S>(&[dst], operands, 0) };
    }
    // SAFETY: by contract.
    unsafe { fold_several::<T, S>(&[dst], operands, None, n) }
}

/// [`fold`] with the result stored in several places, each of which may be one of the operands.
///
/// # Safety
/// As [`Operator::fold_to`](super::Operator::fold_to).
#[inline]
pub(super) unsafe fn fold_to<T: Copy, S: Scalar<T>>(dsts: &[*mut T], operands: &[*const T], n: usize) {
    // SAFETY: by contract.
    unsafe { fold_several::<T, S>(dsts, operands, None, n) }
}

/// [`fold_to`], where one of the operands lies in another core's caches.
///
/// # Safety
/// As [`Operator::fold_from`](super::Operator::fold_from).
#[inline]
pub(super) unsafe fn fold_from<T: Copy, S: Scalar<T>>(dsts: &[*mut T], operands: &[*const T], hint: Hint, n: usize) {
    // SAFETY: by contract.
    unsafe { fold_several::<T, S>(dsts, operands, Some(hint), n) }
}

/// Kept out of [`fold`], which then needs no stack of its own.
///
/// # Safety
/// As [`fold`].
#[inline(never)]
unsafe fn fold_several<T: Copy, S: Scalar<T>>(dsts: &[*mut T], operands: &[*const T], hint: Option<Hint>, n: usize) {
    // A few elements are folded before a wider loop would have been entered.
    if n * size_of::<T>() < BLOCK {
        // SAFETY: by contract.
        return unsafe { fold_rest::<T, S>(dsts, operands, 0, n) };
    }
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
        {
            // SAFETY: the features were just detected; the rest by contract.
            return unsafe { fold_avx512::<T, S>(dsts, operands, hint, n) };
        }
        if is_x86_feature_detected!("avx2") {
            // Asking ahead gains nothing there, and costs 6 to 10 percent of reductions and allreduces of 4 and 16 KiB
            // (AMD EPYC, Zen 3).
            let hint = hint.filter(|hint| hint.loads == Loads::Abreast);
            // SAFETY: the feature was just detected; the rest by contract.
            return unsafe { fold_avx2::<T, S>(dsts, operands, hint, n) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = hint;
    // SAFETY: by contract.
    unsafe { fold_here::<T, S>(dsts, operands, None, n) }
}

/// # Safety
/// As [`fold`], on a machine with these features.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2")]
unsafe fn fold_avx512<T: Copy, S: Scalar<T>>(dsts: &[*mut T], operands: &[*const T], hint: Option<Hint>, n: usize) {
    // SAFETY: by contract.
    unsafe { fold_here::<T, S>(dsts, operands, hint, n) }
}

/// # Safety
/// As [`fold`], on a machine with this feature.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn fold_avx2<T: Copy, S: Scalar<T>>(dsts: &[*mut T], operands: &[*const T], hint: Option<Hint>, n: usize) {
    // SAFETY: by contract.
    unsafe { fold_here::<T, S>(dsts, operands, hint, n) }
}

/// One arm for each size of element: the length of a block must be a constant. So must the conditions be, or every arm
/// is compiled for every type.
///
/// # Safety
/// As [`fold`].
#[inline(always)]
unsafe fn fold_here<T: Copy, S: Scalar<T>>(dsts: &[*mut T], operands: &[*const T], hint: Option<Hint>, n: usize) {
    if const { size_of::<T>() == 1 } {
        // SAFETY: by contract.
        unsafe { fold_blocks::<T, S, BLOCK>(dsts, operands, hint, n) }
    } else if const { size_of::<T>() == 2 } {
        // SAFETY: by contract.
        unsafe { fold_blocks::<T, S, { BLOCK / 2 }>(dsts, operands, hint, n) }
    } else if const { size_of::<T>() == 4 } {
        // SAFETY: by contract.
        unsafe { fold_blocks::<T, S, { BLOCK / 4 }>(dsts, operands, hint, n) }
    } else if const { size_of::<T>() == 8 && !S::NARROW } {
        // SAFETY: by contract.
        unsafe { fold_blocks::<T, S, { BLOCK / 8 }>(dsts, operands, hint, n) }
    } else {
        // SAFETY: by contract.
        unsafe { fold_blocks::<T, S, { BLOCK / 16 }>(dsts, operands, hint, n) }
    }
}

/// # Safety
/// As [`fold`].
#[inline(always)]
unsafe fn fold_blocks<T: Copy, S: Scalar<T>, const N: usize>(
    dsts: &[*mut T],
    operands: &[*const T],
    hint: Option<Hint>,
    n: usize,
) {
    // SAFETY: by contract.
    let folded = unsafe { fold_whole::<T, Each<S>, N>(dsts, operands, hint, n) };
    // SAFETY: by contract.
    unsafe { fold_rest::<T, S>(dsts, operands, folded, n) }
}

/// Blocks that are combined element by element.
struct Each<S>(PhantomData<S>);

impl<T: Copy, S: Scalar<T>, const N: usize> Block<T, N> for Each<S> {
    #[inline(always)]
    unsafe fn fold(dsts: &[*mut T], operands: &[*const T], at: usize) {
        let (first, others) = operands.split_first().expect("there is at least one operand");
        // SAFETY: `at + N` elements of the operand.
        let mut block = unsafe { load::<T, N>(*first, at) };
        for &operand in others {
            // SAFETY: the same.
            let next = unsafe { load::<T, N>(operand, at) };
            for (left, right) in block.iter_mut().zip(next) {
                *left = S::combine(*left, right);
            }
        }
        for dst in dsts {
            let place = dst.wrapping_add(at).cast::<[T; N]>();
            // SAFETY: `at + N` elements may be written there.
            unsafe { place.write(block) };
        }
    }
}

/// Folds the elements from `at` on, one by one.
///
/// # Safety
/// As [`fold`].
#[inline(always)]
unsafe fn fold_rest<T: Copy, S: Scalar<T>>(dsts: &[*mut T], operands: &[*const T], at: usize, n: usize) {
    for at in at..n {
        // SAFETY: `at < n`; the rest by contract.
        unsafe { fold_one::<T, S>(dsts, operands, at) };
    }
}

/// Folds the element at `at`.
///
/// # Safety
/// As [`fold`], with more than `at` elements.
#[inline(always)]
unsafe fn fold_one<T: Copy, S: Scalar<T>>(dsts: &[*mut T], operands: &[*const T], at: usize) {
    let (first, others) = operands.split_first().expect("there is at least one operand");
    // SAFETY: there are more than `at` elements.
    let [mut value] = unsafe { load::<T, 1>(*first, at) };
    for &operand in others {
        // SAFETY: the same.
        let [next] = unsafe { load::<T, 1>(operand, at) };
        value = S::combine(value, next);
    }
    for dst in dsts {
        let place = dst.wrapping_add(at);
        // SAFETY: more than `at` elements may be written there.
        unsafe { place.write(value) };
    }
}

/// # Safety
/// `from` holds `N` elements from `at` on, which nobody writes meanwhile.
#[inline(always)]
unsafe fn load<T: Copy, const N: usize>(from: *const T, at: usize) -> [T; N] {
    let place = from.wrapping_add(at).cast::<[T; N]>();
    // SAFETY: by contract.
    unsafe { place.read() }
}

#[cfg(test)]
mod tests {
    use super::super::Sum;
    use super::super::order::PARTED;
    use super::*;

    /// Differs with the order of its operands, and of all elements.
    struct Weighed;

    impl Scalar<u64> for Weighed {
        const NARROW: bool = true;

        fn combine(left: u64, right: u64) -> u64 {
            left.wrapping_mul(3).wrapping_add(right)
        }
    }

    impl Scalar<u8> for Weighed {
        fn combine(left: u8, right: u8) -> u8 {
            left.wrapping_mul(3).wrapping_add(right)
        }
    }

    impl Scalar<[u64; 2]> for Weighed {
        fn combine(left: [u64; 2], right: [u64; 2]) -> [u64; 2] {
            [left[0].wrapping_mul(3).wrapping_add(right[1]), left[1] ^ right[0]]
        }
    }

    /// A fold with a hint.
    type Folds<T> = unsafe fn(&[*mut T], &[*const T], Hint, usize);

    /// Whichever operand is far, and none, and however it is loaded: the same, at lengths around those from which its
    /// lines are asked for, runs begin, and blocks are left behind them, to one result and to two. The first result
    /// takes the place of the second operand, too.
    fn makes_no_difference<T: Copy + PartialEq, S: Scalar<T>>(value: fn(usize) -> T) {
        let mut folds: Vec<Folds<T>> = vec![fold_from::<T, S>];
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            folds.push(|dsts, operands, hint, n| {
                // SAFETY: that of the caller; the feature was just detected.
                unsafe { fold_avx2::<T, S>(dsts, operands, Some(hint), n) }
            });
        }
        let asking = [0, 7, 3072, 6144, usize::MAX].map(Loads::Asking);
        let block = BLOCK / size_of::<T>().min(16);
        let runs = [4, 8].map(|times| times * PARTED * block).into_iter().flat_map(|runs| {
            [0, 1, block - 1, block, block + 1, 3 * block + 7]
                .into_iter()
                .flat_map(move |rest| [runs + rest, runs - rest])
        });
        let lengths: Vec<_> = [0, 1, 2, 97, 3072, 3103, 3104, 3105, 3136, 6149].into_iter().chain(runs).collect();
        for (fold, loads) in
            folds.iter().flat_map(|fold| asking.into_iter().chain([Loads::Abreast]).map(move |l| (fold, l)))
        {
            for &n in &lengths {
                for (operand, results) in (0..3).flat_map(|operand| [(operand, 1), (operand, 2)]) {
                    let [a, mut own, mut other] =
                        [1, 2, 3].map(|by| (0..=n).map(|i| value(i * 4 + by)).collect::<Vec<T>>());
                    let (mut wanted, mut beside) = (own.clone(), other.clone());
                    for i in 0..n {
                        wanted[i] = S::combine(a[i], own[i]);
                        beside[i] = if results == 2 { wanted[i] } else { other[i] };
                    }
                    let (operands, dsts) = ([a.as_ptr(), own.as_ptr()], [own.as_mut_ptr(), other.as_mut_ptr()]);
                    // SAFETY: `n` elements are at each place; what overlaps is an operand and its result.
                    unsafe { fold(&dsts[..results], &operands, Hint { operand, loads }, n) };
                    assert!(
                        own == wanted && other == beside,
                        "{n} elements, {operand} by {loads:?}, {results} results"
                    );
                }
            }
        }
    }

    #[test]
    fn which_operand_is_far_makes_no_difference() {
        makes_no_difference::<u64, Sum>(|i| i as u64);
        makes_no_difference::<u64, Weighed>(|i| i as u64);
        makes_no_difference::<u8, Weighed>(|i| (i * 7 % 251) as u8);
        makes_no_difference::<[u64; 2], Weighed>(|i| [i as u64, !(i as u64)]);
    }
}
