//! Jobs that a baseline's own launcher starts, and a run of its collectives.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use super::baseline::{Baseline, Series};
use super::peers::{Setting, launcher_environment, launcher_options};
use super::{Binding, Files, Order, conclude, watched};
use crate::error::{Error, Result};
use crate::group::Group;
use crate::machine::usable_cores;
use crate::progress::Progress;
use crate::samples::Run;
use crate::scratch::Scratch;
use crate::study::Stop;

/// How long a launcher has to end its ranks before it is killed.
const GRACE: Duration = Duration::from_secs(5);
/// How often a launcher is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// How many lines of what a job said are told.
const LAST_WORDS: usize = 12;

/// A job of a baseline's program.
#[derive(Debug)]
pub struct Job<'a> {
    /// Whose launcher and program.
    pub baseline: &'a Baseline,
    /// How it is run.
    pub setting: &'a Setting,
    /// How many ranks.
    pub ranks: usize,
    /// Where they are bound; resolved.
    pub binding: Binding,
    /// When they are stopped.
    pub limit: Duration,
    /// Further options for the launcher.
    pub options: &'a [OsString],
    /// What the program is told.
    pub arguments: &'a [OsString],
    /// The file for what launcher and ranks say.
    pub said: &'a Path,
    /// How often the launcher is looked at.
    pub look: Duration,
    /// What else ends it, as the limit does.
    pub stop: Option<&'a Stop>,
}

impl Job<'_> {
    /// Runs it to its end; none where it was stopped at the limit or by a signal, with all its ranks.
    ///
    /// # Errors
    ///
    /// [`Error::File`], and [`Error::System`] where it cannot be started.
    pub fn run(&self) -> Result<Option<ExitStatus>> {
        let Job { baseline, setting, said, .. } = self;
        let out = File::create(said).map_err(Error::file("cannot make", *said))?;
        let both = out.try_clone().map_err(Error::file("cannot open again", *said))?;
        let this = env::current_exe().map_err(Error::system("path of this program"))?;
        let cores = usable_cores();
        let mut command = Command::new(this);
        command.args(["tethered", &std::process::id().to_string(), "--"]);
        command.arg(&baseline.launcher);
        command.args(launcher_options(baseline.family, self.ranks, self.binding, cores.len()));
        command.args(setting.options).args(&baseline.options).args(self.options);
        command.arg(&baseline.program).args(self.arguments);
        let bound = launcher_environment(baseline.family, self.binding, &cores);
        let wanted = setting.environment.iter().map(|&(name, value)| (name, value.to_string()));
        // What the user has set stays as it is, except where the tools look for themselves.
        command.envs(bound.into_iter().chain(wanted).filter(|(name, _)| env::var_os(name).is_none()));
        command.envs(baseline.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(out).stderr(both);
        let what = format!("start of {}", baseline.launcher.display());
        Group::start(&mut command, GRACE, what)?.wait(self.limit, self.look, || !self.stop.is_some_and(Stop::is_asked))
    }

    /// What launcher and ranks said: first what a rank says of itself, in lines that begin with `own`, and then what
    /// its launcher says of that.
    pub fn last_words(&self, own: &str) -> String {
        let text = fs::read_to_string(self.said).unwrap_or_default();
        let (own, others): (Vec<&str>, Vec<&str>) =
            text.lines().filter(|line| !line.trim().is_empty()).partition(|line| line.starts_with(own));
        own.into_iter().chain(others).take(LAST_WORDS).collect::<Vec<_>>().join("\n  ")
    }
}

/// Runs `order` through the collectives of `series`.
pub fn run(series: &Series, order: &Order<'_>, scratch: &Scratch, progress: &Progress) -> Result<Run> {
    let Series { baseline, setting } = series;
    let name = series.name();
    let files = Files::prepare(order, scratch, &baseline.name)?;
    let seconds = order.limit.as_secs().max(1).to_string();
    let arguments: [OsString; 4] =
        [files.plan.clone().into(), files.results.clone().into(), order.ranks.to_string().into(), seconds.into()];
    let job = Job {
        baseline,
        setting,
        ranks: order.ranks,
        binding: order.binding,
        limit: order.limit,
        options: &[],
        arguments: &arguments,
        said: &files.results.join("launcher.txt"),
        look: LOOK,
        stop: None,
    };
    match watched(progress, &files.results, order, || job.run())? {
        None => Err(Error::Timeout { series: name, ranks: order.ranks, limit: order.limit }),
        Some(status) if status.success() => conclude(&name, order, &files.results, None),
        Some(status) => {
            let words = job.last_words("baseline rank ");
            let detail = format!("its launcher ended with {status} and said:\n  {words}");
            match conclude(&name, order, &files.results, None) {
                // All ranks had closed their sheets, behind the last call: what failed was the end of MPI.
                Ok(run) => {
                    progress.note(&format!("{name}: all is measured, but {detail}"));
                    Ok(run)
                }
                Err(_) => conclude(&name, order, &files.results, Some(detail)),
            }
        }
    }
}
