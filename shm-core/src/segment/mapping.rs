//! The mapped segment: the one door to its memory.

use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicU8;

use nix::errno::Errno;
use nix::sys::mman::MmapAdvise;

use super::header::{Header, RankWords};
use super::layout::{APART, EXTENT, HEADER, JobLayout};
use super::map::Map;
use super::memory_file::{self, MEMORY_ADVICE};
use super::pool::PAGE;
use crate::error::{Error, Result};

/// A segment in this process's memory.
///
/// Invariants:
/// * M1: `map` covers `layout.total()` bytes of a sealed memory file, so that every offset below it stays backed.
/// * M2: the header, bells, note and maps are reserved; so is every block, and every extent of the heap, while it is
///   taken.
pub(crate) struct Mapping {
    map: Map,
    file: OwnedFd,
    pub layout: JobLayout,
}

impl Mapping {
    /// Maps a segment that this process has just made.
    pub fn of_own(file: OwnedFd, layout: JobLayout) -> Result<Self> {
        let map = map(&file, layout.total())?;
        Ok(Self { map, file, layout }.advised())
    }

    /// Maps a segment that somebody else made, once everything about it is found to be right.
    pub fn of_other(file: OwnedFd) -> Result<Self> {
        let bytes = memory_file::check(&file)?;
        if bytes < HEADER as u64 {
            return Err(Error::Segment {
                why: format!("it has {bytes} bytes, less than its header"),
                advice: "start the program with `phalanx run`, and do not set PHALANX_SEGMENT by hand",
            });
        }
        let map = map(&file, bytes as usize)?;
        // SAFETY: the header is mapped (checked above), aligned to a page; every bit pattern is a Header; the fields
        // that are not atomic do not change once the descriptor has left its creator.
        let header = unsafe { &*map.base().cast::<Header>() };
        header.check(bytes)?;
        let layout = header.layout();
        Ok(Self { map, file, layout }.advised())
    }

    /// Has the heap take huge pages where the system gives them to those who ask, and leaves the segment out of core
    /// dumps: the kernel would write all that could ever lie in it, and take memory for that. Without these it works
    /// as well.
    fn advised(self) -> Self {
        let heap = self.layout.extents * EXTENT;
        // SAFETY: the wish says nothing of what memory holds.
        let _ = unsafe { self.map.advise(0, self.layout.total(), MmapAdvise::MADV_DONTDUMP) };
        // SAFETY: the wish says nothing of what memory holds.
        let _ = unsafe { self.map.advise(self.layout.heap, heap, MmapAdvise::MADV_HUGEPAGE) };
        self
    }

    pub fn file(&self) -> &OwnedFd {
        &self.file
    }

    /// The first byte.
    pub fn base(&self) -> *mut u8 {
        self.map.base()
    }

    pub fn header(&self) -> &Header {
        // SAFETY: M1, M2: the header is mapped and was written by the creator.
        unsafe { &*self.base().cast::<Header>() }
    }

    /// The words of a rank of the job.
    pub fn rank(&self, rank: usize) -> &RankWords {
        assert!(rank < self.layout.ranks);
        // SAFETY: below the layout's total, since `rank < ranks` (M1).
        let at = unsafe { self.base().add(self.layout.bells + rank * APART) };
        // SAFETY: M2; aligned to APART; atomic words only.
        unsafe { &*at.cast::<RankWords>() }
    }

    /// A copy of the note.
    pub fn note(&self) -> Vec<u8> {
        let bytes = self.header().note_bytes as usize;
        let mut note = vec![0; bytes];
        // SAFETY: the layout has the note within the mapping (M1).
        let at = unsafe { self.base().add(self.layout.note) };
        // SAFETY: `bytes` bytes lie there (M2), and are not written once the descriptor has left its creator.
        unsafe { std::ptr::copy_nonoverlapping(at, note.as_mut_ptr(), bytes) };
        note
    }

    /// Writes the note.
    ///
    /// # Safety
    /// Nobody else sees the segment yet, and `note` is as long as the layout's.
    pub unsafe fn write_note(&self, note: &[u8]) {
        // SAFETY: the layout has the note within the mapping (M1).
        let at = unsafe { self.base().add(self.layout.note) };
        // SAFETY: by contract.
        unsafe { std::ptr::copy_nonoverlapping(note.as_ptr(), at, note.len()) };
    }

