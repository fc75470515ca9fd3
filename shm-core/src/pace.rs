//! Which way payload goes into a cell: found by measuring, anew all the time.
//!
//! A cell can be filled by ordinary stores, which leave its lines in the writer's cache, or by stores that stream past
//! the caches to memory. Which of the two serves writer and reader better depends on the distance between their cores, on
//! the machine, on the size of the slice, and on virtual machines it changes while a job runs. On one two-core machine
//! (AMD EPYC, Zen 4), a broadcast of 1 MiB took 190 to 430 us with ordinary stores and 45 us with streamed ones as long
//! as the cores lay on different core complexes, 32 and 55 us when they shared one.
//!
//! So each writer decides for itself. At one position in eight, writer and reader time what they do with the slice; the
//! reader leaves its figure in the line of its `done` words, where the writer looks at its next such position. Cells are filled in
//! the way that is the better one so far; now and then the other is tried, for longer than the ring has slots: what a
//! store costs depends on how the cell was filled the turn before, so that a single slice filled otherwise would say nothing. Where a writer takes the lines of
//! cells ahead ([`take_lines`](crate::payload::take_lines)) ordinary stores cost that as well: each fills then what was paid for before. Nothing hangs
//! on a figure but the time that a copy takes, so these words have no order, and a figure that is missed is missed.

use std::sync::atomic::{Ordering, fence};

use crate::board::SharedBoard;
use crate::protocol::RingName;
use crate::select::tuning::{STREAM_ALWAYS, STREAM_NEVER};

/// How a cell is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Way {
    /// By ordinary stores.
    Cached = 0,
    /// Past the caches.
    Streamed = 1,
}

impl Way {
    fn other(self) -> Self {
        if self == Way::Cached { Way::Streamed } else { Way::Cached }
    }
}

/// Slices shorter than this are not streamed.
const LEAST: usize = 1024;

/// Classes of slices, by the power of two: from [`LEAST`] on; the last takes all longer ones. As many again are for cells whose lines are taken ahead.
const CLASSES: usize = 6;

/// Samples of a writer that may wait for a figure of their reader.
const WAITING: usize = 16;

/// Slices from one trial of the other way to the next.
const PERIOD: u32 = 8192;

/// Slices of a trial: two turns of a ring.
const TRIAL: u32 = 128;

/// Samples after which a trial may end before its time, because the other way is far worse.
const ENOUGH: u32 = 2;

/// Whether the slice at a position is timed: one in eight, the same for writer and reader, and without a period that
/// slices of some leader, root or message could keep in step with.
#[inline]
pub(crate) fn is_sample(position: u64) -> bool {
    position.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61 == 0
}

/// A clock that is cheap to read; its unit is the same for all ranks.
#[inline]
pub(crate) fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: every x86-64 has a time-stamp counter.
        unsafe { core::arch::x86_64::_rdtsc() }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        use std::sync::OnceLock;
        use std::time::Instant;
        static BEGIN: OnceLock<Instant> = OnceLock::new();
        BEGIN.get_or_init(Instant::now).elapsed().as_nanos() as u64
    }
}

/// The class of slices of so many bytes, [`LEAST`] at least, in cells whose lines are taken ahead, or are not.
fn class_of(bytes: usize, takes: bool) -> usize {
    ((bytes / LEAST).ilog2() as usize).min(CLASSES - 1) + if takes { CLASSES } else { 0 }
}

/// Bits of a cost.
const COST_BITS: u32 = 24;

/// A figure and the position that it was taken at, in one word.
pub(crate) fn pack(position: u64, cost: u64) -> u64 {
    position << COST_BITS | cost
}

/// The cost in a figure, if that was taken at this position.
pub(crate) fn cost_at(figure: u64, position: u64) -> Option<u64> {
    (figure >> COST_BITS == position).then_some(figure & ((1 << COST_BITS) - 1))
}

/// Ticks for 4 KiB.
fn cost(ticks: u64, bytes: usize) -> u64 {
    (ticks.min(1 << 40) * 4096 / bytes as u64).clamp(1, (1 << COST_BITS) - 1)
}

/// Leaves a figure for who published at `position`: what `bytes` bytes have cost since `begun`.
pub(crate) fn leave_figure(board: &SharedBoard, ring: RingName, position: u64, bytes: usize, begun: u64) {
    board.leave_figure(ring, pack(position, cost(ticks().wrapping_sub(begun), bytes)));
}

