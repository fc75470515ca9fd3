//! One measurement of a study: a command of this program whose record is read, or a simulation.

use std::fmt;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::group::Group;
use crate::scratch::Scratch;
use crate::study::Stop;

/// How long a command has to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(15);
/// How often a command is looked at.
const LOOK: Duration = Duration::from_millis(100);
/// Lines of a command's last words that an error repeats.
const LAST_WORDS: usize = 15;

/// One measurement of a study.
pub struct Piece {
    /// Its name, of its own within the study: `block/256K`.
    pub key: String,
    /// What is done.
    pub work: Work,
}

/// What a piece does.
pub enum Work {
    /// A command of this program, which leaves a record with a `results.json`.
    Command(Words),
    /// A computation in this process.
    Here(Box<dyn Fn() -> Result<Value>>),
}

/// A command of this program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// Behind `bench`.
    pub words: Vec<String>,
    /// Variables.
    pub variables: Vec<(&'static str, String)>,
    /// Words that are of this machine only, and not shown: paths.
    pub private: Vec<String>,
    /// Whether it needs the emulated cluster, so that it may be left out where there cannot be one.
    pub cluster: bool,
}

/// The command as a person types it.
impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.variables {
            write!(f, "{name}={} ", in_shell(value))?;
        }
        f.write_str("bench")?;
        self.words.iter().try_for_each(|word| write!(f, " {}", in_shell(word)))
    }
}

/// A word as a shell takes it.
fn in_shell(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.into() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

/// What came of a command.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Its results.
    Results(Value),
    /// It was left out, for this reason.
    Skipped(String),
}

impl Words {
    /// A command of these words.
    pub fn new<S: Into<String>>(words: impl IntoIterator<Item = S>) -> Words {
        Words { words: words.into_iter().map(Into::into).collect(), ..Words::default() }
    }

    /// Runs it as `bench` and reads its record.
    ///
    /// # Errors
    ///
    /// [`Error::Run`] with its last words; [`Error::Timeout`]; what ends because of `stop` is an error of either kind.
    pub fn run(&self, bench: &Path, scratch: &Scratch, limit: Duration, stop: &Stop) -> Result<Outcome> {
        let folder = scratch.fresh("piece")?;
        let said = folder.join("said.txt");
        let out = File::create(&said).map_err(Error::file("cannot make", &said))?;
        let both = out.try_clone().map_err(Error::file("cannot open again", &said))?;
        let records = folder.join("records");
        let mut command = Command::new(bench);
        command.args(["tethered", &std::process::id().to_string(), "--"]).arg(bench);
        command.args(&self.words).args(&self.private).arg("--record").arg(&records).args(["--name", "piece"]);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(out).stderr(both);
        let group = Group::start(&mut command, GRACE, format!("start of {}", bench.display()))?;
        let ended = group.wait(limit, LOOK, || !stop.is_asked())?;
        let text = fs::read_to_string(&said).unwrap_or_default();
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let last_words = lines[lines.len().saturating_sub(LAST_WORDS)..].join("\n  ");
        let failed = |detail: String| Error::Run { series: self.to_string(), ranks: self.ranks(), detail };
        match ended {
            None if stop.is_asked() => Err(failed("stopped".into())),
            None => Err(Error::Timeout { series: self.to_string(), ranks: self.ranks(), limit }),
            Some(status) if status.success() => match (results(&records)?, text.contains("skipped: ")) {
                (Some(results), _) => Ok(Outcome::Results(results)),
                (None, true) => Ok(Outcome::Skipped(reason(&lines))),
                (None, false) => Err(failed(format!("it left no results; its last words:\n  {last_words}"))),
            },
            Some(status) if status.code() == Some(2) => {
                Err(Error::Usage(format!("{self} was refused; its last words:\n  {last_words}")))
            }
            Some(status) => Err(failed(format!("it ended with {status}; its last words:\n  {last_words}"))),
        }
    }

