//! Regime 4, direct: payload that stays where it lies.
//!
//! A buffer in the job's heap is folded, copied from and stored to where it lies, if it is not copied. A long private
//! one may be read, or of two ranks written, by one kernel-assisted copy (process_vm_readv, process_vm_writev; compare
//! Chakraborty et al., CLUSTER 2017), in pieces that stay in the reader's cache; how many read one source at once is
//! bounded by the tree, its children, and by turns of so many as the table says ([`readers`](crate::Tuning::readers)).
//! This is no algorithm of its own: it says, for each slot of the others, where its payload lies ([`Location`]).

use super::operands::Input;
use crate::board::SharedBoard;
use crate::counters::add;
use crate::error::{Error, Result};
use crate::payload::Manner;
use crate::protocol::{Board, Location, Place, Ring, RingName};

/// Where this rank gets at another's payload.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    /// In the cell of the slot.
    Cell,
    /// In that of the same number of this rank.
    CellOf(usize),
    /// Byte 0 of the message here.
    Mapped(*mut u8),
    /// Byte 0 of the message at this address of the other rank.
    Remote(u64),
}

impl Source {
    /// What the place that `from` tells is to this rank, whose message has `bytes` bytes, aligned to `align`.
    ///
    /// # Errors
    /// `Mismatch` when `from` goes by another length; `Segment`.
    pub fn find(board: &SharedBoard, from: usize, location: Location, bytes: usize, align: usize) -> Result<Self> {
        if !location.agrees(bytes) {
            return Err(board.differs(from, location.bytes, bytes));
        }
        Ok(match location.place {
            Place::Cell | Place::Back => Source::Cell,
            Place::CellOf(rank) if rank < board.members().len() => Source::CellOf(rank),
            Place::CellOf(rank) => {
                return Err(Error::Segment {
                    why: format!("rank {from} speaks of a cell of rank {rank}, and there is no such rank"),
                    advice: "the segment is damaged: start the job again",
                });
            }
            Place::Heap(offset) => Source::Mapped(board.seat().mapping().heap_pointer(offset, bytes, align)?),
            Place::Private(address) => Source::Remote(address),
        })
    }

    pub fn is_lent(self) -> bool {
        matches!(self, Source::Mapped(_) | Source::Remote(_))
    }

    /// The rank in whose cell it lies, if it lies in one; `from` is who has told.
    #[inline]
    pub fn cell_of(self, from: usize) -> Option<usize> {
        match self {
            Source::Cell => Some(from),
            Source::CellOf(rank) => Some(rank),
            Source::Mapped(_) | Source::Remote(_) => None,
        }
    }

    /// How `len` bytes of it are copied, whose slot is down slot `slot` of rank `from`, where `usual` would do as a
    /// rule: what lies in the cell as its writer has told.
    #[inline]
    pub fn manner(self, board: &SharedBoard, (from, slot): (usize, usize), len: usize, usual: Manner) -> Manner {
        if self.is_lent() { usual } else { usual.behind(board.told(RingName::Down, from, slot), len) }
    }

    /// The bytes from `at` on, in `cell` if the payload is there.
    pub fn input(self, rank: usize, cell: *const u8, at: usize) -> Input {
        match self {
            Source::Cell | Source::CellOf(_) => Input::Mapped(cell),
            Source::Mapped(base) => Input::Mapped(base.wrapping_add(at)),
            Source::Remote(base) => Input::Remote { rank, address: base + at as u64 },
        }
    }
}

/// A call in which ranks may reach into each other's buffers. Dropped before it has ended, by an error or by a panic,
/// it keeps the caller until nobody does any more.
pub(super) struct Lending<'a> {
    board: &'a SharedBoard,
    last_up: u64,
    last_down: u64,
}

impl<'a> Lending<'a> {
    /// A call that publishes and reads at so many positions of the up and the down ring, those that come next.
    pub fn begin(board: &'a SharedBoard, (up, ups): (&Ring, u64), (down, downs): (&Ring, u64)) -> Self {
        Self { board, last_up: up.next_position() + ups - 1, last_down: down.next_position() + downs - 1 }
    }

    /// Ends it.
    pub fn end<T>(self, result: Result<T>) -> Result<T> {
        if result.is_ok() {
            self.board.keep_own();
            std::mem::forget(self);
        }
        result
    }
}

impl Drop for Lending<'_> {
    fn drop(&mut self) {
        self.board.leave(self.last_up, self.last_down);
    }
}

impl SharedBoard {
    /// Whether the ranks of this job can read and write each other's private memory.
    pub fn can_reach(&self) -> bool {
        self.members().len() > 1 && self.seat().reach().allowed()
    }