/// Does `read`, which reads `bytes` bytes of a slot, and leaves a figure for the slot's writer if its position is a sample.
#[inline]
pub(crate) fn reading(board: &SharedBoard, ring: RingName, position: u64, bytes: usize, read: impl FnOnce()) {
    reading_of(board, ring, position, (bytes, 1), read);
}

/// [`reading`] of the slots of several ranks, the number of which stands beside the bytes of each: what is known is what they cost together,
/// and a writer weighs what its own slice costs. For slots that have one reader: where all ranks read all slots, as in an exchange, what each
/// leaves stands for all that read the writer's.
#[inline]
pub(crate) fn reading_of(
    board: &SharedBoard,
    ring: RingName,
    position: u64,
    (bytes, slots): (usize, usize),
    read: impl FnOnce(),
) {
    if bytes < LEAST || !is_sample(position) {
        return read();
    }
    let begun = ticks();
    read();
    leave_figure(board, ring, position, bytes * slots, begun);
}

/// What one way costs, for slices of one class: its writer and its reader, 0 while unknown; and, of ordinary stores, to take the lines of cells that will
/// be filled, where that is done.
#[derive(Clone, Copy, Default)]
struct Cost {
    write: u64,
    read: u64,
    take: u64,
}

impl Cost {
    /// Takes a lower figure at once, a higher one by and by: a rank that lost its core in the middle says little.
    fn learn(known: &mut u64, figure: u64) {
        *known = match *known {
            0 => figure,
            known if figure < known => figure,
            known => known + (figure.min(4 * known) - known).div_ceil(8),
        };
    }

    fn total(&self) -> Option<u64> {
        (self.write != 0 && self.read != 0).then_some(self.write + self.read + self.take)
    }
}

/// What is known of slices of one class.
#[derive(Clone, Copy)]
struct Class {
    ways: [Cost; 2],
    /// The better way so far.
    better: Way,
    /// What that cost when it was found to be the better one; 0 before.
    decided: u64,
    /// Slices since then.
    turn: u32,
    /// Samples of the trial that is running.
    tried: u32,
}

impl Default for Class {
    /// Ordinary stores; a trial is due at once.
    fn default() -> Self {
        Self { ways: Default::default(), better: Way::Cached, decided: 0, turn: PERIOD - TRIAL, tried: 0 }
    }
}

impl Class {
    /// The way of the next slice.
    #[inline]
    fn next(&mut self) -> Way {
        self.turn += 1;
        if self.turn <= PERIOD - TRIAL { self.better } else { self.trial() }
    }

    /// The same in a trial, or right before one: as many slices are filled the way that has been the better one, and both are judged by
    /// what they cost in these.
    #[cold]
    fn trial(&mut self) -> Way {
        let other = self.better.other();
        if self.turn == PERIOD - TRIAL + 1 {
            self.ways[self.better as usize] = Cost::default();
        }
        if self.turn <= PERIOD {
            return self.better;
        }
        if self.turn == PERIOD + 1 {
            (self.ways[other as usize], self.tried) = (Cost::default(), 0);
        }
        if self.turn <= PERIOD + TRIAL && !self.is_lost() {
            return other;
        }
        self.decide();
        self.turn = 0;
        self.better
    }

    fn decide(&mut self) {
        let [Some(cached), Some(streamed)] = self.ways.map(|cost| cost.total()) else { return };
        // Figures of one way differ as much as this from one trial to the next; and where the caches serve both, what the second
        // rank finds there is worth more than the sum says.
        self.better = if streamed + streamed / 2 < cached { Way::Streamed } else { Way::Cached };
        self.decided = [cached, streamed][self.better as usize];
    }

    /// Whether the other way has shown to be far worse.
    fn is_lost(&self) -> bool {
        let other = &self.ways[self.better.other() as usize];
        let tried = other.write + other.take;
        self.tried >= ENOUGH && self.ways[self.better as usize].total().is_some_and(|known| tried > 2 * known)
    }

    /// Whether the two ways are being compared.
    fn compares(&self) -> bool {
        self.turn > PERIOD - TRIAL
    }

