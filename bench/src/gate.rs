//! Where ranks meet before a call is timed: the same for ours and for every MPI.
//!
//! A library's own barrier is no neutral start. Which rank leaves it first, and how long before the others, differs
//! between libraries, and what it leaves of the ranks' order counts in the call behind it: a broadcast whose root
//! leaves first looks quick, one whose root leaves last looks slow. So ranks meet in a page that belongs to no library:
//! each says that it is there and what the clock shows, all take the latest of these times and begin a fixed while
//! after it, by the clock that all processes of a machine share. The reading that ends the waiting is the start of the
//! call's time.
//!
//! Where ranks outnumber cores nobody can begin on time. There ranks wait with `sched_yield` until all have come, and
//! begin as each gets a core.
//!
//! In the page ranks also look at the cores, before and after each block, so that each block belongs to a state of the
//! cores ([`look`]).
//!
//! `baseline/collectives.c` does the same with the same page. It consists of lines of 128 bytes: the first holds the
//! number of ranks and whether they yield, the others, one a rank, the rounds that it has come to, and the time of the
//! last.

pub mod look;

use std::fs::OpenOptions;
use std::hint::spin_loop;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::thread::yield_now;

use crate::error::{Error, Result};
use crate::mapping::{Line, Mapping};

/// From the last rank's arrival to the start, in nanoseconds: all must have seen it by then.
const AHEAD: u64 = 1000;
/// For each rank more, whose line is one more to read.
const AHEAD_RANK: u64 = 50;

/// Nanoseconds by the clock that all processes of this machine share.
///
/// Read as the C program of the baselines reads it. A function that gives back a result in memory takes longer, and
/// that time would stand in our figures alone.
#[inline]
pub fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` may be written; of a clock that every Linux has this call does not fail.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The page's file in the folder of a run's results.
fn path(folder: &Path) -> PathBuf {
    folder.join("gate")
}

fn lines(ranks: usize) -> usize {
    1 + ranks
}

/// Makes the page in `folder` for `ranks` ranks, which outnumber cores or not.
///
/// # Errors
///
/// [`Error::File`], [`Error::System`].
pub fn make(folder: &Path, ranks: usize, crowded: bool) -> Result<()> {
    let path = path(folder);
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path);
    let file = file.map_err(Error::file("cannot make", &path))?;
    file.set_len((lines(ranks) * size_of::<Line>()) as u64).map_err(Error::file("cannot enlarge", &path))?;
    let mapping = Mapping::of(&file, lines(ranks))?;
    let head = &mapping.lines()[0];
    head.words[0].store(ranks as u64, Relaxed);
    head.words[1].store(u64::from(crowded), Relaxed);
    Ok(())
}

/// One rank's place in the page.
#[derive(Debug)]
pub struct Gate {
    mapping: Mapping,
    rank: usize,
    ranks: usize,
    yields: bool,
    /// The last round; never decreases.
    round: u64,
}

impl Gate {
    /// The place of `rank` of `ranks` in the page in `folder`.
    ///
    /// # Errors
    ///
    /// [`Error::File`], [`Error::System`]; [`Error::Floor`] where the page was made for another number of ranks.
    pub fn open(folder: &Path, rank: usize, ranks: usize) -> Result<Gate> {
        let path = path(folder);
        let file = OpenOptions::new().read(true).write(true).open(&path);
        let mapping = Mapping::of(file.map_err(Error::file("cannot open", &path))?, lines(ranks))?;
        let head = &mapping.lines()[0];
        let (made_for, yields) = (head.words[0].load(Relaxed), head.words[1].load(Relaxed) != 0);
        if made_for != ranks as u64 {
            return Err(Error::Floor(format!("{} was made for {made_for} ranks, not {ranks}", path.display())));
        }
        Ok(Gate { mapping, rank, ranks, yields, round: 0 })
    }

    /// Says that this rank is here, waits for the others, and returns the latest of the times that they came with.
    fn meet(&mut self, time: u64) -> u64 {
        self.round += 1;
        let lines = &self.mapping.lines()[1..];
        lines[self.rank].words[1 + (self.round & 1) as usize].store(time, Relaxed);
        lines[self.rank].words[0].store(self.round, Release);
        let mut latest = time;
        for (_, line) in lines[..self.ranks].iter().enumerate().filter(|&(rank, _)| rank != self.rank) {
            while line.words[0].load(Acquire) < self.round {
                if self.yields { yield_now() } else { spin_loop() }
            }
            // A rank may be one round ahead: times of two rounds take turns.
            latest = latest.max(line.words[1 + (self.round & 1) as usize].load(Relaxed));
        }
        latest
    }

    /// Meets the others and returns the time at which all begin, which is when this returns.
    #[inline]
    pub fn start(&mut self) -> u64 {
        let latest = self.meet(now());
        if self.yields {
            return now();
        }
        let start = latest + AHEAD + AHEAD_RANK * self.ranks as u64;
        loop {
            let now = now();
            if now >= start {
                return now;
            }
            spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    /// What `ranks` threads return that have a place each in one page.
    pub fn threads<T: Send>(ranks: usize, crowded: bool, body: impl Fn(&mut Gate) -> T + Sync) -> Vec<T> {
        let scratch = Scratch::new().unwrap();
        make(scratch.path(), ranks, crowded).unwrap();
        std::thread::scope(|scope| {
            let start = |rank| {
                let mut gate = Gate::open(scratch.path(), rank, ranks).unwrap();
                let body = &body;
                scope.spawn(move || body(&mut gate))
            };
            let all: Vec<_> = (0..ranks).map(start).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        })
    }

    #[test]
    fn nobody_begins_before_all_have_come() {
        for crowded in [false, true] {
            let times = threads(3, crowded, |gate| {
                let times = |_| {
                    let came = now();
                    (came, gate.start())
                };
                (0..50).map(times).collect::<Vec<_>>()
            });
            for round in 0..50 {
                let last = times.iter().map(|rank| rank[round].0).max().unwrap();
                assert!(times.iter().all(|rank| rank[round].1 >= last), "round {round}");
            }
        }
    }

    #[test]
    fn a_page_for_other_ranks_is_refused() {
        let scratch = Scratch::new().unwrap();
        make(scratch.path(), 3, false).unwrap();
        let error = Gate::open(scratch.path(), 0, 2).unwrap_err().to_string();
        assert!(error.contains("made for 3 ranks, not 2"), "{error}");
        assert!(make(scratch.path(), 3, false).is_err(), "a page is made once");
    }
}
