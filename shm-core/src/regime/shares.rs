//! Regime 3: every leader owns a share of the vector and folds everybody's contribution to it.
//!
//! A contribution is copied once, to a cell; the leader folds all p of them in one pass, its own from the private
//! buffer, straight into its result, which the others copy out: (5p-1)n bytes loaded and stored for an allreduce of n bytes
//! on p ranks with p leaders. Contributions are combined in rank order, for every operator.

use super::fold::{Piece, fold_in};
use super::{Engine, Reduction};
use crate::board::SharedBoard;
use crate::counters::add;
use crate::error::Result;
use crate::pace::{Pace, reading};
use crate::payload::{copy_in, copy_out};
use crate::protocol::shares::{self, Parts, Shares, Takers, Work};
use crate::protocol::{Board, RingName};
use crate::segment::layout::LINE;
use crate::select::Choice;

/// How a vector is divided: shares of whole units, a unit being the elements of a cache line or more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Division {
    bytes: usize,
    unit: usize,
    leaders: usize,
    slice: usize,
}

impl Division {
    /// Divides `bytes` bytes of `element`-byte elements among `leaders` leaders, in slices of at most `cell` bytes.
    pub fn new(bytes: usize, element: usize, leaders: usize, cell: usize) -> Self {
        let element = element.max(1);
        // The least number of whole elements that is whole lines too, if a cell has room for it.
        let lines = element / gcd(element, LINE) * LINE;
        let unit = if lines <= cell { lines } else { element };
        let mut division = Self { bytes, unit, leaders, slice: cell / unit * unit };
        // Equal slices: no short one at the end that costs a round of its own.
        let rounds = division.rounds() as usize;
        division.slice = (division.longest().div_ceil(rounds)).div_ceil(unit).max(1) * unit;
        division
    }

    /// The first byte of a share; that of share `leaders` is the end.
    pub fn start(&self, share: usize) -> usize {
        let units = self.bytes.div_ceil(self.unit);
        (units * share / self.leaders * self.unit).min(self.bytes)
    }

    fn longest(&self) -> usize {
        self.bytes.div_ceil(self.unit).div_ceil(self.leaders) * self.unit
    }

    fn rounds(&self) -> u64 {
        self.longest().div_ceil(self.slice).max(1) as u64
    }

