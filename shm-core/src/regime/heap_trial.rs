//! Whether buffers in the job's heap are used where they lie, or what they hold goes through cells like all else: found
//! by timing calls, anew all the time; calls of two ranks, and allreduces of any number.
//!
//! What is used where it lies is not copied, and calls are short. But half of each result, or more, was stored by other
//! ranks, in whose caches its lines are, and each contribution was read by them: each line that the caller touches next
//! it fetches, or takes back, by itself. Through cells lines change hands within the call, beside the copies. Which is
//! cheaper for the callers ([`course`](super::course)) hangs on what they do with results, on the length, and on how
//! far apart the cores are. With results that are loaded after each call, allreduces of 64 KiB took 8.1 us where they
//! lay and 5.0 through cells between two cores that share a last-level cache, 27 and 10 us far apart; of 256 KiB 19 and
//! 22, 98 and 36 us; on 8 ranks of such cores those of 256 KiB took 140 and 180 us, 630 and 360 far apart (AMD EPYC,
//! Zen 3).
//!
//! Each rank decides for its own buffers, as each tells in each call where they lie. A rank that only gives, the root
//! of a broadcast or a leaf of a reduction, runs ahead of who takes as far as cells go. What it gains by that is gained
//! if the other one comes after as quickly, and ends where the ring does if not: so it waits until all is read before
//! the calls through cells that count in a trial, and again at the end of the last of them. This second wait is part of
//! what they cost.

use super::Engine;
use super::course::{CLASSES, Course, Trials, Turn, Turns, class_of};
use super::thresholds::Thresholds;
use crate::error::Result;
use crate::pace::ticks;
use crate::protocol::{Board, RingName};
use crate::select::Collective;

/// What is known of all collectives' calls.
pub(super) struct HeapTrials {
    of: [HeapTrial; 4],
    turns: Turns,
    /// The collective and the class of this call if it is one of a trial at whose end who publishes waits for who reads.
    settles: Option<(Collective, usize)>,
}

impl Default for HeapTrials {
    /// Nothing is known.
    fn default() -> Self {
        Self { of: Collective::ALL.map(HeapTrial::new), turns: Turns::default(), settles: None }
    }
}

/// What is known of the calls of one collective.
struct HeapTrial {
    classes: [Class; CLASSES],
}

/// The same of messages of one class.
struct Class {
    better: Course,
    trials: Trials,
}

impl HeapTrial {
    fn new(what: Collective) -> Self {
        // Ranks that exchange write where they have read: there cells are few.
        let trials = |class| Trials::new(Course::Lent, (what as usize, class), what != Collective::Allreduce);
        let class = |class| Class { better: Course::Lent, trials: trials(class) };
        Self { classes: std::array::from_fn(class) }
    }

