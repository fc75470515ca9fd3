//! Finished measurements on disk, one a line, so that a study that is stopped loses none.
//!
//! ```text
//! {"study":"commtest","host":"vm","commit":"..","settings":{..}}
//! {"key":"mpi/1/0.3/basic/64","value":{..}}
//! ```
//!
//! Lines are only ever appended, each by one write. Half a line at the end (a full disk, a lost machine) is cut off
//! when the file is opened again. What cannot be written is kept in memory and tried again with the next line and at
//! the end.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, Result};

/// The file's name in a record folder.
pub const NAME: &str = "measurements.jsonl";

/// The first line: what the measurements are of. They are gone on with only where study, host and settings are the
/// same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// The study's name.
    pub study: String,
    /// The host's name.
    pub host: String,
    /// The commit that measures.
    pub commit: String,
    /// All that shapes what is measured.
    pub settings: Value,
}

#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    key: String,
    value: Value,
}

/// Measurements that are finished, and the file that holds them.
#[derive(Debug, Default)]
pub struct Store {
    known: HashMap<String, Value>,
    /// The keys in the order in which they came.
    order: Vec<String>,
    file: Option<File>,
    path: PathBuf,
    /// Bytes of whole lines in the file.
    length: u64,
    /// Lines that could not be written yet.
    pending: Vec<String>,
    error: Option<Error>,
}

impl Store {
    /// A store without a file.
    pub fn in_memory() -> Store {
        Store::default()
    }

    /// A new file in `folder`.
    ///
    /// # Errors
    ///
    /// [`Error::File`] when it is there already or cannot be made. A full disk is no error here: see [`Store::close`].
    pub fn create(folder: &Path, head: &Head) -> Result<Store> {
        let path = folder.join(NAME);
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        let file = file.map_err(Error::file("cannot make", &path))?;
        let mut store = Store { file: Some(file), path, ..Store::default() };
        store.append(line(head)?);
        Ok(store)
    }

    /// Opens the file in `folder` that an earlier run has left. Returns its head too.
    ///
    /// # Errors
    ///
    /// [`Error::Usage`] where `folder` has no such file, or one of another study, host or settings, with what differs;
    /// [`Error::Samples`] for a damaged line; [`Error::File`].
    pub fn open(folder: &Path, head: &Head) -> Result<(Store, Head)> {
        let path = folder.join(NAME);
        let text = fs::read_to_string(&path).map_err(|error| {
            let why =
                format!("--resume {}: {error}: name the record folder of a study that was stopped", path.display());
            Error::Usage(why)
        })?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let mut store = Store { path: path.clone(), length: whole as u64, ..Store::default() };
        let mut found = None;
        for (index, text) in text[..whole].lines().enumerate() {
            let fault = |error: serde_json::Error| Error::Samples {
                path: path.clone(),
                line: index + 1,
                detail: format!("no line of a study: {error}"),
            };
            if index == 0 {
                found = Some(serde_json::from_str::<Head>(text).map_err(fault)?);
            } else {
                let entry: Entry = serde_json::from_str(text).map_err(fault)?;
                store.remember(entry.key, entry.value);
            }
        }
        let open = OpenOptions::new().write(true).open(&path);
        let mut file = open.map_err(Error::file("cannot open", &path))?;
        file.set_len(whole as u64)
            .and_then(|()| file.seek(SeekFrom::End(0)))
            .map_err(Error::file("cannot write to the end of", &path))?;
        store.file = Some(file);
        match found {
            Some(found) => {
                agree(&found, head)?;
                Ok((store, found))
            }
            // Not even its first line came to the disk: there is nothing that could differ.
            None => {
                store.append(line(head)?);
                Ok((store, head.clone()))
            }
        }
    }

