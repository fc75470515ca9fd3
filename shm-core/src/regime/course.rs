//! Two ways to make a call, and which of them is quicker for who makes such calls: found by making them in turn.
//!
//! What a call costs its callers is more than the time until it returns: who looks at a result that another rank has
//! stored fetches its lines then, and who fills a buffer that others have read takes them back. So what is compared is
//! the time from the beginning of one call to the beginning of the next one of its class, with all that lies between.
//! Where callers do so much there that nothing else shows, nothing else matters.

mod cost;
mod turns;

use cost::Cost;
pub(super) use turns::Turns;

use crate::pace::span;

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

/// How often there is a trial, and how long it is.
#[derive(Clone, Copy, Debug)]
struct Plan {
    /// Calls before the first trial, from its end to the second, and so on; the last goes for all that follow. What is
    /// quicker may change while a job runs.
    periods: [u64; 4],
    /// Calls of either course in a trial that count. Where calls take turns that differ by what lies behind them, by
    /// twos or threes (short ones by fours), both courses meet as many of each.
    counted: u64,
    /// One in so many parts of a call is what cells have to save. For less, calls should not become longer: in them
    /// ranks wait for each other.
    margin: u64,
    /// Whether nothing is learnt from calls in which ways into cells were compared. Short messages have few slices
    /// each, and would never get to an end.
    may_be_spoilt: bool,
}

const PLAN: Plan = Plan { periods: [64, 256, 1024, 2048], counted: 12, margin: 5, may_be_spoilt: false };

/// Of long messages each call says more, and a program makes fewer of them: what is quicker changes with the time, not
/// with their number. Far apart, with results loaded, cells save broadcasts of 2 and 4 MiB a seventh and a quarter (AMD
/// EPYC, Zen 3).
const LONG_PLAN: Plan = Plan { periods: [8, 32, 128, 512], counted: 6, margin: 8, may_be_spoilt: true };

/// Messages of as many bytes are long.
const LONG: usize = 1 << 20;

/// Of messages of as many bytes cells have to save no more than of long ones. Steps of two ranks that write what they
/// reduce, reduce it between shared buffers, and load the result, took 39 us of 256 KiB and 69 of 512 where the buffers
/// lie, 28 and 54 through cells (Intel Xeon). What else lies between two calls counts as well, so that this was less
/// than a fifth.
const NEARLY_LONG: usize = 256 << 10;

impl Plan {
    /// That of messages of this class.
    fn of(class: usize) -> Self {
        if Trials::are_long(class) {
            LONG_PLAN
        } else if class >= class_of(NEARLY_LONG) {
            Self { margin: LONG_PLAN.margin, ..PLAN }
        } else {
            PLAN
        }
    }
}

/// Calls of a course that counted, after which it may be given up.
const ENOUGH: u64 = 3;

/// Calls of a course that come before those, and do not count: the first finds lines where the other course has left
/// them. Where calls fill cells in turn, one turn of the ring (2 MiB at most) goes by until all lines are where they
/// will be; long messages take three turns, in which a way into cells that is no longer the best one is found out. As
/// long as ways into cells are being compared another call is added, up to [`AT_MOST`]: trials of few slices would take
/// too many calls otherwise. If the ways of long messages are not known by then, the trial is off.
const BEFORE: u64 = 1;
const AT_MOST: u64 = 64;

/// What the next call is to a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// No part of one.
    Settled,
    /// It should go this way.
    Tried(Course),
    /// The same, and it is the last one of the trial.
    Last(Course),
    /// It comes behind one: all is known that was to be known.
    Ended,
}

/// The trials of calls of one class: where ranks make the same calls, and each has a say in how they go, their trials
/// are at the same ones.
#[derive(Clone, Debug)]
pub(super) struct Trials {
    /// The course that is tried first.
    before: Course,
    /// Calls through cells that do not count yet: as a rule, and in this trial.
    usually_settling: u64,
    settling: u64,
    /// The number that stands for them.
    who: usize,
    plan: Plan,
    /// Calls since the last trial ended, and those that come before the next one, or the one that is running.
    calls: u64,
    due: u64,
    /// Trials that have ended with all figures, and those in a row since then that were spoilt.
    ended: usize,
    spoilt: usize,
    /// When the last call began, and which way it went, if it counts.
    begun: u64,
    timed: Option<Course>,
    /// Whether what that call leaves to be done should be waited for.
    rests: bool,
    /// Whether a call that counts was no call like those that will follow.
    is_spoilt: bool,
    /// What each course has cost in the trial that is running.
    costs: [Cost; 2],
}

impl Trials {
    /// Nothing is known of the calls of this kind and class; trials begin with this course. Of some calls each fills
    /// the cells that come next, others have few.
    pub fn new(before: Course, (kind, class): (usize, usize), fills_all: bool) -> Self {
        let turns: u64 = if Self::are_long(class) { 3 } else { 1 };
        let settling = match fills_all {
            true => (turns * (2 << 20)).div_ceil((LEAST as u64) << class).clamp(BEFORE, AT_MOST),
            false => BEFORE,
        };
        let plan = Plan::of(class);
        Self {
            before,
            usually_settling: settling,
            settling,
            who: kind * CLASSES + class,
            plan,
            calls: 0,
            due: plan.periods[0],
            ended: 0,
            spoilt: 0,
            begun: 0,
            timed: None,
            rests: false,
            is_spoilt: false,
            costs: Default::default(),
        }
    }

