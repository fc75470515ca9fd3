//! A rank's own part of the heap: the extents that it has taken, cut into pages for short buffers; and those that it
//! keeps for the next buffer.
//!
//! Nothing of this is shared between ranks, so that a buffer costs a search in private memory as long as the rank has
//! room.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::arena::first_fit;
use super::layout::EXTENT;
use super::mapping::Mapping;
use crate::error::{Error, Result};
use crate::own_process;

/// The unit in which short buffers are given out, and what all are aligned to.
pub(crate) const PAGE: usize = 4096;

/// Pages of an extent.
const PAGES: usize = EXTENT / PAGE;

/// The most pages of a short buffer: longer ones take whole extents.
const SHORT: usize = PAGES / 2;

/// The most bytes that a rank keeps of what was given back.
const KEPT: usize = 64 << 20;

/// Where extents come from, and go to.
trait Extents {
    fn take(&self, count: usize) -> Result<usize>;
    fn give_back(&self, start: usize, count: usize);
}

/// The part of the heap that a rank has. Shared by its buffers, which may outlive all its communicators.
pub(crate) struct RankHeap {
    source: Source,
    pool: Mutex<Pool>,
    /// The process whose rank it is: a forked child has a copy, and nothing to give back.
    process: u32,
}

/// The segment's heap as one rank sees it.
struct Source {
    mapping: Arc<Mapping>,
    rank: usize,
}

impl Extents for Source {
    fn take(&self, count: usize) -> Result<usize> {
        self.mapping.take_extents(self.rank, count)
    }

    fn give_back(&self, start: usize, count: usize) {
        self.mapping.give_extents_back(self.rank, start, count);
    }
}

impl RankHeap {
    pub fn new(mapping: Arc<Mapping>, rank: usize) -> Arc<Self> {
        let layout = &mapping.layout;
        // All ranks together keep an eighth of the heap at most.
        let keeps = (KEPT / EXTENT).min(layout.extents / (8 * layout.ranks));
        Arc::new(Self {
            source: Source { mapping, rank },
            pool: Mutex::new(Pool::new(keeps)),
            process: own_process::id(),
        })
    }

    /// Takes at least `bytes` bytes, at least one.
    ///
    /// # Errors
    /// `HeapExhausted`, `Memory`, `RankFailed`.
    pub fn take(self: &Arc<Self>, bytes: usize) -> Result<HeapBlock> {
        let Taken { offset, zero } = self.pool().take(bytes, &self.source)?;
        Ok(HeapBlock { heap: Arc::clone(self), offset, bytes, zero, abandoned: false })
    }

    /// Whether this is not the copy that a forked child has.
    pub fn is_of_this_process(&self) -> bool {
        self.process == own_process::id()
    }

    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RankHeap {
    fn drop(&mut self) {
        if !self.is_of_this_process() {
            return;
        }
        let pool = self.pool.get_mut().unwrap_or_else(PoisonError::into_inner);
        pool.give_up_kept(&self.source);
    }
}

/// A piece of the heap that a rank has taken; given back when dropped.
pub(crate) struct HeapBlock {
    heap: Arc<RankHeap>,
    offset: usize,
    bytes: usize,
    zero: bool,
    abandoned: bool,
}

impl HeapBlock {
    /// Where it lies in the heap.
    #[inline]
    pub fn offset(&self) -> u64 {
        self.offset as u64
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether it is all zero, as the system gives memory out.
    pub fn is_zero(&self) -> bool {
        self.zero
    }

    /// Its first byte, aligned to a page. All its bytes are reserved, and nobody else's.
    #[inline]
    pub fn pointer(&self) -> *mut u8 {
        let mapping = &self.heap.source.mapping;
        // SAFETY: M1: extents lie within the mapping, and the block within extents that were taken.
        unsafe { mapping.base().add(mapping.layout.heap + self.offset) }
    }

    /// Drops it without giving it back: somebody has it until the job ends.
    pub fn abandon(mut self) {
        self.abandoned = true;
    }
}

impl Drop for HeapBlock {
    fn drop(&mut self) {
        if self.abandoned || !self.heap.is_of_this_process() {
            return;
        }
        self.heap.pool().give_back(self.offset, self.bytes, &self.heap.source);
    }
}

/// What was taken: where, and whether it is all zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Taken {
    offset: usize,
    zero: bool,
}

/// The extents of one rank.
///
/// Invariants:
/// * P1: an extent that the rank has is in `books` (cut into pages, at least one of them taken), or within a piece of
///   `kept`, or part of one long buffer; never in two of them.
/// * P2: pieces of `kept` do not touch each other, and have `kept_extents` extents together, at most `keeps`.
struct Pool {
    books: BTreeMap<usize, Book>,
    /// First extent and number of extents.
    kept: BTreeMap<usize, usize>,
    kept_extents: usize,
    keeps: usize,
}

/// Which pages of an extent are taken.
#[derive(Default)]
struct Book {
    taken: [u64; PAGES / 64],
}

impl Book {
    fn has(&self, page: usize) -> bool {
        self.taken[page / 64] >> (page % 64) & 1 != 0
    }

