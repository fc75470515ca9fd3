//! Half precision: a block of each operand is widened, combined in `f32`, and rounded once, to nearest, ties to even; so
//! it is stored to each place where it is wanted.

mod convert;

use std::marker::PhantomData;

use convert::{BLOCK, Convert, Half};

use super::Hint;
#[cfg(target_arch = "x86_64")]
use super::Loads;
use super::kernel::Scalar;
use super::order::{Block, fold_whole};

/// # Safety
/// As [`Operator::fold`](super::Operator::fold).
#[inline]
pub(super) unsafe fn fold<H: Half, S: Scalar<f32>>(dst: *mut H, operands: &[*const H], n: usize) {
    // SAFETY: by contract.
    unsafe { fold_several::<H, S>(&[dst], operands, None, n) }
}

/// [`fold`] with the result stored in several places, each of which may be one of the operands.
///
/// # Safety
/// As [`Operator::fold_to`](super::Operator::fold_to).
#[inline]
pub(super) unsafe fn fold_to<H: Half, S: Scalar<f32>>(dsts: &[*mut H], operands: &[*const H], n: usize) {
    // SAFETY: by contract.
    unsafe { fold_several::<H, S>(dsts, operands, None, n) }
}

/// [`fold_to`], where one of the operands lies in another core's caches.
///
/// # Safety
/// As [`Operator::fold_from`](super::Operator::fold_from).
#[inline]
pub(super) unsafe fn fold_from<H: Half, S: Scalar<f32>>(dsts: &[*mut H], operands: &[*const H], hint: Hint, n: usize) {
    // SAFETY: by contract.
    unsafe { fold_several::<H, S>(dsts, operands, Some(hint), n) }
}

