//! The memory of shared results: blocks of the heap, which rank 0 of a communicator provides and uses again and again.
//!
//! A block begins with its head: a word of the provider, and one for each rank that looks at what lies there, well
//! apart. A rank that drops its view counts that in its own word, which none but the provider ever writes (B4). The
//! provider, who knows how often it has given the block out, finds it free when all words say so.
//!
//! Who lets go of a block at which somebody still looks leaves it to the last one of them (B5): it puts a mark into
//! each word, and finds by what the word held whether that view was dropped before. If not, who drops it finds the
//! mark, and counts itself out. What a rank does to its word when it drops a view is one operation, and without the
//! mark its last one in the block: another turn, or other memory, may begin right behind it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::ask;
use crate::error::{Error, Result};
use crate::seat::Seat;
use crate::segment::layout::{APART, EXTENT, MOST_RANKS};
use crate::segment::mapping::Mapping;

/// In a viewer's word: the provider has let go of the block.
const LET_GO: u64 = 1 << 63;

/// A rank as one of those who look at a result.
#[derive(Clone, Copy)]
pub(crate) struct Viewer<'a> {
    pub seat: &'a Seat,
    /// The rank in the communicator, and the communicator's size.
    pub rank: usize,
    pub size: usize,
}

/// Extents of the heap that hold a result behind a head for so many views.
///
/// Heads fit an extent, whatever the number of ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block {
    start: usize,
    extents: usize,
    views: usize,
}

impl Block {
    /// Bytes of the head.
    const fn head(views: usize) -> usize {
        (1 + views) * APART
    }

    fn extents_for(bytes: usize, views: usize) -> usize {
        const { assert!(Self::head(MOST_RANKS) < EXTENT) };
        (Self::head(views) + bytes).div_ceil(EXTENT)
    }

    /// The one around a result of so many bytes.
    fn around(mapping: &Mapping, at: *mut u8, bytes: usize, views: usize) -> Self {
        let heap = mapping.base().addr() + mapping.layout.heap;
        Self { start: (at.addr() - heap) / EXTENT, extents: Self::extents_for(bytes, views), views }
    }

    fn at(self, mapping: &Mapping, offset: usize) -> *mut u8 {
        mapping.base().wrapping_add(mapping.layout.heap + self.start * EXTENT + offset)
    }

    /// Words of the head; they are read and written by who is known to keep the block from being given back.
    fn word(self, mapping: &Mapping, number: usize) -> &AtomicU64 {
        debug_assert!(number <= self.views);
        // SAFETY: the extents are taken: by the provider until it has let go, by a view until it is counted out. What
        // lies here is used as such words only.
        unsafe { &*self.at(mapping, number * APART).cast::<AtomicU64>() }
    }

    /// Once the provider has let go: the views that are not counted out, and 1 for the provider until it has looked at
    /// all.
    fn users(self, mapping: &Mapping) -> &AtomicU64 {
        self.word(mapping, 0)
    }

    /// How many views a rank has dropped here.
    fn dropped(self, mapping: &Mapping, rank: usize) -> &AtomicU64 {
        self.word(mapping, 1 + rank)
    }

    fn result(self, mapping: &Mapping) -> *mut u8 {
        self.at(mapping, Self::head(self.views))
    }

    /// So many users less; the last one gives the extents back.
    fn leave(self, mapping: &Mapping, users: u64, by: usize) {
        if self.users(mapping).fetch_sub(users, Ordering::AcqRel) == users {
            self.give_back(mapping, by);
        }
    }

    fn give_back(self, mapping: &Mapping, by: usize) {
        mapping.give_extents_back(by, self.start, self.extents);
    }
}

/// A view that counts.
pub(crate) struct View {
    mapping: Arc<Mapping>,
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
        // The provider has looked at it: so that the drop does not wait for the line.
        ask::all_to_store(block.at(&mapping, (1 + rank) * APART), 1);
        Self { mapping, block, rank, seat: seat.rank() }
    }

    /// Says that it was dropped, or that a failure has kept it from being seen.
    pub fn leave(&self) {
        let Self { mapping, block, rank, seat } = self;
        // B4, viewer: what was read comes before the memory is written, or given back. B5: and after the provider has
        // let go, if the mark says so.
        if block.dropped(mapping, *rank).fetch_add(1, Ordering::AcqRel) & LET_GO != 0 {
            block.leave(mapping, 1, *seat);
        }
    }

    /// Views that the rank has dropped.
    #[cfg(test)]
    pub fn dropped(&self) -> u64 {
        self.block.dropped(&self.mapping, self.rank).load(Ordering::Acquire)
    }

    /// The same once more, as a forked child has it.
    #[cfg(test)]
    pub fn copy(&self) -> Self {
        Self { mapping: Arc::clone(&self.mapping), ..*self }
    }
}

/// A block that is kept, and how often it was given out.
#[derive(Clone, Copy)]
struct Kept {
    block: Block,
    turns: u64,
}

impl Kept {
    /// Whether nobody looks at it any more.
    fn is_free(&self, mapping: &Mapping) -> bool {
        // B4, provider.
        let dropped = |rank| self.block.dropped(mapping, rank).load(Ordering::Acquire);
        (0..self.block.views).all(|rank| dropped(rank) == self.turns)
    }

    /// Lets go of it, or leaves it to the last one who looks; `never` ranks have no view of this turn, and will have
    /// none.
    fn let_go(self, seat: &Seat, never: usize) {
        let Self { block, turns } = self;
        let (mapping, views) = (seat.mapping(), block.views);
        if never == views || self.is_free(mapping) {
            return block.give_back(mapping, seat.rank());
        }
        block.users(mapping).store((views - never + 1) as u64, Ordering::Relaxed);
        // B5, provider: of each word it is clear who comes first.
        let mark = |rank| block.dropped(mapping, rank).fetch_or(LET_GO, Ordering::AcqRel);
        let gone = (0..views).filter(|&rank| mark(rank) == turns).count();
        block.leave(mapping, 1 + gone as u64, seat.rank());
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
        debug_assert!((0..=views).all(|word| block.word(mapping, word).load(Ordering::Relaxed) == 0), "taken as zeros");
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
}