    /// Offset and length of a slice; empty where a share has no such slice.
    fn range(&self, share: usize, round: u64) -> (usize, usize) {
        let end = self.start(share + 1);
        let at = (self.start(share) + round as usize * self.slice).min(end);
        (at, self.slice.min(end - at))
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl Engine {
    /// An allreduce: all ranks take all shares.
    pub fn shares_allreduce(&mut self, choice: &Choice, reduction: Reduction<'_>, tag: u32) -> Result<()> {
        self.reduce_shares(choice, Takers::All, reduction, tag)
    }

    /// A reduction: the root takes all shares.
    pub fn shares_reduce(&mut self, choice: &Choice, root: usize, reduction: Reduction<'_>, tag: u32) -> Result<()> {
        self.reduce_shares(choice, Takers::Root(root), reduction, tag)
    }

    /// A reduce-scatter: each leader keeps its share, at its place in `reduction.recv`.
    pub fn shares_to_leaders(&mut self, choice: &Choice, reduction: Reduction<'_>, tag: u32) -> Result<()> {
        self.reduce_shares(choice, Takers::Owners, reduction, tag)
    }

    /// An allgather: all ranks take all shares, each from its leader, who has it at its place in `buffer`.
    pub fn shares_from_leaders(
        &mut self,
        choice: &Choice,
        buffer: *mut u8,
        bytes: usize,
        element: usize,
        tag: u32,
    ) -> Result<()> {
        self.cut_cells(choice)?;
        self.find_leaders(choice);
        let division = Division::new(bytes, element, choice.leaders, choice.down_cell);
        let Self { board, down, leaders, down_pace, .. } = self;
        let first = down.next_position();
        let mut parts = Handing { board, pace: down_pace, first, leaders, division, cell: choice.down_cell, buffer };
        shares::spread(board, down, leaders, division.rounds(), tag, &mut parts)
    }

    /// Notes who leads, for the number of leaders that was chosen.
    fn find_leaders(&mut self, choice: &Choice) {
        if self.leaders.len() != choice.leaders {
            let size = self.board.size();
            self.leaders = (0..choice.leaders).map(|share| leader_of(share, choice.leaders, size)).collect();
        }
    }

    fn reduce_shares(&mut self, choice: &Choice, takers: Takers, reduction: Reduction<'_>, tag: u32) -> Result<()> {
        self.cut_cells(choice)?;
        self.find_leaders(choice);
        let division = Division::new(reduction.bytes, reduction.fold.element, choice.leaders, choice.up_cell);
        let Self { board, up, down, operands, leaders, up_pace, down_pace, piece, .. } = self;
        let shares = Shares { leaders, rounds: division.rounds(), takers };
        let keeps = match takers {
            Takers::All | Takers::Owners => true,
            Takers::Root(root) => root == board.rank(),
        };
        let taker = match takers {
            Takers::Root(root) => root,
            _ => (board.rank() + 1) % board.size(),
        };
        let mut work = Slicing {
            board,
            up_pace,
            down_pace,
            first: (up.next_position(), down.next_position()),
            piece,
            leaders,
            division,
            cell: choice.up_cell,
            reduction,
            operands,
            keeps,
            taker,
        };
        shares::run(board, up, down, shares, tag, &mut work)
    }
}

/// The payload of one call.
struct Slicing<'a> {
    board: &'a SharedBoard,
    up_pace: &'a mut Pace,
    down_pace: &'a mut Pace,
    /// The first position of the call in the up and in the down ring.
    first: (u64, u64),
    piece: &'a mut Piece,
    leaders: &'a [usize],
    division: Division,
    cell: usize,
    reduction: Reduction<'a>,
    operands: &'a mut Vec<*const u8>,
    /// Whether this rank takes results.
    keeps: bool,
    /// A rank that takes this rank's results.
    taker: usize,
}

impl Slicing<'_> {
    /// The position of a contribution.
    fn up_position(&self, round: u64, leader: usize) -> u64 {
        self.first.0 + round * self.leaders.len() as u64 + leader as u64
    }
}

impl Work for Slicing<'_> {
    fn contribute(&mut self, round: u64, leader: usize, slot: usize) {
        let (at, len) = self.division.range(leader, round);
        let cell = self.board.up_cell(self.board.rank(), slot, self.cell);
        let (send, position) = (self.reduction.send.wrapping_add(at), self.up_position(round, leader));
        self.up_pace.writing(self.board, position, self.leaders[leader], len, |way| {
            // SAFETY: `at + len <= bytes` of the caller's buffer; the slot is claimed, `len` bytes fit its cell.
            unsafe { copy_in(send, cell, len, way) };
        });
        add(&self.board.tally.loaded, len);
        add(&self.board.tally.stored, len);
    }

    fn fold(&mut self, round: u64, leader: usize, up: usize, down: Option<usize>) {
        let (at, len) = self.division.range(leader, round);
        let (board, rank) = (self.board, self.board.rank());
        self.operands.clear();
        self.operands.extend((0..board.size()).map(|from| match from == rank {
            true => self.reduction.send.wrapping_add(at),
            false => board.up_cell(from, up, self.cell).cast_const(),
        }));
        let own = self.keeps.then(|| self.reduction.recv.wrapping_add(at));
        let shared = down.map(|slot| board.down_cell(rank, slot, self.cell));
        let (up_position, down_position) = (self.up_position(round, leader), self.first.1 + round);
        let Self { down_pace, piece, operands, taker, reduction, .. } = self;
        let count = operands.len();
        reading(board, RingName::Up, up_position, len, || match (own, shared) {
            (own, Some(shared)) => down_pace.writing(board, down_position, *taker, len, |way| {
                // SAFETY: everybody's slot is published, so that `len` bytes of it are written and will not change; the
                // result goes to the caller's buffer and to the own claimed slot, which is no operand.
                unsafe { fold_in(reduction.fold, operands, own, shared, len, way, piece) };
            }),
            // SAFETY: the same, with the caller's buffer alone.
            (Some(own), None) => unsafe { reduction.fold.apply(own, operands, len) },
            (None, None) => unreachable!("a leader keeps its result, or gives it to the root, or both"),
        });
        add(&board.tally.loaded, count * len);
        add(&board.tally.stored, len);
        if own.is_some() && shared.is_some() {
            add(&board.tally.loaded, len);
            add(&board.tally.stored, len);
        }
    }

    fn take(&mut self, round: u64, leader: usize, slot: usize) {
        let range = self.division.range(leader, round);
        // SAFETY: the slot is published, and not reused before this rank says so.
        unsafe {
            take_slice(
                self.board,
                self.first.1 + round,
                self.leaders[leader],
                slot,
                self.cell,
                self.reduction.recv,
                range,
            )
        };
    }
}

