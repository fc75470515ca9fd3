//! The counts of one rank, on its thread.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;

use crate::communicator::Communicator;
use crate::protocol::Edge;
use crate::segment::layout::LINE;

/// What one rank did in shared memory.
///
/// Left out are the word by which a rank notes its call, a store a call, which nobody looks at while all goes well, and
/// figures by which ranks find the better way into a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Stamps published.
    pub stamps: u64,
    /// `done` words published.
    pub dones: u64,
    /// Stamps of others waited for: looked at until they are there, once each where they are there already.
    pub waits: u64,
    /// `done` words of others waited for, since a slot is to be filled again, or a buffer was lent.
    pub done_waits: u64,
    /// Cache lines stored to, words and payload; a line that is stored to several times before one publication counts
    /// once.
    pub lines_stored: u64,
    /// Cache lines loaded, words and payload; a line that is loaded several times between two publications of this rank
    /// counts once.
    pub lines_loaded: u64,
    /// Payload bytes loaded, from shared and from private memory.
    pub bytes_loaded: u64,
    /// Payload bytes stored, to shared and to private memory.
    pub bytes_stored: u64,
}

impl Counts {
    /// The names of the counts, in the order of [`values`](Counts::values).
    pub const NAMES: [&'static str; 8] =
        ["stamps", "dones", "waits", "done waits", "lines stored", "lines loaded", "bytes loaded", "bytes stored"];

    /// The counts.
    #[must_use]
    pub fn values(&self) -> [u64; 8] {
        let Self { stamps, dones, waits, done_waits, lines_stored, lines_loaded, bytes_loaded, bytes_stored } = *self;
        [stamps, dones, waits, done_waits, lines_stored, lines_loaded, bytes_loaded, bytes_stored]
    }

    /// The counts of these values.
    #[must_use]
    pub fn of(values: [u64; 8]) -> Self {
        let [stamps, dones, waits, done_waits, lines_stored, lines_loaded, bytes_loaded, bytes_stored] = values;
        Self { stamps, dones, waits, done_waits, lines_stored, lines_loaded, bytes_loaded, bytes_stored }
    }

    /// The sums over all ranks, and the largest of each.
    #[must_use]
    pub fn sum_and_most(ranks: &[Counts]) -> [Self; 2] {
        let join = |by: fn(u64, u64) -> u64| {
            let all = ranks.iter().map(Counts::values);
            Self::of(all.fold([0; 8], |before, values| std::array::from_fn(|i| by(before[i], values[i]))))
        };
        [join(|a, b| a + b), join(u64::max)]
    }
}

/// What is known while a rank counts.
#[derive(Default)]
struct Tally {
    counts: Counts,
    /// The lines stored to, and loaded, since the last publication.
    stored: HashSet<usize>,
    loaded: HashSet<usize>,
}

impl Tally {
    fn flush(&mut self) {
        self.counts.lines_stored += self.stored.len() as u64;
        self.counts.lines_loaded += self.loaded.len() as u64;
        self.stored.clear();
        self.loaded.clear();
    }
}

thread_local! {
    /// Where shared memory begins and ends for this thread's rank, while it counts; else nowhere.
    static SHARED: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
    static TALLY: RefCell<Tally> = RefCell::default();
}

/// Where things happen.
pub(crate) mod note {
    use super::*;

    fn lines(at: *const u8, bytes: usize) -> Option<std::ops::RangeInclusive<usize>> {
        let (begin, end) = SHARED.get();
        let within = bytes > 0 && (begin..end).contains(&at.addr());
        within.then(|| at.addr() / LINE..=(at.addr() + bytes - 1) / LINE)
    }

    /// A word of this rank's own was published.
    pub fn published<W>(word: &W, edge: Edge) {
        let at = std::ptr::from_ref(word).cast();
        let Some(line) = lines(at, size_of::<W>()) else { return };
        TALLY.with_borrow_mut(|tally| {
            match edge {
                Edge::LinePublish | Edge::UpPublish | Edge::DownPublish => tally.counts.stamps += 1,
                Edge::LineReuse | Edge::UpReuse | Edge::DownReuse => tally.counts.dones += 1,
            }
            tally.stored.extend(line);
            tally.flush();
        });
    }

    /// A word of another rank is waited for.
    pub fn awaited<W>(word: &W, edge: Edge) {
        let at = std::ptr::from_ref(word).cast();
        let Some(line) = lines(at, size_of::<W>()) else { return };
        TALLY.with_borrow_mut(|tally| {
            match edge {
                Edge::LinePublish | Edge::UpPublish | Edge::DownPublish => tally.counts.waits += 1,
                Edge::LineReuse | Edge::UpReuse | Edge::DownReuse => tally.counts.done_waits += 1,
            }
            tally.loaded.extend(line);
        });
    }

    /// Payload was loaded.
    pub fn loaded(at: *const u8, bytes: usize) {
        if let Some(lines) = lines(at, bytes) {
            TALLY.with_borrow_mut(|tally| tally.loaded.extend(lines));
        }
    }

    /// Payload was stored.
    pub fn stored(at: *const u8, bytes: usize) {
        if let Some(lines) = lines(at, bytes) {
            TALLY.with_borrow_mut(|tally| tally.stored.extend(lines));
        }
    }
}

impl Communicator {
    /// Counts what this rank does in `call`, which makes collective calls on this communicator.
    pub fn count<R>(&self, call: impl FnOnce() -> R) -> (R, Counts) {
        let mapping = self.seat().mapping();
        let begin = mapping.base().addr();
        TALLY.set(Tally::default());
        SHARED.set((begin, begin + mapping.layout.total()));
        let before = self.counters();
        let result = call();
        SHARED.set((0, 0));
        let mut tally = TALLY.take();
        tally.flush();
        let after = self.counters();
        tally.counts.bytes_loaded = after.loaded - before.loaded;
        tally.counts.bytes_stored = after.stored - before.stored;
        (result, tally.counts)
    }
}
