//! Blocks that fit a slot of lines, the short way: by the protocols that do only what such a call needs.
//!
//! They publish and await the same words as a delivery of one slice, so that each rank decides for itself by which of
//! the two it goes.

use std::cell::Cell;

use super::delivery::copy_own;
use super::{Engine, Reduction};
use crate::board::SharedBoard;
use crate::counters::add;
use crate::error::Result;
use crate::payload::{load_line, store_line};
use crate::protocol::delivery::{Delivery, Origin, Sources, deliver};
use crate::protocol::exchange::exchange_then;
use crate::protocol::flat::{Contributions, collect, hand_out};
use crate::protocol::{Board, Location};
use crate::regime::blocks::{Blocks, Medium};
use crate::segment::layout::round_up;

impl Engine {
    /// Gathers equal blocks of `bytes` bytes. `recv` is where the root has room for all; the root's own block is in
    /// `send`, unless that is null.
    #[inline]
    pub fn slot_gather(&mut self, root: usize, send: *const u8, bytes: usize, recv: *mut u8, tag: u32) -> Result<()> {
        self.board.may_begin()?;
        let Self { board, lines, takes, .. } = self;
        collect(board, lines, root, tag, &mut Gathered { board, root, send, bytes, recv, tag })?;
        board.take_ahead(lines.prepared(), *takes && board.rank() != root, bytes);
        Ok(())
    }

    /// Scatters equal blocks of `bytes` bytes, which the root has one behind the other at `send`. The own one goes to
    /// `recv`, unless that is null.
    #[inline]
    pub fn slot_scatter(&mut self, root: usize, send: *const u8, recv: *mut u8, bytes: usize, tag: u32) -> Result<()> {
        self.board.may_begin()?;
        let Self { board, lines, takes, .. } = self;
        let board = &*board;
        let (me, size, part) = (board.rank(), board.size(), words_of(bytes));
        hand_out(
            board,
            lines,
            root,
            tag,
            // SAFETY: the root has a block for each rank, and a slot room for one of each other rank.
            |slot| unsafe { store_row(board, slot, send, Blocks::Even(bytes), bytes) },
            || {
                board.note(tag);
                if me == root {
                    add(&board.tally.loaded, (size - 1) * bytes);
                    add(&board.tally.stored, (size - 1) * bytes);
                    copy_own(board, (!recv.is_null()).then(|| (send.wrapping_add(root * bytes), recv, bytes)));
                }
            },
            |slot, _| {
                let words = &board.line(root, slot)[Medium::part(root, me) * part..];
                // SAFETY: the root's slot is published, and holds so many bytes there; as many may be written to the
                // caller's buffer.
                unsafe { load_line(words, recv, bytes) };
                add(&board.tally.loaded, bytes);
                add(&board.tally.stored, bytes);
                Ok(())
            },
        )?;
        board.take_ahead(lines.prepared(), *takes && me == root, 8 * part * (size - 1));
        Ok(())
    }

    /// Gathers everybody's block on all ranks: the own one from `send`, or, if that is null, from its place in `recv`.
    #[inline]
    pub fn slot_all_gather(&mut self, send: *const u8, recv: *mut u8, blocks: Blocks<'_>, tag: u32) -> Result<()> {
        self.board.may_begin()?;
        let Self { board, lines, takes, .. } = self;
        let board = &*board;
        let (me, size) = (board.rank(), board.size());
        let (place, bytes) = (recv.wrapping_add(blocks.of(me).start), blocks.len(me));
        let (send, own) = if send.is_null() { (place.cast_const(), None) } else { (send, Some((send, place, bytes))) };
        exchange_then(
            board,
            lines,
            tag,
            // SAFETY: so many bytes of the caller's buffer, which fit a slot.
            |slot| unsafe { store_line(board.own_line(slot), send, bytes) },
            |next| {
                board.note(tag);
                let all: usize = (0..size).map(|rank| blocks.len(rank)).sum();
                add(&board.tally.loaded, all);
                add(&board.tally.stored, all);
                copy_own(board, own);
                board.take_ahead(next, *takes, bytes);
                // As many bytes on both.
                board.approach(all)
            },
            |rank, slot| {
                let to = recv.wrapping_add(blocks.of(rank).start);
                // SAFETY: the slot is published and holds so many bytes; the block's place in the caller's buffer has
                // room for them.
                unsafe { load_line(board.line(rank, slot), to, blocks.len(rank)) };
            },
            || (),
        )
    }

