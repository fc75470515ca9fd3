//! One call of each protocol, with payload whose every value is known, so that a wrong one is seen where it is read.

use std::cell::RefCell;

use shm_core::Links;
use shm_core::protocol::exchange::{Pieces, exchange_pieces, exchange_then};
use shm_core::protocol::step::{self, Passage};
use shm_core::protocol::{Board, Ring, RingName};

use super::world::{ModelBoard, expect_value, word_of};

/// The tag of all calls: in a model, as in a program, the calls of all ranks agree.
pub const TAG: u32 = 7;

/// Everybody tells everybody a word. It is read in place when all have come, as an operator would read it.
pub fn exchange_words(board: &ModelBoard, ring: &mut Ring) {
    let position = ring.next_position();
    let noted = RefCell::new(Vec::new());
    exchange_then(
        board,
        ring,
        TAG,
        |slot| board.fill(RingName::Line, slot, word_of(board.rank(), position)),
        || (),
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
pub fn exchange_words_in_pieces(board: &ModelBoard, ring: &mut Ring, pieces: usize) {
    let mut words = Words { board, first: ring.next_position(), completed: 0 };
    exchange_pieces(board, ring, TAG, pieces, &mut words).unwrap();
    assert_eq!(words.completed, pieces);
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

/// The root of the links tells everybody below it a word, which `root` would say at this position.
pub fn release_word(board: &ModelBoard, name: RingName, ring: &mut Ring, links: &Links, root: usize) {
    let position = ring.take(1);
    step::release(board, ring, links, position, TAG, |passage| pass(board, name, passage, word_of(root, position)))
        .unwrap();
}

/// Takes `word` from the parent's slot, or has it, and passes it on.
pub fn pass(board: &ModelBoard, name: RingName, passage: Passage, word: u64) {
    if let Some(from) = passage.from {
        expect_value(board.read(name, from, passage.slot), word);
    }
    if passage.forward {
        board.fill(name, passage.slot, word);
    }
}

/// The words of all ranks are summed up on their way to the root.
pub fn gather_words(board: &ModelBoard, name: RingName, ring: &mut Ring, links: &Links) {
    let position = ring.take(1);
    let slot = ring.slot(position);
    step::gather(board, ring, links, position, TAG, |own| fold(board, name, links, position, slot, own)).unwrap();
}

/// Sums the children's slots and the own word; the root checks the sum of all ranks' words.
pub fn fold(board: &ModelBoard, name: RingName, links: &Links, position: u64, slot: usize, own: Option<usize>) {
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

/// The links of a chain of all ranks in `order`: the first is the root.
pub fn chain(order: &[usize], rank: usize) -> Links {
    let place = order.iter().position(|&other| other == rank).expect("every rank is in the chain");
    let parent = place.checked_sub(1).map(|above| order[above]);
    let children: Vec<usize> = order.get(place + 1).copied().into_iter().collect();
    Links::new(parent, &children, order.len())
}
