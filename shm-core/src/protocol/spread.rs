//! The other half of a data-partitioned reduction ([`shares`](super::shares)), alone: each leader hands its share to all
//! ranks, an allgather.

use super::board::Board;
use super::location::Location;
use super::ring::{Readers, Ring};
use super::shares::other_leaders;
use crate::error::Result;

/// What is done with the payload of one call while the protocol holds the slots.
pub trait Parts {
    /// Where the own share lies: in cells, or whole in a buffer that is lent.
    fn location(&self) -> Location {
        Location::CELL
    }

    /// Whether the leader with this index lent its share whole, so that it is not waited for again.
    fn has(&self, _leader: usize) -> bool {
        false
    }

    /// Notes where the share of the leader with this index lies.
    fn note(&mut self, _leader: usize, _location: Location) {}

    /// Fills the own down slot with slice `round` of the own share (index `leader`).
    fn give(&mut self, round: u64, leader: usize, slot: usize);

    /// Takes slice `round` of the share of `leader`: out of that leader's down slot, or from where it was said to lie.
    ///
    /// # Errors
    /// When payload cannot be reached.
    fn take(&mut self, round: u64, leader: usize, slot: usize) -> Result<()>;
}

/// Each leader hands its share, of `rounds` slices at most, to all ranks. Takes `rounds` positions of the down ring.
///
/// # Errors
/// When a rank has failed or made another call.
pub fn run<B: Board>(
    board: &B,
    down: &mut Ring,
    leaders: &[usize],
    rounds: u64,
    tag: u32,
    parts: &mut impl Parts,
) -> Result<()> {
    let me = board.rank();
    let own = leaders.iter().position(|&rank| rank == me);
    let first = down.take(rounds);
    let last = first + rounds - 1;
    let location = parts.location();
    for round in 0..rounds {
        let position = first + round;
        if let (Some(own), true, false) = (own, board.size() > 1, location.whole && round > 0) {
            let slot = down.claim(board, position)?;
            if !location.is_lent() {
                parts.give(round, own, slot);
            }
            let until = if location.whole { last } else { position };
            down.publish_at(board, position, until, tag, &Readers::All, location);
        }
        for (leader, rank) in other_leaders(board, leaders) {
            if !parts.has(leader) {
                let (_, location) = down.expect_at(board, rank, position, tag)?;
                parts.note(leader, location);
            }
            parts.take(round, leader, down.slot(position))?;
        }
        // Who lent waits for the last word alone.
        if round + 1 == rounds || !(0..leaders.len()).all(|leader| leaders[leader] == me || parts.has(leader)) {
            down.finish(board, position);
        }
    }
    if location.is_lent() { down.settle(board, first) } else { Ok(()) }
}
