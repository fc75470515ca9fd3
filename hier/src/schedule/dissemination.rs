//! A barrier: everybody tells the ranks at distances 1, 2, 4, .. that it, and all it heard of, are there.

use super::program::{Combine, Receive, Round, Send, Span};

/// ceil(log2 ranks).
pub(super) fn rounds(ranks: u32) -> u32 {
    ranks.next_power_of_two().ilog2()
}

pub(super) fn barrier(ranks: u32, rank: u32, round: u32) -> Round {
    let distance = 1 << round;
    Round::both(
        Send { to: (rank + distance) % ranks, span: Span::EMPTY },
        Receive { from: (rank + ranks - distance) % ranks, span: Span::EMPTY, combine: Combine::Replace },
    )
}
