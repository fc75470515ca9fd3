//! Blocks of the arena: taken for a communicator, given back with its last handle. A part of what is given back keeps
//! the memory that it has, so that programs which make communicators by the thousand do not ask the system for it each
//! time.

use std::sync::atomic::Ordering;

use super::layout::{BlockLayout, CHUNK, EXTENT};
use super::mapping::Mapping;
use super::memory_file;
use crate::error::{Error, Result};

/// What a chunk's byte in the map says.
const FREE: u8 = 0;
/// A communicator has it.
const TAKEN: u8 = 1;
/// Nobody has it, but its memory was kept for the next.
const KEPT: u8 = 2;

/// Memory of this part of the arena, at most, is kept when blocks are given back.
const KEPT_PART: usize = 8;

/// Finds `count` free chunks in a row (first fit).
pub(super) fn first_fit(taken: impl Iterator<Item = bool>, count: usize) -> Option<usize> {
    first_fit_at(taken, count, (1, 0))
}

/// The same, of which the first one's number leaves this remainder when it is divided by `unit`.
fn first_fit_at(taken: impl Iterator<Item = bool>, count: usize, (unit, remainder): (usize, usize)) -> Option<usize> {
    let from = |chunk: usize| chunk + (unit + remainder - chunk % unit) % unit;
    let mut start = from(0);
    for (chunk, taken) in taken.enumerate() {
        if taken {
            start = from(chunk + 1);
        } else if chunk + 1 == start + count {
            return Some(start);
        }
    }
    None
}

/// Where a block should begin: the number of chunks that its first one's is a multiple of, but for these.
fn place_of(layout: &BlockLayout) -> (usize, usize) {
    let unit = EXTENT / CHUNK;
    match layout.fills_extents() {
        true => (unit, (unit - layout.cells / CHUNK % unit) % unit),
        false => (1, 0),
    }
}

impl Mapping {
    /// Takes a block of this layout for `rank` of the job, and returns its offset. All but its cells is reserved and,
    /// but for the payload of lines whose memory was kept, zero. The cells are reserved by
    /// [`reserve_block`](Mapping::reserve_block), before a rank writes its own, where the system counts memory: most
    /// communicators never use them.
    ///
    /// # Errors
    /// `ArenaExhausted` when no gap is long enough, `Memory` when the system cannot back it, `RankFailed`.
    pub fn take_block(&self, rank: usize, layout: &BlockLayout) -> Result<u64> {
        let count = layout.total().div_ceil(CHUNK);
        let (start, kept) = self.take_chunks(rank, count, place_of(layout))?;
        let offset = (self.layout.arena + start * CHUNK) as u64;
        for (from, to) in layout.used_at_once() {
            if let Err(error) = self.reserve_block(rank, offset + from as u64, to - from) {
                self.give_chunks_back(rank, start, count);
                return Err(error);
            }
        }
        if kept > 0 {
            for (from, to) in layout.words() {
                // SAFETY: the block was just taken: it lies within the mapping, is reserved, and nobody else uses it.
                let words = unsafe { self.base().add(offset as usize + from) };
                // SAFETY: the same, of all that lies before the end of its layout.
                unsafe { words.write_bytes(0, to - from) };
            }
        }
        Ok(offset)
    }

    /// Reserves memory of a block that is taken, if need be that which was kept. What is reserved already stays as it
    /// is.
    ///
    /// # Errors
    /// `Memory` when the system cannot back it, `RankFailed`.
    pub fn reserve_block(&self, rank: usize, offset: u64, bytes: usize) -> Result<()> {
        let reserve = || memory_file::reserve(self.file(), "a communicator's block", offset, bytes as u64);
        reserve().or_else(|_| self.drop_kept(rank).and_then(|()| reserve())).map_err(|error| error.of(rank))
    }

