//! Whether the root of a long broadcast to one other rank lends its private buffer, or fills cells with it: found by
//! timing calls, anew all the time.
//!
//! Long is what the ring does not hold, or more than 1 MiB. The root of a message that its cells hold need not wait for
//! the other rank, and goes on; of a longer one it waits in any case. From 1 MiB on what that is worth is little beside
//! the message: where the kernel was quicker at all, 2 MiB took 136 to 149 us lent and 188 through 8 cells of 256 KiB
//! (Intel Xeon, L2 2 MiB).
//!
//! What is lent is moved by the kernel, once, and by both ranks, a half each (`joint`). Through cells it is moved
//! twice, at the speed of the ranks' own copies, and while the one rank takes the other one fills. Which of the two is
//! quicker depends on what the caches hold, on how far apart the cores are, and on whether each rank has one; in
//! virtual machines it changes while a job runs. On a machine with small caches (AMD EPYC, 8 MiB of third level by its
//! own word) 4 MiB took 530 us through cells and 375 to 455 lent while its two cores were near each other, 780 and 550
//! while they were far apart.
//!
//! The root decides alone, and the other one, the taker, finds what it did. In a trial the taker times calls: from
//! where it finds that the root is there to where it has the message, so that it says nothing how late either came.
//! Then it loads the message, unless the caches do not hold it, as part of the figure: half of one that was lent was
//! stored by the root's core, whose cache may have it. The figure is left as those of the readers of cells are
//! (`pace`); the root waits for it, no longer than the call has taken, and looks at it at its next call; one that is
//! missed is missed. A root that has filled cells waits until they are read: it would otherwise be ahead of the
//! figures.
//!
//! While it is being found out how cells are best filled, what they cost says nothing: no trial begins, unless messages
//! are lent, when nothing but trials goes through cells. Then it takes many of these to find the ways, and until then
//! cells may be judged too dear; such trials do not become rarer.

use super::Engine;
use super::course::Course;
use crate::pace::{self, Lines, Way, ticks};
use crate::protocol::{Board, RingName};
use crate::select::{Choice, Collective};

/// Messages of fewer bytes go through cells, however short the ring.
const LEAST: usize = 256 << 10;

/// Longer messages than this may be lent, however long the ring.
const HELD: usize = 1 << 20;

/// Classes of messages, by the power of two, from [`LEAST`] on; the last takes all longer ones.
const CLASSES: usize = 6;

/// Calls before the first trial: in the first one the system finds memory for the cells.
const FIRST: u32 = 1;

/// Calls of each way in a trial, of which the quickest counts: the other rank may have been late for one.
const TRIES: u32 = 3;

/// Calls from one trial to the next, at first and after one that was close.
const PERIOD: u32 = 64;

/// The same at most: each time that the other course takes half as long again and more, twice as many calls go by.
const LONGEST: u32 = 512;

/// The next call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Next {
    pub course: Course,
    /// Whether it is part of a trial.
    pub timed: bool,
}

/// A call of a trial: its position, its bytes, and when its root began it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timed {
    position: u64,
    bytes: usize,
    begun: u64,
}

/// What is known of broadcasts from one root.
pub(super) struct LendTrial {
    classes: [Class; CLASSES],
    /// The call of a trial whose figure has yet to come: its position, its class and its course.
    waiting: Option<(u64, usize, Course)>,
    /// Whether a taker has declined what was lent to it.
    is_declined: bool,
}

impl LendTrial {
    /// Nothing is known; before it is, and where nothing is clearly better, messages go through cells
    /// if `keeps` says of so many bytes that the caches keep them, and all that belongs to them. Others are lent.
    pub fn new(keeps: impl Fn(usize) -> bool) -> Self {
        let class = |class: usize| Class::new(if keeps(LEAST << class) { Course::Cells } else { Course::Lent });
        Self { classes: std::array::from_fn(class), waiting: None, is_declined: false }
    }

    /// How a message of `bytes` bytes goes, [`LEAST`] at least, whose call has this position; `figure` is the one that
    /// the taker has left last. A trial may begin where the ways into cells are `settled`.
    pub fn next(&mut self, bytes: usize, position: u64, figure: u64, settled: bool) -> Next {
        if self.is_declined {
            return Next { course: Course::Cells, timed: false };
        }
        if let Some((position, class, course)) = self.waiting.take() {
            self.classes[class].learn(course, pace::cost_at(figure, position));
        }
        let class = ((bytes / LEAST).max(1).ilog2() as usize).min(CLASSES - 1);
        let next = self.classes[class].next(settled);
        self.waiting = next.timed.then_some((position, class, next.course));
        next
    }
}

