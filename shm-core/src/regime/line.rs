//! Regime 1: a slot of a few cache lines holds stamp and payload together, so that a hop costs one line transfer.
//!
//! Messages longer than a slot go slot by slot.

use super::{Engine, Reduction};
use crate::counters::add;
use crate::error::Result;
use crate::payload::{load_line, store_line};
use crate::plan::Step;
use crate::protocol::Board;
use crate::protocol::exchange::exchange;
use crate::protocol::step;
use crate::segment::layout::SLOT_PAYLOAD;
use crate::select::Choice;

/// The pieces of a message that fill a slot each: offset and length. One empty piece for an empty message.
fn pieces(bytes: usize, element: usize) -> impl Iterator<Item = (usize, usize)> {
    let piece = (SLOT_PAYLOAD / element.max(1)).max(1) * element.max(1);
    (0..bytes.div_ceil(piece).max(1)).map(move |i| (i * piece, piece.min(bytes - i * piece)))
}

impl Engine {
    /// A barrier, flat: everybody publishes an empty line and reads everybody's.
    #[inline]
    pub fn slot_barrier(&mut self, tag: u32) -> Result<()> {
        exchange(&self.board, &mut self.lines, tag, |_| (), |_, _| ())
    }

    /// A barrier: flat, or, for many ranks, up and down a tree.
    pub fn line_barrier(&mut self, choice: &Choice, tag: u32) -> Result<()> {
        if choice.flat {
            return self.slot_barrier(tag);
        }
        let (rank, size) = (self.board.rank(), self.board.size());
        let gather = self.trees.links(Step::Gather, Some(0), 0, rank, size);
        let release = self.trees.links(Step::Release, Some(0), 0, rank, size);
        let position = self.lines.take(2);
        step::gather(&self.board, &mut self.lines, &gather, position, tag, |_| ())?;
        step::release(&self.board, &mut self.lines, &release, position + 1, tag, |_| ())
    }

    /// A broadcast: the root publishes, its children read (and pass on).
    pub fn line_broadcast(
        &mut self,
        choice: &Choice,
        root: usize,
        buffer: *mut u8,
        bytes: usize,
        tag: u32,
    ) -> Result<()> {
        let links = self.line_links(choice, Step::Release, bytes, root);
        for (at, len) in pieces(bytes, 1) {
            let position = self.lines.take(1);
            let Self { board, lines, .. } = self;
            step::release(board, lines, &links, position, tag, |passage| {
                if let Some(from) = passage.from {
                    // SAFETY: `at + len <= bytes` bytes of the caller's buffer, and `len` bytes fit a slot.
                    unsafe { load_line(board.line(from, passage.slot), buffer.wrapping_add(at), len) };
                    add(&board.tally.loaded, len);
                    add(&board.tally.stored, len);
                }
                if passage.forward {
                    // SAFETY: the same.
                    unsafe { store_line(board.line(board.rank(), passage.slot), buffer.wrapping_add(at), len) };
                    add(&board.tally.stored, len);
                    add(&board.tally.loaded, if passage.from.is_none() { len } else { 0 });
                }
            })?;
        }
        Ok(())
    }

