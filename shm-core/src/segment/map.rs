//! Address space for the segment: the file, mapped where huge pages of it can be.

use std::ffi::c_void;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::errno::Errno;
use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

use super::layout::{EXTENT, round_up};
use crate::own_process;

/// The addresses of all files that this process has mapped so.
static VIEWS: Mutex<Vec<Range<usize>>> = Mutex::new(Vec::new());

/// The addresses at which this process has whole segments, which stay so as long as this is locked.
pub(crate) fn views() -> MutexGuard<'static, Vec<Range<usize>>> {
    VIEWS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file in this process's memory, from a multiple of an extent on. Only raw pointers lead into it: a reference to
/// memory that a peer writes would be unsound.
///
/// Invariant: `bytes` bytes at `base` are a shared mapping of the file, within `span` bytes at `reserved` that are
/// nobody else's; until this is dropped.
pub(super) struct Map {
    reserved: NonNull<c_void>,
    span: usize,
    base: *mut u8,
    bytes: usize,
    /// The process that has mapped it.
    process: u32,
}

// SAFETY: it hands out raw pointers; the address space is there for all threads.
unsafe impl Send for Map {}
// SAFETY: the same.
unsafe impl Sync for Map {}

impl Map {
    /// Maps the first `bytes` bytes of a file.
    pub fn new(file: &OwnedFd, bytes: usize) -> Result<Self, Errno> {
        let length = NonZeroUsize::new(bytes).ok_or(Errno::EINVAL)?;
        let span = bytes.checked_add(2 * EXTENT).map(|span| round_up(span, EXTENT)).ok_or(Errno::ENOMEM)?;
        let span = NonZeroUsize::new(span).ok_or(Errno::ENOMEM)?;
        // The kernel puts files at any page; so room is taken first in which there is a place that fits.
        let flags = MapFlags::MAP_PRIVATE | MapFlags::MAP_NORESERVE;
        // SAFETY: fresh address space, wherever the kernel likes.
        let reserved = unsafe { mmap_anonymous(None, span, ProtFlags::PROT_NONE, flags) }?;
        let skip = reserved.as_ptr().addr().next_multiple_of(EXTENT) - reserved.as_ptr().addr();
        let base = reserved.as_ptr().cast::<u8>().wrapping_add(skip);
        let map = Self { reserved, span: span.get(), base, bytes, process: own_process::id() };
        // After the map, so that it is unlocked first should the map be dropped here.
        let mut views = views();
        let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        let flags = MapFlags::MAP_SHARED | MapFlags::MAP_FIXED;
        let at = NonZeroUsize::new(base.expose_provenance());
        // SAFETY: `skip < EXTENT`, so that it replaces nothing but a part of the room that was just taken.
        unsafe { mmap(at, length, protection, flags, file, 0) }?;
        views.push(base.addr()..base.addr() + bytes);
        Ok(map)
    }

    /// The first byte.
    #[inline]
    pub fn base(&self) -> *mut u8 {
        self.base
    }

    /// Asks for huge pages in place of the pages that are there, for `bytes` bytes from `at` on: at once, and even
    /// where the system gives shared memory none on its own (Linux 6.1; `deny` in shmem_enabled stands). It is only a
    /// wish.
    ///
    /// # Errors
    /// `EAGAIN` where pages were being used in a way that keeps them where they are, so that it may be granted later;
    /// others where it will not be.
    pub fn collapse(&self, at: usize, bytes: usize) -> Result<(), Errno> {
        /// As in asm-generic/mman-common.h; the crate `libc` has it for one C library only.
        const MADV_COLLAPSE: libc::c_int = 25;
        assert!(at <= self.bytes && bytes <= self.bytes - at);
        // SAFETY: within the mapping (checked above); what the memory holds stays as it is.
        let done = unsafe { libc::madvise(self.base.wrapping_add(at).cast(), bytes, MADV_COLLAPSE) };
        Errno::result(done).map(drop)
    }

    /// Tells the kernel of `bytes` bytes from `at` on, which are multiples of a page.
    ///
    /// # Safety
    /// The advice leaves what the memory holds as it is.
    pub unsafe fn advise(&self, at: usize, bytes: usize, advice: MmapAdvise) -> Result<(), Errno> {
        assert!(at <= self.bytes && bytes <= self.bytes - at);
        let at = NonNull::new(self.base.wrapping_add(at)).ok_or(Errno::EINVAL)?;
        // SAFETY: within the mapping (checked above); by contract.
        unsafe { madvise(at.cast(), bytes, advice) }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // A copy of this in a forked child may find the list locked by a thread that is not there.
        let mut views = (self.process == own_process::id()).then(views);
        views.iter_mut().for_each(|views| views.retain(|view| view.start != self.base.addr()));
        // SAFETY: by the invariant it is this map's own, and who is left with a pointer into it must not use it.
        let _ = unsafe { munmap(self.reserved, self.span) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_mapped_is_an_error() {
        let file = std::fs::File::open("/proc/self/exe").unwrap();
        assert_eq!(Map::new(&file.into(), 4096).err(), Some(Errno::EACCES), "it is open for reading alone");
    }
}
