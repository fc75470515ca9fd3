//! When a job that is to end is told so, and how firmly: a pure function of what happened and of the time.

use std::time::{Duration, Instant};

/// Two signals closer together than this are one: `timeout` and terminals may send the same twice.
const ONE_KEYSTROKE: Duration = Duration::from_millis(200);
/// How long processes that outlived their rank have after a failure, between SIGTERM and SIGKILL.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// What is due to be sent to every process group of the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// SIGTERM.
    Terminate,
    /// SIGKILL.
    Kill,
    /// Nothing more helps.
    GiveUp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing has happened.
    Going,
    /// The ranks may end by themselves until then; SIGTERM comes next.
    Grace(Instant),
    /// They were told to end; SIGKILL comes next.
    Told(Instant),
    /// SIGKILL was sent. What is still there then cannot be killed.
    Killed(Instant),
    /// That too.
    GivenUp,
}

/// How far the end of a job has come.
#[derive(Debug)]
pub(super) struct Ending {
    grace: Duration,
    stage: Stage,
    interrupted: Option<Instant>,
    leftovers: bool,
}

impl Ending {
    pub(super) fn new(grace: Duration) -> Self {
        Ending { grace, stage: Stage::Going, interrupted: None, leftovers: false }
    }

    /// A rank failed: the others have a grace time to notice and to end by themselves.
    pub(super) fn failure(&mut self, now: Instant) {
        if self.stage == Stage::Going {
            self.stage = Stage::Grace(now + self.grace);
        }
    }

    /// A signal that asks to end was passed on to the ranks.
    pub(super) fn told(&mut self, now: Instant) {
        if matches!(self.stage, Stage::Going | Stage::Grace(_)) {
            self.stage = Stage::Told(now + self.grace);
        }
    }

    /// SIGINT came; true when it is the second one, which ends all patience.
    pub(super) fn interrupt(&mut self, now: Instant) -> bool {
        match self.interrupted {
            Some(first) if now.duration_since(first) >= ONE_KEYSTROKE => {
                if !matches!(self.stage, Stage::Killed(_) | Stage::GivenUp) {
                    self.stage = Stage::Told(now);
                }
                true
            }
            Some(_) => false,
            None => {
                self.interrupted = Some(now);
                false
            }
        }
    }

    /// All ranks have ended, but processes that they started are still there. They get the grace time if all went
    /// well, and next to none otherwise.
    pub(super) fn leftovers(&mut self, now: Instant) {
        if std::mem::replace(&mut self.leftovers, true) {
            return;
        }
        self.stage = match self.stage {
            Stage::Going => Stage::Grace(now + self.grace),
            Stage::Grace(_) => Stage::Grace(now),
            Stage::Told(until) => Stage::Told(until.min(now + LAST_WORDS)),
            done => done,
        };
    }

    /// When the next order falls due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.stage {
            Stage::Grace(until) | Stage::Told(until) => Some(until),
            Stage::Killed(until) => self.leftovers.then_some(until),
            Stage::Going | Stage::GivenUp => None,
        }
    }

    /// The order that is due by now, once.
    pub(super) fn due(&mut self, now: Instant) -> Option<Order> {
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return None;
        }
        let (stage, order) = match self.stage {
            Stage::Grace(_) => {
                let patience = if self.leftovers { LAST_WORDS.min(self.grace) } else { self.grace };
                (Stage::Told(now + patience), Order::Terminate)
            }
            Stage::Told(_) => (Stage::Killed(now + self.grace.max(LAST_WORDS)), Order::Kill),
            _ => (Stage::GivenUp, Order::GiveUp),
        };
        self.stage = stage;
        Some(order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_secs(2);

    fn orders(ending: &mut Ending, start: Instant) -> Vec<(u64, Order)> {
        (0..100).filter_map(|i| Some((i * 100, ending.due(start + Duration::from_millis(i * 100))?))).collect()
    }

    #[test]
    fn a_failure_gives_grace_then_terminates_then_kills() {
        let (mut ending, now) = (Ending::new(GRACE), Instant::now());
        assert_eq!(ending.deadline(), None);
        ending.failure(now);
        ending.failure(now + GRACE / 2);
        assert_eq!(orders(&mut ending, now), [(2000, Order::Terminate), (4000, Order::Kill)]);
    }

    #[test]
    fn a_signal_stands_for_the_sigterm() {
        let (mut ending, now) = (Ending::new(GRACE), Instant::now());
        ending.told(now);
        ending.failure(now);
        assert_eq!(orders(&mut ending, now), [(2000, Order::Kill)]);
    }

    #[test]
    fn a_second_interrupt_kills_at_once_unless_it_is_an_echo() {
        let (mut ending, now) = (Ending::new(GRACE), Instant::now());
        assert!(!ending.interrupt(now));
        ending.told(now);
        assert!(!ending.interrupt(now + ONE_KEYSTROKE / 2));
        assert_eq!(ending.due(now + ONE_KEYSTROKE / 2), None);
        assert!(ending.interrupt(now + ONE_KEYSTROKE));
        assert_eq!(ending.due(now + ONE_KEYSTROKE), Some(Order::Kill));
    }

    #[test]
    fn leftovers_have_time_after_success_and_little_after_failure() {
        let (mut ending, now) = (Ending::new(GRACE), Instant::now());
        ending.leftovers(now);
        assert_eq!(orders(&mut ending, now), [(2000, Order::Terminate), (2500, Order::Kill), (4500, Order::GiveUp)]);

        let mut ending = Ending::new(GRACE);
        ending.failure(now);
        ending.leftovers(now);
        assert_eq!(orders(&mut ending, now), [(0, Order::Terminate), (500, Order::Kill), (2500, Order::GiveUp)]);
    }
}
