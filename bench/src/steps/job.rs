//! One job of one case: with the library in front of the MPI, or without.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde::Serialize;

use super::patterns::Case;
use crate::error::{Error, Result};
use crate::machine::usable_cores;
use crate::runs::Binding;
use crate::runs::baseline::{Baseline, Program};
use crate::runs::mpi::Job;
use crate::runs::peers::{SettingsWish, preload_options, settings};
use crate::scratch::Scratch;
use crate::study::Stop;

/// The program of ranks.
pub const PROGRAM: Program = Program {
    name: "steps",
    sources: &[
        ("steps.h", include_str!("../../baseline/steps.h")),
        ("steps.c", include_str!("../../baseline/steps.c")),
        ("steps_data.c", include_str!("../../baseline/steps_data.c")),
        ("steps_waiting.c", include_str!("../../baseline/steps_waiting.c")),
    ],
    libraries: &["-ldl", "-lm", "-lpthread"],
};

/// How often a launcher is looked at: rarely while steps are timed, often where the job itself is.
const LOOK: Duration = Duration::from_millis(20);
const LOOK_AT_START: Duration = Duration::from_millis(1);
/// How much later than the driver a rank ends itself, should nobody else have done it.
const RANKS_LATER: Duration = Duration::from_secs(10);
/// What the program's own lines begin with, and those of the library.
const OWN: &str = "steps rank ";
const REMARK: &str = "phalanx: ";

/// What all jobs have in common.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// The library; an absolute path.
    pub library: &'a Path,
    /// How long the timed steps of a job last.
    pub time: Duration,
    /// When a job is stopped.
    pub limit: Duration,
    /// A signal to this program, which ends a job, too.
    pub stop: &'a Stop,
}

/// What a job took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Taken {
    /// Steps that were timed; of a whole job 1.
    pub steps: u64,
    /// Microseconds of a step, on the slowest rank; the median over blocks of steps.
    pub wall: f64,
    /// Microseconds of processor time of a step, of all ranks together; of a whole job its launcher's, too.
    pub processor: f64,
}

/// Whose collectives, in words.
pub fn series(baseline: &Baseline, with: bool) -> String {
    format!("{} {} the library", baseline.name, if with { "with" } else { "without" })
}

/// Runs one job. What the library remarks is told to `remark`.
///
/// # Errors
///
/// [`Error::Wrong`] for a wrong answer; [`Error::Run`] for a job that fails, that is stopped at the limit, or that did not
/// load the library.
pub fn run(
    baseline: &Baseline,
    ranks: usize,
    case: Case,
    with: bool,
    terms: &Terms<'_>,
    scratch: &Scratch,
    remark: impl Fn(&str),
) -> Result<Taken> {
    let folder = scratch.fresh(&baseline.name)?;
    let taken = run_in(&folder, baseline, ranks, case, with, terms, remark);
    // What patterns write would fill the disk, job by job.
    let _ = fs::remove_dir_all(&folder);
    taken
}

