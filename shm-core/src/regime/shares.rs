//! Regime 3: every leader owns a share of the vector and folds everybody's contribution to it.
//!
//! A contribution is copied once, to a cell; the leader folds all p of them in one pass, its own from the private
//! buffer, straight into its result, which the others copy out: (5p-2)n bytes loaded and stored for an allreduce of n
//! bytes on p ranks with p leaders. Contributions are combined in rank order, for every operator.
//!
//! Of two ranks each leader stores its result over the contribution that it folds, where the other takes it: cells go
//! to and fro, and nobody stores to lines that another core holds.

use super::division::{Division, leader_of};
use super::handing::Handing;
use super::lend::{Lending, Source};
use super::operands::{Input, Operands, fold_two};
use super::{Engine, Reduction};
use crate::ask::FAR_AHEAD_FROM;
use crate::board::SharedBoard;
use crate::counters::add;
use crate::error::{Error, Result};
use crate::pace::{Lines, Pace, Slice, Way, reading, reading_of};
use crate::payload::{Manner, copy_in, copy_in_again};
use crate::protocol::shares::{self, Shares, Takers, Work};
use crate::protocol::{Board, Location, Place, RingName};
use crate::select::{Choice, Collective};
use crate::shared_result::{View, Viewer};

impl Engine {
    /// An allreduce: all ranks take all shares.
    pub fn shares_allreduce(&mut self, choice: &Choice, reduction: Reduction<'_>, tag: u32) -> Result<()> {
        self.reduce_shares(choice, Takers::All, reduction, tag, false)
    }

    /// An allreduce whose result all ranks look at where rank 0 has it, at `reduction.recv` (null elsewhere); returns
    /// where that is.
    pub fn shares_allreduce_shared(&mut self, choice: &Choice, reduction: Reduction<'_>, tag: u32) -> Result<*mut u8> {
        debug_assert_eq!(choice.leaders, self.board.size(), "every rank hears of rank 0 where the result lies");
        if let Err(error) = self.cut_cells(choice) {
            if provides(&self.board, &reduction) {
                // Nobody was told of it.
                self.shared.abandon(self.board.seat(), reduction.recv, self.board.size());
            }
            return Err(error);
        }
        let reduced = self.reduce_shares(choice, Takers::All, reduction, tag, true);
        let at = self.results.first().copied().flatten().unwrap_or(reduction.recv);
        let Self { board, shared, .. } = self;
        // Rank 0 has named no place, though its call has the same tag: its vector is empty.
        let reduced = match at.is_null() && reduction.bytes > 0 {
            true => reduced.and_then(|()| Err(board.differs(0, 0, reduction.bytes))),
            false => reduced,
        };
        reduced.map(|()| at).inspect_err(|_| {
            let provides = provides(board, &reduction);
            if provides || board.sees_result() {
                let viewer = Viewer { seat: board.seat(), rank: board.rank(), size: board.size() };
                View::of(viewer, at, reduction.bytes).leave();
            }
            if provides {
                shared.abandon(board.seat(), at, board.never_saw_result());
            }
        })
    }

    /// A reduction: the root takes all shares.
    pub fn shares_reduce(&mut self, choice: &Choice, root: usize, reduction: Reduction<'_>, tag: u32) -> Result<()> {
        self.reduce_shares(choice, Takers::Root(root), reduction, tag, false)
    }

    /// A reduce-scatter: each leader keeps its share, at its place in `reduction.recv`.
    pub fn shares_to_leaders(&mut self, choice: &Choice, reduction: Reduction<'_>, tag: u32) -> Result<()> {
        self.reduce_shares(choice, Takers::Owners, reduction, tag, false)
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
        let Self { board, up, down, leaders, sources, thresholds, down_pace, .. } = self;
        let (rounds, first) = (division.rounds(), down.next_position());
        let place = match leaders.contains(&board.rank()) {
            true => thresholds.place(board, Collective::Broadcast, buffer, bytes),
            false => Place::Cell,
        };
        let location = Location::whole_at(place, bytes);
        sources.clear();
        sources.resize(leaders.len(), Source::Cell);
        let lending = Lending::begin(board, (up, 0), (down, rounds));
        let cell = choice.down_cell;
        let mut parts = Handing {
            board,
            pace: down_pace,
            first,
            leaders,
            division,
            cell,
            buffer,
            location,
            sources,
            trouble: None,
        };
        let ended = shares::spread(board, down, leaders, rounds, tag, &mut parts);
        lending.end(ended)
    }

    /// Notes who leads, for the number of leaders that was chosen.
    fn find_leaders(&mut self, choice: &Choice) {
        if self.leaders.len() != choice.leaders {
            let size = self.board.size();
            self.leaders = (0..choice.leaders).map(|share| leader_of(share, choice.leaders, size)).collect();
        }
    }