    /// Whether the first and the last of `bytes` bytes at `address` of another rank's private memory can be read.
    pub(super) fn reads_ends(&self, rank: usize, address: u64, bytes: usize) -> bool {
        self.seat().reach().reads_ends(self.members()[rank], address, bytes)
    }

    /// Whether this rank still gets at another one's private memory, whatever lies there.
    pub(super) fn gets_at(&self, rank: usize) -> bool {
        self.seat().reach().reads_ends(self.members()[rank], 0, 0)
    }

    /// Whether others can be let read so many bytes at `buffer`. Threads of this process need no leave.
    pub(super) fn shows(&self, buffer: *const u8, bytes: usize) -> bool {
        let reach = self.seat().reach();
        self.members().iter().all(|&rank| reach.is_here(rank)) || reach.shows(buffer, bytes)
    }

    /// Whether others can be let write to so many bytes at `buffer`. Threads of this process need no leave.
    ///
    /// # Safety
    /// They are this rank's alone.
    pub(super) unsafe fn admits(&self, buffer: *mut u8, bytes: usize) -> bool {
        let other = (self.rank() + 1) % self.members().len();
        // SAFETY: by contract.
        self.shows(buffer, bytes) && unsafe { self.opens(other, buffer, bytes) }
    }

    /// Whether `writer` can be let write to so many bytes at `buffer`.
    ///
    /// # Safety
    /// They are this rank's alone.
    pub(super) unsafe fn opens(&self, writer: usize, buffer: *mut u8, bytes: usize) -> bool {
        // SAFETY: by contract.
        unsafe { self.seat().reach().opens(self.members()[writer], buffer, bytes) }
    }

    /// Reads another rank's private memory.
    ///
    /// # Safety
    /// `len` bytes may be written at `to`; those at `address` of the other rank are initialised, and nobody writes them
    /// meanwhile.
    pub(super) unsafe fn read_private(&self, rank: usize, address: u64, to: *mut u8, len: usize) -> Result<()> {
        add(&self.tally.reached, len);
        let job_rank = self.members()[rank];
        // SAFETY: by contract.
        let read = unsafe { self.seat().reach().read((job_rank, address), to, len, self.readers) };
        read.map_err(|error| self.who_is_gone(job_rank, error))
    }

    /// Reads another rank's private memory if it can be read; part of it may have been read where it cannot. That is no
    /// failure of the rank's: of a process that lives nothing can be read once its first thread has ended.
    ///
    /// # Safety
    /// As [`read_private`](SharedBoard::read_private).
    pub(super) unsafe fn tries_to_read(&self, rank: usize, address: u64, to: *mut u8, len: usize) -> bool {
        // SAFETY: by contract.
        let read = unsafe { self.seat().reach().read((self.members()[rank], address), to, len, self.readers) };
        if read.is_ok() {
            add(&self.tally.reached, len);
        }
        read.is_ok()
    }

    /// Writes to another rank's private memory if it can be written to; part may have been written where it cannot.
    ///
    /// # Safety
    /// As [`write_private`](SharedBoard::write_private).
    pub(super) unsafe fn tries_to_write(&self, rank: usize, from: *const u8, address: u64, len: usize) -> bool {
        // SAFETY: by contract.
        let written = unsafe { self.seat().reach().write(from, (self.members()[rank], address), len, self.readers) };
        if written.is_ok() {
            add(&self.tally.reached, len);
        }
        written.is_ok()
    }

    /// Writes to another rank's private memory.
    ///
    /// # Safety
    /// `len` bytes at `from` are initialised, and nobody writes them meanwhile; as many may be written at `address` of
    /// the other rank.
    pub(super) unsafe fn write_private(&self, rank: usize, from: *const u8, address: u64, len: usize) -> Result<()> {
        add(&self.tally.reached, len);
        let job_rank = self.members()[rank];
        // SAFETY: by contract.
        let written = unsafe { self.seat().reach().write(from, (job_rank, address), len, self.readers) };
        written.map_err(|error| self.who_is_gone(job_rank, error))
    }

    /// The error of a reach to a rank of the job, which has failed if its process is no more.
    #[cold]
    fn who_is_gone(&self, job_rank: usize, error: Error) -> Error {
        match error {
            Error::RankFailed { .. } => {
                self.seat().reach().lives_unreached(job_rank).unwrap_or_else(|| self.seat().condemn(job_rank))
            }
            other => other,
        }
    }
}

#[cfg(test)]
mod tests;
