//! Reductions through shares, and their two halves, with payload whose every value is known.

use shm_core::Result;
use shm_core::protocol::shares::{self, Shares, Takers, Work, up_slots_to_give_back};
use shm_core::protocol::spread::{self, Parts};
use shm_core::protocol::{Board, Location, Place, RingName};

use super::calls::{TAG, sum_of_all};
use super::rank::Rank;
use super::world::{ModelBoard, expect_value, word_of};

impl Rank {
    /// Every rank gets all shares of the sum.
    pub fn allreduce_shares(&mut self, leaders: &[usize], rounds: u64) {
        self.reduce(leaders, rounds, Takers::All, false);
    }

    /// The root gets all shares of the sum.
    pub fn reduce_shares(&mut self, leaders: &[usize], rounds: u64, root: usize) {
        self.reduce(leaders, rounds, Takers::Root(root), false);
    }

    /// The same, where a leader goes on without a root that it does not find.
    pub fn reduce_shares_may_decline(&mut self, leaders: &[usize], rounds: u64, root: usize) {
        self.reduce(leaders, rounds, Takers::Root(root), true);
    }

    /// Each leader gets its share of the sum.
    pub fn reduce_to_leaders(&mut self, leaders: &[usize], rounds: u64) {
        self.reduce(leaders, rounds, Takers::Owners, false);
    }

    fn reduce(&mut self, leaders: &[usize], rounds: u64, takers: Takers, declines: bool) {
        let Self { board, up, down, .. } = self;
        let first = (up.next_position(), up.slots() as u64);
        let counts = Counts::default();
        let mut slices = Slices { board, leaders, first, declines, done: Vec::new(), counts };
        shares::run(board, up, down, Shares { leaders, rounds, takers }, TAG, &mut slices).unwrap();
        let Slices { done, counts: Counts { folded, taken, came_back, declined }, .. } = slices;
        let gives_back = board.size() == 2 && up.slots() >= up_slots_to_give_back(leaders.len());
        assert_eq!(came_back, if gives_back { taken } else { 0 });
        // All contributions, all folds, all takes; or in turns, which come to the same for the first rounds of those
        // that do not fold.
        let phases = gives_back && rounds <= (up.slots() / leaders.len()).min(down.slots()) as u64;
        let few = rounds < if folded > 0 { 3 } else { 4 };
        let of_one_kind = done.iter().all(|&kind| kind == done[0]);
        assert!(declines || done.is_sorted() == (phases || few || of_one_kind));
        let takes = takers == Takers::All || takers == Takers::Root(board.rank());
        assert!(declined == 0 || declines && gives_back);
        // What the other rank declines this one folds, and takes nothing of; what this one declines it does not fold.
        let (given_up, got) = if takes { (0, declined) } else { (declined, 0) };
        assert_eq!(taken + got, if takes { rounds * others(leaders, board.rank()) } else { 0 });
        assert_eq!(folded + given_up - got, if leaders.contains(&board.rank()) { rounds } else { 0 });
    }

    /// Every rank gets each leader's share.
    pub fn gather_from_leaders(&mut self, leaders: &[usize], rounds: u64) {
        let Self { board, down, .. } = self;
        let mut handed = Handed { board, leaders, first: down.next_position(), taken: 0 };
        spread::run(board, down, leaders, rounds, TAG, &mut handed).unwrap();
        assert_eq!(handed.taken, rounds * others(leaders, board.rank()));
    }
}

/// How many others lead.
fn others(leaders: &[usize], rank: usize) -> u64 {
    leaders.iter().filter(|&&leader| leader != rank).count() as u64
}

/// What a rank does with a slice, in the order of phases.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Done {
    Contributed,
    Folded,
    Took,
}

/// The words of one reduction: for each slice of each share, those of its position in the up ring.
struct Slices<'a> {
    board: &'a ModelBoard,
    leaders: &'a [usize],
    /// The first position, and the slots of the up ring.
    first: (u64, u64),
    declines: bool,
    /// What was done, in its order.
    done: Vec<Done>,
    counts: Counts,
}

/// Slices of one reduction.
#[derive(Default)]
struct Counts {
    folded: u64,
    taken: u64,
    /// Of those that were taken, how many out of own cells.
    came_back: u64,
    /// Those that their leader did not fold: this rank, or the other one.
    declined: u64,
}

impl Slices<'_> {
    fn position(&self, round: u64, leader: usize) -> u64 {
        self.first.0 + round * self.leaders.len() as u64 + leader as u64
    }

    /// The sum of everybody's part of a slice.
    fn sum(&mut self, round: u64, leader: usize, up: usize) -> u64 {
        let (board, position) = (self.board, self.position(round, leader));
        let others = (0..board.size()).filter(|&rank| rank != board.rank());
        let sum = others.map(|rank| board.read(RingName::Up, rank, up)).sum::<u64>() + word_of(board.rank(), position);
        expect_value(sum, sum_of_all(board, position));
        self.done.push(Done::Folded);
        self.counts.folded += 1;
        self.counts.declined += u64::from(self.leaders[leader] != self.board.rank());
        sum
    }
}

impl Work for Slices<'_> {
    fn may_decline(&self) -> bool {
        self.declines
    }

    fn contribute(&mut self, round: u64, leader: usize, slot: usize) {
        self.done.push(Done::Contributed);
        self.counts.declined += u64::from(self.leaders[leader] == self.board.rank());
        self.board.fill(RingName::Up, slot, word_of(self.board.rank(), self.position(round, leader)));
    }

    fn fold(&mut self, round: u64, leader: usize, up: usize, down: Option<usize>) -> Result<()> {
        let sum = self.sum(round, leader, up);
        if let Some(slot) = down {
            self.board.fill(RingName::Down, slot, sum);
        }
        Ok(())
    }

    fn gives_back(&self) -> bool {
        true
    }

    fn fold_back(&mut self, round: u64, leader: usize, up: usize) -> Result<()> {
        let sum = self.sum(round, leader, up);
        self.board.fill_of(RingName::Up, 1 - self.board.rank(), up, sum);
        Ok(())
    }

    fn take(&mut self, round: u64, leader: usize, slot: usize, location: Location) -> Result<()> {
        let (board, position) = (self.board, self.position(round, leader));
        let found = match location.place {
            Place::Back => {
                assert_eq!(slot as u64, position % self.first.1);
                self.counts.came_back += 1;
                board.read(RingName::Up, board.rank(), slot)
            }
            _ => board.read(RingName::Down, self.leaders[leader], slot),
        };
        self.done.push(Done::Took);
        expect_value(found, sum_of_all(board, position));
        self.counts.taken += 1;
        Ok(())
    }
}

/// The words of one handing-out: what the leader says at its position in the down ring.
struct Handed<'a> {
    board: &'a ModelBoard,
    leaders: &'a [usize],
    first: u64,
    taken: u64,
}

impl Parts for Handed<'_> {
    fn give(&mut self, round: u64, leader: usize, slot: usize) {
        assert_eq!(self.leaders[leader], self.board.rank());
        self.board.fill(RingName::Down, slot, word_of(self.board.rank(), self.first + round));
    }

    fn take(&mut self, round: u64, leader: usize, slot: usize) -> Result<()> {
        let from = self.leaders[leader];
        expect_value(self.board.read(RingName::Down, from, slot), word_of(from, self.first + round));
        self.taken += 1;
        Ok(())
    }
}
