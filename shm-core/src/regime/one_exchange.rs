//! The exchange of cells at its shortest: an allreduce of one slice between two ranks, where [`exchange_slices`] has no loops.
//!
//! Of vectors of a few KiB the copies take no longer than what decides about them. So nothing is kept here for ranks that are not there, and nothing is listed. A rank that lends its
//! contribution takes the longer way; the two go together.

use super::exchange::crossing_positions;
use super::lend::{Lending, Source};
use super::operands::{Input, Operands, fold_two};
use super::{Engine, Reduction};
use crate::board::SharedBoard;
use crate::counters::add;
use crate::error::Result;
use crate::pace::{LEAST, LEAST_HERE, Lines, Pace, Slice, Way, reading};
use crate::payload::copy_in_again;
use crate::protocol::exchange::{Slices, exchange_slices};
use crate::protocol::{Board, Location, RingName};

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
        // SAFETY: `bytes` bytes of the caller's buffer; the slot is claimed, or the other's and read, and they fit its cell.
        let write = |way| unsafe { copy_in_again(send, cell, bytes, way) };
        match bytes < LEAST {
            true => write(Way::Cached),
            false => {
                let filled = Slice { position: self.position, slot, bytes, reader: 1 - self.board.rank() };
                self.pace.writing_to(self.board, filled, Lines::Here, write);
            }
        }
        add(&self.board.tally.loaded, bytes);
        add(&self.board.tally.stored, bytes);
    }

    #[inline]
    fn combine(&mut self, _: u64, slot: usize, crossed: bool) -> Result<()> {
        let (board, me, other) = (self.board, self.board.rank(), 1 - self.board.rank());
        let Reduction { send, recv, bytes, fold } = self.reduction;
        let source = Source::find(board, other, self.other, bytes, fold.align)?;
        let there = match source.input(other, self.cell_of(other, slot, crossed), 0) {
            Input::Own(near) | Input::Near(near) => {
                let both = if me == 0 { [send, near] } else { [near, send] };
                // SAFETY: the other's slot is published, so that `bytes` bytes of its payload are written and will not change; as many of the caller's
                // buffers are there. The result is no operand, unless the caller works in place.
                let combine = || unsafe { fold_two(board, &fold, [recv], both, other, (bytes, bytes)) };
                match bytes < LEAST_HERE || source.is_lent() {
                    true => combine(),
                    false => reading(board, RingName::Up, self.position, bytes, combine),
                }
                return Ok(());
            }
            there => there,
        };
        let Operands { inputs, results, .. } = &mut *self.operands;
        inputs.clear();
        inputs.extend(if me == 0 { [Input::Own(send), there] } else { [there, Input::Own(send)] });
        results.clear();
        results.push(recv);
        // SAFETY: the same of what is not here.
        unsafe { self.operands.fold(board, &fold, (bytes, bytes), Way::Cached) }
    }
}
