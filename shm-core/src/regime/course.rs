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

/// How often there is a trial, and how long it is.
#[derive(Clone, Copy, Debug)]
struct Plan {
    /// Calls before the first trial, from its end to the second, and so on; the last goes for all that follow. What is
    /// quicker may change while a job runs.
    periods: [u64; 4],
    /// Calls of either course in a trial that count. Where calls take turns that differ by what lies behind them, by
    /// twos or threes (short ones by fours), both courses meet as many of each.
    counted: u64,
}

const PLAN: Plan = Plan { periods: [64, 256, 1024, 2048], counted: 12 };

/// Of long messages each call says more, and a program makes fewer of them: what is quicker changes with the time, not
/// with their number.
const LONG_PLAN: Plan = Plan { periods: [8, 32, 128, 512], counted: 6 };

/// Messages of as many bytes are long.
const LONG: usize = 1 << 20;

impl Plan {
    /// That of messages of this class.
    fn of(class: usize) -> Self {
        if Trials::are_long(class) { LONG_PLAN } else { PLAN }
    }
}

/// Calls of a course that counted, after which it may be given up.
const ENOUGH: u64 = 3;

/// Calls of a course before these: the first finds lines where the other course has left them. Where calls fill one
/// cell after the other it is a turn of the ring, which has 2 MiB at most, until cells are where they will be, of long
/// messages three, for a way into them that is no longer the best one to show that. While ways are being compared it is
/// one more, and one more, but no more than so many: if ways into cells of long messages are not known then, the trial is
/// off; those of few slices would take too many calls.
const BEFORE: u64 = 1;
const AT_MOST: u64 = 64;

/// Calls that find another trial running, in a row, until that is taken for one whose calls are not made any more.
const GIVEN_UP: u32 = 256;

/// How many times the least that a call has cost it may count for; the least by the other course, if that is more. A
/// rank that lost its core in the middle of one says little.
const OUTLIER: u64 = 4;

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

/// What the calls of one course have cost in a trial.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    calls: u64,
    least: u64,
    most: u64,
    sum: u64,
    /// What the last of them left to be done behind it.
    rest: u64,
}

impl Cost {
    /// Counts a call; by the other course one has cost so much at least.
    fn add(&mut self, cost: u64, other: u64) {
        self.least = if self.calls == 0 { cost } else { self.least.min(cost) };
        let limit = OUTLIER * self.least.max(other);
        // Those that came before less was seen, too.
        self.sum = self.sum.min(limit * self.calls) + cost.min(limit);
        self.calls += 1;
        self.most = self.most.max(cost).min(limit);
    }

    /// The average of all but the dearest, if there is one, and each call's part of the rest.
    fn average(&self, other: u64) -> Option<u64> {
        let average = (self.sum - self.most.min(self.sum)).checked_div(self.calls.saturating_sub(1))?;
        Some(average + self.rest.min(OUTLIER * self.least.max(other) * self.calls) / self.calls)
    }
}

/// Whose trial is running, of all that a program may have in one loop: one alone, since another one would make a
/// difference to the time between calls. Where ranks make the same calls it is the same one.
#[derive(Debug, Default)]
pub(super) struct Turns {
    holder: Option<usize>,
    waited: u32,
    /// Whether the holder has waited for the others long enough: it goes on whoever comes first.
    insists: bool,
    /// Whether others are on trial that have turns of their own, and come first.
    pub yields: bool,
}

impl Turns {
    /// Whether this one may go on, or begin.
    fn has(&mut self, who: usize) -> bool {
        let holds = self.holder == Some(who);
        let free = if self.yields { holds && self.insists } else { holds || self.holder.is_none() };
        if !free && self.waited < GIVEN_UP {
            self.waited += 1;
            return false;
        }
        *self = Self { holder: Some(who), waited: 0, insists: !free || holds && self.insists, ..*self };
        true
    }

