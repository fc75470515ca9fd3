//! The loops: fold several operands in one pass, a register-sized block at a time.
//!
//! A block of each operand is loaded whole before the block of the result is stored, so that the result may
//! be one of the operands. The block is a local array that the compiler keeps in vector registers; the same body is
//! compiled for the base instruction set and for AVX2 and AVX-512, and chosen once by what the machine has.

/// Bytes of a block: four 512-bit or eight 256-bit registers.
const BLOCK: usize = 256;

/// An associative operation on two elements.
pub(super) trait Scalar<T> {
    fn combine(left: T, right: T) -> T;
}

/// The longest block, in elements (of one byte).
const MOST: usize = BLOCK;

/// `dst[i] = operands[0][i] op operands[1][i] op ..`.
///
/// # Safety
/// As [`Operator::fold`](super::Operator::fold).
#[inline]
pub(super) unsafe fn fold<T: Copy, S: Scalar<T>>(dst: *mut T, operands: *const *const T, count: usize, n: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        // A few elements are folded before a wider loop would have been entered.
        if n * size_of::<T>() >= BLOCK {
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
            {
                // SAFETY: the features were just detected; the rest by contract.
                return unsafe { fold_avx512::<T, S>(dst, operands, count, n) };
            }
            if is_x86_feature_detected!("avx2") {
                // SAFETY: the feature was just detected; the rest by contract.
                return unsafe { fold_avx2::<T, S>(dst, operands, count, n) };
            }
        }
    }
    // SAFETY: by contract.
    unsafe { fold_here::<T, S>(dst, operands, count, n) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2")]
unsafe fn fold_avx512<T: Copy, S: Scalar<T>>(dst: *mut T, operands: *const *const T, count: usize, n: usize) {
    // SAFETY: by contract.
    unsafe { fold_here::<T, S>(dst, operands, count, n) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn fold_avx2<T: Copy, S: Scalar<T>>(dst: *mut T, operands: *const *const T, count: usize, n: usize) {
    // SAFETY: by contract.
    unsafe { fold_here::<T, S>(dst, operands, count, n) }
}

#[inline(always)]
unsafe fn fold_here<T: Copy, S: Scalar<T>>(dst: *mut T, operands: *const *const T, count: usize, n: usize) {
    // The block's length must be a constant for the array; one arm for each size of element.
    // SAFETY (all arms): by contract.
    match size_of::<T>() {
        1 => unsafe { fold_blocks::<T, S, MOST>(dst, operands, count, n) },
        2 => unsafe { fold_blocks::<T, S, { BLOCK / 2 }>(dst, operands, count, n) },
        4 => unsafe { fold_blocks::<T, S, { BLOCK / 4 }>(dst, operands, count, n) },
        8 => unsafe { fold_blocks::<T, S, { BLOCK / 8 }>(dst, operands, count, n) },
        _ => unsafe { fold_blocks::<T, S, { BLOCK / 16 }>(dst, operands, count, n) },
    }
}

#[inline(always)]
unsafe fn fold_blocks<T: Copy, S: Scalar<T>, const N: usize>(
    dst: *mut T,
    operands: *const *const T,
    count: usize,
    n: usize,
) {
    let mut at = 0;
    while at + N <= n {
        // SAFETY: `at + N <= n` elements of operand 0.
        let mut block: [T; N] = unsafe { load(operands, 0, at) };
        for operand in 1..count {
            // SAFETY: `at + N <= n` elements of operand `operand < count`.
            let next: [T; N] = unsafe { load(operands, operand, at) };
            for lane in 0..N {
                block[lane] = S::combine(block[lane], next[lane]);
            }
        }
        // SAFETY: `at + N <= n` elements may be written.
        unsafe { dst.add(at).cast::<[T; N]>().write(block) };
        at += N;
    }
    while at < n {
        // SAFETY: `at < n`.
        let [mut value]: [T; 1] = unsafe { load(operands, 0, at) };
        for operand in 1..count {
            // SAFETY: `at < n`, `operand < count`.
            let [next]: [T; 1] = unsafe { load(operands, operand, at) };
            value = S::combine(value, next);
        }
        // SAFETY: `at < n` elements may be written.
        unsafe { dst.add(at).write(value) };
        at += 1;
    }
}

/// # Safety
/// `operands[operand]` holds `N` elements from `at` on.
#[inline(always)]
unsafe fn load<T: Copy, const N: usize>(operands: *const *const T, operand: usize, at: usize) -> [T; N] {
    // SAFETY: `operand` is one of the operands.
    let from = unsafe { *operands.add(operand) };
    // SAFETY: by contract.
    unsafe { from.add(at).cast::<[T; N]>().read() }
}
