//! Regime 1: a slot of a few cache lines holds stamp and payload together, so that a hop costs one line transfer.
//!
//! Messages longer than a slot go slot by slot.

use std::cell::Cell;

use super::cut::{uncut, whole_elements};
use super::{Engine, Reduction};
use crate::board::SharedBoard;
use crate::counters::add;
use crate::error::Result;
use crate::payload::{load_line, store_line, take_slot};
use crate::plan::Step;
use crate::protocol::exchange::{Pieces, exchange, exchange_pieces, exchange_then};
use crate::protocol::flat::{Contributions, collect, hand_out};
use crate::protocol::step;
use crate::protocol::{Board, Location};
use crate::segment::layout::SLOT_PAYLOAD;
use crate::select::Choice;

/// The bytes of whole elements that fit a slot.
fn piece_of(element: usize) -> usize {
    whole_elements(SLOT_PAYLOAD, element)
}

/// The pieces of a message that fill a slot each: offset and length. One empty piece for an empty message.
fn pieces(bytes: usize, element: usize) -> impl Iterator<Item = (usize, usize)> {
    let piece = piece_of(element);
    let starts = std::iter::successors(Some(0), move |at| Some(at + piece).filter(|&next| next < bytes));
    starts.map(move |at| (at, piece.min(bytes - at)))
}

impl Engine {
    /// A barrier, flat: everybody publishes an empty line and reads everybody's.
    #[inline]
    pub fn slot_barrier(&mut self, tag: u32) -> Result<()> {
        self.board.may_begin()?;
        let Self { board, lines, takes, .. } = self;
        let meanwhile = |next| {
            board.note(tag);
            board.take_ahead(next, *takes, 0);
            board.approach(0)
        };
        exchange_then(board, lines, tag, |_| (), meanwhile, |_, _| (), || ())
    }

    /// A barrier: flat, or, for many ranks, up and down a tree.
    pub fn line_barrier(&mut self, choice: &Choice, tag: u32) -> Result<()> {
        if choice.flat {
            self.board.begin(tag)?;
            return exchange(&self.board, &mut self.lines, tag, |_| (), |_, _| ());
        }
        self.board.begin(tag)?;
        let Self { board, lines, trees, .. } = self;
        let gather = trees.find(board, choice, Step::Gather, 0, 0);
        let release = trees.find(board, choice, Step::Release, 0, 0);
        let position = lines.take(2);
        step::gather(board, lines, trees.at(gather), position, tag, |_| ())?;
        step::release(board, lines, trees.at(release), position + 1, tag, |_| ())
    }

    /// A broadcast of what fits one slot, flat: the root publishes and goes on, the others copy out.
    #[inline]
    pub fn slot_broadcast(&mut self, root: usize, buffer: *mut u8, bytes: usize, tag: u32) -> Result<()> {
        self.board.may_begin()?;
        let Self { board, lines, takes, .. } = self;
        let board = &*board;
        hand_out(
            board,
            lines,
            root,
            tag,
            // SAFETY: `bytes` bytes of the caller's buffer, which fit a slot.
            |slot| unsafe { store_line(board.line(root, slot), buffer, bytes) },
            || {
                board.note(tag);
                add(&board.tally.loaded, bytes);
                add(&board.tally.stored, bytes);
            },
            |slot, _| {
                // SAFETY: the same.
                unsafe { load_line(board.line(root, slot), buffer, bytes) };
                Ok(())
            },
        )?;
        board.take_ahead(lines.prepared(), *takes && board.rank() == root, bytes);
        Ok(())
    }

    /// A reduction of what fits one slot, flat: the others publish and go on, the root combines them in rank order, in
    /// one pass out of their slots.
    #[inline]
    pub fn slot_reduce(&mut self, root: usize, reduction: Reduction<'_>, tag: u32) -> Result<()> {
        self.board.may_begin()?;
        let Self { board, lines, places, takes, .. } = self;
        places[board.rank()] = reduction.send;
        collect(board, lines, root, tag, &mut Collected { board, operands: places, reduction, root, tag })?;
        board.take_ahead(lines.prepared(), *takes && board.rank() != root, reduction.bytes);
        Ok(())
    }

