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

/// Fills a buffer with one value: the first KiB by a loop, and copies of it by the C library, as
/// `baseline/collectives_case.h` does. A loop alone takes twice as long where it happens to cross a line of code (1 MiB 22
/// us more on an AMD EPYC, Zen 3), in one build and not in another.
pub fn fill<T: Value>(buffer: &mut [T], value: T) {
    let (first, rest) = buffer.split_at_mut(buffer.len().min((1024 / size_of::<T>()).max(1)));
    first.fill(value);
    for part in rest.chunks_mut(first.len().max(1)) {
        part.copy_from_slice(&first[..part.len()]);
    }
}

/// Loads all of a result, as a program does that goes on with it: `baseline/collectives_case.h` in the same steps.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_filled() {
        for length in [0, 1, 127, 128, 129, 256, 1000] {
            let mut buffer = vec![0.0f64; length + 1];
            fill(&mut buffer[..length], 3.0);
            assert!(buffer[..length].iter().all(|&x| x == 3.0) && buffer[length] == 0.0, "{length}");
            let mut buffer = vec![0i32; length + 1];
            fill(&mut buffer[..length], 3);
            assert!(buffer[..length].iter().all(|&x| x == 3) && buffer[length] == 0, "{length}");
        }
    }
}
