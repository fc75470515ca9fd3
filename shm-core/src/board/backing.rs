//! Memory for a rank's cells: before they are written, and in how large pages.
//!
//! A page of shared memory that is written for the first time costs as much as a message. On a virtual machine (AMD
//! EPYC, Zen 3) the system took 2.1 ms and more for the 512 pages of 4 KiB that a ring of 2 MiB has, one by one or all
//! at once, and 0.15 to 0.35 ms for one huge page, which costs next to nothing in each process that reads it. So once a
//! rank has written for the first time to so many pages that they have taken as long, it asks for huge ones, whatever
//! has pages by then: programs that use few cells do not pay for many, and no program pays much more than twice what
//! it had to. Systems that have no huge pages for shared memory, or none left, leave things as they are.

use std::cell::Cell;

use super::SharedBoard;
use crate::error::Result;
use crate::protocol::RingName;
use crate::segment::layout::{EXTENT, SHORT_CELL, SHORT_CELLS};
use crate::segment::memory_file;

/// Bytes that a rank writes to new cells of a ring before it asks for huge pages.
const BEFORE_HUGE: usize = 128 << 10;

/// What memory there is for the own cells.
#[derive(Default)]
pub(super) struct Backing {
    /// Bytes of the up, down and short cells that are reserved.
    reserved: [Cell<usize>; 3],
}

/// When a writer to the cells of a ring asks for huge pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UntilHuge {
    /// Slots before this one have been written before.
    new: usize,
    /// Bytes that go to new ones before it is time.
    left: usize,
}

impl UntilHuge {
    pub fn new() -> Self {
        Self { new: 0, left: BEFORE_HUGE }
    }

    /// `bytes` bytes are about to be written to a slot: whether it is time to ask, which it is once.
    #[inline]
    pub fn is_due(&mut self, slot: usize, bytes: usize) -> bool {
        slot >= self.new && self.take(slot, bytes)
    }

    #[cold]
    fn take(&mut self, slot: usize, bytes: usize) -> bool {
        let is_due = bytes > self.left;
        (self.new, self.left) = if is_due { (usize::MAX, 0) } else { (slot + 1, self.left - bytes) };
        is_due
    }
}

impl SharedBoard {
    /// Reserves memory for the own short cells, as [`back`](SharedBoard::back) does for others.
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn back_short_cells(&self) -> Result<()> {
        self.back_first(2, SHORT_CELLS * SHORT_CELL)
    }

    /// Reserves memory for the first `bytes` bytes of the own up or down cells, before they are written, where the
    /// system counts it. Should there be none, this communicator cannot go on.
    ///
    /// # Errors
    /// `Memory`, `RankFailed`.
    #[inline]
    pub fn back(&self, ring: RingName, bytes: usize) -> Result<()> {
        self.back_first(usize::from(ring != RingName::Up), bytes)
    }

    #[inline]
    fn back_first(&self, cells: usize, bytes: usize) -> Result<()> {
        if bytes <= self.backing.reserved[cells].get() { Ok(()) } else { self.reserve(cells, bytes) }
    }

    #[cold]
    fn reserve(&self, cells: usize, bytes: usize) -> Result<()> {
        if memory_file::is_counted() {
            let first = match cells {
                0 => self.up_cell(self.rank, 0, 1),
                1 => self.down_cell(self.rank, 0, 1),
                _ => self.short_cell(self.rank, 0),
            };
            let mapping = self.seat.mapping();
            let at = first.addr() - mapping.base().addr();
            mapping.reserve_block(self.seat.rank(), at as u64, bytes).inspect_err(|_| self.give_up())?;
        }
        self.backing.reserved[cells].set(bytes);
        Ok(())
    }

    /// Asks for huge pages for the own up or down cells that are reserved, where extents hold cells of this rank alone:
    /// others would find theirs, and words that they wait for, moved, and perhaps on another NUMA node.
    #[cold]
    pub fn want_huge_pages(&self, ring: RingName) {
        let mapping = self.seat.mapping();
        let at = |cell: *mut u8| cell.addr() - mapping.base().addr();
        let first = at(self.cells(self.rank, 0));
        let (from, bytes) = match ring {
            RingName::Up => (first, self.backing.reserved[0].get()),
            _ => (first + self.layout.down, self.backing.reserved[1].get()),
        };
        let own = first.next_multiple_of(EXTENT)..(first + self.layout.cells_stride) / EXTENT * EXTENT;
        let begin = own.start.max(from / EXTENT * EXTENT);
        let end = own.end.min((from + bytes).next_multiple_of(EXTENT));
        if begin < end {
            mapping.want_huge_pages(begin, end - begin);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Communicator;
    use crate::segment::mapping::said_of;

    #[test]
    fn huge_pages_are_asked_for_once_and_not_for_little() {
        let due = |bytes: usize, slots: usize| -> Vec<usize> {
            let mut until = UntilHuge::new();
            (0..100_000).filter(|position| until.is_due(position % slots, bytes)).collect()
        };
        assert_eq!(due(8 << 10, 64), [16]);
        assert_eq!(due(32 << 10, 64), [4]);
        assert_eq!(due(256 << 10, 8), [0]);
        // What has pages already needs none.
        assert_eq!(due(32 << 10, 4), []);
    }
    /// Of the own cells, where extents are theirs; no other rank's, and not before it pays.
    #[test]
    fn cells_get_huge_pages_once_they_are_used() {
        let huge = |comm: &Communicator, at: *const u8| {
            comm.barrier().unwrap();
            let said = said_of(at.addr(), "ShmemPmdMapped:");
            comm.barrier().unwrap();
            said
        };
        let given = Communicator::threads(2, |comm| {
            let buffer = comm.alloc::<u8>(EXTENT).unwrap();
            let given = huge(&comm, buffer.as_ptr()).is_some_and(|given| given != "0 kB");
            let cell = comm.enter().unwrap().board.down_cell(0, 0, 1);
            let mut message = vec![1_u8; BEFORE_HUGE];
            let root = comm.process_at_rank(0);
            root.broadcast_into(&mut message).unwrap();
            let before = huge(&comm, cell);
            root.broadcast_into(&mut message).unwrap();
            let after = huge(&comm, cell);
            assert_eq!(before.as_deref(), Some("0 kB"));
            // What is there for the root alone is an extent of one of its rings.
            assert!(!given || after.as_deref() == Some("2048 kB"), "{after:?}");
            given
        });
        if !given.unwrap()[0] {
            println!("skipped in part: this system gives shared memory no huge pages");
        }
    }
}
