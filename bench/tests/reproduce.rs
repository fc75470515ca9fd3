//! `bench reproduce` in its short form and `bench report`, as a person runs them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A run that takes longer hangs. Building the program of ranks for the first time is most of it.
const LIMIT: Duration = Duration::from_secs(900);

/// A folder of its own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("bench-reproduce-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// The records in it, by name.
    fn records(&self) -> Vec<PathBuf> {
        let mut records: Vec<PathBuf> = fs::read_dir(self.0.join("records"))
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_dir())
            .collect();
        records.sort();
        records
    }

    /// What the record of a study holds.
    fn outcome(&self, study: &str) -> Value {
        let record =
            self.records().into_iter().find(|path| path.to_string_lossy().ends_with(&format!("-{study}"))).unwrap();
        let results: Value = serde_json::from_str(&fs::read_to_string(record.join("results.json")).unwrap()).unwrap();
        for name in ["host.txt", "study.txt", "tables.txt", "results.csv", "measurements.jsonl"] {
            assert!(record.join(name).metadata().unwrap().len() > 0, "{name} of {study}");
        }
        results["reproduced"].clone()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn in_path(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(program).is_file()))
}

fn start(folder: &Path, arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_bench"))
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(fs::File::create(folder.join("out.txt")).unwrap())
        .stderr(fs::File::create(folder.join("err.txt")).unwrap())
        .spawn()
        .unwrap()
}

/// Waits for the end; status, output and errors.
fn end(folder: &Path, mut child: Child) -> (Option<i32>, String, String) {
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status.code();
        }
        if begin.elapsed() > LIMIT {
            child.kill().unwrap();
            child.wait().unwrap();
            break None;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    let [out, err] = ["out.txt", "err.txt"].map(|name| fs::read_to_string(folder.join(name)).unwrap());
    (status, out, err)
}

fn bench(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    end(folder, start(folder, arguments))
}

/// Whether the emulated cluster and an MPI with its bindings are here; otherwise it says what is not.
fn cluster_is_here(err: &str) -> bool {
    for word in ["skipped: ", "libclang", "no mpicc"] {
        if let Some(line) = err.lines().find(|line| line.contains(word)) {
            eprintln!("skipped: {line}");
            return false;
        }
    }
    true
}

/// The studies on the emulated cluster, then a page of their records.
#[test]
fn studies_on_the_cluster_in_their_short_form() {
    let Some(library) = ["openmpi", "mpich"].into_iter().find(|name| in_path(&format!("mpicc.{name}"))) else {
        eprintln!("skipped: there is no mpicc.openmpi or mpicc.mpich");
        return;
    };
    let folder = Folder::new("cluster");
    for (study, table, findings) in
        [("ring", "block", 5), ("bcast", "native ring", 4), ("dpml", "leaders", 3), ("salar", "slices", 3)]
    {
        let (status, out, err) = bench(&folder.0, &["reproduce", study, "--quick", "--mpi", library]);
        if !cluster_is_here(&err) {
            return;
        }
        assert_eq!(status, Some(0), "{study}\n{out}\n{err}");
        assert!(out.contains("beside the paper") && out.contains("short form"), "{out}");
        let outcome = folder.outcome(&format!("reproduce-{study}-quick"));
        let tables = outcome["tables"].as_array().unwrap();
        assert!(tables.iter().any(|sheet| sheet["title"].as_str().unwrap().contains(table)), "{study}: {tables:?}");
        assert!(outcome["findings"].as_array().unwrap().len() >= findings, "{study}: {:?}", outcome["findings"]);
        for chart in outcome["charts"].as_array().unwrap() {
            for curve in chart["curves"].as_array().unwrap() {
                let points = curve["points"].as_array().unwrap();
                assert!(points.iter().all(|point| point[1].as_f64().unwrap() > 0.0), "{study}: {curve}");
            }
        }
    }
    let (status, out, err) = bench(&folder.0, &["report"]);
    assert_eq!(status, Some(0), "{out}\n{err}");
    let page = fs::read_to_string(folder.0.join("records/report.html")).unwrap();
    for word in [
        "The ring allreduce",
        "The bandwidth-saving broadcast",
        "Several leaders a node",
        "The pipeline of node and network",
    ] {
        assert!(page.contains(word), "{word}");
    }
}