impl Engine {
    /// Whether trials say if the root's private buffer is lent in a broadcast of so many bytes that two ranks try to do
    /// together, by rings of this choice. Both ask: whether they reach each other is found out by asking.
    pub(super) fn tries_to_lend(&self, choice: &Choice, bytes: usize) -> bool {
        let held = HELD.min(choice.down_cell * choice.down_slots);
        let least = LEAST.max(held + 1);
        bytes >= least && self.thresholds.tries(Collective::Broadcast) && self.board.can_reach()
    }

    /// How the root goes about it at this position, in slices of `slice` bytes if it fills cells.
    pub(super) fn course(&mut self, (bytes, slice): (usize, usize), position: u64) -> (Course, Option<Timed>) {
        let figure = self.board.figure(RingName::Line, 1 - self.board.rank());
        let settled = !self.down_pace.compares(slice, Lines::Left);
        // Beside a message and its copy lie cells: as much as both is too much.
        let keeps = |bytes: usize| self.thresholds.way_of_results(4 * bytes) == Way::Cached;
        let trial = self.lend_trial.get_or_insert_with(|| LendTrial::new(keeps));
        let Next { course, timed } = trial.next(bytes, position, figure, settled);
        let timed = timed.then(|| {
            self.board.want_figure(position);
            Timed { position, bytes, begun: ticks() }
        });
        (course, timed)
    }

