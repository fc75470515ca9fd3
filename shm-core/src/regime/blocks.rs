//! Blocks: how the collectives that hand out, gather and scatter divide buffers, and how blocks lie in slots.
//!
//! A slot holds a slice of one message for all its readers, or a *row*: a slice of a block for each other rank, in
//! equal parts.

use std::ops::Range;

use super::Engine;
use crate::board::SharedBoard;
use crate::counters::add;
use crate::error::Result;
use crate::pace::{LEAST, Pace, Slice, Way};
use crate::payload::{Manner, copy_in, copy_out, copy_part_in, end_parts, load_line, store_line};
use crate::protocol::Board;
use crate::protocol::exchange::{Pieces, exchange_pieces};
use crate::segment::layout::{SLOT_PAYLOAD, round_up};
use crate::select::BlockChoice;

/// Where each rank's block lies in a buffer, in bytes from the buffer's beginning.
#[derive(Clone, Copy, Debug)]
pub enum Blocks<'a> {
    /// One behind the other, in rank order, of so many bytes each.
    Even(usize),
    /// Rank `r` has `counts[r]` units of `unit` bytes, from unit `displs[r]` on. Both have an entry for each rank.
    Uneven {
        /// Units of each rank.
        counts: &'a [usize],
        /// The unit at which each rank's block begins.
        displs: &'a [usize],
        /// Bytes of a unit.
        unit: usize,
    },
}

impl Blocks<'_> {
    /// The bytes of a rank's block. An empty one may lie anywhere, also where no memory is.
    #[inline]
    #[must_use]
    pub fn of(&self, rank: usize) -> Range<usize> {
        match self {
            Blocks::Even(bytes) => rank * bytes..(rank + 1) * bytes,
            Blocks::Uneven { counts, displs, unit } => {
                // Only an empty one lies so far off that this wraps.
                let at = displs[rank].wrapping_mul(*unit);
                at..at + counts[rank] * unit
            }
        }
    }

    /// Bytes of a rank's block.
    #[inline]
    #[must_use]
    pub fn len(&self, rank: usize) -> usize {
        match self {
            Blocks::Even(bytes) => *bytes,
            Blocks::Uneven { counts, unit, .. } => counts[rank] * unit,
        }
    }

    /// Bytes of the longest block of `size` ranks.
    #[must_use]
    pub fn longest(&self, size: usize) -> usize {
        match self {
            Blocks::Even(bytes) => *bytes,
            Blocks::Uneven { counts, unit, .. } => counts[..size].iter().max().map_or(0, |count| count * unit),
        }
    }
}

/// How blocks are cut: all ranks' alike, into slices of so many bytes.
#[derive(Clone, Copy)]
pub(super) struct BlockCut {
    slice: usize,
    longest: usize,
}

impl BlockCut {
    pub fn new(choice: &BlockChoice, longest: usize) -> Self {
        Self { slice: choice.slice, longest }
    }

    /// Slices of the longest block; 1 at least.
    pub fn count(&self) -> u64 {
        self.longest.div_ceil(self.slice).max(1) as u64
    }

    /// Offset and length of a slice of a block of `bytes` bytes; empty behind its end.
    #[inline]
    pub fn range(&self, bytes: usize, slice: u64) -> (usize, usize) {
        let at = (slice as usize * self.slice).min(bytes);
        (at, self.slice.min(bytes - at))
    }
}

/// Where slots lie, and the parts in them.
#[derive(Clone, Copy)]
pub(super) enum Medium {
    /// Lines, in parts of so many bytes.
    Lines(usize),
    /// Up cells of so many bytes, in parts of so many bytes.
    Cells(usize, usize),
}

impl Medium {
    pub fn new(choice: &BlockChoice, longest: usize) -> Self {
        match choice.lines {
            true => Medium::Lines(round_up(longest, 8)),
            false => Medium::Cells(choice.cell, choice.part),
        }
    }

    /// The part of `to` in a row of `from`.
    #[inline]
    pub fn part(from: usize, to: usize) -> usize {
        to - usize::from(to > from)
    }

    /// Byte 0 of a part of a rank's slot.
    #[inline]
    pub fn place(self, board: &SharedBoard, rank: usize, slot: usize, part: usize) -> *const u8 {
        match self {
            Medium::Lines(bytes) => board.line_payload(rank, slot).wrapping_add(part * bytes),
            Medium::Cells(cell, bytes) => board.up_cell(rank, slot, cell).wrapping_add(part * bytes).cast_const(),
        }
    }

