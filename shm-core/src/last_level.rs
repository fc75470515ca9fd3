//! What the last-level caches hold, and how results are stored that they cannot keep.
//!
//! A store to a line that lies in memory alone fetches it first. Of a result that leaves the caches before anybody
//! looks at it that is for nothing, and it drives from them what the call still needs: such results are stored past the
//! caches. What the caches hold is better stored to them.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use crate::pace::Way;

/// Buffers of fewer bytes are stored to the caches anywhere: their size is not looked for.
const LEAST: usize = 8 << 20;

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

/// Bytes that all third-level caches of this machine hold; 0 where that is unknown.
fn held() -> usize {
    static HELD: OnceLock<usize> = OnceLock::new();
    *HELD.get_or_init(|| held_by(Path::new("/sys/devices/system/cpu")))
}

fn held_by(processors: &Path) -> usize {
    let Ok(processors) = fs::read_dir(processors) else { return 0 };
    let mut seen = HashSet::new();
    let caches = processors.flatten().map(|processor| processor.path().join("cache/index3"));
    let sizes = caches.filter_map(|cache| {
        let read = |name| fs::read_to_string(cache.join(name)).ok();
        let size = size(read("size")?.trim())?;
        // Once for all processors that share it.
        seen.insert(read("shared_cpu_list")?).then_some(size)
    });
    sizes.sum()
}

/// Bytes, of what the system writes as 32768K.
fn size(text: &str) -> Option<usize> {
    let number = text.strip_suffix('K')?.parse::<usize>().ok()?;
    number.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_count_once() {
        let folder = std::env::temp_dir().join(format!("phalanx-last-level-{}", std::process::id()));
        for (processor, sharers) in [("cpu0", "0-1\n"), ("cpu1", "0-1\n"), ("cpu2", "2\n")] {
            let cache = folder.join(processor).join("cache/index3");
            fs::create_dir_all(&cache).unwrap();
            fs::write(cache.join("size"), "32768K\n").unwrap();
            fs::write(cache.join("shared_cpu_list"), sharers).unwrap();
        }
        fs::create_dir_all(folder.join("cpuidle")).unwrap();
        let held = held_by(&folder);
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(held, 64 << 20);
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
