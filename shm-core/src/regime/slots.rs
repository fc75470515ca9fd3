//! Blocks that fit a slot of lines, the short way: gathers, scatters and scans by the protocols that do only what such a call needs.
//!
//! They publish and await the same words as a delivery of one slice, so that each rank decides for itself by which of the two it goes.

use super::delivery::copy_own;
use super::{Engine, Reduction};
use crate::board::SharedBoard;
use crate::counters::add;
use crate::error::Result;
use crate::payload::{load_line, store_line};
use crate::protocol::delivery::{Delivery, Origin, Sources, deliver};
use crate::protocol::flat::{Contributions, collect, hand_out};
use crate::protocol::{Board, Location};
use crate::regime::blocks::Medium;
use crate::segment::layout::round_up;

impl Engine {
    /// Gathers equal blocks of `bytes` bytes. `recv` is where the root has room for all; the root's own block is in `send`, unless that is null.
    #[inline]
    pub fn slot_gather(&mut self, root: usize, send: *const u8, bytes: usize, recv: *mut u8, tag: u32) -> Result<()> {
        self.board.may_begin()?;
        let Self { board, lines, .. } = self;
        collect(board, lines, root, tag, &mut Gathered { board, root, send, bytes, recv, tag })
    }

    /// Scatters equal blocks of `bytes` bytes, which the root has one behind the other at `send`. The own one goes to `recv`, unless that is null.
    #[inline]
    pub fn slot_scatter(&mut self, root: usize, send: *const u8, recv: *mut u8, bytes: usize, tag: u32) -> Result<()> {
        self.board.may_begin()?;
        let Self { board, lines, .. } = self;
        let board = &*board;
        let (me, size, part) = (board.rank(), board.size(), round_up(bytes, 8) / 8);
        hand_out(
            board,
            lines,
            root,
            tag,
            |slot| {
                for to in (0..size).filter(|&to| to != root) {
                    let words = &board.line(root, slot)[Medium::part(root, to) * part..];
                    // SAFETY: so many bytes of a block in the caller's buffer; the slot is claimed, and has room for a part for each other rank.
                    unsafe { store_line(words, send.wrapping_add(to * bytes), bytes) };
                }
            },
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
                // SAFETY: the root's slot is published, and holds so many bytes there; as many may be written to the caller's buffer.
                unsafe { load_line(words, recv, bytes) };
                add(&board.tally.loaded, bytes);
                add(&board.tally.stored, bytes);
                Ok(())
            },
        )
    }

    /// A scan of what fits a slot: everybody publishes its vector, and folds those of the ranks below, and its own unless `exclusive`.
    #[inline]
    pub fn slot_scan(&mut self, reduction: Reduction<'_>, exclusive: bool, tag: u32) -> Result<()> {
        self.board.may_begin()?;
        let Self { board, lines, places, above, .. } = self;
        let work = &mut Prefix { board, operands: places, reduction, exclusive, tag };
        deliver(board, lines, (above.as_ref(), Sources::Below), 1, tag, work)
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
        unsafe { store_line(self.board.line(self.board.rank(), slot), self.send, self.bytes) };
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
        // SAFETY: the slot is published and holds so many bytes; the block's place in the root's buffer has room for them.
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

impl Delivery for Prefix<'_> {
    #[inline]
    fn write(&mut self, _: u64, slot: usize, _: bool) {
        let Reduction { send, bytes, .. } = self.reduction;
        // SAFETY: so many bytes of the caller's buffer, which fit a slot.
        unsafe { store_line(self.board.line(self.board.rank(), slot), send, bytes) };
        add(&self.board.tally.loaded, bytes);
        add(&self.board.tally.stored, bytes);
    }

    #[inline]
    fn meanwhile(&mut self) {
        let Reduction { send, recv, bytes, .. } = self.reduction;
        self.board.note(self.tag);
        let keeps = self.board.rank() == 0 && !self.exclusive && send != recv.cast_const();
        copy_own(self.board, keeps.then_some((send, recv, bytes)));
    }

    #[inline]
    fn read(&mut self, _: u64, rank: usize, from: Origin) -> Result<()> {
        self.operands[rank] = self.board.line_payload(rank, from.slot);
        Ok(())
    }

    #[inline]
    fn complete(&mut self, _: u64, _: usize) -> Result<()> {
        let Reduction { send, recv, bytes, fold } = self.reduction;
        let me = self.board.rank();
        self.operands[me] = send;
        let operands = &self.operands[..me + usize::from(!self.exclusive)];
        add(&self.board.tally.loaded, operands.len() * bytes);
        add(&self.board.tally.stored, bytes);
        // SAFETY: the slots of the ranks below are published, and not written before this rank is done; the vector fits lines, so its
        // elements are aligned there. The result goes to the caller's buffer, which may be the own contribution.
        unsafe { fold.apply(recv, operands, bytes) };
        Ok(())
    }
}
