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
//! Each rank decides for its own buffers, as each tells in each call where they lie; of a broadcast or a reduction of
//! two ranks in which one of them fills all cells (a reduction by shares is none), that one decides. A rank that only
//! gives, the root of a broadcast or a leaf of a reduction, runs ahead of who takes as far as cells go. What it gains
//! by that is gained if the other one comes after as quickly, and ends where the ring does if not: so it waits until
//! all is read before the calls through cells that count in a trial, and again at the end of the last of them. This
//! second wait is part of what they cost.
//!
//! While it is being found out how cells are best filled, what calls through them cost says nothing: far apart one of
//! the ways that are tried takes three times as long as another. Who decides alone knows that of its cells. So its
//! trials begin to count when the ways are known, if that does not take too long; one in whose calls they were looked
//! for anew decides nothing, and the next one comes soon.
//!
//! Where one rank alone decides about long messages, a trial comes before it is due if calls
//! [take otherwise](super::drift) than they did. Where each decides for itself both would have to see that at the same
//! call.

use super::Engine;
use super::course::{CLASSES, Course, Trials, Turn, Turns, class_of};
use super::cut::Cut;
use super::drift::Drift;
use super::thresholds::Thresholds;
use crate::error::Result;
use crate::pace::{Lines, Pace, span, ticks};
use crate::protocol::{Board, RingName};
use crate::select::Collective;

/// What is known of all collectives' calls.
pub(super) struct HeapTrials {
    of: [HeapTrial; 4],
    /// Of trials that both ranks make at the same calls, and of those of this rank alone, which let the others go
    /// first.
    turns: Turns,
    lone: Turns,
    /// This call, if it goes through cells because of a trial.
    tried: Option<Tried>,
}

/// A rooted call through cells that is part of a trial.
#[derive(Clone, Copy)]
struct Tried {
    what: Collective,
    class: usize,
    /// Whether who publishes waits at its end for who reads.
    rests: bool,
    /// Whether ways into its cells were being compared when it began.
    compared: bool,
}

/// The cells that a call through them fills: their ring, and its slices, where this rank alone fills any.
pub(super) type Filled = (RingName, Option<Cut>);

impl Default for HeapTrials {
    /// Nothing is known.
    fn default() -> Self {
        Self { of: Collective::ALL.map(HeapTrial::new), turns: Turns::default(), lone: Turns::default(), tried: None }
    }
}

/// What is known of the calls of one collective.
struct HeapTrial {
    classes: Box<[Class; CLASSES]>,
}

/// The same of messages of one class.
struct Class {
    better: Course,
    trials: Trials,
    /// Of long messages, where this rank alone decides.
    drift: Drift,
}

impl HeapTrial {
    fn new(what: Collective) -> Self {
        // Ranks that exchange write where they have read: there cells are few.
        let trials = |class| Trials::new(Course::Lent, (what as usize, class), what != Collective::Allreduce);
        let class = |class| Class { better: Course::Lent, trials: trials(class), drift: Drift::default() };
        Self { classes: Box::new(std::array::from_fn(class)) }
    }

    /// How the buffers go of a call that begins `now`, of a message of this class, and if that is because of a trial,
    /// whether what it leaves to be done should be waited for. Who decides `alone` begins a trial when it will;
    /// `compares` says whether ways into cells are being compared.
    #[inline]
    fn next(
        &mut self,
        class: usize,
        turns: &mut Turns,
        now: impl Fn() -> u64,
        (alone, compares): (bool, impl FnOnce() -> bool),
    ) -> (Course, Option<bool>) {
        let Class { better, trials, drift } = &mut self.classes[class];
        let watches = alone && Trials::are_long(class);
        match trials.next(turns, &now, compares) {
            Turn::Settled if watches && drift.shows(now()) => trials.hasten(),
            Turn::Settled => {}
            Turn::Tried(Course::Cells) | Turn::Last(Course::Cells) if trials.is_lost(Course::Cells) => {
                trials.forget();
                return (Course::Lent, None);
            }
            Turn::Tried(course) | Turn::Last(course) => {
                drift.interrupt();
                return (course, Some(trials.rests()));
            }
            Turn::Ended => {
                if let Some((found, usual)) = trials.cheaper().and_then(|found| Some((found, trials.average(found)?))) {
                    drift.found(usual, found != *better);
                    *better = found;
                }
            }
        }
        (*better, None)
    }
}