    /// A reduction to the root: children publish, parents combine in rank order.
    pub fn line_reduce(&mut self, choice: &Choice, root: usize, reduction: Reduction<'_>, tag: u32) -> Result<()> {
        let links = self.line_links(choice, Step::Gather, reduction.bytes, root);
        let fold = reduction.fold;
        for (at, len) in pieces(reduction.bytes, fold.element) {
            let position = self.lines.take(1);
            let Self { board, lines, scratch, operands, .. } = self;
            let rank = board.rank();
            let slot = lines.slot(position);
            step::gather(board, lines, &links, position, tag, |own| {
                let send = reduction.send.wrapping_add(at);
                if let (Some(own), true) = (own, links.children().is_empty()) {
                    // SAFETY: `at + len <= bytes` bytes of the caller's buffer; `len` bytes fit a slot.
                    unsafe { store_line(board.line(rank, own), send, len) };
                    add(&board.tally.loaded, len);
                    add(&board.tally.stored, len);
                    return;
                }
                operands.clear();
                operands.resize(links.children().len() + 1, std::ptr::null());
                // Contributions in rank order, the own one among them.
                let below = |child: usize| {
                    links.children().iter().filter(|&&other| other < child).count() + usize::from(rank < child)
                };
                let mine = links.children().iter().filter(|&&child| child < rank).count();
                for &child in links.children() {
                    let piece = scratch[child].0.as_mut_ptr();
                    // SAFETY: a scratch piece is longer than a slot's payload.
                    unsafe { load_line(board.line(child, slot), piece, len) };
                    operands[below(child)] = piece;
                }
                operands[mine] = send;
                let result = if own.is_some() { scratch[rank].0.as_mut_ptr() } else { reduction.recv.wrapping_add(at) };
                // SAFETY: `len` bytes of each operand were just written, or are the caller's; `result` is the own scratch
                // piece, which is no operand, or the caller's buffer.
                unsafe { fold.apply(result, operands, len) };
                if let Some(own) = own {
                    // SAFETY: `len` bytes were just written there.
                    unsafe { store_line(board.line(rank, own), result, len) };
                }
                add(&board.tally.loaded, operands.len() * len);
                add(&board.tally.stored, len);
            })?;
        }
        Ok(())
    }

    /// An allreduce: everybody reads everybody's contribution and combines them in rank order, so that all ranks have the
    /// same bits; or, for many ranks, a reduction and a broadcast.
    #[inline]
    pub fn line_allreduce(&mut self, choice: &Choice, reduction: Reduction<'_>, tag: u32) -> Result<()> {
        if !choice.flat {
            self.line_reduce(choice, 0, reduction, tag)?;
            return self.line_broadcast(choice, 0, reduction.recv, reduction.bytes, tag);
        }
        for (at, bytes) in pieces(reduction.bytes, reduction.fold.element) {
            let (send, recv) = (reduction.send.wrapping_add(at), reduction.recv.wrapping_add(at));
            self.slot_allreduce(Reduction { send, recv, bytes, ..reduction }, tag)?;
        }
        Ok(())
    }

    /// An allreduce of what fits one slot, flat: the shortest way there is.
    #[inline]
    pub fn slot_allreduce(&mut self, reduction: Reduction<'_>, tag: u32) -> Result<()> {
        let Self { board, lines, scratch, slot_operands, .. } = self;
        let Reduction { send, recv, bytes, fold } = reduction;
        let rank = board.rank();
        slot_operands[rank] = send;
        exchange(
            board,
            lines,
            tag,
            // SAFETY: `bytes` bytes of the caller's buffer, which fit a slot.
            |slot| unsafe { store_line(board.line(rank, slot), send, bytes) },
            // SAFETY: a scratch piece is longer than a slot's payload.
            |from, slot| unsafe { load_line(board.line(from, slot), scratch[from].0.as_mut_ptr(), bytes) },
        )?;
        // SAFETY: the operands are the scratch pieces, of which `bytes` bytes were just written, and the caller's contribution;
        // the result goes to the caller's buffer, which may be the contribution.
        unsafe { fold.apply(recv, slot_operands, bytes) };
        add(&board.tally.loaded, (board.size() + 1) * bytes);
        add(&board.tally.stored, 2 * bytes);
        Ok(())
    }

    fn line_links(&mut self, choice: &Choice, step: Step, bytes: usize, root: usize) -> crate::links::Links {
        let bytes = if choice.flat { None } else { Some(bytes) };
        self.trees.links(step, bytes, root, self.board.rank(), self.board.size())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_a_message_in_whole_elements() {
        assert_eq!(pieces(0, 8).collect::<Vec<_>>(), [(0, 0)]);
        assert_eq!(pieces(504, 8).collect::<Vec<_>>(), [(0, 504)]);
        assert_eq!(pieces(512, 16).collect::<Vec<_>>(), [(0, 496), (496, 16)]);
        assert_eq!(pieces(505, 1).collect::<Vec<_>>(), [(0, 504), (504, 1)]);
    }
}
