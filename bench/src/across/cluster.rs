//! One run of ranks on an emulated cluster, or under another launcher.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::measured::Measured;
use super::mode::Mode;
use super::options::Across;
use super::plan::Plan;
use super::program::{Library, repository};
use crate::error::{Error, Result};
use crate::group::Group;
use crate::scratch::Scratch;
use crate::study::Stop;

/// The exit status of the script where namespaces are not allowed.
const SKIPPED: i32 = 77;
/// How long the script has to remove the cluster before it is killed.
const GRACE: Duration = Duration::from_secs(10);
/// How often the script is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// The words of the cluster's script for a run; the program and its words come behind them.
pub fn words(options: &Across, library: Library, mode: Mode, share: &[&Path]) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut add = |name: &str, value: String| words.extend([name.to_owned(), value]);
    add("--hosts", options.hosts.to_string());
    add("--slots", options.slots.to_string());
    add("--rate", options.rate.to_string());
    if let Some(hosts) = options.per_switch {
        add("--per-switch", hosts.to_string());
    }
    if let Some(rate) = &options.trunk_rate {
        add("--trunk-rate", rate.to_string());
    }
    add("--placement", options.placement.clone());
    add("--mpi", library.to_string());
    for folder in share {
        add("--share", folder.display().to_string());
    }
    if mode.eager {
        words.push("--eager".into());
    }
    words.extend(["--", "mpirun"].map(String::from));
    words
}

/// The script, and an error that says where it was looked for.
///
/// # Errors
///
/// [`Error::Usage`].
pub fn script(options: &Across) -> Result<PathBuf> {
    let path = options.cluster.clone().unwrap_or_else(|| repository().join("scripts/cluster/run"));
    if path.is_file() {
        return Ok(path);
    }
    Err(Error::Usage(format!("{}: no such script; --cluster PATH names the one that makes clusters", path.display())))
}

/// Runs a plan, and reads what rank 0 has written. None where namespaces are not allowed.
///
/// # Errors
///
/// [`Error::Timeout`]; [`Error::Run`] with the last words of the ranks.
pub fn run(
    options: &Across,
    library: Library,
    mode: Mode,
    plan: &Plan,
    program: &Path,
    scratch: &Scratch,
) -> Result<Option<Measured>> {
    let ranks = options.hosts * options.slots;
    let folder = scratch.fresh(&mode.name())?;
    let result = folder.join("measured.json");
    let plan = Plan { ranks: Some(ranks), json: Some(result.clone()), ..plan.clone() };
    match launch(options, library, mode, program, &plan.to_words(), &folder, None)? {
        true => Measured::read(&result).map(Some),
        false => Ok(None),
    }
}

/// Runs the ranks `program words` on an emulated cluster whose hosts see `folder`. False where namespaces are not
/// allowed.
///
/// # Errors
///
/// [`Error::Timeout`]; [`Error::Run`] with the last words of the ranks.
pub fn launch(
    options: &Across,
    library: Library,
    mode: Mode,
    program: &Path,
    arguments: &[String],
    folder: &Path,
    stop: Option<&Stop>,
) -> Result<bool> {
    let series = format!("{library}, {}", mode.name());
    let ranks = options.hosts * options.slots;
    let limit = Duration::from_secs(options.timeout);
    let home = program.parent().unwrap_or(Path::new("/"));
    let this = env::current_exe().map_err(Error::system("path of this program"))?;
    let mut command = Command::new(this);
    command.args(["tethered", &std::process::id().to_string(), "--"]);
    command.arg(script(options)?).args(words(options, library, mode, &[folder, home]));
    command.arg(program).args(arguments);
    command.envs(mode.environment(library));
    supervise(command, &Supervised { series: &series, ranks, limit, folder }, stop)
}

/// What is known of a run of ranks by whoever waits for its end.
#[derive(Clone, Copy, Debug)]
pub struct Supervised<'a> {
    /// Whose ranks they are.
    pub series: &'a str,
    /// How many.
    pub ranks: usize,
    /// When they are stopped.
    pub limit: Duration,
    /// Where what they say is kept.
    pub folder: &'a Path,
}

/// Passes on what ranks have said of how far they are since `shown` lines; returns how many lines there are.
fn pass_on(said: &Path, shown: usize) -> usize {
    let text = fs::read_to_string(said).unwrap_or_default();
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("across: ")).collect();
    lines[shown.min(lines.len())..].iter().for_each(|line| eprintln!("  {line}"));
    lines.len()
}

/// Runs a launcher of ranks to its end, in a process group of its own. False where it says that it cannot run here.
///
/// # Errors
///
/// [`Error::Timeout`]; [`Error::Run`] with the last words of the ranks, and when `stop` asked for the end.
pub fn supervise(mut command: Command, run: &Supervised<'_>, stop: Option<&Stop>) -> Result<bool> {
    let Supervised { ranks, limit, folder, .. } = *run;
    let series = run.series.to_owned();
    let said = folder.join("said.txt");
    let out = File::create(&said).map_err(Error::file("cannot make", &said))?;
    let both = out.try_clone().map_err(Error::file("cannot open again", &said))?;
    command.stdin(Stdio::null()).stdout(out).stderr(both);
    let mut shown = 0;
    let ended = Group::start(&mut command, GRACE, "start of a launcher")?.wait(limit, LOOK, || {
        shown = pass_on(&said, shown);
        !stop.is_some_and(Stop::is_asked)
    })?;
    let last_words = || {
        let text = fs::read_to_string(&said).unwrap_or_default();
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        lines[lines.len().saturating_sub(15)..].join("\n  ")
    };
    match ended {
        None if stop.is_some_and(Stop::is_asked) => {
            Err(Error::Run { series, ranks, detail: "ended by a signal to this program".into() })
        }
        None => Err(Error::Timeout { series, ranks, limit }),
        Some(status) if status.code() == Some(SKIPPED) => {
            eprintln!("skipped: {}", last_words());
            Ok(false)
        }
        Some(status) if status.success() => Ok(true),
        Some(status) => {
            let detail = format!("the cluster's command ended with {status} and said:\n  {}", last_words());
            Err(Error::Run { series, ranks, detail })
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::command::{Cli, Command as Chosen};

    fn options(words: &[&str]) -> Across {
        match Cli::try_parse_from(["bench", "across"].iter().chain(words)).unwrap().command {
            Chosen::Across(options) => *options,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_script_is_told_all_that_was_asked_for() {
        let options = options(&[
            "--hosts",
            "4",
            "--slots",
            "2",
            "--per-switch",
            "2",
            "--rate",
            "200mbit",
            "--trunk-rate",
            "50mbit",
            "--placement",
            "random:7",
        ]);
        let words = words(&options, Library::Mpich, Mode::usual(true), &[Path::new("/tmp/a b")]);
        assert_eq!(
            words.join(" "),
            "--hosts 4 --slots 2 --rate 200mbit --per-switch 2 --trunk-rate 50mbit --placement random:7 --mpi mpich --share \
             /tmp/a b --eager -- mpirun"
        );
    }

    #[test]
    fn a_script_that_is_not_there_is_named() {
        let error = script(&options(&["--cluster", "/nowhere/run"])).unwrap_err().to_string();
        assert!(error.contains("/nowhere/run") && error.contains("--cluster"), "{error}");
        assert!(script(&options(&[])).unwrap().is_file());
    }
}
