//! Whether buffers in the job's heap are used where they lie, or what they hold goes through cells like all else: found
//! by timing calls, anew all the time; calls of two ranks, and allreduces of any number.
//!
//! What is used where it lies is not copied, and calls are short. But half of each result, or more, was stored by other
//! ranks, in whose caches its lines are, and each contribution was read by them: each line that the caller touches next
//! it fetches, or takes back, by itself. Through cells lines change hands within the call, beside the copies. Which is cheaper for the callers ([`course`](super::course))
//! hangs on what they do with results, on the length, and on how far apart the cores are. With results that are loaded
//! after each call, allreduces of 64 KiB took 8.1 us where they lay and 5.0 through cells between two cores that share a
//! last-level cache, 27 and 10 us far apart; of 256 KiB 19 and 22, 98 and 36 us; on 8 ranks of such cores those of 256
//! KiB took 140 and 180 us, 630 and 360 far apart (AMD EPYC, Zen 3).
//!
//! Each rank decides for its own buffers, as each tells in each call where they lie. A rank that only gives, the root of
//! a broadcast or a leaf of a reduction, runs ahead of who takes as far as cells go: through cells it waits in a trial
//! until they are read, as it does of a buffer, since what it gains by running ahead ends where the ring does.

use super::Engine;
use super::course::{CLASSES, Course, Trials, Turn, class_of};
use super::thresholds::Thresholds;
use crate::error::Result;
use crate::pace::ticks;
use crate::protocol::{Board, RingName};
use crate::select::Collective;

/// What is known of the calls of one collective.
#[derive(Default)]
pub(super) struct HeapTrial {
    classes: [Class; CLASSES],
}

/// The same of messages of one class.
struct Class {
    better: Course,
    trials: Trials,
}

impl Default for Class {
    fn default() -> Self {
        Self { better: Course::Lent, trials: Trials::new(Course::Lent) }
    }
}

/// Calls through cells after which these may be given up before their time.
const ENOUGH: u32 = 4;

impl HeapTrial {
    /// How the buffers go of a call that begins `now`, of a message of `bytes` bytes, and whether it is part of a trial.
    #[inline]
    fn next(&mut self, bytes: usize, now: impl FnOnce() -> u64) -> (Course, bool) {
        let Class { better, trials } = &mut self.classes[class_of(bytes)];
        match trials.next(now) {
            Turn::Settled => {}
            Turn::Tried(Course::Cells, tried) if tried >= ENOUGH && trials.is_lost(Course::Cells) => {
                trials.forget();
                return (Course::Lent, false);
            }
            Turn::Tried(course, _) => return (course, true),
            Turn::Ended => *better = trials.cheaper().unwrap_or(*better),
        }
        (*better, false)
    }
}

impl Engine {
    /// The thresholds of a call of this collective, whose buffers of this rank these are (null for none), of `bytes`
    /// bytes each: the table's, or such that nothing is used where it lies.
    #[inline]
    pub(super) fn thresholds_of_call(&mut self, what: Collective, buffers: [*const u8; 2], bytes: usize) -> Thresholds {
        let Self { board, thresholds, heap_trials, settles, .. } = self;
        let lies_there = |buffer| thresholds.heap_offset(board, what, buffer, bytes).is_some();
        *settles = false;
        // Rooted calls of more ranks are as the table says: broadcasts have gained nothing through cells (8 ranks on two
        // cores), and in reductions what a leaf measures says little about the root.
        if (board.size() != 2 && what != Collective::Allreduce)
            || !thresholds.tries_direct()
            || !buffers.into_iter().any(lies_there)
        {
            return *thresholds;
        }
        let (course, tried) = heap_trials[what as usize].next(bytes, ticks);
        *settles = tried && course == Course::Cells && what != Collective::Allreduce;
        match course {
            Course::Lent => *thresholds,
            Course::Cells => thresholds.copying(what),
        }
    }

    /// Ends a rooted call that published from this position on: who gives waits for who takes, in a trial of cells.
    #[inline]
    pub(super) fn settle_if_tried(&mut self, ring: RingName, first: u64) -> Result<()> {
        if !std::mem::take(&mut self.settles) {
            return Ok(());
        }
        let Self { board, up, down, .. } = self;
        if ring == RingName::Up { up.settle(board, first) } else { down.settle(board, first) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is far dearer through cells is not tried for long, and lengths learn apart.
    #[test]
    fn each_length_finds_its_course() {
        let mut trial = HeapTrial::default();
        let mut now = 0;
        let mut through_cells = [0; 3];
        for _ in 0..4000 {
            for (at, bytes) in [8192, 65_536, 1 << 20].into_iter().enumerate() {
                let (course, _) = trial.next(bytes, || now);
                through_cells[at] += u32::from(course == Course::Cells);
                // The other lengths are next to nothing beside this one.
                now += [[500, 1000], [10, 10], [10, 12]][at][course as usize];
            }
        }
        assert!(through_cells[0] > 3500 && through_cells[1..].iter().all(|&calls| calls < 100), "{through_cells:?}");
        let mut trial = HeapTrial::default();
        let mut make = |cells| {
            let mut call = |_| {
                let (course, _) = trial.next(65_536, || now);
                now += if course == Course::Cells { cells } else { 1000 };
                course == Course::Cells
            };
            (0..4000).filter(|&at| call(at)).count()
        };
        let lost = make(1900);
        assert!(lost < 6 * (ENOUGH as usize + 1), "{lost}");
        assert!(make(500) > 2500);
    }
}
