//! Whether two ranks look at one result where it lies, or each at its own, which came through cells: found by timing
//! their calls, anew all the time.
//!
//! Of a result that both look at each has stored half; the other half it fetches from the other one's cache, line by
//! line, when it looks. Through cells that is done within the call, by copies of whole slices, and what was stored then
//! lies in the own cache. Where results are loaded after each call, those of 64 KiB took 12.7 us where both lay, and
//! 8.0 as two between cores far apart; 5.2 and 4.6 between two that share a last-level cache, but of 256 KiB 18.5 and
//! 21.5 (AMD EPYC, Zen 3). Who does not look at all of it is better off with one.
//!
//! Both ranks have to go the same way. Both count their calls alike, so that they know when a trial is. What came of it
//! rank 0 says in its last call, beside the place of the result, and both go by it from there on: results of their own
//! are tried first, so that the last one is common. Calls of the two kinds have different tags.

use super::Engine;
use super::course::{CLASSES, Course, Trials, Turn, Turns, class_of};
use super::exchange::COPIED;
use crate::pace::ticks;
use crate::protocol::Board;
use crate::select::Collective;

/// A result of so many bytes or more is always one: nobody should need that memory once more.
const COMMON_FROM: usize = 2 << 20;

/// What is known of shared results.
pub(super) struct ViewTrial {
    classes: Box<[Class; CLASSES]>,
    turns: Turns,
}

/// The same of one class.
struct Class {
    better: Course,
    trials: Trials,
    /// What rank 0 has said in the trial that is running.
    told: Option<Course>,
    /// Whether this call is the one in which it does.
    tells: bool,
}

impl Default for ViewTrial {
    /// Nothing is known.
    fn default() -> Self {
        let trials = |class| Trials::new(Course::Cells, (0, class), false);
        let class = |class| Class { better: Course::Lent, trials: trials(class), told: None, tells: false };
        Self { classes: Box::new(std::array::from_fn(class)), turns: Turns::default() }
    }
}

impl ViewTrial {
    fn class(&mut self, bytes: usize) -> &mut Class {
        &mut self.classes[class_of(bytes)]
    }

    /// How the result goes of a call of both ranks that begins `now`, of `bytes` bytes.
    #[inline]
    fn next(&mut self, bytes: usize, now: impl FnOnce() -> u64) -> Course {
        let Self { classes, turns } = self;
        let Class { better, trials, told, tells } = &mut classes[class_of(bytes)];
        *tells = false;
        match trials.next(turns, now, || false) {
            Turn::Tried(course) => return course,
            Turn::Last(course) => {
                *tells = true;
                return course;
            }
            Turn::Settled => {}
            Turn::Ended => *better = told.take().unwrap_or(*better),
        }
        *better
    }

    /// Whether a trial is.
    pub fn is_running(&self) -> bool {
        self.turns.are_taken()
    }

    /// What rank 0 says in this call, which has a common result, of those that follow: by what it has measured.
    fn says(&mut self, bytes: usize) -> Course {
        let Class { better, trials, tells, .. } = self.class(bytes);
        if *tells { trials.cheaper().unwrap_or(*better) } else { Course::Lent }
    }

    /// This call has ended well, and rank 0 has said that.
    fn heed(&mut self, bytes: usize, said: Course) {
        let Class { told, tells, .. } = self.class(bytes);
        if *tells {
            *told = Some(said);
        }
    }
}

impl Engine {
    /// Whether the result of `bytes` bytes of the call that begins now, which all look at, is each rank's own. To be
    /// asked once in each call that would be carried out either way.
    pub fn begin_view(&mut self, bytes: usize) -> bool {
        let is_asked =
            self.board.size() == 2 && self.thresholds.tries_direct() && (COPIED..COMMON_FROM).contains(&bytes);
        is_asked && self.view_trial.next(bytes, ticks) == Course::Cells
    }

    /// Whether rank 0 says in this call, which has a common result, that the next ones are each rank's own.
    pub(super) fn says_own_view(&mut self, bytes: usize) -> bool {
        self.view_trial.says(bytes) == Course::Cells
    }

    /// This call has ended well, and rank 0 has said that.
    pub(super) fn heed_own_view(&mut self, bytes: usize, own: bool) {
        self.view_trial.heed(bytes, if own { Course::Cells } else { Course::Lent });
    }

    /// Makes a call in which nothing in the heap is used where it lies.
    pub fn copying<R>(&mut self, what: Collective, call: impl FnOnce(&mut Self) -> R) -> R {
        let thresholds = self.thresholds;
        self.thresholds = thresholds.copying(what);
        let result = call(self);
        self.thresholds = thresholds;
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Job, JobSpec};
    use crate::operator::Sum;

    /// Two ranks go the same way in every call, though each measures the opposite, and it is the one that rank 0 finds.
    #[test]
    fn both_go_the_way_that_rank_0_finds() {
        const LONG: usize = 5000;
        for (found, least) in [(Course::Cells, [1, 1 << 40]), (Course::Lent, [1 << 40, 1])] {
            let job = Job::create(&JobSpec::new(2).unwrap()).unwrap();
            let kinds = job.on_threads(|world| {
                let measured = if world.rank() == 0 { least } else { [least[1], least[0]] };
                let mine = vec![world.rank() as u64; LONG];
                let kinds = (0..400).map(|_| {
                    let sum = world.all_reduce_shared(&mine, Sum).unwrap();
                    assert_eq!(*sum, [1; LONG]);
                    let mut engine = world.enter().unwrap();
                    // What it costs both is nothing against what they are told.
                    engine.view_trial.class(8 * LONG).trials.measured(measured);
                    sum.is_own()
                });
                kinds.collect::<Vec<_>>()
            });
            assert_eq!(kinds[0], kinds[1]);
            // Behind the first trial, whenever that is, and before the second.
            let first = kinds[0].iter().position(|own| *own).unwrap();
            let after = &kinds[0][first + 26..][..100];
            assert!(after.iter().all(|own| *own == (found == Course::Cells)), "{found:?}: {after:?}");
        }
    }

    /// What is not carried out is not heard by anybody.
    #[test]
    fn a_trial_whose_last_call_is_refused_changes_nothing() {
        let mut trial = ViewTrial::default();
        let mut now = 0;
        let (mut tried, mut says, mut last) = (0, 0, Course::Cells);
        for _ in 0..300 {
            last = trial.next(65_536, || now);
            tried += u32::from(last == Course::Cells);
            says += u32::from(trial.says(65_536) == Course::Cells);
            now += if last == Course::Cells { 500 } else { 1000 };
        }
        assert_eq!((tried, says, last), (13, 1, Course::Lent));
    }
}
