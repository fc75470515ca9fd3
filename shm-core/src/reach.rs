//! Reaching into another rank's private memory: one copy by the kernel, without a cell between (process_vm_readv and
//! process_vm_writev, known as cross memory attach).
//!
//! Not every system lets processes of one user read and write each other (Yama's ptrace_scope, containers, sandboxes),
//! so it is tried: each rank reads a word of the next one and writes it back as it was, round a ring. Who may read whom
//! follows from what ranks have in common (user, namespaces, the process that started them), so that a ring in which
//! everybody succeeds has no two kinds of ranks in it. It takes two system calls a rank. Until all have succeeded, and
//! after anybody has failed, reaching is not allowed.
//!
//! Ranks that are threads of one process reach each other by a plain copy.
//!
//! A process number tells processes apart that had the same process id, one after the other or in different namespaces:
//! each process has a random number in its memory, its *beacon*. Whoever reads from it reads the beacon in the same
//! system call; whoever writes to it has read the beacon right before, for no call does both. Between the two the
//! process would have to make room for another one, of the same id; and who is written to waits for it in a call
//! meanwhile, but for the beacon itself, which is written as it was read.
//!
//! Where more ranks read one process's memory than the table lets, they take [turns].

use std::hash::{BuildHasher, RandomState};
use std::io::{IoSlice, IoSliceMut};
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use nix::errno::Errno;
use nix::sys::uio::{RemoteIoVec, process_vm_readv, process_vm_writev};
use nix::unistd::Pid;
use rustix::process::{DumpableBehavior, PTracer, dumpable_behavior, set_ptracer};

use crate::error::{Error, Result};
use crate::segment::mapping::Mapping;

mod ended;
mod turns;

pub(crate) use turns::Turns;

/// In the job's word: reaching is not allowed. The errno that said so is in the bits from `WHY` on, 0 for the job's own
/// wish.
pub(crate) const FORBIDDEN: u64 = 1 << 63;
const WHY: u32 = 32;

/// The most bytes of one system call.
const MOST: usize = 1 << 30;

/// This process's number, where others read it; and whose it is, since a process that was forked has its parent's.
static BEACON: AtomicU64 = AtomicU64::new(0);
static OWNER: Mutex<u32> = Mutex::new(0);

/// Whether ranks copy from each other's private memory, and to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaching {
    /// They do: all ranks have been found to reach the next one's.
    Allowed,
    /// Not yet: some ranks have not tried.
    Unsettled,
    /// The system refuses, in these words.
    Refused(&'static str),
    /// The job was started with `PHALANX_CMA=never`.
    Unwanted,
}

/// One rank's way to the others' memory.
pub(crate) struct Reach {
    mapping: Arc<Mapping>,
    rank: usize,
    /// This process's number.
    own: u64,
}

/// What a rank tells of its process; part of its words in the segment. Written once, `number` last.
#[repr(C)]
pub(crate) struct Introduction {
    /// The process's number; 0 before the rank has attached.
    number: AtomicU64,
    /// Where it lies in that process.
    beacon: AtomicU64,
    /// Its id, as it sees itself.
    pid: AtomicU32,
    /// 1 when this rank has read from the next one, and written to it.
    reached: AtomicU32,
}

impl Introduction {
    pub fn pid(&self) -> u32 {
        self.pid.load(Ordering::Relaxed)
    }
}

impl Reach {
    /// Introduces a rank that attaches, and tries what can be tried already.
    pub fn new(mapping: Arc<Mapping>, rank: usize) -> Self {
        let own = own_number();
        let reach = Self { mapping, rank, own };
        let words = reach.of(rank);
        words.pid.store(std::process::id(), Ordering::Relaxed);
        words.beacon.store(BEACON.as_ptr().addr() as u64, Ordering::Relaxed);
        if reach.word() & FORBIDDEN == 0 {
            admit(reach.mapping.header().creator);
        }
        // R1: who finds the number finds the rest, and a process that lets itself be read.
        words.number.store(own, Ordering::Release);
        reach.attempt(rank);
        let ranks = reach.mapping.layout.ranks;
        let before = (rank + ranks - 1) % ranks;
        if reach.number(before) == own {
            reach.attempt(before);
        }
        reach
    }

    fn of(&self, rank: usize) -> &Introduction {
        &self.mapping.rank(rank).introduction
    }

    fn number(&self, rank: usize) -> u64 {
        // R1, reader.
        self.of(rank).number.load(Ordering::Acquire)
    }

    /// Whether a rank is a thread of this process.
    pub fn is_here(&self, rank: usize) -> bool {
        self.number(rank) == self.own
    }

    fn word(&self) -> u64 {
        self.mapping.header().shared.reach.load(Ordering::Acquire)
    }