    fn free(&self) -> usize {
        PAGES - self.taken.iter().map(|word| word.count_ones() as usize).sum::<usize>()
    }

    fn find(&self, count: usize) -> Option<usize> {
        if self.free() < count { None } else { first_fit((0..PAGES).map(|page| self.has(page)), count) }
    }

    fn flip(&mut self, first: usize, count: usize) {
        (first..first + count).for_each(|page| self.taken[page / 64] ^= 1 << (page % 64));
    }
}

impl Pool {
    fn new(keeps: usize) -> Self {
        Self { books: BTreeMap::new(), kept: BTreeMap::new(), kept_extents: 0, keeps }
    }

    fn take(&mut self, bytes: usize, source: &impl Extents) -> Result<Taken> {
        let pages = bytes.div_ceil(PAGE);
        if pages > SHORT {
            let (start, zero) = self.extents(bytes.div_ceil(EXTENT), source)?;
            return Ok(Taken { offset: start * EXTENT, zero });
        }
        let found = self.books.iter().find_map(|(&extent, book)| Some((extent, book.find(pages)?)));
        let (extent, first, zero) = match found {
            Some((extent, first)) => (extent, first, false),
            None => {
                let (extent, zero) = self.extents(1, source)?;
                (extent, 0, zero)
            }
        };
        self.books.entry(extent).or_default().flip(first, pages);
        Ok(Taken { offset: extent * EXTENT + first * PAGE, zero })
    }

    fn give_back(&mut self, offset: usize, bytes: usize, source: &impl Extents) {
        let extent = offset / EXTENT;
        let pages = bytes.div_ceil(PAGE);
        if pages > SHORT {
            self.keep(extent, bytes.div_ceil(EXTENT), source);
        } else if let Some(book) = self.books.get_mut(&extent) {
            book.flip(offset % EXTENT / PAGE, pages);
            if book.free() == PAGES {
                self.books.remove(&extent);
                self.keep(extent, 1, source);
            }
        }
    }

    /// Takes extents in a row: of those that are kept, else fresh ones, which are zero.
    fn extents(&mut self, count: usize, source: &impl Extents) -> Result<(usize, bool)> {
        // The piece that fits best, so that long ones stay whole.
        let fits = self.kept.iter().filter(|&(_, &length)| length >= count).min_by_key(|&(_, &length)| length);
        if let Some((start, length)) = fits.map(|(&start, &length)| (start, length)) {
            self.kept.remove(&start);
            if length > count {
                self.kept.insert(start + count, length - count);
            }
            self.kept_extents -= count;
            return Ok((start, false));
        }
        let fresh = match source.take(count) {
            Err(Error::HeapExhausted { .. } | Error::Memory { .. }) if self.kept_extents > 0 => {
                // What is kept may be what is missing.
                self.give_up_kept(source);
                source.take(count)
            }
            other => other,
        };
        Ok((fresh?, true))
    }

    /// Keeps extents for the next buffer, or gives them back if they are too many. Older ones go first: the next buffer
    /// is most likely of the last one's size.
    fn keep(&mut self, mut start: usize, mut count: usize, source: &impl Extents) {
        if count > self.keeps {
            return source.give_back(start, count);
        }
        if self.kept_extents + count > self.keeps {
            self.give_up_kept(source);
        }
        self.kept_extents += count;
        if let Some((&before, &length)) =
            self.kept.range(..start).next_back().filter(|&(&b, &length)| b + length == start)
        {
            self.kept.remove(&before);
            (start, count) = (before, length + count);
        }
        if let Some(length) = self.kept.remove(&(start + count)) {
            count += length;
        }
        self.kept.insert(start, count);
    }

    fn give_up_kept(&mut self, source: &impl Extents) {
        for (start, count) in std::mem::take(&mut self.kept) {
            source.give_back(start, count);
        }
        self.kept_extents = 0;
    }
}

#[cfg(test)]
mod tests;
