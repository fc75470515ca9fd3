//! The bare loops between processes: line exchange, flat flags, the C library's barrier.

use std::ffi::c_int;
use std::hint::{black_box, spin_loop};
use std::mem::MaybeUninit;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::thread::yield_now;

use crate::error::{Error, Result};
use crate::mapping::{Line, MOST_LINES, Mapping};

/// Lines of the floor's mapping: one for control, two a process, from 512 on the counts of [moves](super::moves), and
/// the C library's barrier.
pub const LINES: usize = MOST_LINES;
/// Where the C library's barrier lies.
const BARRIER_LINE: usize = LINES - 1;

/// One process's place in the rounds: who it is, and how many rounds it has done.
pub struct Rounds<'a> {
    mapping: &'a Mapping,
    rank: usize,
    ranks: usize,
    /// Sequence number of the last round; never decreases.
    seq: u64,
}

impl<'a> Rounds<'a> {
    /// The place of process `rank` of `ranks`.
    pub fn new(mapping: &'a Mapping, rank: usize, ranks: usize) -> Rounds<'a> {
        Rounds { mapping, rank, ranks, seq: 0 }
    }

    /// The line in which `rank` publishes round `seq`.
    ///
    /// Two lines take turns: a process that has seen everybody's round `seq` knows that all have
    /// read round `seq - 1`, and nothing yet about who has read round `seq`.
    fn line(&self, rank: usize, seq: u64) -> &'a Line {
        &self.mapping.lines()[1 + 2 * rank + (seq & 1) as usize]
    }

    /// One exchange of full lines with the other process of two, spinning.
    pub fn exchange(&mut self) {
        self.seq += 1;
        self.publish();
        self.await_other();
    }

    /// The first of two processes hands the other one a full line. Who begins it knows that the other one has ended the
    /// round before.
    pub fn hand_over(&mut self) {
        self.seq += 1;
        match self.rank {
            0 => self.publish(),
            _ => self.await_other(),
        }
    }

    /// Stores the own line of this round.
    fn publish(&self) {
        let mine = self.line(self.rank, self.seq);
        for word in &mine.words[1..] {
            word.store(self.seq, Relaxed);
        }
        mine.words[0].store(self.seq, Release);
    }

    /// Waits for that of the other process of two.
    fn await_other(&self) {
        let other = self.line(1 - self.rank, self.seq);
        while other.words[0].load(Acquire) != self.seq {
            spin_loop();
        }
        let sum = other.words[1..].iter().fold(0u64, |sum, word| sum.wrapping_add(word.load(Relaxed)));
        assert_eq!(sum, self.seq.wrapping_mul(7), "a line arrived in parts");
    }

    /// One barrier over flat flags: publish, then poll all others with `sched_yield`.
    pub fn flag_barrier(&mut self) {
        self.seq += 1;
        self.line(self.rank, 0).words[0].store(self.seq, Release);
        for other in (0..self.ranks).filter(|&other| other != self.rank) {
            let flag = &self.line(other, 0).words[0];
            while flag.load(Acquire) < self.seq {
                yield_now();
            }
        }
    }

    /// One sum of 8 bytes over flat flags, the operand in the line beside the flag.
    pub fn flag_allreduce(&mut self) {
        self.seq += 1;
        let mine = self.line(self.rank, self.seq);
        mine.words[1].store((self.seq as f64).to_bits(), Relaxed);
        mine.words[0].store(self.seq, Release);
        let mut sum = 0.0;
        for rank in 0..self.ranks {
            let line = self.line(rank, self.seq);
            while line.words[0].load(Acquire) < self.seq {
                yield_now();
            }
            sum += f64::from_bits(line.words[1].load(Relaxed));
        }
        assert_eq!(black_box(sum), (self.seq as f64) * self.ranks as f64, "a wrong sum");
    }

    /// One round of the C library's barrier, which `make_thread_barrier` has made.
    pub fn thread_barrier(&mut self) {
        // SAFETY: the starting process initialised the barrier at this line for exactly `ranks`
        // processes before any of them was started, and destroys it after all have ended.
        let outcome = unsafe { libc::pthread_barrier_wait(self.mapping.at(BARRIER_LINE).cast()) };
        debug_assert!(outcome == 0 || outcome == libc::PTHREAD_BARRIER_SERIAL_THREAD);
    }
}

/// Initialises the C library's barrier in `mapping` for `ranks` processes.
pub fn make_thread_barrier(mapping: &Mapping, ranks: usize) -> Result<()> {
    const { assert!(size_of::<libc::pthread_barrier_t>() <= size_of::<Line>()) };
    let mut attributes = MaybeUninit::<libc::pthread_barrierattr_t>::uninit();
    let attributes = attributes.as_mut_ptr();
    // SAFETY: `attributes` points to room for the attributes, which this call initialises.
    check(unsafe { libc::pthread_barrierattr_init(attributes) })?;
    // SAFETY: initialised by the line above.
    check(unsafe { libc::pthread_barrierattr_setpshared(attributes, libc::PTHREAD_PROCESS_SHARED) })?;
    let barrier = mapping.at(BARRIER_LINE).cast();
    // SAFETY: the line is large enough (asserted above), aligned to 128 bytes, zeroed, and nobody
    // else uses it: the processes that will are not yet started.
    check(unsafe { libc::pthread_barrier_init(barrier, attributes, ranks as u32) })
}

fn check(outcome: c_int) -> Result<()> {
    if outcome == 0 {
        Ok(())
    } else {
        Err(Error::System {
            what: "process-shared pthread barrier".into(),
            source: std::io::Error::from_raw_os_error(outcome),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::anonymous_file;

    /// Runs `rounds` of `round` on `ranks` threads over one mapping.
    fn run(ranks: usize, rounds: usize, round: impl Fn(&mut Rounds<'_>) + Sync) {
        let file = anonymous_file(LINES).unwrap();
        let mapping = Mapping::of(&file, LINES).unwrap();
        make_thread_barrier(&mapping, ranks).unwrap();
        std::thread::scope(|scope| {
            for rank in 0..ranks {
                let (mapping, round) = (&mapping, &round);
                scope.spawn(move || {
                    let mut place = Rounds::new(mapping, rank, ranks);
                    (0..rounds).for_each(|_| round(&mut place));
                });
            }
        });
    }

    #[test]
    fn two_exchange_whole_lines() {
        run(2, 200, |place| place.exchange());
    }

    #[test]
    fn one_hands_lines_over() {
        let meeting = std::sync::Barrier::new(2);
        run(2, 200, |place| {
            meeting.wait();
            place.hand_over();
        });
    }

    #[test]
    fn flags_and_the_thread_barrier_serve_any_count() {
        for ranks in [1, 2, 3, 8] {
            run(ranks, 200, |place| place.flag_barrier());
            run(ranks, 200, |place| place.flag_allreduce());
            run(ranks, 200, |place| place.thread_barrier());
        }
    }
}
