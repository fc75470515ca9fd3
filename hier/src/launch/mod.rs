//! Starting the ranks of a job as processes, and watching over them until all have ended.
//!
//! [`Launch`] is to a job what [`std::process::Command`] is to a process. The command `phalanx run` is a thin face
//! over it; a program may use it to start ranks of its own:
//!
//! ```no_run
//! use hier::launch::Launch;
//!
//! # fn main() -> Result<(), hier::launch::LaunchError> {
//! let outcome = Launch::new("./program", ["--size", "1000"]).ranks(4).capture().run()?;
//! match &outcome.first_failure {
//!     Some(failure) => eprintln!("{failure}"),
//!     None => println!("rank 0 wrote {} bytes", outcome.captured[0].len()),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # What holds for a job
//!
//! * All ranks share one segment, which only they inherit, as an open descriptor: no file, no name. What a rank sees
//!   of it in its environment is `PHALANX_RANK`, `PHALANX_SIZE`, and two variables by which it finds the segment.
//! * Each rank leads a process group of its own, so that signals reach what a wrapper such as `sh -c` started too.
//! * When a rank fails, the others are told through the segment at once, and have a grace time to end by themselves;
//!   then come SIGTERM and, after the same time again, SIGKILL.
//! * No rank outlives the launcher, however it ends: the kernel sees to the ranks, and a guard process to what they
//!   started. A process that leaves both its group and its parent, as a daemon does, is on its own.

mod ending;
mod error;
mod groups;
mod guard;
mod input;
mod outcome;
mod ranks;
mod relay;
mod report;
mod setting;
mod signals;
mod spawn;
mod tag;
mod watch;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, PipeReader, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sched::CpuSet;
use nix::sys::stat::fstat;
use nix::unistd::getpid;
use shm_core::job::{Job, JobSpec};
use topo::BindPolicy;

pub use error::LaunchError;
pub use outcome::{End, Failure, Outcome};
pub use setting::{crowd, default_policy, usable_cores};
pub use spawn::check_program;

use ending::Ending;
use guard::Guard;
use input::Feed;
use ranks::Ranks;
use relay::{Gate, Passed, Relay, Sink};
use report::Report;
use setting::Setting;
use signals::{Ends, Signals};
use spawn::Preparation;
use watch::{Seen, Watch};

/// The most ranks of a job.
pub const MOST_RANKS: usize = shm_core::segment::layout::MOST_RANKS;

/// Where the output of the ranks goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Output {
    /// Where the launcher's goes: the ranks inherit its standard output and standard error.
    #[default]
    Inherited,
    /// There too, but line by line, each with the rank that wrote it: `[3] text`. A last line without an end gets
    /// one; a line of more than 16 MiB is cut into several.
    Tagged,
    /// Standard output into [`Outcome::captured`], standard error where the launcher's goes.
    Captured,
}

/// A job that is to be started: a program, how many ranks of it, and how.
///
/// The thread that calls [`run`](Launch::run) is the ranks' parent.
#[derive(Debug, Clone)]
pub struct Launch {
    program: OsString,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    ranks: usize,
    bind: Option<BindPolicy>,
    output: Output,
    grace: Duration,
    forward: bool,
    quiet: bool,
}

impl Launch {
    /// A job of one rank of `program`, which is looked for on the `PATH` unless it holds a `/`.
    pub fn new<A: AsRef<OsStr>>(program: impl AsRef<OsStr>, args: impl IntoIterator<Item = A>) -> Self {
        Launch {
            program: program.as_ref().to_owned(),
            args: args.into_iter().map(|arg| arg.as_ref().to_owned()).collect(),
            env: Vec::new(),
            ranks: 1,
            bind: None,
            output: Output::Inherited,
            grace: Duration::from_secs(2),
            forward: false,
            quiet: false,
        }
    }

    /// How many ranks, 1 to [`MOST_RANKS`].
    #[must_use]
    pub fn ranks(mut self, ranks: usize) -> Self {
        self.ranks = ranks;
        self
    }

    /// How the ranks are bound. Without this call: each to a core, if there are as many usable cores as ranks, and
    /// else not at all ([`default_policy`]).
    #[must_use]
    pub fn bind(mut self, policy: BindPolicy) -> Self {
        self.bind = Some(policy);
        self
    }

    /// Marks each line of output with the rank that wrote it: [`Output::Tagged`].
    #[must_use]
    pub fn tag(self) -> Self {
        self.output(Output::Tagged)
    }

    /// Keeps what the ranks write to their standard output: [`Output::Captured`].
    #[must_use]
    pub fn capture(self) -> Self {
        self.output(Output::Captured)
    }

    /// Where the output of the ranks goes.
    #[must_use]
    pub fn output(mut self, output: Output) -> Self {
        self.output = output;
        self
    }