    /// Ends a call of a trial, of which the taker has the message: its figure will be there, or is late. A tick a byte
    /// is several times what loading them takes; the call may have taken longer, where the taker came late.
    pub(super) fn await_lend_figure(&self, Timed { position, bytes, begun }: Timed) {
        let now = ticks();
        let most = now.saturating_sub(begun).min(bytes as u64);
        while pace::cost_at(self.board.figure(RingName::Line, 1 - self.board.rank()), position).is_none()
            && ticks().wrapping_sub(now) < most
        {
            if self.takes { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
    }

    /// The taker has declined what was lent: once is enough.
    pub(super) fn lend_no_more(&mut self) {
        if let Some(trial) = &mut self.lend_trial {
            trial.is_declined = true;
        }
    }

    /// Tells the root how long the taker was with the message of this position, since it found the root there, if the
    /// root wants to know.
    ///
    /// # Safety
    /// The message's `bytes` bytes are at `message`, and nobody stores there.
    pub(super) unsafe fn leave_lend_figure(&self, (message, bytes): (*const u8, usize), position: u64, begun: u64) {
        if !self.board.wants_figure(1 - self.board.rank(), position) {
            return;
        }
        if self.thresholds.way_of_results(2 * bytes) == Way::Cached {
            // SAFETY: this contract.
            unsafe { pace::load(message, bytes) };
        }
        pace::leave_figure(&self.board, RingName::Line, position, bytes, begun);
    }
}

/// What is known of messages of one class.
struct Class {
    better: Course,
    /// The one to take where the other is not clearly better.
    usual: Course,
    /// The least that either has cost in the trial that is running.
    least: [u64; 2],
    /// Calls from the last trial to the next.
    period: u32,
    /// Calls until the next trial; 0 in one.
    left: u32,
    /// Calls of the trial so far, and whether the ways into cells were known when it began.
    tried: u32,
    settled: bool,
    /// Figures that came, of each course.
    #[cfg(test)]
    learnt: [u32; 2],
}

impl Class {
    fn new(usual: Course) -> Self {
        Self {
            better: usual,
            usual,
            least: [u64::MAX; 2],
            period: PERIOD,
            left: FIRST,
            tried: 0,
            settled: true,
            #[cfg(test)]
            learnt: [0; 2],
        }
    }

    fn next(&mut self, settled: bool) -> Next {
        // Where nothing goes through cells, no ways are found by waiting.
        let begins = settled || self.better == Course::Lent || self.tried > 0;
        if self.left > 0 || !begins {
            self.left = self.left.saturating_sub(1);
            return Next { course: self.better, timed: false };
        }
        let course = if self.tried < TRIES { self.better } else { self.better.other() };
        self.settled = settled && (self.tried == 0 || self.settled);
        self.tried += 1;
        Next { course, timed: true }
    }

    fn learn(&mut self, course: Course, figure: Option<u64>) {
        if let Some(figure) = figure {
            let least = &mut self.least[course as usize];
            *least = figure.min(*least);
            #[cfg(test)]
            {
                self.learnt[course as usize] += 1;
            }
        }
        // The first one of a course that was not taken for long says little: memory of cells may have to be found.
        let known = self.least[self.better as usize];
        let tried = self.least[self.better.other() as usize];
        let is_lost = self.tried > TRIES + 1 && tried != u64::MAX && tried > known.saturating_add(known / 2);
        if self.tried >= 2 * TRIES || is_lost {
            if !self.least.contains(&u64::MAX) {
                let [usual, other] = [self.usual, self.usual.other()].map(|course| self.least[course as usize]);
                self.better = if other + other / 8 < usual { self.usual.other() } else { self.usual };
            }
            self.period = match is_lost {
                true if self.settled => (2 * self.period).min(LONGEST),
                true => self.period,
                false => PERIOD,
            };
            (self.least, self.tried, self.left) = ([u64::MAX; 2], 0, self.period - 2 * TRIES);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Job, JobSpec};

    /// Trials, and what is told to them: the position of the last call, and what its taker has left.
    struct Calls {
        trial: LendTrial,
        position: u64,
        figure: u64,
        settled: bool,
    }

    impl Calls {
        fn new(keeps: impl Fn(usize) -> bool) -> Self {
            Self { trial: LendTrial::new(keeps), position: 0, figure: 0, settled: true }
        }

        /// How many of so many calls are lent, where either course costs so much, and how many are timed.
        fn make(&mut self, bytes: usize, calls: u32, cost: impl Fn(u32, Course) -> u64) -> (u32, u32) {
            (0..calls).fold((0, 0), |(lent, timed), call| {
                self.position += 3;
                let next = self.trial.next(bytes, self.position, self.figure, self.settled);
                self.figure = pace::pack(self.position, cost(call, next.course));
                (lent + u32::from(next.course == Course::Lent), timed + u32::from(next.timed))
            })
        }
    }

    fn nothing_known() -> Calls {
        Calls::new(|_| true)
    }

    fn take(cells: u64, lent: u64) -> impl Fn(u32, Course) -> u64 {
        move |_, course| if course == Course::Cells { cells } else { lent }
    }

    #[test]
    fn the_quicker_course_is_found_and_found_again() {
        let mut calls = nothing_known();
        let begin = FIRST + 2 * TRIES;
        assert_eq!(calls.make(LEAST, begin, take(900, 500)), (TRIES, 2 * TRIES));
        assert_eq!(calls.make(LEAST, PERIOD - 2 * TRIES, take(0, 0)), (PERIOD - 2 * TRIES, 0));
        assert_eq!(calls.make(LEAST, 2 * TRIES, take(400, 500)), (TRIES, 2 * TRIES));
        assert_eq!(calls.make(LEAST, PERIOD - 2 * TRIES, take(0, 0)), (0, 0));
    }

    /// Cells are not judged by ways that are being tried; where nothing goes through cells they have to be.
    #[test]
    fn a_trial_waits_until_the_ways_into_cells_are_known() {
        for (usually_lent, timed) in [(false, 0), (true, 2 * TRIES)] {
            let mut calls = Calls::new(|_| !usually_lent);
            calls.settled = false;
            assert_eq!(calls.make(LEAST, FIRST + 2 * TRIES, take(500, 500)).1, timed);
        }
        let mut calls = nothing_known();
        calls.settled = false;
        assert_eq!(calls.make(LEAST, FIRST + 40, take(900, 500)), (0, 0));
        calls.settled = true;
        assert_eq!(calls.make(LEAST, 1, take(400, 500)), (0, 1));
        // One that runs goes on.
        calls.settled = false;
        assert_eq!(calls.make(LEAST, 2 * TRIES - 1, take(400, 500)), (TRIES, 2 * TRIES - 1));
        assert_eq!(calls.make(LEAST, 20, take(400, 500)), (0, 0));
    }

    #[test]
    fn what_is_lent_has_to_be_quicker_by_some() {
        for (cells, lent, found) in [(500, 460, 0), (500, 440, 20), (500, 501, 0)] {
            let mut calls = nothing_known();
            calls.make(LEAST, FIRST + 2 * TRIES, take(cells, lent));
            assert_eq!(calls.make(LEAST, 20, take(cells, lent)).0, found, "{cells} and {lent}");
        }
    }

    #[test]
    fn a_rank_that_is_late_once_says_nothing() {
        let mut calls = nothing_known();
        let late = |call: u32, course| if call % TRIES == 1 { 90_000 } else { take(900, 500)(call, course) };
        calls.make(LEAST, FIRST + 2 * TRIES, late);
        assert_eq!(calls.make(LEAST, 20, late), (20, 0));
    }

    #[test]
    fn what_is_far_slower_is_tried_twice_and_ever_more_rarely() {
        let mut calls = nothing_known();
        calls.make(LEAST, FIRST, take(0, 0));
        for period in [2, 4, 8, 8].map(|times| times * PERIOD) {
            let costs = take(500, 800);
            assert_eq!(calls.make(LEAST, TRIES + 2, &costs), (2, TRIES + 2));
            assert_eq!(calls.make(LEAST, period - 2 * TRIES, &costs), (0, 0), "{period}");
        }
        // Once it is close, trials are as many as at first.
        for (cost, lent) in [(500, 0), (400, PERIOD - 2 * TRIES)] {
            assert_eq!(calls.make(LEAST, 2 * TRIES, take(500, cost)), (TRIES, 2 * TRIES));
            assert_eq!(calls.make(LEAST, PERIOD - 2 * TRIES, take(0, 0)), (lent, 0));
        }
    }

    #[test]
    fn lengths_learn_apart() {
        let mut calls = nothing_known();
        for bytes in [LEAST, LEAST << 5] {
            assert_eq!(calls.make(bytes, FIRST + 2 * TRIES, take(900, 500)), (TRIES, 2 * TRIES));
        }
        for (bytes, lent) in
            [(LEAST, 4), (2 * LEAST - 1, 4), (2 * LEAST, 0), (LEAST << 4, 0), (LEAST << 7, 4), (usize::MAX, 4)]
        {
            assert_eq!(calls.make(bytes, 4, take(0, 0)).0, lent, "{bytes}");
        }
    }

    #[test]
    fn what_the_caches_do_not_keep_is_lent_at_first() {
        let mut calls = Calls::new(|bytes| bytes < 4 << 20);
        for (bytes, lent) in [(2 << 20, 0), (4 << 20, 1), (64 << 20, 1)] {
            assert_eq!(calls.make(bytes, FIRST, take(0, 0)), (lent, 0), "{bytes}");
            for (cells, found) in [(500, 5 * lent), (450, 5 * lent), (440, 0)] {
                assert_eq!(calls.make(bytes, 2 * TRIES, take(cells, 500)), (TRIES, 2 * TRIES));
                assert_eq!(calls.make(bytes, 5, take(0, 0)), (found, 0), "{bytes}, {cells}");
                assert_eq!(calls.make(bytes, PERIOD - 2 * TRIES - 5, take(0, 0)).1, 0);
            }
        }
    }

    /// The figures of both courses come: the root tells of which calls it wants one, and waits for it. Where it has to
    /// find the ways into cells, that comes first.
    #[test]
    fn takers_leave_figures_of_calls_that_are_timed() {
        for (stream, first) in [("stream=1", None), ("stream=0", Some(0))] {
            let mut spec = JobSpec::new(2).unwrap();
            spec.tuning
                .force(&format!("broadcast:cells,down_cell=32K,down_cells=2,reach_least=tried,{stream}"))
                .unwrap();
            let ended = Job::create(&spec).unwrap().on_threads(|world| {
                let mut learnt = Vec::new();
                for calls in [FIRST + 2 * TRIES, 20 * PERIOD] {
                    for call in 0..calls {
                        let mut all = vec![if world.rank() == 1 { call as u8 } else { !0 }; LEAST];
                        world.process_at_rank(1).broadcast_into(&mut all).unwrap();
                        assert!(all.iter().all(|&x| x == call as u8), "{call}");
                    }
                    let engine = world.enter().unwrap();
                    learnt.push(engine.lend_trial.as_ref().map(|trial| trial.classes[0].learnt));
                }
                learnt
            });
            // Only the root tries.
            assert_eq!(ended[0], [None, None]);
            let [early, late] = [0, 1].map(|at| ended[1][at].unwrap());
            assert!(late.iter().all(|&figures| figures > 0), "{stream}: {late:?}");
            assert!(first.is_none_or(|first| early == [first; 2]), "{stream}: {early:?}");
        }
    }

    #[test]
    fn trials_are_few() {
        const { assert!(2 * TRIES <= PERIOD / 10) };
    }
}
