//! Which way payload goes into a cell: found by measuring, anew all the time.
//!
//! A cell can be filled by ordinary stores, which leave its lines in the writer's cache, by stores that stream past the
//! caches to memory, or by the processor's string instruction (`rep movsb`), which need not fetch a line that it stores
//! as a whole; and it can be read by loads, or by that instruction too. Which of them serves writer and reader best
//! depends on the distance between their cores, on the machine, on the size of the slice, and on virtual machines it
//! changes while a job runs. On one two-core machine (AMD EPYC, Zen 4), a broadcast of 1 MiB took 190 to 430 us with
//! ordinary stores and 45 us with streamed ones as long as the cores lay on different core complexes, 32 and 55 us when
//! they shared one. On another (AMD EPYC, Zen 5) one of 64 KiB took 1.9 us with ordinary stores and 1.6 by the string
//! instruction, 4.1 and 3.4 far apart; on a third (Zen 3) that instruction took many times as long at unlucky distances
//! between the buffers.
//!
//! So each writer decides for itself, and tells its reader how to read. At one position in eight (outside of trials one
//! in 32, but for readers that fold) they time what they do with the slice; the reader leaves its figure in the line of
//! its `done` words, where the writer looks at its next position of that kind. Cells are filled in the way that is the
//! best one so far; now and then the others are tried ([`class`]), for longer than the ring has slots: what a store
//! costs depends on how the cell was filled the turn before, so that a single slice filled otherwise would say nothing.
//! Where a writer takes the lines of cells ahead ([`take_lines`](crate::payload::take_lines)) ordinary stores cost a
//! half of that as well: each fills then what was paid for before. Nothing hangs on a figure but the time that a copy
//! takes, so these words have no order, and a figure that is missed is missed.

use std::sync::atomic::{Ordering, fence};

use crate::board::{SharedBoard, UntilHuge};
use crate::protocol::RingName;
use crate::select::tuning::{STREAM_ALWAYS, STREAM_BOTH_BY_STRING, STREAM_BY_STRING, STREAM_NEVER};
use class::{Class, Trial};

mod calls;
mod class;
mod cost;
mod figure;

pub(crate) use calls::Calls;
#[cfg(test)]
pub(crate) use figure::pack;
pub(crate) use figure::{Taken, cost_at, is_sample, leave_figure, load, reading, reading_of, span, taking_out, ticks};
use figure::{cost, is_rare_sample, ticks_behind_loads};

/// How a cell is filled, or results are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Way {
    /// By ordinary stores.
    Cached = 0,
    /// Past the caches.
    Streamed = 1,
    /// By the string instruction; who reads it loads.
    ByString = 2,
    /// The same, and who copies it out does so by that instruction too.
    BothByString = 3,
}

impl Way {
    const COUNT: usize = 4;

    /// The way with this number; ordinary stores where there is none.
    pub fn of(number: u64) -> Self {
        match number {
            1 => Way::Streamed,
            2 => Way::ByString,
            3 => Way::BothByString,
            _ => Way::Cached,
        }
    }
}

/// What is known of the lines of a cell that is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lines {
    /// Others have read them since.
    Left = 0,
    /// They were taken ahead.
    Taken = 1,
    /// They are here as a rule: of two ranks each has read there what the other one stored.
    Here = 2,
}

/// Slices shorter than this are filled by ordinary stores. To measure costs those of 2 KiB 8 percent; of 4 KiB ordinary
/// stores are the best way between two cores that share a last-level cache (0.23 us, 0.31 by the string instruction),
/// and far apart not by as much worse (0.89, 0.70; AMD EPYC, Zen 5), and figures do not always tell which it is.
pub(crate) const LEAST: usize = 5 * 1024;

/// The same of slices whose lines are [here](Lines::Here): between two cores that share a last-level cache allreduces of 2
/// to 8 KiB took 3 to 10 percent longer by the string instruction, of 16 KiB 4 percent less (AMD EPYC, Zen 5).
pub(crate) const LEAST_HERE: usize = 16 * 1024;