    /// Copies `len` bytes out of a part of a rank's slot; out of a cell in that manner.
    ///
    /// # Safety
    /// The slot is published, and holds so many bytes there; as many may be written at `to`.
    #[inline]
    pub unsafe fn load(
        self,
        board: &SharedBoard,
        (rank, slot, part): (usize, usize, usize),
        to: *mut u8,
        len: usize,
        manner: Manner,
    ) {
        match self {
            Medium::Lines(bytes) => {
                let words = &board.line(rank, slot)[part * bytes / 8..];
                // SAFETY: by contract; parts are whole words.
                unsafe { load_line(words, to, len) };
            }
            Medium::Cells(..) => {
                let from = self.place(board, rank, slot, part);
                // SAFETY: by contract; a cell is no caller's buffer.
                unsafe { copy_out(from, to, len, manner) };
            }
        }
        add(&board.tally.loaded, len);
        add(&board.tally.stored, len);
    }

    /// Fills `len` bytes of a part of an own slot.
    ///
    /// # Safety
    /// The slot is claimed; so many bytes are at `from`, and fit the part.
    #[inline]
    pub unsafe fn store(self, board: &SharedBoard, (slot, part): (usize, usize), from: *const u8, len: usize) {
        let rank = board.rank();
        match self {
            Medium::Lines(bytes) => {
                let words = &board.line(rank, slot)[part * bytes / 8..];
                // SAFETY: by contract; parts are whole words.
                unsafe { store_line(words, from, len) };
            }
            Medium::Cells(..) => {
                let to = self.place(board, rank, slot, part).cast_mut();
                // SAFETY: by contract; a cell is no caller's buffer.
                unsafe { copy_in(from, to, len, Way::Cached) };
            }
        }
        add(&board.tally.loaded, len);
        add(&board.tally.stored, len);
    }
}

/// What a rank publishes.
#[derive(Clone, Copy)]
pub(crate) enum Sending<'a> {
    /// Nothing.
    Nothing,
    /// One message of so many bytes, for all its readers.
    Same(*const u8, usize),
    /// A block for each other rank.
    Rows(*const u8, Blocks<'a>),
}

/// Fills own slots with what is sent.
pub(super) struct Outgoing<'a> {
    pub board: &'a SharedBoard,
    pub medium: Medium,
    pub cut: BlockCut,
    pub send: Sending<'a>,
    pub pace: &'a mut Pace,
    /// A rank that reads it.
    pub reader: usize,
    /// The first position.
    pub first: u64,
    /// Whether two ranks fill each other's cells in turn.
    pub crosses: bool,
}

impl Outgoing<'_> {
    #[inline]
    pub fn write(&mut self, slice: u64, slot: usize, crossed: bool) {
        let Self { board, medium, cut, crosses, .. } = *self;
        let owner = if crossed { 1 - board.rank() } else { board.rank() };
        let (position, reader) = (self.first + slice, self.reader);
        let filled = |bytes| Slice { position, slot, bytes, reader };
        match self.send {
            Sending::Nothing => {}
            Sending::Same(send, bytes) => {
                let (at, len) = cut.range(bytes, slice);
                let from = send.wrapping_add(at);
                match medium {
                    // SAFETY: `at + len <= bytes` of the caller's buffer; the slot is claimed, and a slice fits it.
                    Medium::Lines(_) => unsafe { medium.store(board, (slot, 0), from, len) },
                    Medium::Cells(cell, _) => {
                        let to = board.up_cell(owner, slot, cell);
                        // SAFETY: the same; or the slot is the other's, and was read.
                        let write = |way| unsafe { copy_in(from, to, len, way) };
                        match crosses {
                            // The lines are here, as a rule.
                            true => write(Way::Cached),
                            false => self.pace.writing(board, filled(len), write),
                        }
                        add(&board.tally.loaded, len);
                        add(&board.tally.stored, len);
                    }
                }
            }
            Sending::Rows(send, blocks) => {
                let me = board.rank();
                let parts = (0..board.size()).filter(|&to| to != me).filter_map(|to| {
                    let block = blocks.of(to);
                    let (at, len) = cut.range(block.len(), slice);
                    (len > 0).then(|| (Medium::part(me, to), send.wrapping_add(block.start + at), len))
                });
                if let Medium::Lines(_) = medium {
                    for (part, from, len) in parts {
                        // SAFETY: they are bytes of a block in the caller's buffer; the slot is claimed, and a slice
                        // fits a part.
                        unsafe { medium.store(board, (slot, part), from, len) };
                    }
                    return;
                }
                let lengths = parts.clone().map(|(.., len)| len);
                let (bytes, longest) = (lengths.clone().sum(), lengths.max().unwrap_or(0));
                let write = |way| {
                    for (part, from, len) in parts {
                        let to = medium.place(board, owner, slot, part).cast_mut();
                        // SAFETY: the same; or the slot is the other's, and was read.
                        unsafe { copy_part_in(from, to, len, way) };
                    }
                    end_parts(way);
                };
                // Its readers time the parts, of which short ones are not timed.
                match crosses || longest < LEAST {
                    true => write(Way::Cached),
                    false => self.pace.writing(board, filled(bytes), write),
                }
                add(&board.tally.loaded, bytes);
                add(&board.tally.stored, bytes);
            }
        }
    }
}

