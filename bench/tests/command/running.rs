//! Runs of the command, each in a folder of its own.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use phalanx_tests::library::{Library, skip};

/// A run that takes longer hangs.
pub const LIMIT: Duration = Duration::from_secs(300);

/// A folder of its own, removed at the end.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let (process, number) = (std::process::id(), MADE.fetch_add(1, Relaxed));
        let path = std::env::temp_dir().join(format!("bench-test-{name}-{process}-{number}"));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn has_records(&self) -> bool {
        self.0.join("records").exists()
    }

    /// The records in it, by name.
    pub fn records(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.0.join("records")).into_iter().flatten();
        let paths = entries.map(|entry| entry.unwrap().path());
        let mut records: Vec<PathBuf> = paths.filter(|path| path.is_dir()).collect();
        records.sort();
        records
    }

    /// The only record in it.
    pub fn record(&self) -> PathBuf {
        let records = self.records();
        assert_eq!(records.len(), 1, "{records:?}");
        records[0].clone()
    }

    /// The names of all that is in it, but for the output.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| !name.ends_with(".txt")).collect()
    }

    /// A script that stands for the one of the emulated cluster.
    pub fn script(&self, text: &str) -> String {
        let path = self.0.join("run");
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// How a run ended.
pub struct Ended {
    /// Nothing if it was killed, by the limit of time for one.
    pub status: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Ended {
    /// It ended with this status.
    #[track_caller]
    pub fn with(self, status: i32) -> Self {
        assert_eq!(self.status, Some(status), "{}\n{}", self.out, self.err);
        self
    }
}

/// A running command, ended with the test.
pub struct Running {
    pub child: Child,
    folder: PathBuf,
}

impl Running {
    /// Starts it in the folder, where its scratch files go, too.
    pub fn start(folder: &Folder, mut command: Command) -> Self {
        let file = |name: &str| fs::File::create(folder.0.join(name)).unwrap();
        command.current_dir(&folder.0).env("TMPDIR", &folder.0);
        command.stdin(Stdio::null()).stdout(file("out.txt")).stderr(file("err.txt"));
        Self { child: command.spawn().unwrap(), folder: folder.0.clone() }
    }

    pub fn end(mut self) -> Ended {
        let begin = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status.code();
            }
            if begin.elapsed() > LIMIT {
                break None;
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let read = |name: &str| String::from_utf8_lossy(&fs::read(self.folder.join(name)).unwrap()).into_owned();
        Ended { status, out: read("out.txt"), err: read("err.txt") }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `bench LINE`, of words between spaces.
pub fn command(line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bench"));
    command.args(line.split_whitespace());
    command
}

/// Runs `bench LINE` to its end.
pub fn bench(folder: &Folder, line: &str) -> Ended {
    Running::start(folder, command(line)).end()
}

/// An MPI of Debian that is here.
pub fn mpi() -> Option<Library> {
    let of_debian = |library: &Library| matches!(library.name, "openmpi" | "mpich") && library.is_here();
    Library::all().iter().copied().find(of_debian)
}

/// Runs `bench LINE`, with a program of ranks for the MPI, which the line names; nothing where it takes a cluster that
/// cannot be.
pub fn with_mpi(folder: &Folder, library: Library, line: &str) -> Option<Ended> {
    let ended = bench(folder, &format!("{line} --program {}", library.bench().display()));
    if let Some(why) = ended.err.lines().find(|line| line.contains("skipped: ")) {
        skip("PHALANX_TEST_CLUSTER", why);
        return None;
    }
    Some(ended.with(0))
}

pub fn json(path: &Path) -> serde_json::Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// The finished measurements of a study's record, below the line that says what they are of.
pub fn measurements(record: &Path) -> Vec<String> {
    let text = fs::read_to_string(record.join("measurements.jsonl")).unwrap_or_default();
    text.lines().map(String::from).collect()
}