    /// Exchanges equal blocks of `bytes` bytes: the one for each rank from its place at `send`, that of each rank to
    /// its place at `recv`, which may be the same.
    #[inline]
    pub fn slot_all_to_all(&mut self, send: *const u8, recv: *mut u8, bytes: usize, tag: u32) -> Result<()> {
        self.board.may_begin()?;
        let Self { board, lines, takes, .. } = self;
        let board = &*board;
        let (me, size) = (board.rank(), board.size());
        let own = (!std::ptr::eq(send, recv)).then(|| {
            let at = me * bytes;
            (send.wrapping_add(at), recv.wrapping_add(at), bytes)
        });
        exchange_then(
            board,
            lines,
            tag,
            // SAFETY: the caller has a block for each rank, and a slot room for one of each other rank.
            |slot| unsafe { store_row(board, slot, send, Blocks::Even(bytes), bytes) },
            |next| {
                board.note(tag);
                add(&board.tally.loaded, 2 * (size - 1) * bytes);
                add(&board.tally.stored, 2 * (size - 1) * bytes);
                copy_own(board, own);
                let filled = 8 * words_of(bytes) * (size - 1);
                board.take_ahead(next, *takes, filled);
                board.approach(filled)
            },
            |rank, slot| {
                let words = &board.line(rank, slot)[Medium::part(rank, me) * words_of(bytes)..];
                // SAFETY: the slot is published and holds so many bytes there; the block's place in the caller's buffer
                // has room for them.
                unsafe { load_line(words, recv.wrapping_add(rank * bytes), bytes) };
            },
            || (),
        )
    }

    /// Folds everybody's block for this rank, in rank order, to `reduction.recv`: everybody's blocks lie at
    /// `reduction.send` as `blocks` says, the longest has `longest` bytes.
    #[inline]
    pub fn slot_reduce_scatter(
        &mut self,
        reduction: Reduction<'_>,
        blocks: Blocks<'_>,
        longest: usize,
        tag: u32,
    ) -> Result<()> {
        self.board.may_begin()?;
        let Self { board, lines, places, takes, .. } = self;
        let board = &*board;
        let (me, size) = (board.rank(), board.size());
        let Reduction { send, recv, bytes, fold } = reduction;
        places[me] = send.wrapping_add(blocks.of(me).start);
        let places = Cell::from_mut(&mut **places).as_slice_of_cells();
        exchange_then(
            board,
            lines,
            tag,
            // SAFETY: the caller has a block for each rank, and a slot room for as many of the longest as there are
            // other ranks.
            |slot| unsafe { store_row(board, slot, send, blocks, longest) },
            |next| {
                board.note(tag);
                let sent: usize = (0..size).filter(|&to| to != me).map(|to| blocks.len(to)).sum();
                add(&board.tally.loaded, sent + size * bytes);
                add(&board.tally.stored, sent + bytes);
                let filled = 8 * words_of(longest) * (size - 1);
                board.take_ahead(next, *takes, filled);
                board.approach(filled)
            },
            |rank, slot| {
                let part = Medium::part(rank, me) * 8 * words_of(longest);
                places[rank].set(board.line_payload(rank, slot).wrapping_add(part));
            },
            || {
                // SAFETY: pointers in cells are laid out as pointers, and nobody writes to these meanwhile.
                let places = unsafe { std::slice::from_raw_parts(places.as_ptr().cast::<*const u8>(), places.len()) };
                // SAFETY: everybody's slot is published, and not written before this rank is done; the vector fits
                // lines, so its elements are aligned there, and parts are whole words. The result goes to the caller's
                // buffer, which is no operand.
                unsafe { fold.apply(recv, places, bytes) };
            },
        )
    }

    /// A scan of what fits a slot: everybody publishes its vector, and folds those of the ranks below, and its own
    /// unless `exclusive`. Of two ranks only one reads, as the root of a reduction does.
    #[inline]
    pub fn slot_scan(&mut self, reduction: Reduction<'_>, exclusive: bool, tag: u32) -> Result<()> {
        self.board.may_begin()?;
        let Self { board, lines, places, above, takes, .. } = self;
        let board = &*board;
        let work = &mut Prefix { board, operands: places, reduction, exclusive, tag };
        if board.size() == 2 {
            collect(board, lines, 1, tag, work)?;
            board.take_ahead(lines.prepared(), *takes && board.rank() == 0, reduction.bytes);
            return Ok(());
        }
        deliver(board, lines, (above.as_ref(), Sources::Below), 1, tag, work)
    }
}

/// Words of a part of a slot for blocks of up to so many bytes.
#[inline]
pub(super) fn words_of(bytes: usize) -> usize {
    round_up(bytes, 8) / 8
}

/// Fills the own slot with a row: the block for each other rank in its part, which has room for `longest` bytes.
///
/// # Safety
/// The slot is claimed and has room for all parts; the blocks lie at `send`, none longer than `longest` bytes.
#[inline]
unsafe fn store_row(board: &SharedBoard, slot: usize, send: *const u8, blocks: Blocks<'_>, longest: usize) {
    let me = board.rank();
    for to in (0..board.size()).filter(|&to| to != me) {
        let words = &board.own_line(slot)[Medium::part(me, to) * words_of(longest)..];
        // SAFETY: by contract.
        unsafe { store_line(words, send.wrapping_add(blocks.of(to).start), blocks.len(to)) };
    }
}

