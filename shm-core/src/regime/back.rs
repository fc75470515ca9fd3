//! How one of two ranks takes results that came back: the other one has stored them in this one's own cells.
//!
//! By loops, or by the string instruction: allreduces of 64 KiB took 1.92 us and 1.80, reductions to a root 1.95 and
//! 1.78 (AMD EPYC, Zen 5, near). What it does to the lines of the cells the other rank pays for when it stores to them
//! next, so the two are judged by whole calls, each rank by its own.

use crate::pace::{Calls, LEAST, Way, span, ticks};
use crate::payload::Manner;

/// The results of one call.
pub(super) struct Back<'a> {
    calls: &'a mut Calls,
    position: u64,
    bytes: usize,
    way: Way,
    /// When the call began, and then a time from which on all counts but the wait for the other rank, in ticks; 0 if
    /// this call is not measured.
    begun: u64,
    /// Ticks until the last contribution was made.
    contributed: u64,
    stage: Stage,
}

/// How far the call has come.
#[derive(PartialEq)]
enum Stage {
    /// The other rank's contribution was not found yet.
    Alone,
    /// It was.
    Together,
    /// A result has come back, and was taken in the way that is judged.
    Back,
}

impl<'a> Back<'a> {
    /// Of the call at this position, of vectors of so many bytes, of which results come back as a rule.
    #[inline]
    pub fn new(calls: &'a mut Calls, position: u64, bytes: usize) -> Self {
        let way = calls.next(bytes);
        let begun = if calls.measures(position, bytes) { ticks() } else { 0 };
        Self { calls, position, bytes, way, begun, contributed: 0, stage: Stage::Alone }
    }

    /// This rank has made a contribution.
    #[inline]
    pub fn contributed(&mut self) {
        if self.begun != 0 && self.stage == Stage::Alone {
            self.contributed = span(self.begun, ticks());
        }
    }

    /// It has found one of the other rank.
    #[inline]
    pub fn found(&mut self) {
        if self.stage == Stage::Alone {
            self.stage = Stage::Together;
            if self.begun != 0 {
                self.begun = ticks().wrapping_sub(self.contributed);
            }
        }
    }

    /// The other rank has left a fold to this one: that is another call than those that are compared.
    #[inline]
    pub fn declined(&mut self) {
        self.begun = 0;
    }

    /// How `bytes` bytes of a result that came back are taken, where this manner would do as a rule.
    #[inline]
    pub fn manner(&mut self, usual: Manner, bytes: usize) -> Manner {
        if usual == Manner::Streamed || bytes < LEAST {
            return usual;
        }
        self.stage = Stage::Back;
        if self.way == Way::Cached { usual } else { Manner::String }
    }

    /// The call has ended well.
    #[inline]
    pub fn ended(self) {
        if self.begun != 0 && self.stage == Stage::Back {
            self.calls.learn(self.position, self.bytes, self.way, self.begun);
        }
    }
}