    /// Whether the job was started with leave to reach; the same on all ranks, at all times.
    #[inline]
    pub fn is_wanted(&self) -> bool {
        self.word() != FORBIDDEN
    }

    /// Whether every rank of the job has been found to reach the next one, and none has failed to since. Every rank
    /// that may read, and not only one that wants to be read, should ask in each call that is long enough: asking is
    /// how it takes part in finding out.
    ///
    /// The answer turns from no to yes once, when the last rank has asked, and from yes to no when a read is refused
    /// after all; ranks may have different answers at one time. So it is for him who offers memory to ask, and others
    /// follow.
    #[inline]
    pub fn allowed(&self) -> bool {
        self.word() == self.mapping.layout.ranks as u64 || self.settle()
    }

    /// Tries what has not been tried, and looks again.
    #[cold]
    pub fn settle(&self) -> bool {
        if self.word() & FORBIDDEN == 0 && self.of(self.rank).reached.load(Ordering::Relaxed) == 0 {
            self.attempt(self.rank);
        }
        self.word() == self.mapping.layout.ranks as u64
    }

    /// What has been found.
    pub fn found(&self) -> Reaching {
        let allowed = self.allowed();
        let word = self.word();
        match ((word & !FORBIDDEN) >> WHY) as i32 {
            0 if word & FORBIDDEN != 0 => Reaching::Unwanted,
            0 if allowed => Reaching::Allowed,
            0 => Reaching::Unsettled,
            errno => Reaching::Refused(Errno::from_raw(errno).desc()),
        }
    }

    /// Has `reader` (this rank, or one that is a thread of this process too) read from the next rank and write to it,
    /// if that is there.
    fn attempt(&self, reader: usize) {
        let next = (reader + 1) % self.mapping.layout.ranks;
        let number = self.number(next);
        if number == 0 || self.word() & FORBIDDEN != 0 {
            return;
        }
        let reaches = if number == self.own { Ok(()) } else { self.try_beacon(next) };
        match reaches {
            Ok(()) => {
                if self.of(reader).reached.swap(1, Ordering::Relaxed) == 0 {
                    self.mapping.header().shared.reach.fetch_add(1, Ordering::AcqRel);
                }
            }
            Err(error) => self.forbid(error),
        }
    }

    /// Says that reaching does not work; the first word stands.
    fn forbid(&self, error: Errno) {
        let why = FORBIDDEN | (error as u64) << WHY;
        let update = |word: u64| (word & FORBIDDEN == 0).then_some(why);
        let _ = self.mapping.header().shared.reach.fetch_update(Ordering::AcqRel, Ordering::Acquire, update);
    }

