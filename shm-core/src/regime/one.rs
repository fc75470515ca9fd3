//! Regime 2 at its shortest: a message of one slice over a flat tree, by the protocols that look at no tree.
//!
//! They keep the slots of the release step and the gather step, so that each rank decides for itself: who lends its
//! buffer takes the longer way.

use super::lend::{Lending, Source};
use super::operands::{Input, Operands};
use super::two::fold_two_ranks;
use super::{Engine, Reduction};
use crate::board::SharedBoard;
use crate::counters::add;
use crate::error::Result;
use crate::pace::{Lines, Pace, Slice, Taken, Way, reading_of, taking_out};
use crate::payload::{Manner, TAKEN, copy_in, copy_in_again, take_lines};
use crate::plan::Step;
use crate::protocol::flat::{Contributions, collect, hand_out};
use crate::protocol::{Board, Location};
use crate::select::{Choice, Single};

impl Engine {
    /// Whether this rank's place in the tree of a call is that in the flat one, in which there are no relays.
    #[inline]
    pub(super) fn is_flat(&mut self, choice: &Choice, step: Step, bytes: usize, root: usize) -> bool {
        if choice.flat || self.board.size() <= 2 {
            return true;
        }
        let links = self.trees.find(&self.board, choice, step, bytes, root);
        let links = self.trees.at(links);
        let children = links.children().len();
        let is_alike = match links.is_root() {
            true => children + 1 == self.board.size(),
            false => links.parent() == Some(root) && children == 0,
        };
        is_alike && !links.has_relay()
    }

    /// A broadcast of at most a cell, which is begun here.
    pub fn single_broadcast(
        &mut self,
        single: &Single,
        root: usize,
        buffer: *mut u8,
        bytes: usize,
        tag: u32,
    ) -> Result<()> {
        self.board.begin(tag)?;
        self.cut_down_cells(single.cell, single.slots, self.board.rank() == root)?;
        self.cell_broadcast(single.cell, root, buffer, bytes, tag)
    }

    /// A reduction of at most a cell, which is begun here.
    pub fn single_reduce(&mut self, single: &Single, root: usize, reduction: Reduction<'_>, tag: u32) -> Result<()> {
        self.board.begin(tag)?;
        let fills = self.board.rank() != root && !self.board.goes_short(reduction.bytes);
        self.cut_up_cells(single.cell, single.slots, fills)?;
        self.cell_reduce(single.cell, root, reduction, tag)
    }

    /// An allreduce of at most a cell, which is begun here.
    pub fn single_allreduce(&mut self, single: &Single, reduction: Reduction<'_>, tag: u32) -> Result<()> {
        self.board.begin(tag)?;
        self.cut_up_cells(single.cell, single.slots, true)?;
        self.one_exchange(single.cell, reduction, tag)
    }

    /// A broadcast of at most a cell.
    pub(super) fn cell_broadcast(
        &mut self,
        cell: usize,
        root: usize,
        buffer: *mut u8,
        bytes: usize,
        tag: u32,
    ) -> Result<()> {
        let Self { board, up, down, down_pace, takes, .. } = self;
        let board = &*board;
        let position = down.next_position();
        let lending = Lending::begin(board, (up, 0), (down, 1));
        let mut takes = *takes;
        let write = |slot| {
            let (to, reader) = (board.down_cell(root, slot, cell), (root + 1) % board.size());
            down_pace.writing_to(board, Slice { position, slot, bytes, reader }, lines(takes), |way| {
                takes &= way == Way::Cached;
                // SAFETY: `bytes` bytes of the caller's buffer; the slot is claimed, and they fit its cell.
                unsafe { fill(buffer, to, bytes, (way, takes)) };
            });
            add(&board.tally.loaded, bytes);
            add(&board.tally.stored, bytes);
        };
        let read = |slot, location| {
            let source = Source::find(board, root, location, bytes, 1)?;
            let input = source.input(root, board.down_cell(root, slot, cell), 0);
            let manner = source.manner(board, (root, slot), bytes, Manner::Asking);
            let mut copied = Ok(());
            // SAFETY: the root's slot is published, and its payload does not change before this rank says so; `buffer`
            // has room for `bytes` bytes, and is no cell and no other rank's buffer.
            let mut copy = || copied = unsafe { input.copy(manner, board, buffer, bytes) };
            match source.is_lent() {
                true => copy(),
                false => {
                    let taken = Taken { writer: root, slot, position, bytes, to: buffer, manner };
                    // SAFETY: it fills so much of the caller's buffer, which nobody else stores to.
                    unsafe { taking_out(board, taken, copy) }
                }
            }
            copied
        };
        lending.end(hand_out(board, down, root, tag, write, || (), read))?;
        if let (true, Some(slot)) = (takes && board.rank() == root, down.prepared()) {
            down_pace.taking(position, bytes, || {
                // SAFETY: nobody reads the slot, or writes there; its cell holds `bytes` bytes, and begins on a line.
                unsafe { take_lines(board.down_cell(root, slot, cell), bytes) };
            });
        }
        Ok(())
    }

