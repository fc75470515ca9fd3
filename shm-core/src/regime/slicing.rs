//! The payload of a data-partitioned reduction: contributions, folds and results, slice by slice.

use super::Reduction;
use super::back::Back;
use super::division::Division;
use super::lend::Source;
use super::operands::{Input, Operands, fold_two};
use crate::ask::FAR_AHEAD_FROM;
use crate::board::SharedBoard;
use crate::counters::add;
use crate::error::{Error, Result};
use crate::pace::{Lines, Pace, Slice, Taken, Way, reading, reading_of, taking_out};
use crate::payload::{Manner, copy_in, copy_in_again};
use crate::protocol::shares::{Takers, Work};
use crate::protocol::{Board, Location, Place, RingName};

/// How often one of two ranks looks for what the root of a reduction contributes, before it goes on without that: for
/// as long as ranks that begin at once differ.
const LOOKS: u32 = 32;

/// The payload of one call.
pub(super) struct Slicing<'a> {
    pub board: &'a SharedBoard,
    pub up_pace: &'a mut Pace,
    pub down_pace: &'a mut Pace,
    /// The first position of the call in the up and in the down ring.
    pub first: (u64, u64),
    pub leaders: &'a [usize],
    pub division: Division,
    pub cell: usize,
    pub reduction: Reduction<'a>,
    pub operands: &'a mut Operands,
    /// Where each rank's contribution lies.
    pub sources: &'a mut [Source],
    /// Where each other rank wants the result, if this rank can store it there.
    pub results: &'a mut [Option<*mut u8>],
    /// Whether this rank takes results.
    pub keeps: bool,
    /// A rank that takes this rank's results.
    pub taker: usize,
    /// Whether all look at one result, that of rank 0.
    pub shared: bool,
    /// Whether the next ones are each rank's own: what rank 0 says.
    pub next_own: &'a mut bool,
    /// The results that come back in the own up cells, if they do as a rule.
    pub back: Option<Back<'a>>,
    /// How results are stored in buffers.
    pub way: Way,
    pub contribution: Location,
    pub result: Location,
    /// What was wrong with a place that another rank told.
    pub trouble: Option<Error>,
}

impl Slicing<'_> {
    /// The position of a contribution.
    fn up_position(&self, round: u64, leader: usize) -> u64 {
        self.first.0 + round * self.leaders.len() as u64 + leader as u64
    }

    fn find(&mut self, rank: usize, location: Location) -> Result<()> {
        if let Some(back) = &mut self.back {
            back.found();
        }
        let (bytes, align) = (self.reduction.bytes, self.reduction.fold.align);
        self.sources[rank] = Source::find(self.board, rank, location, bytes, align)?;
        self.results[rank] = match location.result {
            Some(offset) => {
                let at = self.board.seat().mapping().heap_pointer(offset, bytes, align)?;
                if self.shared {
                    self.board.see_result();
                    *self.next_own = location.next_own;
                }
                Some(at)
            }
            None => None,
        };
        Ok(())
    }

    /// Folds everybody's part of a slice of the own share to where it is wanted, and to the cell `to`: that of the own
    /// slot `down`, which is filled in the best way, or one that goes back.
    fn fold_into(
        &mut self,
        round: u64,
        leader: usize,
        up: usize,
        to: Option<*mut u8>,
        down: Option<usize>,
    ) -> Result<()> {
        if let Some(error) = self.trouble.take() {
            return Err(error);
        }
        let (at, len) = self.division.range(leader, round);
        let (board, rank) = (self.board, self.board.rank());
        let Operands { inputs, results, .. } = &mut *self.operands;
        inputs.clear();
        inputs.extend((0..board.size()).map(|from| match from == rank {
            true => Input::Own(self.reduction.send.wrapping_add(at)),
            false => self.sources[from].input(from, board.up_cell(from, up, self.cell).cast_const(), at),
        }));
        results.clear();
        // The last one is that which may be stored in another way than the others.
        let to_first = self.way == Way::Streamed && to.is_some() && down.is_none();
        results.extend(to.filter(|_| to_first));
        let own = self.keeps.then(|| self.reduction.recv.wrapping_add(at));
        results.extend(own.filter(|_| !to_first));
        results.extend(self.results.iter().flatten().map(|result| result.wrapping_add(at)));
        results.extend(own.filter(|_| to_first));
        results.extend(to.filter(|_| !to_first));
        let way = if to_first || to.is_none() { self.way } else { Way::Cached };
        let (up_position, down_position) = (self.up_position(round, leader), self.first.1 + round);
        let in_cells = board.size() > 1 && !self.sources.iter().any(|source| source.is_lent());
        let Self { down_pace, operands, taker, reduction, .. } = self;
        let mut folded = Ok(());
        // SAFETY: everybody's slot is published, so that `len` bytes of its payload are written and will not change;
        // the result goes to the caller's buffer, to those that others want it in, who wait for it, and to a cell that
        // this rank holds. Of these a rank's receive buffer can be an operand, namely its own in place, and the cell
        // that it goes back to.
        let mut fold = |way| folded = unsafe { operands.fold(board, &reduction.fold, (len, reduction.bytes), way) };
        let combine = || match down {
            Some(slot) => {
                down_pace.writing(board, Slice { position: down_position, slot, bytes: len, reader: *taker }, fold);
            }
            None => fold(way),
        };
        match in_cells {
            true => reading_of(board, up_position, (len, board.size() - 1), combine),
            false => combine(),
        }
        folded
    }
}

