//! What goes over the socket: short records, some with descriptors.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, getsockopt, recvmsg, sendmsg, sockopt::PeerCredentials,
};
use nix::unistd::geteuid;

/// Descriptors that go with one record: the kernel takes 253.
pub(super) const MOST_DESCRIPTORS: usize = 200;

/// A record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Record {
    /// The guest: its local rank, with its life.
    Hello { token: [u8; 16], local: u32 },
    /// The hub: the mark and the size of the job, with its segment.
    Segment { cookie: u64, ranks: u32 },
    /// The hub: lives, from this local rank on.
    Lives { first: u32 },
}

const LENGTH: usize = 32;
const MARK: [u8; 7] = *b"phalanx";

impl Record {
    fn to_bytes(self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        bytes[..7].copy_from_slice(&MARK);
        let mut put = |at: usize, part: &[u8]| bytes[at..at + part.len()].copy_from_slice(part);
        match self {
            Self::Hello { token, local } => {
                put(7, &[1]);
                put(8, &token);
                put(24, &local.to_le_bytes());
            }
            Self::Segment { cookie, ranks } => {
                put(7, &[2]);
                put(8, &cookie.to_le_bytes());
                put(24, &ranks.to_le_bytes());
            }
            Self::Lives { first } => {
                put(7, &[3]);
                put(24, &first.to_le_bytes());
            }
        }
        bytes
    }

    fn from_bytes(bytes: &[u8; LENGTH]) -> Option<Self> {
        let number = u32::from_le_bytes([bytes[24], bytes[25], bytes[26], bytes[27]]);
        let mut token = [0; 16];
        token.copy_from_slice(&bytes[8..24]);
        let mut cookie = [0; 8];
        cookie.copy_from_slice(&bytes[8..16]);
        match (&bytes[..7] == MARK.as_slice(), bytes[7]) {
            (true, 1) => Some(Self::Hello { token, local: number }),
            (true, 2) => Some(Self::Segment { cookie: u64::from_le_bytes(cookie), ranks: number }),
            (true, 3) => Some(Self::Lives { first: number }),
            _ => None,
        }
    }
}

/// What there is to read.
pub(super) enum Read {
    /// A record, and the descriptors that came with it.
    Record(Record, Vec<OwnedFd>),
    /// Something that is no record.
    Nonsense,
    /// Nothing yet.
    Nothing,
    /// The other side has closed.
    Closed,
}

/// Sends a record with descriptors. Records are so few and short that the socket always has room.
pub(super) fn send(socket: &OwnedFd, record: Record, descriptors: &[BorrowedFd<'_>]) -> nix::Result<()> {
    let bytes = record.to_bytes();
    let raw: Vec<RawFd> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
    let rights = [ControlMessage::ScmRights(&raw)];
    let control = if raw.is_empty() { &[][..] } else { &rights[..] };
    loop {
        match sendmsg::<()>(socket.as_raw_fd(), &[IoSlice::new(&bytes)], control, MsgFlags::MSG_NOSIGNAL, None) {
            Err(Errno::EINTR) => {}
            sent => return sent.map(drop),
        }
    }
}

/// Reads a record, if there is one.
pub(super) fn read(socket: &OwnedFd) -> nix::Result<Read> {
    // A byte more than a record has, to see one that is longer.
    let mut bytes = [0_u8; LENGTH + 1];
    let mut control = cmsg_space!([RawFd; MOST_DESCRIPTORS]);
    let mut parts = [IoSliceMut::new(&mut bytes)];
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_CMSG_CLOEXEC;
    let (length, descriptors) = match recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut control), flags) {
        Err(Errno::EINTR | Errno::EAGAIN) => return Ok(Read::Nothing),
        Err(Errno::ECONNRESET | Errno::EPIPE) => return Ok(Read::Closed),
        Err(error) => return Err(error),
        Ok(message) => {
            let mut descriptors = Vec::new();
            for control in message.cmsgs()? {
                if let ControlMessageOwned::ScmRights(raw) = control {
                    // SAFETY: the kernel has just opened them for this process; nobody else knows of them.
                    descriptors.extend(raw.into_iter().map(|raw| unsafe { OwnedFd::from_raw_fd(raw) }));
                }
            }
            (message.bytes, descriptors)
        }
    };
    if length == 0 {
        return Ok(Read::Closed);
    }
    let record = bytes.first_chunk().filter(|_| length == LENGTH).and_then(Record::from_bytes);
    Ok(record.map_or(Read::Nonsense, |record| Read::Record(record, descriptors)))
}

/// Whether the process at the other end is one of this user.
pub(super) fn is_own_user(socket: &OwnedFd) -> nix::Result<bool> {
    Ok(getsockopt(&socket.as_fd(), PeerCredentials)?.uid() == geteuid().as_raw())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};

    fn pair() -> (OwnedFd, OwnedFd) {
        socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC).unwrap()
    }

    #[test]
    fn records_come_through_with_their_descriptors() {
        let (one, other) = pair();
        assert!(is_own_user(&one).unwrap());
        assert!(matches!(read(&other), Ok(Read::Nothing)));
        let records = [
            Record::Hello { token: [7; 16], local: 3 },
            Record::Segment { cookie: u64::MAX - 1, ranks: 256 },
            Record::Lives { first: 200 },
        ];
        for (record, count) in records.into_iter().zip([1, 0, MOST_DESCRIPTORS]) {
            send(&one, record, &vec![one.as_fd(); count]).unwrap();
            let Ok(Read::Record(arrived, descriptors)) = read(&other) else { panic!("{record:?} did not arrive") };
            assert_eq!((arrived, descriptors.len()), (record, count));
        }
        drop(one);
        assert!(matches!(read(&other), Ok(Read::Closed)));
    }

    #[test]
    fn what_is_no_record_is_recognised() {
        let (one, other) = pair();
        for bytes in [&b"phalanx"[..], &[0; LENGTH], &[1; LENGTH + 1], &[1; 500]] {
            nix::unistd::write(&one, bytes).unwrap();
            assert!(matches!(read(&other), Ok(Read::Nonsense)), "{bytes:?}");
        }
    }
}
