//! Whether the root of a long broadcast to one other rank lends its private buffer, or fills cells with it: found by timing calls,
//! anew all the time.
//!
//! What is lent is moved by the kernel, once, and by both ranks, a half each (`joint`). Through cells it is moved twice, at the speed of the ranks' own
//! copies, and while the one rank takes the other one fills. Which of the two is quicker depends on what the caches hold, on how far
//! apart the cores are, and on whether each rank has one; in virtual machines it changes while a job runs. On a machine with small caches (AMD EPYC, 8 MiB of
//! third level by its own word) 1 MiB took 54 us through cells and 82 lent while its two cores were near each other, 138 and 107 while they were
//! far apart, and 4 MiB 530 and 375, 780 and 550.
//!
//! The root decides alone, and the other one finds what it did. A call is timed until the other rank has all of it, for which the root waits
//! in a trial: with cells, it would not otherwise.

/// Messages of fewer bytes go through cells.
pub(super) const LEAST: usize = 256 << 10;

/// Classes of messages, by the power of two, from [`LEAST`] on; the last takes all longer ones.
const CLASSES: usize = 6;

/// Calls before the first trial: in the first ones the system finds memory for the cells.
const FIRST: u32 = 8;

/// Calls of each way in a trial, of which the quickest counts: the other rank may have been late for one.
const TRIES: u32 = 4;

/// Calls from one trial to the next.
const PERIOD: u32 = 256;

/// How a message goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Course {
    /// Through cells.
    #[default]
    Cells,
    /// The root's buffer is lent.
    Lent,
}

/// The next call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Next {
    pub course: Course,
    /// Whether what it takes is to be [learnt](LendTrial::learn).
    pub timed: bool,
}

/// What is known of broadcasts from one root.
#[derive(Default)]
pub(super) struct LendTrial {
    classes: [Class; CLASSES],
}

impl LendTrial {
    /// How a message of `bytes` bytes goes, [`LEAST`] at least.
    pub fn next(&mut self, bytes: usize) -> Next {
        self.class(bytes).next()
    }

    /// Takes how many ticks a call took that was timed.
    pub fn learn(&mut self, bytes: usize, course: Course, ticks: u64) {
        self.class(bytes).learn(course, ticks);
    }

    fn class(&mut self, bytes: usize) -> &mut Class {
        &mut self.classes[((bytes / LEAST).max(1).ilog2() as usize).min(CLASSES - 1)]
    }
}

/// What is known of messages of one class.
struct Class {
    better: Course,
    /// The least that either has taken in the trial that is running.
    least: [u64; 2],
    /// Calls until the trial after the next call; 0 in a trial.
    left: u32,
    /// Calls of the trial so far.
    tried: u32,
}

impl Default for Class {
    fn default() -> Self {
        Self { better: Course::Cells, least: [u64::MAX; 2], left: FIRST, tried: 0 }
    }
}

impl Class {
    fn next(&mut self) -> Next {
        if self.left > 0 {
            self.left -= 1;
            return Next { course: self.better, timed: false };
        }
        let course = if self.tried < TRIES { self.better } else { self.other() };
        self.tried += 1;
        Next { course, timed: true }
    }

    fn other(&self) -> Course {
        if self.better == Course::Cells { Course::Lent } else { Course::Cells }
    }

    fn learn(&mut self, course: Course, ticks: u64) {
        let least = &mut self.least[course as usize];
        *least = ticks.min(*least);
        let is_lost = course != self.better && ticks / 2 > self.least[self.better as usize];
        if self.tried >= 2 * TRIES || is_lost {
            let [cells, lent] = self.least;
            // A root whose message goes through cells may go on before the other rank has it: that is worth something.
            self.better = if lent.saturating_add(lent / 8) < cells { Course::Lent } else { Course::Cells };
            *self = Self { better: self.better, left: PERIOD - 2 * TRIES, ..Self::default() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of so many calls are lent, where either way takes so long, and how many are timed.
    fn calls(trial: &mut LendTrial, bytes: usize, calls: u32, took: impl Fn(u32, Course) -> u64) -> (u32, u32) {
        (0..calls).fold((0, 0), |(lent, timed), call| {
            let next = trial.next(bytes);
            if next.timed {
                trial.learn(bytes, next.course, took(call, next.course));
            }
            (lent + u32::from(next.course == Course::Lent), timed + u32::from(next.timed))
        })
    }

    fn take(cells: u64, lent: u64) -> impl Fn(u32, Course) -> u64 {
        move |_, course| if course == Course::Cells { cells } else { lent }
    }

    #[test]
    fn the_quicker_course_is_found_and_found_again() {
        let mut trial = LendTrial::default();
        let begin = FIRST + 2 * TRIES;
        assert_eq!(calls(&mut trial, LEAST, begin, take(900, 500)), (TRIES, 2 * TRIES));
        assert_eq!(calls(&mut trial, LEAST, PERIOD - 2 * TRIES, take(0, 0)), (PERIOD - 2 * TRIES, 0));
        assert_eq!(calls(&mut trial, LEAST, 2 * TRIES, take(400, 500)), (TRIES, 2 * TRIES));
        assert_eq!(calls(&mut trial, LEAST, PERIOD - 2 * TRIES, take(0, 0)), (0, 0));
    }

    #[test]
    fn what_is_lent_has_to_be_quicker_by_some() {
        for (cells, lent, found) in [(500, 460, 0), (500, 440, 20), (500, 501, 0)] {
            let mut trial = LendTrial::default();
            calls(&mut trial, LEAST, FIRST + 2 * TRIES, take(cells, lent));
            assert_eq!(calls(&mut trial, LEAST, 20, take(cells, lent)).0, found, "{cells} and {lent}");
        }
    }

    #[test]
    fn a_rank_that_is_late_once_says_nothing() {
        let mut trial = LendTrial::default();
        let late = |call: u32, course| if call % TRIES == 1 { 90_000 } else { take(900, 500)(call, course) };
        calls(&mut trial, LEAST, FIRST + 2 * TRIES, late);
        assert_eq!(calls(&mut trial, LEAST, 20, late), (20, 0));
    }

    #[test]
    fn what_is_far_slower_is_tried_once() {
        let mut trial = LendTrial::default();
        let (lent, timed) = calls(&mut trial, LEAST, FIRST + PERIOD - TRIES, take(500, 1100));
        assert_eq!((lent, timed), (1, TRIES + 1));
    }

    #[test]
    fn lengths_learn_apart() {
        let mut trial = LendTrial::default();
        for bytes in [LEAST, LEAST << 5, usize::MAX] {
            calls(&mut trial, bytes, FIRST + 2 * TRIES, take(900, 500));
        }
        for (bytes, lent) in [(LEAST, 5), (2 * LEAST - 1, 5), (2 * LEAST, 0), (LEAST << 4, 0), (LEAST << 7, 5)] {
            assert_eq!(calls(&mut trial, bytes, 5, take(0, 0)).0, lent, "{bytes}");
        }
    }

    #[test]
    fn trials_are_few() {
        const { assert!(2 * TRIES <= PERIOD / 32) };
    }
}
