//! Memory for a rank's cells: before they are written, and in how large pages.
//!
//! A page of shared memory that is written for the first time costs as much as a message. On a virtual machine (AMD
//! EPYC, Zen 3) the system took 2.1 ms and more for the 512 pages of 4 KiB that a ring of 2 MiB has, one by one or all
//! at once, and 0.15 to 0.35 ms for one huge page, which costs next to nothing in each process that reads it. So once a
//! rank has written for the first time to so many pages that they have taken as long, it asks for huge ones, whatever
//! has pages by then: programs that use few cells do not pay for many, and where there are huge pages no program pays
//! much more than twice what it had to. Where there are none it is asked no more.

use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno;

use super::SharedBoard;
use crate::error::Result;
use crate::protocol::RingName;
use crate::segment::layout::{EXTENT, SHORT_CELL, SHORT_CELLS};
use crate::segment::memory_file;

/// Bytes that a rank writes to new cells of a ring before it asks for huge pages.
const BEFORE_HUGE: usize = 128 << 10;

/// How often it asks, if it is told each time that it may ask again.
const ASKS: u32 = 3;

/// Whether this process was told that there are no huge pages for cells.
static REFUSED: AtomicBool = AtomicBool::new(false);

/// What memory there is for the own cells.
#[derive(Default)]
pub(super) struct Backing {
    /// Bytes of the up, down and short cells that are reserved.
    reserved: [Cell<usize>; 3],
}

const UP: usize = 0;
const DOWN: usize = 1;
const SHORT: usize = 2;

/// The cells of a ring that has any.
#[inline]
fn cells_of(ring: RingName) -> usize {
    if ring == RingName::Up { UP } else { DOWN }
}

/// When a writer to the cells of a ring asks for huge pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UntilHuge {
    /// Slots that have been written, with slices of so many bytes at most.
    written: u64,
    widest: usize,
    /// Bytes that go to new pages before it is time; `NEVER` once it was.
    left: usize,
    asks: u32,
}

const NEVER: usize = usize::MAX;

impl UntilHuge {
    pub fn new() -> Self {
        Self { written: 0, widest: 0, left: BEFORE_HUGE, asks: 0 }
    }

    /// `bytes` bytes are about to be written to a slot: whether it is time to ask.
    #[inline]
    pub fn is_due(&mut self, slot: usize, bytes: usize) -> bool {
        self.left != NEVER && self.take(slot, bytes)
    }

    fn take(&mut self, slot: usize, bytes: usize) -> bool {
        if bytes > self.widest {
            // Of longer slices a part is new in any slot, and slots may lie elsewhere.
            (self.written, self.widest) = (0, bytes);
        }
        let slot = 1 << (slot % 64);
        if self.written & slot != 0 {
            return false;
        }
        self.written |= slot;
        let left = self.left.checked_sub(bytes);
        self.left = left.unwrap_or(NEVER);
        left.is_none()
    }

    /// It may be asked again, when as much has been written once more.
    pub fn ask_again(&mut self) {
        self.asks += 1;
        if self.asks < ASKS {
            (self.written, self.left) = (0, BEFORE_HUGE);
        }
    }
}

impl SharedBoard {
    /// Reserves memory for the own short cells, as [`back`](SharedBoard::back) does for others.
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn back_short_cells(&self) -> Result<()> {
        self.back_first(SHORT, SHORT_CELLS * SHORT_CELL)
    }

    /// Reserves memory for the first `bytes` bytes of the own up or down cells, before they are written, where the
    /// system counts it. Should there be none, this communicator cannot go on.
    ///
    /// # Errors
    /// `Memory`, `RankFailed`.
    #[inline]
    pub fn back(&self, ring: RingName, bytes: usize) -> Result<()> {
        self.back_first(cells_of(ring), bytes)
    }

    #[inline]
    fn back_first(&self, cells: usize, bytes: usize) -> Result<()> {
        if bytes <= self.backing.reserved[cells].get() { Ok(()) } else { self.reserve(cells, bytes) }
    }

    #[cold]
    fn reserve(&self, cells: usize, bytes: usize) -> Result<()> {
        if memory_file::is_counted() {
            let at = self.own_cells(cells) as u64;
            self.seat.mapping().reserve_block(self.seat.rank(), at, bytes).inspect_err(|_| self.give_up())?;
        }
        self.backing.reserved[cells].set(bytes);
        Ok(())
    }

    /// Where the own cells of a kind lie in the segment.
    fn own_cells(&self, cells: usize) -> usize {
        let first = match cells {
            UP => self.up_cell(self.rank, 0, 0),
            DOWN => self.down_cell(self.rank, 0, 0),
            _ => self.short_cell(self.rank, 0),
        };
        first.addr() - self.seat.mapping().base().addr()
    }