impl Engine {
    /// The thresholds of a call of this collective, whose buffers of this rank these are (null for none), of `bytes`
    /// bytes each: the table's, or such that nothing is used where it lies. Where this rank alone decides, it says
    /// which cells it fills then.
    #[inline]
    pub(super) fn thresholds_of_call(
        &mut self,
        what: Collective,
        (buffers, bytes): ([*const u8; 2], usize),
        filled: Option<Filled>,
    ) -> Thresholds {
        let Self { board, thresholds, heap_trials, view_trial, up_pace, down_pace, takes, .. } = self;
        let HeapTrials { of, turns, lone, tried } = heap_trials;
        let lies_there = |buffer| thresholds.heap_offset(board, what, buffer, bytes).is_some();
        *tried = None;
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
        lone.yields = turns.yields || turns.are_taken();
        let class = class_of(bytes);
        let alone = filled.and_then(|(ring, slices)| Some((ring, slices?)));
        let mut pace = match alone {
            Some((RingName::Up, _)) => Some(up_pace),
            Some(_) => Some(down_pace),
            None => None,
        };
        let takes = *takes;
        let compares = || alone.zip(pace.as_ref()).is_some_and(|((_, cut), pace)| compares(pace, cut, takes));
        let turns = if alone.is_some() { lone } else { turns };
        let (course, rests) = of[what as usize].next(class, turns, ticks, (alone.is_some(), &compares));
        if let (Course::Cells, Some(rests), Some(_)) = (course, rests, filled) {
            *tried = Some(Tried { what, class, rests, compared: compares() });
            if let Some(pace) = &mut pace {
                pace.watch(true);
            }
        }
        match course {
            Course::Lent => *thresholds,
            Course::Cells => thresholds.copying(what),
        }
    }

    /// Ends a rooted call, as it was `done`, that filled these cells from this position on, or had them filled: who
    /// gives waits for who takes where a trial of cells begins to count, and where it ends.
    #[inline]
    pub(super) fn settle_if_tried(&mut self, (ring, slices): Filled, first: u64, done: Result<()>) -> Result<()> {
        match self.heap_trials.tried.take() {
            None => done,
            Some(tried) => self.settle(tried, (ring, slices), first, done),
        }
    }

    #[cold]
    fn settle(&mut self, tried: Tried, (ring, slices): Filled, first: u64, done: Result<()>) -> Result<()> {
        let Self { board, up, down, up_pace, down_pace, heap_trials, takes, .. } = self;
        let trials = &mut heap_trials.of[tried.what as usize].classes[tried.class].trials;
        let (pace, ring) = if ring == RingName::Up { (up_pace, up) } else { (down_pace, down) };
        pace.watch(false);
        done?;
        if slices.is_some_and(|slices| tried.compared || compares(pace, slices, *takes)) {
            trials.spoil();
        }
        if tried.rests {
            let begun = ticks();
            ring.settle(board, first)?;
            trials.rested(span(begun, ticks()));
        }
        Ok(())
    }
}

/// Whether the ways are being compared by which such slices fill cells: the lines of the only one may have been taken
/// ahead.
fn compares(pace: &Pace, cut: Cut, takes: bool) -> bool {
    match cut.count() {
        1 => pace.compares(cut.bytes(), if takes { Lines::Taken } else { Lines::Left }),
        _ => pace.compares(cut.range(1).1, Lines::Left),
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
                let (course, _) = trial.next(class_of(bytes), &mut turns, || now, (false, || false));
                through_cells[at] += u32::from(course == Course::Cells);
                now += [[90, 100], [110, 100], [100, 1000]][at][course as usize];
            }
        }
        assert!(through_cells[2] > 4500 && through_cells[..2].iter().all(|&calls| calls < 100), "{through_cells:?}");
        let (mut trial, mut turns) = (HeapTrial::new(Collective::Allreduce), Turns::default());
        let mut make = |cells| {
            let mut call = |_| {
                let (course, _) = trial.next(class_of(65_536), &mut turns, || now, (false, || false));
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
                    // Trials of long ones come early; but one whose root has changed holds up others for 256 calls.
                    let turn: u64 = if bytes < 1 << 20 { 700 } else { 350 };
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
                    assert!(engine.heap_trials.tried.is_none());
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

    /// Of a reduction through cells the leaf alone decides.
    #[test]
    fn a_root_of_reductions_tries_nothing() {
        const BYTES: usize = 1 << 20;
        let job = Job::create(&JobSpec::new(2).unwrap()).unwrap();
        let ended = job.on_threads(|world| {
            let [mut mine, mut all] = [(); 2].map(|()| world.alloc::<u64>(BYTES / 8).unwrap());
            mine.fill(world.rank() as u64 + 1);
            for _ in 0..120 {
                let root = world.process_at_rank(0);
                match world.rank() {
                    0 => root.reduce_into_root(&mine, &mut all, Sum).unwrap(),
                    _ => root.reduce_into(&mine, Sum).unwrap(),
                }
            }
            assert!(world.rank() > 0 || all.iter().all(|&sum| sum == 3));
            let engine = world.enter().unwrap();
            engine.heap_trials.of[Collective::Reduce as usize].classes[class_of(BYTES)].trials.ended()
        });
        assert!(ended[0] == 0 && ended[1] > 0, "{ended:?}");
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
