//! The payload of an allgather of shares: each leader hands its own to all ranks.

use super::division::Division;
use super::lend::Source;
use crate::board::SharedBoard;
use crate::counters::add;
use crate::error::{Error, Result};
use crate::pace::{Pace, Slice, Taken, Way, taking_out};
use crate::payload::{Manner, copy_in};
use crate::protocol::spread::Parts;
use crate::protocol::{Board, Location};

/// The payload of an allgather of shares.
pub(super) struct Handing<'a> {
    pub board: &'a SharedBoard,
    pub pace: &'a mut Pace,
    /// The first position of the call.
    pub first: u64,
    pub leaders: &'a [usize],
    pub division: Division,
    pub cell: usize,
    pub buffer: *mut u8,
    pub location: Location,
    /// Where each leader's share lies.
    pub sources: &'a mut [Source],
    pub trouble: Option<Error>,
}

impl Parts for Handing<'_> {
    fn location(&self) -> Location {
        self.location
    }

    fn has(&self, leader: usize) -> bool {
        self.sources[leader].is_lent()
    }

    fn note(&mut self, leader: usize, location: Location) {
        let from = self.leaders[leader];
        match Source::find(self.board, from, location, self.division.bytes(), 1) {
            Ok(source) => self.sources[leader] = source,
            Err(error) => self.trouble = Some(error),
        }
    }

    fn give(&mut self, round: u64, leader: usize, slot: usize) {
        let (at, len) = self.division.range(leader, round);
        let cell = self.board.down_cell(self.board.rank(), slot, self.cell);
        let (from, reader) = (self.buffer.wrapping_add(at), (self.board.rank() + 1) % self.board.size());
        let filled = Slice { position: self.first + round, slot, bytes: len, reader };
        self.pace.writing(self.board, filled, |way| {
            // SAFETY: `at + len <= bytes` of the caller's buffer; the slot is claimed, `len` bytes fit its cell.
            unsafe { copy_in(from, cell, len, way) };
        });
        add(&self.board.tally.loaded, len);
        add(&self.board.tally.stored, len);
    }

    fn take(&mut self, round: u64, leader: usize, slot: usize) -> Result<()> {
        if let Some(error) = self.trouble.take() {
            return Err(error);
        }
        let (at, len) = self.division.range(leader, round);
        let from = self.leaders[leader];
        let input = self.sources[leader].input(from, self.board.down_cell(from, slot, self.cell), at);
        let usual = Manner::of(Way::Cached, self.division.bytes());
        let manner = self.sources[leader].manner(self.board, (from, slot), len, usual);
        let (to, mut copied) = (self.buffer.wrapping_add(at), Ok(()));
        // SAFETY: the slot is published, and its payload does not change before this rank says so; the slice lies
        // within the caller's buffer.
        let mut copy = || copied = unsafe { input.copy(manner, self.board, to, len) };
        match self.sources[leader].is_lent() {
            true => copy(),
            false => {
                let position = self.first + round;
                let taken = Taken { writer: from, slot, position, bytes: len, to, manner };
                // SAFETY: it fills so much of the caller's buffer, in which nobody else stores a leader's share.
                unsafe { taking_out(self.board, taken, copy) }
            }
        }
        copied
    }
}
