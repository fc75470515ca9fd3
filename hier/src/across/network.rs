//! One rank's end of the network, and what it has under way there.

use std::time::{Duration, Instant};

use super::alarm::{Alarm, Cause};
use super::error::{Error, Result};
use super::run::{Buffer, Run};
use super::stages::Gate;
use crate::transport::Transport;

/// How long a rank sleeps at most while messages of its own are under way.
const BUSY_NAP: Duration = Duration::from_micros(50);
/// How long a rank sleeps at most while it only lets the messages of others move.
const QUIET_NAP: Duration = Duration::from_millis(1);
/// How long a rank that was only told that others cannot go on waits to hear which rank has failed.
const HEARSAY: Duration = Duration::from_secs(1);

/// How long others have to hear the alarm where the library has not noticed yet who has failed: ending all messages
/// ends those of the alarm too.
const HEADSTART: Duration = Duration::from_millis(150);

/// A rank that waits for its node looks after the network in a part of the time only: a look may take long (a library
/// that yields the core, or sleeps, while nothing comes), and what its node publishes meanwhile has to wait. So it
/// pauses for so many times as long as the look took: seldom, if it only lets the messages of others move.
const BUSY_SHARE: u32 = 1;
const QUIET_SHARE: u32 = 8;
/// The longest pause in the second case.
const LONGEST_PAUSE: Duration = Duration::from_millis(10);
/// A look that took so long has given the core away already (a library that yields or sleeps while nothing comes): then
/// the next follows at once, for what has come meanwhile.
const AWAY: Duration = Duration::from_micros(10);
/// So long after messages last moved, a rank begins to sleep between two looks: a nap is then a small part of the wait.
const EAGER: Duration = Duration::from_millis(1);
/// So many looks that find nothing follow each other before a rank gives the core away between two: a library that
/// sleeps while nothing comes does so after a few, and is woken by what it waits for; a rank that has yielded is not.
const PATIENT_LOOKS: u32 = 8;
/// Looks between two at the alarm, while messages are under way.
const ALARM_ROUND: u32 = 8;
/// Looks between two questions whether waiting has a point.
const HEALTH_ROUND: u32 = 64;

/// Buffers of runs that have ended, kept for those that come, and the longest that is kept.
const BUFFERS: usize = 4;
const LONGEST_BUFFER: usize = 1 << 20;

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
    buffers: Vec<Buffer>,
    next: u64,
    /// How often messages were looked after.
    looks: u32,
    /// The library has told, while this rank had nothing of its own under way, that a rank is lost.
    has_loss: bool,
    /// When a rank that waits for its node looks again.
    due: Option<Instant>,
    /// This rank is alone on its node: it hears of everything by messages, and may sleep until one comes.
    is_alone: bool,
}

impl Network {
    /// `is_alone`: the rank is the only one of its node.
    pub fn new(transport: Box<dyn Transport>, alarm: Alarm, is_alone: bool) -> Self {
        let (entries, buffers) = (Vec::new(), Vec::new());
        Self { transport, alarm, entries, buffers, next: 0, looks: 0, has_loss: false, due: None, is_alone }
    }

    /// Takes a run, which begins with the next step.
    pub fn take(&mut self, mut run: Run) -> Ticket {
        let number = self.next;
        self.next += 1;
        if let Some(buffer) = self.buffers.pop() {
            run.lend(buffer);
        }
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
        self.looks = self.looks.wrapping_add(1);
        if !stepped || self.looks.is_multiple_of(ALARM_ROUND) {
            self.alarm.look(self.transport.as_ref());
        }
        if stepped {
            return if busy { BUSY_NAP } else { QUIET_NAP };
        }
        // Nothing of its own: but a message that the program began before this call may need this rank's help to move
        // on. An error shows in the program's own calls.
        self.has_loss |= self.transport.progress().is_err_and(|error| error.is_loss());
        QUIET_NAP
    }

    /// Waits in the library until a message comes, if that is all that can help: a rank that looks again and again
    /// takes more of its core, and is woken later. What comes is its own or the alarm. Returns whether it has waited.
    /// Something is under way.
    fn doze(&self) -> Result<bool> {
        let transport = self.transport.as_ref();
        let mut under_way = self.entries.iter().filter(|entry| entry.outcome.is_none());
        let may = self.is_alone
            && !self.alarm.may_sound(transport)
            && under_way.all(|entry| entry.run.awaits_message(transport));
        Ok(may && transport.await_message()?)
    }

    /// What a rank does that waits for its node: a [`step`](Network::step), if one is due. Returns how long it may
    /// sleep.
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

    /// Whether it was heard already that another rank cannot go on.
    pub fn knows_alarm(&self) -> bool {
        self.alarm.is_raised() || self.has_loss
    }

    /// The rank of another node that could not go on, if one has said so, and why.
    pub fn alarmed(&mut self) -> Option<Cause> {
        self.alarm.look(self.transport.as_ref())
    }

    /// Which rank has failed, if that is why others cannot go on, and the library tells it: waits a while to hear of
    /// it.
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