impl Work for Slicing<'_> {
    fn contribution(&self) -> Location {
        self.contribution
    }

    fn has(&self, rank: usize) -> bool {
        self.sources[rank].is_lent()
    }

    fn note(&mut self, rank: usize, location: Location) {
        if let Err(error) = self.find(rank, location) {
            self.trouble = Some(error);
        }
    }

    fn serves(&self, takers: Takers) -> bool {
        match takers {
            Takers::All if self.shared => self.keeps || self.results[0].is_some(),
            Takers::All => {
                (0..self.results.len()).all(|rank| rank == self.board.rank() || self.results[rank].is_some())
            }
            Takers::Root(root) => self.results[root].is_some(),
            Takers::Owners => true,
        }
    }

    fn is_served(&self) -> bool {
        self.shared || self.contribution.result.is_some()
    }

    fn result(&self) -> Location {
        self.result
    }

    fn gives_back(&self) -> bool {
        true
    }

    fn may_decline(&self) -> bool {
        true
    }

    fn patience(&self) -> u32 {
        if self.board.seat().patience.spins > 0 { LOOKS } else { 1 }
    }

    fn contribute(&mut self, round: u64, leader: usize, slot: usize) {
        let (at, len) = self.division.range(leader, round);
        let cell = self.board.up_cell(self.board.rank(), slot, self.cell);
        let (send, position) = (self.reduction.send.wrapping_add(at), self.up_position(round, leader));
        // Its own part of what it does not fold goes to who takes the result.
        let folds = self.leaders[leader];
        let reader = if folds == self.board.rank() { self.taker } else { folds };
        let filled = Slice { position, slot, bytes: len, reader };
        match self.back.is_some() {
            // SAFETY: `at + len <= bytes` of the caller's buffer; the slot is claimed, `len` bytes fit its cell.
            true => self.up_pace.writing_to(self.board, filled, Lines::Here, |way| unsafe {
                copy_in_again(send, cell, len, way);
            }),
            // SAFETY: the same.
            false => self.up_pace.writing(self.board, filled, |way| unsafe { copy_in(send, cell, len, way) }),
        }
        if let Some(back) = &mut self.back {
            back.contributed();
        }
        add(&self.board.tally.loaded, len);
        add(&self.board.tally.stored, len);
    }

    fn fold(&mut self, round: u64, leader: usize, up: usize, down: Option<usize>) -> Result<()> {
        if let (Some(back), true) = (&mut self.back, self.leaders[leader] != self.board.rank()) {
            back.declined();
        }
        let to = down.map(|slot| self.board.down_cell(self.board.rank(), slot, self.cell));
        self.fold_into(round, leader, up, to, down)
    }

    fn fold_back(&mut self, round: u64, leader: usize, up: usize) -> Result<()> {
        let (board, rank) = (self.board, self.board.rank());
        let cell = board.up_cell(1 - rank, up, self.cell);
        let Reduction { send, recv, bytes, fold } = self.reduction;
        if !self.keeps || self.way == Way::Streamed || self.trouble.is_some() {
            return self.fold_into(round, leader, up, Some(cell), None);
        }
        let (at, len) = self.division.range(leader, round);
        let (own, theirs) = (send.wrapping_add(at), cell.cast_const());
        let operands = if rank == 0 { [own, theirs] } else { [theirs, own] };
        let results = [recv.wrapping_add(at), cell];
        reading(board, self.up_position(round, leader), len, || {
            // SAFETY: the other's slot is published, so that `len` bytes of its payload are written and will not change
            // but by this rank, to which the cell belongs until the result in it is published; as many of the caller's
            // buffers are there. Each of the results may be one of the operands, at the same place; the two do not
            // overlap.
            unsafe { fold_two(board, &fold, results, operands, 1 - rank, (len, bytes)) };
        });
        Ok(())
    }

    fn take(&mut self, round: u64, leader: usize, slot: usize, location: Location) -> Result<()> {
        let (at, len) = self.division.range(leader, round);
        let from = self.leaders[leader];
        let source = Source::find(self.board, from, location, self.reduction.bytes, self.reduction.fold.align)?;
        let cell = match location.place {
            Place::Back => self.board.up_cell(self.board.rank(), slot, self.cell),
            _ => self.board.down_cell(from, slot, self.cell),
        };
        let input = source.input(from, cell, at);
        let (to, mut copied) = (self.reduction.recv.wrapping_add(at), Ok(()));
        let manner = match Manner::of(self.way, self.reduction.bytes) {
            // Of two ranks each has stored its results before it takes any, as a rule.
            Manner::Asking if self.board.size() == 2 && len >= FAR_AHEAD_FROM => Manner::Settled,
            manner if location.place == Place::Cell => manner.behind(self.board.told(RingName::Down, from, slot), len),
            manner => manner,
        };
        let manner = match &mut self.back {
            Some(back) if location.place == Place::Back => back.manner(manner, len),
            _ => manner,
        };
        // SAFETY: the slot is published, and its payload does not change before this rank says so; the slice lies
        // within the caller's buffer.
        let mut copy = || copied = unsafe { input.copy(manner, self.board, to, len) };
        match location.place == Place::Cell {
            false => copy(),
            true => {
                let position = self.first.1 + round;
                let taken = Taken { writer: from, slot, position, bytes: len, to, manner };
                // SAFETY: it fills so much of the caller's buffer; others store results there if this rank told them of
                // it, and then it takes none.
                unsafe { taking_out(self.board, taken, copy) }
            }
        }
        copied
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::{Duration, Instant};

    use crate::job::{Job, JobSpec};
    use crate::operator::{Sum, User};

    /// Elements of 64 KiB.
    const COUNT: usize = 8192;

    /// What a rank contributes to a call.
    fn own(rank: usize, call: usize) -> Vec<u64> {
        (0..COUNT as u64).map(|i| i * 7 + (call * 10 + rank) as u64).collect()
    }

    /// Reductions to `root`, of which `first` is through with so many calls before the other one begins, who waits for
    /// that; then all are checked.
    fn one_after_the_other(root: usize, first: Option<usize>, calls: usize) {
        let mut spec = JobSpec::new(2).unwrap();
        spec.tuning.force("reduce:shares,leaders=2,share_cell=16K,share_downs=64").unwrap();
        let through = AtomicUsize::new(0);
        Job::create(&spec).unwrap().on_threads(|comm| {
            let (rank, process) = (comm.rank(), comm.process_at_rank(root));
            let ordered = User::ordered(|left: &mut [u64], right: &[u64]| {
                left.iter_mut().zip(right).for_each(|(left, right)| *left = *left * 3 + right);
            });
            let end = Instant::now() + Duration::from_secs(30);
            while first.is_some_and(|first| first != rank) && through.load(Ordering::SeqCst) < calls {
                assert!(Instant::now() < end, "rank {} waits for the root {root}", 1 - rank);
                std::thread::yield_now();
            }
            for call in 0..calls {
                let mine = own(rank, call);
                if rank == root {
                    let mut result = vec![0; COUNT];
                    let (a, b) = (own(0, call), own(1, call));
                    process.reduce_into_root(&mine, &mut result, ordered).unwrap();
                    assert!((0..COUNT).all(|i| result[i] == a[i] * 3 + b[i]), "call {call} to {root}");
                    process.reduce_into_root(&mine, &mut result, Sum).unwrap();
                    assert!((0..COUNT).all(|i| result[i] == a[i] + b[i]), "sum {call} to {root}");
                } else {
                    process.reduce_into(&mine, ordered).unwrap();
                    process.reduce_into(&mine, Sum).unwrap();
                }
                through.fetch_add(1, Ordering::SeqCst);
            }
        });
    }

    /// Who is not the root does not wait for it, as far as cells go.
    #[test]
    fn a_late_root_holds_nobody_up() {
        for root in [0, 1] {
            one_after_the_other(root, Some(1 - root), 6);
        }
    }

    /// At once, and so in any order.
    #[test]
    fn both_share_the_work() {
        for root in [0, 1] {
            one_after_the_other(root, None, 300);
        }
    }
}
