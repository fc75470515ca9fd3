//! Regime 3: every leader owns a share of the vector and folds everybody's contribution to it.
//!
//! A contribution is copied once, to a cell; the leader folds all p of them in one pass, its own from the private
//! buffer, straight into its result, which the others copy out: (5p-2)n bytes loaded and stored for an allreduce of n
//! bytes on p ranks with p leaders. Contributions are combined in rank order, for every operator.
//!
//! Of two ranks each leader stores its result over the contribution that it folds, where the other takes it: cells go
//! to and fro, and nobody stores to lines that another core holds.

use super::back::Back;
use super::division::{Division, leader_of};
use super::handing::Handing;
use super::lend::{Lending, Source};
use super::slicing::Slicing;
use super::{Engine, Reduction};
use crate::board::SharedBoard;
use crate::error::Result;
use crate::pace::Way;
use crate::protocol::shares::{self, Shares, Takers};
use crate::protocol::{Board, Location, Place, RingName, spread};
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
        // Rank 0 has named no place, though its call has the same tag: its vector is empty.
        let reduced = match at.is_null() && reduction.bytes > 0 {
            true => reduced.and_then(|()| Err(self.board.differs(0, 0, reduction.bytes))),
            false => reduced,
        };
        if reduced.is_ok() {
            self.heed_own_view(reduction.bytes, self.next_own);
        }
        let Self { board, shared, .. } = self;
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
        let first = self.up.next_position();
        let done = self.reduce_shares(choice, Takers::Root(root), reduction, tag, false).map(|_| ());
        self.settle_if_tried((RingName::Up, None), first, done)
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
        let ended = spread::run(board, down, leaders, rounds, tag, &mut parts);
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
        let Reduction { send, recv, bytes, .. } = reduction;
        self.next_own = shared && self.says_own_view(bytes);
        let buffers = ([send, recv.cast_const()], bytes);
        let thresholds = match takers {
            Takers::All if !shared => self.thresholds_of_call(Collective::Allreduce, buffers, None),
            Takers::Root(_) => self.thresholds_of_call(Collective::Reduce, buffers, Some((RingName::Up, None))),
            _ => self.thresholds,
        };
        let Self { board, up, down, operands, sources, results, leaders, up_pace, down_pace, backs, next_own, .. } =
            self;
        let (rounds, rank) = (division.rounds(), board.rank());
        let (keeps, what) = match takers {
            // A shared result is stored where rank 0 has it.
            Takers::All => (!shared || rank == 0, Collective::Allreduce),
            Takers::Owners => (true, Collective::Reduce),
            Takers::Root(root) => (root == rank, Collective::Reduce),
        };
        let place = thresholds.place(board, what, send, bytes);
        let wants = keeps && takers != Takers::Owners && board.size() > 1;
        let wanted = if !wants {
            None
        } else if shared {
            board.in_heap(recv, bytes)
        } else {
            thresholds.heap_offset(board, what, recv, bytes)
        };
        let contribution = Location::whole_at(place, bytes).wanting(wanted, bytes).with_next_own(*next_own);
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
        let takes_from_slots = wants && !shared && wanted.is_none() && !contribution.is_lent();
        let comes_back =
            board.size() == 2 && takes_from_slots && up.slots() >= shares::up_slots_to_give_back(leaders.len());
        let backs = &mut backs[usize::from(takers == Takers::All)];
        let back = comes_back.then(|| Back::new(backs, up.next_position(), bytes));
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
            next_own,
            back,
            way,
            contribution,
            result,
            trouble: None,
        };
        let ended = shares::run(board, up, down, Shares { leaders, rounds, takers }, tag, &mut work);
        lending.end(ended)?;
        work.back.into_iter().for_each(Back::ended);
        Ok(())
    }
}

/// Whether a rank provides the memory of a shared result.
fn provides(board: &SharedBoard, reduction: &Reduction<'_>) -> bool {
    board.rank() == 0 && reduction.bytes > 0
}