    /// A reduction of at most a cell.
    pub(super) fn cell_reduce(&mut self, cell: usize, root: usize, reduction: Reduction<'_>, tag: u32) -> Result<()> {
        let Self { board, up, down, operands, up_pace, takes, .. } = self;
        let board = &*board;
        let position = up.next_position();
        let cell = if board.goes_short(reduction.bytes) { UpCell::Short } else { UpCell::Cut(cell) };
        if cell == UpCell::Short && board.rank() != root {
            board.back_short_cells().inspect_err(|_| board.unnote())?;
        }
        let lending = Lending::begin(board, (up, 1), (down, 0));
        operands.inputs.clear();
        let (pace, takes, other) = (up_pace, *takes && board.rank() != root, (0, Location::CELL));
        let mut work = Collected { board, cell, position, root, reduction, operands, pace, other, lent: false, takes };
        lending.end(collect(board, up, root, tag, &mut work))?;
        if let (true, Some(slot)) = (work.takes, up.prepared()) {
            work.pace.taking(position, reduction.bytes, || {
                // SAFETY: nobody reads the slot, or writes there; its cell holds as many bytes as were just stored, and
                // begins on a line.
                unsafe { take_lines(cell.of(board, board.rank(), slot), reduction.bytes) };
            });
        }
        Ok(())
    }
}

/// The up cells of a reduction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UpCell {
    /// Those of so many bytes.
    Cut(usize),
    /// The short ones.
    Short,
}

impl UpCell {
    /// That of a slot.
    #[inline]
    fn of(self, board: &SharedBoard, rank: usize, slot: usize) -> *mut u8 {
        match self {
            UpCell::Cut(cell) => board.up_cell(rank, slot, cell),
            UpCell::Short => board.short_cell(rank, slot),
        }
    }
}

/// What is known of the lines of a cell, where they may have been taken ahead.
fn lines(takes: bool) -> Lines {
    if takes { Lines::Taken } else { Lines::Left }
}

/// Copies `bytes` bytes into an own cell in this way; its lines are here, as a rule, where they are taken ahead.
///
/// # Safety
/// As [`copy_in`].
#[inline]
unsafe fn fill(from: *const u8, cell: *mut u8, bytes: usize, (way, taken): (Way, bool)) {
    if taken && bytes <= TAKEN {
        debug_assert_eq!(way, Way::Cached);
        // SAFETY: by contract.
        return unsafe { copy_in_again(from, cell, bytes, way) };
    }
    // SAFETY: by contract.
    unsafe { copy_in(from, cell, bytes, way) };
}

/// The payload of a reduction.
struct Collected<'a> {
    board: &'a SharedBoard,
    cell: UpCell,
    position: u64,
    root: usize,
    reduction: Reduction<'a>,
    /// Everybody's contribution, in rank order, as they come.
    operands: &'a mut Operands,
    pace: &'a mut Pace,
    /// Of two ranks, the slot of the other one, and where its contribution lies.
    other: (usize, Location),
    /// Whether some contribution lies in no cell.
    lent: bool,
    /// Whether the lines of the next slot are taken.
    takes: bool,
}

impl Contributions for Collected<'_> {
    fn write(&mut self, slot: usize) {
        let (send, len) = (self.reduction.send, self.reduction.bytes);
        let cell = self.cell.of(self.board, self.board.rank(), slot);
        let filled = Slice { position: self.position, slot, bytes: len, reader: self.root };
        self.pace.writing_to(self.board, filled, lines(self.takes), |way| {
            self.takes &= way == Way::Cached;
            // SAFETY: `len` bytes of the caller's buffer; the slot is claimed, and they fit its cell.
            unsafe { fill(send, cell, len, (way, self.takes)) };
        });
        add(&self.board.tally.loaded, len);
        add(&self.board.tally.stored, len);
    }

    fn meanwhile(&mut self) {}

    fn read(&mut self, rank: usize, slot: usize, location: Location) -> Result<()> {
        if self.board.size() == 2 {
            self.other = (slot, location);
            return Ok(());
        }
        if rank == self.root + 1 {
            self.operands.inputs.push(Input::Own(self.reduction.send));
        }
        let source = Source::find(self.board, rank, location, self.reduction.bytes, self.reduction.fold.align)?;
        self.lent |= source.is_lent();
        self.operands.inputs.push(source.input(rank, self.cell.of(self.board, rank, slot).cast_const(), 0));
        Ok(())
    }

    fn complete(&mut self) -> Result<()> {
        let Self { board, operands, reduction: Reduction { send, recv, bytes, fold }, .. } = self;
        if board.size() == 2 {
            let (slot, location) = self.other;
            let cell = self.cell.of(board, 1 - self.root, slot).cast_const();
            // SAFETY: the other's slot is published, so that `bytes` bytes of its payload are written and will not
            // change; as many of the caller's buffers are there.
            return unsafe { fold_two_ranks(board, operands, self.reduction, (location, cell), (self.position, 0)) };
        }
        if operands.inputs.len() == self.root {
            operands.inputs.push(Input::Own(*send));
        }
        operands.results.clear();
        operands.results.push(*recv);
        let mut folded = Ok(());
        // SAFETY: the others' slots are published (so `bytes` bytes of their payload are written and will not change);
        // as many of the caller's buffers are there. The result is no operand, unless the caller works in place.
        let mut combine = || folded = unsafe { operands.fold(board, fold, (*bytes, *bytes), Way::Cached) };
        match self.lent || board.size() == 1 {
            true => combine(),
            false => reading_of(board, self.position, (*bytes, board.size() - 1), combine),
        }
        folded
    }
}

