//! `bench across` as a person runs it: a small cluster, a tiny plan, all of it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use phalanx_tests::library::Library;

/// A run that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(200);

/// A folder of its own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("bench-across-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs `bench` in `folder`; status, output and errors.
fn bench(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let files = ["out.txt", "err.txt"].map(|name| folder.join(name));
    let mut child = Command::new(env!("CARGO_BIN_EXE_bench"))
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(fs::File::create(&files[0]).unwrap())
        .stderr(fs::File::create(&files[1]).unwrap())
        .spawn()
        .unwrap();
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
        std::thread::sleep(Duration::from_millis(100));
    };
    let [out, err] = files.map(|path| fs::read_to_string(path).unwrap());
    (status, out, err)
}

#[test]
fn a_small_cluster_is_measured_and_recorded() {
    let Some(&library) = Library::all().iter().find(|library| library.is_here()) else { return };
    let program = library.bench();
    let folder = Folder::new("small");
    let words = [
        "across",
        "--hosts",
        "2",
        "--slots",
        "2",
        "--per-switch",
        "1",
        "--mpi",
        library.name,
        "--program",
        program.to_str().unwrap(),
        "--eager",
        "--sizes",
        "1K,64K",
        "--calls",
        "2",
        "--series",
        "ours",
        "--series",
        "native",
        "--series",
        "flat",
        "--rules",
        "two=allreduce:ring,leaders=2,slice=16K,flight=3",
        "--name",
        "try",
        "--timeout",
        "120",
    ];
    let (status, out, err) = bench(&folder.0, &words);
    if status == Some(0) && err.contains("skipped: ") {
        eprintln!("skipped: namespaces are not allowed here\n{err}");
        return;
    }
    assert_eq!(status, Some(0), "{out}\n{err}");
    for word in ["allreduce of 4 ranks on 2 nodes", "x native", "trunk/n", "measured by streams", "ring among 4 nodes"]
    {
        assert!(out.contains(word), "{word} in\n{out}\n{err}");
    }
    let record = fs::read_dir(folder.0.join("records")).unwrap().next().unwrap().unwrap().path();
    let read = |name: &str| fs::read_to_string(record.join(name)).unwrap();
    let csv = read("results.csv");
    assert_eq!(csv.lines().count(), 1 + 2 * 4, "{csv}");
    let json: serde_json::Value = serde_json::from_str(&read("results.json")).unwrap();
    let cases = json["runs"][0]["measured"]["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 8);
    for case in cases.iter().filter(|case| case["bytes"] == 65536) {
        assert!(case["seconds"].as_array().unwrap().iter().all(|time| time.as_f64().unwrap() > 0.0));
        // Two hosts exchange at least the vector; what is counted is what the schedule sends, and headers.
        let links = case["carried"].as_array().unwrap();
        let up = links.iter().find(|link| link["link"] == "n0").unwrap()["up"].as_f64().unwrap();
        assert!(up >= 65536.0, "{case}");
        if let Some(expected) = case["expected"]["host"].as_u64() {
            let ratio = up / expected as f64;
            assert!((0.99..1.2).contains(&ratio), "{ratio} in {case}");
        }
    }
    for name in ["host.txt", "tables.txt", "across.svg"] {
        assert!(!read(name).is_empty(), "{name}");
    }
    assert!(read("host.txt").contains("commit"));
}

#[test]
fn without_namespaces_it_says_that_it_was_skipped() {
    let folder = Folder::new("skipped");
    let script = folder.0.join("run");
    fs::write(&script, "#!/bin/sh\necho 'cluster: skipped: namespaces are not allowed' >&2\nexit 77\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let script = script.to_str().unwrap();
    let (status, out, err) = bench(&folder.0, &["across", "--cluster", script, "--program", "/bin/true"]);
    assert_eq!(status, Some(0), "{out}\n{err}");
    assert!(err.contains("skipped: cluster: skipped: namespaces"), "{err}");
    assert!(!folder.0.join("records").exists());
}

#[test]
fn without_mpi_a_rank_says_how_to_build_one() {
    if cfg!(feature = "mpi") {
        return;
    }
    let output = Command::new(env!("CARGO_BIN_EXE_bench")).arg("across-rank").output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert!(err.contains("--features mpi") && err.contains("MPICC"), "{err}");
}
