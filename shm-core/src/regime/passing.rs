//! The payload of a broadcast down a tree: slices that are taken from the parent, and passed on to the children.

use super::cut::Cut;
use super::lend::Source;
use crate::board::SharedBoard;
use crate::counters::add;
use crate::error::{Error, Result};
use crate::links::Links;
use crate::pace::{Pace, Slice, Taken, Way, taking_out};
use crate::payload::{Manner, copy_in};
use crate::protocol::step::{Passage, Releases};
use crate::protocol::{Board, Location};

/// The payload of a broadcast, or of the way back of an allreduce: each slice is taken from the parent, and put in the
/// own cell for the children, unless they find it in the buffer.
pub(super) struct Passing<'a> {
    board: &'a SharedBoard,
    cell: usize,
    /// The first position.
    first: u64,
    pace: &'a mut Pace,
    /// How the message is stored in the buffer by who does not pass it on.
    way: Way,
    parent: Option<usize>,
    /// A rank that reads the own cells, if one does.
    reader: Option<usize>,
    buffer: *mut u8,
    slices: Cut,
    /// Nobody is below this rank, so that it may take all there is at once.
    leaf: bool,
    location: Location,
    /// Where the parent has the message, and whether all of it.
    source: Source,
    whole: bool,
    /// Bytes that were taken.
    taken: usize,
    trouble: Option<Error>,
}

impl<'a> Passing<'a> {
    pub fn new(
        board: &'a SharedBoard,
        cell: usize,
        (first, pace, way): (u64, &'a mut Pace, Way),
        buffer: *mut u8,
        slices: Cut,
        links: &Links,
        location: Location,
    ) -> Self {
        let reader = links.children().last().copied();
        let leaf = reader.is_none();
        let location = if leaf { Location::CELL } else { location };
        Self {
            board,
            cell,
            first,
            pace,
            way: if leaf { way } else { Way::Cached },
            parent: links.parent(),
            reader,
            buffer,
            slices,
            leaf,
            location,
            source: Source::Cell,
            whole: false,
            taken: 0,
            trouble: None,
        }
    }
}

impl Releases for Passing<'_> {
    fn location(&self) -> Location {
        self.location
    }

    fn has(&self) -> bool {
        self.whole
    }

    fn note(&mut self, location: Location) {
        self.whole = location.whole;
        let parent = self.parent.expect("who is told of a place has a parent");
        match Source::find(self.board, parent, location, self.slices.bytes(), 1) {
            Ok(source) => self.source = source,
            Err(error) => self.trouble = Some(error),
        }
    }

    fn pass(&mut self, slice: u64, passage: Passage) -> Result<()> {
        if let Some(error) = self.trouble.take() {
            return Err(error);
        }
        let (at, mut len) = self.slices.range(slice);
        let board = self.board;
        if let (Some(from), true) = (passage.from, at >= self.taken) {
            if self.whole && self.leaf {
                len = self.slices.bytes() - at;
            }
            let input = self.source.input(from, board.down_cell(from, passage.slot, self.cell), at);
            let (buffer, mut copied) = (self.buffer.wrapping_add(at), Ok(()));
            let manner = self.source.manner(board, (from, passage.slot), len, Manner::of_fresh(self.way));
            // SAFETY: the parent's slot is published, and its payload does not change before this rank says so;
            // `buffer` has room for `len` bytes, and is no cell and no other rank's buffer.
            let mut copy = || copied = unsafe { input.copy(manner, board, buffer, len) };
            match self.source.is_lent() {
                true => copy(),
                false => {
                    let (slot, position) = (passage.slot, self.first + slice);
                    let taken = Taken { writer: from, slot, position, bytes: len, to: buffer, manner };
                    // SAFETY: it fills so much of the caller's buffer, which nobody else stores to.
                    unsafe { taking_out(board, taken, copy) }
                }
            }
            copied?;
            self.taken = at + len;
        }
        if let (true, Some(reader)) = (passage.forward, self.reader) {
            let (from, cell) = (self.buffer.wrapping_add(at), board.down_cell(board.rank(), passage.slot, self.cell));
            let filled = Slice { position: self.first + slice, slot: passage.slot, bytes: len, reader };
            self.pace.writing(board, filled, |way| {
                // SAFETY: the own slot is claimed, so that nobody reads it; `buffer` holds `len` bytes.
                unsafe { copy_in(from, cell, len, way) };
            });
            add(&board.tally.loaded, len);
            add(&board.tally.stored, len);
        }
        Ok(())
    }
}
