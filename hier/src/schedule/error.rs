//! Why there is no such schedule.

use super::{Algorithm, Flaw, Goal, MOST_RANKS};

/// What can go wrong when a schedule is asked for.
///
/// Every message says what was wrong and what to try next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A number of ranks that no schedule has.
    #[error("a schedule over {ranks} ranks: there are 1 to {MOST_RANKS}; give the number of ranks that take part")]
    Ranks {
        /// How many were asked for.
        ranks: u32,
    },

    /// A rank that does not take part.
    #[error("rank {rank} is not one of the {ranks} ranks; ranks count from 0 to {}", ranks - 1)]
    RankOutOfRange {
        /// The rank that was asked for.
        rank: u32,
        /// The number of ranks.
        ranks: u32,
    },

    /// A root that does not take part.
    #[error("root {root} is not one of the {ranks} ranks; ranks count from 0 to {}", ranks - 1)]
    RootOutOfRange {
        /// The root of the goal.
        root: u32,
        /// The number of ranks.
        ranks: u32,
    },

    /// An algorithm that does not serve the goal over so many ranks.
    #[error("`{algorithm}` makes no {goal} over {ranks} ranks: {reason}")]
    Unserved {
        /// The algorithm.
        algorithm: Algorithm,
        /// What was asked of it.
        goal: Goal,
        /// The number of ranks.
        ranks: u32,
        /// What it does instead, and which algorithm would do it.
        reason: &'static str,
    },

    /// A name that no algorithm has.
    #[error("{name:?} is not an algorithm across nodes; write one of {}", Algorithm::names())]
    UnknownAlgorithm {
        /// The name that was given.
        name: String,
    },

    /// Programs that do not make a collective.
    #[error("the schedule is flawed: {0}; take programs of one `Pattern`, of every rank one, in the order of ranks")]
    Flawed(#[from] Flaw),
}
