//! The data-partitioned reduction with several leaders (Bayatpour et al., SC17), inside one node.
//!
//! The vector is cut into one share for each leader, a share into slices of one cell. In round `r` every rank
//! contributes slice `r` of every share to an up cell of its own; each leader folds the contributions to slice `r` of
//! its share, in rank order, its own from its private buffer, and publishes the result in a down cell, from which
//! it is taken by all ranks (allreduce) or by the root (reduce), or stays with the leader (reduce-scatter). [`spread`] is
//! the other half alone: each leader hands its share to all ranks (allgather).
//!
//! What differs from the paper: readiness is per slice and per rank (the stamp of each cell), there is no barrier
//! anywhere, and the phases overlap: a rank contributes to round r+1 before it folds round r, and folds round r
//! before it takes round r-1.
//!
//! Positions: contribution (round r, leader l) lies at `first_up + r*L + l` of the contributor's up ring; result r of
//! any leader at `first_down + r` of that leader's down ring. The up ring needs slots for two rounds, the down
//! ring two slots: with less, two leaders could each wait for what the other does next.

use super::board::Board;
use super::ring::{Readers, Ring};
use crate::error::Result;

/// Who takes the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takers {
    /// Every rank: an allreduce.
    All,
    /// The root alone: a reduce.
    Root(usize),
    /// Nobody: each leader keeps its share, a reduce-scatter.
    Owners,
}

/// The shape of one call.
#[derive(Clone, Copy, Debug)]
pub struct Shares<'a> {
    /// The rank of each leader.
    pub leaders: &'a [usize],
    /// Slices of the longest share.
    pub rounds: u64,
    /// Who takes the results.
    pub takers: Takers,
}

/// What is done with the payload while the protocol holds the slots.
pub trait Work {
    /// Fills the own up slot with the own part of slice `round` of the share of `leader` (an index).
    fn contribute(&mut self, round: u64, leader: usize, slot: usize);
    /// Folds everybody's part of slice `round` of the own share (index `leader`; the others' lie in their up
    /// slot `up`) into the own result and, when there is one, the own down slot.
    fn fold(&mut self, round: u64, leader: usize, up: usize, down: Option<usize>);
    /// Copies slice `round` of the share of `leader` out of that leader's down slot.
    fn take(&mut self, round: u64, leader: usize, slot: usize);
}

/// Rounds by which a rank's contributions run ahead of its folding; the up ring holds one more.
pub const ROUNDS_AHEAD: u64 = 1;

/// The least number of up slots for `leaders` leaders.
#[must_use]
pub const fn least_up_slots(leaders: usize) -> usize {
    leaders * (ROUNDS_AHEAD as usize + 1)
}

/// The least number of down slots.
pub const LEAST_DOWN_SLOTS: usize = 2;

/// Runs one call.
///
/// # Errors
/// When a rank has failed or made another call.
pub fn run<B: Board>(
    board: &B,
    up: &mut Ring,
    down: &mut Ring,
    shares: Shares<'_>,
    tag: u32,
    work: &mut impl Work,
) -> Result<()> {
    let Shares { leaders, rounds, takers } = shares;
    debug_assert!(up.slots() >= least_up_slots(leaders.len()) && down.slots() >= LEAST_DOWN_SLOTS);
    let me = board.rank();
    let own = leaders.iter().position(|&rank| rank == me);
    let count = leaders.len();
    // Everybody begins with another leader, so that no leader is everybody's target at once.
    let start = me * count / board.size() + 1;
    let takes = match takers {
        Takers::All => true,
        Takers::Root(root) => root == me,
        Takers::Owners => false,
    };
    let first_up = up.take(rounds * count as u64);
    let first_down = down.take(rounds);

    for turn in 0..rounds + ROUNDS_AHEAD + 1 {
        if turn < rounds {
            let base = first_up + turn * count as u64;
            for leader in (0..count).map(|i| (start + i) % count).filter(|&leader| leaders[leader] != me) {
                let position = base + leader as u64;
                let slot = up.claim(board, position)?;
                work.contribute(turn, leader, slot);
                up.publish(board, position, tag, Readers::One(leaders[leader]));
            }
        }
        if let (Some(round), Some(own)) = (within(turn, ROUNDS_AHEAD, rounds), own) {
            let base = first_up + round * count as u64;
            let position = base + own as u64;
            for rank in (0..board.size()).filter(|&rank| rank != me) {
                up.expect(board, rank, position, tag)?;
            }
            let readers = match takers {
                Takers::All if board.size() > 1 => Some(Readers::All),
                Takers::Root(root) if root != me => Some(Readers::One(root)),
                _ => None,
            };
            let slot = match readers {
                Some(_) => Some(down.claim(board, first_down + round)?),
                None => None,
            };
            work.fold(round, own, up.slot(position), slot);
            if let Some(readers) = readers {
                down.publish(board, first_down + round, tag, readers);
            }
            up.finish(board, base + count as u64 - 1);
        }
        if let (Some(round), true) = (within(turn, ROUNDS_AHEAD + 1, rounds), takes) {
            let position = first_down + round;
            for leader in (0..count).map(|i| (start + i) % count).filter(|&leader| leaders[leader] != me) {
                let slot = down.expect(board, leaders[leader], position, tag)?;
                work.take(round, leader, slot);
            }
            down.finish(board, position);
        }
    }
    up.finish(board, first_up + rounds * count as u64 - 1);
    down.finish(board, first_down + rounds - 1);
    Ok(())
}

/// What is done with the payload of [`spread`] while the protocol holds the slots.
pub trait Parts {
    /// Fills the own down slot with slice `round` of the own share (index `leader`).
    fn give(&mut self, round: u64, leader: usize, slot: usize);
    /// Copies slice `round` of the share of `leader` out of that leader's down slot.
    fn take(&mut self, round: u64, leader: usize, slot: usize);
}

/// Each leader hands its share, of `rounds` slices at most, to all ranks. Takes `rounds` positions of the down ring.
///
/// # Errors
/// When a rank has failed or made another call.
pub fn spread<B: Board>(
    board: &B,
    down: &mut Ring,
    leaders: &[usize],
    rounds: u64,
    tag: u32,
    parts: &mut impl Parts,
) -> Result<()> {
    let me = board.rank();
    let own = leaders.iter().position(|&rank| rank == me);
    let start = me * leaders.len() / board.size() + 1;
    let first = down.take(rounds);
    for round in 0..rounds {
        let position = first + round;
        if let (Some(own), true) = (own, board.size() > 1) {
            let slot = down.claim(board, position)?;
            parts.give(round, own, slot);
            down.publish(board, position, tag, Readers::All);
        }
        for leader in (0..leaders.len()).map(|i| (start + i) % leaders.len()).filter(|&leader| leaders[leader] != me) {
            let slot = down.expect(board, leaders[leader], position, tag)?;
            parts.take(round, leader, slot);
        }
        down.finish(board, position);
    }
    Ok(())
}

/// The round that a phase `behind` turns behind works on, if any.
#[inline]
fn within(turn: u64, behind: u64, rounds: u64) -> Option<u64> {
    turn.checked_sub(behind).filter(|&round| round < rounds)
}
