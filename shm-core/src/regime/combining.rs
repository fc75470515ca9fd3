//! The payload of a reduction up a tree: slices of the own contribution, combined with the children's.

use super::Reduction;
use super::cut::Cut;
use super::lend::Source;
use super::operands::{Input, Operands};
use crate::board::SharedBoard;
use crate::counters::add;
use crate::error::{Error, Result};
use crate::links::Links;
use crate::pace::{Pace, Slice, Way, reading_of};
use crate::payload::copy_in;
use crate::protocol::step::Gathers;
use crate::protocol::{Board, Location, Place};

/// The payload of a reduction: slices of the own contribution are combined with the children's, in rank order.
pub(super) struct Combining<'a> {
    board: &'a SharedBoard,
    /// The children in rank order, and where this rank stands among them.
    children: &'a [usize],
    own: usize,
    parent: Option<usize>,
    cell: usize,
    /// The first position, and the slots of the ring.
    ring: (u64, u64),
    pace: &'a mut Pace,
    /// How the root stores the result.
    way: Way,
    reduction: Reduction<'a>,
    slices: Cut,
    operands: &'a mut Operands,
    /// Where each child's contribution lies, in the order of the children.
    sources: &'a mut Vec<Source>,
    location: Location,
    /// What was wrong with a place that a child told.
    trouble: Option<Error>,
}

impl<'a> Combining<'a> {
    pub fn new(
        board: &'a SharedBoard,
        cell: usize,
        ring: (u64, u64),
        reduction: Reduction<'a>,
        slices: Cut,
        (links, place): (&'a Links, Place),
        (operands, sources, pace, way): (&'a mut Operands, &'a mut Vec<Source>, &'a mut Pace, Way),
    ) -> Self {
        // In place it lies in the caches already.
        let way = if reduction.send == reduction.recv { Way::Cached } else { way };
        let children = links.in_order();
        let own = children.partition_point(|&child| child < board.rank());
        sources.clear();
        sources.resize(children.len(), Source::Cell);
        // A leaf lends its buffer; who combines has nothing to lend but the cell with what it combined.
        let location = match place {
            _ if links.is_root() || !children.is_empty() => Location::CELL,
            place => Location::whole_at(place, reduction.bytes),
        };
        let parent = links.parent();
        Self {
            board,
            children,
            own,
            parent,
            cell,
            ring,
            pace,
            way,
            reduction,
            slices,
            operands,
            sources,
            location,
            trouble: None,
        }
    }

    fn index(&self, child: usize) -> usize {
        self.children.binary_search(&child).expect("a child is among the children")
    }
}

impl Gathers for Combining<'_> {
    fn location(&self) -> Location {
        self.location
    }

    fn has(&self, child: usize) -> bool {
        self.sources[self.index(child)].is_lent()
    }

    fn note(&mut self, child: usize, location: Location) {
        match Source::find(self.board, child, location, self.reduction.bytes, self.reduction.fold.align) {
            Ok(source) => {
                let child = self.index(child);
                self.sources[child] = source;
            }
            Err(error) => self.trouble = Some(error),
        }
    }

    fn fold(&mut self, slice: u64, own: Option<usize>) -> Result<()> {
        if let Some(error) = self.trouble.take() {
            return Err(error);
        }
        let (at, len) = self.slices.range(slice);
        let slot = ((self.ring.0 + slice) % self.ring.1) as usize;
        let Operands { inputs, results, .. } = &mut *self.operands;
        inputs.clear();
        inputs.extend(
            self.children.iter().zip(self.sources.iter()).map(|(&child, source)| {
                source.input(child, self.board.up_cell(child, slot, self.cell).cast_const(), at)
            }),
        );
        inputs.insert(self.own, Input::Own(self.reduction.send.wrapping_add(at)));
        results.clear();
        results.push(match own {
            Some(own) => self.board.up_cell(self.board.rank(), own, self.cell),
            None => self.reduction.recv.wrapping_add(at),
        });
        let Reduction { fold, bytes, .. } = self.reduction;
        let (board, position) = (self.board, self.ring.0 + slice);
        let in_cells = !self.sources.is_empty() && !self.sources.iter().any(|source| source.is_lent());
        let (operands, pace, parent, way) = (&mut *self.operands, &mut *self.pace, self.parent, self.way);
        let mut folded = Ok(());
        if let (Some(own), Some(parent), true) = (own, parent, self.children.is_empty()) {
            let (send, cell) = (self.reduction.send.wrapping_add(at), board.up_cell(board.rank(), own, self.cell));
            pace.writing(board, Slice { position, slot: own, bytes: len, reader: parent }, |way| {
                // SAFETY: the own slot is claimed, and has room for a slice; `at + len` bytes of the caller's buffer
                // are there.
                unsafe { copy_in(send, cell, len, way) };
            });
            add(&board.tally.loaded, len);
            add(&board.tally.stored, len);
            return folded;
        }
        // SAFETY: the protocol calls this while the children's slots are published (so `len` bytes of their payload are
        // written and will not change) and the own slot is claimed; `at + len` bytes of the caller's buffers are there;
        // slices are whole elements and cells are aligned to lines. The result is no operand, unless the caller works
        // in place; a cell never is.
        let mut fold = |way| folded = unsafe { operands.fold(board, &fold, (len, bytes), way) };
        let combine = || match (own, parent) {
            (Some(slot), Some(reader)) => pace.writing(board, Slice { position, slot, bytes: len, reader }, fold),
            _ => fold(way),
        };
        match in_cells {
            true => reading_of(board, position, (len, self.children.len()), combine),
            false => combine(),
        }
        folded
    }
}