    /// A measurement that is finished; none also where it is of another form.
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        T::deserialize(self.known.get(key)?).ok()
    }

    /// Whether it is finished.
    pub fn has(&self, key: &str) -> bool {
        self.known.contains_key(key)
    }

    /// The keys, in the order in which they were finished.
    pub fn keys(&self) -> &[String] {
        &self.order
    }

    /// Notes a finished measurement. A disk that refuses it is told once on standard error; the figure is kept in
    /// memory.
    ///
    /// # Errors
    ///
    /// [`Error::System`] for what has no JSON.
    pub fn put(&mut self, key: &str, value: &impl Serialize) -> Result<()> {
        let value = serde_json::to_value(value).map_err(no_json)?;
        let entry = Entry { key: key.into(), value };
        let text = line(&entry)?;
        self.remember(entry.key, entry.value);
        self.append(text);
        Ok(())
    }

    /// Takes over the whole lines of a file that ranks write, as far as they are new. Returns how many that were.
    ///
    /// # Errors
    ///
    /// [`Error::Samples`] for a line that is none. A file that is not there has no lines.
    pub fn absorb(&mut self, path: &Path) -> Result<usize> {
        let text = fs::read_to_string(path).unwrap_or_default();
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let mut new = 0;
        for (index, text) in text[..whole].lines().enumerate() {
            let entry: Entry = serde_json::from_str(text).map_err(|error| Error::Samples {
                path: path.into(),
                line: index + 1,
                detail: error.to_string(),
            })?;
            if !self.has(&entry.key) {
                self.put(&entry.key, &entry.value)?;
                new += 1;
            }
        }
        Ok(new)
    }

    /// Writes what is still to be written.
    ///
    /// # Errors
    ///
    /// The first refusal, if measurements are not on disk.
    pub fn close(mut self) -> Result<()> {
        self.flush();
        match (self.pending.is_empty(), self.error) {
            (false, Some(error)) => Err(error),
            _ => Ok(()),
        }
    }

    fn remember(&mut self, key: String, value: Value) {
        if self.known.insert(key.clone(), value).is_none() {
            self.order.push(key);
        }
    }

    fn append(&mut self, line: String) {
        if self.file.is_some() {
            self.pending.push(line);
            self.flush();
        }
    }

    fn flush(&mut self) {
        let Some(file) = &mut self.file else { return };
        while let Some(line) = self.pending.first() {
            if let Err(error) = file.write_all(line.as_bytes()) {
                // What came to the disk of this line is taken back, so that the next begins where a line ends.
                let _ = file.set_len(self.length).and_then(|()| file.seek(SeekFrom::Start(self.length)));
                if self.error.is_none() {
                    let error = Error::file("cannot write to", &self.path)(error);
                    eprintln!("{error}: measurements are kept in memory, and tried again with the next one");
                    self.error = Some(error);
                }
                return;
            }
            self.length += line.len() as u64;
            self.pending.remove(0);
        }
    }
}

/// One finished measurement as ranks write it, for [`Store::absorb`].
///
/// # Errors
///
/// [`Error::System`] for what has no JSON.
pub fn entry(key: &str, value: &impl Serialize) -> Result<String> {
    line(&Entry { key: key.into(), value: serde_json::to_value(value).map_err(no_json)? })
}

fn line(value: &impl Serialize) -> Result<String> {
    Ok(serde_json::to_string(value).map_err(no_json)? + "\n")
}

fn no_json(error: serde_json::Error) -> Error {
    Error::System { what: "a measurement as JSON".into(), source: error.into() }
}

