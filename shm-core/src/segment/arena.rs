//! Blocks of the arena: taken for a communicator, given back with its last handle.

use std::sync::atomic::Ordering;

use super::layout::CHUNK;
use super::mapping::Mapping;
use super::memory_file;
use crate::error::{Error, Result};

/// Finds `count` free chunks in a row (first fit).
pub(super) fn first_fit(taken: impl Iterator<Item = bool>, count: usize) -> Option<usize> {
    let mut start = 0;
    for (chunk, taken) in taken.enumerate() {
        if taken {
            start = chunk + 1;
        } else if chunk + 1 - start == count {
            return Some(start);
        }
    }
    None
}

impl Mapping {
    /// Takes a block of at least `bytes` bytes, all zero, for `rank` of the job, and returns its offset.
    ///
    /// # Errors
    /// `ArenaExhausted` when no gap is long enough, `Memory` when the system cannot back it, `RankFailed`.
    pub fn take_block(&self, rank: usize, bytes: usize) -> Result<u64> {
        let count = bytes.div_ceil(CHUNK);
        let start = {
            let _lock = self.lock_maps(rank)?;
            let map = self.chunk_map();
            let start = first_fit(map.iter().map(|chunk| chunk.load(Ordering::Relaxed) != 0), count);
            let Some(start) = start else {
                let free = map.iter().filter(|chunk| chunk.load(Ordering::Relaxed) == 0).count();
                return Err(Error::ArenaExhausted {
                    needed: (count * CHUNK) as u64,
                    free: (free * CHUNK) as u64,
                    arena: (map.len() * CHUNK) as u64,
                });
            };
            for chunk in &map[start..start + count] {
                chunk.store(1, Ordering::Relaxed);
            }
            start
        };
        let offset = (self.layout.arena + start * CHUNK) as u64;
        let reserved = memory_file::reserve(self.file(), "a communicator's block", offset, (count * CHUNK) as u64);
        if let Err(error) = reserved {
            self.give_block_back(rank, offset, bytes);
            return Err(error);
        }
        Ok(offset)
    }

    /// Gives a block back, memory and all. Nobody must touch it any more.
    pub fn give_block_back(&self, rank: usize, offset: u64, bytes: usize) {
        let count = bytes.div_ceil(CHUNK);
        let start = (offset as usize - self.layout.arena) / CHUNK;
        // A hole that cannot be punched keeps its memory, and its old bytes; the chunks then stay taken, so
        // that a block is always handed out as zeros.
        if memory_file::give_back(self.file(), offset, (count * CHUNK) as u64).is_err() {
            return;
        }
        // After a failure of the job the lock may be held by a dead rank: then nobody needs the chunks.
        if let Ok(_lock) = self.lock_maps(rank) {
            for chunk in &self.chunk_map()[start..start + count] {
                chunk.store(0, Ordering::Relaxed);
            }
        }
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
        let taken = self.chunk_map().iter().filter(|chunk| chunk.load(Ordering::Relaxed) != 0).count();
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
}
