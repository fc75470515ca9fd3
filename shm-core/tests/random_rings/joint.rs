//! Calls of two ranks that both work on what one of them lends, through the rings of random calls.

use shm_core::Result;
use shm_core::protocol::joint::{Halves, Outcome, Part, Places, give, is_lent, take};
use shm_core::protocol::{Location, Readers, RingName};

use super::{BYTES, Engine, HeapBoard, RECEIVE, SEND, sum_of, word_of};

/// The part that such a call plays in words.
const PART: u64 = 7;

impl Engine {
    /// A broadcast from `giver` (down), or a reduction of what it gives (up). The giver may lend, the taker let it
    /// store.
    pub fn joint(&mut self, tag: u32, giver: usize, name: RingName, slices: u64, reaches: bool, declines: bool) {
        if slices == 1 {
            let (board, ring) = self.ring(name);
            // Of one slice the taker finds out whether it is lent.
            let lent = if board.rank == giver { reaches } else { is_lent(board, ring, tag).unwrap() };
            match name {
                _ if lent => {}
                RingName::Up => return self.collect(name, tag, 1 - giver),
                _ => return self.hand_out(name, tag, giver),
            }
        }
        let Self { board, up, down, .. } = self;
        let (ring, other) = if name == RingName::Up { (up, down) } else { (down, up) };
        let (me, first) = (board.rank, ring.next_position());
        let gives = me == giver;
        board.rewrite((0..slices).map(|slice| word_of(me, first + slice, PART)));
        let own = match (gives, reaches) {
            (false, _) if declines => Location::DECLINED,
            (_, false) => Location::CELL,
            (true, true) => Location::whole_at(SEND, BYTES),
            (false, true) => Location::slice_at(SEND, BYTES).wanting(Some(1), BYTES),
        };
        let places = Places::take(ring, slices, other);
        let mut work = Worked { board, name, giver, first, slices, own };
        let outcome = match gives {
            true if reaches => give(board, (ring, other), places, tag, &mut work).unwrap(),
            true => {
                ring.claim(board, first).unwrap();
                ring.publish(board, first, tag, &Readers::One(1 - me));
                Outcome::NotLent
            }
            false => take(board, (ring, other), places, tag, &mut work).unwrap(),
        };
        if outcome == Outcome::NotLent {
            ring.finish(board, places.payload().last());
            places.forgo(board, other);
        } else if !gives && outcome == Outcome::Done {
            for slice in 0..slices {
                let found = board.read_at(name, me, 0, RECEIVE, slice as usize);
                board.expect(found, work.result(slice), "result of both");
            }
        }
        board.rewrite(std::iter::empty());
    }
}

struct Worked<'a> {
    board: &'a HeapBoard,
    name: RingName,
    giver: usize,
    first: u64,
    slices: u64,
    own: Location,
}

impl Worked<'_> {
    fn result(&self, slice: u64) -> u64 {
        match self.name {
            RingName::Up => sum_of(2, self.first + slice, PART),
            _ => word_of(self.giver, self.first + slice, PART),
        }
    }
}

impl Halves for Worked<'_> {
    fn own(&self) -> Location {
        self.own
    }

    fn note(&mut self, location: Location) -> Result<()> {
        assert!(location.is_lent(), "seed {}, rank {}", self.board.seed, self.board.rank);
        Ok(())
    }

    fn work(&mut self, part: Part) -> Result<()> {
        let range = match part {
            Part::All => 0..self.slices,
            Part::First => 0..self.slices / 2,
            Part::Second => self.slices / 2..self.slices,
        };
        for slice in range {
            let word = |rank| self.board.read_at(self.name, rank, 0, SEND, slice as usize);
            let found = match self.name {
                RingName::Up => word(0).wrapping_add(word(1)),
                _ => word(self.giver),
            };
            self.board.expect(found, self.result(slice), "what is lent to both");
            self.board.store(1 - self.giver, RECEIVE, slice as usize, found);
        }
        Ok(())
    }
}
