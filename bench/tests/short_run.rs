//! The command as a person runs it, with real ranks, in a few seconds.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A run that takes longer than this hangs.
const LIMIT: Duration = Duration::from_secs(120);

/// Runs `bench` with `arguments`; its scratch folders and records go below `folder`.
fn bench(folder: &Path, arguments: &[&str]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_bench"))
        .args(arguments)
        .env("TMPDIR", folder)
        .current_dir(folder)
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let pid = child.id();
    let watchdog = std::thread::spawn(move || {
        let begin = Instant::now();
        while begin.elapsed() < LIMIT {
            if !Path::new(&format!("/proc/{pid}")).exists() {
                return;
            }
            sleep(Duration::from_millis(50));
        }
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid as i32), nix::sys::signal::Signal::SIGKILL);
    });
    let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        let _ = std::io::Read::read_to_end(&mut err, &mut text);
        text
    });
    let mut stdout = Vec::new();
    std::io::Read::read_to_end(&mut out, &mut stdout).unwrap();
    let status = child.wait().unwrap();
    watchdog.join().unwrap();
    Output { status, stdout, stderr: reader.join().unwrap() }
}

/// A folder of its own for one test, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("bench-test-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn two_ranks_are_measured_beside_the_floor_and_recorded() {
    let folder = Folder::new("short");
    let output = bench(
        &folder.0,
        &[
            "collectives",
            "-n",
            "2",
            "--short",
            "--max",
            "1K",
            "--buffers",
            "all",
            "--time-per-size",
            "10",
            "--name",
            "try",
        ],
    );
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    for word in
        ["beside the machine's floor", "allreduce, 2 ranks", "cold buffers", "x floor", "collectives-2-ranks.svg"]
    {
        assert!(out.contains(word), "{word} in\n{out}");
    }
    let record = fs::read_dir(folder.0.join("records")).unwrap().next().unwrap().unwrap().path();
    assert!(record.to_string_lossy().ends_with("-try"));
    let csv = fs::read_to_string(record.join("results.csv")).unwrap();
    // A barrier; three collectives, four buffer modes and a fifth of one of them, sizes 8, 64, 512 and 1K; the head.
    assert_eq!(csv.lines().count(), 1 + 1 + (3 * 4 + 1) * 4);
    let json: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(record.join("results.json")).unwrap()).unwrap();
    assert_eq!(json["rows"].as_array().unwrap().len(), 1 + (3 * 4 + 1) * 4);
    assert!(json["host"]["rustc"].as_str().unwrap().starts_with("rustc"));
    for name in ["host.txt", "tables.txt", "collectives-2-ranks.svg"] {
        assert!(record.join(name).metadata().unwrap().len() > 0, "{name}");
    }
    assert_eq!(folder.names(), ["records"], "something was left behind");
}

#[test]
fn an_unwritable_record_costs_the_record_and_not_the_results() {
    let folder = Folder::new("unwritable");
    let output = bench(
        &folder.0,
        &[
            "collectives",
            "-n",
            "2",
            "--max",
            "8",
            "--min",
            "8",
            "--buffers",
            "warm",
            "--no-floor",
            "--time-per-size",
            "5",
            "--record",
            "/proc/none",
        ],
    );
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{out}\n{err}");
    assert!(out.contains("allreduce, 2 ranks"), "{out}");
    assert!(err.contains("cannot make the record folder /proc/none"), "{err}");
}

#[test]
fn late_ranks_other_roots_and_other_types() {
    let folder = Folder::new("late");
    let output = bench(
        &folder.0,
        &[
            "collectives",
            "-n",
            "3",
            "--max",
            "64",
            "--min",
            "4",
            "--type",
            "i64",
            "--root",
            "2",
            "--late",
            "1:300",
            "--no-floor",
            "--no-record",
            "--time-per-size",
            "5",
            "--turns",
            "1",
        ],
    );
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    assert!(out.contains("broadcast, 3 ranks"), "{out}");
    assert!(!folder.0.join("records").exists());
}

#[test]
fn counted_bytes_are_those_of_the_formulas() {
    let folder = Folder::new("bytes");
    let output = bench(&folder.0, &["bytes", "-n", "2,3,5", "--size", "256K"]);
    let out = text(&output.stdout);
    assert!(output.status.success(), "{out}\n{}", text(&output.stderr));
    assert!(out.contains("9 of 9 equal"), "{out}");
}

#[test]
fn an_mpi_that_is_not_there_is_explained_with_status_2() {
    let folder = Folder::new("missing");
    let output = bench(&folder.0, &["collectives", "--baseline", "openmpi=/nowhere"]);
    assert_eq!(output.status.code(), Some(2));
    let err = text(&output.stderr);
    assert!(err.contains("apt-get install -y --no-install-recommends openmpi-bin libopenmpi-dev"), "{err}");
    assert!(folder.names().is_empty(), "something was left behind");
}