    /// The ranks that the words speak of: hosts times slots, or ranks.
    pub fn ranks(&self) -> usize {
        let number = |name: &str| {
            let at = self.words.iter().position(|word| word == name)?;
            self.words.get(at + 1)?.parse::<usize>().ok()
        };
        number("--ranks").unwrap_or_else(|| number("--hosts").unwrap_or(1) * number("--slots").unwrap_or(1))
    }
}

/// Why a command was skipped, in its own words.
fn reason(lines: &[&str]) -> String {
    let said = lines.iter().rev().find_map(|line| line.rsplit_once("skipped: "));
    said.map_or_else(|| "it was skipped".into(), |(_, why)| why.trim().into())
}

/// The `results.json` of the only record below `records`.
fn results(records: &Path) -> Result<Option<Value>> {
    let Some(Ok(entry)) = fs::read_dir(records).ok().and_then(|mut entries| entries.next()) else { return Ok(None) };
    let path = entry.path().join("results.json");
    let text = fs::read_to_string(&path).map_err(Error::file("cannot read", &path))?;
    let wrong = |error: serde_json::Error| Error::Samples { path, line: error.line(), detail: error.to_string() };
    serde_json::from_str(&text).map(Some).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    use super::*;

    /// A program that is called as `bench tethered PID -- bench WORDS.. --record DIR --name piece`.
    fn program(scratch: &Scratch, body: &str) -> PathBuf {
        let path = scratch.path().join("program");
        let script = format!("#!/bin/sh\nrecords=\"${{5}}\"\nfor word; do :; done\n{body}\n");
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// Runs one word; the record's folder is `$6`: tethered PID -- bench WORD --record DIR.
    fn run(body: &str, limit: Duration, stop: &Stop) -> Result<Outcome> {
        let scratch = Scratch::new().unwrap();
        let path = program(&scratch, body);
        Words::new(["word"]).run(&path, &scratch, limit, stop)
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn results_are_read_from_the_record() {
        let body = "mkdir -p \"$7/x\"; echo '{\"a\": 1}' > \"$7/x/results.json\"";
        let outcome = run(body, LONG, &Stop::default()).unwrap();
        assert_eq!(outcome, Outcome::Results(serde_json::json!({"a": 1})));
    }

    #[test]
    fn what_is_skipped_says_why() {
        let outcome = run("echo 'skipped: cluster: skipped: no namespaces' >&2", LONG, &Stop::default()).unwrap();
        assert_eq!(outcome, Outcome::Skipped("no namespaces".into()));
    }

    #[test]
    fn what_fails_says_its_last_words() {
        let failed = |body: &str| run(body, LONG, &Stop::default()).unwrap_err();
        let error = failed("echo the disk is full; exit 1");
        assert!(error.to_string().contains("the disk is full") && error.status() == 1, "{error}");
        let error = failed("echo 'no such option'; exit 2");
        assert!(error.to_string().contains("no such option") && error.status() == 2, "{error}");
        assert!(failed("true").to_string().contains("no results"));
        assert!(failed("mkdir -p \"$7/x\"; echo '{' > \"$7/x/results.json\"").to_string().contains("results.json"));
    }

    #[test]
    fn what_takes_too_long_or_shall_stop_is_ended() {
        let error = run("sleep 1000", Duration::from_millis(300), &Stop::default()).unwrap_err();
        assert!(matches!(error, Error::Timeout { .. }), "{error}");
        let stop = Stop::default();
        stop.ask();
        assert!(run("sleep 1000", LONG, &stop).unwrap_err().to_string().contains("stopped"));
    }

    #[test]
    fn commands_are_shown_as_they_are_typed() {
        let mut words = Words::new(["collectives", "--ranks", "2", "--series", "a=b c"]);
        words.variables.push(("PHALANX_TREES", "release: flat".into()));
        words.private = vec!["--program".into(), "/tmp/x".into()];
        assert_eq!(words.to_string(), "PHALANX_TREES='release: flat' bench collectives --ranks 2 --series 'a=b c'");
        assert_eq!(words.ranks(), 2);
        assert_eq!(Words::new(["across", "--hosts", "4", "--slots", "3"]).ranks(), 12);
    }
}
