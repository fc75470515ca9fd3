//! The floor: what the bare machine takes, in code that shares nothing with shm-core.
//!
//! Each figure comes from bare processes over one shared mapping, and each loop is the plainest
//! that one can write for its purpose:
//!
//! - *exchange*: two processes bound to two cores, each writes one 64-byte line (sequence number
//!   and 56 bytes) and spins on the other's. One round is the least that a barrier or an 8-byte
//!   allreduce of two ranks can take.
//! - *exchange alone*, *line alone*: the same after a common start, timed as calls are that are timed alone; and one
//!   line that one process writes and the other waits for, the least that a rooted collective can take.
//! - *flag barrier*, *flag allreduce*: `p` processes on the usable cores, each publishes its own
//!   line and polls all others, with `sched_yield` between two polls.
//! - *thread barrier*: `pthread_barrier_wait` with the process-shared attribute.
//! - *moves* ([`moves`]): what two processes bound to two cores have to load and store for a broadcast, a reduce or an
//!   allreduce, and nothing else; some by the string instruction, where there is one.
//! - *copy*, *add*: `dst = src` and `dst += src` over f64, in the second-level cache and in
//!   memory, on one core and on several at the same time.

pub mod bandwidth;
pub mod moves;
pub mod process;
pub mod report;
pub mod rounds;
pub mod start;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Serialize, Serializer};

/// What the floor's processes do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Two processes exchange one line each.
    Exchange,
    /// The same after a common start, timed alone.
    ExchangeAlone,
    /// One process hands the other a line, after a common start, timed alone.
    LineAlone,
    /// Flat flags polled with `sched_yield`, no payload.
    FlagBarrier,
    /// Flat flags polled with `sched_yield`, 8 bytes of payload in the line, summed.
    FlagAllreduce,
    /// The C library's process-shared barrier.
    ThreadBarrier,
    /// One copies the other's buffer: a broadcast in shared memory.
    Pull,
    /// One adds the other's buffer to its own: a reduce in shared memory.
    PullSum,
    /// Each adds a half, and stores it in both results: an allreduce in shared memory.
    Halves,
    /// Each adds a half, and stores it in one result: an allreduce that is only looked at.
    HalvesView,
    /// A broadcast of private buffers.
    Staged,
    /// The same, copied by the string instruction.
    StagedByString,
    /// A reduce of private buffers.
    StagedSum,
    /// The same, copied by the string instruction.
    StagedSumByString,
    /// An allreduce of private buffers.
    StagedHalves,
    /// Each process copies its own buffer.
    Copy,
    /// Each process adds one of its buffers to another.
    Add,
}

const NAMES: [(Kind, &str); 17] = [
    (Kind::Exchange, "exchange"),
    (Kind::ExchangeAlone, "exchange-alone"),
    (Kind::LineAlone, "line-alone"),
    (Kind::FlagBarrier, "flag-barrier"),
    (Kind::FlagAllreduce, "flag-allreduce"),
    (Kind::ThreadBarrier, "thread-barrier"),
    (Kind::Pull, "pull"),
    (Kind::PullSum, "pull-sum"),
    (Kind::Halves, "halves"),
    (Kind::HalvesView, "halves-view"),
    (Kind::Staged, "staged"),
    (Kind::StagedByString, "staged-by-string"),
    (Kind::StagedSum, "staged-sum"),
    (Kind::StagedSumByString, "staged-sum-by-string"),
    (Kind::StagedHalves, "staged-halves"),
    (Kind::Copy, "copy"),
    (Kind::Add, "add"),
];

impl Kind {
    /// The moves of collectives between two processes.
    pub const MOVES: [Kind; 9] = [
        Kind::Pull,
        Kind::PullSum,
        Kind::Halves,
        Kind::HalvesView,
        Kind::Staged,
        Kind::StagedByString,
        Kind::StagedSum,
        Kind::StagedSumByString,
        Kind::StagedHalves,
    ];

    /// Whether it is one of [`Kind::MOVES`].
    pub fn is_move(self) -> bool {
        Self::MOVES.contains(&self)
    }

    /// Whether it goes through memory that both processes map, from and to private buffers.
    pub fn is_staged(self) -> bool {
        matches!(self, Kind::Staged | Kind::StagedSum | Kind::StagedHalves) || self.is_by_string()
    }

    /// Whether it copies by the string instruction.
    pub fn is_by_string(self) -> bool {
        matches!(self, Kind::StagedByString | Kind::StagedSumByString)
    }

    /// Whether it is between two processes.
    pub fn is_of_two(self) -> bool {
        self.is_move() || matches!(self, Kind::Exchange | Kind::ExchangeAlone | Kind::LineAlone)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES.iter().find(|(kind, _)| kind == self).map_or("", |(_, name)| name);
        f.pad(name)
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Kind, String> {
        NAMES
            .iter()
            .find(|(_, name)| *name == text)
            .map(|(kind, _)| *kind)
            .ok_or_else(|| format!("the floor measures no '{text}'"))
    }
}

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// One measurement of the floor.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// What is done.
    pub kind: Kind,
    /// How many processes do it at the same time.
    pub ranks: usize,
    /// Bytes of each buffer of moves, a copy or an addition, 0 otherwise.
    pub bytes: usize,
    /// Whether process `i` is bound to usable core `i mod cores`.
    pub bound: bool,
    /// How many blocks are timed.
    pub blocks: usize,
    /// How long one block lasts, about.
    pub block: Duration,
}

impl Task {
    /// A task without buffers.
    pub fn rounds(kind: Kind, ranks: usize, bound: bool, blocks: usize, block: Duration) -> Task {
        Task { kind, ranks, bytes: 0, bound, blocks, block }
    }

    /// Bytes that one process loads and stores in one round of a copy or an addition, as the
    /// program sees it: what a store fetches beforehand is not counted.
    pub fn bytes_moved(&self) -> usize {
        match self.kind {
            Kind::Copy => 2 * self.bytes,
            Kind::Add => 3 * self.bytes,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_read_back_what_they_show() {
        for (kind, name) in NAMES {
            assert_eq!(kind.to_string(), name);
            assert_eq!(name.parse::<Kind>(), Ok(kind));
        }
        assert!("race".parse::<Kind>().is_err());
    }
}
