//! Waiting for a word: a rank looks, spins, yields, sleeps; and now and then asks why its wait could have no end.

use std::time::{Duration, Instant};

use super::calls::{FAULT_DROPPED, FAULT_MISMATCH, FAULT_REFUSED};
use super::{FlagWord, SharedBoard};
use crate::counters::add;
use crate::error::Result;
use crate::protocol::{Board, Edge, Until, Word};
use crate::seat::NAP;
use crate::segment::header::Standing;

/// What a rank does while it waits for others: returns how long it may sleep before it is due again, or nothing when it
/// cannot go on.
pub type IdleHook = Box<dyn FnMut() -> Option<Duration> + Send>;

/// Looks of a rank that has a core for itself that follow one which failed: a pause between two of them, and nothing
/// else.
const FEW: u32 = 32;

/// Spins between two calls of the idle hook.
const HOOK_ROUND: u32 = 64;

impl SharedBoard {
    /// Sets what is done while this rank waits.
    pub fn set_idle(&self, hook: Option<IdleHook>) {
        self.idle.replace(hook);
    }

    /// Calls the idle hook, if there is one, and returns how long this rank may sleep.
    pub(super) fn idle(&self) -> Duration {
        // Borrowed already: the hook itself waits on this communicator. Then it is not called again.
        let Ok(mut hook) = self.idle.try_borrow_mut() else { return NAP };
        // Where it panics this rank is out of its call, halfway: who left that call does not wait for it.
        let due = self.seat.stopping_at_panic(|| hook.as_mut().map(|hook| hook()), || self.unnote());
        match due {
            None => NAP,
            Some(Some(nap)) => nap.min(NAP),
            Some(None) => {
                self.give_up();
                Duration::ZERO
            }
        }
    }

    /// Looks a few times more, where this rank has a core for itself, before it settles down to wait.
    #[cold]
    #[inline(never)]
    pub(super) fn look_again(&self, writer: usize, word: &FlagWord, until: Until, edge: Edge) -> Result<u64> {
        if let Some(approach) = &self.approach {
            approach.miss();
        }
        for _ in 0..self.seat.patience.spins.min(FEW) {
            std::hint::spin_loop();
            let value = word.observe(edge);
            self.seen.set(value);
            if until.holds(value) {
                add(&self.tally.waits, 1);
                return Ok(value);
            }
        }
        self.wait_slowly(writer, word, until, edge).inspect(|&value| self.seen.set(value))
    }

    /// Looks for reasons why a wait for `writer` could have no end.
    fn inspect(&self, writer: usize, word: &FlagWord, until: Until, edge: Edge) -> Result<()> {
        // J2, C3: what a rank that left published and said before is visible after this: looked at first, judged last.
        let job_rank = self.members[writer];
        let has_left = self.seat.mapping().rank(job_rank).standing() as u32 >= Standing::Left as u32;
        let has_dropped = self.has_dropped(writer);
        if let Some(fault) = self.fault() {
            return Err(fault);
        }
        let refused = self.differing_call(writer);
        if until.mismatches(word.observe(edge)) || refused.is_some() {
            let (kind, writer) = match refused {
                Some(Some(rank)) => (FAULT_REFUSED, rank),
                _ => (FAULT_MISMATCH, writer),
            };
            self.set_fault(kind, writer);
            return Err(self.fault().expect("it was just written"));
        }
        if has_left || has_dropped {
            let value = word.observe(edge);
            if !until.holds(value) && !until.mismatches(value) {
                if has_left {
                    return Err(self.seat.condemn(job_rank));
                }
                self.set_fault(FAULT_DROPPED, writer);
                return Err(self.fault().expect("it was just written"));
            }
        }
        Ok(())
    }

    /// Spins, then yields, then sleeps, until the word holds what is waited for: as long of each as the seat has
    /// patience for.
    ///
    /// # Errors
    /// When `writer` has failed, has dropped its handle, or made another call.
    pub(super) fn settle_down(&self, writer: usize, word: &FlagWord, until: Until, edge: Edge) -> Result<u64> {
        /// Yields between two looks at the whole situation.
        const LOOK_ROUND: u32 = 32;
        /// Yields between two calls of the idle hook, which may itself give the core away: an MPI that is told to does.
        const IDLE_ROUND: u32 = 4;
        /// Yields between two looks at the clock, which most waits do not come to.
        const CLOCK_ROUND: u32 = 8;
        /// Time, from the first look at the clock on, after which there are no more yields: on a core where somebody
        /// computes each of them takes a turn of the scheduler, milliseconds.
        const YIELDING: Duration = Duration::from_millis(10);
        let look = || Some(word.observe(edge)).filter(|&value| until.holds(value));
        add(&self.tally.waits, 1);
        for turn in 0..self.seat.patience.spins {
            std::hint::spin_loop();
            if let Some(value) = look() {
                return Ok(value);
            }
            if turn % HOOK_ROUND == HOOK_ROUND - 1 {
                self.idle();
            }
        }
        let mut began = None;
        for turn in 0..self.seat.patience.yields {
            if turn % CLOCK_ROUND == CLOCK_ROUND - 1 && began.get_or_insert_with(Instant::now).elapsed() > YIELDING {
                break;
            }
            if turn % LOOK_ROUND == LOOK_ROUND - 1 {
                self.inspect(writer, word, until, edge)?;
            }
            if turn % IDLE_ROUND == IDLE_ROUND - 1 {
                self.idle();
            }
            // Lines are short: what is spent here on waiting for another core is less than what a core takes to change
            // hands.
            if matches!(edge, Edge::LinePublish | Edge::LineReuse) && !self.is_core_wanted(writer) {
                for _ in 0..self.seat.patience.alone {
                    std::hint::spin_loop();
                    if let Some(value) = look() {
                        return Ok(value);
                    }
                }
            }
            std::thread::yield_now();
            add(&self.tally.yields, 1);
            if let Some(value) = look() {
                return Ok(value);
            }
        }
        loop {
            self.inspect(writer, word, until, edge)?;
            let nap = self.idle();
            if self.seat.sleep_on(self.members[writer], nap, || look().is_some() || self.has_dropped(writer)) {
                add(&self.tally.sleeps, 1);
            }
            if let Some(value) = look() {
                return Ok(value);
            }
        }
    }
}
