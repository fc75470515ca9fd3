//! Calls with several leaders through the rings of random calls.

use std::sync::atomic::{AtomicU64, Ordering};

use shm_core::Result;
use shm_core::protocol::shares::{self, Shares, Takers, Work};
use shm_core::protocol::spread::{self, Parts};
use shm_core::protocol::{Location, Place, RingName};

use super::{BYTES, Engine, HeapBoard, RECEIVE, SEND, sum_of, word_of};

/// Calls so far in which a rank has declined some of the slices that it leads, or all.
pub static SOME_DECLINED: AtomicU64 = AtomicU64::new(0);
pub static ALL_DECLINED: AtomicU64 = AtomicU64::new(0);

impl Engine {
    pub fn shares(&mut self, tag: u32, leaders: &[usize], rounds: u64, takers: Takers, lends: [bool; 3]) {
        let Self { board, up, down, .. } = self;
        let first = up.next_position();
        let takes = takers == Takers::All || takers == Takers::Root(board.rank);
        let count = rounds * leaders.len() as u64;
        board.rewrite((0..count).map(|at| word_of(board.rank, first + at, 3)));
        let [sends, wants, gives] = lends;
        let place = if sends { SEND } else { Place::Cell };
        let contribution = Location::whole_at(place, BYTES).wanting((wants && takes).then_some(1), BYTES);
        let result = if gives && takers == Takers::All { Location::slice_at(RECEIVE, BYTES) } else { Location::CELL };
        let told = vec![Location::CELL; board.size];
        let (folded, taken, declined) = (0, 0, 0);
        let mut work = Slices { board, leaders, first, folded, taken, declined, contribution, result, told, takes };
        shares::run(board, up, down, Shares { leaders, rounds, takers }, tag, &mut work).unwrap();
        // What the other one of two ranks declines to fold a root folds, and takes nothing of.
        let (given_up, got) = if takes { (0, work.declined) } else { (work.declined, 0) };
        assert!(work.declined == 0 || board.size == 2 && matches!(takers, Takers::Root(_)));
        if given_up > 0 {
            let calls = if given_up == rounds { &ALL_DECLINED } else { &SOME_DECLINED };
            calls.fetch_add(1, Ordering::Relaxed);
        }
        assert_eq!(work.folded + given_up - got, if leaders.contains(&board.rank) { rounds } else { 0 });
        let by_itself = takes && contribution.result.is_none();
        let others = rounds * others(leaders, board.rank);
        assert_eq!(work.taken, if by_itself { others - got } else { 0 });
        if takes {
            for at in 0..count {
                let found = board.buffer(board.rank, RECEIVE)[at as usize].load(Ordering::Relaxed);
                board.expect(found, sum_of(board.size, first + at, 3), "result of a share");
            }
        }
        board.rewrite(std::iter::empty());
    }

    pub fn spread(&mut self, tag: u32, leaders: &[usize], rounds: u64, lends: bool) {
        let Self { board, down, .. } = self;
        let first = down.next_position();
        board.rewrite((0..rounds).map(|round| word_of(board.rank, first + round, 4)));
        let lends = lends && leaders.contains(&board.rank);
        let location = if lends { Location::whole_at(SEND, BYTES) } else { Location::CELL };
        let told = vec![Location::CELL; leaders.len()];
        let mut parts = Handed { board, leaders, first, taken: 0, location, told };
        spread::run(board, down, leaders, rounds, tag, &mut parts).unwrap();
        assert_eq!(parts.taken, rounds * others(leaders, board.rank));
        board.rewrite(std::iter::empty());
    }
}

/// How many others lead.
pub fn others(leaders: &[usize], rank: usize) -> u64 {
    leaders.iter().filter(|&&leader| leader != rank).count() as u64
}

pub struct Slices<'a> {
    pub board: &'a HeapBoard,
    pub leaders: &'a [usize],
    pub first: u64,
    pub folded: u64,
    pub taken: u64,
    /// Slices that their leader did not fold.
    pub declined: u64,
    pub contribution: Location,
    pub result: Location,
    /// What each rank said.
    pub told: Vec<Location>,
    pub takes: bool,
}

