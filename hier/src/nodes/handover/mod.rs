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

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::time::Duration;

    use nix::sys::socket::{AddressFamily, SockFlag, SockType, connect, socket};
    use shm_core::job::{Job, JobSpec};

    use super::super::error::Error;
    use super::*;
    use crate::transport::local::{Behaviour, LocalTransport};
    use crate::transport::{Transport, all_gather};

    const LIMIT: Duration = Duration::from_secs(20);

    fn hub(ranks: usize) -> Hub {
        Hub::open(Job::create(&JobSpec::new(ranks).unwrap()).unwrap()).unwrap()
    }

    /// A connection to what a hub announced.
    fn stranger(announcement: &[u8]) -> OwnedFd {
        let socket = socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None).unwrap();
        let address = hub::address(announcement[..16].try_into().unwrap()).unwrap();
        connect(socket.as_raw_fd(), &address).unwrap();
        socket
    }

    /// Runs a hub and a guest that is told `announcement`, and returns what became of both.
    fn meet(hub: Hub, announcement: &[u8], limit: Duration) -> (Result<Attempt, Error>, Result<Attempt, Error>) {
        let mut ends = LocalTransport::group(2, Behaviour::default());
        let (other, one) = (ends.pop().unwrap(), ends.pop().unwrap());
        std::thread::scope(|scope| {
            let guest = scope.spawn(move || {
                let attempt = visit(&other, &[0, 1], announcement, limit);
                // Nobody leaves before both are done.
                all_gather(&other, &[], Some(LIMIT)).unwrap();
                attempt
            });
            let attempt = hub.serve(&one, &[0, 1], limit);
            all_gather(&one, &[], Some(LIMIT)).unwrap();
            (attempt, guest.join().unwrap())
        })
    }

    #[test]
    fn strangers_get_nothing_and_hinder_nobody() {
        let hub = hub(2);
        let announcement = hub.announcement();
        let (silent, wrong, nonsense) = (stranger(&announcement), stranger(&announcement), stranger(&announcement));
        let life = super::super::watch::life().unwrap();
        let hello = wire::Record::Hello { token: [0; 16], local: 1 };
        wire::send(&wrong, hello, &[std::os::fd::AsFd::as_fd(&life)]).unwrap();
        nix::unistd::write(&nonsense, b"let me in").unwrap();
        let (served, visited) = meet(hub, &announcement, LIMIT);
        let (Ok(Attempt::Reached(served)), Ok(Attempt::Reached(visited))) = (served, visited) else {
            panic!("they did not meet");
        };
        assert_eq!((served.lives.len(), visited.lives.len()), (2, 2));
        assert_eq!((served.invitation.size(), visited.invitation.size()), (2, 2));
        for socket in [silent, wrong, nonsense] {
            assert!(matches!(wire::read(&socket), Ok(wire::Read::Closed)));
        }
    }

    #[test]
    fn a_hub_that_is_not_there_leaves_its_guest_apart() {
        let hub = hub(2);
        let mut announcement = hub.announcement();
        announcement[0] ^= 1;
        let (served, visited) = meet(hub, &announcement, LIMIT);
        assert!(matches!(served, Ok(Attempt::OthersApart)));
        assert!(matches!(visited, Ok(Attempt::Apart(why)) if why.contains("cannot be reached")));
    }

    #[test]
    fn a_guest_with_the_wrong_token_is_sent_away() {
        let hub = hub(2);
        let mut announcement = hub.announcement();
        announcement[16] ^= 1;
        let (served, visited) = meet(hub, &announcement, LIMIT);
        assert!(matches!(served, Ok(Attempt::OthersApart)));
        assert!(matches!(visited, Ok(Attempt::Apart(_))));
    }

    #[test]
    fn a_segment_of_another_job_is_refused() {
        let hub = hub(2);
        let mut announcement = hub.announcement();
        announcement[39] ^= 1;
        let (served, visited) = meet(hub, &announcement, LIMIT);
        assert!(matches!(served, Ok(Attempt::OthersApart)));
        assert!(visited.is_err());
    }

    #[test]
    fn a_guest_that_does_not_come_is_named() {
        let ends = LocalTransport::group(2, Behaviour::default());
        let limit = Duration::from_millis(50);
        let error = hub(2).serve(&ends[0], &[0, 1], limit).map(drop).unwrap_err();
        assert!(matches!(error, Error::Late { peer: 1, .. }), "{error}");
        assert_eq!(ends[1].rank(), 1);
    }
}
