//! How much memory the system has, and has left: the machine's, or what the container (cgroup, version 2) allows.

use std::fs;
use std::path::{Path, PathBuf};

use nix::sys::resource::{Resource, getrlimit};

/// The heap of a job whose machine does not say what it has.
const UNKNOWN: u64 = 16 << 30;

/// Bytes that can be had without anything being thrown out; none when the system does not say.
pub(crate) fn now() -> Option<u64> {
    let machine = meminfo("MemAvailable:")?;
    let container = groups().into_iter().filter_map(|group| {
        let most = number(&group.join("memory.max"))?;
        let used = number(&group.join("memory.current"))?;
        // Files that were read stay until the memory is needed.
        let text = fs::read_to_string(group.join("memory.stat")).ok()?;
        let files: u64 = ["active_file ", "inactive_file "].iter().filter_map(|name| field(&text, name)).sum();
        Some(most.saturating_sub(used.saturating_sub(files)))
    });
    Some(container.fold(machine, u64::min))
}

/// Bytes for a heap when nobody says how many: the machine's memory, or what the container or the limits on this
/// process's address space and files allow. Only address space is used by it.
pub(crate) fn default_heap() -> u64 {
    let machine = meminfo("MemTotal:").unwrap_or(UNKNOWN);
    let container = groups().into_iter().filter_map(|group| number(&group.join("memory.max"))).fold(u64::MAX, u64::min);
    let limit = |resource| getrlimit(resource).map_or(u64::MAX, |(current, _)| current);
    // A quarter of it, since a limit on address space is there for the program.
    machine.min(container).min(limit(Resource::RLIMIT_AS) / 4).min(limit(Resource::RLIMIT_FSIZE) / 4).min(1 << 45)
}

/// A line of /proc/meminfo, in bytes.
fn meminfo(name: &str) -> Option<u64> {
    field(&fs::read_to_string("/proc/meminfo").ok()?, name)?.checked_mul(1024)
}

/// The number behind a name at the beginning of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The cgroup of this process and those around it, as far as they can be seen.
fn groups() -> Vec<PathBuf> {
    let root = Path::new("/sys/fs/cgroup");
    let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = text.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let own = root.join(own);
    own.ancestors().take_while(|path| path.starts_with(root)).map(Path::to_path_buf).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "inactive_file 7\nactive_file 12\nMemFree:  3 kB\n";
        assert_eq!(field(text, "active_file "), Some(12));
        assert_eq!(field(text, "MemFree:"), Some(3));
        assert_eq!(field(text, "MemTotal:"), None);
    }

    #[test]
    fn there_is_memory_here() {
        assert!(now().is_some_and(|bytes| bytes > 1 << 20));
        assert!(default_heap() > 1 << 20);
    }
}
