//! What the last-level caches hold, and how results are stored that they cannot keep.
//!
//! A store to a line that lies in memory alone fetches it first. Of a result that leaves the caches before anybody
//! looks at it that is for nothing, and it drives from them what the call still needs: such results are stored past the
//! caches. What the caches hold is better stored to them.
//!
//! A virtual machine sees the whole of a cache that it shares with others: 480 MiB for two cores, of which it had some
//! 128. There 16 ranks stored results of 8 MiB past the caches in 3.7 to 4.0 ms (broadcasts) and 13.2 (allreduces), and
//! to them in 6.0 to 6.7 and 17 (Intel Xeon). No machine has as much for each of its processors: so what is more than
//! that does not count.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use crate::caches;
use crate::pace::Way;

/// Buffers of fewer bytes are stored to the caches anywhere: their size is not looked for.
const LEAST: usize = 8 << 20;

/// The most that counts of a cache for each processor that shares it. The largest there are have 48 MiB for each core.
const MOST_EACH: usize = 64 << 20;

/// How results are stored of a call whose ranks together have buffers of so many bytes: for what they contribute, and
/// as much for results; or for a message and its copies.
#[inline]
pub(crate) fn way_of_results(buffers: usize) -> Way {
    if cfg!(target_arch = "x86_64") && buffers >= LEAST { way_beside(buffers, held()) } else { Way::Cached }
}

/// All that the caches hold is too much: cells lie beside the buffers.
fn way_beside(buffers: usize, held: usize) -> Way {
    if held > 0 && buffers >= held { Way::Streamed } else { Way::Cached }
}

/// Bytes that all third-level caches of this machine hold, as far as they are its own; 0 where that is unknown.
fn held() -> usize {
    static HELD: OnceLock<usize> = OnceLock::new();
    *HELD.get_or_init(|| held_by(Path::new("/sys/devices/system/cpu")))
}

fn held_by(processors: &Path) -> usize {
    let Ok(processors) = fs::read_dir(processors) else { return 0 };
    let mut found: HashMap<String, (usize, usize)> = HashMap::new();
    for processor in processors.flatten() {
        let Some(cache) = caches::of(&processor.path(), 3) else { continue };
        let Ok(bytes) = usize::try_from(cache.bytes) else { continue };
        // Once for all processors that share it.
        if !cache.sharers.is_empty() {
            let (_, number) = found.entry(cache.sharers).or_insert((bytes, 0));
            *number += 1;
        }
    }
    found.into_values().map(|(size, sharers)| size.min(MOST_EACH * sharers)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caches::tests::make;

    #[test]
    fn caches_count_once() {
        let folder = std::env::temp_dir().join(format!("phalanx-last-level-{}", std::process::id()));
        let caches = [
            ("cpu0", "index3", "0-1", "32768K"),
            ("cpu1", "index3", "0-1", "32768K"),
            ("cpu2", "index2", "2", "491520K"),
        ];
        for (processor, index, sharers, size) in caches {
            make(&folder.join(processor).join("cache").join(index), 3, "Unified", size, sharers);
        }
        // Of another level.
        make(&folder.join("cpu0/cache/index2"), 2, "Unified", "1024K", "0");
        fs::create_dir_all(folder.join("cpuidle")).unwrap();
        let held = held_by(&folder);
        fs::remove_dir_all(&folder).unwrap();
        // That of the third one is no single processor's.
        assert_eq!(held, (32 + 64) << 20);
        assert_eq!(held_by(&folder), 0);
    }

    #[test]
    fn what_the_caches_keep_is_stored_to_them() {
        let held = 32 << 20;
        assert_eq!(way_beside(held - 1, held), Way::Cached);
        assert_eq!(way_beside(held, held), Way::Streamed);
        assert_eq!(way_beside(usize::MAX, 0), Way::Cached);
        assert_eq!(way_of_results(LEAST - 1), Way::Cached);
    }
}
