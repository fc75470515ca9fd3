//! Launchers that run, what they and their ranks wrote, and what is left of them in the end.
//!
//! Processes of a job are found by a variable in their environment that no other job has.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use phalanx_tests::mark::Mark;

/// How long any one step of a test may take. Far above what it needs, on a machine that does much else.
const WATCHDOG: Duration = Duration::from_secs(25);

/// A launcher that runs, and everything that it and its ranks wrote.
pub struct Running {
    pub launcher: Child,
    mark: Mark,
    stdout: Option<JoinHandle<Vec<u8>>>,
    stderr: Option<JoinHandle<Vec<u8>>>,
}

/// What is left of it in the end.
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: String,
    mark: Mark,
}

fn drain(mut stream: impl Read + Send + 'static) -> Option<JoinHandle<Vec<u8>>> {
    Some(thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        bytes
    }))
}

/// Starts `phalanx run` with these arguments, and `input` at its standard input.
pub fn start_with(arguments: &[&str], input: &[u8]) -> Running {
    start_by(Command::new(phalanx_tests::phalanx_command()).arg("run").args(arguments), input)
}

pub fn start_by(command: &mut Command, input: &[u8]) -> Running {
    let mark = Mark::new();
    // A job of a script in the background ignores SIGINT and SIGQUIT, and so would its launcher.
    let mut started = Command::new("env")
        .arg("--default-signal=INT,QUIT,HUP,TERM,USR1,USR2,TSTP")
        .arg(command.get_program())
        .args(command.get_args())
        .envs([mark.variable()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the launcher starts");
    let mut pipe = started.stdin.take().expect("a pipe");
    let input = input.to_vec();
    thread::spawn(move || pipe.write_all(&input));
    let stdout = drain(started.stdout.take().expect("a pipe"));
    let stderr = drain(started.stderr.take().expect("a pipe"));
    Running { launcher: started, mark, stdout, stderr }
}

pub fn start(arguments: &[&str]) -> Running {
    start_with(arguments, b"")
}

pub fn run(arguments: &[&str]) -> Ended {
    start(arguments).end()
}

/// Waits until something holds, or panics when the watchdog's time is over.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + WATCHDOG;
    while !holds() {
        assert!(Instant::now() < end, "waited too long until {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

impl Running {
    pub fn end(mut self) -> Ended {
        let mut status = None;
        until("the launcher ends", || {
            status = self.launcher.try_wait().expect("it is a child");
            status.is_some()
        });
        // Whoever kept them open would keep the reader of a pipeline waiting.
        until("its output is closed", || self.stdout.as_ref().is_none_or(JoinHandle::is_finished));
        until("its errors are closed", || self.stderr.as_ref().is_none_or(JoinHandle::is_finished));
        let read = |thread: &mut Option<JoinHandle<Vec<u8>>>| thread.take().and_then(|thread| thread.join().ok());
        Ended {
            status: status.expect("it has ended"),
            stdout: read(&mut self.stdout).unwrap_or_default(),
            stderr: String::from_utf8_lossy(&read(&mut self.stderr).unwrap_or_default()).into_owned(),
            mark: self.mark.clone(),
        }
    }

    pub fn signal(&self, signal: &str) {
        send(signal, self.launcher.id());
    }

    /// The ranks, and what they started: not the launcher, nor its guard (which has its command line).
    pub fn ranks(&self) -> Vec<u32> {
        let mine =
            |pid: &u32| fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !holds(&line, b"phalanx\0run\0"));
        self.mark.processes().into_iter().filter(mine).collect()
    }

    /// Waits until so many processes of the ranks are what `name` says.
    pub fn until_there_are(&self, count: usize, name: &str) {
        until(&format!("there are {count} {name}"), || {
            let comm = |pid: u32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            self.ranks().into_iter().filter(|&pid| comm(pid).trim() == name).count() == count
        });
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.launcher.kill();
        let _ = self.launcher.wait();
        // A test that failed may have left them.
        if thread::panicking() {
            self.mark.processes().into_iter().for_each(|pid| send("KILL", pid));
        }
    }
}

impl Ended {
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| panic!("{}: {}", self.status, self.stderr))
    }

    pub fn lines(&self) -> BTreeSet<String> {
        String::from_utf8_lossy(&self.stdout).lines().map(str::to_owned).collect()
    }

    pub fn leaves_nothing(&self) {
        until("all of the job has ended", || self.mark.processes().is_empty());
    }
}

fn send(signal: &str, pid: u32) {
    let status = Command::new("sh").args(["-c", &format!("kill -{signal} {pid}")]).stderr(Stdio::null()).status();
    assert!(status.is_ok(), "sh starts");
}

fn holds(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// The letter of a process's state, and the PUs that it may use.
pub fn status_of(pid: u32, name: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim().to_owned()
}

/// A file for the length of a test.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new(name: &str, content: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("phalanx-{}-{name}", std::process::id()));
        fs::write(&path, content).expect("a file in the temporary folder");
        Scratch(path)
    }

    pub fn path(&self) -> &str {
        self.0.to_str().expect("plain characters")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