    /// Takes what it cost to fill a slice.
    fn learn_write(&mut self, way: Way, figure: u64) {
        Cost::learn(&mut self.ways[way as usize].write, figure);
        if way == self.better {
            self.look_again();
        } else {
            self.tried += 1;
        }
    }

    /// Takes what it cost to read one.
    fn learn_read(&mut self, way: Way, figure: u64) {
        Cost::learn(&mut self.ways[way as usize].read, figure);
        if way == self.better {
            self.look_again();
        }
    }

    /// Has a trial begin at once if the better way has become a worse one than it was.
    fn look_again(&mut self) {
        let total = self.ways[self.better as usize].total();
        if self.decided != 0 && !self.compares() && total.is_some_and(|total| total > 2 * self.decided) {
            self.turn = PERIOD - TRIAL;
        }
    }
}

/// A sample whose reader has yet to say what it cost.
#[derive(Clone, Copy)]
struct Waiting {
    position: u64,
    class: usize,
    way: Way,
    reader: usize,
}

/// What a writer knows of the ways into its cells of one ring.
pub(crate) struct Pace {
    ring: RingName,
    stream: u32,
    classes: [Class; 2 * CLASSES],
    waiting: [Option<Waiting>; WAITING],
    next: usize,
}

impl Pace {
    /// Nothing is known; `stream` is the table's word.
    pub fn new(ring: RingName, stream: u32) -> Self {
        let mut pace = Self {
            ring,
            stream: STREAM_NEVER,
            classes: [Class::default(); 2 * CLASSES],
            waiting: [None; WAITING],
            next: 0,
        };
        pace.go_by(stream);
        pace
    }

    /// Goes by another word of the table from now on; what is known stays known.
    pub fn go_by(&mut self, stream: u32) {
        self.stream = if cfg!(target_arch = "x86_64") { stream } else { STREAM_NEVER };
    }

    /// Does `write(way)`, which fills the own slot of `position` with `bytes` bytes for `reader` (or for it and others).
    #[inline]
    pub fn writing(
        &mut self,
        board: &SharedBoard,
        position: u64,
        reader: usize,
        bytes: usize,
        write: impl FnOnce(Way),
    ) {
        self.writing_to(board, position, reader, (bytes, false), write);
    }

    /// [`writing`](Pace::writing) where the lines of cells may have been taken ahead ([`taking`](Pace::taking)), which stands beside the bytes: such calls are judged by
    /// themselves.
    #[inline]
    pub fn writing_to(
        &mut self,
        board: &SharedBoard,
        position: u64,
        reader: usize,
        (bytes, takes): (usize, bool),
        write: impl FnOnce(Way),
    ) {
        if bytes < LEAST || self.stream == STREAM_NEVER {
            return write(Way::Cached);
        }
        if self.stream == STREAM_ALWAYS {
            return write(Way::Streamed);
        }
        let class = class_of(bytes, takes);
        let way = self.classes[class].next();
        if !is_sample(position) {
            return write(way);
        }
        self.collect(board);
        let begun = ticks();
        write(way);
        // Ordinary stores may still stand in line: without a fence a short slice would seem to cost nothing.
        fence(Ordering::SeqCst);
        let figure = cost(ticks().wrapping_sub(begun), bytes);
        self.classes[class].learn_write(way, figure);
        self.waiting[self.next] = Some(Waiting { position, class, way, reader });
        self.next = (self.next + 1) % WAITING;
    }

    /// Does `take`, by which a writer takes the lines of cells that ordinary stores of `bytes` bytes will fill, and has published `position`. It is part of what
    /// those cost: between cores that share no cache stores to lines that others hold stand in line for longer than it takes to stream as much.
    #[inline]
    pub fn taking(&mut self, position: u64, bytes: usize, take: impl FnOnce()) {
        if bytes < LEAST || matches!(self.stream, STREAM_NEVER | STREAM_ALWAYS) || !is_sample(position) {
            return take();
        }
        let class = &mut self.classes[class_of(bytes, true)];
        // At other times nobody should wait for them.
        if !class.compares() {
            return take();
        }
        // What was published is not part of it.
        fence(Ordering::SeqCst);
        let begun = ticks();
        take();
        fence(Ordering::SeqCst);
        Cost::learn(&mut class.ways[Way::Cached as usize].take, cost(ticks().wrapping_sub(begun), bytes));
    }