/// Whether measurements under `found` may be gone on with under `wanted`.
fn agree(found: &Head, wanted: &Head) -> Result<()> {
    let refuse = |what: &str, found: &dyn std::fmt::Display, wanted: &dyn std::fmt::Display| {
        Err(Error::Usage(format!("--resume: the measurements there are of {what} {found}, and not {wanted}")))
    };
    if found.study != wanted.study {
        return refuse("the study", &found.study, &wanted.study);
    }
    if found.host != wanted.host {
        return refuse("the host", &found.host, &wanted.host);
    }
    if found.settings == wanted.settings {
        return Ok(());
    }
    let empty = serde_json::Map::new();
    let (old, new) = (found.settings.as_object().unwrap_or(&empty), wanted.settings.as_object().unwrap_or(&empty));
    let other = old.keys().chain(new.keys()).find(|name| old.get(*name) != new.get(*name));
    let show = |value: Option<&Value>| value.map_or_else(|| "none".into(), Value::to_string);
    match other {
        Some(name) => refuse(&format!("the setting {name} ="), &show(old.get(name)), &show(new.get(name))),
        None => refuse("the settings", &found.settings, &wanted.settings),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::scratch::Scratch;

    fn head(settings: Value) -> Head {
        Head { study: "try".into(), host: "h".into(), commit: "c".into(), settings }
    }

    #[test]
    fn what_was_finished_comes_back() {
        let scratch = Scratch::new().unwrap();
        let mut store = Store::create(scratch.path(), &head(json!({"a": 1}))).unwrap();
        store.put("x/1", &[1.5, 2.5]).unwrap();
        store.put("x/2", &"text").unwrap();
        store.close().unwrap();
        let (mut store, found) = Store::open(scratch.path(), &head(json!({"a": 1}))).unwrap();
        assert_eq!(found.commit, "c");
        assert_eq!(store.get::<Vec<f64>>("x/1"), Some(vec![1.5, 2.5]));
        assert_eq!((store.get::<f64>("x/2"), store.get::<f64>("x/3")), (None, None));
        store.put("x/3", &3.0).unwrap();
        assert_eq!(store.keys(), ["x/1", "x/2", "x/3"]);
        store.close().unwrap();
        assert!(Store::open(scratch.path(), &head(json!({"a": 1}))).unwrap().0.has("x/3"));
        assert!(Store::create(scratch.path(), &head(json!({}))).is_err(), "a study must not begin over another");
    }

    /// For every length at which the file may have been cut: whole lines are there, and the next line is whole.
    #[test]
    fn half_a_line_is_cut_off() {
        let scratch = Scratch::new().unwrap();
        let path = scratch.path().join(NAME);
        let mut store = Store::create(scratch.path(), &head(json!({"a": 1}))).unwrap();
        store.put("x", &1).unwrap();
        store.put("y", &2).unwrap();
        drop(store);
        let text = fs::read_to_string(&path).unwrap();
        let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at + 1).collect();
        for length in 0..=text.len() {
            fs::write(&path, &text[..length]).unwrap();
            let (mut store, _) = Store::open(scratch.path(), &head(json!({"a": 1}))).unwrap();
            assert_eq!((store.has("x"), store.has("y")), (length >= ends[1], length >= ends[2]), "{length}");
            store.put("z", &3).unwrap();
            drop(store);
            let (store, _) = Store::open(scratch.path(), &head(json!({"a": 1}))).unwrap();
            assert!(store.has("z") && store.has("x") == (length >= ends[1]), "{length}");
        }
    }

    #[test]
    fn what_differs_is_named() {
        let scratch = Scratch::new().unwrap();
        drop(Store::create(scratch.path(), &head(json!({"total": 8, "same": 1}))).unwrap());
        let open = |head: &Head| Store::open(scratch.path(), head).unwrap_err().to_string();
        let error = open(&head(json!({"total": 9, "same": 1})));
        assert!(error.contains("total = 8, and not 9"), "{error}");
        assert!(open(&Head { host: "g".into(), ..head(json!({})) }).contains("the host h, and not g"));
        assert!(open(&Head { study: "other".into(), ..head(json!({})) }).contains("the study try, and not other"));
        let error = Store::open(Path::new("/nowhere"), &head(json!({}))).unwrap_err();
        assert!(error.to_string().contains("/nowhere") && error.status() == 2, "{error}");
        fs::write(scratch.path().join(NAME), "nonsense\n").unwrap();
        assert!(open(&head(json!({}))).contains("line 1"));
    }

    /// /dev/full refuses every byte, as a full disk does.
    #[test]
    fn a_full_disk_keeps_measurements_in_memory_and_writes_them_when_it_can() {
        let scratch = Scratch::new().unwrap();
        let path = scratch.path().join(NAME);
        let full = || Some(OpenOptions::new().write(true).open("/dev/full").unwrap());
        let mut store = Store { file: full(), path: path.clone(), ..Store::default() };
        store.put("x", &1).unwrap();
        store.put("y", &2).unwrap();
        assert_eq!((store.get("x"), store.get("y")), (Some(1), Some(2)));
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(&path).unwrap();
        store.file = Some(file);
        store.put("z", &3).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 3);
        store.close().unwrap();
        let mut store = Store { file: full(), path, ..Store::default() };
        store.put("x", &1).unwrap();
        assert!(store.close().unwrap_err().to_string().contains("No space left"));
    }

    #[test]
    fn lines_of_ranks_are_taken_over_once_and_whole() {
        let scratch = Scratch::new().unwrap();
        let path = scratch.path().join("ranks");
        let text = entry("a", &1).unwrap() + &entry("b", &2).unwrap();
        fs::write(&path, &text[..text.len() - 3]).unwrap();
        let mut store = Store::in_memory();
        assert_eq!(store.absorb(&path).unwrap(), 1);
        fs::write(&path, &text).unwrap();
        assert_eq!((store.absorb(&path).unwrap(), store.absorb(&path).unwrap()), (1, 0));
        assert_eq!(store.get("b"), Some(2));
        assert_eq!(store.absorb(Path::new("/nowhere")).unwrap(), 0);
        fs::write(&path, "nonsense\n").unwrap();
        assert!(store.absorb(&path).is_err());
    }
}