    /// Sets an environment variable for all ranks. Those that shape a job (`PHALANX_ALGORITHM`, `PHALANX_TABLE`,
    /// `PHALANX_TREES`, `PHALANX_ARENA`, `PHALANX_HEAP`, `PHALANX_CMA`, `PHALANX_PLACE`, `PHALANX_CONVERT`,
    /// `PHALANX_DEBUG`) take effect here, before those of this process's own environment.
    #[must_use]
    pub fn env(mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.push((key.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// How long the ranks have to end by themselves when one has failed, before SIGTERM, and after that (or after a
    /// signal that asks them to end) before SIGKILL. Two seconds without this call.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Passes SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP and SIGCONT on to the ranks while the job
    /// runs, instead of what this process does with them otherwise. Signals that it ignores it goes on to ignore.
    ///
    /// For a process that does nothing else meanwhile. Without this call, a signal that ends this process ends the
    /// ranks too.
    #[must_use]
    pub fn forward_signals(mut self) -> Self {
        self.forward = true;
        self
    }

    /// Says nothing on standard error about ranks that fail, nor about output that cannot be written. The [`Outcome`]
    /// tells it all.
    #[must_use]
    pub fn quiet(mut self) -> Self {
        self.quiet = true;
        self
    }

    /// Starts the ranks, and returns when all have ended and nothing of the job is left.
    ///
    /// Rank 0 gets the standard input of this process, the others an empty one. A SIGCHLD that this process ignores (or
    /// handles with `SA_NOCLDWAIT`) is not ignored meanwhile: the system would not say how ranks end.
    ///
    /// # Errors
    ///
    /// A job that does not start: see [`LaunchError`]. The ranks that had started by then are ended again.
    pub fn run(&self) -> Result<Outcome, LaunchError> {
        if !(1..=MOST_RANKS).contains(&self.ranks) {
            return Err(LaunchError::Ranks { ranks: self.ranks, most: MOST_RANKS });
        }
        let _ends = Ends::keep()?;
        let mut setting = Setting::discover(self.ranks, self.bind)?;
        let masks = std::mem::take(&mut setting.masks);
        let spec = setting.spec(self.ranks, &self.env)?;
        // What this process has buffered comes before what the ranks write.
        let _ = io::stdout().flush();

        // Before the segment exists, and before everything that the ranks hold: see the guard.
        let guard = Guard::start().map_err(|error| LaunchError::system("making the guard process", error))?;
        let ended = self.run_guarded(&guard, &masks, &spec);
        // Nobody is left for it to end, neither after a job nor after an error.
        guard.dismiss();
        let (seen, relays) = ended?;
        // From here on only the reader of the output is waited for, and a signal does to this process what it likes.
        let mut passed: Vec<Passed> = relays.into_iter().map(Relay::finish).collect();
        let unwritten = passed.iter_mut().find_map(|stream| stream.unwritten.take()).map(|error| error.to_string());
        if let Some(why) = &unwritten {
            Report { quiet: self.quiet, gate: Gate::default() }.say(format_args!("cannot write: {why}"));
        }
        Ok(Outcome {
            statuses: seen.statuses,
            first_failure: seen.first_failure,
            interrupted: seen.interrupted,
            captured: if self.output == Output::Captured { passed.swap_remove(0).captured } else { vec![] },
            unwritten,
        })
    }

    fn run_guarded(
        &self,
        guard: &Guard,
        masks: &[Option<CpuSet>],
        spec: &JobSpec,
    ) -> Result<(Seen, Vec<Relay>), LaunchError> {
        let job = Job::create(spec).map_err(LaunchError::Job)?;
        let signals = if self.forward { Some(Signals::listen()?) } else { None };
        let (mut ranks, pipes) = self.start(masks, guard, &job)?;
        let (relays, gate) = pipes.relay(self.output)?;

        let report = Report { quiet: self.quiet, gate };
        let feed = ranks.take_input(0).and_then(|pipe| Feed::new(pipe).ok());
        let watch = Watch {
            job: &job,
            guard,
            signals: signals.as_ref(),
            report: &report,
            ranks,
            feed,
            ending: Ending::new(self.grace),
            held: None,
            first_failure: None,
            interrupted: None,
        };
        Ok((watch.run(), relays))
    }

    fn start(&self, masks: &[Option<CpuSet>], guard: &Guard, job: &Job) -> Result<(Ranks, Pipes), LaunchError> {
        let descriptor = job.descriptor().as_raw_fd();
        let mut ranks = Ranks::default();
        let mut pipes = Pipes::default();
        for (rank, &mask) in masks.iter().enumerate() {
            let mut command = Command::new(&self.program);
            command.args(&self.args).envs(self.env.iter().map(|(key, value)| (key, value)));
            command.envs(job.environment(rank, descriptor));
            command.stdin(match rank {
                0 if input::is_terminal() => Stdio::piped(),
                0 => Stdio::inherit(),
                _ => no_input()?,
            });
            if self.output != Output::Inherited {
                command.stdout(Pipes::end(&mut pipes.stdout)?);
            }
            if self.output == Output::Tagged {
                command.stderr(Pipes::end(&mut pipes.stderr)?);
            }
            let preparation = Preparation { launcher: getpid(), guard: guard.link(), segment: descriptor, mask };
            ranks.add(spawn::start(&mut command, preparation, rank, self.ranks)?);
        }
        Ok((ranks, pipes))
    }
}

/// An empty input. Opened here: where it is missing, as in a bare chroot, the rank's own start would fail as if its
/// program were not there.
fn no_input() -> Result<Stdio, LaunchError> {
    let opened = File::open("/dev/null").map(Stdio::from);
    opened.map_err(|error| LaunchError::system("opening /dev/null, the input of ranks", error))
}

/// The launcher's ends of the pipes that ranks write to, in order of rank.
#[derive(Default)]
struct Pipes {
    stdout: Vec<PipeReader>,
    stderr: Vec<PipeReader>,
}

impl Pipes {
    /// Makes one more pipe, and returns the end for the rank.
    fn end(readers: &mut Vec<PipeReader>) -> Result<Stdio, LaunchError> {
        let (reader, writer) =
            io::pipe().map_err(|error| LaunchError::system("making a pipe for the output of a rank", error))?;
        readers.push(reader);
        Ok(writer.into())
    }

    /// Starts to read. Also returns what to hold while something is written to standard error.
    fn relay(self, output: Output) -> Result<(Vec<Relay>, Gate), LaunchError> {
        let gate = Gate::default();
        let relays = match output {
            Output::Inherited => vec![],
            Output::Captured => vec![Relay::start(self.stdout, Sink::Captured)?],
            Output::Tagged => {
                let (stdout, stderr) = (io::stdout(), io::stderr());
                let together = same_place(&stdout, &stderr);
                let stdout_gate = if together { gate.clone() } else { Gate::default() };
                vec![
                    Relay::start(self.stdout, Sink::Tagged { file: file(&stdout)?, gate: stdout_gate })?,
                    Relay::start(self.stderr, Sink::Tagged { file: file(&stderr)?, gate: gate.clone() })?,
                ]
            }
        };
        Ok((relays, gate))
    }
}

/// A descriptor of its own for the same place, without a buffer.
fn file(stream: &impl AsFd) -> Result<File, LaunchError> {
    let descriptor = stream.as_fd().try_clone_to_owned();
    descriptor.map(File::from).map_err(|error| LaunchError::system("taking over the output", error))
}

fn same_place(one: &impl AsFd, other: &impl AsFd) -> bool {
    match (fstat(one), fstat(other)) {
        (Ok(one), Ok(other)) => (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Launch {
        Launch::new("sh", ["-c", script]).quiet().grace(Duration::from_millis(200))
    }

    #[test]
    fn captures_what_each_rank_writes() {
        let script = "echo $WORD $PHALANX_RANK; head -c 300000 /dev/zero";
        let outcome = shell(script).ranks(3).env("WORD", "rank").capture().run().unwrap();
        assert!(outcome.success());
        assert_eq!(outcome.statuses, [End::Exited(0); 3]);
        for (rank, text) in outcome.captured.iter().enumerate() {
            assert_eq!(text.len(), 300_007);
            assert!(text.starts_with(format!("rank {rank}\n").as_bytes()));
        }
    }

    #[test]
    fn tells_who_failed_first() {
        let outcome = shell("test $PHALANX_RANK = 2 || exec sleep 20; kill -9 $$").ranks(4).run().unwrap();
        let failure = outcome.first_failure.as_ref().unwrap();
        assert_eq!((failure.rank, failure.end), (2, End::Killed { signal: 9, core: false }));
        assert_eq!((outcome.status(), outcome.interrupted), (137, None));
        assert_eq!(outcome.statuses[0], End::Killed { signal: 15, core: false });
    }

    #[test]
    fn jobs_of_several_threads_do_not_meddle() {
        std::thread::scope(|scope| {
            let jobs: Vec<_> = (0..6)
                .map(|job| scope.spawn(move || shell(&format!("sleep 0.{job}; echo {job}")).ranks(2).capture().run()))
                .collect();
            for (number, job) in jobs.into_iter().enumerate() {
                let outcome = job.join().unwrap().unwrap();
                assert_eq!(outcome.captured, [0; 2].map(|_| format!("{number}\n").into_bytes()));
            }
        });
    }

    #[test]
    fn numbers_of_ranks_that_no_job_has() {
        for ranks in [0, MOST_RANKS + 1] {
            let error = shell("exit 0").ranks(ranks).run().unwrap_err();
            assert!(error.to_string().contains("1 to 256"), "{error}");
            assert_eq!(error.status(), 2);
        }
    }
}
