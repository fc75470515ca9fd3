//! What the caches of this machine's first processor hold.
//!
//! The second level decides through how many cells long messages go best. On an Intel Xeon (2 MiB, and a last-level
//! cache that is far away) a ring of 512 KiB, which stays in it beside what streams by, is the quickest; on AMD EPYCs
//! (512 KiB and 1 MiB, the last level near) one that has left it is, since a line that no other core holds is stored to
//! in less time. So the table has rules for machines with large ones.

use std::path::Path;
use std::sync::OnceLock;

use crate::caches;

/// Bytes of its cache of a level, which others may share; 0 where that is unknown.
#[must_use]
pub fn cache(level: u32) -> u64 {
    caches::of(Path::new("/sys/devices/system/cpu/cpu0"), level).map_or(0, |cache| cache.bytes)
}

/// KiB of that of the second level.
pub(crate) fn l2() -> u32 {
    static KIB: OnceLock<u32> = OnceLock::new();
    *KIB.get_or_init(|| u32::try_from(cache(2) / 1024).unwrap_or(0))
}
