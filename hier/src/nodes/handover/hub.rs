//! The first rank of a node: gives the segment to the others.

use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockType, UnixAddr, accept4, bind, listen, socket};
use shm_core::job::{Invitation, Job};

use super::super::card::random;
use super::super::error::{Error, Result};
use super::super::watch;
use super::wire::{self, MOST_DESCRIPTORS, Read, Record};
use super::{Attempt, FAREWELL, Invited, REPORT_TAG};
use crate::transport::{Request, Transport};

/// Connections that have not said who they are; more are left in the queue.
const MOST_STRANGERS: usize = 64;

/// How long a connection may take to say who it is.
const INTRODUCTION: Duration = Duration::from_secs(5);
/// The time in which the hub does not sleep between two looks for reports.
const SOON: Duration = Duration::from_millis(5);

/// A job, and the socket at which its segment is to be had.
pub(in super::super) struct Hub {
    job: Job,
    listener: OwnedFd,
    name: [u8; 16],
    token: [u8; 16],
}

impl Hub {
    /// Listens on behalf of a job.
    pub fn open(job: Job) -> Result<Self> {
        let (name, token) = (random()?, random()?);
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let listener = socket(AddressFamily::Unix, SockType::SeqPacket, flags, None)
            .map_err(Error::system("making a Unix socket"))?;
        let address = address(&name).map_err(Error::system("naming a Unix socket"))?;
        bind(listener.as_raw_fd(), &address).map_err(Error::system("naming a Unix socket"))?;
        let backlog = Backlog::new(512).map_err(Error::system("listening on a Unix socket"))?;
        listen(&listener, backlog).map_err(Error::system("listening on a Unix socket"))?;
        Ok(Self { job, listener, name, token })
    }

    /// What the guests must know.
    pub fn announcement(&self) -> Vec<u8> {
        [&self.name[..], &self.token, &self.job.cookie().to_le_bytes()].concat()
    }

    /// Serves the node's ranks, which are `members` of the transport and of which this is the first, until all have
    /// reported.
    pub fn serve(self, transport: &dyn Transport, members: &[usize], limit: Duration) -> Result<Attempt> {
        let mut lives: Vec<Option<OwnedFd>> = members.iter().map(|_| None).collect();
        lives[0] = Some(watch::life()?);
        let mut guests: Vec<Option<OwnedFd>> = members.iter().map(|_| None).collect();
        let mut strangers: Vec<(OwnedFd, Instant)> = Vec::new();
        let mut reports = Reports::expect(transport, &members[1..])?;
        let begin = Instant::now();
        while let Some(missing) = reports.missing()? {
            if begin.elapsed() > limit {
                return Err(Error::Late { peer: missing, what: "come for the node's segment", limit });
            }
            self.wait(&strangers, begin.elapsed() < SOON);
            self.accept(&mut strangers)?;
            strangers.retain(|(_, since)| since.elapsed() < INTRODUCTION);
            let mut rest = Vec::new();
            for (socket, since) in strangers.drain(..) {
                match wire::read(&socket) {
                    Ok(Read::Nothing) => rest.push((socket, since)),
                    Ok(Read::Record(Record::Hello { token, local }, mut life)) if token == self.token => {
                        let local = local as usize;
                        if (1..members.len()).contains(&local) && guests[local].is_none() && life.len() == 1 {
                            let segment = Record::Segment { cookie: self.job.cookie(), ranks: members.len() as u32 };
                            if wire::send(&socket, segment, &[self.job.descriptor()]).is_ok() {
                                lives[local] = life.pop();
                                guests[local] = Some(socket);
                            }
                        }
                    }
                    // Not of this job: closed without a word.
                    _ => {}
                }
            }
            strangers = rest;
        }
        if !reports.all_reached() {
            return Ok(Attempt::OthersApart);
        }
        let lives: Option<Vec<OwnedFd>> = lives.into_iter().collect();
        let lives = lives.ok_or_else(|| Error::System {
            what: "giving the segment to the ranks of the node",
            cause: "a rank has it that did not come for it".to_owned(),
        })?;
        for guest in guests.iter().flatten() {
            for (chunk, first) in lives.chunks(MOST_DESCRIPTORS).zip((0..).step_by(MOST_DESCRIPTORS)) {
                let borrowed: Vec<_> = chunk.iter().map(AsFd::as_fd).collect();
                // A guest that is gone is noticed by those who watch over it.
                let _ = wire::send(guest, Record::Lives { first }, &borrowed);
            }
        }
        // Its own place is taken like the others', over a second descriptor of the segment.
        let segment = self
            .job
            .descriptor()
            .try_clone_to_owned()
            .map_err(|e| Error::System { what: "dup", cause: e.to_string() })?;
        let invitation = Invitation::from_descriptor(segment, 0, members.len(), self.job.cookie())?;
        Ok(Attempt::Reached(Invited { invitation, lives }))
    }

