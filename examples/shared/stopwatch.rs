//! How much of a program's time goes into its collectives.
//!
//! The examples share this file by `#[path = "../shared/stopwatch.rs"] mod stopwatch;`.

use std::cell::Cell;
use std::fmt;
use std::time::{Duration, Instant};

use phalanx::operator::{Max, Sum};

use crate::start::{Communicator, Result};

/// Runs from [`Stopwatch::start`] to [`Stopwatch::stop`] and adds up the time inside [`Stopwatch::collective`].
pub struct Stopwatch {
    started: Instant,
    /// What had been moved before.
    bytes: u64,
    inside: Cell<Duration>,
    calls: Cell<u64>,
}

impl Stopwatch {
    /// Starts the watch on every rank at about the same moment.
    ///
    /// The barrier keeps the time that the other ranks took to start out of the measurement. What all `communicators`
    /// have moved is counted from here on.
    pub fn start(world: &Communicator, communicators: &[&Communicator]) -> Result<Stopwatch> {
        world.barrier()?;
        let bytes = moved(communicators);
        Ok(Stopwatch { started: Instant::now(), bytes, inside: Cell::new(Duration::ZERO), calls: Cell::new(0) })
    }

    /// Runs one collective and adds its time, waiting for late ranks included, to this rank's total.
    pub fn collective<R>(&self, call: impl FnOnce() -> R) -> R {
        let before = Instant::now();
        let result = call();
        self.inside.set(self.inside.get() + before.elapsed());
        self.calls.set(self.calls.get() + 1);
        result
    }

    /// Stops the watch and puts the figures of all ranks together; collective over `world`.
    ///
    /// `communicators` are those that [`Stopwatch::start`] was given.
    pub fn stop(self, world: &Communicator, communicators: &[&Communicator]) -> Result<Figures> {
        let wall = self.started.elapsed().as_secs_f64();
        let share = self.inside.get().as_secs_f64() / wall;
        let bytes = moved(communicators) - self.bytes;

        let mut largest = [wall, share];
        world.all_reduce_in_place(&mut largest, Max)?;
        let mut share_sum = [share];
        world.all_reduce_in_place(&mut share_sum, Sum)?;
        let mut calls = [self.calls.get()];
        world.all_reduce_in_place(&mut calls, Max)?;
        let mut bytes_sum = [bytes];
        world.all_reduce_in_place(&mut bytes_sum, Sum)?;
        Ok(Figures {
            seconds: largest[0],
            share_max: largest[1],
            share_mean: share_sum[0] / world.size() as f64,
            calls: calls[0],
            bytes: bytes_sum[0],
        })
    }
}

/// Payload bytes that this rank has loaded and stored for its communicators so far. Messages between nodes are not
/// among them.
fn moved(communicators: &[&Communicator]) -> u64 {
    communicators.iter().map(|communicator| communicator.counters()).map(|counts| counts.loaded + counts.stored).sum()
}

/// What [`Stopwatch::stop`] found; the same on every rank.
pub struct Figures {
    /// The time of the slowest rank.
    pub seconds: f64,
    /// The part of its time that a rank spends in collectives: the largest of all ranks, from 0 to 1.
    pub share_max: f64,
    /// The mean of that part over all ranks.
    pub share_mean: f64,
    /// Calls of collectives on the rank that made most.
    pub calls: u64,
    /// Payload bytes that all ranks together loaded and stored for them, in the memory of their nodes.
    pub bytes: u64,
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "time            {:.3} s, in collectives {:.1} % (mean of the ranks), {:.1} % (most)",
            self.seconds,
            100.0 * self.share_mean,
            100.0 * self.share_max
        )?;
        write!(f, "collectives     {} calls on a rank, {} bytes loaded and stored by all ranks", self.calls, self.bytes)
    }
}
