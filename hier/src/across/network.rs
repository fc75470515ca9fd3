//! One rank's end of the network, and what it has under way there.

use std::time::{Duration, Instant};

use super::alarm::Alarm;
use super::error::{Error, Result};
use super::run::Run;
use crate::transport::Transport;

/// How long a rank sleeps at most while messages of its own are under way.
const BUSY_NAP: Duration = Duration::from_micros(50);
/// How long a rank sleeps at most while it only lets the messages of others move.
const QUIET_NAP: Duration = Duration::from_millis(1);
/// A rank that waits for its node looks after the network in a part of the time only: a look may take long (a library that
/// yields the core, or sleeps, while nothing comes), and what its node publishes meanwhile has to wait. So it pauses for so
/// many times as long as the look took: seldom, if it only lets the messages of others move.
const BUSY_SHARE: u32 = 1;
const QUIET_SHARE: u32 = 8;
/// The longest pause in the second case.
const LONGEST_PAUSE: Duration = Duration::from_millis(10);
/// Looks without a sleep between them.
const EAGER_LOOKS: u32 = 400;

/// Looks between two questions whether waiting has a point.
const HEALTH_ROUND: u32 = 64;

/// A run that was begun.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub(super) struct Ticket(u64);

struct Entry {
    number: u64,
    run: Run,
    /// None while it is under way.
    outcome: Option<Result<()>>,
}

/// One rank's end of the network.
pub(super) struct Network {
    pub transport: Box<dyn Transport>,
    alarm: Alarm,
    entries: Vec<Entry>,
    next: u64,
    /// When a rank that waits for its node looks again.
    due: Option<Instant>,
}

impl Network {
    pub fn new(transport: Box<dyn Transport>, alarm: Alarm) -> Self {
        Self { transport, alarm, entries: Vec::new(), next: 0, due: None }
    }

    /// Takes a run, which begins with the next step.
    pub fn take(&mut self, run: Run) -> Ticket {
        let number = self.next;
        self.next += 1;
        self.entries.push(Entry { number, run, outcome: None });
        self.due = None;
        Ticket(number)
    }

    /// Lets everything move. Returns how long this rank may sleep before it should do so again.
    pub fn step(&mut self) -> Duration {
        let (mut stepped, mut busy) = (false, false);
        for entry in self.entries.iter_mut().filter(|entry| entry.outcome.is_none()) {
            entry.outcome = match entry.run.step(self.transport.as_ref()) {
                Ok(false) => None,
                Ok(true) => Some(Ok(())),
                Err(error) => Some(Err(error.into())),
            };
            stepped = true;
            busy |= entry.outcome.is_none();
        }
        self.alarm.look(self.transport.as_ref());
        if stepped {
            return if busy { BUSY_NAP } else { QUIET_NAP };
        }
        // Nothing of its own: but a message that the program began before this call may need this rank's help to move on.
        // An error shows in the program's own calls.
        let _ = self.transport.progress();
        QUIET_NAP
    }

    /// What a rank does that waits for its node: a [`step`](Network::step), if one is due. Returns how long it may sleep.
    pub fn step_aside(&mut self) -> Duration {
        let begin = Instant::now();
        let rest = self.due.map_or(Duration::ZERO, |due| due.saturating_duration_since(begin));
        if !rest.is_zero() {
            return rest;
        }
        let nap = self.step();
        let end = Instant::now();
        let took = end.duration_since(begin);
        let pause = if self.entries.iter().any(|entry| entry.outcome.is_none()) {
            (BUSY_SHARE * took).min(QUIET_NAP)
        } else {
            (QUIET_SHARE * took).clamp(QUIET_NAP, LONGEST_PAUSE)
        };
        self.due = Some(end + pause);
        nap.max(pause)
    }

    /// The rank of another node that could not go on, if that was heard already.
    pub fn knows_alarm(&self) -> bool {
        self.alarm.is_raised()
    }

    /// The rank of another node that could not go on, if one has said so.
    pub fn alarmed(&mut self) -> Option<usize> {
        self.alarm.look(self.transport.as_ref())
    }

    /// Waits until a run has ended. `healthy` is asked now and then whether waiting has a point.
    pub fn finish(&mut self, ticket: &Ticket, healthy: impl Fn() -> Result<()>) -> Result<()> {
        let mut looks: u32 = 0;
        loop {
            let place = self.entries.iter().position(|entry| entry.number == ticket.0);
            // Given up meanwhile, because of an alarm.
            let Some(place) = place else { return Err(Error::Broken { rank: self.transport.rank() }) };
            if let Some(outcome) = self.entries[place].outcome.clone() {
                if outcome.is_ok() {
                    self.entries.swap_remove(place);
                }
                return outcome;
            }
            let nap = self.step();
            looks = looks.wrapping_add(1);
            if looks.is_multiple_of(HEALTH_ROUND) {
                healthy()?;
                if let Some(rank) = self.alarmed() {
                    return Err(Error::Elsewhere { rank });
                }
            }
            if looks > EAGER_LOOKS {
                std::thread::sleep(nap.min(BUSY_NAP));
            } else {
                std::thread::yield_now();
            }
        }
    }

    /// Gives up all that is under way.
    pub fn give_up(&mut self) {
        for mut entry in self.entries.drain(..) {
            entry.run.give_up(self.transport.as_ref());
        }
    }

    /// Gives up all that is under way, and tells the other nodes that this one cannot go on.
    pub fn fail(&mut self, first: usize) {
        self.give_up();
        self.alarm.raise(self.transport.as_ref(), first);
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.give_up();
        self.alarm.silence(self.transport.as_ref());
    }
}
