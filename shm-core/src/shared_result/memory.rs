//! The memory of shared results: blocks of the heap, which rank 0 of a communicator provides and uses again and again.
//!
//! A block begins with its head: a line of the provider, and one for each rank that looks at what lies there. A rank
//! that drops its view counts that in its own line, by a store that waits for nobody (B4). The provider, who knows how
//! often it has given the block out, finds it free when all lines say so.
//!
//! Who lets go of a block at which somebody still looks leaves it to the last one of them. Provider and viewer each say
//! what they have done, then look at what the other said (B5), so that at least one knows of both; a mark in the
//! viewer's line sees to it that this view is counted out once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::seat::{Seat, System};
use crate::segment::layout::{EXTENT, LINE};
use crate::segment::mapping::Mapping;
use crate::wait::bell::Sleepers;

/// In a viewer's line: its last view is counted out.
const COUNTED: u64 = 1 << 63;

/// The line of the provider.
#[repr(C)]
struct Provided {
    /// 1 once it has let go of the block.
    let_go: AtomicU64,
    /// From then on: the views that are not counted out, and 1 for the provider until it has looked at all.
    users: AtomicU64,
}

/// A rank as one of those who look at a result.
#[derive(Clone, Copy)]
pub(crate) struct Viewer<'a> {
    pub seat: &'a Seat,
    /// The rank in the communicator, and the communicator's size.
    pub rank: usize,
    pub size: usize,
}

/// Extents of the heap that hold a result behind a head for so many views.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block {
    start: usize,
    extents: usize,
    views: usize,
}

impl Block {
    /// Bytes of the head.
    fn head(views: usize) -> usize {
        (1 + views) * LINE
    }

    fn extents_for(bytes: usize, views: usize) -> usize {
        (Self::head(views) + bytes).div_ceil(EXTENT)
    }

    /// The one around a result of so many bytes.
    fn around(mapping: &Mapping, at: *mut u8, bytes: usize, views: usize) -> Self {
        let heap = mapping.base().addr() + mapping.layout.heap;
        Self { start: (at.addr() - heap) / EXTENT, extents: Self::extents_for(bytes, views), views }
    }

    fn line(self, mapping: &Mapping, line: usize) -> *mut u8 {
        debug_assert!(line <= self.views);
        mapping.base().wrapping_add(mapping.layout.heap + self.start * EXTENT + line * LINE)
    }

    fn provided(self, mapping: &Mapping) -> &Provided {
        // SAFETY: the extents are taken; what lies in this line is used as such words only.
        unsafe { &*self.line(mapping, 0).cast::<Provided>() }
    }

    /// How many views a rank has dropped here.
    fn dropped(self, mapping: &Mapping, rank: usize) -> &AtomicU64 {
        // SAFETY: the same.
        unsafe { &*self.line(mapping, 1 + rank).cast::<AtomicU64>() }
    }

    fn result(self, mapping: &Mapping) -> *mut u8 {
        self.line(mapping, 0).wrapping_add(Self::head(self.views))
    }

    /// A head that says nothing.
    fn clear(self, mapping: &Mapping) {
        let Provided { let_go, users } = self.provided(mapping);
        let dropped = (0..self.views).map(|rank| self.dropped(mapping, rank));
        [let_go, users].into_iter().chain(dropped).for_each(|word| word.store(0, Ordering::Relaxed));
    }

    /// Counts out the view that a rank has dropped, if nobody has yet.
    fn count_out(self, mapping: &Mapping, rank: usize, by: usize) {
        if self.dropped(mapping, rank).fetch_or(COUNTED, Ordering::AcqRel) & COUNTED == 0 {
            self.leave(mapping, by);
        }
    }

    /// A user less; the last one gives the extents back.
    fn leave(self, mapping: &Mapping, by: usize) {
        if self.provided(mapping).users.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.give_back(mapping, by);
        }
    }

    fn give_back(self, mapping: &Mapping, by: usize) {
        mapping.give_extents_back(by, self.start, self.extents);
    }
}

/// A view that counts.
#[derive(Clone)]
pub(super) struct View {
    mapping: Arc<Mapping>,
    system: System,
    block: Block,
    /// The rank in the communicator, and in the job.
    rank: usize,
    seat: usize,
}

impl View {
    pub fn of(viewer: Viewer<'_>, at: *mut u8, bytes: usize) -> Self {
        let Viewer { seat, rank, size } = viewer;
        let mapping = Arc::clone(seat.mapping());
        let block = Block::around(&mapping, at, bytes, size);
        Self { mapping, system: seat.system(), block, rank, seat: seat.rank() }
    }