/// The payload of a gather.
struct Gathered<'a> {
    board: &'a SharedBoard,
    root: usize,
    send: *const u8,
    bytes: usize,
    recv: *mut u8,
    tag: u32,
}

impl Contributions for Gathered<'_> {
    #[inline]
    fn write(&mut self, slot: usize) {
        // SAFETY: so many bytes of the caller's buffer, which fit a slot.
        unsafe { store_line(self.board.own_line(slot), self.send, self.bytes) };
    }

    #[inline]
    fn meanwhile(&mut self) {
        let Self { board, send, bytes, .. } = *self;
        board.note(self.tag);
        if board.rank() == self.root {
            let others = (board.size() - 1) * bytes;
            add(&board.tally.loaded, others);
            add(&board.tally.stored, others);
            let to = self.recv.wrapping_add(self.root * bytes);
            return copy_own(board, (!send.is_null()).then_some((send, to, bytes)));
        }
        add(&board.tally.loaded, bytes);
        add(&board.tally.stored, bytes);
    }

    #[inline]
    fn read(&mut self, rank: usize, slot: usize, _: Location) -> Result<()> {
        // SAFETY: the slot is published and holds so many bytes; the block's place in the root's buffer has room for
        // them.
        unsafe { load_line(self.board.line(rank, slot), self.recv.wrapping_add(rank * self.bytes), self.bytes) };
        Ok(())
    }

    #[inline]
    fn complete(&mut self) -> Result<()> {
        Ok(())
    }
}

/// The payload of a scan.
struct Prefix<'a> {
    board: &'a SharedBoard,
    /// Where each rank's vector lies.
    operands: &'a mut [*const u8],
    reduction: Reduction<'a>,
    exclusive: bool,
    tag: u32,
}

impl Prefix<'_> {
    /// Fills the own slot.
    #[inline]
    fn store(&self, slot: usize) {
        let Reduction { send, bytes, .. } = self.reduction;
        // SAFETY: so many bytes of the caller's buffer, which fit a slot.
        unsafe { store_line(self.board.own_line(slot), send, bytes) };
        add(&self.board.tally.loaded, bytes);
        add(&self.board.tally.stored, bytes);
    }

    /// Does what nobody waits for.
    #[inline]
    fn note(&self) {
        let Reduction { send, recv, bytes, .. } = self.reduction;
        self.board.note(self.tag);
        let keeps = self.board.rank() == 0 && !self.exclusive && send != recv.cast_const();
        copy_own(self.board, keeps.then_some((send, recv, bytes)));
    }

    /// The vector of a rank below is in a slot of its own.
    #[inline]
    fn find(&mut self, rank: usize, slot: usize) {
        self.operands[rank] = self.board.line_payload(rank, slot);
    }

    /// All vectors are there.
    #[inline]
    fn fold(&mut self) {
        let Reduction { send, recv, bytes, fold } = self.reduction;
        let me = self.board.rank();
        self.operands[me] = send;
        let operands = &self.operands[..me + usize::from(!self.exclusive)];
        add(&self.board.tally.loaded, operands.len() * bytes);
        add(&self.board.tally.stored, bytes);
        // SAFETY: the slots of the ranks below are published, and not written before this rank is done; the vector fits
        // lines, so its elements are aligned there. The result goes to the caller's buffer, which may be the own
        // contribution.
        unsafe { fold.apply(recv, operands, bytes) };
    }
}

/// Over two ranks.
impl Contributions for Prefix<'_> {
    #[inline]
    fn write(&mut self, slot: usize) {
        self.store(slot);
    }

    #[inline]
    fn meanwhile(&mut self) {
        self.note();
    }

    #[inline]
    fn read(&mut self, rank: usize, slot: usize, _: Location) -> Result<()> {
        self.find(rank, slot);
        Ok(())
    }

    #[inline]
    fn complete(&mut self) -> Result<()> {
        self.fold();
        Ok(())
    }
}

/// Over more ranks.
impl Delivery for Prefix<'_> {
    #[inline]
    fn write(&mut self, _: u64, slot: usize, _: bool) {
        self.store(slot);
    }

    #[inline]
    fn meanwhile(&mut self) {
        self.note();
    }

    #[inline]
    fn read(&mut self, _: u64, rank: usize, from: Origin) -> Result<()> {
        self.find(rank, from.slot);
        Ok(())
    }

    #[inline]
    fn complete(&mut self, _: u64, _: usize) -> Result<()> {
        self.fold();
        Ok(())
    }
}
