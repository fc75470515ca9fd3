//! When a rank that has published its part of an exchange looks for the other one's.
//!
//! Two ranks that come to a call at the same time publish within some ten nanoseconds of each other. A look that arrives before the other
//! rank's stamp fetches the line as it was: the stamp has to wait until its writer has the line again, the next look fetches
//! it once more, and the exchange has taken two transfers. Ranks that are out of step stay so, since who has missed is late for the next call,
//! where the other one misses. A look that begins a moment later brings them into step, and finds the stamp; where they are in step already, by
//! what they do between calls, that moment is lost.
//!
//! Which of the two it is depends on how far apart the cores are and on what the ranks do. So it is measured, anew all the time: at the same
//! calls on both ranks, since both count their exchanges alike, some go the one way and as many the other, and the clock is read where they begin and end. On
//! a machine of two cores (AMD EPYC, Zen 4; a pause takes 25 ns) that were far apart, looks at once took 120 and 320 ns in turns where
//! calls followed one another, and 130 ns all of them after a pause.
//!
//! It orders nothing: a look says the same whenever it is taken.

use std::cell::Cell;
use std::hint::spin_loop;

use crate::pace::ticks;

/// Exchanges from one trial to the next.
const PERIOD: u32 = 1 << 14;

/// Exchanges of a trial that go one way and do not count: the ranks have yet to fall into step, or out of it.
const FIRST: u32 = 96;

/// Exchanges after these that count.
const COUNTED: u32 = 96;

/// What comes next in a trial, or that none is running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Idle,
    FirstLater,
    Later,
    FirstAtOnce,
    AtOnce,
}

/// Whether this rank looks at once, or pauses first.
#[derive(Default)]
pub(super) struct Approach {
    /// Whether it pauses.
    pauses: Cell<bool>,
    /// Exchanges until the stage is over.
    left: Cell<u32>,
    stage: Cell<Stage>,
    /// When the exchanges that count began, in ticks.
    begun: Cell<u64>,
    /// How long those after a pause took.
    later: Cell<u64>,
    /// Whether a pause was worth it in the last trial.
    was_worth: Cell<bool>,
}

impl Approach {
    /// Before the first look.
    #[inline(always)]
    pub fn pause(&self) {
        let left = self.left.get();
        if left == 0 {
            self.step(ticks());
        } else {
            self.left.set(left - 1);
        }
        if self.pauses.get() {
            spin_loop();
        }
    }

    #[cold]
    #[inline(never)]
    fn step(&self, now: u64) {
        let took = now.wrapping_sub(self.begun.replace(now));
        let (stage, left) = match self.stage.get() {
            Stage::Idle => {
                self.pauses.set(true);
                (Stage::FirstLater, FIRST)
            }
            Stage::FirstLater => (Stage::Later, COUNTED),
            Stage::Later => {
                self.later.set(took);
                self.pauses.set(false);
                (Stage::FirstAtOnce, FIRST)
            }
            Stage::FirstAtOnce => (Stage::AtOnce, COUNTED),
            Stage::AtOnce => {
                let later = self.later.get();
                let is_worth = later + later / 16 < took;
                // One trial may be one in which this rank lost its core.
                let was_worth = self.was_worth.replace(is_worth);
                self.pauses.set(is_worth && was_worth);
                (Stage::Idle, PERIOD)
            }
        };
        self.stage.set(stage);
        self.left.set(left - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether an approach pauses after `trials` trials in which a call takes so many ticks after a pause, and at once.
    fn learnt(approach: &Approach, trials: u32, [later, at_once]: [u64; 2]) -> bool {
        let mut now = approach.begun.get();
        let mut over = 0;
        while over < trials {
            if approach.left.get() == 0 {
                over += u32::from(approach.stage.get() == Stage::AtOnce);
                approach.step(now);
            } else {
                approach.left.set(approach.left.get() - 1);
            }
            now += if approach.pauses.get() { later } else { at_once };
        }
        approach.pauses.get()
    }

    #[test]
    fn the_quicker_way_is_found_and_found_again() {
        let approach = Approach::default();
        for (times, pauses) in
            [([338, 572], true), ([338, 286], false), ([298, 300], false), ([338, 572], true), ([338, 350], false)]
        {
            assert_eq!(learnt(&approach, 3, times), pauses, "{times:?}");
        }
    }

    #[test]
    fn one_trial_says_nothing() {
        let approach = Approach::default();
        assert!(!learnt(&approach, 2, [300, 290]));
        assert!(!learnt(&approach, 1, [300, 90_000]), "it lost its core");
        assert!(!learnt(&approach, 1, [300, 290]));
        assert!(!learnt(&approach, 1, [300, 600]) && learnt(&approach, 1, [300, 600]));
    }

    /// All that a trial costs are some calls of many.
    #[test]
    fn trials_are_few() {
        const { assert!(2 * (FIRST + COUNTED) < PERIOD / 16) };
    }
}