    /// Lets a run go farther, which begins with the next step.
    pub fn open(&mut self, ticket: &Ticket, gate: Gate) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.number == ticket.0) {
            entry.run.set_gate(gate);
        }
    }

    /// Waits until so many rounds of a run have ended, or all. `healthy` is asked now and then whether waiting has a
    /// point.
    pub fn finish(&mut self, ticket: &Ticket, rounds: Option<usize>, healthy: impl Fn() -> Result<()>) -> Result<()> {
        let (mut looks, mut idle): (u32, u32) = (0, 0);
        let mut now = Instant::now();
        let (mut moved, mut moved_at) = (0, now);
        loop {
            let place = self.entries.iter().position(|entry| entry.number == ticket.0);
            // Given up meanwhile, because of an alarm.
            let Some(place) = place else { return Err(Error::Broken { rank: self.transport.rank() }) };
            if let Some(outcome) = self.entries[place].outcome.clone() {
                if outcome.is_ok() && rounds.is_none() {
                    let buffer = self.entries.swap_remove(place).run.into_buffer();
                    if self.buffers.len() < BUFFERS && (1..=LONGEST_BUFFER).contains(&buffer.bytes()) {
                        self.buffers.push(buffer);
                    }
                }
                return outcome;
            }
            if rounds.is_some_and(|rounds| self.entries[place].run.rounds_ended() >= rounds) {
                return Ok(());
            }
            if self.doze()? {
                now = Instant::now();
                (moved_at, idle) = (now, 0);
            }
            let nap = self.step();
            looks = looks.wrapping_add(1);
            let expects = self.entries.iter().any(|entry| entry.outcome.is_none() && entry.run.expects());
            if looks.is_multiple_of(HEALTH_ROUND) || (expects && self.alarm.may_sound(self.transport.as_ref())) {
                healthy()?;
                if let Some(cause) = self.alarmed() {
                    return Err(Error::Elsewhere { rank: cause.rank });
                }
            }
            let begin = std::mem::replace(&mut now, Instant::now());
            let rounds = self.entries.iter().map(|entry| entry.run.rounds_ended()).sum();
            if std::mem::replace(&mut moved, rounds) != rounds {
                (moved_at, idle) = (now, 0);
            } else if now.duration_since(begin) >= AWAY {
                idle = 0;
            } else if now.duration_since(moved_at) > EAGER {
                std::thread::sleep(nap.min(BUSY_NAP));
                now = Instant::now();
            } else {
                // One step of a run that expects its messages is many looks.
                idle += if expects { PATIENT_LOOKS } else { 1 };
                if idle > PATIENT_LOOKS {
                    std::thread::yield_now();
                    now = Instant::now();
                }
            }
        }
    }

    /// Gives up all that is under way.
    pub fn give_up(&mut self) {
        for mut entry in self.entries.drain(..) {
            entry.run.give_up(self.transport.as_ref());
        }
    }

    /// A rank of this node has dropped the communicator, and so tells no other node.
    pub fn do_without(&mut self, rank: usize) {
        self.alarm.do_without(rank);
    }

    /// Tells the other nodes that this one cannot go on, and gives up all that is under way. Where a rank has failed
    /// and the library can, it ends the messages of all: nobody waits for a rank that has turned to what comes next.
    pub fn fail(&mut self, cause: Cause) {
        // The alarms of others may come at any time.
        self.transport.forsake();
        self.alarm.raise(self.transport.as_ref(), cause);
        self.give_up();
        if let Some(failed) = cause.failed.filter(|_| self.transport.recovers()) {
            self.is_reported(failed, HEADSTART);
            self.transport.revoke();
        }
    }

    /// Whether the library knows of a failure, which it is given so long to notice.
    pub fn is_reported(&self, failed: usize, limit: Duration) -> bool {
        let begin = Instant::now();
        loop {
            if self.transport.failed().contains(&failed) {
                return true;
            }
            if begin.elapsed() > limit {
                return false;
            }
            // What comes of it, or fails, is no matter any more.
            let _ = self.transport.progress();
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.give_up();
        self.alarm.silence(self.transport.as_ref());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::transport::{self, Request};

    /// A network on which nothing comes, and that sleeps whenever it is asked to let messages move.
    struct Sleepy {
        asked: Arc<AtomicU32>,
    }

    const SLEEP: Duration = Duration::from_millis(1);

    impl Transport for Sleepy {
        fn rank(&self) -> usize {
            0
        }

        fn size(&self) -> usize {
            1
        }

        unsafe fn send(&self, _: usize, _: u32, _: *const u8, _: usize) -> transport::Result<Request> {
            Err(transport::Error::Request { rank: 0 })
        }

        unsafe fn receive(&self, _: usize, _: u32, _: *mut u8, _: usize) -> transport::Result<Request> {
            Err(transport::Error::Request { rank: 0 })
        }

        fn test(&self, _: &mut Request) -> transport::Result<bool> {
            Ok(true)
        }

        fn progress(&self) -> transport::Result<()> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(SLEEP);
            Ok(())
        }

        fn abandon(&self, _: Request, _: Duration) -> bool {
            true
        }

        fn subset(&self, _: &[usize]) -> transport::Result<Box<dyn Transport>> {
            Ok(Box::new(Self { asked: Arc::clone(&self.asked) }))
        }

        fn describe(&self) -> String {
            "sleepy".to_owned()
        }
    }

    #[test]
    fn who_waits_for_its_node_lets_messages_move_in_a_part_of_the_time() {
        let asked = Arc::new(AtomicU32::new(0));
        let mut network = Network::new(Box::new(Sleepy { asked: Arc::clone(&asked) }), Alarm::deaf(), false);
        let (begin, mut turns) = (Instant::now(), 0);
        while asked.load(Ordering::Relaxed) < 4 {
            let nap = network.step_aside();
            assert!(!nap.is_zero() && nap <= LONGEST_PAUSE);
            turns += 1;
            std::thread::sleep(nap.min(SLEEP / 4));
        }
        // Behind each look but the last, a pause of several times its length.
        assert!(begin.elapsed() >= 3 * (1 + QUIET_SHARE) * SLEEP);
        assert!(turns > 4);
    }
}
