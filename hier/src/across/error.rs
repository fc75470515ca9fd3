//! What can go wrong across nodes.

use crate::nodes::Placement;
use crate::{schedule, transport};

/// The result of every call across nodes.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a call across nodes did not do what was asked. Ranks are those of the communicator that was called.
///
/// After every error of a call but [`NoRoom`](Error::NoRoom) and a node's want of room, the communicator cannot be used further,
/// on no rank.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An error of this rank's node.
    #[error(transparent)]
    Node(shm_core::Error),

    /// Messages between nodes failed.
    #[error("between nodes: {0}")]
    Network(#[from] transport::Error),

    /// The ranks could not find their nodes.
    #[error(transparent)]
    Nodes(#[from] crate::nodes::Error),

    /// A rank of another node could not go on.
    #[error(
        "rank {rank}, on another node, could not do its part of this call or an earlier one; its own error says why"
    )]
    Elsewhere {
        /// The first rank of that node.
        rank: usize,
    },

    /// A node that has no room for another communicator.
    #[error(
        "rank {rank}: another node has no room for another communicator; drop communicators that are no longer used, or start the \
         job with a larger arena (PHALANX_ARENA=BYTES)"
    )]
    NoRoom {
        /// The rank that was called.
        rank: usize,
    },

    /// A schedule that cannot do what it was to do.
    #[error("{0}; PHALANX_CLUSTER names schedules")]
    Schedule(#[from] schedule::Error),

    /// Rules (`PHALANX_CLUSTER`) that are not understood.
    #[error("PHALANX_CLUSTER={text:?}: {why}")]
    Rules {
        /// The rules.
        text: String,
        /// What is wrong, and what would be right.
        why: String,
    },

    /// A file of switches (`PHALANX_TOPOLOGY`) that is not understood, or does not have a host of the job.
    #[error("PHALANX_TOPOLOGY: {why}; `phalanx topo --cluster FILE` shows what a file says")]
    Topology {
        /// What is wrong, and what would be right.
        why: String,
    },

    /// Rank 0 has found no table where one was named, or one that it cannot take.
    #[error("rank 0 cannot take the table: {why}")]
    Table {
        /// What is wrong, and what would be right.
        why: String,
    },

    /// This communicator has failed before.
    #[error("rank {rank}: this communicator cannot be used further, since an earlier call failed; its error said why")]
    Broken {
        /// The rank that was called.
        rank: usize,
    },
}

impl From<shm_core::Error> for Error {
    fn from(error: shm_core::Error) -> Self {
        Self::Node(error)
    }
}

/// A node's error in terms of the ranks of the whole communicator: `world` has the rank of each member of the node's job,
/// where it is in this communicator.
pub(super) fn of_node(error: shm_core::Error, placement: &Placement, node: usize, world: &[Option<usize>]) -> Error {
    use shm_core::Error as E;
    let global = |local: usize| placement.rank_at(node, local).unwrap_or(local);
    Error::Node(match error {
        E::RankFailed { rank } => E::RankFailed { rank: world.get(rank).copied().flatten().unwrap_or(rank) },
        E::Refused { rank } => E::Refused { rank: global(rank) },
        E::Mismatch { rank, own, own_call } => E::Mismatch { rank: global(rank), own: global(own), own_call },
        E::Busy { rank } => E::Busy { rank: global(rank) },
        E::Length { rank, what, found, expected } => E::Length { rank: global(rank), what, found, expected },
        other => other,
    })
}