    /// Copies `bytes` bytes at an address of the memory of a rank (of the job) to `into`, in a turn of at most
    /// `readers` ranks that do so.
    ///
    /// # Errors
    /// `RankFailed` when the rank's process is no more, `Unreachable` when the system refuses, or the place is not
    /// there. Part of the bytes may have been written.
    ///
    /// # Safety
    /// `into` is good for writing `bytes` bytes, which are initialised, and which nobody else uses meanwhile. The rank
    /// has said that `bytes` bytes lie at `address`, with the provenance of its buffer exposed, and neither writes nor
    /// frees them meanwhile.
    pub unsafe fn read(&self, (rank, address): (usize, u64), into: *mut u8, bytes: usize, readers: u32) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        if self.number(rank) == self.own {
            let from = std::ptr::with_exposed_provenance::<u8>(address as usize);
            // SAFETY: by contract; the rank is a thread of this process, so that the address is one of this process.
            unsafe { std::ptr::copy_nonoverlapping(from, into, bytes) };
            return Ok(());
        }
        // SAFETY: by contract.
        let into = unsafe { std::slice::from_raw_parts_mut(into, bytes) };
        let _turn = self.turn(rank, readers);
        self.piece_by_piece(rank, bytes, |piece| self.try_read_at(rank, address + piece.start as u64, &mut into[piece]))
    }

    /// Copies the `bytes` bytes at `from` to `address` of the memory of a rank (of the job), in a turn of at most
    /// `writers` ranks that do so.
    ///
    /// # Errors
    /// As [`read`](Reach::read).
    ///
    /// # Safety
    /// `bytes` bytes at `from` are initialised, and nobody writes them meanwhile. The rank has said that as many may be
    /// written at `address`, with the provenance of its buffer exposed, and neither uses nor frees them meanwhile.
    pub unsafe fn write(
        &self,
        from: *const u8,
        (rank, address): (usize, u64),
        bytes: usize,
        writers: u32,
    ) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        if self.number(rank) == self.own {
            let to = std::ptr::with_exposed_provenance_mut::<u8>(address as usize);
            // SAFETY: by contract; the rank is a thread of this process, so that the address is one of this process.
            unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
            return Ok(());
        }
        // SAFETY: by contract.
        let from = unsafe { std::slice::from_raw_parts(from, bytes) };
        let _turn = self.turn(rank, writers);
        self.piece_by_piece(rank, bytes, |piece| self.try_write_at(rank, address + piece.start as u64, &from[piece]))
    }

    /// A turn at a rank's memory, of `most` ranks at a time; 0 for any number.
    fn turn(&self, rank: usize, most: u32) -> Option<turns::Turn<'_>> {
        // Whose memory it is does not reach into it.
        let may_be_many = self.mapping.layout.ranks - 1 > most as usize;
        (most > 0 && may_be_many).then(|| self.mapping.rank(rank).turns.wait(most))
    }

    /// Whether the first and the last of `bytes` bytes at `address` of the memory of `rank` can be read; of none,
    /// whether its process can. Where the system refuses that of the process as such, reaching is not allowed any more.
    pub fn reads_ends(&self, rank: usize, address: u64, bytes: usize) -> bool {
        if self.number(rank) == self.own {
            return true;
        }
        let mut ends = [0; 2];
        let last = address + bytes.saturating_sub(1) as u64;
        let places = [address, last].map(|base| RemoteIoVec { base: base as usize, len: 1 });
        let count = if bytes > 0 { places.len() } else { 0 };
        match self.try_read(rank, &places[..count], &mut ends[..count]) {
            Ok(read) => read == count,
            // The process is no more: that says nothing of the others.
            Err(Errno::ESRCH) => false,
            Err(error) => {
                self.forbid(error);
                false
            }
        }
    }

    /// Whether the system lets `writer` write to so many bytes at `buffer` as far as it hangs on the memory there:
    /// writes their first and their last byte as they are, in the way in which another process would.
    ///
    /// # Safety
    /// Nobody else uses them meanwhile.
    pub unsafe fn opens(&self, writer: usize, buffer: *mut u8, bytes: usize) -> bool {
        if bytes == 0 || self.number(writer) == self.own {
            return true;
        }
        let Some(ends) = Self::own_ends(buffer, bytes) else { return false };
        let remote = Self::places_of_ends(buffer, bytes);
        process_vm_writev(Pid::this(), &[IoSlice::new(&ends)], &remote) == Ok(ends.len())
    }

    fn places_of_ends(buffer: *const u8, bytes: usize) -> [RemoteIoVec; 2] {
        let ends = [buffer, buffer.wrapping_add(bytes.saturating_sub(1))];
        ends.map(|place| RemoteIoVec { base: place.expose_provenance(), len: 1 })
    }

    /// The first and the last byte of so many at `buffer`, if the system lets others read them as far as it hangs on
    /// the memory there. It is the system that loads them: whether the program has ever stored there is not asked.
    fn own_ends(buffer: *const u8, bytes: usize) -> Option<[u8; 2]> {
        let mut ends = [0; 2];
        let remote = Self::places_of_ends(buffer, bytes);
        let read = process_vm_readv(Pid::this(), &mut [IoSliceMut::new(&mut ends)], &remote);
        (read == Ok(ends.len())).then_some(ends)
    }

    /// Whether the system would let others read so many bytes at `buffer`, as far as it hangs on this process and the
    /// memory there: reads their first and their last byte in the way in which another process does, if this one has
    /// not closed itself to others.
    pub fn shows(&self, buffer: *const u8, bytes: usize) -> bool {
        matches!(dumpable_behavior(), Ok(DumpableBehavior::Dumpable)) && Self::own_ends(buffer, bytes).is_some()
    }

    /// The error of a rank whose process could not be found, if that lives all the same; waits a moment where it is
    /// just ending.
    #[cold]
    pub fn lives_unreached(&self, rank: usize) -> Option<Error> {
        // J1, reader.
        let knows = || self.mapping.header().shared.fault.load(Ordering::Acquire) != 0;
        let cause = "its first thread has ended, and of such a process the system lets nobody reach the memory";
        ended::lives_on(self.of(rank).pid(), knows).then(|| Error::Unreachable {
            rank,
            own: self.rank,
            cause: cause.to_owned(),
        })
    }

    /// Has `one` move a part of `bytes` bytes, again and again until all are moved; it returns how many it has moved.
    fn piece_by_piece(
        &self,
        rank: usize,
        bytes: usize,
        mut one: impl FnMut(Range<usize>) -> std::result::Result<usize, Errno>,
    ) -> Result<()> {
        let refused = |cause: Errno| Error::Unreachable { rank, own: self.rank, cause: cause.desc().to_owned() };
        let mut done = 0;
        while done < bytes {
            match one(done..bytes.min(done + MOST)) {
                Ok(0) => return Err(refused(Errno::EFAULT)),
                Ok(moved) => done += moved,
                Err(Errno::ESRCH) => return Err(Error::RankFailed { rank }),
                Err(error) => {
                    if error != Errno::EFAULT {
                        self.forbid(error);
                    }
                    return Err(refused(error));
                }
            }
        }
        Ok(())
    }

    /// One system call: returns the bytes that it has read, perhaps not all. With nothing to fill it reads the beacon
    /// alone. ESRCH when the rank's process is no more; where memory is not there fewer bytes are read, never EFAULT.
    fn try_read_at(&self, rank: usize, address: u64, into: &mut [u8]) -> std::result::Result<usize, Errno> {
        let place = RemoteIoVec { base: address as usize, len: into.len() };
        self.try_read(rank, if into.is_empty() { &[] } else { std::slice::from_ref(&place) }, into)
    }

    /// The same of several places, two at most, one behind the other.
    fn try_read(&self, rank: usize, places: &[RemoteIoVec], into: &mut [u8]) -> std::result::Result<usize, Errno> {
        let words = self.of(rank);
        let number = self.number(rank);
        let pid = Pid::from_raw(words.pid() as i32);
        let mut found = [0; 8];
        let mut remote = [RemoteIoVec { base: words.beacon.load(Ordering::Relaxed) as usize, len: found.len() }; 3];
        remote[1..=places.len()].copy_from_slice(places);
        let parts = if into.is_empty() { 1 } else { 2 };
        let read = loop {
            let mut local = [IoSliceMut::new(&mut found), IoSliceMut::new(into)];
            match process_vm_readv(pid, &mut local[..parts], &remote[..=places.len()]) {
                Err(Errno::EINTR) => {}
                // Of what comes first, the beacon: where that is not there the process runs another program, whether
                // anybody has noticed or not. What is missing behind it makes the rest shorter.
                Err(Errno::EFAULT) => return Err(Errno::ESRCH),
                other => break other?,
            }
        };
        match read.checked_sub(found.len()) {
            Some(read) if u64::from_ne_bytes(found) == number => Ok(read),
            // Another process, which has come to this id, or has it in another namespace.
            _ => Err(Errno::ESRCH),
        }
    }

    /// One system call behind a look at the beacon: returns the bytes that it has written, perhaps not all. ESRCH as
    /// above.
    fn try_write_at(&self, rank: usize, address: u64, from: &[u8]) -> std::result::Result<usize, Errno> {
        self.try_read_at(rank, 0, &mut [])?;
        let pid = Pid::from_raw(self.of(rank).pid() as i32);
        let remote = [RemoteIoVec { base: address as usize, len: from.len() }];
        loop {
            match process_vm_writev(pid, &[IoSlice::new(from)], &remote) {
                Err(Errno::EINTR) => {}
                other => return other,
            }
        }
    }

    /// Reads the beacon of `rank`, and writes it as it is.
    fn try_beacon(&self, rank: usize) -> std::result::Result<(), Errno> {
        let beacon = self.of(rank).beacon.load(Ordering::Relaxed);
        match self.try_write_at(rank, beacon, &self.number(rank).to_ne_bytes())? {
            8 => Ok(()),
            _ => Err(Errno::EFAULT),
        }
    }
}