    /// Finds chunks in a row, kept ones if there are as many, at a place like this one if there is one, and takes them.
    /// Returns the first, and how many of them were kept.
    fn take_chunks(&self, rank: usize, count: usize, place: (usize, usize)) -> Result<(usize, usize)> {
        let _lock = self.lock_maps(rank)?;
        let map = self.chunk_map();
        let states = || map.iter().map(|chunk| chunk.load(Ordering::Relaxed));
        let words = &self.header().shared;
        let kept_in_all = words.kept.load(Ordering::Relaxed);
        let kept = if kept_in_all < count as u64 {
            None
        } else {
            first_fit_at(states().map(|state| state != KEPT), count, place)
        };
        let free = |place| first_fit_at(states().map(|state| state == TAKEN), count, place);
        let Some(start) = kept.or_else(|| free(place)).or_else(|| free((1, 0))) else {
            return Err(Error::ArenaExhausted {
                needed: (count * CHUNK) as u64,
                free: (states().filter(|&state| state != TAKEN).count() * CHUNK) as u64,
                arena: (map.len() * CHUNK) as u64,
            });
        };
        let run = &map[start..start + count];
        let kept = run.iter().filter(|chunk| chunk.load(Ordering::Relaxed) == KEPT).count();
        run.iter().for_each(|chunk| chunk.store(TAKEN, Ordering::Relaxed));
        words.kept.store(kept_in_all - kept as u64, Ordering::Relaxed);
        Ok((start, kept))
    }

    /// Gives a block back. Its memory is kept for the next, as far as [`KEPT_PART`] allows. Nobody must touch it any
    /// more.
    pub fn give_block_back(&self, rank: usize, offset: u64, bytes: usize) {
        let count = bytes.div_ceil(CHUNK);
        let start = (offset as usize - self.layout.arena) / CHUNK;
        // After a failure of the job the lock may be held by a dead rank: then nobody needs the chunks.
        let Ok(lock) = self.lock_maps(rank) else { return };
        let kept = self.header().shared.kept.load(Ordering::Relaxed) + count as u64;
        if kept <= (self.layout.chunks / KEPT_PART) as u64 {
            self.header().shared.kept.store(kept, Ordering::Relaxed);
            self.mark(start, count, KEPT);
            return;
        }
        drop(lock);
        self.give_chunks_back(rank, start, count);
    }

    /// Gives chunks that were taken back to the system.
    fn give_chunks_back(&self, rank: usize, start: usize, count: usize) {
        let offset = (self.layout.arena + start * CHUNK) as u64;
        // A hole that cannot be punched keeps its memory, and its old bytes; the chunks then stay taken, so
        // that new memory is zeros.
        if memory_file::give_back(self.file(), offset, (count * CHUNK) as u64).is_err() {
            return;
        }
        if let Ok(_lock) = self.lock_maps(rank) {
            self.mark(start, count, FREE);
        }
    }

    /// Gives all memory that was kept back to the system.
    fn drop_kept(&self, rank: usize) -> Result<()> {
        let chunks: Vec<usize> = {
            let _lock = self.lock_maps(rank)?;
            let map = self.chunk_map();
            let kept: Vec<usize> = (0..map.len()).filter(|&chunk| map[chunk].load(Ordering::Relaxed) == KEPT).collect();
            self.header().shared.kept.store(0, Ordering::Relaxed);
            for &chunk in &kept {
                self.mark(chunk, 1, TAKEN);
            }
            kept
        };
        // In runs: a huge page of which a part is given back would have to be split.
        for run in chunks.chunk_by(|chunk, next| chunk + 1 == *next) {
            self.give_chunks_back(rank, run[0], run.len());
        }
        Ok(())
    }

    fn mark(&self, start: usize, count: usize, state: u8) {
        self.chunk_map()[start..start + count].iter().for_each(|chunk| chunk.store(state, Ordering::Relaxed));
    }

    /// Checks that a block which somebody else took lies where blocks lie.
    ///
    /// # Errors
    /// `Segment`.
    pub fn check_block(&self, offset: u64, bytes: usize) -> Result<()> {
        let start = (offset as usize).wrapping_sub(self.layout.arena);
        let chunks = bytes.div_ceil(CHUNK);
        if start.is_multiple_of(CHUNK) && chunks <= self.layout.chunks && start / CHUNK <= self.layout.chunks - chunks {
            return Ok(());
        }
        Err(Error::Segment {
            why: format!("its header has a block of {bytes} bytes at {offset}, which is not within its arena"),
            advice: "the segment is damaged: start the job again",
        })
    }