/// The payload of an allgather of shares.
struct Handing<'a> {
    board: &'a SharedBoard,
    pace: &'a mut Pace,
    /// The first position of the call.
    first: u64,
    leaders: &'a [usize],
    division: Division,
    cell: usize,
    buffer: *mut u8,
}

impl Parts for Handing<'_> {
    fn give(&mut self, round: u64, leader: usize, slot: usize) {
        let (at, len) = self.division.range(leader, round);
        let cell = self.board.down_cell(self.board.rank(), slot, self.cell);
        let (from, reader) = (self.buffer.wrapping_add(at), (self.board.rank() + 1) % self.board.size());
        self.pace.writing(self.board, self.first + round, reader, len, |way| {
            // SAFETY: `at + len <= bytes` of the caller's buffer; the slot is claimed, `len` bytes fit its cell.
            unsafe { copy_in(from, cell, len, way) };
        });
        add(&self.board.tally.loaded, len);
        add(&self.board.tally.stored, len);
    }

    fn take(&mut self, round: u64, leader: usize, slot: usize) {
        let range = self.division.range(leader, round);
        // SAFETY: the slot is published, and not reused before this rank says so.
        unsafe {
            take_slice(self.board, self.first + round, self.leaders[leader], slot, self.cell, self.buffer, range)
        };
    }
}

/// Copies a slice out of a leader's down slot to its place in the caller's buffer.
///
/// # Safety
/// The slot is published and not reused meanwhile; the slice lies within the caller's buffer, and fits a cell.
unsafe fn take_slice(
    board: &SharedBoard,
    position: u64,
    leader: usize,
    slot: usize,
    cell: usize,
    buffer: *mut u8,
    (at, len): (usize, usize),
) {
    reading(board, RingName::Down, position, len, || {
        // SAFETY: by contract; a private buffer does not overlap a cell.
        unsafe { copy_out(board.down_cell(leader, slot, cell), buffer.wrapping_add(at), len) };
    });
    add(&board.tally.loaded, len);
    add(&board.tally.stored, len);
}

/// The rank of the leader of a share: spread evenly over `size` ranks.
pub(crate) fn leader_of(share: usize, leaders: usize, size: usize) -> usize {
    share * size / leaders
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn slices_cover_a_vector_once(n in 0usize..5000, element in 1usize..100, leaders in 1usize..20, cell in 1usize..20) {
            let cell = cell * LINE;
            prop_assume!(element <= cell);
            let bytes = n * element;
            let division = Division::new(bytes, element, leaders, cell);
            prop_assert!(division.slice <= cell);
            let mut at = 0;
            for share in 0..leaders {
                for round in 0..division.rounds() {
                    let (start, len) = division.range(share, round);
                    prop_assert!(len == 0 || start == at);
                    prop_assert_eq!(len % element, 0);
                    at += len;
                }
            }
            prop_assert_eq!(at, bytes);
        }
    }
}
