//! A zeroed mapping that several processes share, as lines of atomic words.
//!
//! The floor's processes meet here. It is deliberately apart from shm-core: what the collectives
//! are read against must not be made of the collectives' own parts.

use std::ffi::c_void;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use nix::unistd::ftruncate;

use crate::error::{Error, Result};

/// The most lines of a mapping.
pub const MOST_LINES: usize = 1024;

/// Bytes of a large page.
pub const LARGE_PAGE: usize = 2 << 20;

/// One cache line of eight words, two lines away from the next so that the adjacent-line
/// prefetcher does not tie neighbours together.
#[repr(C, align(128))]
#[derive(Debug, Default)]
pub struct Line {
    /// The 64 bytes that are used; the other 64 stay empty.
    pub words: [AtomicU64; 8],
}

/// A shared mapping of lines, given back when it is dropped.
#[derive(Debug)]
pub struct Mapping {
    /// I1: start of a live mapping of `lines * size_of::<Line>()` bytes, page-aligned.
    base: NonNull<c_void>,
    lines: usize,
}

// SAFETY: the mapping is reached through atomics only (`lines`), or through `at`, whose callers
// answer for what they put there; neither is bound to a thread.
unsafe impl Send for Mapping {}
// SAFETY: as for Send.
unsafe impl Sync for Mapping {}

/// Makes an anonymous file of `lines` zeroed lines, to be mapped by several processes.
pub fn anonymous_file(lines: usize) -> Result<OwnedFd> {
    let file = memfd_create(c"bench-floor", MFdFlags::MFD_CLOEXEC)
        .map_err(Error::system("memfd_create for the floor's mapping"))?;
    let bytes = (lines * size_of::<Line>()) as i64;
    ftruncate(&file, bytes).map_err(Error::system("size of the floor's mapping"))?;
    Ok(file)
}

impl Mapping {
    /// Maps `lines` lines of `file`, which must be at least that long.
    pub fn of(file: impl AsFd, lines: usize) -> Result<Mapping> {
        let bytes =
            NonZeroUsize::new(lines * size_of::<Line>()).ok_or_else(|| Error::Floor("a mapping of no lines".into()))?;
        // SAFETY: a fresh mapping at an address that the kernel chooses overlaps nothing of ours.
        let base = unsafe {
            mmap(
                Self::place_for(bytes),
                bytes,
                ProtFlags::PROT_READ | ProtFlags::PROT_WRITE,
                MapFlags::MAP_SHARED,
                file,
                0,
            )
        }
        .map_err(Error::system("mmap of the floor's mapping"))?;
        Ok(Mapping { base, lines })
    }

    /// A free place at which a mapping of so many bytes can have large pages, if it is long enough to have any; the
    /// kernel need not take it.
    fn place_for(bytes: NonZeroUsize) -> Option<NonZeroUsize> {
        let room = bytes.checked_add(LARGE_PAGE).filter(|_| bytes.get() >= LARGE_PAGE)?;
        let flags = MapFlags::MAP_PRIVATE | MapFlags::MAP_NORESERVE;
        // SAFETY: a fresh mapping at an address that the kernel chooses overlaps nothing of ours.
        let free = unsafe { mmap_anonymous(None, room, ProtFlags::PROT_NONE, flags) }.ok()?;
        // SAFETY: just mapped, and nobody knows of it.
        unsafe { munmap(free, room.get()) }.ok()?;
        NonZeroUsize::new(free.addr().get().next_multiple_of(LARGE_PAGE))
    }

    /// Asks for large pages where small ones are; nothing depends on it.
    pub fn collapse(&self) {
        const MADV_COLLAPSE: libc::c_int = 25;
        // SAFETY: I1; what the pages hold stays.
        unsafe { libc::madvise(self.base.as_ptr(), self.lines * size_of::<Line>(), MADV_COLLAPSE) };
    }

    /// The lines; behind the first 1024 lies plain data, if anything.
    pub fn lines(&self) -> &[Line] {
        // SAFETY: I1, and a line is nothing but atomics, for which any bit pattern is valid and
        // concurrent access by other processes is defined; what fills it up nobody writes.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().cast::<Line>(), self.lines.min(MOST_LINES)) }
    }

    /// Lines, and as many bytes of plain data as would be lines.
    pub fn length(&self) -> usize {
        self.lines
    }

    /// The address of line `index`, and of all that follow, for what is no line: objects of the C library, plain data.
    pub fn at(&self, index: usize) -> *mut c_void {
        assert!(index < self.lines, "line {index} of {}", self.lines);
        self.base.as_ptr().wrapping_byte_add(index * size_of::<Line>())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: I1; no reference into the mapping outlives `self`.
        let outcome = unsafe { munmap(self.base, self.lines * size_of::<Line>()) };
        debug_assert!(outcome.is_ok());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    #[test]
    fn two_mappings_of_one_file_show_the_same_words() {
        let file = anonymous_file(4).unwrap();
        let (a, b) = (Mapping::of(&file, 4).unwrap(), Mapping::of(&file, 4).unwrap());
        assert_eq!(b.lines()[3].words[7].load(Relaxed), 0);
        a.lines()[3].words[7].store(11, Relaxed);
        assert_eq!(b.lines()[3].words[7].load(Relaxed), 11);
        assert_ne!(a.at(3), b.at(3));
    }

    #[test]
    fn lines_lie_two_cache_lines_apart() {
        assert_eq!(size_of::<Line>(), 128);
        assert_eq!(align_of::<Line>(), 128);
    }
}
