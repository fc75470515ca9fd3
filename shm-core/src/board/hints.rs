//! What ranks tell each other that nothing hangs on but time: how cells were filled, what it cost to read them, and of
//! which calls that is wanted. These words order nothing; one that comes too late, or is overwritten, is missed.

use std::sync::atomic::{AtomicU64, Ordering};

use super::SharedBoard;
use crate::pace::Way;
use crate::protocol::RingName;
use crate::segment::layout::{FIGURES, LINE};

/// Beside the way that a slot's writer tells: that it waits for a figure.
const FIGURE_WANTED: u64 = 1 << 32;

// A `done` word and a figure of each ring, and the position of the call whose figure is wanted, share a line.
const _: () = assert!(8 * RingName::ALL.len() <= FIGURES && FIGURES + 8 * (RingName::ALL.len() + 1) <= LINE);

impl SharedBoard {
    /// Tells who reads an own up or down slot, which is published next, how its cell was filled, or how a call is done,
    /// and whether the writer waits for a figure. A hint: it promises nothing of what lies there.
    #[inline]
    pub fn tell_reader(&self, ring: RingName, slot: usize, way: Way, waits: bool) {
        let told = way as u64 | if waits { FIGURE_WANTED } else { 0 };
        self.location_words(ring, self.rank, slot)[4].store(told, Ordering::Relaxed);
    }

    /// Whether the writer of a down slot, which is read, waits for a figure.
    #[inline]
    pub fn is_figure_wanted(&self, writer: usize, slot: usize) -> bool {
        self.location_words(RingName::Down, writer, slot)[4].load(Ordering::Relaxed) & FIGURE_WANTED != 0
    }

    /// What the writer of a slot has told, which was read from it.
    #[inline]
    pub fn told(&self, ring: RingName, writer: usize, slot: usize) -> Way {
        Way::of(self.location_words(ring, writer, slot)[4].load(Ordering::Relaxed) & !FIGURE_WANTED)
    }

    /// Where a rank leaves figures for writers of a ring, in the line of its `done` words.
    fn figure_word(&self, ring: RingName, rank: usize) -> &AtomicU64 {
        &self.word(rank, self.area.done + FIGURES + ring as usize * 8).0
    }

    /// In the same line, behind the figures of all three rings: the position of the call of which a rank wants the
    /// other one's figure.
    fn wanted_word(&self, rank: usize) -> &AtomicU64 {
        &self.word(rank, self.area.done + FIGURES + RingName::ALL.len() * 8).0
    }

    /// Wants a figure of the call that publishes its last slice at this position. A hint, told before the first one.
    pub fn want_figure(&self, position: u64) {
        self.wanted_word(self.rank).store(position, Ordering::Relaxed);
    }

    /// Whether `rank` wants one of the call of this position, some slice of which has been acquired.
    pub fn wants_figure(&self, rank: usize, position: u64) -> bool {
        self.wanted_word(rank).load(Ordering::Relaxed) == position
    }

    /// Leaves a figure for the writers of what was read. It orders nothing and promises nothing.
    pub fn leave_figure(&self, ring: RingName, figure: u64) {
        self.figure_word(ring, self.rank).store(figure, Ordering::Relaxed);
    }

    /// The figure that `rank` left last.
    pub fn figure(&self, ring: RingName, rank: usize) -> u64 {
        self.figure_word(ring, rank).load(Ordering::Relaxed)
    }
}
