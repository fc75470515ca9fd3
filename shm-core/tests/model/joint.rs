//! Calls of two ranks that both work on what one of them lends.

use shm_core::Result;
use shm_core::protocol::joint::{self, Halves, Outcome, Part, Places};
use shm_core::protocol::{Board, Location, Readers, RingName};

use super::calls::{TAG, sum_of_all};
use super::rank::Rank;
use super::world::{ModelBoard, RECEIVE, SEND, expect_value, word_of};

/// What one call is to do.
#[derive(Clone, Copy, Debug)]
pub struct Joint {
    /// The rank whose buffer is lent.
    pub giver: usize,
    /// The ring in which it says so: down for a broadcast, up for a reduction.
    pub ring: RingName,
    /// Slices, a unit each.
    pub slices: u64,
    /// Whether the giver lends; if not, nothing moves.
    pub lends: bool,
    /// What the taker answers.
    pub answers: Answer,
}

/// What a taker says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Where the result is wanted: the giver may store there.
    Wanted,
    /// Nobody else reaches that.
    Cell,
    /// It does not reach what is lent: nothing moves.
    Declined,
}

impl Rank {
    /// A call of one slice, which may be [`joint`](Rank::joint): the taker finds out, and takes the slice of a giver
    /// that does not lend as that of any root.
    pub fn one(&mut self, call: Joint) {
        let Joint { giver, ring, slices: 1, lends, .. } = call else { panic!("one slice") };
        let (board, giving) = self.ring(ring);
        if board.rank() != giver {
            let lent = joint::is_lent(board, giving, TAG);
            assert_eq!(lent, Ok(lends), "wrong value: both know whether it is lent");
        }
        match (lends, ring) {
            (true, _) => self.joint(call),
            (false, RingName::Up) => self.collect(ring, 1 - giver),
            (false, _) => self.hand_out(ring, giver),
        }
    }

    /// The taker gets the giver's words, or, of a reduction, the sums of both ranks' words.
    pub fn joint(&mut self, call: Joint) {
        let Joint { giver, ring, slices, lends, answers } = call;
        let Self { board, up, down, .. } = self;
        let (giving, answering) = if ring == RingName::Up { (up, down) } else { (down, up) };
        let (me, first) = (board.rank(), giving.next_position());
        board.rewrite((0..slices).map(|slice| word_of(me, first + slice)));
        let own = match (me == giver, lends, answers) {
            (true, true, _) => Location::whole_at(SEND, slices as usize),
            (false, _, Answer::Wanted) => Location::slice_at(SEND, slices as usize).wanting(Some(1), slices as usize),
            (false, _, Answer::Declined) => Location::DECLINED,
            _ => Location::CELL,
        };
        let places = Places::take(giving, slices, answering);
        let mut words = Words { board, call, first, own, told: Location::CELL };
        let done = match me == giver {
            true if lends => joint::give(board, (giving, answering), places, TAG, &mut words),
            true => {
                giving.claim(board, first).expect("the ranks agree");
                giving.publish(board, first, TAG, &Readers::One(1 - me));
                Ok(Outcome::NotLent)
            }
            false => joint::take(board, (giving, answering), places, TAG, &mut words),
        };
        let outcome = match (lends, answers) {
            (false, _) => Outcome::NotLent,
            (true, Answer::Declined) => Outcome::Declined,
            _ => Outcome::Done,
        };
        assert_eq!(done, Ok(outcome), "wrong value: both know whether it was lent, and taken");
        if !lends {
            giving.finish(board, places.payload().last());
            places.forgo(board, answering);
        } else if me != giver && outcome == Outcome::Done {
            for (slice, unit) in (0..slices).zip(board.buffer(me, RECEIVE)) {
                expect_value(unit.read(), call.result(board, first + slice));
            }
        }
        board.rewrite(std::iter::empty());
    }
}

impl Joint {
    /// What the taker is to have of a position.
    fn result(&self, board: &ModelBoard, position: u64) -> u64 {
        match self.ring {
            RingName::Up => sum_of_all(board, position),
            _ => word_of(self.giver, position),
        }
    }
}

/// The words of one call.
struct Words<'a> {
    board: &'a ModelBoard,
    call: Joint,
    first: u64,
    own: Location,
    told: Location,
}

impl Halves for Words<'_> {
    fn own(&self) -> Location {
        self.own
    }

    fn note(&mut self, location: Location) -> Result<()> {
        self.told = location;
        Ok(())
    }

    fn work(&mut self, part: Part) -> Result<()> {
        let Joint { giver, ring, slices, .. } = self.call;
        assert!(self.told.is_lent(), "wrong value: the other rank has not said where");
        let units = match part {
            Part::All => 0..slices,
            Part::First => 0..slices / 2,
            Part::Second => slices / 2..slices,
        };
        for unit in units {
            let word = |rank: usize| self.board.buffer(rank, SEND)[unit as usize].read();
            let found = if ring == RingName::Up { word(0) + word(1) } else { word(giver) };
            expect_value(found, self.call.result(self.board, self.first + unit));
            self.board.buffer(1 - giver, RECEIVE)[unit as usize].write(found);
        }
        Ok(())
    }
}
