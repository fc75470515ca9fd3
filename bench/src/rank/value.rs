//! Element types with values that every sum represents exactly.

use std::fmt::Debug;

use hier::{Element, Zeroable};

/// An element that is made of a small whole number.
pub trait Value: Element + Zeroable + Copy + PartialEq + Debug {
    /// The element of that value; sums over 256 ranks stay exact in every type.
    fn whole(value: u32) -> Self;
}

impl Value for i32 {
    fn whole(value: u32) -> i32 {
        value as i32
    }
}

impl Value for i64 {
    fn whole(value: u32) -> i64 {
        i64::from(value)
    }
}

impl Value for f32 {
    fn whole(value: u32) -> f32 {
        value as f32
    }
}

impl Value for f64 {
    fn whole(value: u32) -> f64 {
        f64::from(value)
    }
}