    /// What the call is that begins `now`; trials take turns. `compares` says whether ways into cells are being
    /// compared.
    #[inline]
    pub fn next(&mut self, turns: &mut Turns, now: impl FnOnce() -> u64, compares: impl FnOnce() -> bool) -> Turn {
        self.calls += 1;
        if self.calls <= self.due { Turn::Settled } else { self.trial(turns, now(), compares) }
    }

    #[cold]
    fn trial(&mut self, turns: &mut Turns, now: u64, compares: impl FnOnce() -> bool) -> Turn {
        self.rests = false;
        if !turns.has(self.who) {
            // What was measured so far is of no use.
            (self.due, self.timed) = (self.calls, None);
            return Turn::Settled;
        }
        if let Some(course) = self.timed.take() {
            let other = self.costs[course.other() as usize].least;
            self.costs[course as usize].add(span(self.begun, now), other);
        }
        self.begun = now;
        let counted = self.plan.counted;
        let mut at = self.calls - self.due - 1;
        if at == 0 {
            (self.costs, self.is_spoilt) = Default::default();
            self.settling = self.usually_settling;
        }
        if self.is_spoilt {
            return self.end(turns);
        }
        let mut compares = Some(compares);
        for course in [self.before, self.before.other()] {
            if course == Course::Cells && at == self.settling && compares.take().is_some_and(|compares| compares()) {
                if at < AT_MOST {
                    self.settling += 1;
                } else if self.plan.may_be_spoilt {
                    self.is_spoilt = true;
                    return self.end(turns);
                }
            }
            let settling = if course == Course::Cells { self.settling } else { BEFORE };
            if at < settling + counted {
                self.timed = (at >= settling).then_some(course);
                self.rests = [settling - 1, settling + counted - 1].contains(&at);
                let is_last = course != self.before && at == settling + counted - 1;
                return if is_last { Turn::Last(course) } else { Turn::Tried(course) };
            }
            at -= settling + counted;
        }
        self.end(turns)
    }

    fn end(&mut self, turns: &mut Turns) -> Turn {
        turns.end();
        if self.is_spoilt {
            self.spoilt += 1;
        } else {
            (self.ended, self.spoilt) = (self.ended + 1, 0);
        }
        let periods = self.plan.periods;
        let at = if self.is_spoilt { self.spoilt } else { self.ended };
        (self.calls, self.due) = (0, periods[at.min(periods.len() - 1)]);
        Turn::Ended
    }

    /// The trial that would come next begins at the next call.
    pub fn hasten(&mut self) {
        self.due = self.calls;
    }

    /// What a call of this course has cost in the last trial.
    pub fn average(&self, course: Course) -> Option<u64> {
        Some(self.averages(course)?[0])
    }

    /// Whether messages of this class are long: each call says more, and a program makes fewer of them.
    pub fn are_long(class: usize) -> bool {
        class >= class_of(LONG)
    }

    /// The call went the other way: it does not count.
    pub fn forget(&mut self) {
        self.timed = None;
    }

    /// How cells are best filled was being found out in this call through them: if it counts, nothing is to be learnt
    /// from this trial, which ends with it.
    pub fn spoil(&mut self) {
        self.is_spoilt |= self.plan.may_be_spoilt && self.timed.is_some();
    }

    /// Whether this call of a trial is the last of its course before those that count, or the last of these: who may
    /// run ahead of others waits at its end until they have come as far, and says what that took.
    pub fn rests(&self) -> bool {
        self.rests
    }

    /// So long was waited at the end of this call: if that counts, for all that count.
    pub fn rested(&mut self, rest: u64) {
        if let Some(course) = self.timed {
            self.costs[course as usize].rest = rest;
        }
        self.begun = self.begun.wrapping_add(rest);
    }

    /// Goes by these figures, of cells and of what is lent, whatever was measured.
    #[cfg(test)]
    pub fn measured(&mut self, costs: [u64; 2]) {
        self.costs = costs.map(|cost| Cost { calls: 2, least: cost, most: cost, sum: 2 * cost, rest: 0 });
    }

    /// What the last call through cells that counted left to be done.
    #[cfg(test)]
    pub fn rest(&self) -> u64 {
        self.costs[Course::Cells as usize].rest
    }

    /// How many have ended.
    #[cfg(test)]
    pub fn ended(&self) -> usize {
        self.ended
    }

    /// What this course and the other one have cost.
    fn averages(&self, course: Course) -> Option<[u64; 2]> {
        let average = |course: Course| self.costs[course as usize].average(self.costs[course.other() as usize].least);
        Some([average(course)?, average(course.other())?])
    }

    /// Whether this course has shown to be far the dearer one, and the other one was tried before.
    pub fn is_lost(&self, course: Course) -> bool {
        self.costs[course as usize].calls >= ENOUGH
            && self.averages(course).is_some_and(|[own, other]| own > other + other / 2)
    }

    /// The cheaper course, if it is known: to use buffers where they lie, unless cells are clearly cheaper.
    pub fn cheaper(&self) -> Option<Course> {
        self.averages(Course::Cells)
            .filter(|_| !self.is_spoilt)
            .map(|[cells, lent]| if cells < lent - lent / self.plan.margin { Course::Cells } else { Course::Lent })
    }
}

#[cfg(test)]
mod tests;
