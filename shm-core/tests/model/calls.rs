//! Exchanges, steps over trees, pipelines, with payload whose every value is known, so that a wrong one is seen where
//! it is read.

use std::cell::RefCell;

use shm_core::protocol::exchange::{Pieces, Slices, exchange_pieces, exchange_slices, exchange_then};
use shm_core::protocol::flat::{Contributions, collect, hand_out};
use shm_core::protocol::step::{self, InCells, Passage, gather_release};
use shm_core::protocol::{Board, Location, Ring, RingName};
use shm_core::{Links, Result};

use super::mutant::Mutant;
use super::rank::Rank;
use super::tree::Tree;
use super::world::{ModelBoard, expect_value, word_of};

/// The tag of all calls: in a model, as in a program, the calls of all ranks agree.
pub const TAG: u32 = 7;

impl Rank {
    /// Everybody tells everybody a word. It is read in place when all have come, as an operator would read it.
    pub fn exchange(&mut self) {
        let Self { board, line, .. } = self;
        let position = line.next_position();
        let after = line.slot(position + 1);
        let noted = RefCell::new(Vec::new());
        exchange_then(
            board,
            line,
            TAG,
            |slot| board.fill(RingName::Line, slot, word_of(board.rank(), position)),
            |next| {
                take(board, RingName::Line, taken(board, after, next));
                None
            },
            |from, slot| noted.borrow_mut().push((from, slot)),
            || {
                let noted = noted.borrow();
                assert_eq!(noted.len(), board.size() - 1);
                for &(from, slot) in noted.iter() {
                    expect_value(board.read(RingName::Line, from, slot), word_of(from, position));
                }
            },
        )
        .unwrap();
    }

    /// Everybody tells everybody several words at once.
    pub fn exchange_in_pieces(&mut self, pieces: usize) {
        let Self { board, line, .. } = self;
        let mut words = Words { board, first: line.next_position(), completed: 0 };
        exchange_pieces(board, line, TAG, pieces, &mut words).unwrap();
        assert_eq!(words.completed, pieces);
    }

    /// Everybody tells everybody a word a slice, through cells; each sums them up.
    pub fn exchange_slices(&mut self, slices: u64) {
        assert_eq!(self.exchange_words(slices, 0, false), 0);
    }

    /// The same of two ranks whose cells change hands, taking so many positions; returns how many slices lay in the
    /// other's cell.
    pub fn exchange_crossing(&mut self, slices: u64, positions: u64) -> u64 {
        self.exchange_words(slices, positions, true)
    }

    fn exchange_words(&mut self, slices: u64, positions: u64, crosses: bool) -> u64 {
        let Self { board, up, .. } = self;
        let mut sums = Sums { board, first: up.next_position(), positions, crosses, combined: 0, crossed: 0 };
        exchange_slices(board, up, slices, TAG, &mut sums).unwrap();
        assert_eq!(sums.combined, slices);
        sums.crossed
    }

    /// The root tells everybody a word, with no tree.
    pub fn hand_out(&mut self, name: RingName, root: usize) {
        let (board, ring) = self.ring(name);
        let word = word_of(root, ring.next_position());
        let read = |slot, location| {
            assert_eq!(location, Location::CELL);
            expect_value(board.read(name, root, slot), word);
            Ok(())
        };
        hand_out(board, ring, root, TAG, |slot| board.fill(name, slot, word), || (), read).unwrap();
        if board.rank() == root {
            take(board, name, taken(board, ring.slot(ring.next_position()), ring.prepared()));
        }
    }

    /// Everybody tells the root a word, with no tree.
    pub fn collect(&mut self, name: RingName, root: usize) {
        let (board, ring) = self.ring(name);
        let mut told = Told { board, name, position: ring.next_position(), noted: Vec::new() };
        collect(board, ring, root, TAG, &mut told).unwrap();
        if board.rank() != root {
            take(board, name, taken(board, ring.slot(ring.next_position()), ring.prepared()));
        }
    }

    /// The root of the tree tells everybody a word.
    pub fn release(&mut self, name: RingName, tree: Tree) {
        let links = self.links(tree);
        let (board, ring) = self.ring(name);
        let position = ring.take(1);
        let word = word_of(tree.root(), position);
        step::release(board, ring, &links, position, TAG, |passage| pass(board, name, passage, word)).unwrap();
    }

    /// The words of all ranks are summed up on their way to the root of the tree.
    pub fn gather(&mut self, name: RingName, tree: Tree) {
        let links = self.links(tree);
        let (board, ring) = self.ring(name);
        let position = ring.take(1);
        let slot = ring.slot(position);
        step::gather(board, ring, &links, position, TAG, |own| fold(board, name, &links, position, slot, own)).unwrap();
    }

