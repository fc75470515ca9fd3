//! Inputs: what rank `r` contributes at place `i` is a function of seed, rank and place, so that every rank can
//! compute everybody's without being told.
//!
//! Floats are chosen so that no operation rounds: small whole numbers to be added, powers of two to be multiplied. Then
//! every order of combining gives the same bits, and one oracle serves all trees.

use std::fmt::Debug;

use half::{bf16, f16};
use num_complex::Complex;
use shm_core::{Element, Pair};

use crate::random::mixed;

/// What the inputs are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// To be added, for at most 32 ranks where floats are short.
    Sum,
    /// To be multiplied.
    Product,
    /// To be compared: with ties.
    Order,
    /// Zero or not: seldom, half of the time, or mostly, by place.
    Logic,
    /// Bits, seldom set, half of the time, or mostly, by place.
    Bits,
}

/// An element that tests know how to choose.
pub trait Sample: Element + PartialEq + Debug {
    /// What `rank` contributes at `place`, made of bits that are its own there.
    fn made_of(bits: u64, flavour: Flavour, rank: usize, place: usize) -> Self;

    /// What `rank` contributes at `place`.
    #[inline]
    fn sample(flavour: Flavour, seed: u64, rank: usize, place: usize) -> Self {
        Self::made_of(bits(seed, rank, place), flavour, rank, place)
    }
}

/// What `rank` contributes at the first `len` places.
pub fn samples<T: Sample>(flavour: Flavour, seed: u64, rank: usize, len: usize) -> Vec<T> {
    // A loop: every iterator is compiled once more for every type.
    let mut all = Vec::with_capacity(len);
    for place in 0..len {
        all.push(T::sample(flavour, seed, rank, place));
    }
    all
}

/// The bits from which a sample is made.
#[inline]
fn bits(seed: u64, rank: usize, place: usize) -> u64 {
    mixed(
        seed ^ (rank as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ^ (place as u64).wrapping_mul(0xd6e8_feb8_6659_fd93),
    )
}

/// The bits of one part of a sample of several. An oracle takes longer to draw samples than to do anything else, most
/// of them of many parts: this is a third of what [`bits`] is.
#[inline]
pub(crate) fn part(bits: u64, number: usize) -> u64 {
    let bits = (bits ^ (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits ^ (bits >> 32)
}

/// Whether a thing is set that is seldom set, or half of the time, or mostly, by place.
#[inline]
fn is_set(bits: u64, place: usize) -> bool {
    match place % 3 {
        0 => bits.is_multiple_of(16),
        1 => bits.is_multiple_of(2),
        _ => !bits.is_multiple_of(16),
    }
}

macro_rules! integers {
    ($($type:ty)+) => {$(
        impl Sample for $type {
            #[inline]
            fn made_of(bits: u64, flavour: Flavour, _: usize, place: usize) -> Self {
                match flavour {
                    Flavour::Sum => bits as $type,
                    // Odd, or the products of many ranks would all be 0.
                    Flavour::Product => if place % 16 == 7 { bits as $type } else { (bits | 1) as $type },
                    Flavour::Order => if place % 2 == 0 { bits as $type } else { (bits % 5) as $type },
                    Flavour::Logic => if is_set(bits, place) { ((bits >> 8) | 1) as $type } else { 0 },
                    Flavour::Bits => match place % 3 {
                        0 => (bits & (bits >> 16) & (bits >> 32)) as $type,
                        1 => bits as $type,
                        _ => (bits | (bits >> 16) | (bits >> 32)) as $type,
                    },
                }
            }
        }
    )+};
}

integers!(i8 i16 i32 i64 isize u8 u16 u32 u64 usize);

/// A whole number or a power of two, exact in every float, as are sums and products of it over a few dozen ranks.
#[inline]
fn exact(bits: u64, flavour: Flavour, rank: usize) -> f32 {
    match flavour {
        Flavour::Sum | Flavour::Logic | Flavour::Bits => (bits % 17) as f32 - 8.0,
        // Even ranks double and odd ranks halve, so that no product over any of them leaves the range.
        Flavour::Product => {
            let sign = if bits & 4 == 0 { 1.0 } else { -1.0 };
            match (bits & 3 == 0, rank.is_multiple_of(2)) {
                (false, _) => sign,
                (true, true) => 2.0 * sign,
                (true, false) => 0.5 * sign,
            }
        }
        Flavour::Order => (bits % 401) as f32 / 2.0 - 100.25,
    }
}

macro_rules! floats {
    ($($type:ty: $from:expr),+ $(,)?) => {$(
        impl Sample for $type {
            #[inline]
            fn made_of(bits: u64, flavour: Flavour, rank: usize, _: usize) -> Self {
                $from(exact(bits, flavour, rank))
            }
        }
    )+};
}

floats!(f32: |x| x, f64: f64::from, f16: f16::from_f32, bf16: bf16::from_f32);

impl<T: Sample + From<i8> + std::ops::Mul<Output = T>> Sample for Complex<T>
where
    Complex<T>: Element,
{
    #[inline]
    fn made_of(bits: u64, flavour: Flavour, rank: usize, place: usize) -> Self {
        let first = T::made_of(bits, flavour, rank, place);
        let other = part(bits, 1);
        if flavour == Flavour::Product {
            // A power of two times a power of i: one part is zero, so that products are exact.
            return match other & 1 {
                0 => Complex::new(first, T::from(0)),
                _ => Complex::new(T::from(0), first),
            };
        }
        Complex::new(first, T::made_of(other, flavour, rank, place))
    }
}

impl Sample for u128 {
    #[inline]
    fn made_of(bits: u64, flavour: Flavour, rank: usize, place: usize) -> Self {
        let [high, low] = <[u64; 2]>::made_of(bits, flavour, rank, place);
        Self::from(high) << 64 | Self::from(low)
    }
}

impl Sample for bool {
    #[inline]
    fn made_of(bits: u64, _: Flavour, _: usize, place: usize) -> Self {
        is_set(bits, place)
    }
}

macro_rules! pairs {
    ($($value:ty, $index:ty);+ $(;)?) => {$(
        impl Sample for Pair<$value, $index> {
            #[inline]
            fn made_of(bits: u64, _: Flavour, _: usize, _: usize) -> Self {
                // Few values, so that there are ties, and indices that disagree with the order of ranks.
                Pair::new((bits % 7) as i8 as $value, (bits >> 32) as u8 as $index % 100 as $index)
            }
        }
    )+};
}

pairs! {
    f32, i32; f32, u32; f64, i64; f64, u64; f64, usize;
    i8, i8; i16, i16; i32, i32; i32, u32; i64, i64; i64, u64; i64, usize;
    u8, u8; u16, u16; u32, u32; u64, u64; usize, usize;
}

impl<T: Sample, const N: usize> Sample for [T; N]
where
    [T; N]: Element,
{
    #[inline]
    fn made_of(bits: u64, flavour: Flavour, rank: usize, place: usize) -> Self {
        // Not `from_fn`, which takes five times as long where this is not optimised.
        let mut parts = [T::made_of(part(bits, 1), flavour, rank, place); N];
        let mut i = 1;
        while i < N {
            parts[i] = T::made_of(part(bits, i + 1), flavour, rank, place);
            i += 1;
        }
        parts
    }
}