/// Words of a piece of an exchange of counts.
pub(super) const WORDS: usize = SLOT_PAYLOAD / 8;

impl Engine {
    /// Tells everybody `mine`, by lines; `hear(rank, at, count)` is called for each of the counts of each other rank.
    /// All ranks tell equally many; as many as there can be ranks at most.
    pub fn exchange_counts(&mut self, tag: u32, mine: &[u64], hear: impl FnMut(usize, usize, u64)) -> Result<()> {
        let Self { board, lines, .. } = self;
        let count = mine.len().div_ceil(WORDS).max(1);
        debug_assert!(2 * count <= lines.slots());
        exchange_pieces(board, lines, tag, count, &mut Counts { board, mine, hear })
    }
}

/// The payload of an exchange of counts.
struct Counts<'a, F> {
    board: &'a SharedBoard,
    mine: &'a [u64],
    hear: F,
}

impl<F> Counts<'_, F> {
    fn range(&self, piece: usize) -> Range<usize> {
        piece * WORDS..((piece + 1) * WORDS).min(self.mine.len())
    }
}

impl<F: FnMut(usize, usize, u64)> Pieces for Counts<'_, F> {
    fn write(&mut self, piece: usize, slot: usize) {
        let counts = &self.mine[self.range(piece)];
        let bytes = size_of_val(counts);
        // SAFETY: so many bytes of a slice, which fit a slot, as there are no more words than in one.
        unsafe { store_line(self.board.own_line(slot), counts.as_ptr().cast(), bytes) };
    }

    fn read(&mut self, piece: usize, rank: usize, slot: usize) {
        for (word, at) in self.board.line(rank, slot).iter().zip(self.range(piece)) {
            (self.hear)(rank, at, word.load(std::sync::atomic::Ordering::Relaxed));
        }
    }

    fn complete(&mut self, _: usize) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_lie_where_counts_and_displacements_say() {
        let even = Blocks::Even(24);
        assert_eq!((even.of(2), even.len(1), even.longest(3)), (48..72, 24, 24));
        let uneven = Blocks::Uneven { counts: &[2, 0, 5], displs: &[6, 9, 0], unit: 8 };
        assert_eq!([0, 1, 2].map(|rank| uneven.of(rank)), [48..64, 72..72, 0..40]);
        assert_eq!((uneven.len(0), uneven.longest(3), uneven.longest(2)), (16, 40, 16));
    }

    #[test]
    fn empty_blocks_lie_anywhere() {
        for far in [usize::MAX, usize::MAX / 8, usize::MAX / 8 + 1] {
            let blocks = Blocks::Uneven { counts: &[0, 3], displs: &[far, 1], unit: 8 };
            assert!(blocks.of(0).is_empty() && blocks.len(0) == 0, "{far}");
            assert_eq!((blocks.of(1), blocks.longest(2)), (8..32, 24));
        }
    }

    #[test]
    fn a_row_has_a_part_for_each_other_rank() {
        for from in 0..5 {
            let parts: Vec<usize> = (0..5).filter(|&to| to != from).map(|to| Medium::part(from, to)).collect();
            assert_eq!(parts, [0, 1, 2, 3]);
        }
    }

    #[test]
    fn slices_cover_blocks_of_all_lengths() {
        let cut = BlockCut { slice: 48, longest: 100 };
        assert_eq!(cut.count(), 3);
        let ranges = |bytes| (0..3).map(|slice| cut.range(bytes, slice)).collect::<Vec<_>>();
        assert_eq!(ranges(100), [(0, 48), (48, 48), (96, 4)]);
        assert_eq!(ranges(48), [(0, 48), (48, 0), (48, 0)]);
        assert_eq!(ranges(0), [(0, 0), (0, 0), (0, 0)]);
        assert_eq!(BlockCut { slice: 48, longest: 0 }.count(), 1);
    }
}
