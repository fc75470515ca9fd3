//! How blocks of half-precision numbers become such of `f32`, and are rounded again, to nearest, ties to even.
//!
//! `bf16` is the upper half of an `f32`: plain shifts and additions, which the compiler turns into vector instructions.
//! `f16` has instructions of its own where the machine has AVX-512 or F16C; elsewhere the crate `half` converts it.

use half::{bf16, f16};

/// Elements of a block: four 512-bit or eight 256-bit registers of `f32`.
pub(super) const BLOCK: usize = 64;

/// How blocks of `H` are widened and rounded with the instructions of a certain machine.
pub(in crate::operator) trait Convert<H> {
    /// # Safety
    /// The machine has the instructions.
    unsafe fn widen(from: &[H; BLOCK]) -> [f32; BLOCK];

    /// # Safety
    /// The machine has the instructions.
    unsafe fn round(from: &[f32; BLOCK]) -> [H; BLOCK];
}

/// A half-precision type.
pub(in crate::operator) trait Half: Copy {
    const ZERO: Self;
    /// With the base instruction set.
    type Plain: Convert<Self>;
    /// With AVX2 and F16C.
    type Avx2: Convert<Self>;
    /// With AVX-512.
    type Avx512: Convert<Self>;
}

impl Half for bf16 {
    const ZERO: Self = bf16::ZERO;
    type Plain = Shifts;
    type Avx2 = Shifts;
    type Avx512 = Shifts;
}

impl Half for f16 {
    const ZERO: Self = f16::ZERO;
    type Plain = Portable;
    #[cfg(target_arch = "x86_64")]
    type Avx2 = x86::F16c;
    #[cfg(target_arch = "x86_64")]
    type Avx512 = x86::Avx512;
    #[cfg(not(target_arch = "x86_64"))]
    type Avx2 = Portable;
    #[cfg(not(target_arch = "x86_64"))]
    type Avx512 = Portable;
}

/// `bf16` by integer arithmetic on the bits of an `f32`.
pub(in crate::operator) struct Shifts;

impl Convert<bf16> for Shifts {
    #[inline(always)]
    unsafe fn widen(from: &[bf16; BLOCK]) -> [f32; BLOCK] {
        from.map(|value| f32::from_bits(u32::from(value.to_bits()) << 16))
    }

    #[inline(always)]
    unsafe fn round(from: &[f32; BLOCK]) -> [bf16; BLOCK] {
        from.map(|value| {
            let bits = value.to_bits();
            // Half of the last kept place, less one where that place is even; a carry into the exponent is right, up to
            // infinity.
            let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1));
            // A NaN stays one, a quiet one.
            let kept = if value.is_nan() { bits | 0x0040_0000 } else { rounded };
            bf16::from_bits((kept >> 16) as u16)
        })
    }
}

/// `f16` by the crate `half`.
pub(in crate::operator) struct Portable;

impl Convert<f16> for Portable {
    #[inline(always)]
    unsafe fn widen(from: &[f16; BLOCK]) -> [f32; BLOCK] {
        from.map(f16::to_f32_const)
    }

    #[inline(always)]
    unsafe fn round(from: &[f32; BLOCK]) -> [f16; BLOCK] {
        from.map(f16::from_f32_const)
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        _MM_FROUND_TO_NEAREST_INT, _mm_loadu_si128, _mm_storeu_si128, _mm256_cvtph_ps, _mm256_cvtps_ph,
        _mm256_loadu_ps, _mm256_loadu_si256, _mm256_storeu_ps, _mm256_storeu_si256, _mm512_cvtph_ps, _mm512_cvtps_ph,
        _mm512_loadu_ps, _mm512_storeu_ps,
    };

    use super::{BLOCK, Convert, f16};

    /// F16C: eight elements an instruction.
    pub(in crate::operator) struct F16c;

    impl Convert<f16> for F16c {
        #[inline(always)]
        unsafe fn widen(from: &[f16; BLOCK]) -> [f32; BLOCK] {
            let mut to = [0.0; BLOCK];
            for (from, to) in from.chunks_exact(8).zip(to.chunks_exact_mut(8)) {
                // SAFETY: eight elements of two bytes.
                let halves = unsafe { _mm_loadu_si128(from.as_ptr().cast()) };
                // SAFETY: by contract the machine has F16C.
                let wide = unsafe { _mm256_cvtph_ps(halves) };
                // SAFETY: eight elements of four bytes.
                unsafe { _mm256_storeu_ps(to.as_mut_ptr(), wide) };
            }
            to
        }

