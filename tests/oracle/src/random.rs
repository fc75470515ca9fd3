//! Numbers that look random and come again from the same seed.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The variable that repeats a run: the seed that the run printed.
pub const SEED: &str = "PHALANX_TEST_SEED";

/// Mixes the bits of a number (the finisher of splitmix64).
#[inline]
#[must_use]
pub const fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// The seed of this run: that of `PHALANX_TEST_SEED`, or a new one.
///
/// # Panics
/// When the variable holds no number.
#[must_use]
pub fn seed_of_run() -> u64 {
    match std::env::var(SEED) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{SEED}={text:?} is no number")),
        Err(_) => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            mixed(now.as_nanos() as u64 ^ u64::from(std::process::id())) >> 16
        }
    }
}

/// A stream of numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.0)
    }

    /// A number below `most`, which is not 0.
    pub fn below(&mut self, most: usize) -> usize {
        (self.number() % most as u64) as usize
    }

    /// True once in so many times.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of these.
    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }

    /// Comes late, now and then: computes, yields or sleeps, for up to a fifth of a millisecond.
    pub fn loiter(&mut self) {
        match self.below(48) {
            0 => std::thread::sleep(Duration::from_micros(self.below(200) as u64)),
            1..=3 => (0..self.below(20)).for_each(|_| std::thread::yield_now()),
            4..=7 => {
                let end = Instant::now() + Duration::from_nanos(self.below(20_000) as u64);
                while Instant::now() < end {
                    std::hint::spin_loop();
                }
            }
            _ => {}
        }
    }
}