    /// How the buffers go of a call that begins `now`, of a message of this class, and whether what it leaves to be
    /// done should be waited for.
    #[inline]
    fn next(&mut self, class: usize, turns: &mut Turns, now: impl FnOnce() -> u64) -> (Course, bool) {
        let Class { better, trials } = &mut self.classes[class];
        match trials.next(turns, now) {
            Turn::Settled => {}
            Turn::Tried(Course::Cells) | Turn::Last(Course::Cells) if trials.is_lost(Course::Cells) => {
                trials.forget();
                return (Course::Lent, false);
            }
            Turn::Tried(course) | Turn::Last(course) => return (course, trials.rests()),
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
        let Self { board, thresholds, heap_trials, view_trial, .. } = self;
        let HeapTrials { of, turns, settles } = heap_trials;
        let lies_there = |buffer| thresholds.heap_offset(board, what, buffer, bytes).is_some();
        *settles = None;
        // Rooted calls of more ranks are as the table says: broadcasts have gained nothing through cells (8 ranks on
        // two cores), and in reductions what a leaf measures says little about the root.
        let is_tried = match board.size() {
            1 => false,
            2 => true,
            _ => what == Collective::Allreduce,
        };
        if !is_tried || !thresholds.tries_direct() || !buffers.into_iter().any(lies_there) {
            return *thresholds;
        }
        turns.yields = view_trial.is_running();
        let class = class_of(bytes);
        let (course, rests) = of[what as usize].next(class, turns, ticks);
        if rests && course == Course::Cells && what != Collective::Allreduce {
            *settles = Some((what, class));
        }
        match course {
            Course::Lent => *thresholds,
            Course::Cells => thresholds.copying(what),
        }
    }

    /// Ends a rooted call that published from this position on: who gives waits for who takes where a trial of cells
    /// begins to count, and where it ends.
    #[inline]
    pub(super) fn settle_if_tried(&mut self, ring: RingName, first: u64) -> Result<()> {
        let Some((what, class)) = self.heap_trials.settles.take() else { return Ok(()) };
        let Self { board, up, down, heap_trials, .. } = self;
        let begun = ticks();
        if ring == RingName::Up { up.settle(board, first) } else { down.settle(board, first) }?;
        heap_trials.of[what as usize].classes[class].trials.rested(ticks().wrapping_sub(begun));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Job, JobSpec};
    use crate::operator::Sum;

    /// What is far dearer through cells is not tried for long, and lengths learn apart.
    #[test]
    fn each_length_finds_its_course() {
        let (mut trial, mut turns) = (HeapTrial::new(Collective::Allreduce), Turns::default());
        let mut now = 0;
        let mut through_cells = [0; 3];
        for _ in 0..6000 {
            for (at, bytes) in [65_536, 1 << 20, 8192].into_iter().enumerate() {
                let (course, _) = trial.next(class_of(bytes), &mut turns, || now);
                through_cells[at] += u32::from(course == Course::Cells);
                now += [[90, 100], [110, 100], [100, 1000]][at][course as usize];
            }
        }
        assert!(through_cells[2] > 4500 && through_cells[..2].iter().all(|&calls| calls < 100), "{through_cells:?}");
        let (mut trial, mut turns) = (HeapTrial::new(Collective::Allreduce), Turns::default());
        let mut make = |cells| {
            let mut call = |_| {
                let (course, _) = trial.next(class_of(65_536), &mut turns, || now);
                now += if course == Course::Cells { cells } else { 1000 };
                course == Course::Cells
            };
            (0..4000).filter(|&at| call(at)).count()
        };
        let lost = make(1900);
        assert!(lost < 6 * 5, "{lost}");
        assert!(make(500) > 1500);
    }

    /// Calls of ranks that try both courses, until each class has had a trial and some calls more, with contents
    /// checked: through one slice and several, by shares, and by both ranks of two; and again of another root.
    #[test]
    fn results_are_right_whatever_is_tried() {
        for (size, lengths) in [(2, vec![16_384, 40_000, 65_536, 300_000, 1 << 20]), (3, vec![65_536])] {
            let job = Job::create(&JobSpec::new(size).unwrap()).unwrap();
            let ended = job.on_threads(|world| {
                let rank = world.rank() as u64;
                let mut tried = Vec::new();
                for &bytes in &lengths {
                    let words = bytes / 8;
                    let [mut mine, mut all] = [(); 2].map(|()| world.alloc::<u64>(words).unwrap());
                    // Trials of long ones come early.
                    let turn: u64 = if bytes < 1 << 20 { 400 } else { 40 };
                    for call in 0..3 * turn {
                        let root = (call / turn) as usize % 2;
                        let process = world.process_at_rank(root);
                        let whole = |got: &[u64], each: &dyn Fn(u64) -> u64| {
                            let step = if call.is_multiple_of(50) { 1 } else { 97 };
                            (0..words).step_by(step).all(|i| got[i] == each(i as u64))
                        };
                        let all_ranks = size as u64;
                        let sum = |i: u64| all_ranks * (i + call) + all_ranks * (all_ranks - 1) / 2;
                        (0..).zip(mine.iter_mut()).for_each(|(i, x)| *x = i + call + rank);
                        world.all_reduce_into(&mine, &mut all, Sum).unwrap();
                        assert!(whole(&all, &sum), "allreduce {call} of {bytes}");
                        if size == 2 {
                            match world.rank() == root {
                                true => process.reduce_into_root(&mine, &mut all, Sum).unwrap(),
                                false => process.reduce_into(&mine, Sum).unwrap(),
                            }
                            assert!(whole(&all, &sum), "reduce {call} of {bytes}");
                            process.broadcast_into(&mut mine).unwrap();
                            assert!(whole(&mine, &|i| i + call + root as u64), "broadcast {call} of {bytes}");
                        }
                    }
                    let engine = world.enter().unwrap();
                    assert!(engine.heap_trials.settles.is_none());
                    tried.push(
                        engine.heap_trials.of.each_ref().map(|trial| trial.classes[class_of(bytes)].trials.ended()),
                    );
                }
                tried
            });
            // A root that never gives has no trials of its own in broadcasts; here both were roots.
            let wanted = if size == 2 { [0, 1, 1, 1] } else { [0, 0, 0, 1] };
            for ended in ended.into_iter().flatten() {
                assert!(ended.iter().zip(wanted).all(|(&ended, wanted)| ended >= wanted), "{ended:?}");
            }
        }
    }

    /// Of all calls of a trial it is the last one behind which a root waits and tells.
    #[test]
    fn a_root_waits_once_for_what_it_is_ahead() {
        const BYTES: usize = 32 << 10;
        let job = Job::create(&JobSpec::new(2).unwrap()).unwrap();
        let rests = job.on_threads(|world| {
            let mut all = world.alloc::<u8>(BYTES).unwrap();
            let call = |_| {
                world.process_at_rank(0).broadcast_into(&mut all).unwrap();
                let mut engine = world.enter().unwrap();
                let trials = &mut engine.heap_trials.of[Collective::Broadcast as usize].classes[class_of(BYTES)].trials;
                let rest = trials.rest();
                // Cells are never too dear to go on with.
                trials.measured([1, 1 << 40]);
                rest
            };
            (0..200).map(call).filter(|&rest| rest > 0).count()
        });
        assert_eq!(rests, [1, 0]);
    }
}
