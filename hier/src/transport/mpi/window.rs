//! Windows over MPI's one-sided communication.

use std::ffi::{c_int, c_void};

use ::mpi::ffi::{self, MPI_Comm, MPI_Win};

use super::super::window::Window;
use super::super::{Error, Result};
use super::calls::{self, checked};

/// Where the memory begins is rounded up to this.
const LINE: usize = 64;
/// No single read or write is longer: MPI counts in C's `int`.
const LONGEST: usize = 1 << 30;

/// A window that all ranks have locked for its whole life.
pub(super) struct MpiWindow {
    /// I1: a window that only this object uses, locked; freed once.
    win: MPI_Win,
    /// I2: a duplicate communicator for the window, freed after it.
    comm: MPI_Comm,
    base: *mut u8,
    /// What `base` lies behind the start of the memory, by rank.
    shifts: Vec<usize>,
    bytes: usize,
    rank: usize,
}

// SAFETY: as for the transport that makes it: below MPI_THREAD_SERIALIZED it stays in the thread that uses the
// transport, which checks that on every call of its own.
unsafe impl Send for MpiWindow {}

impl MpiWindow {
    /// The window of `bytes` bytes a rank. Collective over the communicator, which it takes over.
    pub fn new(comm: MPI_Comm, rank: usize, size: usize, bytes: usize) -> Result<Self> {
        let failed = |failure: calls::Failure| failure.of(rank, None);
        let mut start: *mut c_void = std::ptr::null_mut();
        let mut win = std::mem::MaybeUninit::<MPI_Win>::uninit();
        // SAFETY: a constant that is filled before main.
        let info = unsafe { ffi::RSMPI_INFO_NULL };
        let length = (bytes + LINE) as ffi::MPI_Aint;
        // SAFETY: the communicator is valid, the pointers are to places for the memory's address and the window.
        let code = unsafe {
            ffi::PMPI_Win_allocate(length, 1, info, comm, (&raw mut start).cast::<c_void>(), win.as_mut_ptr())
        };
        checked("MPI_Win_allocate", code).map_err(failed)?;
        // SAFETY: the call has succeeded.
        let win = unsafe { win.assume_init() };
        // SAFETY: a constant that is filled before main.
        let return_errors = unsafe { ffi::RSMPI_ERRORS_RETURN };
        // SAFETY: the window is valid.
        let code = unsafe { ffi::PMPI_Win_set_errhandler(win, return_errors) };
        checked("MPI_Win_set_errhandler", code).map_err(failed)?;
        // SAFETY: the window is valid, and nobody locks it otherwise.
        let code = unsafe { ffi::PMPI_Win_lock_all(ffi::MPI_MODE_NOCHECK as c_int, win) };
        checked("MPI_Win_lock_all", code).map_err(failed)?;
        let shift = start.cast::<u8>().align_offset(LINE) % LINE;
        let base = start.cast::<u8>().wrapping_add(shift);
        let shifts = calls::gather_bytes(comm, shift as u8, size).map_err(failed)?;
        Ok(Self { win, comm, base, shifts: shifts.into_iter().map(usize::from).collect(), bytes, rank })
    }

    /// The displacement of `offset` in rank `peer`'s memory.
    fn place(&self, peer: usize, offset: usize) -> Result<ffi::MPI_Aint> {
        let size = self.shifts.len();
        let shift = self.shifts.get(peer).ok_or(Error::NoSuchRank { rank: self.rank, size, peer })?;
        Ok((shift + offset) as ffi::MPI_Aint)
    }
}

impl Window for MpiWindow {
    fn base(&self) -> *mut u8 {
        self.base
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    unsafe fn get(&self, from: usize, offset: usize, into: *mut u8, bytes: usize) -> Result<()> {
        for at in (0..bytes).step_by(LONGEST) {
            let count = (bytes - at).min(LONGEST) as c_int;
            let (place, into) = (self.place(from, offset + at)?, into.wrapping_add(at).cast::<c_void>());
            let byte = calls::byte();
            // SAFETY: I1; by contract the memory is there and left alone until the next flush.
            let code = unsafe { ffi::PMPI_Get(into, count, byte, from as c_int, place, count, byte, self.win) };
            checked("MPI_Get", code).map_err(|failure| failure.of(self.rank, Some(from)))?;
        }
        Ok(())
    }

    unsafe fn put(&self, to: usize, offset: usize, data: *const u8, bytes: usize) -> Result<()> {
        for at in (0..bytes).step_by(LONGEST) {
            let count = (bytes - at).min(LONGEST) as c_int;
            let (place, data) = (self.place(to, offset + at)?, data.wrapping_add(at).cast::<c_void>());
            let byte = calls::byte();
            // SAFETY: I1; by contract the memory is there and left alone until the next flush.
            let code = unsafe { ffi::PMPI_Put(data, count, byte, to as c_int, place, count, byte, self.win) };
            checked("MPI_Put", code).map_err(|failure| failure.of(self.rank, Some(to)))?;
        }
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        let failed = |failure: calls::Failure| failure.of(self.rank, None);
        // SAFETY: I1.
        let code = unsafe { ffi::PMPI_Win_flush_all(self.win) };
        checked("MPI_Win_flush_all", code).map_err(failed)?;
        // SAFETY: I1.
        let code = unsafe { ffi::PMPI_Win_sync(self.win) };
        checked("MPI_Win_sync", code).map_err(failed)
    }
}

impl Drop for MpiWindow {
    fn drop(&mut self) {
        if calls::is_finalised() {
            return;
        }
        // SAFETY: I1.
        let _ = unsafe { ffi::PMPI_Win_unlock_all(self.win) };
        // SAFETY: I1: not used after this.
        let _ = unsafe { ffi::PMPI_Win_free(&mut self.win) };
        // SAFETY: I2: not used after this.
        let _ = unsafe { ffi::PMPI_Comm_free(&mut self.comm) };
    }
}
