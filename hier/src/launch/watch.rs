//! Watching over a job until all of it has ended.
//!
//! One loop on the launcher's own thread waits for the end of any rank, for signals, for what is typed, and for the
//! time when the next step against a job that should end falls due.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, raise};
use shm_core::job::Job;

use super::ending::{Ending, Order};
use super::guard::Guard;
use super::input::Feed;
use super::outcome::{End, Failure};
use super::ranks::Ranks;
use super::report::{self, Report};
use super::signals::{Signals, asks_to_end};

/// How often a rank without a pidfd is asked whether it has ended.
const ASK: Duration = Duration::from_millis(5);
/// How often the rest of the job's processes is looked for, when all ranks have ended.
const LOOK: Duration = Duration::from_millis(20);
/// How often a launcher in the background looks whether the terminal is its own again.
const TERMINAL: Duration = Duration::from_millis(250);
/// How long the word on who failed first is left to a rank that is about to end.
const HOLD: Duration = Duration::from_millis(300);

/// The launcher, while its job runs.
pub(super) struct Watch<'a> {
    pub(super) job: &'a Job,
    pub(super) guard: &'a Guard,
    pub(super) signals: Option<&'a Signals>,
    pub(super) report: &'a Report,
    pub(super) ranks: Ranks,
    pub(super) feed: Option<Feed>,
    pub(super) ending: Ending,
    /// The first rank whose end was a failure, and until when the one that the ranks themselves blame may still end.
    pub(super) held: Option<(usize, Instant)>,
    pub(super) first_failure: Option<Failure>,
    pub(super) interrupted: Option<Signal>,
}

/// What the watch saw.
pub(super) struct Seen {
    pub(super) statuses: Vec<End>,
    pub(super) first_failure: Option<Failure>,
    pub(super) interrupted: Option<i32>,
}

