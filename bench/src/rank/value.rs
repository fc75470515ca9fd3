//! Element types with values that every sum represents exactly.

use std::fmt::Debug;

use hier::{Element, Zeroable};

/// An element that is made of a small whole number.
pub trait Value: Element + Zeroable + Copy + PartialEq + Debug {
    /// The element of that value; sums over 256 ranks stay exact in every type.
    fn whole(value: u32) -> Self;

    /// The sum, as a program's own operator makes it.
    fn plus(self, other: Self) -> Self;
}

impl Value for i32 {
    fn whole(value: u32) -> i32 {
        value as i32
    }

    fn plus(self, other: i32) -> i32 {
        self + other
    }
}

impl Value for i64 {
    fn whole(value: u32) -> i64 {
        i64::from(value)
    }

    fn plus(self, other: i64) -> i64 {
        self + other
    }
}

impl Value for f32 {
    fn whole(value: u32) -> f32 {
        value as f32
    }

    fn plus(self, other: f32) -> f32 {
        self + other
    }
}

impl Value for f64 {
    fn whole(value: u32) -> f64 {
        f64::from(value)
    }

    fn plus(self, other: f64) -> f64 {
        self + other
    }
}
