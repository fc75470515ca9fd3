//! The programs of all ranks: unmade, or all of them.

use super::halving::Halving;
use super::{Algorithm, Error, Goal, Order, Program, Round};
use super::{binomial, circulant, dissemination, ring, scatter_ring};

/// The largest number of ranks of a schedule.
pub const MOST_RANKS: u32 = 1 << 20;

/// An algorithm for a goal over a number of ranks: any round of any rank, made when asked for.
///
/// It takes no memory to speak of, so that schedules of many ranks and many rounds can be walked through without being
/// kept: a ring of 4,096 ranks has 33 million rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pattern {
    algorithm: Algorithm,
    goal: Goal,
    ranks: u32,
    segments: u32,
    rounds: u32,
}

impl Pattern {
    pub(super) fn new(algorithm: Algorithm, goal: Goal, ranks: u32) -> Result<Pattern, Error> {
        if ranks == 0 || ranks > MOST_RANKS {
            return Err(Error::Ranks { ranks });
        }
        if let Some(root) = goal.root().filter(|&root| root >= ranks) {
            return Err(Error::RootOutOfRange { root, ranks });
        }
        let halved = |halving: Halving| (halving.segments(), halving.rounds());
        let (segments, rounds) = match (algorithm, goal) {
            (Algorithm::Ring, Goal::Allreduce) => (ranks, 2 * ring::rounds(ranks)),
            (Algorithm::Ring, Goal::ReduceScatter | Goal::Allgather) => (ranks, ring::rounds(ranks)),
            (Algorithm::RecursiveDoubling, Goal::Allreduce) => halved(Halving::recursive_doubling(ranks)),
            (Algorithm::HalvingDoubling { order }, Goal::Allreduce) => halved(Halving::new(ranks, order)),
            (Algorithm::HalvingExchange { exchanges }, Goal::Allreduce) => {
                halved(Halving::with_exchanges(ranks, exchanges))
            }
            (Algorithm::HalvingDoubling { order }, Goal::Reduce { root }) => {
                let halving = Halving::new(ranks, order);
                (halving.segments(), halving.reduce_rounds(root))
            }
            (Algorithm::HalvingDoubling { order: Order::Farthest }, Goal::ReduceScatter | Goal::Allgather)
                if ranks.is_power_of_two() =>
            {
                (ranks, ranks.ilog2())
            }
            (Algorithm::Binomial, Goal::Allreduce) => (1, 2 * binomial::levels(ranks)),
            (Algorithm::Binomial, Goal::Reduce { .. } | Goal::Broadcast { .. }) => (1, binomial::levels(ranks)),
            (Algorithm::Circulant, Goal::Allreduce) => (ranks, 2 * circulant::rounds(ranks)),
            (Algorithm::Circulant, Goal::ReduceScatter | Goal::Allgather) => (ranks, circulant::rounds(ranks)),
            (Algorithm::ScatterRing { .. }, Goal::Broadcast { .. }) => (ranks, scatter_ring::rounds(ranks)),
            (Algorithm::Dissemination, Goal::Barrier) => (1, dissemination::rounds(ranks)),
            _ => return Err(Error::Unserved { algorithm, goal, ranks, reason: serves(algorithm) }),
        };
        Ok(Pattern { algorithm, goal, ranks, segments, rounds })
    }

    /// The algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// What it achieves.
    pub fn goal(&self) -> Goal {
        self.goal
    }

    /// How many ranks take part.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Into how many segments the vector is parted.
    pub fn segments(&self) -> u32 {
        self.segments
    }

