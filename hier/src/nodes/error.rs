//! Why ranks did not find their nodes.

use crate::transport;

/// The result of [`join`](super::join).
pub type Result<T> = std::result::Result<T, Error>;

/// Why ranks did not find their nodes. Every rank gets an error when one has one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Messages between the ranks failed.
    #[error("finding the ranks of this machine: {0}")]
    Transport(#[from] transport::Error),

    /// The node's segment could not be made or attached.
    #[error("the segment of this node: {0}")]
    Node(#[from] shm_core::Error),

    /// Another rank has an error of its own.
    #[error("rank {rank} could not join its node: {text}")]
    Other {
        /// The rank, in the transport.
        rank: usize,
        /// What it says.
        text: String,
    },

    /// Nodes that were given, and cannot be.
    #[error("nodes: {why}")]
    Nodes {
        /// What is wrong, and what would be right.
        why: String,
    },

    /// A rank of this node that was not heard of in time.
    #[error(
        "rank {peer}, on this machine, has not {what} within {limit:?}; see whether its process still runs and what it does"
    )]
    Late {
        /// The rank, in the transport.
        peer: usize,
        /// What it should have done.
        what: &'static str,
        /// The limit.
        limit: std::time::Duration,
    },

    /// A system call that failed where it should not.
    #[error("{what}: {cause}; `phalanx doctor` shows what this machine allows")]
    System {
        /// What was tried.
        what: &'static str,
        /// The system's word on it.
        cause: String,
    },
}

impl Error {
    /// A failed system call as an error.
    pub(super) fn system(what: &'static str) -> impl Fn(nix::errno::Errno) -> Self {
        move |cause| Self::System { what, cause: cause.to_string() }
    }
}

/// Bytes of a peer that mean nothing.
pub(super) fn garbled(rank: usize, peer: usize, what: &'static str) -> Error {
    transport::Error::Garbled { rank, peer, what }.into()
}
