//! Programs run to their end, under the command or not, and what they said.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::phalanx_command;
use crate::settings::forced;

/// How a program ended.
#[derive(Debug)]
pub struct Ended {
    /// Its status.
    pub status: ExitStatus,
    /// What it wrote to its standard output.
    pub stdout: String,
    /// What it wrote to its standard error.
    pub stderr: String,
    /// How long it ran.
    pub took: Duration,
}

impl Ended {
    /// Its standard output, if it ended well.
    ///
    /// # Panics
    /// When it did not.
    #[must_use]
    pub fn succeeded(self) -> String {
        assert!(self.status.success(), "{}\n{}\n{}", self.status, self.stdout, self.stderr);
        self.stdout
    }
}

/// The command line of a job: `program` on `ranks` ranks, under `phalanx run`.
#[must_use]
pub fn job(program: &str, ranks: usize, args: &[&str]) -> Command {
    job_under(&[], program, ranks, args)
}

/// The same with options of the launcher.
#[must_use]
pub fn job_under(options: &[&str], program: &str, ranks: usize, args: &[&str]) -> Command {
    let mut command = bare(phalanx_command());
    command.args(["run", "-n", &ranks.to_string()]).args(options).args(["--", program]).args(args);
    command
}

/// Has the ranks of a job take these algorithms ([`forced`]); where these have private buffers moved, the allocator
/// maps even short ones, as it otherwise does long ones.
pub fn force<'a>(command: &'a mut Command, rules: &str) -> &'a mut Command {
    if rules.contains("convert_from") {
        command.env("MALLOC_MMAP_THRESHOLD_", "4096").env("MALLOC_TOP_PAD_", "0");
    }
    command.env("PHALANX_ALGORITHM", forced(rules))
}

/// A command without what this process's environment says about jobs.
#[must_use]
pub fn bare(program: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        // What launchers of MPI programs say of the process that runs the tests is no matter of what they run.
        let foreign = ["PHALANX_", "OMPI_COMM_WORLD_", "PMI_", "PMIX_", "MPI_LOCAL", "SLURM_"];
        if name.to_str().is_some_and(|name| foreign.iter().any(|prefix| name.starts_with(prefix))) {
            command.env_remove(name);
        }
    }
    command
}

/// The state of a process in words of the system ("S (sleeping)"), if it is there. One that has ended is not, though nobody
/// may have asked how yet: that is up to whoever inherits it where its parent has ended.
#[must_use]
pub fn state_of(pid: i32) -> Option<String> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let state = status.lines().find_map(|line| line.strip_prefix("State:"))?.trim();
    (!state.starts_with(['Z', 'X'])).then(|| state.to_owned())
}

/// Runs a command to its end.
///
/// # Panics
/// When it has not ended after `limit`; it is ended then.
pub fn run(command: &mut Command, limit: Duration) -> Ended {
    let begin = Instant::now();
    let line = format!("{command:?}");
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{line}: {error}"));
    let stdout = reader(child.stdout.take().expect("a pipe"));
    let stderr = reader(child.stderr.take().expect("a pipe"));
    let status = wait(&mut child, begin + limit);
    let (stdout, stderr) = (stdout.join().expect("a reader"), stderr.join().expect("a reader"));
    let Some(status) = status else { panic!("watchdog: {line} has not ended after {limit:?}\n{stdout}\n{stderr}") };
    Ended { status, stdout, stderr, took: begin.elapsed() }
}

fn reader(mut from: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).expect("output of a child");
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// The status of a child that ends before `deadline`; others are ended.
fn wait(child: &mut Child, deadline: Instant) -> Option<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait().expect("waiting for a child") {
            return Some(status);
        }
        if Instant::now() > deadline {
            // The ranks of a launcher that is killed are ended too.
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        thread::sleep(Duration::from_millis(2));
    }
}