    /// How many rounds there are, the same for all ranks.
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    /// What `rank` does in round `round`, from 0. A rank or a round that does not exist has nothing to do.
    pub fn round(&self, rank: u32, round: u32) -> Round {
        let ranks = self.ranks;
        if rank >= ranks || round >= self.rounds {
            return Round::default();
        }
        // Which round of the second half it is, in an allreduce of two halves.
        let second = round.checked_sub(self.rounds / 2);
        match (self.algorithm, self.goal) {
            (Algorithm::Ring, Goal::ReduceScatter) => ring::reduce_scatter(ranks, rank, round),
            (Algorithm::Ring, Goal::Allgather) => ring::allgather(ranks, rank, round),
            (Algorithm::Ring, _) => match second {
                None => ring::reduce_scatter(ranks, rank, round),
                Some(round) => ring::allgather(ranks, rank, round),
            },
            (Algorithm::RecursiveDoubling, _) => Halving::recursive_doubling(ranks).allreduce(rank, round),
            (Algorithm::HalvingDoubling { order }, goal) => {
                let halving = Halving::new(ranks, order);
                match goal {
                    Goal::Reduce { root } => halving.reduce(root, rank, round),
                    Goal::ReduceScatter => halving.halve(rank, round),
                    Goal::Allgather => halving.double(rank, self.rounds - 1 - round),
                    _ => halving.allreduce(rank, round),
                }
            }
            (Algorithm::HalvingExchange { exchanges }, _) => {
                Halving::with_exchanges(ranks, exchanges).allreduce(rank, round)
            }
            (Algorithm::Binomial, Goal::Reduce { root }) => binomial::reduce(ranks, root, rank, round),
            (Algorithm::Binomial, Goal::Broadcast { root }) => binomial::broadcast(ranks, root, rank, round),
            (Algorithm::Binomial, _) => match second {
                None => binomial::reduce(ranks, 0, rank, round),
                Some(round) => binomial::broadcast(ranks, 0, rank, round),
            },
            (Algorithm::Circulant, Goal::ReduceScatter) => circulant::reduce_scatter(ranks, rank, round),
            (Algorithm::Circulant, Goal::Allgather) => circulant::allgather(ranks, rank, round),
            (Algorithm::Circulant, _) => match second {
                None => circulant::reduce_scatter(ranks, rank, round),
                Some(round) => circulant::allgather(ranks, rank, round),
            },
            (Algorithm::ScatterRing { saving }, goal) => {
                scatter_ring::broadcast(ranks, goal.root().unwrap_or(0), saving, rank, round)
            }
            (Algorithm::Dissemination, _) => dissemination::barrier(ranks, rank, round),
        }
    }

    /// What `rank` does.
    ///
    /// # Errors
    ///
    /// * [`Error::RankOutOfRange`] when it does not take part.
    pub fn program(&self, rank: u32) -> Result<Program, Error> {
        if rank >= self.ranks {
            return Err(Error::RankOutOfRange { rank, ranks: self.ranks });
        }
        let rounds = (0..self.rounds).map(|round| self.round(rank, round)).collect();
        Ok(Program { rank, ranks: self.ranks, segments: self.segments, rounds })
    }
}

/// What an algorithm serves, and where to go with the rest.
fn serves(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::Ring | Algorithm::Circulant => {
            "it serves allreduce, reduce-scatter and allgather; `binomial` serves reduce and broadcast, `dissemination` \
             barriers"
        }
        Algorithm::RecursiveDoubling => {
            "it serves allreduce; `binomial` serves reduce and broadcast, `circulant` reduce-scatter and allgather, \
             `dissemination` barriers"
        }
        Algorithm::HalvingExchange { .. } => {
            "it serves allreduce; `halving-nearest` also serves reduce, `circulant` reduce-scatter and allgather, \
             `binomial` broadcast, `dissemination` barriers"
        }
        Algorithm::HalvingDoubling { .. } => {
            "it serves allreduce and reduce, and farthest-first also reduce-scatter and allgather over a power of two of \
             ranks; `circulant` serves these over any number, `binomial` broadcast, `dissemination` barriers"
        }
        Algorithm::Binomial => {
            "it serves allreduce, reduce and broadcast; `ring` and `circulant` serve reduce-scatter and allgather, \
             `dissemination` barriers"
        }
        Algorithm::ScatterRing { .. } => "it serves broadcast only; `binomial` also serves reduce and allreduce",
        Algorithm::Dissemination => "it serves barriers only; `binomial` serves broadcast, reduce and allreduce",
    }
}

/// The programs of all ranks, in the order of ranks, and what they are for.
///
/// Printed with `{}` it is a table: one row a round, one column a rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// What it achieves.
    pub goal: Goal,
    /// What each rank does.
    pub programs: Vec<Program>,
}

impl Schedule {
    /// The programs of all ranks.
    ///
    /// # Cost
    ///
    /// Memory for all rounds of all ranks. [`Pattern`] walks through large schedules without it.
    ///
    /// # Errors
    ///
    /// * Those of [`Algorithm::pattern`].
    pub fn new(algorithm: Algorithm, goal: Goal, ranks: u32) -> Result<Schedule, Error> {
        let pattern = algorithm.pattern(goal, ranks)?;
        let programs = (0..ranks).map(|rank| pattern.program(rank)).collect::<Result<_, _>>()?;
        Ok(Schedule { goal, programs })
    }
}
