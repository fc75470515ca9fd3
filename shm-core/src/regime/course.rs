//! Two ways to make a call, and which of them is quicker for who makes such calls: found by making them in turn.
//!
//! What a call costs its callers is more than the time until it returns: who looks at a result that another rank has
//! stored fetches its lines then, and who fills a buffer that others have read takes them back. So what is compared is
//! the time from the beginning of one call to the beginning of the next one of its class, with all that lies between.
//! Where callers do so much there that nothing else shows, nothing else matters.

/// How the payload of a call goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Course {
    /// Through cells, to memory of each rank's own.
    Cells,
    /// From where it lies, or to where all find it.
    Lent,
}

impl Course {
    pub fn other(self) -> Self {
        if self == Course::Cells { Course::Lent } else { Course::Cells }
    }
}

/// Messages of fewer bytes are of one class, and then classes go by the power of two; the last takes all longer ones.
const LEAST: usize = 8 << 10;
pub(super) const CLASSES: usize = 14;

/// The class of messages of so many bytes.
#[inline]
pub(super) fn class_of(bytes: usize) -> usize {
    ((bytes / LEAST).checked_ilog2().unwrap_or(0) as usize).min(CLASSES - 1)
}

/// Calls before the first trial, and then four times as many each time, ..
const FIRST: u32 = 64;

/// .. but no more than these: what is quicker may change while a job runs.
const PERIOD: u32 = 1024;

/// Calls of either course in a trial. The quickest counts, of all but the first one, which finds lines where the other
/// course left them.
const TRIES: u32 = 8;

/// What the next call is to a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// No part of one.
    Settled,
    /// It should go this way, of which the trial has made so many calls before.
    Tried(Course, u32),
    /// It comes behind one: all is known that was to be known.
    Ended,
}

/// The trials of calls of one class: where ranks make the same calls, their trials are at the same ones.
#[derive(Clone, Debug)]
pub(super) struct Trials {
    /// The course that is tried first.
    before: Course,
    /// Calls since the last trial ended, and those from there to the next one.
    calls: u32,
    period: u32,
    /// When the last call began, and which way it went, if it counts.
    begun: u64,
    timed: Option<Course>,
    /// The least that each course has cost in the trial that is running.
    least: [u64; 2],
}

impl Trials {
    /// Nothing is known; trials begin with this course.
    pub const fn new(before: Course) -> Self {
        Self { before, calls: 0, period: FIRST, begun: 0, timed: None, least: [u64::MAX; 2] }
    }

    /// What the call is that begins `now`.
    #[inline]
    pub fn next(&mut self, now: impl FnOnce() -> u64) -> Turn {
        self.calls += 1;
        if self.calls <= self.period { Turn::Settled } else { self.trial(now()) }
    }

    #[cold]
    fn trial(&mut self, now: u64) -> Turn {
        if let Some(course) = self.timed.take() {
            let least = &mut self.least[course as usize];
            *least = now.wrapping_sub(self.begun).min(*least);
        }
        self.begun = now;
        let at = self.calls - self.period - 1;
        let course = match at / TRIES {
            0 => self.before,
            1 => self.before.other(),
            _ => {
                (self.calls, self.period) = (1, (4 * self.period).min(PERIOD));
                return Turn::Ended;
            }
        };
        if at == 0 {
            self.least = [u64::MAX; 2];
        }
        let tried = at % TRIES;
        self.timed = (tried > 0).then_some(course);
        Turn::Tried(course, tried)
    }

    /// The call went the other way: it does not count.
    pub fn forget(&mut self) {
        self.timed = None;
    }

    /// Goes by these figures, of cells and of what is lent, whatever was measured.
    #[cfg(test)]
    pub fn measured(&mut self, least: [u64; 2]) {
        self.least = least;
    }

    /// Whether this course has shown to be far the dearer one, and the other one was tried before.
    pub fn is_lost(&self, course: Course) -> bool {
        let [own, other] = [course, course.other()].map(|course| self.least[course as usize]);
        own != u64::MAX && own > other.saturating_add(other / 2)
    }