/// Classes of slices, by the power of two: from [`LEAST`] on; the last takes all longer ones. There are as many for
/// each state of their [`Lines`].
const CLASSES: usize = 6;

/// The ways into cells of the up ring, most of whose readers fold; into those of the down ring, which are copied out;
/// and into cells whose lines are here, past which nothing is stored.
const FOLDED: &[Way] = &[Way::Cached, Way::Streamed, Way::ByString];
const COPIED: &[Way] = &[Way::Cached, Way::Streamed, Way::ByString, Way::BothByString];
const HERE: &[Way] = &[Way::Cached, Way::ByString];

/// What the cost of each way counts for when ways are compared. Figures of one way differ as much as these weights from
/// one trial to the next; and where the caches serve both, what the second rank finds there is worth more than figures
/// say.
const WEIGHTS: [u64; Way::COUNT] = [32, 48, 33, 34];

/// Slices for which each way is tried: two turns of a ring. Where both sides go by the string instruction it takes many
/// more until lines are where they will be: at first each costs its writer 170 to 480 ticks for 4 KiB, later 100 to 120
/// (AMD EPYC, Zen 5). Where nothing but such messages used the caches 400 slices were enough; where another library had
/// its turn after each 128, 512 were too few in the first three trials of 4 of 6 programs, 2048 in no second one of 5.
/// Some trials wait longer ([`class`]).
const TRIAL: Trial = Trial {
    first: 4096,
    period: 131_072,
    slices: 128,
    in_order: false,
    ahead: 2048,
    overlaps: true,
    agrees: false,
    weights: WEIGHTS,
};

/// The trial of slices of this class. [`TRIAL`] was found with slices of 32 KiB; lines come to be where they will be by
/// bytes, not by slices, and a state of the machine lasts for a time. So of twice as long ones (40 KiB and more, most
/// of them 64) half as many do, of the longest class (160 KiB and more, most of them 256) an eighth; but each way gets
/// half as many at least, for there to be samples.
fn trial(class: usize) -> Trial {
    match (class % CLASSES).saturating_sub(AS_FOUND) {
        0 => TRIAL,
        longer => Trial {
            first: TRIAL.first >> longer,
            period: TRIAL.period >> longer,
            slices: TRIAL.slices / 2,
            ahead: TRIAL.ahead >> longer,
            ..TRIAL
        },
    }
}

/// The class with which [`TRIAL`] was found.
const AS_FOUND: usize = 2;

/// Samples of a writer that may wait for a figure of their reader.
const WAITING: usize = 16;

/// The class of slices of so many bytes, [`LEAST`] at least, in cells with such lines.
fn class_of(bytes: usize, lines: Lines) -> usize {
    ((bytes / LEAST).ilog2() as usize).min(CLASSES - 1) + lines as usize * CLASSES
}

/// A sample whose reader has yet to say what it cost.
#[derive(Clone, Copy)]
struct Waiting {
    position: u64,
    class: usize,
    way: Way,
    reader: usize,
}

/// The table's word, where the machine has other ways than ordinary stores.
fn possible(stream: u32) -> u32 {
    if cfg!(target_arch = "x86_64") { stream } else { STREAM_NEVER }
}

/// The way of a slice of [`LEAST`] bytes or more that nobody has to find: by the table's word, or because it is short
/// where its lines are here.
fn forced(stream: u32, lines: Lines, bytes: usize) -> Option<Way> {
    match stream {
        0 if lines == Lines::Here && bytes < LEAST_HERE => Some(Way::Cached),
        0 => None,
        STREAM_ALWAYS if lines != Lines::Here => Some(Way::Streamed),
        STREAM_BY_STRING => Some(Way::ByString),
        STREAM_BOTH_BY_STRING => Some(Way::BothByString),
        _ => Some(Way::Cached),
    }
}