    pub fn are_taken(&self) -> bool {
        self.holder.is_some()
    }
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
    is_long: bool,
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
            is_long: Self::are_long(class),
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
            self.costs[course as usize].add(now.wrapping_sub(self.begun), other);
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
                } else if self.is_long {
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
        (turns.holder, turns.insists) = (None, false);
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
    /// from this trial, which ends with it. Short messages have few slices each, and would never get to an end.
    pub fn spoil(&mut self) {
        self.is_spoilt |= self.is_long && self.timed.is_some();
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

    /// The cheaper course, if it is known: to use buffers where they lie, unless cells are cheaper by a fifth. For
    /// less, calls should not become longer: in them ranks wait for each other.
    pub fn cheaper(&self) -> Option<Course> {
        self.averages(Course::Cells)
            .filter(|_| !self.is_spoilt)
            .map(|[cells, lent]| if cells < lent - lent / 5 { Course::Cells } else { Course::Lent })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: u64 = PLAN.periods[0];
    const COUNTED: u64 = PLAN.counted;

    /// Of some calls.
    fn trials(before: Course) -> Trials {
        Trials::new(before, (0, 0), false)
    }

    /// Makes so many calls, each of which costs what `cost` says, by a rank that goes by what is found; says which way
    /// they went.
    fn make(trials: &mut Trials, calls: u64, cost: impl Fn(u64, Course) -> u64) -> Vec<(Turn, Course)> {
        let (mut better, mut now, mut turns) = (Course::Lent, 0, Turns::default());
        let call = |call| {
            let turn = trials.next(&mut turns, || now, || false);
            let course = match turn {
                Turn::Settled => better,
                Turn::Tried(course) | Turn::Last(course) => course,
                Turn::Ended => {
                    better = trials.cheaper().unwrap_or(better);
                    better
                }
            };
            now += cost(call, course);
            (turn, course)
        };
        (0..calls).map(call).collect()
    }

    #[test]
    fn trials_are_few_and_in_order() {
        for (before, fills_all) in [(Course::Lent, false), (Course::Cells, false), (Course::Lent, true)] {
            let mut trials = Trials::new(before, (0, 0), fills_all);
            let turns = make(&mut trials, 8000, |_, _| 100);
            let mut at = 0;
            for period in [0, 1, 2, 3, 3].map(|at| PLAN.periods[at]) {
                let begin = at + period as usize;
                assert!(turns[at..begin].iter().all(|(turn, _)| *turn == Turn::Settled), "{at}");
                at = begin;
                for course in [before, before.other()] {
                    let length = COUNTED + if fills_all && course == Course::Cells { AT_MOST } else { BEFORE };
                    for _ in 0..length - 1 {
                        assert_eq!(turns[at].0, Turn::Tried(course), "{at}");
                        at += 1;
                    }
                    let last = if course == before { Turn::Tried(course) } else { Turn::Last(course) };
                    assert_eq!(turns[at].0, last, "{at}");
                    at += 1;
                }
                assert_eq!(turns[at].0, Turn::Ended, "{at}");
                at += 1;
            }
        }
    }

    /// While ways are compared calls through cells do not count; where that takes too long, or comes in between, nothing
    /// is found, and the next trial comes soon.
    #[test]
    fn cells_count_once_their_ways_are_known() {
        for known_after in [0, 5, AT_MOST - 1, AT_MOST, u64::MAX] {
            let mut trials = Trials::new(Course::Lent, (0, CLASSES - 1), true);
            let (mut cells, mut now, mut turns) = (0, 0, Turns::default());
            let ended = (0..LONG_PLAN.periods[0] + 2 * (AT_MOST + BEFORE + LONG_PLAN.counted)).find(|_| {
                let compares = cells <= known_after && cells > 0;
                let turn = trials.next(&mut turns, || now, || compares);
                let is_cells = matches!(turn, Turn::Tried(Course::Cells) | Turn::Last(Course::Cells));
                cells += u64::from(is_cells);
                // Dear while ways are compared, and then cheaper by half.
                now += if !is_cells {
                    1000
                } else if compares {
                    5000
                } else {
                    500
                };
                turn == Turn::Ended
            });
            assert!(ended.is_some() && !turns.are_taken(), "{known_after}");
            let is_found = known_after < AT_MOST;
            assert_eq!(trials.cheaper(), is_found.then_some(Course::Cells), "{known_after}");
            assert_eq!((trials.ended, trials.spoilt), if is_found { (1, 0) } else { (0, 1) });
            assert_eq!(trials.due, LONG_PLAN.periods[1]);
        }
    }

    #[test]
    fn a_trial_that_is_spoilt_ends_and_decides_nothing() {
        let mut trials = Trials::new(Course::Lent, (0, CLASSES - 1), false);
        let (mut turns, mut now, periods) = (Turns::default(), 0, LONG_PLAN.periods);
        for spoilt in 1..=5 {
            let mut calls = 0;
            while trials.next(&mut turns, || now, || false) != Turn::Ended {
                now += 100;
                calls += 1;
                // The third that counts.
                if calls == periods[(spoilt - 1).min(3)] + 2 * BEFORE + LONG_PLAN.counted + 3 {
                    trials.spoil();
                }
            }
            assert_eq!(calls, periods[(spoilt - 1).min(3)] + 2 * BEFORE + LONG_PLAN.counted + 3);
            assert_eq!((trials.cheaper(), trials.ended, trials.spoilt), (None, 0, spoilt));
        }
    }

    /// The cheaper one is found, and a call that was held up changes nothing.
    #[test]
    fn the_cheaper_course_is_found() {
        for (costs, found) in [
            ([500, 1000], Course::Cells),
            ([1000, 500], Course::Lent),
            // Where there is little between them nothing is copied.
            ([820, 1000], Course::Lent),
            ([600, 1000], Course::Cells),
        ] {
            for held_up in [0, FIRST + 1, FIRST + 5, FIRST + BEFORE + COUNTED + 4] {
                let cost = |call, course| costs[course as usize] + u64::from(call == held_up) * 90_000;
                let calls = make(&mut trials(Course::Lent), FIRST + PLAN.periods[1], cost);
                assert_eq!(calls.last().unwrap(), &(Turn::Settled, found), "{costs:?}, {held_up}");
            }
        }
    }

    /// What costs most until all cells were filled once is judged afterwards.
    #[test]
    fn cells_get_a_turn_of_their_ring() {
        let mut trials = Trials::new(Course::Lent, (0, 1), true);
        let first = (trials.due + BEFORE + COUNTED) as usize;
        let cost = |call: u64, course| match course {
            Course::Cells if (call as usize) < first + AT_MOST as usize => 2000,
            Course::Cells => 500,
            Course::Lent => 1000,
        };
        let calls = make(&mut trials, first as u64 + 100, cost);
        assert_eq!(calls.last().unwrap(), &(Turn::Settled, Course::Cells));
    }

    /// Where calls that are cheap take turns with dear ones, what lies behind these counts as much as it costs.
    #[test]
    fn calls_may_differ_in_turn() {
        for turn in 1..=4 {
            for dear in [900, 1500, 2500] {
                let cost = |call: u64, course| match (call.is_multiple_of(turn), course) {
                    (false, _) => 400,
                    (true, Course::Cells) => 700,
                    (true, Course::Lent) => dear,
                };
                let calls = make(&mut trials(Course::Lent), FIRST + 2 * (BEFORE + COUNTED) + 9, cost);
                let [cells, lent] = [700, dear].map(|cost| cost + 400 * (turn - 1));
                // As far as no call is out of all proportion.
                let gains = cells < lent - lent / 5 && dear < OUTLIER * 400;
                assert!(calls.last().unwrap().1 == Course::Cells || !gains, "every {turn}, {dear}");
            }
        }
    }

    /// Of all calls of a loop one alone is on trial, and all have their turn; one whose calls are made no more holds up
    /// nobody for long.
    #[test]
    fn trials_take_turns() {
        let of = |kind| (0..7).map(move |class| Trials::new(Course::Lent, (kind, class), kind % 2 == 0));
        let mut all: Vec<Trials> = (0..4).flat_map(of).collect();
        let mut turns = Turns::default();
        // One begins, and is left.
        for _ in 0..FIRST + 3 {
            all[5].next(&mut turns, || 0, || false);
        }
        assert!(turns.are_taken());
        all.remove(5);
        for round in 0..9000 {
            let tried = all.iter_mut().map(|trials| trials.next(&mut turns, || 0, || false));
            let tried = tried.filter(|turn| matches!(turn, Turn::Tried(_) | Turn::Last(_)));
            assert!(tried.count() <= 1, "round {round}");
        }
        assert!(all.iter().all(|trials| trials.ended >= 2), "{all:?}");
    }

    /// As often by the time that they take, and shorter.
    #[test]
    fn trials_of_long_messages_come_early() {
        for (class, first, length) in [(class_of(LONG) - 1, 64, 26), (class_of(LONG), 8, 14), (CLASSES - 1, 8, 14)] {
            let turns = make(&mut Trials::new(Course::Lent, (0, class), false), 64 + 26, |_, _| 100);
            let tried: Vec<_> = (0..turns.len()).filter(|&at| turns[at].0 != Turn::Settled).collect();
            assert_eq!(tried[..length], (first..first + length).collect::<Vec<_>>(), "{class}");
        }
        let cost = |_, course| [500, 1000][course as usize];
        let calls = make(&mut Trials::new(Course::Lent, (0, CLASSES - 1), false), 8 + 14 + 20, cost);
        assert_eq!(calls.last().unwrap(), &(Turn::Settled, Course::Cells));
    }

    #[test]
    fn who_yields_waits_for_a_while() {
        let mut turns = Turns { yields: true, ..Turns::default() };
        assert_eq!((0..1000).position(|_| turns.has(7)), Some(GIVEN_UP as usize));
        // A trial whose calls are made no more is as good as none, for as long as this one goes on.
        assert!((0..1000).all(|_| turns.has(7)) && !turns.has(8));
    }

    /// Who runs ahead pays for what the other one has yet to do; not for what was left before the first call that counts.
    #[test]
    fn what_is_left_behind_counts() {
        let found = |rest, lent| {
            let (mut trials, mut turns, mut now) = (Trials::new(Course::Lent, (0, 1), true), Turns::default(), 0);
            let mut rests = Vec::new();
            loop {
                match trials.next(&mut turns, || now, || false) {
                    Turn::Ended => break,
                    Turn::Tried(Course::Cells) | Turn::Last(Course::Cells) if trials.rests() => {
                        let rest = if rests.is_empty() { 90_000 } else { rest };
                        trials.rested(rest);
                        rests.push(trials.calls);
                        now += 500 + rest;
                    }
                    Turn::Tried(Course::Cells) | Turn::Last(Course::Cells) => now += 500,
                    _ => now += lent,
                }
            }
            assert_eq!(trials.costs[Course::Cells as usize].most, 500);
            assert!(rests.len() == 2 && rests[1] == rests[0] + COUNTED, "{rests:?}");
            trials.cheaper().unwrap()
        };
        for (rest, lent, better) in [
            (0, 1000, Course::Cells),
            (1000, 1000, Course::Cells),
            (6000, 1000, Course::Lent),
            // Most of what all wait for may be done by others, whatever the own part is.
            (12 * 9_500, 10_000, Course::Lent),
            (12 * 9_500, 100_000, Course::Cells),
        ] {
            assert_eq!(found(rest, lent), better, "{rest}, {lent}");
        }
    }

    #[test]
    fn what_is_far_dearer_is_lost() {
        for (cost, lost) in [(1600, true), (1400, false)] {
            let mut trials = trials(Course::Lent);
            let cost = |_, course| if course == Course::Cells { cost } else { 1000 };
            make(&mut trials, FIRST + 2 * BEFORE + COUNTED + 4, cost);
            assert!(!trials.is_lost(Course::Lent) && trials.is_lost(Course::Cells) == lost, "{lost}");
        }
    }

    #[test]
    fn classes_rise_by_powers_of_two() {
        let of = [1, LEAST, 2 * LEAST - 1, 2 * LEAST, LEAST << 3, usize::MAX].map(class_of);
        assert_eq!(of, [0, 0, 0, 1, 3, CLASSES - 1]);
    }
}
