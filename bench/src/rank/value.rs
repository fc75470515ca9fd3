//! Element types with values that every sum represents exactly.

use std::fmt::Debug;
use std::hint::black_box;

use hier::{Element, Zeroable};

/// An element that is made of a small whole number.
pub trait Value: Element + Zeroable + Copy + PartialEq + Debug {
    /// The element of that value; sums over 256 ranks stay exact in every type.
    fn whole(value: u32) -> Self;

    /// The sum, as a program's own operator makes it.
    fn plus(self, other: Self) -> Self;

    /// Its bits.
    fn bits(self) -> u64;
}

/// Loads all of a result, as a program does that goes on with it: `baseline/collectives.c` in the same steps.
pub fn read<T: Value>(result: &[T]) {
    let mut bits = [0; 8];
    let (eights, rest) = result.as_chunks::<8>();
    for eight in eights {
        bits.iter_mut().zip(eight).for_each(|(bits, element)| *bits ^= element.bits());
    }
    rest.iter().for_each(|element| bits[0] ^= element.bits());
    black_box(bits);
}

impl Value for i32 {
    fn whole(value: u32) -> i32 {
        value as i32
    }

    fn plus(self, other: i32) -> i32 {
        self + other
    }

    fn bits(self) -> u64 {
        u64::from(self as u32)
    }
}

impl Value for i64 {
    fn whole(value: u32) -> i64 {
        i64::from(value)
    }

    fn plus(self, other: i64) -> i64 {
        self + other
    }

    fn bits(self) -> u64 {
        self as u64
    }
}

impl Value for f32 {
    fn whole(value: u32) -> f32 {
        value as f32
    }

    fn plus(self, other: f32) -> f32 {
        self + other
    }

    fn bits(self) -> u64 {
        u64::from(self.to_bits())
    }
}

impl Value for f64 {
    fn whole(value: u32) -> f64 {
        f64::from(value)
    }

    fn plus(self, other: f64) -> f64 {
        self + other
    }

    fn bits(self) -> u64 {
        self.to_bits()
    }
}