    /// A broadcast of `element`-byte elements: the root publishes, its children read (and pass on).
    pub fn line_broadcast(
        &mut self,
        choice: &Choice,
        root: usize,
        (buffer, bytes, element): (*mut u8, usize, usize),
        tag: u32,
    ) -> Result<()> {
        let Self { board, lines, trees, .. } = self;
        let links = trees.find(board, choice, Step::Release, bytes, root);
        for (at, len) in pieces(bytes, uncut(element, SLOT_PAYLOAD)) {
            let position = lines.take(1);
            step::release(board, lines, trees.at(links), position, tag, |passage| {
                if let Some(from) = passage.from {
                    // SAFETY: `at + len <= bytes` bytes of the caller's buffer, and `len` bytes fit a slot.
                    unsafe { load_line(board.line(from, passage.slot), buffer.wrapping_add(at), len) };
                    add(&board.tally.loaded, len);
                    add(&board.tally.stored, len);
                }
                if passage.forward {
                    // SAFETY: the same.
                    unsafe { store_line(board.own_line(passage.slot), buffer.wrapping_add(at), len) };
                    add(&board.tally.stored, len);
                    add(&board.tally.loaded, if passage.from.is_none() { len } else { 0 });
                }
            })?;
        }
        Ok(())
    }

    /// A reduction to the root: children publish, parents combine in rank order.
    pub fn line_reduce(&mut self, choice: &Choice, root: usize, reduction: Reduction<'_>, tag: u32) -> Result<()> {
        let fold = reduction.fold;
        let Self { board, lines, scratch, line_operands: operands, trees, .. } = self;
        let links = trees.find(board, choice, Step::Gather, reduction.bytes, root);
        let links = trees.at(links);
        for (at, len) in pieces(reduction.bytes, fold.element) {
            let position = lines.take(1);
            let rank = board.rank();
            let slot = lines.slot(position);
            step::gather(board, lines, links, position, tag, |own| {
                let send = reduction.send.wrapping_add(at);
                if let (Some(own), true) = (own, links.children().is_empty()) {
                    // SAFETY: `at + len <= bytes` bytes of the caller's buffer; `len` bytes fit a slot.
                    unsafe { store_line(board.line(rank, own), send, len) };
                    add(&board.tally.loaded, len);
                    add(&board.tally.stored, len);
                    return;
                }
                operands.clear();
                // Contributions in rank order, the own one among them.
                let (lower, higher) =
                    links.in_order().split_at(links.in_order().partition_point(|&child| child < rank));
                operands.extend(lower.iter().map(|&child| board.line_payload(child, slot)));
                operands.push(send);
                operands.extend(higher.iter().map(|&child| board.line_payload(child, slot)));
                let result = if own.is_some() { scratch.0.as_mut_ptr() } else { reduction.recv.wrapping_add(at) };
                // SAFETY: the children's slots are published, and not written before this rank is done; the vector fits
                // lines, so its elements are aligned there. `result` is the scratch, which is no operand, or the
                // caller's buffer.
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

    /// An allreduce: everybody reads everybody's contribution and combines them in rank order, so that all ranks have
    /// the same bits; or, for many ranks, a reduction and a broadcast.
    #[inline]
    pub fn line_allreduce(&mut self, choice: &Choice, reduction: Reduction<'_>, tag: u32) -> Result<()> {
        if !choice.flat {
            self.line_reduce(choice, 0, reduction, tag)?;
            return self.line_broadcast(choice, 0, (reduction.recv, reduction.bytes, reduction.fold.element), tag);
        }
        let stride = piece_of(reduction.fold.element);
        let count = reduction.bytes.div_ceil(stride).max(1);
        let most = self.lines.slots() / 2;
        for group in (0..count).step_by(most) {
            self.exchange_group(reduction, group * stride, stride, (count - group).min(most), tag)?;
        }
        Ok(())
    }

    /// An allreduce of what fits one slot, flat: the shortest way there is.
    #[inline]
    pub fn slot_allreduce(&mut self, reduction: Reduction<'_>, tag: u32) -> Result<()> {
        self.board.may_begin()?;
        let Self { board, lines, places, takes, .. } = self;
        let Reduction { send, recv, bytes, fold } = reduction;
        let rank = board.rank();
        places[rank] = send;
        let places = Cell::from_mut(&mut **places).as_slice_of_cells();
        exchange_then(
            board,
            lines,
            tag,
            // SAFETY: `bytes` bytes of the caller's buffer, which fit a slot.
            |slot| unsafe { store_line(board.own_line(slot), send, bytes) },
            |next| {
                board.note(tag);
                add(&board.tally.loaded, (board.size() + 1) * bytes);
                add(&board.tally.stored, 2 * bytes);
                board.take_ahead(next, *takes, bytes);
                board.approach(bytes)
            },
            |from, slot| places[from].set(board.line_payload(from, slot)),
            || {
                // SAFETY: pointers in cells are laid out as pointers, and nobody writes to these meanwhile.
                let places = unsafe { std::slice::from_raw_parts(places.as_ptr().cast::<*const u8>(), places.len()) };
                // SAFETY: everybody's slot is published, and not written before this rank is done; the vector fits
                // lines, so its elements are aligned there. The result goes to the caller's buffer, which may be the
                // contribution.
                unsafe { fold.apply(recv, places, bytes) };
            },
        )
    }

    /// Exchanges and combines a few pieces of `stride` bytes, from byte `at` on.
    #[inline]
    fn exchange_group(
        &mut self,
        reduction: Reduction<'_>,
        at: usize,
        stride: usize,
        count: usize,
        tag: u32,
    ) -> Result<()> {
        let Self { board, lines, places, .. } = self;
        exchange_pieces(board, lines, tag, count, &mut Group { board, operands: places, reduction, at, stride })
    }
}

impl SharedBoard {
    /// Takes the lines of the own slot that comes next, if it is free and this rank takes lines, before it is filled
    /// with `bytes` bytes.
    #[inline(always)]
    pub(super) fn take_ahead(&self, next: Option<usize>, takes: bool, bytes: usize) {
        if let (true, Some(slot)) = (takes, next) {
            take_slot(self.own_line(slot), bytes);
        }
    }
}

/// The payload of a reduction that fits a slot.
struct Collected<'a> {
    board: &'a SharedBoard,
    /// Where each rank's contribution lies.
    operands: &'a mut [*const u8],
    reduction: Reduction<'a>,
    root: usize,
    tag: u32,
}

impl Contributions for Collected<'_> {
    #[inline]
    fn write(&mut self, slot: usize) {
        let line = self.board.own_line(slot);
        // SAFETY: so many bytes of the caller's buffer, which fit a slot.
        unsafe { store_line(line, self.reduction.send, self.reduction.bytes) };
    }

    #[inline]
    fn meanwhile(&mut self) {
        self.board.note(self.tag);
        let loads = if self.board.rank() == self.root { self.operands.len() } else { 1 };
        add(&self.board.tally.loaded, loads * self.reduction.bytes);
        add(&self.board.tally.stored, self.reduction.bytes);
    }

    #[inline]
    fn read(&mut self, rank: usize, slot: usize, _: Location) -> Result<()> {
        self.operands[rank] = self.board.line_payload(rank, slot);
        Ok(())
    }

    #[inline]
    fn complete(&mut self) -> Result<()> {
        let Reduction { recv, bytes, fold, .. } = self.reduction;
        // SAFETY: everybody's slot is published, and not written before this rank is done; the vector fits lines, so
        // its elements are aligned there. The result goes to the caller's buffer, which may be the contribution.
        unsafe { fold.apply(recv, self.operands, bytes) };
        Ok(())
    }
}

/// The payload of a few pieces of an allreduce.
struct Group<'a> {
    board: &'a SharedBoard,
    /// Where each rank's piece lies.
    operands: &'a mut [*const u8],
    reduction: Reduction<'a>,
    at: usize,
    stride: usize,
}

impl Group<'_> {
    /// Offset and length of a piece.
    #[inline]
    fn range(&self, piece: usize) -> (usize, usize) {
        let at = self.at + piece * self.stride;
        (at, self.stride.min(self.reduction.bytes - at))
    }
}