    /// The sum of all ranks' words goes up one tree and down another, `slices` times in one pipeline.
    pub fn pipeline(&mut self, slices: u64, up_tree: Tree, down_tree: Tree) {
        let (up_links, down_links) = (self.links(up_tree), self.links(down_tree));
        let Self { board, up, down, .. } = self;
        let (first_up, slots) = (up.next_position(), up.slots() as u64);
        // The ranks' words are those of the up position; the sum goes down under the same number.
        let gathers = |slice, own| {
            let position = first_up + slice;
            fold(board, RingName::Up, &up_links, position, (position % slots) as usize, own);
        };
        let releases = |slice, passage| pass(board, RingName::Down, passage, sum_of_all(board, first_up + slice));
        gather_release(
            board,
            (up, &up_links),
            (down, &down_links),
            slices,
            TAG,
            (&mut InCells(gathers), &mut InCells(releases)),
        )
        .unwrap();
    }

    /// What this rank knows of a tree.
    pub fn links(&self, tree: Tree) -> Links {
        tree.links(self.board.rank(), self.board.size())
    }
}

/// The words of an exchange in pieces, one a piece; read at once, as lines are copied out.
struct Words<'a> {
    board: &'a ModelBoard,
    first: u64,
    completed: usize,
}

impl Pieces for Words<'_> {
    fn write(&mut self, piece: usize, slot: usize) {
        self.board.fill(RingName::Line, slot, word_of(self.board.rank(), self.first + piece as u64));
    }

    fn read(&mut self, piece: usize, rank: usize, slot: usize) {
        let found = self.board.read(RingName::Line, rank, slot);
        expect_value(found, word_of(rank, self.first + piece as u64));
    }

    fn complete(&mut self, piece: usize) {
        assert_eq!(piece, self.completed);
        self.completed += 1;
    }
}

/// The words of an exchange through cells, one a slice.
struct Sums<'a> {
    board: &'a ModelBoard,
    first: u64,
    positions: u64,
    crosses: bool,
    /// Slices that lay in the other rank's cell.
    crossed: u64,
    combined: u64,
}

impl Slices for Sums<'_> {
    fn crosses(&self) -> bool {
        self.crosses
    }

    fn positions(&self) -> u64 {
        self.positions
    }

    fn write(&mut self, slice: u64, slot: usize, crossed: bool) {
        let me = self.board.rank();
        self.crossed += u64::from(crossed);
        self.board.fill_of(RingName::Up, if crossed { 1 - me } else { me }, slot, word_of(me, self.first + slice));
    }

    fn combine(&mut self, slice: u64, slot: usize, crossed: bool) -> Result<()> {
        assert_eq!(slice, self.combined);
        self.combined += 1;
        let me = self.board.rank();
        for rank in (0..self.board.size()).filter(|&rank| rank != me) {
            let found = self.board.read(RingName::Up, if crossed { me } else { rank }, slot);
            expect_value(found, word_of(rank, self.first + slice));
        }
        Ok(())
    }
}

/// The words that a root is told, read in place when all have come.
struct Told<'a> {
    board: &'a ModelBoard,
    name: RingName,
    position: u64,
    noted: Vec<(usize, usize)>,
}

impl Contributions for Told<'_> {
    fn write(&mut self, slot: usize) {
        self.board.fill(self.name, slot, word_of(self.board.rank(), self.position));
    }

    fn meanwhile(&mut self) {}

    fn read(&mut self, rank: usize, slot: usize, location: Location) -> Result<()> {
        assert_eq!(location, Location::CELL);
        self.noted.push((rank, slot));
        Ok(())
    }

    fn complete(&mut self) -> Result<()> {
        assert_eq!(self.noted.len(), self.board.size() - 1);
        for &(rank, slot) in &self.noted {
            expect_value(self.board.read(self.name, rank, slot), word_of(rank, self.position));
        }
        Ok(())
    }
}

/// The own slot whose lines are taken: that which comes next, if it is known to be free.
fn taken(board: &ModelBoard, next: usize, free: Option<usize>) -> Option<usize> {
    match board.mutant() {
        Mutant::TakesWhatIsRead => Some(next),
        _ => free,
    }
}

/// Takes the lines of a slot that is free: stores what nobody may see.
fn take(board: &ModelBoard, name: RingName, slot: Option<usize>) {
    if let Some(slot) = slot {
        board.fill(name, slot, 0);
    }
}

/// Takes `word` from the parent's slot, or has it, and passes it on.
fn pass(board: &ModelBoard, name: RingName, passage: Passage, word: u64) {
    if let Some(from) = passage.from {
        expect_value(board.read(name, from, passage.slot), word);
    }
    if passage.forward {
        board.fill(name, passage.slot, word);
    }
}

/// Sums the children's slots and the own word; the root checks the sum of all ranks' words.
fn fold(board: &ModelBoard, name: RingName, links: &Links, position: u64, slot: usize, own: Option<usize>) {
    let below: u64 = links.children().iter().map(|&child| board.read(name, child, slot)).sum();
    let sum = below + word_of(board.rank(), position);
    match own {
        Some(own) => board.fill(name, own, sum),
        None => expect_value(sum, sum_of_all(board, position)),
    }
}

/// The sum of all ranks' words at a position.
pub fn sum_of_all(board: &ModelBoard, position: u64) -> u64 {
    (0..board.size()).map(|rank| word_of(rank, position)).sum()
}