/// # Safety
/// As [`fold_to`].
#[inline(never)]
unsafe fn fold_several<H: Half, S: Scalar<f32>>(dsts: &[*mut H], operands: &[*const H], hint: Option<Hint>, n: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
        {
            // SAFETY: the features were just detected; the rest by contract.
            return unsafe { fold_avx512::<H, S>(dsts, operands, hint, n) };
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("f16c") {
            // Nothing is asked for there, as of other elements ([`kernel`](super::kernel)).
            let hint = hint.filter(|hint| hint.loads == Loads::Abreast);
            // SAFETY: the features were just detected; the rest by contract.
            return unsafe { fold_avx2::<H, S>(dsts, operands, hint, n) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = hint;
    // SAFETY: plain instructions; the rest by contract.
    unsafe { fold_blocks::<H, S, H::Plain>(dsts, operands, None, n) }
}

/// # Safety
/// As [`fold_to`], on a machine with these features.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,f16c")]
unsafe fn fold_avx512<H: Half, S: Scalar<f32>>(dsts: &[*mut H], operands: &[*const H], hint: Option<Hint>, n: usize) {
    // SAFETY: by contract.
    unsafe { fold_blocks::<H, S, H::Avx512>(dsts, operands, hint, n) }
}

/// # Safety
/// As [`fold_to`], on a machine with these features.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,f16c")]
unsafe fn fold_avx2<H: Half, S: Scalar<f32>>(dsts: &[*mut H], operands: &[*const H], hint: Option<Hint>, n: usize) {
    // SAFETY: by contract.
    unsafe { fold_blocks::<H, S, H::Avx2>(dsts, operands, hint, n) }
}

/// # Safety
/// As [`fold_to`], on a machine with the instructions of `C`.
#[inline(always)]
unsafe fn fold_blocks<H: Half, S: Scalar<f32>, C: Convert<H>>(
    dsts: &[*mut H],
    operands: &[*const H],
    hint: Option<Hint>,
    n: usize,
) {
    // SAFETY: by contract.
    let folded = unsafe { fold_whole::<H, Wide<S, C>, BLOCK>(dsts, operands, hint, n) };
    if folded < n {
        // SAFETY: by contract; less than a block is left.
        unsafe { fold_rest::<H, S, C>(dsts, operands, folded, n - folded) };
    }
}

/// Blocks that are combined in `f32`.
struct Wide<S, C>(PhantomData<(S, C)>);

impl<H: Half, S: Scalar<f32>, C: Convert<H>> Block<H, BLOCK> for Wide<S, C> {
    #[inline(always)]
    unsafe fn fold(dsts: &[*mut H], operands: &[*const H], at: usize) {
        let whole = |operand: *const H| {
            let place = operand.wrapping_add(at).cast::<[H; BLOCK]>();
            // SAFETY: `at + BLOCK` elements of the operand, which nobody writes meanwhile.
            unsafe { place.read() }
        };
        // SAFETY: by contract.
        let block = unsafe { combine::<H, S, C>(operands, whole) };
        for dst in dsts {
            let place = dst.wrapping_add(at).cast::<[H; BLOCK]>();
            // SAFETY: `at + BLOCK` elements may be written there.
            unsafe { place.write(block) };
        }
    }
}

/// Folds the `rest` elements from `at` on.
///
/// # Safety
/// As [`fold_to`], with `at + rest` elements, on a machine with the instructions of `C`; `rest` is at most a block.
#[inline(always)]
unsafe fn fold_rest<H: Half, S: Scalar<f32>, C: Convert<H>>(
    dsts: &[*mut H],
    operands: &[*const H],
    at: usize,
    rest: usize,
) {
    let short = |operand: *const H| {
        let mut block = [H::ZERO; BLOCK];
        // SAFETY: `rest` elements of the operand are left, and a block has room for them.
        unsafe { std::ptr::copy_nonoverlapping(operand.wrapping_add(at), block.as_mut_ptr(), rest) };
        block
    };
    // SAFETY: by contract.
    let block = unsafe { combine::<H, S, C>(operands, short) };
    for dst in dsts {
        // SAFETY: `rest` elements may be written there; the block is private.
        unsafe { std::ptr::copy_nonoverlapping(block.as_ptr(), dst.wrapping_add(at), rest) };
    }
}

/// Combines a block of each operand, in order.
///
/// # Safety
/// `load` may be called for each operand; the machine has the instructions of `C`.
#[inline(always)]
unsafe fn combine<H: Half, S: Scalar<f32>, C: Convert<H>>(
    operands: &[*const H],
    load: impl Fn(*const H) -> [H; BLOCK],
) -> [H; BLOCK] {
    let (&first, others) = operands.split_first().expect("there is at least one operand");
    // SAFETY: by contract.
    let mut sum = unsafe { C::widen(&load(first)) };
    for &operand in others {
        // SAFETY: by contract.
        let wide = unsafe { C::widen(&load(operand)) };
        for (left, right) in sum.iter_mut().zip(wide) {
            *left = S::combine(*left, right);
        }
    }
    // SAFETY: by contract.
    unsafe { C::round(&sum) }
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use super::super::order::PARTED;
    use super::*;
    use crate::element::Element;
    use crate::operator::{Max, Min, Operator, Product, Sum};

    /// A half, as the tests see it.
    trait Sample: Half + Element {
        fn of_bits(bits: u16) -> Self;
        fn of_wide(wide: f32) -> Self;
        fn bits(self) -> u16;
        fn wide(self) -> f32;
    }

    macro_rules! samples {
        ($($type:ty)+) => {$(
            impl Sample for $type {
                fn of_bits(bits: u16) -> Self {
                    <$type>::from_bits(bits)
                }
                fn of_wide(wide: f32) -> Self {
                    <$type>::from_f32(wide)
                }
                fn bits(self) -> u16 {
                    self.to_bits()
                }
                fn wide(self) -> f32 {
                    self.to_f32()
                }
            }
        )+};
    }

    samples!(f16 bf16);

    /// Which NaN a NaN is hangs on instructions.
    fn same<H: Sample>(a: H, b: H) -> bool {
        a.bits() == b.bits() || a.wide().is_nan() && b.wide().is_nan()
    }

    /// A fold to several places, by certain instructions or those that the machine has.
    type Folds<H> = unsafe fn(&[*mut H], &[*const H], Option<Hint>, usize);

    /// All that this machine has.
    fn folds<H: Half, S: Scalar<f32>>() -> Vec<(&'static str, Folds<H>)> {
        let mut folds: Vec<(&str, Folds<H>)> = vec![
            ("chosen", fold_several::<H, S>),
            ("plain", |dsts, operands, hint, n| {
                // SAFETY: that of the caller; plain instructions.
                unsafe { fold_blocks::<H, S, H::Plain>(dsts, operands, hint, n) }
            }),
        ];
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("f16c") {
            folds.push(("avx2", |dsts, operands, hint, n| {
                // SAFETY: that of the caller; the features were just detected.
                unsafe { fold_avx2::<H, S>(dsts, operands, hint, n) }
            }));
        }
        folds
    }

    /// Numbers of all magnitudes, infinities, zeros and NaNs among them.
    fn values<H: Sample>(operand: usize, n: usize) -> Vec<H> {
        let mut state = 0x9e37_79b9_u32.wrapping_mul(operand as u32 + 1);
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state
        };
        (0..n)
            .map(|_| match next() % 4 {
                0 => H::of_bits((next() >> 16) as u16),
                // Sums and products of these stay finite, as a rule, and have to be rounded.
                _ => H::of_wide((next() % 4096) as f32 / 1024.0 - 2.0),
            })
            .collect()
    }

    /// Every fold of so many operands to so many places, which lie `apart` elements from where allocations begin, has
    /// the bits of the fold to one, and what a loop over the operands gives. The first places take those of operands,
    /// from the last one on, if they are to.
    fn is_alike<H: Sample, S: Scalar<f32> + Operator<H>>(
        operator: &S,
        (operands, results): (usize, usize),
        (n, apart, in_place): (usize, usize, bool),
        hint: Option<Hint>,
    ) {
        let filled = |number: usize| -> Vec<H> { values(number, apart + n + 1) };
        let inputs: Vec<Vec<H>> = (0..operands).map(filled).collect();
        let oracle: Vec<H> = (apart..apart + n)
            .map(|i| {
                let wide = inputs.iter().map(|input| input[i].wide());
                H::of_wide(wide.reduce(|a, b| S::combine(a, b)).unwrap())
            })
            .collect();
        let mut single = filled(operands);
        let pointers: Vec<*const H> = inputs.iter().map(|input| input[apart..].as_ptr()).collect();
        // SAFETY: `n` elements are at each place.
        unsafe { operator.fold(single[apart..].as_mut_ptr(), &pointers, n) };
        for (i, (&found, &wanted)) in single[apart..].iter().zip(&oracle).enumerate() {
            assert!(same(found, wanted), "{i} of {n}: {:e}, {:e}", found.wide(), wanted.wide());
        }
        for (name, fold) in folds::<H, S>() {
            // Operands first, and then the results that take the place of none.
            let mut places: Vec<Vec<H>> = (0..operands + results).map(filled).collect();
            let before = places.clone();
            let pointers: Vec<*mut H> = places.iter_mut().map(|place| place[apart..].as_mut_ptr()).collect();
            let mut taken: Vec<usize> = (operands..operands + results).collect();
            if in_place {
                taken.iter_mut().zip((0..operands).rev()).for_each(|(result, operand)| *result = operand);
            }
            let dsts: Vec<*mut H> = taken.iter().map(|&at| pointers[at]).collect();
            let from: Vec<*const H> = pointers[..operands].iter().map(|at| at.cast_const()).collect();
            // SAFETY: `n` elements are at each place; what overlaps is an operand and its result.
            unsafe { fold(&dsts, &from, hint, n) };
            for (at, (place, before)) in places.iter().zip(&before).enumerate() {
                let wanted = |i: usize| {
                    let is_result = taken.contains(&at) && (apart..apart + n).contains(&i);
                    if is_result { single[i] } else { before[i] }
                };
                let is_right = (0..place.len()).all(|i| same(place[i], wanted(i)));
                let case = (operands, results, n, apart, in_place);
                assert!(is_right, "{name}: place {at} of {case:?}, {hint:?}");
            }
        }
    }

    /// All numbers of places and operands at a few lengths; what two ranks do at many, however it is loaded.
    fn are_alike<H: Sample, S: Scalar<f32> + Operator<H>>(operator: S) {
        for operands in [1, 2, 3, 5, 8] {
            for (results, n) in (1..=4).flat_map(|results| [1, 63, 64, 65, 201].map(|n| (results, n))) {
                for (apart, in_place) in [(0, false), (1, true), (3, false)] {
                    is_alike::<H, S>(&operator, (operands, results), (n, apart, in_place), None);
                }
            }
        }
        let runs = 4 * PARTED * BLOCK;
        for n in [0, 2, 129, runs - 1, runs + 1, 2 * runs + 3 * BLOCK + 7] {
            let asking = [7, 3072].map(Loads::Asking);
            for (operand, loads) in
                asking.into_iter().chain([Loads::Abreast]).flat_map(|loads| (0..3).map(move |at| (at, loads)))
            {
                for (results, in_place) in [(1, false), (1, true), (2, false), (2, true)] {
                    is_alike::<H, S>(&operator, (2, results), (n, 1, in_place), Some(Hint { operand, loads }));
                }
            }
        }
    }

    #[test]
    fn f16_is_the_same_at_all_places() {
        are_alike::<f16, _>(Sum);
        are_alike::<f16, _>(Product);
        are_alike::<f16, _>(Min);
        are_alike::<f16, _>(Max);
    }

    #[test]
    fn bf16_is_the_same_at_all_places() {
        are_alike::<bf16, _>(Sum);
        are_alike::<bf16, _>(Product);
        are_alike::<bf16, _>(Min);
        are_alike::<bf16, _>(Max);
    }

    #[test]
    fn sums_of_any_length_are_rounded_once() {
        for n in [0, 1, 63, 64, 65, 127, 128, 200] {
            let operands: Vec<Vec<bf16>> =
                (0..5).map(|rank| (0..n).map(|i| bf16::from_f32((i * 7 + rank * 3) as f32 / 16.0)).collect()).collect();
            let pointers: Vec<*const bf16> = operands.iter().map(Vec::as_ptr).collect();
            let mut sum = vec![bf16::ZERO; n];
            // SAFETY: `n` elements each.
            unsafe { fold::<bf16, Sum>(sum.as_mut_ptr(), &pointers, n) };
            for i in 0..n {
                let expected: f32 = operands.iter().map(|operand| operand[i].to_f32()).sum();
                assert_eq!(sum[i], bf16::from_f32(expected), "{i} of {n}");
            }
        }
    }
}
