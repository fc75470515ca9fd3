//! `bench commtest` and `bench allreduce` as a person runs them: their quick forms, stopped and resumed, refused, without a disk.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A run that takes longer hangs. Building the program of MPI ranks for the first time is most of it.
const LIMIT: Duration = Duration::from_secs(900);

/// A folder of its own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("bench-studies-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// The only record in it.
    fn record(&self) -> PathBuf {
        let mut all = fs::read_dir(self.0.join("records")).unwrap();
        let record = all.next().unwrap().unwrap().path();
        assert!(all.next().is_none(), "two records");
        record
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A running `bench`, ended with the test.
struct Running {
    child: Child,
    folder: PathBuf,
}

impl Running {
    fn start(folder: &Folder, mut command: Command) -> Running {
        let file = |name: &str| fs::File::create(folder.0.join(name)).unwrap();
        command.current_dir(&folder.0).stdin(Stdio::null()).stdout(file("out.txt")).stderr(file("err.txt"));
        Running { child: command.spawn().unwrap(), folder: folder.0.clone() }
    }

    /// Status, output and errors.
    fn end(mut self) -> (Option<i32>, String, String) {
        let begin = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status.code();
            }
            if begin.elapsed() > LIMIT {
                break None;
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        let read = |name: &str| fs::read_to_string(self.folder.join(name)).unwrap();
        (status, read("out.txt"), read("err.txt"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn bench(folder: &Folder, words: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bench"));
    command.args(words);
    Running::start(folder, command).end()
}

/// The same, where MPI is needed: nothing where it cannot be had here, with a word on why.
fn with_mpi(folder: &Folder, words: &[&str]) -> Option<(String, String)> {
    let (status, out, err) = bench(folder, words);
    for (sign, why) in [
        ("no mpicc of", "there is no Open MPI"),
        ("no mpirun of", "there is no Open MPI"),
        ("skipped: ", "namespaces are not allowed"),
    ] {
        if err.contains(sign) {
            eprintln!("skipped: {why}\n{err}");
            return None;
        }
    }
    if err.contains("could not build") && err.contains("libclang") {
        eprintln!("skipped: the bindings of MPI need libclang\n{err}");
        return None;
    }
    assert_eq!(status, Some(0), "{out}\n{err}");
    Some((out, err))
}

fn json(path: &Path) -> serde_json::Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn lines(record: &Path) -> Vec<String> {
    let text = fs::read_to_string(record.join("measurements.jsonl")).unwrap_or_default();
    text.lines().map(String::from).collect()
}

#[test]
fn commtest_over_shared_memory_alone() {
    let folder = Folder::new("channels");
    let (status, out, err) = bench(&folder, &["commtest", "--quick", "--over", "lines,cells", "--name", "try"]);
    assert_eq!(status, Some(0), "{out}\n{err}");
    for word in ["COMMTEST swap of 2M each way", "64 x 32K", "channels of cells", "broadcast among two"] {
        assert!(out.contains(word), "{word} in\n{out}");
    }
    let record = folder.record();
    let results = json(&record.join("results.json"));
    let curves = results["curves"].as_array().unwrap();
    // Lines and cells, unordered and ordered.
    assert_eq!(curves.len(), 4);
    for curve in curves {
        let points = curve["points"].as_array().unwrap();
        assert_eq!(points.len(), 7);
        for point in points {
            assert_eq!(point["packets"].as_f64().unwrap() * point["bytes"].as_f64().unwrap(), 2097152.0);
            let (own, all) = (point["time"]["median"].as_f64().unwrap(), point["elapsed"]["max"].as_f64().unwrap());
            assert!(own > 0.0 && all >= own, "{point}");
        }
        assert!(curve["fit"]["residual"].as_f64().unwrap() >= 0.0);
    }
    let csv = fs::read_to_string(record.join("results.csv")).unwrap();
    assert_eq!(csv.lines().count(), 1 + 4 * 7);
    for name in ["host.txt", "study.txt", "tables.txt", "commtest.svg"] {
        assert!(record.join(name).metadata().unwrap().len() > 0, "{name}");
    }
    assert!(fs::read_to_string(record.join("study.txt")).unwrap().contains("Worley"));
}

#[test]
fn commtest_by_every_protocol_over_mpi() {
    let folder = Folder::new("mpi");
    let Some((out, err)) = with_mpi(&folder, &["commtest", "--quick", "--total", "256K", "--over", "openmpi,cells"])
    else {
        return;
    };
    for word in ["IRECV IRSEND", "SENDRECV", "1.10", "0.5+", "Open MPI"] {
        assert!(out.contains(word), "{word} in\n{out}\n{err}");
    }
    let curves = json(&folder.record().join("results.json"))["curves"].as_array().unwrap().len();
    assert_eq!(curves, 37 + 2);
}

#[test]
fn commtest_on_an_emulated_cluster() {
    let folder = Folder::new("cluster");
    let words = [
        "commtest",
        "--quick",
        "--hosts",
        "3",
        "--total",
        "64K",
        "--command",
        "sendrecv",
        "--protocols",
        "0.3,1.4",
        "--eager",
    ];
    let Some((out, err)) = with_mpi(&folder, &words) else { return };
    assert!(out.contains("sendrecv of 64K") && out.contains("3 hosts x 1, links 100mbit, eager"), "{out}\n{err}");
    // All directions of a link at once against one after the other; no time is asserted, only that there are figures.
    let results = json(&folder.record().join("results.json"));
    let curves = results["curves"].as_array().unwrap();
    assert_eq!(curves.len(), 4);
    assert!(curves.iter().all(|curve| curve["achieved"][0].as_f64().unwrap() > 0.0));
}

#[test]
fn a_study_that_is_stopped_goes_on_and_loses_nothing() {
    let folder = Folder::new("stopped");
    let words =
        ["allreduce", "--quick", "-n", "2", "--no-baseline", "--turns", "3", "--time-per-size", "150", "--to", "256"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_bench"));
    command.args(words);
    let mut running = Running::start(&folder, command);
    let begin = Instant::now();
    let record = loop {
        let found = fs::read_dir(folder.0.join("records")).ok().and_then(|mut all| all.next()?.ok());
        if let Some(found) = found.map(|found| found.path()).filter(|path| lines(path).len() > 2) {
            break found;
        }
        assert!(begin.elapsed() < LIMIT && running.child.try_wait().unwrap().is_none(), "it ended or hangs");
        std::thread::sleep(Duration::from_millis(20));
    };
    kill(Pid::from_raw(running.child.id() as i32), Signal::SIGINT).unwrap();
    let (status, out, err) = running.end();
    assert_eq!(status, Some(130), "{out}\n{err}");
    assert!(err.contains("--resume records/") && err.contains("--turns 3"), "{err}");
    let before = lines(&record);
    assert!(before.len() > 2 && before.len() < 1 + 3 * 7, "{}", before.len());
    assert!(!record.join("results.json").exists());

    let resume = record.to_str().unwrap();
    let other: Vec<&str> = words.iter().map(|word| if *word == "256" { "512" } else { word }).collect();
    let (status, _, err) = bench(&folder, &[&other[..], &["--resume", resume]].concat());
    assert_eq!(status, Some(2), "{err}");
    assert!(err.contains("the setting"), "{err}");
    let (status, out, err) = bench(&folder, &[&words[..], &["--resume", resume]].concat());
    assert_eq!(status, Some(0), "{out}\n{err}");
    assert!(err.contains(&format!("{} of 21 measurements are finished already", before.len() - 1)), "{err}");
    let after = lines(&record);
    assert_eq!((after.len(), &after[..before.len()]), (1 + 21, &before[..]));
    assert_eq!(folder.record(), record);
    assert!(record.join("results.json").exists());
}

/// A limit on the size of files refuses what is written behind it, as a full disk does.
#[test]
fn a_disk_that_is_full_costs_the_record_and_not_the_figures() {
    let folder = Folder::new("full");
    let words = ["allreduce", "--quick", "-n", "2", "--no-baseline", "--turns", "3", "--time-per-size", "20"];
    // What it says goes through pipes, which have no such limit.
    let script = "set -o pipefail; \
        { (trap '' XFSZ; ulimit -f 4; exec \"$0\" \"$@\") 2>&1 1>&3 | cat >&2; } 3>&1 | cat";
    let mut command = Command::new("bash");
    command.args(["-c", script, env!("CARGO_BIN_EXE_bench")]).args(words);
    let (status, out, err) = Running::start(&folder, command).end();
    assert_eq!(status, Some(1), "{out}\n{err}");
    assert!(err.contains("cannot write") && err.contains("measurements are kept in memory"), "{err}");
    assert!(out.contains("latency and bandwidth, 2 ranks") && out.contains("operators, 2 ranks"), "{out}");
    let record = folder.record();
    let kept = lines(&record).len();
    assert!(kept > 1 && kept < 1 + 21, "{kept}");
    // With room again, what is missing is measured, and all is there.
    let (status, out, err) = bench(&folder, &[&words[..], &["--resume", record.to_str().unwrap()]].concat());
    assert_eq!(status, Some(0), "{out}\n{err}");
    assert_eq!(lines(&record).len(), 1 + 21);
}

#[test]
fn allreduce_on_a_node_beside_an_mpi() {
    let folder = Folder::new("node");
    let Some((out, err)) = with_mpi(&folder, &["allreduce", "--quick", "-n", "2,3", "--to", "4K"]) else { return };
    for word in ["allreduce, 2 ranks", "allreduce, 3 ranks", "break-even points", "operators", "direct", "auto user"] {
        assert!(out.contains(word), "{word} in\n{out}\n{err}");
    }
    let results = json(&folder.record().join("results.json"));
    let curves = results["curves"].as_array().unwrap();
    let sums =
        curves.iter().filter(|curve| curve["operator"] == "sum" && curve["place"].as_str().unwrap().starts_with('2'));
    assert!(sums.count() >= 6);
    for curve in curves {
        assert!(
            curve["points"].as_array().unwrap().iter().all(|point| point["time"]["median"].as_f64().unwrap() > 0.0)
        );
    }
}

#[test]
fn allreduce_by_every_schedule_on_an_emulated_cluster() {
    let folder = Folder::new("schedules");
    let words = ["allreduce", "--quick", "--hosts", "3", "--slots", "2", "--eager", "--to", "256"];
    let Some((out, err)) = with_mpi(&folder, &words) else { return };
    for word in ["3 hosts x 2", "native", "doubling", "circulant", "ring-all", "quickest"] {
        assert!(out.contains(word), "{word} in\n{out}\n{err}");
    }
    let results = json(&folder.record().join("results.json"));
    assert_eq!(results["curves"].as_array().unwrap().len(), 11);
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_measured() {
    let folder = Folder::new("refused");
    for (words, word) in [
        (&["commtest", "-n", "3"][..], "multiple of 2"),
        (&["commtest", "--distance", "2"], "distances are 1 to 1"),
        (&["commtest", "--total", "0"], "nothing to exchange"),
        (&["commtest", "--protocols", "0.11"], "no protocol"),
        (&["commtest", "--over", "cells", "--hosts", "2"], "leave out --hosts"),
        (&["commtest", "--over", "cells", "--protocols", "0.3"], "0.0 and 1.0"),
        (&["commtest", "--hosts", "1"], "takes two ranks"),
        (&["commtest", "--hosts", "2", "--cluster", "/nowhere"], "/nowhere"),
        (&["commtest", "--cycles", "0-1"], "--command sendrecv"),
        (&["commtest", "--over", "cells", "--resume", "/nowhere"], "/nowhere"),
        (&["allreduce", "--hosts", "1"], "takes two ranks"),
        (&["allreduce", "--from", "8", "--to", "4"], "--to 4"),
        (&["allreduce", "--baseline", "openmpi=/nowhere"], "apt-get install"),
        (&["allreduce", "--algorithm", "shears"], "no algorithm"),
        (&["allreduce", "--slots", "2"], "--hosts"),
        (&["allreduce", "--margin", "NaN"], "percent"),
    ] {
        let (status, out, err) = bench(&folder, words);
        assert_eq!(status, Some(2), "{words:?}\n{out}\n{err}");
        assert!(err.contains(word), "{words:?}: {err}");
    }
    let (status, _, err) = bench(&folder, &["commtest", "--over", "cells", "--output", "/proc/none"]);
    assert_eq!(status, Some(1), "{err}");
    assert!(err.contains("/proc/none"), "{err}");
    assert!(!folder.0.join("records").exists());
}

#[test]
fn without_an_mpi_it_is_said_what_to_install() {
    let folder = Folder::new("missing");
    let mut command = Command::new(env!("CARGO_BIN_EXE_bench"));
    command.args(["commtest", "--quick"]).env("PATH", "/nowhere");
    let (status, out, err) = Running::start(&folder, command).end();
    assert_eq!(status, Some(2), "{out}\n{err}");
    assert!(err.contains("apt-get install -y --no-install-recommends openmpi-bin libopenmpi-dev"), "{err}");
    assert!(!folder.0.join("records").exists());
}

#[test]
fn help_names_the_paper_and_what_differs() {
    for study in ["commtest", "allreduce"] {
        let output = Command::new(env!("CARGO_BIN_EXE_bench")).args([study, "--help"]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        for word in ["P. H. Worley", "The paper:", "Here:", "--quick", "--resume", "--output", "--name"] {
            assert!(text.contains(word), "{word} in\n{text}");
        }
    }
}
