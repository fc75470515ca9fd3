//! The other ranks of a node: come for the segment.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, connect, socket};
use shm_core::job::Invitation;

use super::super::error::{Error, Result, garbled};
use super::super::watch;
use super::hub::address;
use super::wire::{self, Read, Record};
use super::{Attempt, FAREWELL, Invited, REPORT_TAG};
use crate::transport::{Transport, wait};

/// Comes for the segment of the node, whose ranks are `members` of the transport, at what its first rank announced.
pub(in super::super) fn visit(
    transport: &dyn Transport,
    members: &[usize],
    announcement: &[u8],
    limit: Duration,
) -> Result<Attempt> {
    let deadline = Instant::now() + limit;
    let rank = transport.rank();
    let hub = members[0];
    let call = Call::parse(announcement).ok_or_else(|| garbled(rank, hub, "where the node's segment is"))?;
    let local = members.iter().position(|&member| member == rank).unwrap_or(0);
    let visit = Visit { transport, hub, members: members.len(), local, deadline, limit };
    let attempt = visit.reach(&call);
    report(transport, hub, matches!(attempt, Ok(Ok(_))), limit)?;
    match attempt? {
        Err(why) => Ok(Attempt::Apart(why)),
        Ok((socket, invitation)) => match visit.lives(&socket)? {
            Some(lives) => Ok(Attempt::Reached(Invited { invitation, lives })),
            None => Ok(Attempt::OthersApart),
        },
    }
}

/// What the hub announced.
struct Call {
    name: [u8; 16],
    token: [u8; 16],
    cookie: u64,
}

impl Call {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let (name, rest) = bytes.split_first_chunk()?;
        let (token, rest) = rest.split_first_chunk()?;
        Some(Self { name: *name, token: *token, cookie: u64::from_le_bytes(rest.try_into().ok()?) })
    }
}

struct Visit<'a> {
    transport: &'a dyn Transport,
    hub: usize,
    members: usize,
    local: usize,
    deadline: Instant,
    limit: Duration,
}

impl Visit<'_> {
    /// Connects, introduces itself, and maps the segment; or says why it cannot be shared.
    fn reach(&self, call: &Call) -> Result<std::result::Result<(OwnedFd, Invitation), String>> {
        let socket = match self.connect(&call.name)? {
            Ok(socket) => socket,
            Err(error) => return Ok(Err(format!("its socket cannot be reached ({error})"))),
        };
        if !wire::is_own_user(&socket).map_err(Error::system("asking for the user of a rank"))? {
            return Ok(Err("its process is that of another user".to_owned()));
        }
        let life = watch::life()?;
        let hello = Record::Hello { token: call.token, local: self.local as u32 };
        match wire::send(&socket, hello, &[life.as_fd()]) {
            Ok(()) => {}
            Err(Errno::EPIPE | Errno::ECONNRESET) => return Ok(Err("it closed the connection".to_owned())),
            Err(error) => return Err(Error::system("sending to the first rank of the node")(error)),
        }
        match self.next(&socket, "answered on its socket")? {
            Some((Record::Segment { cookie, ranks }, mut segment)) if cookie == call.cookie => {
                let file = segment.pop().ok_or_else(|| self.nonsense())?;
                let invitation = Invitation::from_descriptor(file, self.local, self.members, call.cookie)?;
                if ranks as usize != self.members { Err(self.nonsense()) } else { Ok(Ok((socket, invitation))) }
            }
            Some(_) => Err(self.nonsense()),
            None => Ok(Err("it closed the connection".to_owned())),
        }
    }

    /// A connection to the hub, unless the system says that there is none.
    fn connect(&self, name: &[u8; 16]) -> Result<nix::Result<OwnedFd>> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = socket(AddressFamily::Unix, SockType::SeqPacket, flags, None)
            .map_err(Error::system("making a Unix socket"))?;
        let address = address(name).map_err(Error::system("naming a Unix socket"))?;
        loop {
            match connect(socket.as_raw_fd(), &address) {
                Ok(()) => return Ok(Ok(socket)),
                // The hub's queue is full.
                Err(Errno::EAGAIN) => self.pause("taken a connection")?,
                Err(Errno::EINTR) => {}
                Err(error) => return Ok(Err(error)),
            }
        }
    }

    /// The lives of all ranks of the node, by local rank, unless somebody could not attach.
    fn lives(&self, socket: &OwnedFd) -> Result<Option<Vec<OwnedFd>>> {
        let mut lives = Vec::with_capacity(self.members);
        while lives.len() < self.members {
            match self.next(socket, "had all ranks of the node attached")? {
                Some((Record::Lives { first }, more)) if first as usize == lives.len() && !more.is_empty() => {
                    lives.extend(more);
                }
                Some(_) => return Err(self.nonsense()),
                None => return Ok(None),
            }
        }
        Ok(Some(lives))
    }

    /// The hub's next record; none when it has closed.
    fn next(&self, socket: &OwnedFd, what: &'static str) -> Result<Option<(Record, Vec<OwnedFd>)>> {
        loop {
            match wire::read(socket).map_err(Error::system("hearing from the first rank of the node"))? {
                Read::Record(record, descriptors) => return Ok(Some((record, descriptors))),
                Read::Closed => return Ok(None),
                Read::Nonsense => return Err(self.nonsense()),
                Read::Nothing => {
                    // Interrupted or not, it is looked at again.
                    let _ = poll(&mut [PollFd::new(socket.as_fd(), PollFlags::POLLIN)], PollTimeout::from(10_u8));
                    self.go_on(what)?;
                }
            }
        }
    }

    fn pause(&self, what: &'static str) -> Result<()> {
        std::thread::sleep(Duration::from_millis(1));
        self.go_on(what)
    }

    /// Lets the transport move: others may wait for what this rank has sent. Ends when the time is over.
    fn go_on(&self, what: &'static str) -> Result<()> {
        self.transport.progress()?;
        if Instant::now() > self.deadline {
            return Err(Error::Late { peer: self.hub, what, limit: self.limit });
        }
        Ok(())
    }

    fn nonsense(&self) -> Error {
        garbled(self.transport.rank(), self.hub, "a record with the node's segment")
    }
}

/// Tells the hub whether the segment was reached.
fn report(transport: &dyn Transport, hub: usize, reached: bool, limit: Duration) -> Result<()> {
    let byte = Box::new(u8::from(reached));
    // SAFETY: the byte lives until the request has ended, or is leaked.
    let mut request = unsafe { transport.send(hub, REPORT_TAG, &raw const *byte, 1) }?;
    let waited = wait(transport, &mut request, hub, "its word on the node's segment", Some(limit));
    if !request.has_ended() && !transport.abandon(request, FAREWELL) {
        Box::leak(byte);
    }
    Ok(waited?)
}
