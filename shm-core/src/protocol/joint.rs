//! One of two ranks gives, the other takes, and both work, where nothing goes through cells: a half each.
//!
//! A rank that lends all its payload has nothing left to do but to wait for the other one. So the taker tells it, in a slot of the
//! other ring, where the result is wanted, and begins with the first half. The second half is done by who first claims it
//! ([`Board::claims`]): the giver, if it is there, or else the taker, when it is through with the first. A taker whose result cannot be
//! reached says so, and does all of it.
//!
//! So nobody waits for a rank that sleeps, or has no core at present: the giver may not leave before its payload was taken, as ever; the taker
//! waits for the giver only where that has claimed its half, and so has begun. What the giver stored the taker learns of as it learns of
//! a loan's end: by the giver's `done` in the other ring (edge U2 of a broadcast, D2 of a reduction), which says here that the result is no
//! longer in use. A giver that finds its half claimed touches nothing of the taker's.

use super::board::Board;
use super::location::Location;
use super::ring::{Readers, Ring};
use super::step::Span;
use crate::error::Result;

/// A part of the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The first half, which the taker does.
    First,
    /// The second half.
    Second,
    /// Both halves, which the taker does.
    All,
}

/// The payload of one call.
pub trait Halves {
    /// Of the giver: where its payload lies, whole. Of the taker: where it wants the result, and what goes into it of its own; or
    /// [`Location::CELL`] where that cannot be reached.
    fn own(&self) -> Location;

    /// Notes what the other rank said.
    ///
    /// # Errors
    /// When it goes by another length, or speaks of no place.
    fn note(&mut self, location: Location) -> Result<()>;

    /// Does a part of the work. What the other one may do meanwhile is not touched.
    ///
    /// # Errors
    /// When payload cannot be reached.
    fn work(&mut self, part: Part) -> Result<()>;
}

/// The positions of one call: those that payload would take in the giver's ring, and one for the taker's word in the other.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    payload: Span,
    answer: u64,
}

impl Places {
    /// Takes the next `slices` positions of the giver's ring, and one of the other.
    pub fn take(giving: &mut Ring, slices: u64, answering: &mut Ring) -> Self {
        Self { payload: Span::take(giving, slices), answer: answering.take(1) }
    }

    /// The positions of the payload.
    #[must_use]
    pub fn payload(self) -> Span {
        self.payload
    }

    /// Says that this rank reads no answer: of a call whose giver lent nothing, at its end.
    pub fn forgo<B: Board>(self, board: &B, answering: &Ring) {
        answering.finish(board, self.answer);
    }
}

/// The giver's side, where it lends its payload whole. Both rings are its own again when this returns.
///
/// # Errors
/// When the other rank has failed or made another call, or payload cannot be reached.
pub fn give<B: Board>(
    board: &B,
    (giving, answering): (&mut Ring, &mut Ring),
    places: Places,
    tag: u32,
    halves: &mut impl Halves,
) -> Result<()> {
    let (Places { payload, answer }, taker) = (places, 1 - board.rank());
    let location = halves.own();
    debug_assert!(location.whole && board.size() == 2);
    giving.claim(board, payload.first())?;
    giving.publish_at(board, payload.first(), payload.last(), tag, &Readers::One(taker), location);
    let (slot, wanted) = answering.expect_at(board, taker, answer, tag)?;
    // Not to be looked for where the claim is lost: the taker may have gone, and the place with it.
    if wanted != Location::CELL && board.claims(answering.name(), taker, slot, answer) {
        halves.note(wanted)?;
        halves.work(Part::Second)?;
    }
    answering.finish(board, answer);
    giving.finish(board, payload.last());
    giving.settle(board, payload.first())
}

/// The taker's side. Whether the giver lent its payload whole; if not, nothing was done, and slices follow in its slots. Then nobody answers,
/// and both [`forgo`](Places::forgo) it.
///
/// # Errors
/// When the other rank has failed or made another call, or payload cannot be reached.
pub fn take<B: Board>(
    board: &B,
    (giving, answering): (&mut Ring, &mut Ring),
    places: Places,
    tag: u32,
    halves: &mut impl Halves,
) -> Result<bool> {
    let (Places { payload, answer }, giver) = (places, 1 - board.rank());
    let (_, location) = giving.expect_at(board, giver, payload.first(), tag)?;
    if !location.whole {
        return Ok(false);
    }
    halves.note(location)?;
    let wanted = halves.own();
    let slot = answering.claim(board, answer)?;
    answering.publish_at(board, answer, answer, tag, &Readers::One(giver), wanted);
    let mut alone = wanted == Location::CELL;
    halves.work(if alone { Part::All } else { Part::First })?;
    if !alone && board.claims(answering.name(), board.rank(), slot, answer) {
        alone = true;
        halves.work(Part::Second)?;
    }
    giving.finish(board, payload.last());
    answering.finish(board, answer);
    if !alone {
        answering.settle(board, answer)?;
    }
    Ok(true)
}