fn run_in(
    folder: &Path,
    baseline: &Baseline,
    ranks: usize,
    case: Case,
    with: bool,
    terms: &Terms<'_>,
    remark: impl Fn(&str),
) -> Result<Taken> {
    let failed = |what: String| {
        let detail = format!(
            "{}: {what}\nTo try it alone: bench steps --baseline {} --ranks {ranks} --patterns {} --no-record",
            case.words(),
            baseline.name,
            case.wish()
        );
        Error::Run { series: series(baseline, with), ranks, detail }
    };
    let Terms { library, time, limit, stop } = *terms;
    let milliseconds = if case.is_start() { 0.0 } else { time.as_secs_f64() * 1e3 };
    let arguments: [OsString; 6] = [
        case.pattern.name.into(),
        case.argument.to_string().into(),
        milliseconds.to_string().into(),
        folder.into(),
        ranks.to_string().into(),
        (limit + RANKS_LATER).as_secs().to_string().into(),
    ];
    let crowded = ranks > usable_cores().len();
    let stock = settings(&baseline.name, baseline.family, crowded, SettingsWish::Stock);
    let job = Job {
        baseline,
        setting: &stock[0],
        ranks,
        binding: Binding::Auto.resolve(ranks),
        limit,
        options: &if with { preload_options(baseline.family, library) } else { Vec::new() },
        arguments: &arguments,
        said: &folder.join("launcher.txt"),
        look: if case.is_start() { LOOK_AT_START } else { LOOK },
        stop: Some(stop),
    };
    let (begin, used) = (Instant::now(), processor_time()?);
    let status = job.run()?;
    let whole = Taken { steps: 1, wall: begin.elapsed().as_secs_f64() * 1e6, processor: processor_time()? - used };
    let wrong = wrong_answers(folder, ranks);
    if !wrong.is_empty() {
        let detail = format!("{}: {}", case.words(), wrong.join("\n  and "));
        return Err(Error::Wrong { series: series(baseline, with), detail });
    }
    match status {
        None if stop.is_asked() => Err(failed("it was ended by a signal to this program".into())),
        None => {
            let seconds = limit.as_secs();
            Err(failed(format!("it did not end within {seconds} s and was stopped; --timeout gives it longer")))
        }
        Some(status) if !status.success() => {
            Err(failed(format!("its launcher ended with {status} and said:\n  {}", job.last_words(OWN))))
        }
        Some(_) => {
            let text = fs::read_to_string(folder.join("result.txt")).unwrap_or_default();
            let Some(result) = Outcome::read(&text) else {
                return Err(failed(format!("it ended well, but with no result; it said:\n  {}", job.last_words(OWN))));
            };
            if with && !is_same(&result.calls, library) {
                let (calls, library) = (result.calls, library.display());
                return Err(failed(format!("the ranks did not load {library}: their collectives are {calls}'s")));
            }
            job.last_words(REMARK).lines().filter(|line| line.starts_with(REMARK)).for_each(remark);
            Ok(if case.is_start() { whole } else { result.taken })
        }
    }
}

/// Microseconds of processor time of all children that have ended, and theirs.
fn processor_time() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).map_err(Error::system("processor time of a job"))?;
    Ok((usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as f64)
}

/// What ranks wrote of wrong answers.
fn wrong_answers(folder: &Path, ranks: usize) -> Vec<String> {
    let read = |rank: usize| fs::read_to_string(folder.join(format!("wrong-{rank}.txt"))).ok();
    (0..ranks).filter_map(read).map(|text| text.trim().to_owned()).collect()
}

fn is_same(one: &str, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.into());
    real(Path::new(one)) == real(other)
}

/// What rank 0 wrote.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    /// The library whose collectives are called.
    calls: String,
    taken: Taken,
}

impl Outcome {
    /// Reads it, if it is whole.
    fn read(text: &str) -> Option<Outcome> {
        let mut outcome = Outcome::default();
        for line in text.lines() {
            match line.split_once(' ') {
                Some(("calls", path)) => outcome.calls = path.into(),
                Some(("steps", count)) => outcome.taken.steps = count.parse().ok()?,
                Some(("wall", time)) => outcome.taken.wall = time.parse().ok()?,
                Some(("processor", time)) => outcome.taken.processor = time.parse().ok()?,
                _ => return (line == "end").then_some(outcome),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_result_is_one() {
        let text = "calls /lib/libmpi.so\nsteps 64\nwall 1.5\nprocessor 3.25\nend\n";
        let taken = Taken { steps: 64, wall: 1.5, processor: 3.25 };
        assert_eq!(Outcome::read(text), Some(Outcome { calls: "/lib/libmpi.so".into(), taken }));
        for part in ["", "calls x\n", "steps 64\nwall 1.5", "steps many\nend", "wal 1\nend"] {
            assert_eq!(Outcome::read(part), None, "{part}");
        }
    }

    #[test]
    fn wrong_answers_are_found_by_rank() {
        let scratch = Scratch::new().unwrap();
        fs::write(scratch.path().join("wrong-1.txt"), "rank 1 of 3: no\n").unwrap();
        assert_eq!(wrong_answers(scratch.path(), 3), ["rank 1 of 3: no"]);
    }
}