    fn reduce_shares(
        &mut self,
        choice: &Choice,
        takers: Takers,
        reduction: Reduction<'_>,
        tag: u32,
        shared: bool,
    ) -> Result<()> {
        self.cut_cells(choice)?;
        self.find_leaders(choice);
        let division = Division::new(reduction.bytes, reduction.fold.element, choice.leaders, choice.up_cell);
        let Self { board, up, down, operands, sources, results, leaders, thresholds, up_pace, down_pace, .. } = self;
        let (rounds, rank) = (division.rounds(), board.rank());
        let (keeps, what) = match takers {
            // A shared result is stored where rank 0 has it.
            Takers::All => (!shared || rank == 0, Collective::Allreduce),
            Takers::Owners => (true, Collective::Reduce),
            Takers::Root(root) => (root == rank, Collective::Reduce),
        };
        let Reduction { send, recv, bytes, .. } = reduction;
        let place = thresholds.place(board, what, send, bytes);
        let wants = keeps && takers != Takers::Owners && board.size() > 1;
        let wanted = if !wants {
            None
        } else if shared {
            board.seat().mapping().heap_offset(recv, bytes).filter(|_| bytes > 0)
        } else {
            thresholds.heap_offset(board, what, recv, bytes)
        };
        let contribution = Location::whole_at(place, bytes).wanting(wanted, bytes);
        let result = match takers {
            Takers::All if !shared => Location::slice_at(thresholds.place(board, what, recv, bytes), bytes),
            _ => Location::CELL,
        };
        // In place it lies in the caches already; what all look at should stay there.
        let way = match shared || send == recv {
            true => Way::Cached,
            false => thresholds.way_of_results(2 * board.size() * bytes),
        };
        sources.clear();
        sources.resize(board.size(), Source::Cell);
        results.clear();
        results.resize(board.size(), None);
        let lending = Lending::begin(board, (up, rounds * leaders.len() as u64), (down, rounds));
        let cell = choice.up_cell;
        let takes_from_slots = wants && !shared && wanted.is_none();
        let comes_back =
            board.size() == 2 && takes_from_slots && up.slots() >= shares::up_slots_to_give_back(leaders.len());
        // A rank that takes this rank's results.
        let taker = match takers {
            Takers::Root(root) => root,
            _ => (rank + 1) % board.size(),
        };
        let mut work = Slicing {
            board,
            up_pace,
            down_pace,
            first: (up.next_position(), down.next_position()),
            taker,
            leaders,
            division,
            cell,
            reduction,
            operands,
            sources,
            results,
            keeps,
            shared,
            comes_back,
            way,
            contribution,
            result,
            trouble: None,
        };
        let ended = shares::run(board, up, down, Shares { leaders, rounds, takers }, tag, &mut work);
        lending.end(ended)
    }
}

/// The payload of one call.
struct Slicing<'a> {
    board: &'a SharedBoard,
    up_pace: &'a mut Pace,
    down_pace: &'a mut Pace,
    /// The first position of the call in the up and in the down ring.
    first: (u64, u64),
    leaders: &'a [usize],
    division: Division,
    cell: usize,
    reduction: Reduction<'a>,
    operands: &'a mut Operands,
    /// Where each rank's contribution lies.
    sources: &'a mut [Source],
    /// Where each other rank wants the result, if this rank can store it there.
    results: &'a mut [Option<*mut u8>],
    /// Whether this rank takes results.
    keeps: bool,
    /// A rank that takes this rank's results.
    taker: usize,
    /// Whether all look at one result, that of rank 0.
    shared: bool,
    /// Whether results come back in the own up cells, as a rule.
    comes_back: bool,
    /// How results are stored in buffers.
    way: Way,
    contribution: Location,
    result: Location,
    /// What was wrong with a place that another rank told.
    trouble: Option<Error>,
}

impl Slicing<'_> {
    /// The position of a contribution.
    fn up_position(&self, round: u64, leader: usize) -> u64 {
        self.first.0 + round * self.leaders.len() as u64 + leader as u64
    }

    fn find(&mut self, rank: usize, location: Location) -> Result<()> {
        let (bytes, align) = (self.reduction.bytes, self.reduction.fold.align);
        self.sources[rank] = Source::find(self.board, rank, location, bytes, align)?;
        self.results[rank] = match location.result {
            Some(offset) => {
                let at = self.board.seat().mapping().heap_pointer(offset, bytes, align)?;
                if self.shared {
                    self.board.see_result();
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
            true => reading_of(board, RingName::Up, up_position, (len, board.size() - 1), combine),
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

    fn contribute(&mut self, round: u64, leader: usize, slot: usize) {
        let (at, len) = self.division.range(leader, round);
        let cell = self.board.up_cell(self.board.rank(), slot, self.cell);
        let (send, position) = (self.reduction.send.wrapping_add(at), self.up_position(round, leader));
        let filled = Slice { position, slot, bytes: len, reader: self.leaders[leader] };
        match self.comes_back {
            // SAFETY: `at + len <= bytes` of the caller's buffer; the slot is claimed, `len` bytes fit its cell.
            true => self.up_pace.writing_to(self.board, filled, Lines::Here, |way| unsafe {
                copy_in_again(send, cell, len, way);
            }),
            // SAFETY: the same.
            false => self.up_pace.writing(self.board, filled, |way| unsafe { copy_in(send, cell, len, way) }),
        }
        add(&self.board.tally.loaded, len);
        add(&self.board.tally.stored, len);
    }

    fn fold(&mut self, round: u64, leader: usize, up: usize, down: Option<usize>) -> Result<()> {
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
        reading(board, RingName::Up, self.up_position(round, leader), len, || {
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
        // SAFETY: the slot is published, and its payload does not change before this rank says so; the slice lies
        // within the caller's buffer.
        let mut copy = || copied = unsafe { input.copy(manner, self.board, to, len) };
        match source.is_lent() {
            true => copy(),
            false => reading(self.board, RingName::Down, self.first.1 + round, len, copy),
        }
        copied
    }
}

/// Whether a rank provides the memory of a shared result.
fn provides(board: &SharedBoard, reduction: &Reduction<'_>) -> bool {
    board.rank() == 0 && reduction.bytes > 0
}
