//! A run of a baseline's collectives through its own launcher.

use std::env;
use std::fs::{self, File};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::baseline::Series;
use super::peers::{launcher_environment, launcher_options};
use super::{Files, Order, conclude, watched};
use crate::error::{Error, Result};
use crate::group::Group;
use crate::machine::usable_cores;
use crate::progress::Progress;
use crate::samples::Run;
use crate::scratch::Scratch;

/// How long a launcher has to end its ranks before it is killed.
const GRACE: Duration = Duration::from_secs(5);
/// How often a launcher is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// Runs `order` through the collectives of `series`.
pub fn run(series: &Series, order: &Order<'_>, scratch: &Scratch, progress: &Progress) -> Result<Run> {
    let Series { baseline, setting } = series;
    let name = series.name();
    let files = Files::prepare(order, scratch, &baseline.name)?;
    let said = files.results.join("launcher.txt");
    let out = File::create(&said).map_err(Error::file("cannot make", &said))?;
    let both = out.try_clone().map_err(Error::file("cannot open again", &said))?;
    let this = env::current_exe().map_err(Error::system("path of this program"))?;
    let mut command = Command::new(this);
    command.args(["tethered", &std::process::id().to_string(), "--"]);
    command.arg(&baseline.launcher);
    command.args(launcher_options(baseline.family, order, usable_cores().len()));
    command.args(setting.options).args(&baseline.options);
    command.arg(&baseline.program).arg(&files.plan).arg(&files.results);
    command.args([order.ranks.to_string(), order.limit.as_secs().max(1).to_string()]);
    let bound = launcher_environment(baseline.family, order, &usable_cores());
    let wanted = setting.environment.iter().map(|&(name, value)| (name, value.to_string()));
    // What the user has set stays as it is, except where the tools look for themselves.
    command.envs(bound.into_iter().chain(wanted).filter(|(name, _)| env::var_os(name).is_none()));
    command.envs(baseline.environment.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::null()).stdout(out).stderr(both);

    let ended = watched(progress, &files.results, order, || {
        let what = format!("start of {}", baseline.launcher.display());
        Group::start(&mut command, GRACE, what)?.wait(order.limit, LOOK, || true)
    })?;
    let last_words = || {
        let text = fs::read_to_string(&said).unwrap_or_default();
        // What a rank says of itself before what its launcher says of that.
        let (own, others): (Vec<&str>, Vec<&str>) =
            text.lines().filter(|line| !line.trim().is_empty()).partition(|line| line.starts_with("baseline rank "));
        own.into_iter().chain(others).take(12).collect::<Vec<_>>().join("\n  ")
    };
    match ended {
        None => Err(Error::Timeout { series: name, ranks: order.ranks, limit: order.limit }),
        Some(status) if status.success() => conclude(&name, order, &files.results, None),
        Some(status) => {
            let detail = format!("its launcher ended with {status} and said:\n  {}", last_words());
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
