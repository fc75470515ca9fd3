//! Where ranks meet before a call is timed: the same for ours and for every MPI.
//!
//! A library's own barrier is no neutral start. Which rank leaves it first, and how long before the others, differs
//! between libraries, and what it leaves of the ranks' order counts in the call behind it: a broadcast whose root
//! leaves first looks quick, one whose root leaves last looks slow. So ranks meet in a page that belongs to no library:
//! each says that it is there and what the clock shows, all take the latest of these times and begin a fixed while
//! after it, by the clock that all processes of a machine share. The reading that ends the waiting is the start of the
//! call's time. Each says, too, how long its last call took, so that of every single call the slowest rank's time is
//! known ([`Each`]), and not only whose is the longest on the average.
//!
//! Where ranks outnumber cores nobody can begin on time. There ranks wait with `sched_yield` until all have come, and
//! begin as each gets a core; the call's time begins, for all, when the last one came.
//!
//! In the page ranks also look at the cores, before and after each block, so that each block belongs to a state of the
//! cores ([`look`]).
//!
//! `baseline/collectives_gate.h` does the same with the same page. It consists of lines of 128 bytes: the first holds the
//! number of ranks and whether they yield, the others, one a rank, the rounds that it has come to, and of the last two
//! the times, and what the calls before them took.

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

    /// Says that this rank is here and what its last call took, waits for the others, and returns the latest of the
    /// times that they came with, and the longest of these calls.
    fn meet(&mut self, time: u64, took: u64) -> (u64, u64) {
        self.round += 1;
        let lines = &self.mapping.lines()[1..];
        // A rank may be one round ahead: words of two rounds take turns.
        let turn = (self.round & 1) as usize;
        lines[self.rank].words[1 + turn].store(time, Relaxed);
        lines[self.rank].words[3 + turn].store(took, Relaxed);
        lines[self.rank].words[0].store(self.round, Release);
        let (mut latest, mut longest) = (time, took);
        for (_, line) in lines[..self.ranks].iter().enumerate().filter(|&(rank, _)| rank != self.rank) {
            while line.words[0].load(Acquire) < self.round {
                if self.yields { yield_now() } else { spin_loop() }
            }
            let [time, took] = [1 + turn, 3 + turn].map(|word| line.words[word].load(Relaxed));
            (latest, longest) = (latest.max(time), longest.max(took));
        }
        (latest, longest)
    }

    /// Meets the others, behind a call that took so long; returns the time at which all begin, which is when this
    /// returns or, where they outnumber cores, when the last one came, and the longest of these calls.
    #[inline]
    fn start(&mut self, took: u64) -> (u64, u64) {
        let (latest, longest) = self.meet(now(), took);
        if self.yields {
            return (latest, longest);
        }
        let start = latest + AHEAD + AHEAD_RANK * self.ranks as u64;
        loop {
            let now = now();
            if now >= start {
                return (now, longest);
            }
            spin_loop();
        }
    }

    /// Has all ranks begin at one time.
    pub fn together(&mut self) {
        self.start(0);
    }

    /// What so many nanoseconds, spent by this rank on calls back to back, are on the slowest one.
    pub fn stretch(&mut self, own: u64) -> Elapsed {
        let (_, slowest) = self.meet(0, own);
        Elapsed { own, slowest }
    }
}

/// Nanoseconds that calls took, all together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Elapsed {
    /// On this rank.
    pub own: u64,
    /// Of each call what it took on the rank where that was most; of calls back to back that of the slowest rank.
    pub slowest: u64,
}

impl Elapsed {
    /// The same of one call, of so many.
    pub fn of_each(self, calls: u64) -> [f64; 2] {
        [self.own, self.slowest].map(|nanoseconds| nanoseconds as f64 / calls as f64)
    }
}

/// Calls that are timed one by one, each after a common start.
#[derive(Debug, Default)]
pub struct Each {
    elapsed: Elapsed,
    /// What the last call took on this rank.
    last: u64,
}

impl Each {
    /// Has all ranks begin at one time, and returns it.
    #[inline]
    pub fn begin(&mut self, gate: &mut Gate) -> u64 {
        let (begin, longest) = gate.start(self.last);
        self.elapsed.slowest += longest;
        begin
    }

    /// The call that began last took so long on this rank.
    #[inline]
    pub fn took(&mut self, nanoseconds: u64) {
        self.last = nanoseconds;
        self.elapsed.own += nanoseconds;
    }

    /// What all calls took.
    pub fn end(self, gate: &mut Gate) -> Elapsed {
        let (_, longest) = gate.meet(0, self.last);
        Elapsed { slowest: self.elapsed.slowest + longest, ..self.elapsed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    /// Of each call the slowest rank counts, whichever that is.
    #[test]
    fn the_slowest_rank_of_each_call_is_found() {
        for crowded in [false, true] {
            let elapsed = threads(3, crowded, |gate| {
                let mut each = Each::default();
                for call in 0..30 {
                    each.begin(gate);
                    each.took(if call % 3 == gate.rank { 100 } else { 10 });
                }
                each.end(gate)
            });
            assert_eq!(elapsed, [Elapsed { own: 10 * 100 + 20 * 10, slowest: 30 * 100 }; 3]);
            let stretches = threads(3, crowded, |gate| gate.stretch(gate.rank as u64).slowest);
            assert_eq!(stretches, [2; 3]);
        }
    }

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
                    (came, gate.start(0).0)
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
