//! Regime 1 for longer messages: everybody publishes its contribution in cells and folds everybody's, in rank order.
//!
//! One synchronisation where shares take two, and the result goes straight to where it is wanted. Each rank loads n
//! bytes of its own twice and n of each other rank, and stores 2n: p(p+3)n bytes loaded and stored on p ranks, of which
//! p(p-1)n come from other cores. So it is for few ranks.
//!
//! Of two ranks each writes its next contribution over the one that it has read
//! ([`cross`](crate::protocol::Ring::cross)): a line that was fetched to be read, and to be written, is stored to
//! without being fetched again.
//!
//! Where all buffers lie in shared memory each rank folds a share to where all want it: 2pn bytes.

use super::cut::Cut;
use super::division::Division;
use super::lend::{Lending, Source};
use super::operands::{Input, Operands};
use super::{Engine, Reduction};
use crate::board::SharedBoard;
use crate::counters::add;
use crate::error::{Error, Result};
use crate::pace::{LEAST_HERE, Lines, Pace, Slice, Way, reading};
use crate::payload::{copy_in, copy_in_again};
use crate::protocol::exchange::{Slices, exchange_slices};
use crate::protocol::{Board, Location, Place};
use crate::segment::layout::LINE;
use crate::select::{Choice, Collective};

impl Engine {
    /// An allreduce: all ranks fold everything.
    pub fn exchange_allreduce(&mut self, choice: &Choice, reduction: Reduction<'_>, tag: u32) -> Result<()> {
        self.cut_up_cells(choice.up_cell, choice.up_slots, true)?;
        let cut = Cut::new(reduction.bytes, choice.up_cell, reduction.fold.element);
        let Reduction { send, recv, bytes, .. } = reduction;
        let thresholds = self.thresholds_of_call(Collective::Allreduce, ([send, recv.cast_const()], bytes), None);
        let Self { board, up, down, operands, sources, results, up_pace, .. } = self;
        let board = &*board;
        let wanted = thresholds.heap_offset(board, Collective::Allreduce, reduction.recv, reduction.bytes);
        let place = match wanted.is_some() || reduction.bytes > COPIED {
            // What is combined in place changes while others still read it.
            true if reduction.send != reduction.recv => {
                thresholds.place(board, Collective::Allreduce, reduction.send, reduction.bytes)
            }
            _ => Place::Cell,
        };
        let wanted = wanted.filter(|_| matches!(place, Place::Heap(_)));
        if board.size() == 2 && cut.count() == 1 && place == Place::Cell {
            return self.one_exchange(choice.up_cell, reduction, tag);
        }
        sources.clear();
        sources.resize(board.size(), Source::Cell);
        results.clear();
        results.resize(board.size(), None);
        let positions = exchange_positions(board.size(), cut.count(), reduction.bytes, up.slots());
        let lending = Lending::begin(board, (up, positions), (down, 0));
        let location = Location::whole_at(place, reduction.bytes).wanting(wanted, reduction.bytes);
        let (first, cell) = (up.next_position(), choice.up_cell);
        let mut work = Exchanging {
            board,
            cut,
            cell,
            first,
            positions,
            reduction,
            operands,
            sources,
            results,
            location,
            pace: up_pace,
            trouble: None,
        };
        lending.end(exchange_slices(board, up, cut.count(), tag, &mut work))
    }
}

/// Bytes up to which a contribution is copied to a cell, wherever it lies, if the result goes to memory of the rank's
/// own: that costs less than to wait, at the end, until all others have read it. And up to which, where everybody reads
/// everybody's, a shared result is each rank's own: it costs less than to agree on a place.
pub(crate) const COPIED: usize = 16 * 1024;

/// The cells that a message of one slice goes through, by the most bytes: the shorter it is the fewer, which stay in
/// the caches nearest to the ranks. Longer ones go through all there are.
const FEW: [(usize, usize); 2] = [(1024, 4), (4096, 16)];

