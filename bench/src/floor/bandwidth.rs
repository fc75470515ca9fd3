//! Copy and addition over private buffers: the bare bandwidth of cores, caches and memory.

use std::hint::black_box;

/// Two buffers of one process.
pub struct Buffers {
    destination: Vec<f64>,
    source: Vec<f64>,
    wide: bool,
}

impl Buffers {
    /// Two buffers of `bytes` each, written once so that their pages are there.
    pub fn new(bytes: usize) -> Buffers {
        let length = (bytes / size_of::<f64>()).max(1);
        Buffers { destination: vec![1.0; length], source: vec![0.5; length], wide: wide_registers() }
    }

    /// `destination = source`.
    pub fn copy(&mut self) {
        black_box(&mut self.destination).copy_from_slice(black_box(&self.source));
    }

    /// `destination += source`.
    pub fn add(&mut self) {
        let (destination, source) = (black_box(&mut self.destination[..]), black_box(&self.source[..]));
        if self.wide {
            // SAFETY: `wide` says that this processor has AVX2.
            #[cfg(target_arch = "x86_64")]
            unsafe {
                add_wide(destination, source)
            }
        } else {
            add_slices(destination, source);
        }
    }
}

#[inline(always)]
fn add_slices(destination: &mut [f64], source: &[f64]) {
    for (to, from) in destination.iter_mut().zip(source) {
        *to += from;
    }
}

/// The same loop, compiled for 32-byte registers.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn add_wide(destination: &mut [f64], source: &[f64]) {
    add_slices(destination, source);
}

#[cfg(target_arch = "x86_64")]
fn wide_registers() -> bool {
    std::arch::is_x86_feature_detected!("avx2")
}

#[cfg(not(target_arch = "x86_64"))]
fn wide_registers() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copy_then_add() {
        let mut buffers = Buffers::new(1000);
        buffers.add();
        assert!(buffers.destination.iter().all(|&v| v == 1.5));
        buffers.copy();
        assert!(buffers.destination.iter().all(|&v| v == 0.5));
        buffers.wide = false;
        buffers.add();
        assert!(buffers.destination.iter().all(|&v| v == 1.0));
    }
}
