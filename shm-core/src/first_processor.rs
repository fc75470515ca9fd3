//! What the caches of this machine's first processor hold.
//!
//! The second level decides through how many cells long messages go best. On an Intel Xeon (2 MiB, and a last-level
//! cache that is far away) a ring of 512 KiB, which stays in it beside what streams by, is the quickest; on AMD EPYCs
//! (512 KiB and 1 MiB, the last level near) one that has left it is, since a line that no other core holds is stored to
//! in less time. So the table has rules for machines with large ones.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use crate::select::number_of_bytes;

/// Bytes of its cache of a level, which others may share; 0 where that is unknown.
#[must_use]
pub fn cache(level: u32) -> u64 {
    cache_of(Path::new("/sys/devices/system/cpu/cpu0/cache"), level).unwrap_or(0)
}

/// KiB of that of the second level.
pub(crate) fn l2() -> u32 {
    static KIB: OnceLock<u32> = OnceLock::new();
    *KIB.get_or_init(|| u32::try_from(cache(2) / 1024).unwrap_or(0))
}

fn cache_of(caches: &Path, level: u32) -> Option<u64> {
    let caches = fs::read_dir(caches).ok()?;
    caches.flatten().find_map(|cache| {
        let read = |name| fs::read_to_string(cache.path().join(name)).ok();
        if read("level")?.trim() != level.to_string() {
            return None;
        }
        number_of_bytes(read("size")?.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_found_among_others() {
        let folder = std::env::temp_dir().join(format!("phalanx-first-processor-{}", std::process::id()));
        for (cache, level, size) in [("index0", "1", "48K"), ("index2", "2", "2048K"), ("index3", "3", "491520K")] {
            let cache = folder.join(cache);
            fs::create_dir_all(&cache).unwrap();
            fs::write(cache.join("level"), format!("{level}\n")).unwrap();
            fs::write(cache.join("size"), format!("{size}\n")).unwrap();
        }
        fs::write(folder.join("uevent"), "").unwrap();
        let found = [2, 3, 4].map(|level| cache_of(&folder, level));
        fs::remove_dir_all(folder.join("index2")).unwrap();
        let missing = cache_of(&folder, 2);
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!((found, missing), ([Some(2 << 20), Some(480 << 20), None], None));
        assert_eq!(cache_of(&folder, 2), None);
    }
}
