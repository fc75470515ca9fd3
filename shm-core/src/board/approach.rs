//! When a rank that has published its part of an exchange looks for the other one's.
//!
//! Two ranks that come to a call at the same time publish within some ten nanoseconds of each other. A look that arrives before the other
//! rank's stamp fetches the line as it was: the stamp has to wait until its writer has the line again, the next look fetches
//! it once more, and the exchange has taken two transfers. Ranks that are out of step stay so, since who has missed is late for the next call,
//! where the other one misses. A look that begins a moment later brings them into step, and finds the stamp; where they are in step already, by
//! what they do between calls, that moment is lost.
//!
//! Which of these it is depends on how far apart the cores are and on what the ranks do. So it is measured, anew all the time: at the same
//! calls on both ranks, since both count their exchanges alike, as many go each way, and the clock is read where they begin and end. On
//! a machine of two cores (AMD EPYC, Zen 4; a pause takes 25 ns) that were far apart, looks at once took 120 and 320 ns in turns where
//! calls followed one another, and 130 ns all of them after a pause; near each other, barriers took 54 ns with looks at once or after a pause,
//! 46 after a shorter moment.
//!
//! It orders nothing: a look says the same whenever it is taken.

use std::cell::Cell;
use std::hint::{black_box, spin_loop};

use crate::pace::ticks;

/// Exchanges from one trial to the next.
const PERIOD: u32 = 1 << 13;

/// Exchanges of a trial that go one way and do not count: the ranks have yet to fall into step, or out of it.
const FIRST: u32 = 96;

/// Exchanges after these, of which the time is taken together.
const COUNTED: u32 = 24;

/// How often: the median counts.
const PARTS: usize = 5;

/// When a rank looks first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Way {
    #[default]
    AtOnce,
    /// After some cycles.
    Soon,
    /// After a pause of the core.
    Later,
}

impl Way {
    /// In the order of a trial: those at once come last, and so begin in step.
    const TRIED: [Way; 3] = [Way::Later, Way::Soon, Way::AtOnce];

    /// What its time counts in a trial: a way that waits has to be worth it.
    fn weighed(self, time: u64) -> u64 {
        match self {
            Way::AtOnce => time,
            Way::Soon => time + time / 16,
            Way::Later => time + time / 12,
        }
    }
}

/// What comes next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// A trial.
    #[default]
    Trial,
    /// The exchanges that count of one of the ways of a trial.
    Counted(usize),
    /// The end of a part of them.
    End(usize, usize),
}

/// When this rank looks.
#[derive(Default)]
pub(super) struct Approach {
    way: Cell<Way>,
    /// Exchanges until the next stage.
    left: Cell<u32>,
    next: Cell<Stage>,
    /// When the last stage began, in ticks.
    begun: Cell<u64>,
    /// How long the parts of a way took.
    parts: [Cell<u64>; PARTS],
    /// The best way of the trial so far, and its time.
    best: Cell<(Way, u64)>,
    /// The way that the last trial found, and the one to go on with while trials differ.
    found: Cell<Way>,
    usual: Cell<Way>,
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
        match self.way.get() {
            Way::AtOnce => {}
            Way::Soon => some_cycles(),
            Way::Later => spin_loop(),
        }
    }

    #[cold]
    #[inline(never)]
    fn step(&self, now: u64) {
        // A clock that another core reads otherwise may seem to go back.
        let took = now.wrapping_sub(self.begun.replace(now)).min(1 << 40);
        let begin = |at: usize| {
            self.way.set(Way::TRIED[at]);
            (Stage::Counted(at), FIRST)
        };
        let (next, left) = match self.next.get() {
            Stage::Trial => {
                self.best.set((Way::AtOnce, u64::MAX));
                begin(0)
            }
            Stage::Counted(at) => (Stage::End(at, 0), COUNTED),
            Stage::End(at, part) if part + 1 < PARTS => {
                self.parts[part].set(took);
                (Stage::End(at, part + 1), COUNTED)
            }
            Stage::End(at, part) => {
                self.parts[part].set(took);
                let mut parts = self.parts.each_ref().map(Cell::get);
                parts.sort_unstable();
                let (way, time) = (Way::TRIED[at], Way::TRIED[at].weighed(parts[PARTS / 2]));
                if time <= self.best.get().1 {
                    self.best.set((way, time));
                }
                if at + 1 < Way::TRIED.len() {
                    begin(at + 1)
                } else {
                    self.decide();
                    (Stage::Trial, PERIOD)
                }
            }
        };
        self.next.set(next);
        self.left.set(left - 1);
    }

    /// Takes a way that waits when this trial and the one before have found it: one alone may be one in which this rank lost its core.
    fn decide(&self) {
        let (best, _) = self.best.get();
        if self.found.replace(best) == best || best == Way::AtOnce {
            self.usual.set(best);
        }
        self.way.set(self.usual.get());
    }
}

/// Takes some cycles, and lets no later load begin before they are over where the machine has a fence that is cheap.
#[inline(always)]
fn some_cycles() {
    let mut value = 3u64;
    for _ in 0..4 {
        value = black_box(value.wrapping_mul(value));
    }
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: every x86-64 has SSE2.
        unsafe { core::arch::x86_64::_mm_lfence() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The way after `trials` trials in which a call takes so many ticks at once, soon, and later.
    fn learnt(approach: &Approach, trials: u32, times: [u64; 3]) -> Way {
        let mut now = approach.begun.get();
        let mut over = 0;
        while over < trials {
            if approach.left.get() == 0 {
                over += u32::from(approach.next.get() == Stage::End(2, PARTS - 1));
                approach.step(now);
            } else {
                approach.left.set(approach.left.get() - 1);
            }
            now += times[approach.way.get() as usize];
        }
        approach.way.get()
    }

    #[test]
    fn the_quickest_way_is_found_and_found_again() {
        let approach = Approach::default();
        for (times, way) in [
            ([572, 560, 338], Way::Later),
            ([286, 300, 338], Way::AtOnce),
            ([54, 46, 54], Way::Soon),
            ([300, 299, 298], Way::AtOnce),
            ([572, 400, 395], Way::Soon),
        ] {
            assert_eq!(learnt(&approach, 2, times), way, "{times:?}");
        }
    }

    #[test]
    fn one_trial_says_nothing() {
        let approach = Approach::default();
        assert_eq!(learnt(&approach, 1, [90_000, 300, 290]), Way::AtOnce, "it lost its core");
        assert_eq!(learnt(&approach, 1, [290, 310, 310]), Way::AtOnce);
        assert_eq!(learnt(&approach, 1, [600, 590, 300]), Way::AtOnce);
        assert_eq!(learnt(&approach, 1, [600, 590, 300]), Way::Later);
        assert_eq!(learnt(&approach, 1, [600, 300, 590]), Way::Later);
        assert_eq!(learnt(&approach, 1, [300, 590, 600]), Way::AtOnce, "nothing is lost by it");
    }

    /// All that a trial costs are some calls of many.
    #[test]
    fn trials_are_few() {
        const { assert!(3 * (FIRST + PARTS as u32 * COUNTED) < PERIOD / 12) };
    }
}
