//! Reduce-scatter and allgather round a ring, with the segments in the order of Patarasuk and Yuan.
//!
//! Reduce-scatter, iteration j = 1 .. N-1: rank i sends segment i - j to rank i + 1, the one that it combined in the
//! iteration before, and adds its own operand to the segment i - 1 - j that arrives from rank i - 1. Segment s starts
//! at rank s + 1 and ends, complete, at rank s. Operands are combined in the order s + 1, s + 2, .., s, so each segment
//! has a bracketing of its own, the same in every call.
//!
//! Allgather, iteration j = 1 .. N-1: rank i sends segment i + 1 - j to rank i + 1, the one that arrived last.

use super::program::{Combine, Receive, Round, Send, Span};

/// The rounds of either half.
pub(super) fn rounds(ranks: u32) -> u32 {
    ranks - 1
}

/// Round `round`, from 0, of the reduce-scatter.
pub(super) fn reduce_scatter(ranks: u32, rank: u32, round: u32) -> Round {
    shift(ranks, rank, round + 1, Combine::Left)
}

/// Round `round`, from 0, of the allgather.
pub(super) fn allgather(ranks: u32, rank: u32, round: u32) -> Round {
    shift(ranks, rank, round, Combine::Replace)
}

/// Sends the segment that lies `back` behind the rank, and receives the one behind that.
fn shift(ranks: u32, rank: u32, back: u32, combine: Combine) -> Round {
    let segment = |back: u32| Span::one((rank + 2 * ranks - back) % ranks);
    Round::both(
        Send { to: (rank + 1) % ranks, span: segment(back) },
        Receive { from: (rank + ranks - 1) % ranks, span: segment(back + 1), combine },
    )
}
