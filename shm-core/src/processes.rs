//! Ranks that are processes, for tests of this crate: each runs this test program again, with one test that plays its
//! part. And what a test says that cannot run here.

use std::io::Write;
use std::os::fd::AsRawFd;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};

use crate::job::Job;

/// Says that the calling test, or a part of it, is skipped, past the capture of output.
pub fn say_skipped(why: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let _ = writeln!(std::io::stderr(), "skipped: {test}: {why}");
}

/// Starts a rank of a job as a process that runs `test` (which is ignored otherwise), with `environment` besides the
/// job's.
pub fn start(job: &Job, rank: usize, test: &str, environment: &[(&str, &str)]) -> Child {
    let fd = job.descriptor().try_clone_to_owned().unwrap();
    fcntl(&fd, FcntlArg::F_SETFD(FdFlag::empty())).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--nocapture"]).envs(environment.iter().copied());
    command.envs(job.environment(rank, fd.as_raw_fd())).stdout(Stdio::piped()).spawn().unwrap()
}

/// Waits for a process until `end`, when it is killed.
fn outcome(mut child: Child, end: Instant) -> Output {
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > end {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().unwrap()
}

/// Waits for processes, 60 s at most for all, and returns what each said that it `found: `.
pub fn ended(children: Vec<Child>) -> Vec<String> {
    let end = Instant::now() + Duration::from_secs(60);
    let wait = |child: Child| {
        let output = outcome(child, end);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}");
        text.lines().find_map(|line| line.split_once("found: ").map(|(_, found)| found.to_owned())).expect("a word")
    };
    children.into_iter().map(wait).collect()
}

/// Set to the name of the test that a process is there for.
const ALONE: &str = "PHALANX_TEST_ALONE";

/// Whether this process is there for `test` alone, which asks. If not, this starts such a process and waits for it, 60
/// s at most; the test fails if that one does.
pub fn is_alone<T: Fn()>(test: T) -> bool {
    let (_, name) = std::any::type_name_of_val(&test).split_once("::").unwrap();
    if std::env::var(ALONE).is_ok_and(|alone| alone == name) {
        return true;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--test-threads=1", "--nocapture"]).env(ALONE, name);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let output = outcome(child, Instant::now() + Duration::from_secs(60));
    let [text, errors] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    let has_passed = output.status.success() && text.contains("1 passed") && !errors.contains("skipped");
    assert!(has_passed, "alone: {}\n{text}{errors}", output.status);
    false
}
