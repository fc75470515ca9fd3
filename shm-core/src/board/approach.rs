//! When a rank that has published its part of an exchange looks for the other one's.
//!
//! Two ranks that come to a call at the same time publish within some ten nanoseconds of each other. A look that
//! arrives before the other rank's stamp fetches the line as it was: the stamp has to wait until its writer has the
//! line again, the next look fetches it once more, and the exchange has taken two transfers.
//!
//! A core that waits for a look goes on as if it had succeeded, and has the next call half done when the stamp arrives:
//! it would look for the next one before the other rank can have stored it. So a look waits for what the last one saw:
//! some cycles after that is known ([`Moment`]). Without a fence, all else of the next call is done meanwhile. Where
//! ranks do something between calls the moment has passed, and costs nothing.
//!
//! Ranks that are in step stay so until something holds up one of them. Then who has missed is late for the next call,
//! where the other one misses, and so in turns. Then rank 0 waits for the other one: when it has missed an exchange and
//! the last but one, it looks later at the next but one, by as much as it would otherwise come too early.
//!
//! Other ways to wait are a fence after some cycles, a pause of the core, and many cycles. Those that pass behind a
//! fence cost nothing where the core has run ahead of the last look, unless that has missed: then a rank looks so much
//! later for the next stamp, which the other one is late with. So messages of several lines, of cores that are far
//! apart, may be worth a moment of many cycles.
//!
//! Which of these it is depends on how far apart the cores are, on the length of the message and on what the ranks do.
//! So it is measured, anew all the time: at the same calls on both ranks, since both count their exchanges alike, as
//! many go each way, and the clock is read where they begin and end. On a machine of two cores (AMD EPYC, Zen 4; a
//! pause takes 25 ns) near each other, barriers that followed one another took 39 ns behind the last look, 45 after a
//! fence, 49 after a pause, and 52 with looks at once; sums of 8 bytes 44, 52, 57 and 60; of 512 bytes 95, 89, 105 and
//! 105. Far apart, sums of 512 bytes took 299 ns with a moment of many cycles, and 412 after at most a pause (before
//! there was a look behind the last one).
//!
//! It orders nothing: a look says the same whenever it is taken.

use std::cell::Cell;
use std::hint::{black_box, spin_loop};

use crate::pace::{span, ticks};
use crate::protocol::Moment;
use crate::segment::layout::LINE;

/// Messages of more bytes take more than three lines with their stamp: of fewer there is nothing to gain by many
/// cycles.
const SHORT: usize = 3 * LINE - 8;

/// Multiplications from the last look to the next one.
const BEHIND: usize = 8;

/// Those of a rank that would otherwise come too early: with three cycles each about as long as a miss takes on cores
/// that are near each other.
const HELD_BACK: usize = 64;

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
enum Look {
    /// As soon as the last look is some cycles old.
    #[default]
    Behind,
    /// After some cycles and a fence.
    Soon,
    /// After a pause of the core.
    Later,
    /// After many cycles: for messages of several lines, on cores that are far apart.
    Last,
}

impl Look {
    /// In the order of a trial.
    const TRIED: [Look; 4] = [Look::Last, Look::Later, Look::Soon, Look::Behind];

    /// With which of them a trial begins, for short messages and for others.
    const BEGIN: [usize; 2] = [1, 0];

