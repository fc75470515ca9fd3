//! Whether two ranks look at one result where it lies, or each at its own, which came through cells: found by timing
//! their calls, anew all the time.
//!
//! Of a result that both look at each has stored half; the other half it fetches from the other one's cache, line by
//! line, when it looks. Through cells that is done within the call, by copies of whole slices, and what was stored then
//! lies in the own cache. Where results are loaded after each call, those of 64 KiB took 12.7 us where both lay, and 8.0
//! as two between cores far apart; 5.2 and 4.6 between two that share a last-level cache, but of 256 KiB 18.5 and 21.5
//! (AMD EPYC, Zen 3). Who does not look at all of it is better off with one.
//!
//! Both ranks have to go the same way. Calls are made and counted by both, so that they know when a trial is; what came
//! of it rank 0 says in its last call, beside the place of the result: results of their own are tried first, so that
//! there is one.

use super::Engine;
use super::course::{CLASSES, Course, Trials, Turn, class_of, is_last};
use super::exchange::COPIED;
use crate::pace::ticks;
use crate::protocol::Board;
use crate::select::Collective;

/// Bytes from which on there is one result: as much memory as this each rank may have for itself.
const SHARED_FROM: usize = 4 << 20;

/// What is known of shared results.
#[derive(Default)]
pub(super) struct ViewTrial {
    classes: [Class; CLASSES],
}

/// The same of one class.
struct Class {
    better: Course,
    trials: Trials,
    /// What rank 0 says in this call, or has said: what the next ones are.
    told: Option<Course>,
}

impl Default for Class {
    fn default() -> Self {
        Self { better: Course::Lent, trials: Trials::new(Course::Cells), told: None }
    }
}

impl ViewTrial {
    /// How the result goes of a call of both ranks that begins `now`, of `bytes` bytes.
    #[inline]
    fn next(&mut self, bytes: usize, now: impl FnOnce() -> u64) -> Course {
        let Class { better, trials, told } = &mut self.classes[class_of(bytes)];
        match trials.next(now) {
            Turn::Tried(course, tried) => {
                *told = (course == Course::Lent && is_last(tried)).then(|| trials.cheaper().unwrap_or(*better));
                return course;
            }
            Turn::Settled => {}
            Turn::Ended => *better = told.take().unwrap_or(*better),
        }
        *better
    }
}

impl Engine {
    /// Whether each rank makes the next result of `bytes` bytes that all look at for itself. Asked once in each call of
    /// that kind.
    pub fn has_own_view(&mut self, bytes: usize) -> bool {
        let is_asked =
            self.board.size() == 2 && self.thresholds.tries_direct() && (COPIED..SHARED_FROM).contains(&bytes);
        is_asked && self.view_trial.next(bytes, ticks) == Course::Cells
    }

    /// What rank 0 says in this call, which has a result that both look at: whether the next ones have not.
    pub(super) fn tells_own_view(&self, bytes: usize) -> bool {
        self.view_trial.classes[class_of(bytes)].told == Some(Course::Cells)
    }

    /// Rank 0 has said so.
    pub(super) fn heed_own_view(&mut self, bytes: usize, own: bool) {
        if let Some(told) = &mut self.view_trial.classes[class_of(bytes)].told {
            *told = if own { Course::Cells } else { Course::Lent };
        }
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

    /// Two ranks go the same way in every call, though each measures something else, and what rank 0 finds is taken.
    #[test]
    fn both_go_the_way_that_rank_0_finds() {
        let mut trials = [ViewTrial::default(), ViewTrial::default()];
        let mut now = [0, 0];
        for (costs, found) in [([500, 1000], Course::Cells), ([1000, 500], Course::Lent), ([600, 1000], Course::Cells)]
        {
            let mut last = Course::Lent;
            for _ in 0..3000 {
                for bytes in [20_000, 65_536] {
                    let [zero, one] = [0, 1].map(|rank: usize| trials[rank].next(bytes, || now[rank]));
                    assert_eq!(zero, one);
                    let told = trials[0].classes[class_of(bytes)].told;
                    // Beside the place of a result of both.
                    if let (Course::Lent, Some(told)) = (zero, told) {
                        trials[1].classes[class_of(bytes)].told = Some(told);
                    }
                    now = [now[0] + costs[zero as usize], now[1] + 10 + costs[one as usize ^ 1]];
                    last = zero;
                }
            }
            assert_eq!(last, found, "{costs:?}");
        }
    }
}