    /// Bytes of the arena that are taken.
    pub fn arena_taken(&self) -> u64 {
        let taken = self.chunk_map().iter().filter(|chunk| chunk.load(Ordering::Relaxed) == TAKEN).count();
        (taken * CHUNK) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_fit_finds_the_first_gap_that_is_long_enough() {
        let map = [true, false, true, false, false, false, true];
        assert_eq!(first_fit(map.into_iter(), 1), Some(1));
        assert_eq!(first_fit(map.into_iter(), 2), Some(3));
        assert_eq!(first_fit(map.into_iter(), 3), Some(3));
        assert_eq!(first_fit(map.into_iter(), 4), None);
        assert_eq!(first_fit([].into_iter(), 1), None);
    }

    #[test]
    fn blocks_begin_where_their_cells_are_extents() {
        let map = [false, true, false, false, false, false, false, true];
        let found = |count, place| first_fit_at(map.into_iter(), count, place);
        assert_eq!([found(1, (4, 0)), found(1, (4, 3)), found(2, (4, 0)), found(2, (4, 2))], [0, 3, 4, 2].map(Some));
        assert_eq!([found(3, (4, 3)), found(4, (4, 2)), found(4, (4, 0))], [Some(3), Some(2), None]);
        let half = EXTENT / 2;
        for (size, up, down, fills) in [
            (2, EXTENT, EXTENT, true),
            (5, half, half, true),
            (8, 256 << 10, 128 << 10, false),
            (3, EXTENT, half, false),
        ] {
            let layout = BlockLayout::new(size, 16, up, down);
            assert_eq!(layout.fills_extents(), fills);
            let (unit, remainder) = place_of(&layout);
            assert_eq!(unit > 1, fills);
            assert!(!fills || (remainder * CHUNK + layout.cells).is_multiple_of(EXTENT) && unit * CHUNK == EXTENT);
        }
        // A rank alone fills no cells for others.
        assert!(!BlockLayout::new(1, 16, EXTENT, EXTENT).fills_extents());
    }

    /// Blocks that come back have their words zeroed; of what is given back no more is kept than a part of the arena.
    #[test]
    fn memory_is_kept_and_its_words_are_zeroed() {
        crate::Communicator::threads(1, |comm| {
            let mapping = comm.seat().mapping();
            let layout = BlockLayout::new(3, 16, 100_000, 70_000);
            let other = BlockLayout::new(2, 16, 300_000, 0);
            let kept = || mapping.header().shared.kept.load(Ordering::Relaxed);
            let bytes = |offset: u64, from: usize, to: usize| {
                // SAFETY: a block that this test has taken.
                let at = unsafe { mapping.base().add(offset as usize + from) };
                // SAFETY: the same.
                unsafe { std::slice::from_raw_parts_mut(at, to - from) }
            };
            let taken = mapping.arena_taken();
            let mut last = None;
            for round in 0..20 {
                let layout = if round % 3 == 2 { &other } else { &layout };
                let offset = mapping.take_block(0, layout).unwrap();
                for (from, to) in layout.words() {
                    assert!(bytes(offset, from, to).iter().all(|&byte| byte == 0), "round {round}, {from} to {to}");
                }
                if round % 3 == 1 {
                    assert_eq!(last, Some(offset), "round {round}");
                }
                bytes(offset, 0, layout.total()).fill(0xee);
                mapping.give_block_back(0, offset, layout.total());
                last = Some(offset);
            }
            assert_eq!(mapping.arena_taken(), taken);
            let most = (mapping.layout.chunks / KEPT_PART) as u64;
            assert!(kept() > 0 && kept() <= most);
            // More blocks than are kept, and then none of them.
            let many: Vec<u64> = (0..)
                .map_while(|_| mapping.take_block(0, &layout).ok())
                .take(2 * mapping.layout.chunks / KEPT_PART)
                .collect();
            assert_eq!(kept(), 0);
            many.iter().for_each(|&offset| mapping.give_block_back(0, offset, layout.total()));
            assert!(kept() > most - layout.total().div_ceil(CHUNK) as u64 && kept() <= most);
            mapping.drop_kept(0).unwrap();
            assert_eq!((kept(), mapping.arena_taken()), (0, taken));
            // What was dropped is zeros altogether.
            let offset = mapping.take_block(0, &layout).unwrap();
            assert!(bytes(offset, 0, layout.total()).iter().all(|&byte| byte == 0));
            mapping.give_block_back(0, offset, layout.total());
        })
        .unwrap();
    }
}
