//! One rank of a model.

use std::sync::Arc;

use shm_core::protocol::{Board, Ring, RingName};

use super::mutant::Mutant;
use super::world::{ModelBoard, World};

/// A rank: the board as it sees it, and its rings. What it can call is in `calls` and `shares`.
pub struct Rank {
    /// Words and payload.
    pub board: ModelBoard,
    /// Its lines.
    pub line: Ring,
    /// Its up cells.
    pub up: Ring,
    /// Its down cells.
    pub down: Ring,
}

impl Rank {
    /// A rank that has called nothing yet, with all the slots that there are.
    pub fn new(world: Arc<World>, rank: usize) -> Self {
        let board = ModelBoard::new(Arc::clone(&world), rank);
        let ring = |name| Ring::new(name, world.slots(name), board.size());
        let (line, up, down) = (ring(RingName::Line), ring(RingName::Up), ring(RingName::Down));
        Self { board, line, up, down }
    }

    /// Its number.
    pub fn number(&self) -> usize {
        self.board.rank()
    }

    /// The board, and one of the rings.
    pub fn ring(&mut self, name: RingName) -> (&ModelBoard, &mut Ring) {
        match name {
            RingName::Line => (&self.board, &mut self.line),
            RingName::Up => (&self.board, &mut self.up),
            RingName::Down => (&self.board, &mut self.down),
        }
    }

    /// Cuts the memory of a ring into `slots` slots.
    pub fn cut(&mut self, name: RingName, slots: usize) {
        let (board, ring) = self.ring(name);
        if board.mutant() == Mutant::ReshapesAtOnce {
            let taken = ring.next_position() - 1;
            *ring = Ring::new(name, slots, board.size());
            ring.take(taken);
        } else {
            ring.reshape(board, slots).unwrap();
        }
        board.cut(name, slots);
    }
}
