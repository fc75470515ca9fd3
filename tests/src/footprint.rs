//! What this process holds of the machine.

/// Memory and descriptors of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// Resident memory, in KiB: all of it.
    pub resident: u64,
    /// Resident shared memory, in KiB.
    pub shared: u64,
    /// Open descriptors.
    pub descriptors: usize,
    /// Mapped ranges.
    pub maps: usize,
}

impl Footprint {
    /// That of this process.
    ///
    /// # Panics
    /// When /proc does not tell.
    #[must_use]
    pub fn own() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").expect("the status of this process");
        let value = |key: &str| -> u64 {
            let line = status.lines().find_map(|line| line.strip_prefix(key)).expect("a line of the status");
            line.split_whitespace().next().and_then(|word| word.parse().ok()).expect("a number of KiB")
        };
        let maps = std::fs::read_to_string("/proc/self/maps").expect("the maps of this process");
        Self {
            resident: value("VmRSS:"),
            shared: value("RssShmem:"),
            descriptors: std::fs::read_dir("/proc/self/fd").expect("the descriptors of this process").count(),
            maps: maps.lines().count(),
        }
    }

    /// What has grown since `before` beyond what an allocator keeps for itself, if anything has.
    #[must_use]
    pub fn growth(&self, before: &Self) -> Option<String> {
        let grows = self.resident > before.resident + 6 * 1024
            || self.shared > before.shared + 2 * 1024
            || self.descriptors > before.descriptors
            || self.maps > before.maps + 8;
        grows.then(|| format!("{before:?} became {self:?}"))
    }
}