    /// Has the system back `bytes` bytes at `at` of the heap with memory, of huge pages if it can.
    pub(super) fn populate_heap(&self, at: usize, bytes: usize) -> std::result::Result<(), Errno> {
        // What is wrong with memory the second step says.
        let _ = self.want_huge_pages(self.layout.heap + at, bytes);
        self.populate(self.layout.heap + at, bytes)
    }

    /// Asks the system to back extents, `bytes` bytes at `at`, with a huge page each, be they backed already or not: a
    /// wish.
    ///
    /// It grants this to extents that have pages. To one that has few it costs a tenth of what all the small ones
    /// would: 0.2 ms and 2.4 (a virtual machine on AMD EPYC, Zen 3); to one that has them all 1.2 ms, for it copies
    /// them.
    ///
    /// # Errors
    /// As [`collapse`](Map::collapse); or there is no memory.
    pub fn want_huge_pages(&self, at: usize, bytes: usize) -> std::result::Result<(), Errno> {
        debug_assert!(at.is_multiple_of(EXTENT) && bytes.is_multiple_of(EXTENT));
        for extent in (at..at + bytes).step_by(EXTENT) {
            self.populate(extent, PAGE)?;
        }
        self.map.collapse(at, bytes)
    }

    /// Has the system back `bytes` bytes at `at` with memory.
    fn populate(&self, at: usize, bytes: usize) -> std::result::Result<(), Errno> {
        // SAFETY: pages that are there keep what they hold, others come as zeros, as they would when they were written.
        unsafe { self.map.advise(at, bytes, MmapAdvise::MADV_POPULATE_WRITE) }
    }

    /// The heap's map: a byte for each extent, not 0 when it is taken.
    pub(super) fn extent_map(&self) -> &[AtomicU8] {
        // SAFETY: the layout has the map within the mapping (M1).
        let at = unsafe { self.base().add(self.layout.heap_map) };
        // SAFETY: M2; atomic bytes.
        unsafe { std::slice::from_raw_parts(at.cast::<AtomicU8>(), self.layout.extents) }
    }

    /// The arena's map: a byte for each chunk.
    pub fn chunk_map(&self) -> &[AtomicU8] {
        // SAFETY: the layout has the map within the mapping (M1).
        let at = unsafe { self.base().add(self.layout.map) };
        // SAFETY: M2; atomic bytes.
        unsafe { std::slice::from_raw_parts(at.cast::<AtomicU8>(), self.layout.chunks) }
    }
}

fn map(file: &OwnedFd, bytes: usize) -> Result<Map> {
    Map::new(file, bytes).map_err(|e| Error::Memory {
        rank: None,
        what: "address space for the segment",
        bytes: bytes as u64,
        cause: e.desc().to_owned(),
        advice: MEMORY_ADVICE,
    })
}

/// What the system says of the mapping that has an address, behind this name (proc(5), smaps).
#[cfg(test)]
pub(crate) fn said_of(address: usize, name: &str) -> Option<String> {
    let holds = |line: &str| {
        let ends = line.split_whitespace().next().and_then(|range| range.split_once('-'));
        let ends = ends.map(|(from, to)| (usize::from_str_radix(from, 16), usize::from_str_radix(to, 16)));
        matches!(ends, Some((Ok(from), Ok(to))) if (from..to).contains(&address))
    };
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let mut lines = maps.lines().skip_while(|line| !holds(line));
    lines.find_map(|line| line.strip_prefix(name)).map(|text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::said_of;
    use crate::communicator::Communicator;

    /// A core dump of a rank would take memory for all that could ever lie in the segment.
    #[test]
    fn core_dumps_leave_it_out() {
        Communicator::threads(1, |comm| {
            let buffer = comm.alloc::<u8>(4096).unwrap();
            let flags = said_of(buffer.as_ptr().addr(), "VmFlags:").expect("its pages have flags");
            assert!(flags.split_whitespace().any(|flag| flag == "dd"), "{flags}");
        })
        .unwrap();
    }
}