impl Pieces for Group<'_> {
    #[inline]
    fn write(&mut self, piece: usize, slot: usize) {
        let (at, len) = self.range(piece);
        let line = self.board.own_line(slot);
        // SAFETY: `at + len <= bytes` bytes of the caller's buffer; `len` bytes fit a slot.
        unsafe { store_line(line, self.reduction.send.wrapping_add(at), len) };
    }

    #[inline]
    fn read(&mut self, _: usize, rank: usize, slot: usize) {
        self.operands[rank] = self.board.line_payload(rank, slot);
    }

    #[inline]
    fn complete(&mut self, piece: usize) {
        let (at, len) = self.range(piece);
        self.operands[self.board.rank()] = self.reduction.send.wrapping_add(at);
        // SAFETY: everybody's slot is published, and not written before this rank is done; the vector fits lines, so
        // its elements are aligned there. The result goes to the caller's buffer, which may be the contribution.
        unsafe { self.reduction.fold.apply(self.reduction.recv.wrapping_add(at), self.operands, len) };
        add(&self.board.tally.loaded, (self.board.size() + 1) * len);
        add(&self.board.tally.stored, 2 * len);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::{Duration, Instant};

    use super::*;
    use crate::operator::User;
    use crate::{Communicator, Error};

    /// While rank 0 combines what lies in the other's slot, that one makes calls, more than there are slots: its hook
    /// throws it out of the first, and then the job cannot go on.
    #[test]
    fn who_is_thrown_out_of_calls_fills_no_slot_that_is_read() {
        const CALLS: u32 = 40;
        let thrown = AtomicU32::new(0);
        Communicator::threads(2, |comm| {
            let rank = comm.rank();
            assert!(comm.enter().unwrap().board.line_slots() < CALLS as usize);
            let sum = User::commutative(|left: &mut [u64], right: &[u64]| {
                let begun = Instant::now();
                while rank == 0 && thrown.load(Ordering::SeqCst) < CALLS && begun.elapsed() < Duration::from_secs(20) {
                    std::thread::yield_now();
                }
                left.iter_mut().zip(right).for_each(|(left, right)| *left += right);
            });
            let mut sums = [0; 6];
            comm.all_reduce_into(&[rank as u64 + 7; 6], &mut sums, sum).unwrap();
            if rank == 1 {
                comm.set_idle(Some(Box::new(|| resume_unwind(Box::new(()))))).unwrap();
                for call in 0..u64::from(CALLS) {
                    let gather = || comm.all_gather_into(&[1000 + call], &mut [0; 2]);
                    match catch_unwind(AssertUnwindSafe(gather)) {
                        Err(_) => assert_eq!(call, 0, "thrown out once"),
                        Ok(ended) => assert_eq!(ended, Err(Error::RankFailed { rank: 1 }), "call {call}"),
                    }
                    thrown.fetch_add(1, Ordering::SeqCst);
                }
            }
            assert_eq!(sums, [15; 6], "rank {rank}");
        })
        .unwrap();
    }

    #[test]
    fn pieces_cover_a_message_in_whole_elements() {
        assert_eq!(pieces(0, 8).collect::<Vec<_>>(), [(0, 0)]);
        assert_eq!(pieces(1144, 8).collect::<Vec<_>>(), [(0, 1144)]);
        assert_eq!(pieces(1152, 16).collect::<Vec<_>>(), [(0, 1136), (1136, 16)]);
        assert_eq!(pieces(1145, 1).collect::<Vec<_>>(), [(0, 1144), (1144, 1)]);
    }
}
