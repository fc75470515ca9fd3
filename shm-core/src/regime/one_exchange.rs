//! The exchange of cells at its shortest: an allreduce of one slice between two ranks, where [`exchange_slices`] has no
//! loops.
//!
//! Of vectors of a few KiB the copies take no longer than what decides about them. So nothing is kept here for ranks
//! that are not there, and nothing is listed. A rank that lends its contribution takes the longer way; the two go
//! together.

use super::exchange::crossing_positions;
use super::lend::Lending;
use super::operands::Operands;
use super::two::fold_two_ranks;
use super::{Engine, Reduction};
use crate::board::SharedBoard;
use crate::counters::add;
use crate::error::Result;
use crate::pace::{LEAST_HERE, Lines, Pace, Slice};
use crate::payload::copy_in_again;
use crate::protocol::exchange::{Slices, exchange_slices};
use crate::protocol::{Board, Location};

impl Engine {
    /// An allreduce of at most a cell between two ranks, where this one's contribution goes through a cell.
    pub(super) fn one_exchange(&mut self, cell: usize, reduction: Reduction<'_>, tag: u32) -> Result<()> {
        let Self { board, up, down, operands, up_pace, .. } = self;
        let positions = crossing_positions(1, up.slots());
        let lending = Lending::begin(board, (up, positions), (down, 0));
        let (position, pace) = (up.next_position(), up_pace);
        let mut work = OneSlice { board, cell, position, positions, reduction, operands, pace, other: Location::CELL };
        lending.end(exchange_slices(board, up, 1, tag, &mut work))
    }
}

/// The payload of one call.
struct OneSlice<'a> {
    board: &'a SharedBoard,
    cell: usize,
    position: u64,
    /// Those that the call takes.
    positions: u64,
    reduction: Reduction<'a>,
    operands: &'a mut Operands,
    pace: &'a mut Pace,
    /// Where the other rank's contribution lies.
    other: Location,
}

impl OneSlice<'_> {
    /// The cell of a rank, or of the other one.
    #[inline]
    fn cell_of(&self, rank: usize, slot: usize, crossed: bool) -> *mut u8 {
        self.board.up_cell(if crossed { 1 - rank } else { rank }, slot, self.cell)
    }
}

impl Slices for OneSlice<'_> {
    #[inline]
    fn note(&mut self, _: usize, location: Location) {
        self.other = location;
    }

    #[inline]
    fn positions(&self) -> u64 {
        self.positions
    }

    #[inline]
    fn crosses(&self) -> bool {
        true
    }

    #[inline]
    fn write(&mut self, _: u64, slot: usize, crossed: bool) {
        let Reduction { send, bytes, .. } = self.reduction;
        let cell = self.cell_of(self.board.rank(), slot, crossed);
        let filled = Slice { position: self.position, slot, bytes, reader: 1 - self.board.rank() };
        self.pace.writing_to(self.board, filled, Lines::Here, |way| {
            // SAFETY: `bytes` bytes of the caller's buffer; the slot is claimed, or the other's and read, and they fit
            // its cell.
            unsafe { copy_in_again(send, cell, bytes, way) };
        });
        add(&self.board.tally.loaded, bytes);
        add(&self.board.tally.stored, bytes);
    }

    #[inline]
    fn combine(&mut self, _: u64, slot: usize, crossed: bool) -> Result<()> {
        let cell = self.cell_of(1 - self.board.rank(), slot, crossed).cast_const();
        let (there, measured) = ((self.other, cell), (self.position, LEAST_HERE));
        // SAFETY: the other's slot is published, so that `bytes` bytes of its payload are written and will not change;
        // as many of the caller's buffers are there.
        unsafe { fold_two_ranks(self.board, self.operands, self.reduction, there, measured) }
    }
}