    /// Asks for huge pages for the own up or down cells, where extents hold nothing else: others would find what is
    /// theirs moved while they use it, and perhaps to another NUMA node. So it is in communicators of two to four
    /// ranks, as tables go. (Among eight ranks, whose cells share extents, it gained nothing.) Whether it may be asked
    /// again later.
    #[cold]
    pub fn want_huge_pages(&self, ring: RingName) -> bool {
        // Where memory is counted, all of it has been reserved already, in small pages.
        if REFUSED.load(Ordering::Relaxed) || memory_file::is_counted() {
            return false;
        }
        let extents = self.extents(ring);
        if extents.is_empty() {
            return false;
        }
        match self.seat.mapping().want_huge_pages(extents.start, extents.len()) {
            Ok(()) => false,
            Err(Errno::EAGAIN) => true,
            Err(_) => {
                REFUSED.store(true, Ordering::Relaxed);
                false
            }
        }
    }

    /// The extents of the segment in which own up or down cells lie, and that may have huge pages.
    fn extents(&self, ring: RingName) -> Range<usize> {
        let (first, from) = (self.own_cells(UP), self.own_cells(cells_of(ring)));
        let bytes = self.backing.reserved[cells_of(ring)].get();
        let own = first.next_multiple_of(EXTENT)..(first + self.layout.cells_stride) / EXTENT * EXTENT;
        let begin = own.start.max(from / EXTENT * EXTENT);
        let end = own.end.min((from + bytes).next_multiple_of(EXTENT));
        if bytes == 0 { 0..0 } else { begin..end.max(begin) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Communicator;
    use crate::segment::mapping::said_of;

    #[test]
    fn huge_pages_are_asked_for_once_and_not_for_little() {
        let due = |first: usize, bytes: usize, slots: usize| -> Vec<usize> {
            let mut until = UntilHuge::new();
            (0..100_000).filter(|position| until.is_due((first + position) % slots, bytes)).collect()
        };
        // Whichever slot is the first one that this rank writes.
        for first in 0..64 {
            assert_eq!(due(first, 8 << 10, 64), [16]);
            assert_eq!(due(first, 32 << 10, 64), [4]);
        }
        assert_eq!(due(0, 256 << 10, 8), [0]);
        // What has pages already needs none.
        assert_eq!(due(0, 32 << 10, 4), []);
        // Cells that are cut otherwise, and slices that are longer.
        let mut until = UntilHuge::new();
        assert!((0..20).all(|slot| !until.is_due(slot, 6 << 10)));
        assert!(until.is_due(0, 64 << 10));
    }

    #[test]
    fn who_may_ask_again_does_so_some_times() {
        let mut until = UntilHuge::new();
        let mut asked = 0;
        for position in 0..10_000 {
            if until.is_due(position % 16, 64 << 10) {
                asked += 1;
                until.ask_again();
            }
        }
        assert_eq!(asked, ASKS);
    }

    /// Once they are used, and not before that pays.
    #[test]
    fn cells_get_huge_pages() {
        let huge = |comm: &Communicator, at: *const u8| {
            comm.barrier().unwrap();
            let said = said_of(at.addr(), "ShmemPmdMapped:");
            comm.barrier().unwrap();
            said
        };
        let mode = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/shmem_enabled").unwrap_or_default();
        let given = Communicator::threads(2, |comm| {
            let buffer = comm.alloc::<u8>(EXTENT).unwrap();
            let given = huge(&comm, buffer.as_ptr()).is_some_and(|given| given != "0 kB");
            // Elsewhere all memory, or none, is huge from the first.
            if !given || !["[never]", "[advise]"].iter().any(|own| mode.contains(own)) {
                return false;
            }
            let cell = comm.enter().unwrap().board.down_cell(0, 0, 1);
            let mut message = vec![1_u8; BEFORE_HUGE];
            let root = comm.process_at_rank(0);
            root.broadcast_into(&mut message).unwrap();
            assert_eq!(huge(&comm, cell).as_deref(), Some("0 kB"));
            // Pages may be in use when the root asks: it asks again.
            for _ in 0..2 * ASKS {
                root.broadcast_into(&mut message).unwrap();
            }
            let found = huge(&comm, cell);
            // The system may have had its last one for the buffer.
            let refused = REFUSED.load(Ordering::Relaxed);
            assert!(refused || found.as_deref() == Some("2048 kB"), "one extent, of the root's down cells: {found:?}");
            !refused
        });
        if !given.unwrap()[0] {
            crate::processes::say_skipped(
                "this system gives shared memory huge pages at once, or none, or has none left",
            );
        }
    }
}
