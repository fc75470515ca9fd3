//! A look at the cores: how far apart they are, and whether they are cores at all.
//!
//! A bare exchange of lines between the ranks takes several times as long when the kernel beneath a virtual machine has
//! moved its virtual cores apart. It does not tell whether they are hardware threads of one core: between threads it
//! takes less than between cores, but how many nanoseconds either takes depends on how long the processor pauses
//! between two looks at a line, and the two ranges meet. Arithmetic tells that. One rank alone keeps a core's
//! multipliers busy, so the same work takes as long beside another rank's as alone if that has a core of its own, and
//! almost twice as long if both share one. Both times are taken within a few microseconds on the same core, so neither
//! its clock rate nor its make matters.
//!
//! `baseline/collectives_gate.h` looks in the same way.

use std::arch::asm;
use std::hint::black_box;

use super::{Gate, now};
use crate::statistics::median;

/// Rounds of the exchange, and those before it that do not count.
const ROUNDS: (u64, u64) = (16, 64);
/// So many numbers are squared side by side: a multiplier that begins one product a cycle and needs three or four for
/// each is never idle.
const NUMBERS: usize = 6;
/// So many times each, which takes less than a microsecond.
const TIMES: u64 = 400;
/// The median of so many counts: something may disturb one of them.
const TRIES: usize = 5;

/// What was seen at one time. Of several ranks the worst pair counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    /// Nanoseconds of a bare exchange between all ranks.
    pub exchange: f64,
    /// How many times as long arithmetic took beside that of the other ranks as alone, on the rank where that was most.
    pub slowdown: f64,
}

impl Gate {
    /// Looks at the cores, with all ranks; nothing where they outnumber cores.
    pub fn look(&mut self) -> Option<Look> {
        if self.yields || self.ranks == 1 {
            return None;
        }
        Some(Look { exchange: self.exchange(), slowdown: self.slowdown() })
    }

    fn exchange(&mut self) -> f64 {
        let (before, counted) = ROUNDS;
        for _ in 0..before {
            self.meet(0, 0);
        }
        let begin = now();
        for _ in 0..counted {
            self.meet(0, 0);
        }
        (now() - begin) as f64 / counted as f64
    }

    fn slowdown(&mut self) -> f64 {
        let together = [(); TRIES].map(|()| {
            self.meet(0, 0);
            work()
        });
        let mut alone = [0.0; TRIES];
        for turn in 0..self.ranks {
            self.meet(0, 0);
            if turn == self.rank {
                alone = alone.map(|_| work());
            }
        }
        // Ranks meet with figures, of which each learns the greatest.
        let percent = 100.0 * median(&together) / median(&alone);
        self.meet(0, percent as u64).1 as f64 / 100.0
    }
}

/// Nanoseconds of a fixed number of multiplications.
fn work() -> f64 {
    let begin = now();
    let mut numbers: [u64; NUMBERS] = std::array::from_fn(|place| begin + place as u64);
    for _ in 0..TIMES {
        for number in &mut numbers {
            *number = number.wrapping_mul(*number);
            // SAFETY: no instruction. Each product has to be in a register of its own here, so that no vector unit
            // makes several at once.
            unsafe { asm!("/* {0} */", inout(reg) * number, options(nomem, nostack, preserves_flags)) };
        }
    }
    black_box(numbers);
    (now() - begin) as f64
}

#[cfg(test)]
mod tests {
    use super::super::tests::threads;
    use super::*;

    #[test]
    fn ranks_look_where_every_one_has_a_core() {
        let looks = threads(2, false, Gate::look);
        assert!(looks.iter().all(|look| look.is_some_and(|look| look.exchange > 0.0 && look.slowdown > 0.0)));
        assert_eq!(threads(2, true, Gate::look), [None, None]);
        assert_eq!(threads(1, false, Gate::look), [None]);
    }

    #[test]
    fn all_ranks_see_the_same_slowdown() {
        let looks = threads(2, false, |gate| gate.look().map(|look| look.slowdown));
        assert!(looks.iter().all(|&slowdown| slowdown == looks[0]), "{looks:?}");
    }
}