impl Watch<'_> {
    /// Returns when nothing of the job is left.
    pub(super) fn run(mut self) -> Seen {
        while !self.ranks.present().is_empty() {
            self.wait();
            self.collect();
            self.settle(Instant::now());
            self.pass_signals();
            self.bury();
            self.escalate();
        }
        self.settle(Instant::now() + HOLD);
        // A rank that exited with status 0 while others counted on it, which then did not mind.
        if let (None, Some(blamed)) = (&self.first_failure, self.job.failed_rank()) {
            self.fail(blamed);
        }
        self.sum_up();
        let statuses = self.ranks.all().iter().map(|rank| rank.end.unwrap_or(End::Exited(0))).collect();
        let interrupted = self.interrupted.map(|signal| signal as i32);
        Seen { statuses, first_failure: self.first_failure, interrupted }
    }

    /// Waits until something happens, or something is due.
    fn wait(&mut self) {
        let running = self.ranks.running();
        let pidfds = running.iter().filter_map(|&rank| self.ranks.all()[rank].pidfd.as_ref());
        let mut polled: Vec<PollFd> = pidfds.map(|pidfd| PollFd::new(pidfd.as_fd(), PollFlags::POLLIN)).collect();
        let asked = polled.len() < running.len();
        polled.extend(self.signals.map(|signals| PollFd::new(signals.as_fd(), PollFlags::POLLIN)));
        polled.extend(self.feed.iter().flat_map(Feed::interests));

        let now = Instant::now();
        let until = |deadline: Option<Instant>| deadline.map(|deadline| deadline.saturating_duration_since(now));
        let patience = [
            until(self.ending.deadline()),
            until(self.held.map(|(_, deadline)| deadline)),
            asked.then_some(ASK),
            running.is_empty().then_some(LOOK),
            self.feed.as_ref().and_then(|feed| feed.in_background().then_some(TERMINAL)),
        ];
        // Rounded up: a wait that ends a fraction of a millisecond early would only be taken up again.
        let timeout = patience.into_iter().flatten().min().map_or(PollTimeout::NONE, |patience| {
            PollTimeout::try_from(patience + Duration::from_micros(999)).unwrap_or(PollTimeout::MAX)
        });
        let _ = poll(&mut polled, timeout);

        if self.feed.is_some() {
            let mut fed = polled.iter().rev().map(|fd| fd.revents().unwrap_or(PollFlags::empty()));
            let (rank, terminal) = (fed.next(), fed.next());
            drop(polled);
            let (rank, terminal) = (rank.unwrap_or(PollFlags::empty()), terminal.unwrap_or(PollFlags::empty()));
            if !self.feed.as_mut().is_some_and(|feed| feed.pass_on(terminal, rank)) {
                self.feed = None;
            }
        }
    }

    /// Takes note of ranks that have ended.
    fn collect(&mut self) {
        let mut ended: Vec<(usize, End)> =
            self.ranks.running().into_iter().filter_map(|rank| Some((rank, self.ranks.collect(rank)?))).collect();
        // Of those that ended at the same time, a signal is more likely the reason than an exit is.
        ended.sort_by_key(|(_, end)| matches!(end, End::Exited(_)));
        for (rank, end) in ended {
            // Before this one is blamed: whom the ranks blamed among themselves.
            let blamed = self.job.failed_rank();
            self.job.mark_ended(rank, !end.success());
            if !end.success() {
                let now = Instant::now();
                self.ending.failure(now);
                if self.first_failure.is_none() && self.held.is_none() {
                    let runs = blamed.is_some_and(|blamed| self.ranks.all()[blamed].end.is_none());
                    self.held = Some((rank, if runs { now + HOLD } else { now }));
                }
            }
        }
    }

    /// Says which rank failed first, once that is clear: the one that the ranks blame, unless it goes on regardless.
    fn settle(&mut self, now: Instant) {
        let Some((noticed, deadline)) = self.held else { return };
        let blamed = self.job.failed_rank().unwrap_or(noticed);
        let cause = if self.ranks.all()[blamed].end.is_some() { blamed } else { noticed };
        if cause == blamed || now >= deadline {
            self.held = None;
            self.fail(cause);
        }
    }

    /// Puts the failure of the job down to a rank that has ended.
    fn fail(&mut self, rank: usize) {
        let cause = &self.ranks.all()[rank];
        let failure = Failure { rank, pid: cause.pid(), end: cause.end.unwrap_or(End::Exited(0)) };
        if self.interrupted.is_none() {
            self.report.say(&failure);
        }
        self.first_failure = Some(failure);
    }

    /// Passes the signals on that came to the launcher.
    fn pass_signals(&mut self) {
        while let Some(signal) = self.signals.and_then(Signals::next) {
            let now = Instant::now();
            if signal == Signal::SIGINT && self.ending.interrupt(now) {
                continue;
            }
            self.ranks.signal(signal);
            if asks_to_end(signal) {
                self.interrupted.get_or_insert(signal);
                self.ending.told(now);
            } else if signal == Signal::SIGTSTP {
                // The launcher stops with its ranks; SIGCONT comes to it, and goes on to them.
                let _ = raise(Signal::SIGSTOP);
            }
        }
    }

    /// Looks which ranks have left nothing behind.
    fn bury(&mut self) {
        for group in self.ranks.emptied() {
            self.guard.forget(group);
        }
        if self.ranks.running().is_empty() && !self.ranks.present().is_empty() {
            self.ending.leftovers(Instant::now());
        }
    }

    /// Takes the next step against a job that should have ended by now.
    fn escalate(&mut self) {
        let Some(order) = self.ending.due(Instant::now()) else { return };
        let running = self.ranks.running();
        let what = if running.is_empty() {
            format!("processes that {} started are left", report::ranks(&self.ranks.present()))
        } else {
            let verb = if running.len() == 1 { "runs" } else { "run" };
            format!("{} still {verb}", report::ranks(&running))
        };
        match order {
            Order::Terminate => {
                self.report.say(format_args!("{what}: sending SIGTERM"));
                self.ranks.terminate();
            }
            Order::Kill => {
                self.report.say(format_args!("{what}: sending SIGKILL"));
                self.ranks.signal(Signal::SIGKILL);
            }
            Order::GiveUp => {
                self.report.say(format_args!("{what}, and cannot be ended"));
                self.ranks.give_up();
            }
        }
    }

    /// Says how the others ended after the first failure, or all after a signal.
    fn sum_up(&self) {
        let Some(failure) = &self.first_failure else { return };
        let mut by_end: Vec<(End, Vec<usize>)> = Vec::new();
        for (rank, end) in self.ranks.all().iter().enumerate().filter_map(|(rank, seen)| Some((rank, seen.end?))) {
            let told = self.interrupted.is_some();
            if end.success() || (rank == failure.rank && !told) {
                continue;
            }
            match by_end.iter_mut().find(|(known, _)| *known == end) {
                Some((_, list)) => list.push(rank),
                None => by_end.push((end, vec![rank])),
            }
        }
        let ends: Vec<String> =
            by_end.iter().map(|(end, list)| format!("{} {}", report::ranks(list), end.of(list.len()))).collect();
        match self.interrupted {
            Some(signal) => self.report.say(format_args!("ended by {signal}: {}", ends.join(", "))),
            None if !ends.is_empty() => self.report.say(format_args!("thereafter {}", ends.join(", "))),
            None => {}
        }
    }
}