/// The positions that an exchange of so many ranks and slices takes, of a ring with so many slots.
#[must_use]
pub fn exchange_positions(ranks: usize, slices: u64, bytes: usize, slots: usize) -> u64 {
    if ranks == 2 { crossing_positions(slices, slots) } else { positions(slices, bytes, slots) }
}

/// Those of more ranks than two: so many that calls of one length come to as many cells as is best for them.
/// Where that is all, the number is odd: calls of a few slices would pass over the same slots in every turn of a ring
/// whose number of slots is a power of two.
fn positions(slices: u64, bytes: usize, slots: usize) -> u64 {
    match FEW.iter().find(|(most, _)| bytes <= *most) {
        Some((_, cells)) if slices == 1 => ((slots / cells) as u64).max(slices + 1),
        _ => (slices + 1) | 1,
    }
}

/// The same of two ranks, whose cells change hands: calls of one length come to few slots, and in every turn of the
/// ring. A stamp is stored again when the other rank is known to have seen it: by the next call, where that has other
/// slots, or by the later slices of this one.
pub(super) fn crossing_positions(slices: u64, slots: usize) -> u64 {
    let slots = slots as u64;
    match slices {
        1..=3 if slices < slots / 2 => slots / 2,
        _ => (slices + 1).next_multiple_of(slots),
    }
}

/// The payload of one call.
struct Exchanging<'a> {
    board: &'a SharedBoard,
    cut: Cut,
    cell: usize,
    /// The first position.
    first: u64,
    positions: u64,
    reduction: Reduction<'a>,
    operands: &'a mut Operands,
    /// Where each rank's contribution lies.
    sources: &'a mut [Source],
    /// Where each other rank wants the result.
    results: &'a mut [Option<*mut u8>],
    location: Location,
    pace: &'a mut Pace,
    /// What was wrong with a place that another rank told.
    trouble: Option<Error>,
}

impl Exchanging<'_> {
    fn find(&mut self, rank: usize, location: Location) -> Result<()> {
        let (bytes, align) = (self.reduction.bytes, self.reduction.fold.align);
        self.sources[rank] = Source::find(self.board, rank, location, bytes, align)?;
        self.results[rank] = match location.result {
            Some(offset) => Some(self.board.seat().mapping().heap_pointer(offset, bytes, align)?),
            None => None,
        };
        Ok(())
    }
}

