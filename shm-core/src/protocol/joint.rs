//! One of two ranks gives, the other takes, and both work, where nothing goes through cells: a half each.
//!
//! A rank that lends all its payload has nothing left to do but to wait for the other one. So the taker tells it, in a
//! slot of the other ring, where the result is wanted, and begins with the first half. The second half is done by who
//! first claims it ([`Board::claims`]): the giver, if it is there, or else the taker, when it is through with the
//! first. A taker whose result cannot be reached says so, and does all of it. One that does not reach the payload
//! declines: then nothing is done, both know it, and the payload goes on through slots, at positions of its own.
//!
//! So nobody waits for a rank that sleeps, or has no core at present: the giver may not leave before its payload was
//! taken, as ever; the taker waits for the giver only where that has claimed its half, and so has begun. What the giver
//! stored the taker learns of as it learns of a loan's end: by the giver's `done` in the other ring (edge U2 of a
//! broadcast, D2 of a reduction), which says here that the result is no longer in use. A giver that finds its half
//! claimed touches nothing of the taker's.

use super::board::Board;
use super::location::{Location, Place};
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

/// How a call has ended, the same on both ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The work is done.
    Done,
    /// The giver lent nothing: nothing is done, and slices follow in its slots. Nobody answers, and both
    /// [`forgo`](Places::forgo) it.
    NotLent,
    /// The taker has declined: nothing is done, and both rings are as after any call.
    Declined,
}

/// The payload of one call.
pub trait Halves {
    /// Of the giver: where its payload lies, whole. Of the taker: where it wants the result, and what goes into it of
    /// its own; or [`Location::CELL`] where that cannot be reached, or [`Location::DECLINED`] where the payload cannot.
    fn own(&self) -> Location;

    /// Notes what the other rank said.
    ///
    /// # Errors
    /// When it goes by another length, or speaks of no place.
    fn note(&mut self, location: Location) -> Result<()>;

    /// Whether the giver can store where the taker wants it: asked before it claims its half.
    fn may_store(&self, _wanted: Location) -> bool {
        true
    }

    /// Does a part of the work. What the other one may do meanwhile is not touched.
    ///
    /// # Errors
    /// When payload cannot be reached.
    fn work(&mut self, part: Part) -> Result<()>;
}

/// The positions of one call: those that payload would take in the giver's ring, and one for the taker's word in the
/// other.
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

    /// The position of the taker's word.
    #[must_use]
    pub fn answer(self) -> u64 {
        self.answer
    }

    /// Says that this rank reads no answer: of a call whose giver lent nothing, at its end.
    pub fn forgo<B: Board>(self, board: &B, answering: &Ring) {
        answering.finish(board, self.answer);
    }
}

/// Whether the giver lends a payload of one slice, which lies in the job's heap: for a taker that has taken no position
/// yet. If so both take those of a call ([`Places::take`]); if not it takes the slice as it would that of any root.
///
/// # Errors
/// When the other rank has failed or made another call.
#[inline]
pub fn is_lent<B: Board>(board: &B, giving: &Ring, tag: u32) -> Result<bool> {
    let (_, location) = giving.expect_at(board, 1 - board.rank(), giving.next_position(), tag)?;
    Ok(location.whole && matches!(location.place, Place::Heap(_)))
}

/// The giver's side, where it lends its payload whole. Both rings are its own again when this returns. Never
/// [`Outcome::NotLent`].
///
/// # Errors
/// When the other rank has failed or made another call, or payload cannot be reached.
pub fn give<B: Board>(
    board: &B,
    (giving, answering): (&mut Ring, &mut Ring),
    places: Places,
    tag: u32,
    halves: &mut impl Halves,
) -> Result<Outcome> {
    let (Places { payload, answer }, taker) = (places, 1 - board.rank());
    let location = halves.own();
    debug_assert!(location.whole && board.size() == 2);
    giving.claim(board, payload.first())?;
    giving.publish_at(board, payload.first(), payload.last(), tag, &Readers::One(taker), location);
    let (slot, wanted) = answering.expect_at(board, taker, answer, tag)?;
    let alone = wanted == Location::CELL || wanted == Location::DECLINED;
    // Not to be looked for where the claim is lost: the taker may have gone, and the place with it.
    if !alone && halves.may_store(wanted) && board.claims(answering.name(), taker, slot, answer) {
        halves.note(wanted)?;
        halves.work(Part::Second)?;
    }
    answering.finish(board, answer);
    giving.finish(board, payload.last());
    giving.settle(board, payload.first())?;
    Ok(if wanted == Location::DECLINED { Outcome::Declined } else { Outcome::Done })
}

/// The taker's side.
///
/// # Errors
/// When the other rank has failed or made another call, or payload cannot be reached.
pub fn take<B: Board>(
    board: &B,
    (giving, answering): (&mut Ring, &mut Ring),
    places: Places,
    tag: u32,
    halves: &mut impl Halves,
) -> Result<Outcome> {
    let (Places { payload, answer }, giver) = (places, 1 - board.rank());
    let (_, location) = giving.expect_at(board, giver, payload.first(), tag)?;
    if !location.whole {
        return Ok(Outcome::NotLent);
    }
    halves.note(location)?;
    let wanted = halves.own();
    let slot = answering.claim(board, answer)?;
    answering.publish_at(board, answer, answer, tag, &Readers::One(giver), wanted);
    if wanted == Location::DECLINED {
        giving.finish(board, payload.last());
        answering.finish(board, answer);
        return Ok(Outcome::Declined);
    }
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
    Ok(Outcome::Done)
}
