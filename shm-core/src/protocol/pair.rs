//! The data-partitioned reduction at its shortest: an allreduce of one round between two ranks, both of which lead.
//!
//! What [`shares`](super::shares) does in that case, without its loops: each contributes the other's half, folds its
//! own to where the contribution lay, and takes what came back. It keeps the same slots, stamps and positions, so that
//! each rank decides for itself: who lends its buffer, or says where it wants the result, takes the longer way.

use super::board::Board;
use super::location::{Location, Place};
use super::ring::{Readers, Ring};
use super::shares::{Takers, Work};
use crate::error::Result;

/// Whether a call of this rank may go this way: its contribution lies in a cell, and so does its result for others; it
/// takes that of the other one itself, and does not look at it where it lies.
pub(super) fn suits(work: &impl Work) -> bool {
    work.contribution() == Location::CELL && work.result() == Location::CELL && !work.is_served()
}

/// Runs a call of which [`suits`] was true; the ranks are 0 and 1, each of which leads the share with its number.
///
/// # Errors
/// When the other rank has failed or made another call.
#[inline]
pub(super) fn run<B: Board>(board: &B, up: &mut Ring, down: &mut Ring, tag: u32, work: &mut impl Work) -> Result<()> {
    let me = board.rank();
    let other = 1 - me;
    let first_up = up.take(up.slots() as u64);
    let (last_up, result) = (up.next_position() - 1, down.take(1));
    let (given, folded) = (first_up + other as u64, first_up + me as u64);

    let slot = up.claim(board, given)?;
    work.contribute(0, other, slot);
    up.publish(board, given, tag, &Readers::One(other));

    let (slot, location) = up.expect_at(board, other, folded, tag)?;
    work.note(other, location);
    // It has taken the results of all earlier calls.
    down.prove(result - 1);
    let own = down.claim(board, result)?;
    let served = work.serves(Takers::All);
    let comes_back = !served && !work.has(other);
    match comes_back {
        true => work.fold_back(0, me, slot)?,
        false => work.fold(0, me, slot, (!served).then_some(own))?,
    }
    let place = if comes_back { Location::BACK } else { Location::CELL };
    down.publish_at(board, result, result, tag, &Readers::All, place);
    up.finish(board, last_up);

    let (slot, location) = down.expect_at(board, other, result, tag)?;
    // Who has its result has folded what it was given.
    up.prove(given);
    let slot = if location.place == Place::Back { up.slot(given) } else { slot };
    work.take(0, other, slot, location)?;
    down.finish(board, result);
    Ok(())
}
