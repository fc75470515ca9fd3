//! Binomial trees over ranges of ranks.
//!
//! At level j the ranks stand in blocks of 2^j, from rank 0 on; the last one may be cut short. A block's leader is the
//! root if it is in the block, else the block's first rank. From level j to j + 1 two blocks join: the leader of the
//! one that does not lead both sends to the other. So every operand travels with those of its neighbours, for every
//! root, and the operands of a block are combined in rank order. For root 0 this is the binomial tree: rank r has the
//! parent r with its last bit taken away.

use super::program::{Combine, Round, Span};

/// The vector is never parted.
const WHOLE: Span = Span { first: 0, count: 1 };

/// ceil(log2 ranks): the number of levels.
pub(super) fn levels(ranks: u32) -> u32 {
    ranks.next_power_of_two().ilog2()
}

/// Round `round`, from 0, of a reduce: the blocks of that level join.
pub(super) fn reduce(ranks: u32, root: u32, rank: u32, round: u32) -> Round {
    match link(ranks, root, rank, round) {
        Link::Up(leader) => Round::send(leader, WHOLE),
        Link::Down(other) if other < rank => Round::receive(other, WHOLE, Combine::Left),
        Link::Down(other) => Round::receive(other, WHOLE, Combine::Right),
        Link::None => Round::default(),
    }
}

/// Round `round`, from 0, of a broadcast: the same, backwards.
pub(super) fn broadcast(ranks: u32, root: u32, rank: u32, round: u32) -> Round {
    match link(ranks, root, rank, levels(ranks) - 1 - round) {
        Link::Up(leader) => Round::receive(leader, WHOLE, Combine::Replace),
        Link::Down(other) => Round::send(other, WHOLE),
        Link::None => Round::default(),
    }
}

/// What a rank has to do with the joining of its block and the neighbouring one.
enum Link {
    /// It leads its block, and this rank leads both.
    Up(u32),
    /// It leads both, and this rank leads the other block.
    Down(u32),
    /// It leads nothing, or there is no other block.
    None,
}

fn link(ranks: u32, root: u32, rank: u32, level: u32) -> Link {
    let block = rank >> level;
    let other = block ^ 1;
    if leader(block, level, root) != rank || (other << level) >= ranks {
        return Link::None;
    }
    let both = leader(block >> 1, level + 1, root);
    if both == rank { Link::Down(leader(other, level, root)) } else { Link::Up(both) }
}

fn leader(block: u32, level: u32, root: u32) -> u32 {
    if root >> level == block { root } else { block << level }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For each round who sends to whom in a reduce.
    fn senders(ranks: u32, root: u32) -> Vec<Vec<(u32, u32)>> {
        let sends = |round| {
            let of = move |rank| reduce(ranks, root, rank, round).sends.into_iter().map(move |send| (rank, send.to));
            (0..ranks).flat_map(of).collect()
        };
        (0..levels(ranks)).map(sends).collect()
    }

    #[test]
    fn root_0_has_the_binomial_tree() {
        assert_eq!(senders(6, 0), [vec![(1, 0), (3, 2), (5, 4)], vec![(2, 0)], vec![(4, 0)]]);
        for rank in 1..300_u32 {
            let parents: Vec<u32> =
                (0..levels(300)).flat_map(|round| reduce(300, 0, rank, round).sends).map(|send| send.to).collect();
            assert_eq!(parents, [rank & (rank - 1)]);
        }
    }

    #[test]
    fn another_root_leads_its_blocks() {
        assert_eq!(senders(6, 3), [vec![(1, 0), (2, 3), (5, 4)], vec![(0, 3)], vec![(4, 3)]]);
        assert_eq!(senders(5, 4), [vec![(1, 0), (3, 2)], vec![(2, 0)], vec![(0, 4)]]);
    }
}
