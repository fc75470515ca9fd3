//! The caches of a processor, as the system tells of them.
//!
//! Each has a folder, whose number says nothing: the third level is `index3` where the first has two caches, and
//! another one where a virtual machine shows only one of them. Its level stands in a file.

use std::fs;
use std::path::{Path, PathBuf};

use crate::select::number_of_bytes;

/// One cache.
#[derive(Debug, PartialEq, Eq)]
pub struct Cache {
    /// 1, 2, 3.
    pub level: u32,
    /// `Data`, `Instruction` or `Unified`.
    pub kind: String,
    /// What it holds.
    pub bytes: u64,
    /// The processors that share it, as the system lists them; empty where it does not tell.
    pub sharers: String,
}

/// The caches of a processor, whose folder this is: of those that the system tells the size of.
#[must_use]
pub fn all(processor: &Path) -> Vec<Cache> {
    folders(processor).iter().filter_map(|folder| read(folder)).collect()
}

/// That of a level which holds data.
#[must_use]
pub fn of(processor: &Path, level: u32) -> Option<Cache> {
    let folders = folders(processor).into_iter().filter(|folder| level_of(folder) == Some(level));
    folders.filter_map(|folder| read(&folder)).find(|cache| cache.kind != "Instruction")
}

fn folders(processor: &Path) -> Vec<PathBuf> {
    let Ok(found) = fs::read_dir(processor.join("cache")) else { return Vec::new() };
    let mut folders: Vec<_> = found.flatten().map(|entry| entry.path()).collect();
    folders.sort();
    folders
}

fn read(folder: &Path) -> Option<Cache> {
    Some(Cache {
        level: level_of(folder)?,
        kind: text(folder, "type").unwrap_or_default(),
        bytes: number_of_bytes(&text(folder, "size")?)?,
        sharers: text(folder, "shared_cpu_list").unwrap_or_default(),
    })
}

fn level_of(folder: &Path) -> Option<u32> {
    text(folder, "level")?.parse().ok()
}

fn text(folder: &Path, name: &str) -> Option<String> {
    Some(fs::read_to_string(folder.join(name)).ok()?.trim().to_owned())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Makes the folder of a cache.
    pub fn make(folder: &Path, level: u32, kind: &str, size: &str, sharers: &str) {
        fs::create_dir_all(folder).unwrap();
        let level = level.to_string();
        for (name, text) in [("level", level.as_str()), ("type", kind), ("size", size), ("shared_cpu_list", sharers)] {
            fs::write(folder.join(name), format!("{text}\n")).unwrap();
        }
    }

    #[test]
    fn a_level_is_found_whatever_its_folder_is_called() {
        let folder = std::env::temp_dir().join(format!("phalanx-caches-{}", std::process::id()));
        let [usual, hidden] = ["cpu0", "cpu1"].map(|name| folder.join(name));
        make(&usual.join("cache/index0"), 1, "Instruction", "64K", "0");
        make(&usual.join("cache/index1"), 1, "Data", "48K", "0");
        make(&usual.join("cache/index2"), 2, "Unified", "2048K", "0");
        make(&usual.join("cache/index3"), 3, "Unified", "480M", "0-1");
        fs::write(usual.join("cache/uevent"), "").unwrap();
        // No cache of instructions.
        make(&hidden.join("cache/index0"), 1, "Data", "32K", "1");
        make(&hidden.join("cache/index1"), 2, "Unified", "512K", "1");
        make(&hidden.join("cache/index2"), 3, "Unified", "32768K", "1-2");
        // The system need not tell all of it.
        fs::remove_file(hidden.join("cache/index0/size")).unwrap();
        fs::remove_file(hidden.join("cache/index1/shared_cpu_list")).unwrap();
        let bytes = |processor: &Path| [1, 2, 3, 4].map(|level| of(processor, level).map(|cache| cache.bytes));
        let found = [&usual, &hidden].map(|processor| bytes(processor));
        let sharers = [2, 3].map(|level| of(&hidden, level).map(|cache| cache.sharers));
        let levels = all(&usual).into_iter().map(|cache| (cache.level, cache.kind)).collect::<Vec<_>>();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found[0], [Some(48 << 10), Some(2 << 20), Some(480 << 20), None]);
        assert_eq!(found[1], [None, Some(512 << 10), Some(32 << 20), None]);
        assert_eq!(sharers, [Some(String::new()), Some("1-2".to_owned())]);
        let kinds = [(1, "Instruction"), (1, "Data"), (2, "Unified"), (3, "Unified")];
        assert_eq!(levels, kinds.map(|(level, kind)| (level, kind.to_owned())));
        assert!(of(&usual, 2).is_none() && all(&usual).is_empty());
    }
}
