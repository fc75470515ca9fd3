//! A study while it runs: its record, what it has finished, how far it is, and whether it shall end.

use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::description::Description;
use super::options::StudyOptions;
use super::stop::Stop;
use super::store::{Head, Store};
use crate::error::{Error, Result};
use crate::keep::Keeper;
use crate::progress::Progress;
use crate::record::Record;
use crate::record::host::Host;

/// A study that has begun, or goes on.
#[derive(Debug)]
pub struct Session {
    description: Description,
    host: Host,
    record: Record,
    store: Store,
    progress: Progress,
    stop: Stop,
    /// The commit that measured before, where the study goes on.
    before: Option<String>,
}

impl Session {
    /// Opens the record and the store: new ones, or those that `--resume` names.
    ///
    /// `settings` is all that shapes what is measured; where a study goes on they must be those of its beginning.
    ///
    /// # Errors
    ///
    /// [`Error::Usage`] where a study cannot go on, with what differs; [`Error::File`] for a record that cannot be
    /// made: nothing is measured that could not be kept.
    pub fn begin(description: Description, options: &StudyOptions, host: Host, settings: Value) -> Result<Session> {
        let head =
            Head { study: description.name.into(), host: host.host.clone(), commit: host.commit.clone(), settings };
        let (record, store, before) = match &options.resume {
            None => {
                let short = if options.quick { "-quick" } else { "" };
                let usual = format!("{}{short}", description.name.replace(' ', "-"));
                let name = options.name.as_deref().unwrap_or(&usual);
                let record = Record::open(&options.output, host.date(), &host.host, name)?;
                let store = Store::create(record.folder(), &head)?;
                (record, store, None)
            }
            Some(folder) => {
                let (store, found) = Store::open(folder, &head)?;
                (Record::at(folder), store, Some(found.commit))
            }
        };
        if let Some(commit) = before.as_ref().filter(|commit| **commit != host.commit) {
            eprintln!("the study was begun with commit {commit}, and goes on with {}", host.commit);
        }
        let (progress, stop) = (Progress::silent(), Stop::listen()?);
        Ok(Session { description, host, record, store, progress, stop, before })
    }

    /// Says which measurements there will be: the progress is shown over those that are still missing.
    pub fn expect<S: AsRef<str>>(&mut self, keys: &[S]) {
        let known = keys.iter().filter(|key| self.store.has(key.as_ref())).count();
        if known > 0 {
            eprintln!("{known} of {} measurements are finished already", keys.len());
        }
        self.progress = Progress::new(keys.len());
        self.progress.already(known);
    }

    /// The host on which it runs.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The host, for what is known only later: baselines.
    pub fn host_mut(&mut self) -> &mut Host {
        &mut self.host
    }

    /// How far it is.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Whether it shall end; for what waits longer than a second.
    pub fn stop(&self) -> &Stop {
        &self.stop
    }

    /// What is finished.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The measurement `key`: the one that is finished, or else what `run` measures, which is kept at once.
    ///
    /// # Errors
    ///
    /// [`Error::Interrupted`] when the study shall end; those of `run`.
    pub fn measure<T: Serialize + DeserializeOwned>(
        &mut self,
        key: &str,
        run: impl FnOnce(&Progress, &Stop) -> Result<T>,
    ) -> Result<T> {
        if let Some(known) = self.store.get(key) {
            return Ok(known);
        }
        self.go_on()?;
        self.progress.stage(key);
        let measured = run(&self.progress, &self.stop).map_err(|error| self.or_interrupted(error))?;
        self.store.put(key, &measured)?;
        self.progress.step();
        Ok(measured)
    }

    /// Runs what writes finished measurements into the file `lines` by itself ([`entry`](super::store::entry)), and
    /// takes them over, also when it fails in the end. `most` is how many it can finish.
    ///
    /// # Errors
    ///
    /// As [`measure`](Session::measure).
    pub fn gather(
        &mut self,
        what: &str,
        lines: &Path,
        most: usize,
        run: impl FnOnce(&Progress, &Stop) -> Result<()>,
    ) -> Result<()> {
        self.go_on()?;
        self.progress.stage(what);
        let file = lines.to_path_buf();
        let finished = move || std::fs::read_to_string(&file).map_or(0, |text| text.matches('\n').count());
        let watch = self.progress.follow(most, finished);
        let outcome = run(&self.progress, &self.stop);
        watch.end();
        self.store.absorb(lines)?;
        outcome.map_err(|error| self.or_interrupted(error))
    }

    /// Looks whether the study shall end.
    ///
    /// # Errors
    ///
    /// [`Error::Interrupted`] with the command that goes on.
    pub fn go_on(&self) -> Result<()> {
        if self.stop.is_asked() { Err(self.interrupted()) } else { Ok(()) }
    }

    /// What ends because of a signal ends as interrupted, whatever it says itself: ranks may have got the signal too.
    fn or_interrupted(&self, error: Error) -> Error {
        if self.stop.is_asked() { self.interrupted() } else { error }
    }

