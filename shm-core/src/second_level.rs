//! What the second-level cache of a processor holds.
//!
//! It decides through how many cells long messages go best. On an Intel Xeon (2 MiB, and a last-level cache that is far
//! away) a ring of 512 KiB, which stays in it beside what streams by, is the quickest; on AMD EPYCs (512 KiB and 1 MiB,
//! the last level near) one that has left it is, since a line that no other core holds is stored to in less time. So the
//! table has rules for machines with large ones.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use crate::last_level::size;

/// KiB of that of this machine's first processor, which others may share; 0 where that is unknown.
pub(crate) fn kib() -> u32 {
    static KIB: OnceLock<u32> = OnceLock::new();
    *KIB.get_or_init(|| kib_of(Path::new("/sys/devices/system/cpu/cpu0/cache")).unwrap_or(0))
}

fn kib_of(caches: &Path) -> Option<u32> {
    let caches = fs::read_dir(caches).ok()?;
    caches.flatten().find_map(|cache| {
        let read = |name| fs::read_to_string(cache.path().join(name)).ok();
        if read("level")?.trim() != "2" {
            return None;
        }
        u32::try_from(size(read("size")?.trim())? / 1024).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_level_is_found_among_others() {
        let folder = std::env::temp_dir().join(format!("phalanx-second-level-{}", std::process::id()));
        for (cache, level, size) in [("index0", "1", "48K"), ("index2", "2", "2048K"), ("index3", "3", "491520K")] {
            let cache = folder.join(cache);
            fs::create_dir_all(&cache).unwrap();
            fs::write(cache.join("level"), format!("{level}\n")).unwrap();
            fs::write(cache.join("size"), format!("{size}\n")).unwrap();
        }
        fs::write(folder.join("uevent"), "").unwrap();
        let found = kib_of(&folder);
        fs::remove_dir_all(folder.join("index2")).unwrap();
        let missing = kib_of(&folder);
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!((found, missing, kib_of(&folder)), (Some(2048), None, None));
    }
}