    /// Looks for the figures that the readers of the last samples have left.
    fn collect(&mut self, board: &SharedBoard) {
        for waiting in &mut self.waiting {
            let Some(Waiting { position, class, way, reader }) = *waiting else { continue };
            if let Some(cost) = cost_at(board.figure(self.ring, reader), position) {
                self.classes[class].learn_read(way, cost);
                *waiting = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_position_in_eight_is_a_sample_whatever_the_stride() {
        for stride in [1, 2, 3, 4, 8, 16, 64] {
            for offset in 0..stride {
                let samples = (0..1000u64).filter(|i| is_sample(offset + i * stride)).count();
                assert!((60..260).contains(&samples), "{samples} of 1000 at {offset} + i * {stride}");
            }
        }
    }

    #[test]
    fn the_cheaper_way_is_found_and_found_again_when_it_changes() {
        let mut class = Class::default();
        for costs in [[100, 300], [900, 250], [120, 250], [120, 115], [400, 180]] {
            let mut ways = [0; 2];
            for slice in 0..40_000 {
                let way = class.next();
                ways[way as usize] += u32::from(slice >= 20_000);
                if is_sample(slice) {
                    // Now and then a rank loses its core in the middle.
                    let figure = costs[way as usize] * if slice % 29 == 0 { 1000 } else { 1 };
                    class.learn_write(way, figure);
                    class.learn_read(way, figure);
                }
            }
            // Where there is next to nothing between the two, it is the caches.
            let better = usize::from(costs[1] * 3 / 2 < costs[0]);
            assert_eq!(class.better as usize, better, "{costs:?}");
            assert!(ways[better] > 19_000 && ways[1 - better] > 10, "{costs:?}: {ways:?}");
        }
    }

    /// Seven slices in eight are not timed: what becomes worse is noticed long before the next trial would be due.
    #[test]
    fn a_way_that_has_become_worse_is_left_soon() {
        let mut class = Class::default();
        let mut slice = 0u64;
        let mut run = |class: &mut Class, slices: u32, costs: [u64; 2]| {
            for _ in 0..slices {
                let way = class.next();
                slice += 1;
                if is_sample(slice) {
                    class.learn_write(way, costs[way as usize]);
                    class.learn_read(way, costs[way as usize]);
                }
            }
        };
        run(&mut class, 10_000, [100, 300]);
        assert_eq!(class.better, Way::Cached);
        run(&mut class, PERIOD / 8, [900, 300]);
        assert_eq!(class.better, Way::Streamed);
    }

    /// A trial of a way that is far worse ends before its time.
    #[test]
    fn a_trial_that_is_lost_ends_early() {
        let mut class = Class::default();
        let mut tried = 0;
        for slice in 0..u64::from(PERIOD) * 4 {
            let way = class.next();
            tried += u32::from(way == Way::Streamed);
            if is_sample(slice) {
                let figure = [100, 900][way as usize];
                class.learn_write(way, figure);
                class.learn_read(way, figure);
            }
        }
        assert!((8..TRIAL * 3).contains(&tried), "{tried}");
    }

    /// Stores that are quick because the lines were taken before are judged by what it took to take them.
    #[test]
    fn what_is_taken_ahead_counts() {
        for (take, better) in [(0, Way::Cached), (100, Way::Cached), (900, Way::Streamed)] {
            let mut class = Class::default();
            for slice in 0..40_000 {
                let way = class.next();
                if is_sample(slice) {
                    let figure = [100, 300][way as usize];
                    class.learn_write(way, figure);
                    class.learn_read(way, figure);
                    if way == Way::Cached && class.compares() {
                        Cost::learn(&mut class.ways[0].take, take);
                    }
                }
            }
            assert_eq!(class.better, better, "{take}");
        }
    }

    #[test]
    fn figures_keep_to_their_bits() {
        let position = (1 << 39) - 1;
        for figure in [cost(0, 1024), cost(1000, 4096), cost(u64::MAX, 1024)] {
            assert!(figure >= 1);
            assert_eq!(pack(position, figure) >> 24, position);
            assert_eq!(pack(position, figure) & ((1 << 24) - 1), figure);
        }
    }
}