impl Slices<'_> {
    pub fn index(&self, round: u64, leader: usize) -> usize {
        round as usize * self.leaders.len() + leader
    }

    pub fn position(&self, round: u64, leader: usize) -> u64 {
        self.first + self.index(round, leader) as u64
    }

    /// Everybody's part of a slice, summed up to where it is wanted.
    pub fn sum(&mut self, round: u64, leader: usize, up: usize) -> u64 {
        let (board, position, index) = (self.board, self.position(round, leader), self.index(round, leader));
        let others = (0..board.size).filter(|&rank| rank != board.rank);
        let word = |rank: usize| board.read_at(RingName::Up, rank, up, self.told[rank].place, index);
        let sum = others.clone().map(word).sum::<u64>() + word_of(board.rank, position, 3);
        board.expect(sum, sum_of(board.size, position, 3), "fold of a share");
        if self.takes {
            board.store(board.rank, RECEIVE, index, sum);
        }
        for rank in others.filter(|&rank| self.told[rank].result.is_some()) {
            board.store(rank, RECEIVE, index, sum);
        }
        self.folded += 1;
        self.declined += u64::from(self.leaders[leader] != board.rank);
        sum
    }
}

impl Work for Slices<'_> {
    fn contribution(&self) -> Location {
        self.contribution
    }

    fn has(&self, rank: usize) -> bool {
        self.told[rank].whole
    }

    fn note(&mut self, rank: usize, location: Location) {
        self.told[rank] = location;
    }

    fn serves(&self, takers: Takers) -> bool {
        match takers {
            Takers::All => (0..self.board.size).all(|rank| rank == self.board.rank || self.told[rank].result.is_some()),
            Takers::Root(root) => self.told[root].result.is_some(),
            Takers::Owners => true,
        }
    }

    fn result(&self) -> Location {
        self.result
    }

    fn may_decline(&self) -> bool {
        true
    }

    fn contribute(&mut self, round: u64, leader: usize, slot: usize) {
        self.declined += u64::from(self.leaders[leader] == self.board.rank);
        self.board.fill(RingName::Up, slot, word_of(self.board.rank, self.position(round, leader), 3));
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
        self.board.fill_of(RingName::Up, 1 - self.board.rank, up, sum);
        Ok(())
    }

    fn take(&mut self, round: u64, leader: usize, slot: usize, location: Location) -> Result<()> {
        let (board, index) = (self.board, self.index(round, leader));
        let found = match location.place {
            Place::Back => board.read(RingName::Up, board.rank, slot),
            place => board.read_at(RingName::Down, self.leaders[leader], slot, place, index),
        };
        board.expect(found, sum_of(board.size, self.position(round, leader), 3), "take of a share");
        board.store(board.rank, RECEIVE, index, found);
        self.taken += 1;
        Ok(())
    }
}

pub struct Handed<'a> {
    pub board: &'a HeapBoard,
    pub leaders: &'a [usize],
    pub first: u64,
    pub taken: u64,
    pub location: Location,
    /// What each leader said.
    pub told: Vec<Location>,
}

impl Parts for Handed<'_> {
    fn location(&self) -> Location {
        self.location
    }

    fn has(&self, leader: usize) -> bool {
        self.told[leader].whole
    }

    fn note(&mut self, leader: usize, location: Location) {
        self.told[leader] = location;
    }

    fn give(&mut self, round: u64, leader: usize, slot: usize) {
        assert_eq!(self.leaders[leader], self.board.rank);
        self.board.fill(RingName::Down, slot, word_of(self.board.rank, self.first + round, 4));
    }

    fn take(&mut self, round: u64, leader: usize, slot: usize) -> Result<()> {
        let from = self.leaders[leader];
        let found = self.board.read_at(RingName::Down, from, slot, self.told[leader].place, round as usize);
        self.board.expect(found, word_of(from, self.first + round, 4), "share that is handed out");
        self.taken += 1;
        Ok(())
    }
}