/// What a writer knows of the ways into its cells of one ring.
pub(crate) struct Pace {
    ring: RingName,
    stream: u32,
    classes: Box<[Class; 3 * CLASSES]>,
    waiting: [Option<Waiting>; WAITING],
    next: usize,
    /// Whether all samples are timed, and not the rare ones alone.
    watches: bool,
    until_huge: UntilHuge,
}

/// A slice that is about to be filled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slice {
    pub position: u64,
    pub slot: usize,
    pub bytes: usize,
    /// A rank that reads it.
    pub reader: usize,
}

impl Pace {
    /// Nothing is known; `stream` is the table's word.
    pub fn new(ring: RingName, stream: u32) -> Self {
        let copied = if ring == RingName::Down { COPIED } else { FOLDED };
        // Far apart reductions of 1 and 4 MiB took 58 and 260 us where far higher figures are to agree, 80 and 440
        // where they count for little; broadcasts 104 and 415, 79 and 301 (AMD EPYC, Zen 3). Likely because ordinary
        // stores are cheap in the first turn of a ring, and readers of the down ring, who load what they have copied,
        // differ more.
        let agrees = ring == RingName::Up;
        let classes = Box::new(std::array::from_fn(|class| match class < Lines::Here as usize * CLASSES {
            true => Class::new(copied, Trial { agrees, ..trial(class) }),
            // There each rank does both.
            false => Class::new(HERE, Trial { overlaps: false, ..trial(class) }),
        }));
        let mut pace = Self {
            ring,
            stream: STREAM_NEVER,
            classes,
            waiting: [None; WAITING],
            next: 0,
            watches: false,
            until_huge: UntilHuge::new(),
        };
        pace.go_by(stream);
        pace
    }

    /// Goes by another word of the table from now on; what is known stays known.
    pub fn go_by(&mut self, stream: u32) {
        self.stream = possible(stream);
    }

    /// Does `write(way)`, which fills the own slot of a slice, for its reader and perhaps others.
    #[inline]
    pub fn writing(&mut self, board: &SharedBoard, slice: Slice, write: impl FnOnce(Way)) {
        self.writing_to(board, slice, Lines::Left, write);
    }

    /// [`writing`](Pace::writing) to a cell of whose lines something is known: such calls are judged by
    /// themselves.
    #[inline]
    pub fn writing_to(&mut self, board: &SharedBoard, slice: Slice, lines: Lines, write: impl FnOnce(Way)) {
        let Slice { position, slot, bytes, reader } = slice;
        if bytes < LEAST {
            return write(Way::Cached);
        }
        if self.until_huge.is_due(slot, bytes) && board.want_huge_pages(self.ring) {
            self.until_huge.ask_again();
        }
        let forced = forced(self.stream, lines, bytes);
        let class = class_of(bytes, lines);
        let way = forced.unwrap_or_else(|| self.classes[class].next());
        let is_sample = forced.is_none() && is_sample(position);
        if is_sample {
            // Of the last one that was timed, before its reader leaves another figure.
            self.collect(board);
        }
        let waits = is_sample && (self.watches || self.classes[class].compares() || is_rare_sample(position));
        match waits {
            false => write(way),
            true => {
                let begun = ticks_behind_loads();
                write(way);
                // Ordinary stores may still stand in line: without a fence a short slice would seem to cost nothing.
                fence(Ordering::SeqCst);
                let figure = cost(ticks_behind_loads().wrapping_sub(begun), bytes);
                self.classes[class].learn_write(way, figure);
                self.waiting[self.next] = Some(Waiting { position, class, way, reader });
                self.next = (self.next + 1) % WAITING;
            }
        }
        // Behind the payload, since its reader looks at this line.
        if self.ring == RingName::Down {
            board.tell_reader(self.ring, slot, way, waits);
        }
    }

    /// Whether ways for slices of so many bytes, into cells with such lines, are being compared: what they cost at
    /// present says little.
    pub fn compares(&self, bytes: usize, lines: Lines) -> bool {
        bytes >= LEAST && forced(self.stream, lines, bytes).is_none() && self.classes[class_of(bytes, lines)].compares()
    }

