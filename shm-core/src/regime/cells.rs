//! Regime 2: release and gather steps over trees, a message cut into slices that fill a cell each.
//!
//! The k-ary fold reads each contribution once and stores the result once, straight to the parent's cell or, at
//! the root, to the user's buffer: (3p-1)n bytes loaded and stored for a reduction of n bytes on p ranks, whatever the
//! tree, 2pn for a flat broadcast, (5p-1)n for both.

use super::fold::{Piece, fold_in};
use super::{Engine, Reduction};
use crate::board::SharedBoard;
use crate::counters::add;
use crate::error::Result;
use crate::links::Links;
use crate::pace::{Pace, reading};
use crate::payload::{copy_in, copy_out};
use crate::plan::Step;
use crate::protocol::step::{self, Passage};
use crate::protocol::{Board, RingName};
use crate::select::Choice;

/// How a message is cut: whole elements, as many as fit a cell. An empty message is one empty slice.
#[derive(Clone, Copy)]
struct Slices {
    bytes: usize,
    slice: usize,
}

impl Slices {
    fn new(bytes: usize, cell: usize, element: usize) -> Self {
        let element = element.max(1);
        Self { bytes, slice: (cell / element).max(1) * element }
    }

    fn count(&self) -> u64 {
        self.bytes.div_ceil(self.slice).max(1) as u64
    }

    /// Offset and length.
    fn range(&self, slice: u64) -> (usize, usize) {
        let at = slice as usize * self.slice;
        (at, self.slice.min(self.bytes - at))
    }
}

impl Engine {
    /// A broadcast down the tree of the root.
    pub fn cells_broadcast(
        &mut self,
        choice: &Choice,
        root: usize,
        buffer: *mut u8,
        bytes: usize,
        tag: u32,
    ) -> Result<()> {
        self.cut_cells(choice)?;
        let links = self.cells_links(choice, Step::Release, bytes, root);
        let slices = Slices::new(bytes, choice.down_cell, 1);
        let first = self.down.take(slices.count());
        let Self { board, down, down_pace, .. } = self;
        for slice in 0..slices.count() {
            let (at, len) = slices.range(slice);
            step::release(board, down, &links, first + slice, tag, |passage| {
                pass(board, down_pace, &links, first + slice, passage, choice.down_cell, buffer.wrapping_add(at), len);
            })?;
        }
        Ok(())
    }

    /// A reduction up the tree of the root.
    pub fn cells_reduce(&mut self, choice: &Choice, root: usize, reduction: Reduction<'_>, tag: u32) -> Result<()> {
        self.cut_cells(choice)?;
        let links = self.cells_links(choice, Step::Gather, reduction.bytes, root);
        let slices = Slices::new(reduction.bytes, choice.up_cell, reduction.fold.element);
        let first = self.up.take(slices.count());
        let Self { board, up, operands, up_pace, piece, .. } = self;
        let order = RankOrder::new(board.rank(), &links);
        for slice in 0..slices.count() {
            let slot = up.slot(first + slice);
            let range = slices.range(slice);
            step::gather(board, up, &links, first + slice, tag, |own| {
                let place = Place { position: first + slice, slot, own, cell: choice.up_cell };
                combine(board, up_pace, piece, &links, &order, place, reduction, range, operands);
            })?;
        }
        Ok(())
    }

    /// A reduction to rank 0 and a broadcast from there, in one pipeline.
    pub fn cells_allreduce(&mut self, choice: &Choice, reduction: Reduction<'_>, tag: u32) -> Result<()> {
        self.cut_cells(choice)?;
        let gather = self.cells_links(choice, Step::Gather, reduction.bytes, 0);
        let release = self.cells_links(choice, Step::Release, reduction.bytes, 0);
        // Both ways in the same slices, so that a slice can turn around at the root.
        let slices = Slices::new(reduction.bytes, choice.up_cell.min(choice.down_cell), reduction.fold.element);
        let Self { board, up, down, operands, up_pace, down_pace, piece, .. } = self;
        let order = RankOrder::new(board.rank(), &gather);
        let (first, first_down) = (up.next_position(), down.next_position());
        let up_slots = up.slots() as u64;
        step::gather_release(
            board,
            (up, &gather),
            (down, &release),
            slices.count(),
            tag,
            |slice, own| {
                let slot = ((first + slice) % up_slots) as usize;
                let place = Place { position: first + slice, slot, own, cell: choice.up_cell };
                let range = slices.range(slice);
                combine(board, up_pace, piece, &gather, &order, place, reduction, range, operands);
            },
            |slice, passage| {
                let (at, len) = slices.range(slice);
                let (position, buffer) = (first_down + slice, reduction.recv.wrapping_add(at));
                pass(board, down_pace, &release, position, passage, choice.down_cell, buffer, len);
            },
        )
    }