/// The number of this process.
fn own_number() -> u64 {
    let mut owner = OWNER.lock().unwrap_or_else(PoisonError::into_inner);
    let pid = std::process::id();
    if *owner != pid {
        // Random keys from the system, new ones for each; never 0.
        BEACON.store(RandomState::new().hash_one((pid, std::time::Instant::now())) | 1, Ordering::Relaxed);
        *owner = pid;
    }
    BEACON.load(Ordering::Relaxed)
}

/// Lets the other ranks read this process where Yama allows that only to those whom a process names: it names the
/// process that has started them all, the job's creator, whose descendants are let in. A creator that is no ancestor
/// is a rank of an MPI job: there nobody is named, since a process can name one alone, and the MPI may have done so
/// for its own messages.
fn admit(creator: u32) {
    let restricted =
        std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").is_ok_and(|scope| scope.trim() == "1");
    if !restricted {
        return;
    }
    let mut ancestor = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get() as u32);
    while ancestor > 1 && ancestor != creator {
        ancestor = parent_of(ancestor).unwrap_or(0);
    }
    if let Some(starter) = rustix::process::Pid::from_raw(creator as i32).filter(|_| ancestor == creator) {
        // What comes of it is found when the others try.
        let _ = set_ptracer(PTracer::ProcessID(starter));
    }
}

/// The parent of a process: the second field behind its name.
fn parent_of(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    ended::fields(&status).get(1)?.parse().ok()
}

#[cfg(test)]
mod tests;
