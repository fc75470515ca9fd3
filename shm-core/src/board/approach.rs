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
mod tests;
