//! The segment, from the first rank of a node (the hub) to the others (its guests), over a Unix socket.
//!
//! The socket has a name in the abstract namespace, with a random part, so that nothing is left in the file system. The
//! guests learn the name and a random token through the transport. On both sides the user of the peer's process must be
//! one's own; the hub asks for the token, the guest for the job's mark in the segment.
//!
//! 1. The guest connects, and says who it is. With it goes a descriptor of its life ([`super::watch::life`]).
//! 2. The hub answers with the segment.
//! 3. The guest maps it, and reports through the transport whether that was possible.
//! 4. When all have, the hub sends everybody the lives of all; when one has not, it closes all connections.

mod guest;
mod hub;
mod wire;

use std::os::fd::OwnedFd;

use shm_core::job::Invitation;

pub(super) use guest::visit;
pub(super) use hub::Hub;

/// The tag of the guests' reports.
const REPORT_TAG: u32 = *crate::transport::EXCHANGE_TAGS.start() + 10;

/// How long a request that is given up may take to end.
const FAREWELL: std::time::Duration = std::time::Duration::from_secs(1);

/// What came of the attempt to share a segment.
pub(super) enum Attempt {
    /// The rank has its place.
    Reached(Invited),
    /// The rank could, but another rank of the node could not.
    OthersApart,
    /// The rank cannot reach the node's first rank, or not map its memory.
    Apart(String),
}

/// A place on a node, and descriptors of the lives of all ranks of the node, by local rank.
pub(super) struct Invited {
    pub invitation: Invitation,
    pub lives: Vec<OwnedFd>,
}

impl Attempt {
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Reached(_) | Self::OthersApart => vec![0],
            Self::Apart(why) => [&[1], why.as_bytes()].concat(),
        }
    }

    /// The reason of a rank that is apart.
    pub fn why_apart(bytes: &[u8]) -> Option<String> {
        match bytes.split_first() {
            Some((1, why)) => Some(String::from_utf8_lossy(why).into_owned()),
            _ => None,
        }
    }
}
