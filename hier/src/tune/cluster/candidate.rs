//! What is compared.

use shm_core::Collective;

use crate::across::{ClusterRules, Error, NetworkModel, Rule, Slice};
use crate::schedule::{Algorithm, Exchanges, Goal, Order};
use crate::table::bare;

/// The cluster that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Nodes.
    pub nodes: usize,
    /// Ranks of each.
    pub ranks_a_node: usize,
}

/// A way to carry a call out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The schedule between nodes.
    pub algorithm: Algorithm,
    /// Leaders a node; 1 for all but allreduces.
    pub leaders: usize,
    /// Bytes of a slice; none for whole messages.
    pub slice: Option<usize>,
}

/// Leaders that are compared, as far as a node has so many ranks.
const LEADERS: [usize; 4] = [1, 2, 4, 8];
/// Slices that are compared, for messages of two or more.
const SLICES: [usize; 3] = [64 << 10, 256 << 10, 1 << 20];

impl Candidate {
    /// In the words of `PHALANX_CLUSTER`, behind the collective.
    #[must_use]
    pub fn words(&self, what: Collective) -> String {
        let leaders = if what == Collective::Allreduce { format!(",leaders={}", self.leaders) } else { String::new() };
        let slice = self.slice.map_or("whole".to_owned(), |bytes| bare(bytes as u64));
        format!("{}{leaders},slice={slice}", self.algorithm)
    }

    /// As rules for one collective; the others are left to the model.
    ///
    /// # Errors
    /// [`Error::Rules`], for a schedule that does not serve it.
    pub fn rules(&self, what: Collective) -> Result<ClusterRules, Error> {
        format!("{what}:{}", self.words(what)).parse()
    }

    /// The rule for one collective.
    ///
    /// # Errors
    /// As of [`rules`](Candidate::rules).
    pub fn rule(&self, what: Collective) -> Result<Rule, Error> {
        Ok(self.rules(what)?.of(what))
    }

    /// Whether the slices are of this kind.
    #[must_use]
    pub fn slices(&self) -> Slice {
        self.slice.map_or(Slice::Whole, Slice::Bytes)
    }
}

/// The goal of a collective, for root 0.
fn goal(what: Collective) -> Goal {
    match what {
        Collective::Barrier => Goal::Barrier,
        Collective::Broadcast => Goal::Broadcast { root: 0 },
        Collective::Reduce => Goal::Reduce { root: 0 },
        Collective::Allreduce => Goal::Allreduce,
    }
}

/// Schedules of whole messages with one leader a node: first the one that the model of the network would take.
pub(super) fn schedules(what: Collective, bytes: usize, shape: Shape, network: &NetworkModel) -> Vec<Candidate> {
    const NEAREST: Algorithm = Algorithm::HalvingDoubling { order: Order::Nearest };
    const FARTHEST: Algorithm = Algorithm::HalvingDoubling { order: Order::Farthest };
    let all: &[Algorithm] = match what {
        Collective::Barrier => &[],
        Collective::Broadcast => &[Algorithm::Binomial, Algorithm::ScatterRing { saving: true }],
        Collective::Reduce => &[Algorithm::Binomial, NEAREST, FARTHEST],
        Collective::Allreduce => &[
            Algorithm::RecursiveDoubling,
            Algorithm::HalvingExchange { exchanges: Exchanges::One },
            Algorithm::HalvingExchange { exchanges: Exchanges::Two },
            Algorithm::HalvingExchange { exchanges: Exchanges::Three },
            FARTHEST,
            Algorithm::Ring,
            Algorithm::Circulant,
            Algorithm::Binomial,
        ],
    };
    let mut all: Vec<Algorithm> =
        all.iter().copied().filter(|algorithm| algorithm.pattern(goal(what), shape.nodes as u32).is_ok()).collect();
    if let Some(fastest) = network.fastest(&all, goal(what), shape.nodes, bytes) {
        all.sort_by_key(|&algorithm| algorithm != fastest);
    }
    all.into_iter().map(|algorithm| Candidate { algorithm, leaders: 1, slice: None }).collect()
}

/// The same with other numbers of leaders, the given one first.
pub(super) fn leaders(what: Collective, given: Candidate, shape: Shape) -> Vec<Candidate> {
    let most = if what == Collective::Allreduce { shape.ranks_a_node } else { 1 };
    let others = LEADERS.into_iter().filter(|&leaders| leaders <= most && leaders != given.leaders);
    std::iter::once(given).chain(others.map(|leaders| Candidate { leaders, ..given })).collect()
}

/// The same in slices, the given one first. With one rank a node there is nothing that an allreduce could overlap with.
pub(super) fn slices(what: Collective, bytes: usize, given: Candidate, shape: Shape) -> Vec<Candidate> {
    let overlaps = what != Collective::Allreduce || shape.ranks_a_node > 1;
    let others = SLICES.into_iter().filter(|&slice| overlaps && 2 * slice <= bytes && Some(slice) != given.slice);
    std::iter::once(given).chain(others.map(|slice| Candidate { slice: Some(slice), ..given })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape { nodes: 8, ranks_a_node: 4 };

    #[test]
    fn all_candidates_are_rules_that_mean_what_they_say() {
        for what in [Collective::Broadcast, Collective::Reduce, Collective::Allreduce] {
            for nodes in [2, 3, 8, 33] {
                let shape = Shape { nodes, ..SHAPE };
                for bytes in [8, 1 << 16, 1 << 22] {
                    for schedule in schedules(what, bytes, shape, &NetworkModel::default()) {
                        for led in leaders(what, schedule, shape) {
                            for one in slices(what, bytes, led, shape) {
                                let rule = one.rule(what).unwrap();
                                assert_eq!((rule.algorithm, rule.slice), (Some(one.algorithm), Some(one.slices())));
                                assert!(what != Collective::Allreduce || rule.leaders == Some(one.leaders));
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn the_models_choice_comes_first() {
        let first = |bytes| schedules(Collective::Allreduce, bytes, SHAPE, &NetworkModel::default())[0].algorithm;
        assert_eq!((first(8), first(64 << 20)), (Algorithm::RecursiveDoubling, Algorithm::Ring));
    }

    #[test]
    fn there_is_nothing_to_overlap_on_nodes_of_one_rank() {
        let given = Candidate { algorithm: Algorithm::Ring, leaders: 1, slice: None };
        let single = Shape { ranks_a_node: 1, ..SHAPE };
        assert_eq!(slices(Collective::Allreduce, 1 << 22, given, single), [given]);
        assert_eq!(leaders(Collective::Allreduce, given, single), [given]);
        assert_eq!(slices(Collective::Allreduce, 1 << 22, given, SHAPE).len(), 4);
        assert_eq!(leaders(Collective::Allreduce, given, SHAPE).len(), 3);
    }
}
