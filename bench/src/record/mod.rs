//! The record of a run: a folder with the figures, the plots, and the host they were taken on.

pub mod csv;
pub mod host;
mod sources;

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::error::{Error, Result};

/// An open record, a folder of its own.
#[derive(Debug)]
pub struct Record {
    folder: PathBuf,
    /// Locked as long as a run has the folder: one that is empty, and that nobody has, is of a run that was ended.
    _held: Option<File>,
}

impl Record {
    /// Makes `<root>/<date>-<host>-<name>`, with a number behind it where that is taken.
    pub fn open(root: &Path, date: &str, host: &str, name: &str) -> Result<Record> {
        fs::create_dir_all(root).map_err(Error::file("cannot make the record folder", root))?;
        let plain = root.join(format!("{date}-{}-{}", clean(host), clean(name)));
        let mut folder = plain.clone();
        for number in 2.. {
            if let Some(held) = hold(&folder).map_err(Error::file("cannot make the record folder", &folder))? {
                return Ok(Record { folder, _held: Some(held) });
            }
            folder = PathBuf::from(format!("{}-{number}", plain.display()));
        }
        unreachable!("there is a number for every folder")
    }

    /// The record in `folder`, which is there already.
    pub fn at(folder: &Path) -> Record {
        Record { folder: folder.into(), _held: None }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes one file of the record, whole or not at all.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.folder.join(name);
        let part = self.folder.join(format!("{name}.part"));
        let written = fs::write(&part, text).and_then(|()| fs::rename(&part, &path));
        written.map(|()| path.clone()).map_err(|error| {
            let _ = fs::remove_file(&part);
            Error::file("cannot write the record", path)(error)
        })
    }

    /// Writes `value` as JSON.
    pub fn write_json(&self, name: &str, value: &impl Serialize) -> Result<PathBuf> {
        let text = serde_json::to_string_pretty(value)
            .map_err(|error| Error::System { what: format!("{name} as JSON"), source: error.into() })?;
        self.write(name, &(text + "\n"))
    }
}

/// Makes `folder` and locks it; takes one that is there already if it is empty and no run has it.
fn hold(folder: &Path) -> io::Result<Option<File>> {
    let is_new = match fs::create_dir(folder) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
        Err(error) => return Err(error),
    };
    if !folder.is_dir() {
        return Ok(None);
    }
    let held = File::open(folder)?;
    match held.try_lock() {
        Ok(()) => Ok(fs::read_dir(folder)?.next().is_none().then_some(held)),
        Err(TryLockError::WouldBlock) => Ok(None),
        // A file system without locks: what this run made is its own.
        Err(TryLockError::Error(_)) => Ok(is_new.then_some(held)),
    }
}

/// `text` with nothing that a file name should not have.
fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() || "._".contains(c) { c } else { '-' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn two_records_of_one_day_have_two_folders() {
        let scratch = Scratch::new().unwrap();
        let root = scratch.path().join("records");
        let first = Record::open(&root, "2026-11-21", "a b", "collectives").unwrap();
        let second = Record::open(&root, "2026-11-21", "a b", "collectives").unwrap();
        assert!(first.folder().ends_with("2026-11-21-a-b-collectives"));
        assert!(second.folder().ends_with("2026-11-21-a-b-collectives-2"));
    }

    /// A run that was ended before it had a figure leaves a folder with nothing in it.
    #[test]
    fn the_empty_folder_of_a_run_that_was_ended_is_taken() {
        let scratch = Scratch::new().unwrap();
        let open = || Record::open(scratch.path(), "d", "h", "n").unwrap();
        let ended = open().folder().to_path_buf();
        let taken = open();
        assert_eq!(taken.folder(), ended);
        taken.write("x.txt", "a figure").unwrap();
        drop(taken);
        assert!(open().folder().ends_with("d-h-n-2"));
        fs::write(scratch.path().join("d-h-file"), "no folder").unwrap();
        assert!(Record::open(scratch.path(), "d", "h", "file").unwrap().folder().ends_with("d-h-file-2"));
    }

    #[test]
    fn files_are_whole_and_replace_each_other() {
        let scratch = Scratch::new().unwrap();
        let record = Record::open(scratch.path(), "d", "h", "n").unwrap();
        record.write("x.txt", "one").unwrap();
        let path = record.write("x.txt", "two").unwrap();
        assert_eq!(fs::read_to_string(path).unwrap(), "two");
        record.write_json("x.json", &vec![1, 2]).unwrap();
        assert_eq!(fs::read_dir(record.folder()).unwrap().count(), 2);
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let error = Record::open(Path::new("/proc/none"), "d", "h", "n").unwrap_err().to_string();
        assert!(error.contains("/proc/none"), "{error}");
    }

    /// /dev/full refuses every byte, as a full disk does.
    #[test]
    fn a_full_disk_is_an_error_that_names_the_file() {
        let scratch = Scratch::new().unwrap();
        let record = Record::open(scratch.path(), "d", "h", "n").unwrap();
        std::os::unix::fs::symlink("/dev/full", record.folder().join("x.csv.part")).unwrap();
        let error = record.write("x.csv", "figures").unwrap_err().to_string();
        assert!(error.contains("x.csv") && error.contains("No space left"), "{error}");
    }
}