    /// Until somebody comes or says something, and not for long: reports come through the transport. `is_soon`: most of
    /// them within less time than a process can sleep for, which is not waited for.
    fn wait(&self, strangers: &[(OwnedFd, Instant)], is_soon: bool) {
        let mut sockets: Vec<PollFd<'_>> =
            strangers.iter().map(|(socket, _)| PollFd::new(socket.as_fd(), PollFlags::POLLIN)).collect();
        if strangers.len() < MOST_STRANGERS {
            sockets.push(PollFd::new(self.listener.as_fd(), PollFlags::POLLIN));
        }
        // Interrupted or not, all are looked at afterwards.
        let _ = poll(&mut sockets, PollTimeout::from(u8::from(!is_soon)));
        if is_soon {
            std::thread::yield_now();
        }
    }

    fn accept(&self, strangers: &mut Vec<(OwnedFd, Instant)>) -> Result<()> {
        while strangers.len() < MOST_STRANGERS {
            let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
            match accept4(self.listener.as_raw_fd(), flags) {
                Ok(raw) => {
                    // SAFETY: it was just opened, and nobody else knows of it.
                    let socket = unsafe { OwnedFd::from_raw_fd(raw) };
                    if wire::is_own_user(&socket) == Ok(true) {
                        strangers.push((socket, Instant::now()));
                    }
                }
                Err(Errno::EAGAIN) => break,
                Err(Errno::EINTR | Errno::ECONNABORTED) => {}
                Err(error) => return Err(Error::system("accepting a rank of the node")(error)),
            }
        }
        Ok(())
    }
}

/// The socket's name. Abstract: it ends with the socket.
pub(super) fn address(name: &[u8; 16]) -> nix::Result<UnixAddr> {
    UnixAddr::new_abstract(&[b"phalanx-", &name[..]].concat())
}

/// What the guests report through the transport, a byte each: 1 when the segment was reached.
struct Reports<'a> {
    transport: &'a dyn Transport,
    members: &'a [usize],
    bytes: Vec<u8>,
    requests: Vec<Request>,
}

impl<'a> Reports<'a> {
    fn expect(transport: &'a dyn Transport, members: &'a [usize]) -> Result<Self> {
        let mut reports = Self { transport, members, bytes: vec![0; members.len()], requests: Vec::new() };
        let start = reports.bytes.as_mut_ptr();
        for (place, &member) in members.iter().enumerate() {
            // SAFETY: `drop` ends the request, or leaks the byte, before the bytes are freed; nobody reads it before.
            let request = unsafe { transport.receive(member, REPORT_TAG, start.wrapping_add(place), 1) }?;
            reports.requests.push(request);
        }
        Ok(reports)
    }

    /// A member that has not reported.
    fn missing(&mut self) -> Result<Option<usize>> {
        let mut missing = None;
        for (request, &member) in self.requests.iter_mut().zip(self.members) {
            if !self.transport.test(request)? {
                missing = Some(member);
            }
        }
        Ok(missing)
    }

    /// Once all have reported: whether all have the segment.
    fn all_reached(&self) -> bool {
        self.bytes.iter().all(|&byte| byte == 1)
    }
}

impl Drop for Reports<'_> {
    fn drop(&mut self) {
        for request in self.requests.drain(..) {
            if !request.has_ended() && !self.transport.abandon(request, FAREWELL) {
                std::mem::forget(std::mem::take(&mut self.bytes));
            }
        }
    }
}
