//! Edge A1: the lock that guards the maps of what is taken, of the arena and of the heap.

use std::sync::atomic::Ordering;

use super::mapping::Mapping;
use crate::error::{Error, Result};

impl Mapping {
    /// A1: the maps are touched by one rank at a time. Held for microseconds; yields meanwhile.
    ///
    /// # Errors
    /// `RankFailed`: the rank that holds it may be the one that failed.
    pub(super) fn lock_maps(&self, rank: usize) -> Result<MapLock<'_>> {
        let words = &self.header().shared;
        let mine = rank as u32 + 1;
        while words.map_lock.compare_exchange_weak(0, mine, Ordering::Acquire, Ordering::Relaxed).is_err() {
            match words.fault.load(Ordering::Acquire) {
                0 => std::thread::yield_now(),
                failed => return Err(Error::RankFailed { rank: failed as usize - 1 }),
            }
        }
        Ok(MapLock { mapping: self })
    }
}

/// The lock, held.
pub(super) struct MapLock<'a> {
    mapping: &'a Mapping,
}

impl Drop for MapLock<'_> {
    fn drop(&mut self) {
        self.mapping.header().shared.map_lock.store(0, Ordering::Release);
    }
}