    /// What its time counts in a trial: a way that waits has to be worth it.
    fn weighed(self, time: u64) -> u64 {
        match self {
            Look::Behind => time,
            Look::Soon => time + time / 32,
            Look::Later | Look::Last => time + time / 12,
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
pub(super) struct Approach {
    /// Whether it waits for the other one where both miss in turns.
    waits: bool,
    /// For short messages, and for others.
    trials: [Trials; 2],
    /// The number of the last exchange.
    exchange: Cell<u32>,
    /// The last one whose first look came too early, and one at which it is held back.
    missed: Cell<u32>,
    held_back: Cell<u32>,
}

impl Approach {
    pub fn new(rank: usize) -> Self {
        Self {
            waits: rank == 0,
            trials: Default::default(),
            exchange: Cell::new(2),
            missed: Cell::new(0),
            held_back: Cell::new(0),
        }
    }

    /// When to look first for the other one's part of a message, given what the last look has seen. What other ways
    /// wait is over when this returns.
    #[inline(always)]
    pub fn moment(&self, bytes: usize, seen: u64) -> Moment {
        self.exchange.set(self.exchange.get().wrapping_add(1));
        let kind = usize::from(bytes > SHORT);
        let trials = &self.trials[kind];
        let left = trials.left.get();
        if left == 0 {
            trials.step(ticks(), kind, cost_of_many_cycles);
        } else {
            trials.left.set(left - 1);
        }
        match trials.way.get() {
            Look::Behind if self.is_held_back() => return after::<HELD_BACK>(seen),
            Look::Behind => return after::<BEHIND>(seen),
            Look::Soon => some_cycles(),
            Look::Later => spin_loop(),
            Look::Last => many_cycles(),
        }
        Moment::NOW
    }

    #[inline(always)]
    fn is_held_back(&self) -> bool {
        self.exchange.get() == self.held_back.get()
    }

    /// The first look of this exchange came too early.
    pub fn miss(&self) {
        let exchange = self.exchange.get();
        if self.waits && exchange == self.missed.get().wrapping_add(2) {
            self.held_back.set(exchange.wrapping_add(2));
        }
        self.missed.set(exchange);
    }
}

/// The trials with one kind of message.
#[derive(Default)]
struct Trials {
    way: Cell<Look>,
    /// Exchanges until the next stage.
    left: Cell<u32>,
    next: Cell<Stage>,
    /// When the last stage began, in ticks.
    begun: Cell<u64>,
    /// How long the parts of a way took.
    parts: [Cell<u64>; PARTS],
    /// The best way of the trial so far, and its time.
    best: Cell<(Look, u64)>,
    /// The way that the last trial found, and the one to go on with while trials differ.
    found: Cell<Look>,
    usual: Cell<Look>,
    /// Whether calls take so long that a moment of many cycles may be worth it, and a trial of it costs little.
    slow: Cell<bool>,
}

impl Trials {
    #[cold]
    #[inline(never)]
    fn step(&self, now: u64, kind: usize, cost_of_many: fn() -> u64) {
        let took = span(self.begun.replace(now), now);
        let tried = |at: usize| Look::TRIED[at] != Look::Last || self.slow.get();
        let begin = |at: usize| {
            // As many calls in any case: the other rank may see it otherwise.
            self.way.set(if tried(at) { Look::TRIED[at] } else { self.usual.get() });
            (Stage::Counted(at), FIRST)
        };
        let (next, left) = match self.next.get() {
            Stage::Trial => {
                self.best.set((Look::Behind, u64::MAX));
                begin(Look::BEGIN[kind])
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
                let (way, time) = (Look::TRIED[at], Look::TRIED[at].weighed(parts[PARTS / 2]));
                if tried(at) && time <= self.best.get().1 {
                    self.best.set((way, time));
                }
                if at + 1 < Look::TRIED.len() {
                    begin(at + 1)
                } else {
                    if Look::TRIED[Look::BEGIN[kind]] == Look::Last {
                        self.slow.set(self.best.get().1 > u64::from(COUNTED) * 2 * cost_of_many());
                    }
                    self.decide();
                    (Stage::Trial, PERIOD)
                }
            }
        };
        self.next.set(next);
        self.left.set(left - 1);
    }

    /// Takes a way that waits when this trial and the one before have found it: one alone may be one in which this rank
    /// lost its core.
    fn decide(&self) {
        let (best, _) = self.best.get();
        if self.found.replace(best) == best || best == Look::Behind {
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

/// So many multiplications after `seen` is known: of three cycles on x86-64; elsewhere with a load and a store each,
/// and not measured.
#[inline(always)]
fn after<const MULTIPLICATIONS: usize>(seen: u64) -> Moment {
    // SAFETY: no bit is kept.
    unsafe { Moment::when_known(squared::<MULTIPLICATIONS, 0>(seen)) }
}

/// The bits `KEPT` of `seen`, squared, and that squared, so many times. The result is known when all of it is over,
/// whatever is kept: the compiler knows none of it before.
#[inline(always)]
fn squared<const TIMES: usize, const KEPT: isize>(seen: u64) -> usize {
    #[cfg(target_arch = "x86_64")]
    {
        let value: usize;
        // SAFETY: it computes in a register.
        unsafe {
            core::arch::asm!(
                ".rept {times}", "imul {value}, {value}", ".endr", "and {value}, {kept}",
                times = const TIMES, kept = const KEPT, value = inout(reg) seen as usize => value,
                options(pure, nomem, nostack)
            );
        }
        value
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let value = (0..TIMES).fold(seen as usize, |value, _| black_box(value.wrapping_mul(value)));
        value & black_box(KEPT as usize)
    }
}

/// Takes 264 cycles, three for each multiplication, and lets no later load begin before they are over; on other
/// machines than x86-64 some pauses.
#[inline(never)]
fn many_cycles() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: it multiplies in a register; every x86-64 has the fence.
    unsafe {
        core::arch::asm!(".rept 88", "imul {0}, {0}", ".endr", "lfence", inout(reg) 3u64 => _, options(nostack));
    }
    #[cfg(not(target_arch = "x86_64"))]
    for _ in 0..4 {
        spin_loop();
    }
}

/// What they take, in ticks: the least of a few times.
fn cost_of_many_cycles() -> u64 {
    let times: [u64; 4] = std::array::from_fn(|_| {
        let begun = ticks();
        many_cycles();
        span(begun, ticks())
    });
    times.into_iter().min().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The way after `trials` trials of messages of a kind in which a call takes so many ticks: behind, soon, later,
    /// last.
    fn learnt(found: &Trials, kind: usize, trials: u32, times: [u64; 4]) -> Look {
        let mut now = found.begun.get();
        let mut over = 0;
        while over < trials {
            if found.left.get() == 0 {
                over += u32::from(found.next.get() == Stage::End(Look::TRIED.len() - 1, PARTS - 1));
                found.step(now, kind, || 100);
            } else {
                found.left.set(found.left.get() - 1);
            }
            now += times[found.way.get() as usize];
        }
        found.way.get()
    }

    #[test]
    fn the_quickest_way_is_found_and_found_again() {
        let found = Trials::default();
        for (times, way) in [
            ([572, 560, 338, 350], Look::Later),
            ([286, 300, 338, 290], Look::Behind),
            ([54, 46, 54, 90], Look::Soon),
            ([300, 299, 298, 297], Look::Behind),
            ([572, 400, 395, 290], Look::Last),
            ([572, 400, 395, 560], Look::Soon),
            ([94, 99, 99, 60], Look::Behind),
        ] {
            assert_eq!(learnt(&found, 1, 3, times), way, "{times:?}");
        }
        assert_eq!(
            learnt(&Trials::default(), 0, 2, [90, 80, 70, 1]),
            Look::Later,
            "of short messages the last way is not tried"
        );
    }

    #[test]
    fn one_trial_says_nothing() {
        let found = Trials::default();
        let learnt = |[behind, soon, later]: [u64; 3]| learnt(&found, 0, 1, [behind, soon, later, 1]);
        assert_eq!(learnt([90_000, 300, 290]), Look::Behind, "it lost its core");
        assert_eq!(learnt([290, 310, 310]), Look::Behind);
        assert_eq!(learnt([600, 590, 300]), Look::Behind);
        assert_eq!(learnt([600, 590, 300]), Look::Later);
        assert_eq!(learnt([600, 300, 590]), Look::Later);
        assert_eq!(learnt([300, 590, 600]), Look::Behind, "nothing is lost by it");
    }

    #[test]
    fn kinds_of_messages_learn_apart() {
        let approach = Approach::new(0);
        for _ in 0..PERIOD {
            approach.moment(SHORT, 7);
        }
        assert_eq!(approach.trials[1].next.get(), Stage::Trial);
        approach.moment(SHORT + 1, 7);
        assert_ne!(approach.trials[1].next.get(), Stage::Trial);
    }

    #[test]
    fn a_moment_is_zero() {
        for seen in [0, 1, 2, 7, u64::MAX, 1 << 63, 0x5555_5555_5555_5555] {
            assert_eq!(
                (after::<0>(seen).zero(), after::<BEHIND>(seen).zero(), after::<HELD_BACK>(seen).zero()),
                (0, 0, 0)
            );
        }
    }

    #[test]
    fn each_multiplication_takes_what_the_one_before_has_left() {
        for seen in [0, 2, 3, 7, 0x5555_5555_5555_5555, u64::MAX] {
            let expected = |times| (0..times).fold(seen as usize, |value, _| value.wrapping_mul(value));
            assert_eq!(squared::<0, -1>(seen), expected(0));
            assert_eq!(squared::<1, -1>(seen), expected(1));
            assert_eq!(squared::<BEHIND, -1>(seen), expected(BEHIND));
            assert_eq!(squared::<HELD_BACK, -1>(seen), expected(HELD_BACK));
        }
    }

    /// At which exchanges a rank is held back when it misses these.
    fn held_back(rank: usize, missed: &[u32]) -> Vec<u32> {
        let approach = Approach::new(rank);
        let is_held_back = |exchange: &u32| {
            approach.moment(0, 7);
            let is_held_back = approach.is_held_back();
            if missed.contains(exchange) {
                approach.miss();
            }
            is_held_back
        };
        (0..10).filter(is_held_back).collect()
    }

    #[test]
    fn of_ranks_that_miss_in_turns_rank_0_is_held_back() {
        assert_eq!(held_back(0, &[1, 3, 7, 8]), [5]);
        assert_eq!(held_back(0, &[1, 3, 5]), [5, 7]);
        assert_eq!(held_back(0, &[1, 4, 7, 8]), []);
        assert_eq!(held_back(1, &[1, 3, 5]), []);
    }

    /// All that a trial costs are some calls of many.
    #[test]
    fn trials_are_few() {
        const { assert!(3 * (FIRST + PARTS as u32 * COUNTED) < PERIOD / 12) };
        const { assert!(4 * (FIRST + PARTS as u32 * COUNTED) < PERIOD / 9) };
    }
}
