//! Exchanges, whole and in pieces, through the rings of random calls.

use std::cell::RefCell;

use shm_core::protocol::RingName;
use shm_core::protocol::exchange::{Pieces, exchange_pieces, exchange_then};

use super::{Engine, HeapBoard, word_of};

impl Engine {
    pub fn exchange(&mut self, tag: u32) {
        let Self { board, line, .. } = self;
        let position = line.next_position();
        let noted = RefCell::new(Vec::new());
        exchange_then(
            board,
            line,
            tag,
            |slot| board.fill(RingName::Line, slot, word_of(board.rank, position, 0)),
            |_| {
                board.delay();
                None
            },
            |from, slot| noted.borrow_mut().push((from, slot)),
            || {
                for &(from, slot) in noted.borrow().iter() {
                    let found = board.read(RingName::Line, from, slot);
                    board.expect(found, word_of(from, position, 0), "exchange");
                }
            },
        )
        .unwrap();
        assert_eq!(noted.borrow().len() + 1, board.size);
    }

    pub fn exchange_pieces(&mut self, tag: u32, count: usize) {
        let Self { board, line, .. } = self;
        let mut words = Words { board, first: line.next_position(), noted: Vec::new() };
        exchange_pieces(board, line, tag, count, &mut words).unwrap();
    }
}

pub struct Words<'a> {
    pub board: &'a HeapBoard,
    pub first: u64,
    pub noted: Vec<(usize, usize)>,
}

impl Pieces for Words<'_> {
    fn write(&mut self, piece: usize, slot: usize) {
        self.board.fill(RingName::Line, slot, word_of(self.board.rank, self.first + piece as u64, 2));
    }

    fn read(&mut self, _: usize, rank: usize, slot: usize) {
        self.noted.push((rank, slot));
    }

    fn complete(&mut self, piece: usize) {
        assert_eq!(self.noted.len() + 1, self.board.size);
        for (rank, slot) in self.noted.drain(..) {
            let found = self.board.read(RingName::Line, rank, slot);
            self.board.expect(found, word_of(rank, self.first + piece as u64, 2), "exchange of pieces");
        }
    }
}