    /// The cheaper course, if both are known: to use buffers where they lie, unless cells are cheaper by a fifth. For
    /// less, calls should not become longer: in them ranks wait for each other.
    pub fn cheaper(&self) -> Option<Course> {
        let [cells, lent] = self.least;
        let known = cells != u64::MAX && lent != u64::MAX;
        known.then_some(if cells < lent - lent / 5 { Course::Cells } else { Course::Lent })
    }
}

/// Whether a trial knows all that it will know but what its last call costs, at this turn.
#[inline]
pub(super) fn is_last(tried: u32) -> bool {
    tried == TRIES - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes so many calls, each of which costs what `cost` says, by a rank that goes by `better`; says which way they
    /// went.
    fn make(trials: &mut Trials, now: &mut u64, calls: u32, cost: impl Fn(u32, Course) -> u64) -> Vec<(Turn, Course)> {
        let mut better = Course::Lent;
        let call = |call| {
            let turn = trials.next(|| *now);
            let course = match turn {
                Turn::Settled => better,
                Turn::Tried(course, _) => course,
                Turn::Ended => {
                    better = trials.cheaper().unwrap_or(better);
                    better
                }
            };
            *now += cost(call, course);
            (turn, course)
        };
        (0..calls).map(call).collect()
    }

    #[test]
    fn trials_are_few_and_in_order() {
        for before in [Course::Lent, Course::Cells] {
            let turns = make(&mut Trials::new(before), &mut 0, 6000, |_, _| 100);
            let tried: Vec<usize> = (0..6000).filter(|&at| matches!(turns[at].0, Turn::Tried(..))).collect();
            let begins = [FIRST, 5 * FIRST + 2 * TRIES, 5 * FIRST + 4 * TRIES + PERIOD].map(|at| at as usize);
            for (trial, begin) in begins.into_iter().enumerate() {
                for at in 0..2 * TRIES as usize {
                    assert_eq!(tried[trial * 2 * TRIES as usize + at], begin + at, "trial {trial}");
                    let course = if at < TRIES as usize { before } else { before.other() };
                    assert_eq!(turns[begin + at].0, Turn::Tried(course, at as u32 % TRIES));
                }
                assert_eq!(turns[begin + 2 * TRIES as usize].0, Turn::Ended);
            }
            assert!(tried.len() < 6000 / 50, "{}", tried.len());
        }
    }

    /// The cheaper one is found, whatever single calls cost, and found again when it changes.
    #[test]
    fn the_cheaper_course_is_found() {
        let mut trials = Trials::new(Course::Lent);
        let mut now = 0;
        for (costs, found) in [
            ([500, 1000], Course::Cells),
            ([1000, 500], Course::Lent),
            // Where there is little between them nothing is copied.
            ([820, 1000], Course::Lent),
            ([780, 1000], Course::Cells),
        ] {
            let late = |call: u32, course| {
                let first = u64::from(call.is_multiple_of(3)) * 90_000;
                costs[course as usize] + first
            };
            let calls = make(&mut trials, &mut now, 2 * (PERIOD + 2 * TRIES), late);
            let settled = calls.iter().rev().find(|(turn, _)| *turn == Turn::Settled).unwrap();
            assert_eq!(settled.1, found, "{costs:?}");
        }
    }

    #[test]
    fn what_is_far_dearer_is_lost() {
        for (cost, lost) in [(1600, true), (1400, false)] {
            let mut trials = Trials::new(Course::Lent);
            let costs = |_, course| if course == Course::Cells { cost } else { 1000 };
            make(&mut trials, &mut 0, FIRST + TRIES + 3, costs);
            assert!(!trials.is_lost(Course::Lent) && trials.is_lost(Course::Cells) == lost, "{cost}");
        }
    }

    #[test]
    fn classes_rise_by_powers_of_two() {
        let of = [1, LEAST, 2 * LEAST - 1, 2 * LEAST, LEAST << 3, usize::MAX].map(class_of);
        assert_eq!(of, [0, 0, 0, 1, 3, CLASSES - 1]);
    }
}
