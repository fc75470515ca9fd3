//! Reduce-scatter and allgather over a circulant graph (Träff), in ceil(log2 N) rounds for any N.
//!
//! Count segments from the rank's own: number i is segment rank + i. Before round k (from 0) of the reduce-scatter a
//! rank has the numbers below s = ceil(N / 2^k) to care for. With t = ceil(s / 2), it sends the numbers t .. s to
//! rank + t, for which they are the numbers 0 .. s - t, and combines what arrives from rank - t with its own 0 .. s - t. In
//! the end it cares for number 0 only. The allgather is the same backwards. Operands are combined in an order of their
//! own.

use super::program::{Combine, Receive, Round, Send, Span};

/// ceil(log2 ranks): the rounds of either half.
pub(super) fn rounds(ranks: u32) -> u32 {
    ranks.next_power_of_two().ilog2()
}

/// Round `round`, from 0, of the reduce-scatter.
pub(super) fn reduce_scatter(ranks: u32, rank: u32, round: u32) -> Round {
    let Skip { distance, count } = skip(ranks, round);
    let to = (rank + distance) % ranks;
    Round::both(
        Send { to, span: Span { first: to, count } },
        Receive { from: (rank + ranks - distance) % ranks, span: Span { first: rank, count }, combine: Combine::Left },
    )
}

/// Round `round`, from 0, of the allgather.
pub(super) fn allgather(ranks: u32, rank: u32, round: u32) -> Round {
    let Skip { distance, count } = skip(ranks, rounds(ranks) - 1 - round);
    let from = (rank + distance) % ranks;
    Round::both(
        Send { to: (rank + ranks - distance) % ranks, span: Span { first: rank, count } },
        Receive { from, span: Span { first: from, count }, combine: Combine::Replace },
    )
}

/// How far messages go, and how many segments they carry.
struct Skip {
    distance: u32,
    count: u32,
}

fn skip(ranks: u32, round: u32) -> Skip {
    // Halving and rounding up k times is dividing by 2^k and rounding up once.
    let had = ranks.div_ceil(1 << round);
    let distance = had.div_ceil(2);
    Skip { distance, count: had - distance }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eleven_ranks_by_hand() {
        let skips: Vec<_> = (0..rounds(11)).map(|round| skip(11, round)).map(|s| (s.distance, s.count)).collect();
        assert_eq!(skips, [(6, 5), (3, 3), (2, 1), (1, 1)]);
        let round = reduce_scatter(11, 8, 0);
        assert_eq!(round.sends[0], Send { to: 3, span: Span { first: 3, count: 5 } });
        assert_eq!(round.receives[0].from, 2);
        assert_eq!(round.receives[0].span, Span { first: 8, count: 5 });
    }
}