    /// Watches what slices cost more closely from now on, or no more: where few go through cells, for those to show
    /// soon that the way into them is no longer the best one.
    pub fn watch(&mut self, closely: bool) {
        self.watches = closely;
    }

    /// Does `take`, by which a writer takes the lines of cells that ordinary stores of `bytes` bytes will fill, and has
    /// published `position`. It counts among what those cost ([`class`]): between cores that share no cache stores to
    /// lines that others hold stand in line for longer than it takes to stream as much.
    #[inline]
    pub fn taking(&mut self, position: u64, bytes: usize, take: impl FnOnce()) {
        if bytes < LEAST || self.stream != 0 || !is_sample(position) {
            return take();
        }
        let class = &mut self.classes[class_of(bytes, Lines::Taken)];
        // At other times nobody should wait for them.
        if !class.compares() {
            return take();
        }
        // What was published is not part of it.
        fence(Ordering::SeqCst);
        let begun = ticks_behind_loads();
        take();
        fence(Ordering::SeqCst);
        class.learn_take(cost(ticks_behind_loads().wrapping_sub(begun), bytes));
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
    use crate::Communicator;

    /// Whatever the table says.
    #[test]
    fn short_slices_are_filled_by_ordinary_stores() {
        Communicator::threads(1, |comm| {
            let engine = comm.enter().unwrap();
            for stream in 0..=STREAM_BOTH_BY_STRING {
                let mut pace = Pace::new(RingName::Down, stream);
                for (bytes, position) in (0..LEAST).step_by(100).chain([LEAST - 1]).zip(1..) {
                    let slice = Slice { position, slot: 0, bytes, reader: 0 };
                    let mut ways = Vec::new();
                    pace.writing(&engine.board, slice, |way| ways.push(way));
                    assert_eq!(ways, [Way::Cached], "{stream}, {bytes}");
                }
            }
        })
        .unwrap();
    }

    #[test]
    fn the_table_has_its_word_on_slices_that_are_long_enough() {
        for lines in [Lines::Left, Lines::Taken, Lines::Here] {
            for stream in 0..=STREAM_BOTH_BY_STRING {
                let streamed = if lines == Lines::Here { Way::Cached } else { Way::Streamed };
                let wanted = [None, Some(Way::Cached), Some(streamed), Some(Way::ByString), Some(Way::BothByString)];
                assert_eq!(forced(stream, lines, LEAST_HERE), wanted[stream as usize], "{stream}, {lines:?}");
                let short =
                    if stream == 0 && lines == Lines::Here { Some(Way::Cached) } else { wanted[stream as usize] };
                for bytes in [LEAST, LEAST_HERE - 1] {
                    assert_eq!(forced(stream, lines, bytes), short, "{stream}, {lines:?}, {bytes}");
                }
            }
        }
    }

    /// From the first slice of a class on, of those whose way has to be found.
    #[test]
    fn ways_are_compared_where_there_is_a_choice() {
        Communicator::threads(1, |comm| {
            let engine = comm.enter().unwrap();
            for stream in [0, STREAM_NEVER] {
                let mut pace = Pace::new(RingName::Down, stream);
                let lengths = [LEAST - 1, LEAST, 64 * LEAST];
                assert!(lengths.iter().all(|&bytes| !pace.compares(bytes, Lines::Left)));
                let slice = Slice { position: 1, slot: 0, bytes: LEAST, reader: 0 };
                pace.writing(&engine.board, slice, |_| ());
                let chooses = stream == 0 && possible(0) == 0;
                assert_eq!(lengths.map(|bytes| pace.compares(bytes, Lines::Left)), [false, chooses, false], "{stream}");
            }
        })
        .unwrap();
    }

    #[test]
    fn ways_have_their_numbers() {
        for way in [Way::Cached, Way::Streamed, Way::ByString, Way::BothByString] {
            assert_eq!(Way::of(way as u64), way);
        }
        assert_eq!(Way::of(u64::MAX), Way::Cached);
    }
}
