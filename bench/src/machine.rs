//! What the benchmark has to know of the machine: usable cores, cache sizes, load.

use std::fs;
use std::path::Path;
use std::time::Duration;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The logical processors that this process may run on, in ascending order.
pub fn usable_cores() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(Pid::from_raw(0)) else {
        return vec![0];
    };
    (0..CpuSet::count()).filter(|&core| set.is_set(core).unwrap_or(false)).collect()
}

/// Binds this process to `core`.
pub fn bind_to(core: usize) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(core).map_err(Error::system(format!("core {core}")))?;
    sched_setaffinity(Pid::from_raw(0), &set).map_err(Error::system(format!("binding to core {core}")))
}

/// One cache as core 0 sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cache {
    /// 1, 2, 3.
    pub level: u32,
    /// `Data`, `Instruction` or `Unified`.
    pub kind: String,
    /// Size in bytes.
    pub bytes: u64,
    /// The processors that share it, as the kernel lists them.
    pub shared_by: String,
}

/// The caches of core 0; empty where the system does not tell.
pub fn caches() -> Vec<Cache> {
    let caches = shm_core::caches::all(Path::new("/sys/devices/system/cpu/cpu0")).into_iter();
    caches
        .map(|cache| Cache { level: cache.level, kind: cache.kind, bytes: cache.bytes, shared_by: cache.sharers })
        .collect()
}

/// Bytes of the largest cache; 32 MiB where the system does not tell.
pub fn last_level_cache() -> u64 {
    caches().iter().map(|cache| cache.bytes).max().filter(|&bytes| bytes > 0).unwrap_or(32 << 20)
}

/// Bytes of the level-2 cache of one core; 512 KiB where the system does not tell.
pub fn second_level_cache() -> u64 {
    caches().iter().find(|cache| cache.level == 2 && cache.bytes > 0).map_or(512 << 10, |cache| cache.bytes)
}

/// How many of the cores that this process may use are busy just now, by what they do for a fifth of a second, where
/// the system tells. The load average would tell of what ended a minute ago, too.
pub fn busy_cores() -> Option<f64> {
    /// Clock ticks that these cores were busy, and in all.
    fn ticks(cores: &[usize]) -> Option<[u64; 2]> {
        let text = fs::read_to_string("/proc/stat").ok()?;
        let of = |core: &usize| {
            let name = format!("cpu{core}");
            let line = text.lines().find(|line| line.split_whitespace().next() == Some(&name))?;
            let times: Vec<u64> =
                line.split_whitespace().skip(1).map(|word| word.parse().ok()).collect::<Option<_>>()?;
            // user, nice, system, idle, waiting for a device, interrupts (two kinds), stolen; what follows is in these.
            let all = times.iter().take(8).sum::<u64>();
            Some([all - times.get(3)? - times.get(4)?, all])
        };
        let all = cores.iter().map(of).collect::<Option<Vec<_>>>()?;
        Some([0, 1].map(|which| all.iter().map(|core| core[which]).sum()))
    }
    let cores = usable_cores();
    let before = ticks(&cores)?;
    std::thread::sleep(Duration::from_millis(200));
    let [busy, all] = ticks(&cores)?;
    Some(cores.len() as f64 * (busy - before[0]) as f64 / (all - before[1]).max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_may_run_somewhere() {
        assert!(!usable_cores().is_empty());
    }
}
