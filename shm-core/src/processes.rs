//! Ranks that are processes, for tests of this crate: each runs this test program again, with one test that plays its part.

use std::os::fd::AsRawFd;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};

use crate::job::Job;

/// Starts a rank of a job as a process that runs `test` (which is ignored otherwise), with `environment` besides the job's.
pub fn start(job: &Job, rank: usize, test: &str, environment: &[(&str, &str)]) -> Child {
    let fd = job.descriptor().try_clone_to_owned().unwrap();
    fcntl(&fd, FcntlArg::F_SETFD(FdFlag::empty())).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--nocapture"]).envs(environment.iter().copied());
    command.envs(job.environment(rank, fd.as_raw_fd())).stdout(Stdio::piped()).spawn().unwrap()
}

/// Waits for processes, 60 s at most for all, and returns what each said that it `found: `.
pub fn ended(children: Vec<Child>) -> Vec<String> {
    let end = Instant::now() + Duration::from_secs(60);
    let wait = |mut child: Child| {
        while child.try_wait().unwrap().is_none() {
            if Instant::now() > end {
                child.kill().unwrap();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}");
        text.lines().find_map(|line| line.split_once("found: ").map(|(_, found)| found.to_owned())).expect("a word")
    };
    children.into_iter().map(wait).collect()
}

/// Whether this process is there for `test` alone, which asks. If not, one that is runs now, and if it fails so does the test.
pub fn is_alone<T: Fn()>(test: T) -> bool {
    const ALONE: &str = "PHALANX_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let (_, name) = std::any::type_name_of_val(&test).split_once("::").unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    let output = command.args(["--exact", name, "--test-threads=1", "--nocapture"]).env(ALONE, "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "alone: {}\n{text}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    false
}
