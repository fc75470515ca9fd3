//! What schedules cost, as formulas: what counting finds, said beforehand.

use super::fold::{Fold, Role};
use super::halving::Halving;
use super::{Algorithm, Goal, Pattern, scatter_ring};

/// The cost of a schedule, from a formula.
///
/// `p` is the number of ranks, `P` the largest power of two that is not above it, `e` = p - P, `L` = ceil(log2 p), and
/// `own(v)` = min(lowest bit of v, p - v) with own(0) = p. Segments are p-ths of the vector, P-ths for halving, and the
/// whole vector for recursive doubling and binomial trees. With `x` exchanges in the place of the last halvings `S` = P
/// / 2^x.
///
/// | schedule | rounds | messages | segments |
/// |---|---|---|---|
/// | ring, either half | p-1 | p(p-1) | p(p-1) |
/// | circulant, either half | L | pL | p(p-1) |
/// | recursive doubling | log P + 2 if e > 0 | P log P + 2e | the same |
/// | halving, allreduce | 2 log P + 2 if e > 0 | 2P log P + 2e | 2P(P-1) + 2eP |
/// | halving and exchanges, allreduce | 2 log P - x + 2 if e > 0 | P (2 log P - x) + 2e | P (2(S-1) + x) + 2eS |
/// | halving, reduce | 2 log P + 1 if e > 0 + 1 if the root is aside | P log P + P-1 + e + the last | P(P-1) + (P/2) log P + eP + P of the last |
/// | binomial, reduce or broadcast | L | p-1 | p-1 |
/// | scatter and native ring | L + p-1 | p-1 + p(p-1) | sum of own(v), v > 0, + p(p-1) |
/// | scatter and saving ring | L + p-1 | p-1 + p² - sum of own(v) | p² - p |
/// | dissemination | L | pL | 0 |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Formula {
    /// Rounds, the same for all ranks.
    pub rounds: u32,
    /// Messages of all ranks.
    pub messages: u64,
    /// Segments that all ranks send.
    pub segments: u64,
    /// Segments that the rank sends which sends most.
    pub busiest: u64,
}

impl Formula {
    /// Twice the cost: both halves of an allreduce.
    fn twice(self) -> Formula {
        Formula {
            rounds: 2 * self.rounds,
            messages: 2 * self.messages,
            segments: 2 * self.segments,
            busiest: 2 * self.busiest,
        }
    }
}

impl Pattern {
    /// What the schedule costs, from the formula. Counting ([`Pattern::total`]) finds the same.
    pub fn formula(&self) -> Formula {
        let (ranks, goal) = (self.ranks(), self.goal());
        match (self.algorithm(), goal) {
            (Algorithm::Ring, Goal::Allreduce) => ring_half(ranks).twice(),
            (Algorithm::Ring, _) => ring_half(ranks),
            (Algorithm::RecursiveDoubling, _) => halving_allreduce(Halving::recursive_doubling(ranks)),
            (Algorithm::HalvingDoubling { order }, Goal::Allreduce) => halving_allreduce(Halving::new(ranks, order)),
            (Algorithm::HalvingExchange { exchanges }, _) => {
                halving_allreduce(Halving::with_exchanges(ranks, exchanges))
            }
            (Algorithm::HalvingDoubling { .. }, Goal::Reduce { root }) => halving_reduce(Fold::of(ranks), root),
            (Algorithm::HalvingDoubling { .. } | Algorithm::Circulant, Goal::ReduceScatter | Goal::Allgather) => {
                logarithmic_half(ranks)
            }
            (Algorithm::HalvingDoubling { .. } | Algorithm::Circulant, _) => logarithmic_half(ranks).twice(),
            (Algorithm::Binomial, Goal::Reduce { .. }) => Formula { busiest: u64::from(ranks > 1), ..tree(ranks, 0) },
            (Algorithm::Binomial, Goal::Broadcast { root }) => tree(ranks, root),
            // The root of the broadcast sends to L ranks; others send once up, and to fewer than L ranks down.
            (Algorithm::Binomial, _) => Formula { busiest: u64::from(log(ranks)), ..tree(ranks, 0).twice() },
            (Algorithm::ScatterRing { saving }, _) => scatter_and_ring(ranks, saving),
            (Algorithm::Dissemination, _) => Formula { segments: 0, busiest: 0, ..logarithmic_half(ranks) },
        }
    }
}

/// ceil(log2 ranks).
fn log(ranks: u32) -> u32 {
    ranks.next_power_of_two().ilog2()
}

fn ring_half(ranks: u32) -> Formula {
    let (p, others) = (u64::from(ranks), u64::from(ranks - 1));
    Formula { rounds: ranks - 1, messages: p * others, segments: p * others, busiest: others }
}

fn logarithmic_half(ranks: u32) -> Formula {
    Formula { rounds: log(ranks), messages: u64::from(ranks) * u64::from(log(ranks)), ..ring_half(ranks) }
}

fn halving_allreduce(halving: Halving) -> Formula {
    let fold = halving.fold;
    let (core, excess, aside) = (u64::from(fold.core), u64::from(fold.excess), u64::from(fold.rounds()));
    let (steps, left) = (2 * fold.log() - halving.exchanges, core >> halving.exchanges);
    let of_member = 2 * (left - 1) + u64::from(halving.exchanges);
    Formula {
        rounds: steps + 2 * fold.rounds(),
        messages: core * u64::from(steps) + 2 * excess,
        segments: core * of_member + 2 * excess * left,
        busiest: of_member + aside * left,
    }
}

fn halving_reduce(fold: Fold, root: u32) -> Formula {
    let (core, excess, steps) = (u64::from(fold.core), u64::from(fold.excess), u64::from(fold.log()));
    let last = u32::from(matches!(fold.role(root), Role::Aside(_)));
    let from_neighbour = u64::from(last) * core;
    // The one who sends half the vector in the last step of the gather, or the root's neighbour.
    let late = if last == 1 { core } else { core / 2 };
    Formula {
        rounds: 2 * fold.log() + fold.rounds() + last,
        messages: core * steps + (core - 1) + excess + u64::from(last),
        segments: core * (core - 1) + core / 2 * steps + excess * core + from_neighbour,
        busiest: if core == 1 { 0 } else { core - 1 + late },
    }
}

/// A broadcast down the tree.
fn tree(ranks: u32, root: u32) -> Formula {
    let levels = log(ranks);
    // Every block that the root joins sends one message, or gets it from the root; the last block may have no partner.
    let of_root = (0..levels).filter(|&level| ((root >> level) ^ 1) << level < ranks).count() as u32;
    // Where the root is in the upper half, the leader of the lower one, which is full, serves all its levels but one.
    let busiest = if levels > 0 && root >> (levels - 1) == 1 { of_root.max(levels - 1) } else { levels };
    let others = u64::from(ranks - 1);
    Formula { rounds: levels, messages: others, segments: others, busiest: u64::from(busiest) }
}

fn scatter_and_ring(ranks: u32, saving: bool) -> Formula {
    let (p, others) = (u64::from(ranks), u64::from(ranks - 1));
    let owned: u64 = (0..ranks).map(|place| u64::from(scatter_ring::own(ranks, place))).sum();
    let in_ring = if saving { p * p - owned } else { p * others };
    Formula {
        rounds: log(ranks) + ranks - 1,
        messages: others + in_ring,
        segments: owned - p + in_ring,
        // The root: all but one segment in the scatter, and as much in the ring.
        busiest: 2 * others,
    }
}