/// A study that is stopped by SIGTERM keeps what is finished and goes on with it.
#[test]
fn the_study_of_a_node_is_stopped_and_goes_on() {
    let folder = Folder::new("node");
    let words = ["reproduce", "release-gather", "--quick", "--ranks", "2", "--sizes", "8,16K"];
    let child = start(&folder.0, &words);
    let begin = Instant::now();
    let finished = || {
        let records = folder.records();
        let text = records.first().and_then(|record| fs::read_to_string(record.join("measurements.jsonl")).ok());
        text.map_or(0, |text| text.lines().count().saturating_sub(1))
    };
    while finished() < 2 && begin.elapsed() < LIMIT {
        std::thread::sleep(Duration::from_millis(20));
    }
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(child.id() as i32), nix::sys::signal::Signal::SIGTERM).unwrap();
    let (status, out, err) = end(&folder.0, child);
    assert_eq!(status, Some(130), "{out}\n{err}");
    assert!(err.contains("--resume"), "{err}");
    let (kept, record) = (finished(), folder.records()[0].clone());
    assert!(kept >= 2);

    let mut again: Vec<&str> = words.to_vec();
    again.extend(["--resume", record.to_str().unwrap()]);
    let (status, out, err) = bench(&folder.0, &again);
    assert_eq!(status, Some(0), "{out}\n{err}");
    assert!(err.contains(&format!("{kept} of ")), "{err}");
    assert_eq!(folder.records().len(), 1);
    let outcome = folder.outcome("reproduce-release-gather-quick");
    assert!(outcome["findings"].as_array().unwrap().len() >= 6, "{:?}", outcome["findings"]);
    for word in ["SIMULATED reduce", "size and number of cells", "late"] {
        assert!(out.contains(word), "{word} in\n{out}");
    }
}

#[test]
fn without_namespaces_counts_and_simulations_remain() {
    let folder = Folder::new("skipped");
    let script = folder.0.join("run");
    fs::write(&script, "#!/bin/sh\necho 'cluster: skipped: namespaces are not allowed' >&2\nexit 77\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let script = script.to_str().unwrap();
    let (status, out, err) =
        bench(&folder.0, &["reproduce", "bcast", "--quick", "--cluster", script, "--program", "/bin/true"]);
    assert_eq!(status, Some(0), "{out}\n{err}");
    assert!(err.contains("skipped: the emulated cluster: namespaces are not allowed"), "{err}");
    assert!(out.contains("left out: all that needs the emulated cluster") && out.contains("16512"), "{out}");
    let (status, out, err) = bench(&folder.0, &["reproduce", "ring", "--no-cluster", "--name", "counted"]);
    assert_eq!(status, Some(0), "{out}\n{err}");
    assert!(out.contains("left out") && out.contains("1 Gbit/s"), "{out}");
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_measured() {
    let folder = Folder::new("refused");
    let script = folder.0.join("broken");
    fs::write(&script, "#!/bin/sh\necho 'cluster: no room left' >&2\nexit 125\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let broken = script.to_str().unwrap();
    for (words, status, word) in [
        (vec!["ring", "--hosts", "3"], 2, "4 or more"),
        (vec!["ring", "--hosts", "1000"], 2, "250"),
        (vec!["dpml", "--slots", "1"], 2, "2 to 8"),
        (vec!["salar", "--rate", "fast"], 2, "100mbit"),
        (vec!["bcast", "--sizes", "4"], 2, "8 bytes"),
        (vec!["release-gather", "--machine", "nowhere"], 2, "nowhere"),
        (vec!["ring", "--resume", "/nowhere", "--no-cluster"], 2, "/nowhere"),
        (vec!["ring", "--output", "/proc/none", "--no-cluster"], 1, "/proc/none"),
        (vec!["bcast", "--quick", "--cluster", broken, "--program", "/bin/true"], 1, "no room left"),
    ] {
        let words: Vec<&str> = std::iter::once("reproduce").chain(words).collect();
        let (code, out, err) = bench(&folder.0, &words);
        assert_eq!(code, Some(status), "{words:?}\n{out}\n{err}");
        assert!(err.contains(word), "{words:?}: {err}");
    }
    let (code, _, err) = bench(&folder.0, &["report", "--records", "/nowhere"]);
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("/nowhere"), "{err}");
}

#[test]
fn help_names_the_paper_and_what_differs() {
    for (study, author) in [
        ("ring", "Patarasuk"),
        ("bcast", "Zhou"),
        ("release-gather", "Jain"),
        ("dpml", "Bayatpour"),
        ("salar", "Bayatpour"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_bench")).args(["reproduce", study, "--help"]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        for word in [author, "The paper:", "Here:", "--quick", "--resume"] {
            assert!(text.contains(word), "{word} in {study}: {text}");
        }
    }
}