        #[inline(always)]
        unsafe fn round(from: &[f32; BLOCK]) -> [f16; BLOCK] {
            let mut to = [f16::ZERO; BLOCK];
            for (from, to) in from.chunks_exact(8).zip(to.chunks_exact_mut(8)) {
                // SAFETY: eight elements of four bytes.
                let wide = unsafe { _mm256_loadu_ps(from.as_ptr()) };
                // SAFETY: by contract the machine has F16C.
                let halves = unsafe { _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(wide) };
                // SAFETY: eight elements of two bytes.
                unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), halves) };
            }
            to
        }
    }

    /// AVX-512: sixteen elements an instruction.
    pub(in crate::operator) struct Avx512;

    impl Convert<f16> for Avx512 {
        #[inline(always)]
        unsafe fn widen(from: &[f16; BLOCK]) -> [f32; BLOCK] {
            let mut to = [0.0; BLOCK];
            for (from, to) in from.chunks_exact(16).zip(to.chunks_exact_mut(16)) {
                // SAFETY: sixteen elements of two bytes.
                let halves = unsafe { _mm256_loadu_si256(from.as_ptr().cast()) };
                // SAFETY: by contract the machine has AVX-512F.
                let wide = unsafe { _mm512_cvtph_ps(halves) };
                // SAFETY: sixteen elements of four bytes.
                unsafe { _mm512_storeu_ps(to.as_mut_ptr(), wide) };
            }
            to
        }

        #[inline(always)]
        unsafe fn round(from: &[f32; BLOCK]) -> [f16; BLOCK] {
            let mut to = [f16::ZERO; BLOCK];
            for (from, to) in from.chunks_exact(16).zip(to.chunks_exact_mut(16)) {
                // SAFETY: sixteen elements of four bytes.
                let wide = unsafe { _mm512_loadu_ps(from.as_ptr()) };
                // SAFETY: by contract the machine has AVX-512F.
                let halves = unsafe { _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(wide) };
                // SAFETY: sixteen elements of two bytes.
                unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), halves) };
            }
            to
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every `f32` whose lower bits are near a tie, of every sign and exponent, and the neighbours of each.
    fn values() -> impl Iterator<Item = f32> {
        (0..1_u32 << 16).flat_map(|upper| {
            [0, 1, 0x0fff, 0x1000, 0x1001, 0x3000, 0x7fff, 0x8000, 0x8001, 0xffff]
                .map(|lower| f32::from_bits(upper << 16 | lower))
        })
    }

    fn rounds_as<H: Half + PartialEq + std::fmt::Debug, C: Convert<H>>(
        one: impl Fn(f32) -> H,
        is_nan: impl Fn(H) -> bool,
    ) {
        let values: Vec<f32> = values().collect();
        for block in values.chunks_exact(BLOCK) {
            let block: &[f32; BLOCK] = block.try_into().unwrap();
            // SAFETY: the caller has looked whether the machine has the instructions.
            let rounded = unsafe { C::round(block) };
            for (&value, &found) in block.iter().zip(&rounded) {
                let expected = one(value);
                assert!(found == expected || (is_nan(found) && is_nan(expected)), "{value:e}: {found:?}, {expected:?}");
            }
        }
    }

    fn widens_as<H: Half, C: Convert<H>>(of_bits: impl Fn(u16) -> H, wide: impl Fn(H) -> f32) {
        for start in (0..=u16::MAX).step_by(BLOCK) {
            let block: [H; BLOCK] = std::array::from_fn(|i| of_bits(start + i as u16));
            // SAFETY: the caller has looked whether the machine has the instructions.
            let found = unsafe { C::widen(&block) };
            for (half, found) in block.into_iter().zip(found) {
                let expected = wide(half);
                assert!(found == expected || (found.is_nan() && expected.is_nan()), "{found:e}, {expected:e}");
            }
        }
    }

    #[test]
    fn every_bf16_is_converted_as_the_crate_half_does() {
        widens_as::<bf16, Shifts>(bf16::from_bits, bf16::to_f32);
        rounds_as::<bf16, Shifts>(bf16::from_f32, bf16::is_nan);
    }

    #[test]
    fn every_f16_is_converted_alike_on_all_machines() {
        widens_as::<f16, Portable>(f16::from_bits, f16::to_f32);
        rounds_as::<f16, Portable>(f16::from_f32, f16::is_nan);
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") {
                widens_as::<f16, x86::Avx512>(f16::from_bits, f16::to_f32);
                rounds_as::<f16, x86::Avx512>(f16::from_f32, f16::is_nan);
            }
            if is_x86_feature_detected!("f16c") {
                widens_as::<f16, x86::F16c>(f16::from_bits, f16::to_f32);
                rounds_as::<f16, x86::F16c>(f16::from_f32, f16::is_nan);
            }
        }
    }
}
