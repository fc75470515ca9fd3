//! What can go wrong across nodes.

use std::fmt;

use crate::nodes::Placement;
use crate::{schedule, transport};

/// The result of every call across nodes.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a call across nodes did not do what was asked. Ranks are those of the communicator that was called.
///
/// After most of them, wrong arguments among them, the communicator cannot be used further: this rank's next call
/// returns an error at once, the others hear of it in the call that they are in or in a later one, as far as they can
/// hear ([`RankFailed`](Error::RankFailed) says how far). The communicator is as it was:
///
/// * after [`NoRoom`](Error::NoRoom) on all ranks, and after [`ArenaExhausted`](shm_core::Error::ArenaExhausted) or
///   [`Memory`](shm_core::Error::Memory) of a [`split`](super::HierComm::split) on the node that had no room;
/// * after errors of calls that are not collective (`alloc`, `failed_ranks`, `revoke`), and of
///   [`single_node`](super::HierComm::single_node)'s, of which [`shm_core::Error`] says what they leave;
/// * where a call did not begin: MPI has not begun or is over, this thread may not use it, or the call came from an
///   operator that is at work in a call of this very communicator ([`Busy`](shm_core::Error::Busy)).
///
/// `{:?}` writes the same as `{}`, so that an error that leaves `main` says what to try next.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
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

    /// A rank has ended while others still counted on it. Pending and later calls of all ranks return this, as far as
    /// they can know of it: those of its own node, as many ranks of each other node as the smallest has, and under an
    /// MPI with ULFM all.
    #[error(
        "rank {rank} (on host {host}) has ended; this communicator cannot be used further (the launcher's report says why it \
         ended). Where MPI can go on without it (Open MPI 5 under `mpirun --with-ft ulfm`), shrink() makes a communicator of the others"
    )]
    RankFailed {
        /// The rank that has ended; of several, one.
        rank: usize,
        /// Where it was.
        host: String,
    },

    /// A process of this rank's node that is not in this communicator has ended, and with it the memory that all of the
    /// node share.
    #[error(
        "rank {rank}: a process of host {host} that is not in this communicator has ended, and the memory of that node's job with it; \
         shrink() makes a new communicator, where MPI can go on"
    )]
    NodeFailed {
        /// The rank that was called.
        rank: usize,
        /// The host.
        host: String,
    },

    /// The ranks that live could not make a communicator.
    #[error("rank {rank}: no communicator of the ranks that live: {why}")]
    NotShrunk {
        /// The rank that was called.
        rank: usize,
        /// What is wrong.
        why: String,
    },

    /// A rank of another node could not go on.
    #[error(
        "rank {rank}, on another node, could not do its part of this call or an earlier one; its own error says why"
    )]
    Elsewhere {
        /// The rank, or another of its node.
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

    /// A measurement (`phalanx tune --cluster`) that makes no sense, or cannot be kept.
    #[error("rank {rank}: {why}")]
    Measurement {
        /// The rank that was called.
        rank: usize,
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

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<shm_core::Error> for Error {
    fn from(error: shm_core::Error) -> Self {
        Self::Node(error)
    }
}

impl Error {
    /// The rank that has ended, where this says so.
    pub(super) fn failed_rank(&self) -> Option<usize> {
        match self {
            Self::RankFailed { rank, .. } => Some(*rank),
            Self::Network(transport::Error::Failed { failed, .. }) => Some(*failed),
            _ => None,
        }
    }

    /// Whether this rank has found out by itself what is wrong, and that is not the end of another: its arguments, say.
    pub(super) fn is_own(&self) -> bool {
        !self.is_second_hand() && self.failed_rank().is_none()
    }

    /// Whether it only says that others could not go on.
    pub(super) fn is_second_hand(&self) -> bool {
        use transport::Error as T;
        match self {
            Self::Node(shm_core::Error::Refused { .. }) | Self::Elsewhere { .. } | Self::Broken { .. } => true,
            Self::Network(error) => matches!(error, T::Revoked { .. } | T::Gone { .. } | T::Library { .. }),
            _ => false,
        }
    }
}

/// A node's error in terms of the ranks of the whole communicator. Where it speaks of a rank of the node's job, that is
/// what `of_job` makes of it.
pub(super) fn of_node(
    error: shm_core::Error,
    placement: &Placement,
    node: usize,
    of_job: impl Fn(usize) -> usize,
) -> Error {
    use shm_core::Error as E;
    let global = |local: usize| placement.rank_at(node, local).unwrap_or(local);
    Error::Node(match error {
        E::Refused { rank } => E::Refused { rank: global(rank) },
        E::Dropped { rank } => E::Dropped { rank: global(rank) },
        E::Mismatch { ranks, own, own_call } => E::Mismatch { ranks: ranks.map(global), own: global(own), own_call },
        E::Busy { rank } => E::Busy { rank: global(rank) },
        E::Memory { rank, what, bytes, cause, advice } => {
            E::Memory { rank: rank.map(of_job), what, bytes, cause, advice }
        }
        E::HeapExhausted { rank, needed, free, heap } => E::HeapExhausted { rank: of_job(rank), needed, free, heap },
        E::Length { rank, what, found, expected } => E::Length { rank: global(rank), what, found, expected },
        other => other,
    })
}
