//! One rank's end of the network, and what it has under way there.

use std::time::{Duration, Instant};

use super::alarm::{Alarm, Cause};
use super::error::{Error, Result};
use super::run::Run;
use crate::transport::Transport;

/// How long a rank sleeps at most while messages of its own are under way.
const BUSY_NAP: Duration = Duration::from_micros(50);
/// How long a rank sleeps at most while it only lets the messages of others move.
const QUIET_NAP: Duration = Duration::from_millis(1);
/// Looks without a sleep between them.
const EAGER_LOOKS: u32 = 400;

/// How long a rank that was only told that others cannot go on waits to hear which rank has failed.
const HEARSAY: Duration = Duration::from_secs(1);

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
    /// The library has told, while this rank had nothing of its own under way, that a rank is lost.
    has_loss: bool,
}

impl Network {
    pub fn new(transport: Box<dyn Transport>, alarm: Alarm) -> Self {
        Self { transport, alarm, entries: Vec::new(), next: 0, has_loss: false }
    }

    /// Takes a run, which begins with the next step.
    pub fn take(&mut self, run: Run) -> Ticket {
        let number = self.next;
        self.next += 1;
        self.entries.push(Entry { number, run, outcome: None });
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
        self.has_loss |= self.transport.progress().is_err_and(|error| error.is_loss());
        QUIET_NAP
    }

    /// Whether it was heard already that another rank cannot go on.
    pub fn knows_alarm(&self) -> bool {
        self.alarm.is_raised() || self.has_loss
    }

    /// The rank of another node that could not go on, if one has said so, and why.
    pub fn alarmed(&mut self) -> Option<Cause> {
        self.alarm.look(self.transport.as_ref())
    }

    /// Which rank has failed, if that is why others cannot go on, and the library tells it: waits a while to hear of it.
    pub fn hear_of_failure(&mut self) -> Option<usize> {
        let begin = Instant::now();
        loop {
            if let Some(&failed) = self.transport.failed().first() {
                return Some(failed);
            }
            // An alarm that names nobody has other reasons.
            match self.alarmed() {
                Some(cause) => return cause.failed,
                None if !self.transport.recovers() || begin.elapsed() > HEARSAY => return None,
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        }
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
                if let Some(cause) = self.alarmed() {
                    return Err(Error::Elsewhere { rank: cause.rank });
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

    /// Tells the other nodes that this one cannot go on, and gives up all that is under way. Where a rank has failed and the
    /// library can, it ends the messages of all: nobody waits for a rank that has turned to what comes next.
    pub fn fail(&mut self, cause: Cause) {
        // The alarms of others may come at any time.
        self.transport.forsake();
        self.alarm.raise(self.transport.as_ref(), cause);
        self.give_up();
        if cause.failed.is_some() {
            self.transport.revoke();
        }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.give_up();
        self.alarm.silence(self.transport.as_ref());
    }
}