impl Slices for Exchanging<'_> {
    fn location(&self) -> Location {
        self.location
    }

    fn has(&self, rank: usize) -> bool {
        self.sources[rank].is_lent()
    }

    fn note(&mut self, rank: usize, location: Location) {
        if let Err(error) = self.find(rank, location) {
            self.trouble = Some(error);
        }
    }

    fn positions(&self) -> u64 {
        self.positions
    }

    fn crosses(&self) -> bool {
        true
    }

    fn write(&mut self, slice: u64, slot: usize, crossed: bool) {
        let (at, len) = self.cut.range(slice);
        let (rank, send) = (self.board.rank(), self.reduction.send.wrapping_add(at));
        let cell = self.board.up_cell(if crossed { 1 - rank } else { rank }, slot, self.cell);
        let (size, position) = (self.board.size(), self.first + slice);
        let filled = Slice { position, slot, bytes: len, reader: (rank + 1) % size };
        match size {
            // SAFETY: `at + len <= bytes` of the caller's buffer; the slot is claimed, or the other's and read, `len`
            // bytes fit its cell.
            2 => self.pace.writing_to(self.board, filled, Lines::Here, |way| unsafe {
                copy_in_again(send, cell, len, way);
            }),
            // SAFETY: the same.
            _ => self.pace.writing(self.board, filled, |way| unsafe { copy_in(send, cell, len, way) }),
        }
        add(&self.board.tally.loaded, len);
        add(&self.board.tally.stored, len);
    }

    fn combine(&mut self, slice: u64, slot: usize, crossed: bool) -> Result<()> {
        if let Some(error) = self.trouble.take() {
            return Err(error);
        }
        let (at, len) = self.cut.range(slice);
        let Self { board, operands, reduction: Reduction { send, recv, fold, bytes }, .. } = self;
        let Operands { inputs, results, .. } = &mut **operands;
        inputs.clear();
        inputs.extend(self.sources.iter().enumerate().map(|(from, source)| match from == board.rank() {
            true => Input::Own(send.wrapping_add(at)),
            false => {
                let cell = board.up_cell(if crossed { board.rank() } else { from }, slot, self.cell).cast_const();
                source.input(from, cell, at)
            }
        }));
        results.clear();
        results.push(recv.wrapping_add(at));
        let mut folded = Ok(());
        // SAFETY: everybody's slot is published, so that `len` bytes of its payload are written and will not change;
        // the result goes to the caller's buffer, which is an operand only in place, and then was not lent.
        let mut combine = || folded = unsafe { operands.fold(board, fold, (len, *bytes), Way::Cached) };
        let timed = board.size() > 2 || len >= LEAST_HERE;
        let in_cells = timed && !self.sources.iter().any(|source| source.is_lent());
        match in_cells {
            true => reading(board, self.first + slice, len, combine),
            false => combine(),
        }
        folded
    }

    fn divides(&self) -> bool {
        let me = self.board.rank();
        let others = || (0..self.results.len()).filter(|&rank| rank != me);
        self.location.result.is_some()
            && others().all(|rank| matches!(self.sources[rank], Source::Mapped(_)) && self.results[rank].is_some())
    }

    fn combine_share(&mut self) -> Result<()> {
        if let Some(error) = self.trouble.take() {
            return Err(error);
        }
        let (rank, size) = (self.board.rank(), self.board.size());
        let Self { board, operands, reduction: Reduction { send, recv, fold, bytes }, .. } = self;
        let division = Division::new(*bytes, fold.element, size, (*bytes).max(LINE));
        let (at, end) = (division.start(rank), division.start(rank + 1));
        let Operands { inputs, results, .. } = &mut **operands;
        inputs.clear();
        inputs.extend(self.sources.iter().enumerate().map(|(from, source)| match from == rank {
            true => Input::Own(send.wrapping_add(at)),
            false => source.input(from, std::ptr::null(), at),
        }));
        results.clear();
        results.push(recv.wrapping_add(at));
        results.extend(self.results.iter().flatten().map(|result| result.wrapping_add(at)));
        // SAFETY: everybody has lent its contribution until all have said that theirs is stored, and wants the result
        // where it said, in memory that it does not touch meanwhile; nobody else stores to this share. None of the
        // results is an operand.
        unsafe { operands.fold(board, fold, (end - at, *bytes), Way::Cached) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// The slots that a stream of equal calls writes to.
    fn slots_of(slices: u64, bytes: usize, slots: usize) -> usize {
        let taken = positions(slices, bytes, slots);
        assert!(taken > slices);
        let written = (0..1000).flat_map(|call| (0..slices).map(move |slice| (call * taken + slice) % slots as u64));
        written.collect::<HashSet<_>>().len()
    }

    #[test]
    fn cells_that_change_hands_are_few_and_come_round_in_every_turn() {
        for slots in [2u64, 4, 8, 16, 32, 64] {
            for slices in 1..=2 * slots {
                let taken = crossing_positions(slices, slots as usize);
                assert!(taken > slices, "{slices} slices, {slots} slots");
                assert!(taken.is_multiple_of(slots) || slots.is_multiple_of(taken), "{slices} slices, {slots} slots");
            }
        }
        assert_eq!([1, 2, 3, 4, 63, 64].map(|slices| crossing_positions(slices, 64)), [32, 32, 32, 64, 64, 128]);
    }

    #[test]
    fn short_messages_have_few_cells_and_long_ones_all() {
        for slots in [2, 4, 8, 16, 32, 64] {
            for (most, cells) in FEW {
                assert_eq!(slots_of(1, most, slots), (slots / 2).min(cells), "{most} bytes, {slots} slots");
            }
            for slices in 1..=8 {
                assert_eq!(slots_of(slices, 4097, slots), slots, "{slices} slices, {slots} slots");
            }
        }
    }
}
