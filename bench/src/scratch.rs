//! A folder for what a run writes on its way, removed at the end.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::error::{Error, Result};

const PREFIX: &str = "phalanx-bench-";

/// A folder below the system's temporary folder, named after this process.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    count: Cell<u32>,
}

impl Scratch {
    /// Makes the folder, and removes those of benchmarks that were killed before they could.
    pub fn new() -> Result<Scratch> {
        let parent = std::env::temp_dir();
        sweep(&parent);
        static MADE: AtomicU32 = AtomicU32::new(0);
        let path = parent.join(format!("{PREFIX}{}-{}", std::process::id(), MADE.fetch_add(1, Relaxed)));
        fs::create_dir_all(&path).map_err(Error::file("cannot make the folder", &path))?;
        Ok(Scratch { path, count: Cell::new(0) })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A new empty folder inside.
    pub fn fresh(&self, name: &str) -> Result<PathBuf> {
        self.count.set(self.count.get() + 1);
        let path = self.path.join(format!("{name}-{}", self.count.get()));
        fs::create_dir(&path).map_err(Error::file("cannot make the folder", &path))?;
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes scratch folders whose process is gone. What cannot be removed stays.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next()?.parse::<u32>().ok());
        if owner.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_goes_with_its_owner_and_strays_are_swept() {
        let stray = std::env::temp_dir().join(format!("{PREFIX}{}-0", u32::MAX));
        fs::create_dir_all(&stray).unwrap();
        let scratch = Scratch::new().unwrap();
        assert!(!stray.exists());
        let (one, two) = (scratch.fresh("x").unwrap(), scratch.fresh("x").unwrap());
        assert!(one.is_dir() && two.is_dir() && one != two);
        let path = scratch.path().to_path_buf();
        drop(scratch);
        assert!(!path.exists());
    }
}