    /// Says that it was dropped.
    pub fn leave(&self) {
        let Self { mapping, system, block, rank, seat } = self;
        let dropped = block.dropped(mapping, *rank);
        // The provider marks it only once it says that all views were dropped.
        let before = dropped.load(Ordering::Relaxed);
        // B4, viewer: what was read comes before the memory is written, or given back.
        dropped.store(before + 1, Ordering::Release);
        // B5, viewer: said before this look.
        system.light_fence();
        if block.provided(mapping).let_go.load(Ordering::Acquire) != 0 {
            block.count_out(mapping, *rank, *seat);
        }
    }

    /// Views that the rank has dropped.
    #[cfg(test)]
    pub fn dropped(&self) -> u64 {
        self.block.dropped(&self.mapping, self.rank).load(Ordering::Acquire)
    }
}

/// A block that is kept, and how often it was given out.
#[derive(Clone, Copy)]
struct Kept {
    block: Block,
    turns: u64,
}

impl Kept {
    /// Whether a rank looks at it no more.
    fn is_left_by(&self, mapping: &Mapping, rank: usize) -> bool {
        // B4, provider.
        self.block.dropped(mapping, rank).load(Ordering::Acquire) == self.turns
    }

    fn is_free(&self, mapping: &Mapping) -> bool {
        (0..self.block.views).all(|rank| self.is_left_by(mapping, rank))
    }

    /// Lets go of it, or leaves it to the last one who looks; `never` ranks have no view of this turn, and will have
    /// none.
    fn let_go(self, seat: &Seat, never: usize) {
        let Self { block, .. } = self;
        let (mapping, views) = (seat.mapping(), block.views);
        if never == views || self.is_free(mapping) {
            return block.give_back(mapping, seat.rank());
        }
        let Provided { let_go, users } = block.provided(mapping);
        users.store((views - never + 1) as u64, Ordering::Relaxed);
        let_go.store(1, Ordering::Release);
        // B5, provider: said before these looks.
        seat.heavy_fence();
        for rank in (0..views).filter(|&rank| self.is_left_by(mapping, rank)) {
            block.count_out(mapping, rank, seat.rank());
        }
        block.leave(mapping, seat.rank());
    }
}

/// The memory of results that one rank provides: kept, and used again once nobody looks at it any more.
#[derive(Default)]
pub(crate) struct ResultMemory {
    kept: Vec<Kept>,
}

/// Results whose memory is kept.
const KEPT: usize = 4;

impl ResultMemory {
    /// Memory for a result of `bytes` bytes with `views` views.
    ///
    /// # Errors
    /// As for [`Communicator::alloc`](crate::Communicator::alloc).
    pub fn take(&mut self, seat: &Seat, bytes: usize, views: usize) -> Result<*mut u8> {
        let mapping = seat.mapping();
        let extents = Block::extents_for(bytes, views);
        let suits = |kept: &&mut Kept| kept.block.extents == extents && kept.is_free(mapping);
        if let Some(kept) = self.kept.iter_mut().find(suits) {
            kept.turns += 1;
            return Ok(kept.block.result(mapping));
        }
        self.shrink(seat, KEPT - 1);
        let start = match mapping.take_extents(seat.rank(), extents) {
            Err(Error::HeapExhausted { .. } | Error::Memory { .. }) if !self.kept.is_empty() => {
                self.shrink(seat, 0);
                mapping.take_extents(seat.rank(), extents)
            }
            other => other,
        }?;
        let block = Block { start, extents, views };
        block.clear(mapping);
        self.kept.push(Kept { block, turns: 1 });
        Ok(block.result(mapping))
    }

    /// Lets go of all but the `most` that were taken last; where somebody still looks, the last view gives the memory
    /// back.
    pub fn shrink(&mut self, seat: &Seat, most: usize) {
        while self.kept.len() > most {
            self.kept.remove(0).let_go(seat, 0);
        }
    }

    /// Lets go of the block at `at` because the call that was to fill it has failed, and `never` ranks have no view of
    /// it and will have none. All others, this one too, have said that theirs is dropped, or will.
    pub fn abandon(&mut self, seat: &Seat, at: *mut u8, never: usize) {
        let found = self.kept.iter().position(|kept| kept.block.result(seat.mapping()) == at);
        let failed = self.kept.remove(found.expect("what was taken is kept"));
        failed.let_go(seat, never);
    }

    /// Says that the view of a result of `bytes` bytes at `at` is dropped, which the call's failure has kept from
    /// being seen.
    pub fn forgo(viewer: Viewer<'_>, at: *mut u8, bytes: usize) {
        View::of(viewer, at, bytes).leave();
    }
}