#[cfg(test)]
mod tests {
    use crate::communicator::Communicator;
    use crate::job::JobSpec;
    use crate::operator::Sum;

    /// What rank `rank` contributes to call `call`.
    fn own(call: u64, rank: usize, count: usize) -> Vec<u64> {
        (0..count as u64).map(|i| i * 7 + call * 1_000_003 + rank as u64 * 13).collect()
    }

    fn all_reduce(comm: &Communicator, call: u64, count: usize) {
        let mut sum = vec![0; count];
        comm.all_reduce_into(&own(call, comm.rank(), count), &mut sum, Sum).unwrap();
        let [a, b] = [0, 1].map(|rank| own(call, rank, count));
        assert!(sum.iter().zip(a.iter().zip(&b)).all(|(sum, (a, b))| *sum == a + b), "call {call}, an allreduce");
    }

    fn broadcast(comm: &Communicator, call: u64, count: usize, root: usize, shared: bool) {
        let mine = if comm.rank() == root { own(call, root, count) } else { vec![0; count] };
        let (mut private, mut lent) = (mine.clone(), comm.alloc_copy(&mine).unwrap());
        let buffer = if shared && comm.rank() == root { &mut lent[..] } else { &mut private[..] };
        comm.process_at_rank(root).broadcast_into(buffer).unwrap();
        assert!(*buffer == own(call, root, count), "call {call}, a broadcast from {root}");
    }

    fn reduce(comm: &Communicator, call: u64, count: usize, root: usize, shared: bool) {
        let mine = own(call, comm.rank(), count);
        let lent = comm.alloc_copy(&mine).unwrap();
        let send = if shared { &lent[..] } else { &mine[..] };
        let process = comm.process_at_rank(root);
        if comm.rank() != root {
            return process.reduce_into(send, Sum).unwrap();
        }
        let mut sum = vec![0; count];
        process.reduce_into_root(send, &mut sum, Sum).unwrap();
        let [a, b] = [0, 1].map(|rank| own(call, rank, count));
        assert!(sum.iter().zip(a.iter().zip(&b)).all(|(sum, (a, b))| *sum == a + b), "call {call}, a reduction");
    }

    fn all_to_all(comm: &Communicator, call: u64, count: usize) {
        let mut all = vec![0; 2 * count];
        comm.all_to_all_into(&own(call, comm.rank(), 2 * count), &mut all).unwrap();
        let [a, b] = [0, 1].map(|rank| own(call, rank, 2 * count));
        let block = comm.rank() * count..(comm.rank() + 1) * count;
        assert!(all[..count] == a[block.clone()] && all[count..] == b[block], "call {call}, an alltoall");
    }

    /// Of two ranks one takes the short way and the other the long one, between calls whose cells change hands: these
    /// need the same history on both.
    #[test]
    fn the_short_way_and_the_long_one_leave_the_same_behind() {
        for rules in ["all:auto", "all:direct_from=1", "all:direct_from=never", "allreduce:up_cells=16", "all:cell=8K"]
        {
            let mut spec = JobSpec::new(2).unwrap();
            spec.tuning.force(rules).unwrap();
            spec.on_threads(|comm| {
                let mut call = 0;
                // Around the edges: of short cells, of lending, of what both ranks do.
                for bytes in [1200usize, 4600, 4616, 8184, 10_000, 16_376, 20_000, 32_768, 40_000] {
                    for (root, shared, rooted) in (0..8).map(|bits| (bits & 1, bits & 2 > 0, bits & 4 > 0)) {
                        for turn in 0..40 {
                            call += 1;
                            match turn % 5 {
                                2 if rooted => reduce(&comm, call, bytes / 8, root, shared),
                                2 => broadcast(&comm, call, bytes / 8, root, shared),
                                4 => all_to_all(&comm, call, 512),
                                _ => all_reduce(&comm, call, 512),
                            }
                        }
                    }
                }
            });
        }
    }
}
