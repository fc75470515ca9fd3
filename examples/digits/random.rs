//! A small generator of repeatable numbers (splitmix64): the same seed gives the same numbers on every rank.

/// The state of the generator.
pub struct Random {
    state: u64,
}

impl Random {
    /// A generator that `seed` determines.
    pub fn new(seed: u64) -> Random {
        Random { state: seed }
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from -1 up to, but not including, 1.
    pub fn symmetric(&mut self) -> f64 {
        let unit = (self.bits() >> 11) as f64 / (1u64 << 53) as f64;
        2.0 * unit - 1.0
    }

    /// A whole number from 0 up to, but not including, `limit`, which must not be 0.
    pub fn below(&mut self, limit: usize) -> usize {
        // The high half of a 128-bit product maps 64 random bits to the range nearly evenly.
        ((u128::from(self.bits()) * limit as u128) >> 64) as usize
    }

    /// Puts `items` in a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last + 1);
            items.swap(last, other);
        }
    }
}