    fn interrupted(&self) -> Error {
        let again = again(std::env::args(), self.record.folder());
        Error::Interrupted { finished: self.store.keys().len(), again }
    }

    /// Writes the files of the record by `write`, after the host and what the study is; then says where everything is.
    ///
    /// # Errors
    ///
    /// The first file that cannot be written, or measurements that are not on disk. All files were tried before.
    pub fn finish(self, write: impl FnOnce(&mut Keeper, &Host)) -> Result<()> {
        self.progress.finish();
        let Session { description, host, record, store, before, .. } = self;
        let mut keeper = Keeper::of(record);
        let mut text = host.render();
        if let Some(commit) = before {
            text += &format!("{:<14} with commit {commit}\n", "begun");
        }
        keeper.write("host.txt", &text);
        keeper.write("study.txt", &format!("bench {}\n\n{}", description.name, description.render()));
        write(&mut keeper, &host);
        let kept = keeper.close();
        store.close().and(kept)
    }
}

/// The command line that goes on with what `words` began.
fn again(words: impl Iterator<Item = String>, folder: &Path) -> String {
    let mut line: Vec<String> = Vec::new();
    let mut left_out = false;
    for word in words {
        let own = ["--resume", "--name"].contains(&word.as_str());
        if !own && !left_out && !word.starts_with("--resume=") && !word.starts_with("--name=") {
            line.push(quoted(&word));
        }
        left_out = own;
    }
    line.push(format!("--resume {}", quoted(&folder.display().to_string())));
    line.join(" ")
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.into() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::scratch::Scratch;
    use crate::study::store::entry;

    const STUDY: Description = Description { name: "try it", paper: "P", did: &["D"], differs: &["N"] };

    fn session(options: &StudyOptions) -> Result<Session> {
        Session::begin(STUDY, options, Host::look(), json!({"size": 1}))
    }

    #[test]
    fn a_study_that_is_stopped_goes_on_where_it_was() {
        let scratch = Scratch::new().unwrap();
        let options = StudyOptions { output: scratch.path().join("records"), quick: true, ..StudyOptions::default() };
        let mut first = session(&options).unwrap();
        first.expect(&["a", "b"]);
        assert_eq!(first.measure("a", |_, _| Ok(1.5)).unwrap(), 1.5);
        first.stop().ask();
        let error = first.measure("b", |_, _| Ok(2.5)).unwrap_err();
        assert!(matches!(error, Error::Interrupted { finished: 1, .. }), "{error}");
        let folder = first.record.folder().to_path_buf();
        assert!(error.to_string().contains(&format!("--resume {}", folder.display())), "{error}");
        assert!(folder.to_string_lossy().ends_with("-try-it-quick"));
        drop(first);

        let mut second = session(&StudyOptions { resume: Some(folder.clone()), ..options }).unwrap();
        second.expect(&["a", "b"]);
        assert_eq!(second.measure("a", |_, _| Err::<f64, _>(Error::Floor("measured twice".into()))).unwrap(), 1.5);
        assert_eq!(second.measure("b", |_, _| Ok(2.5)).unwrap(), 2.5);
        second.finish(|keeper, _| keeper.write("x.txt", "x")).unwrap();
        for name in ["host.txt", "study.txt", "x.txt", "measurements.jsonl"] {
            assert!(folder.join(name).metadata().unwrap().len() > 0, "{name}");
        }
    }

    #[test]
    fn what_ranks_finished_before_they_failed_is_kept() {
        let scratch = Scratch::new().unwrap();
        let options = StudyOptions { output: scratch.path().into(), ..StudyOptions::default() };
        let mut session = session(&options).unwrap();
        let lines = scratch.path().join("lines");
        let error = session.gather("ranks", &lines, 2, |_, _| {
            std::fs::write(&lines, entry("a", &1.0).unwrap()).unwrap();
            Err(Error::Floor("one rank died".into()))
        });
        assert!(error.unwrap_err().to_string().contains("one rank died"));
        assert_eq!(session.store().get("a"), Some(1.0));
    }

    #[test]
    fn without_a_place_for_the_record_nothing_is_measured() {
        let options = StudyOptions { output: "/proc/none".into(), ..StudyOptions::default() };
        assert!(session(&options).unwrap_err().to_string().contains("/proc/none"));
        let options = StudyOptions { resume: Some("/nowhere".into()), ..StudyOptions::default() };
        assert_eq!(session(&options).unwrap_err().status(), 2);
    }

    #[test]
    fn the_command_that_goes_on_is_the_same_with_a_folder() {
        let words = |line: &str| line.split(' ').map(String::from).collect::<Vec<_>>().into_iter();
        let folder = Path::new("records/a b");
        assert_eq!(
            again(words("bench commtest --name x --total 2M"), folder),
            "bench commtest --total 2M --resume 'records/a b'"
        );
        assert_eq!(again(words("bench x --resume old --name=y -n 2"), folder), "bench x -n 2 --resume 'records/a b'");
    }
}