    fn cells_links(&mut self, choice: &Choice, step: Step, bytes: usize, root: usize) -> Links {
        let bytes = if choice.flat { None } else { Some(bytes) };
        self.trees.links(step, bytes, root, self.board.rank(), self.board.size())
    }
}

/// Children of a rank in rank order, and where it stands among them.
struct RankOrder {
    children: Vec<usize>,
    own: usize,
}

impl RankOrder {
    fn new(rank: usize, links: &Links) -> Self {
        let mut children = links.children().to_vec();
        children.sort_unstable();
        let own = children.iter().filter(|&&child| child < rank).count();
        Self { children, own }
    }
}

/// Where a slice of a reduction lies in the up ring.
struct Place {
    position: u64,
    /// The children's slot.
    slot: usize,
    /// The own slot, on a rank with a parent.
    own: Option<usize>,
    /// Bytes of a cell.
    cell: usize,
}

/// Combines a slice of the own contribution with the children's cells, in rank order.
#[allow(clippy::too_many_arguments)]
fn combine(
    board: &SharedBoard,
    pace: &mut Pace,
    piece: &mut Piece,
    links: &Links,
    order: &RankOrder,
    place: Place,
    reduction: Reduction<'_>,
    (at, len): (usize, usize),
    operands: &mut Vec<*const u8>,
) {
    let Place { position, slot, own, cell } = place;
    let send = reduction.send.wrapping_add(at);
    operands.clear();
    operands.extend(order.children.iter().map(|&child| board.up_cell(child, slot, cell).cast_const()));
    operands.insert(order.own, send);
    let count = operands.len();
    let mut fold = || match (own, links.parent()) {
        (Some(own), Some(parent)) => pace.writing(board, position, parent, len, |way| {
            let cell = board.up_cell(board.rank(), own, cell);
            if count == 1 {
                // SAFETY: the own slot is claimed, and has room for a slice; `at + len` bytes of the caller's buffer are there.
                return unsafe { copy_in(send, cell, len, way) };
            }
            // SAFETY: the protocol calls this while the children's slots are published (so `len` bytes are written there and
            // will not change) and the own slot is claimed; `at + len` bytes of the caller's buffer are there; slices are
            // whole elements and cells are aligned to lines. The own cell is no operand.
            unsafe { fold_in(reduction.fold, operands, None, cell, len, way, piece) };
        }),
        // SAFETY: the same; the result goes to the caller's buffer, which is no operand unless the caller works in place.
        _ => unsafe { reduction.fold.apply(reduction.recv.wrapping_add(at), operands, len) },
    };
    match count {
        1 => fold(),
        _ => reading(board, RingName::Up, position, len, fold),
    }
    add(&board.tally.loaded, count * len);
    add(&board.tally.stored, len);
}

/// Takes a slice out of the parent's cell, and fills the own cell for the children.
#[allow(clippy::too_many_arguments)]
fn pass(
    board: &SharedBoard,
    pace: &mut Pace,
    links: &Links,
    position: u64,
    passage: Passage,
    cell: usize,
    buffer: *mut u8,
    len: usize,
) {
    if let Some(from) = passage.from {
        reading(board, RingName::Down, position, len, || {
            // SAFETY: the parent's slot is published and not reused before this rank says so; `buffer` has room for `len`
            // bytes; a private buffer does not overlap a cell.
            unsafe { copy_out(board.down_cell(from, passage.slot, cell), buffer, len) };
        });
        add(&board.tally.loaded, len);
        add(&board.tally.stored, len);
    }
    if let (true, Some(&child)) = (passage.forward, links.children().last()) {
        pace.writing(board, position, child, len, |way| {
            // SAFETY: the own slot is claimed, so that nobody reads it; `buffer` holds `len` bytes.
            unsafe { copy_in(buffer, board.down_cell(board.rank(), passage.slot, cell), len, way) };
        });
        add(&board.tally.loaded, len);
        add(&board.tally.stored, len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_cover_a_message_in_whole_elements() {
        let slices = Slices::new(1000, 64, 24);
        assert_eq!(slices.count(), 21);
        assert_eq!(slices.range(0), (0, 48));
        assert_eq!(slices.range(20), (960, 40));
        assert_eq!(Slices::new(0, 64, 8).count(), 1);
        assert_eq!(Slices::new(0, 64, 8).range(0), (0, 0));
    }
}
