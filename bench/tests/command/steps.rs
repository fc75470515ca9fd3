//! `bench steps`, with libraries that do next to nothing in front of an MPI: one hands every allreduce on, one falsifies
//! what comes back, one never comes back.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use phalanx_tests::library::Library;

use crate::running::{Ended, Folder, LIMIT, Running, bench, command, json, mpi};

/// A function that stands before the MPI's own. What comes of it is told by a word.
const FRONT: &str = "#include <mpi.h>
int MPI_Allreduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    int status = PMPI_Allreduce(from, to, count, type, op, comm);
#ifdef WRONG
    if (type == MPI_DOUBLE) ((double *)to)[count - 1] += 1;
#endif
#ifdef HANGING
    for (;;) {}
#endif
    return status;
}
";

/// The library of that word, for an MPI.
fn front(folder: &Folder, library: Library, word: &str) -> PathBuf {
    let (source, front) = (folder.path().join("front.c"), folder.path().join(format!("{word}.so")));
    fs::write(&source, FRONT).unwrap();
    let mut compile = Command::new(library.command("mpicc").unwrap());
    compile.args(["-shared", "-fPIC", &format!("-D{word}"), "-o"]).args([&front, &source]);
    library.set_root(&mut compile);
    let output = compile.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    fs::remove_file(&source).unwrap();
    front
}

/// Runs patterns on an MPI behind the library of a word.
fn steps(folder: &Folder, library: Library, word: &str, options: &str) -> Ended {
    let front = front(folder, library, word);
    let line = format!("steps --quick --baseline {} --library {} {options}", library.name, front.display());
    let ended = bench(folder, &line);
    fs::remove_file(front).unwrap();
    ended
}

#[test]
fn steps_are_measured_and_recorded() {
    let Some(library) = mpi() else { return };
    let folder = Folder::new("steps");
    let patterns = "cg,late:20,pivot:2K,pivot:4K,write:4K,thread-steps,start";
    let options = format!("--patterns {patterns} --time-per-row 20 --name try");
    let out = steps(&folder, library, "PLAIN", &options).with(0).out;
    for word in ["whole steps, 2 ranks", "late", "points", "cpu", "of 7 rows", "steps-2-ranks.svg"] {
        assert!(out.contains(word), "{word} in\n{out}");
    }
    let record = folder.record();
    assert!(record.to_string_lossy().ends_with("-try"));
    let results = json(&record.join("results.json"));
    let rows = results["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 7);
    for row in rows {
        for side in ["without", "with"] {
            let turns = row[side]["turns"].as_array().unwrap();
            assert_eq!(turns.len(), 2, "{row}");
            assert!(turns.iter().all(|turn| turn["wall"].as_f64().unwrap() > 0.0), "{row}");
        }
        assert!(row["ratio"]["value"].as_f64().unwrap() > 0.0, "{row}");
    }
    for name in ["host.txt", "tables.txt", "steps-2-ranks.svg"] {
        assert!(record.join(name).metadata().unwrap().len() > 0, "{name}");
    }
    assert_eq!(folder.names(), ["records"], "something was left behind");
}

#[test]
fn a_wrong_answer_ends_the_run_and_is_told() {
    let Some(library) = mpi() else { return };
    let folder = Folder::new("steps-wrong");
    let ended = steps(&folder, library, "WRONG", "--patterns gradients:64 --time-per-row 20 --no-record").with(1);
    let why = format!("WRONG ANSWER from {} with the library: gradients of 64 bytes: rank", library.name);
    assert!(ended.err.contains(&why) && ended.err.contains("is 65 and should be 64"), "{}", ended.err);
    assert!(folder.names().is_empty(), "something was left behind");
}

#[test]
fn a_job_that_hangs_is_ended_and_the_others_are_measured() {
    let Some(library) = mpi() else { return };
    let folder = Folder::new("steps-hanging");
    let options = "--patterns late:5,io-barrier:5 --time-per-row 20 --timeout 3 --no-record";
    let ended = steps(&folder, library, "HANGING", options).with(1);
    let name = library.name;
    let why = format!("{name} with the library with -n 2: late of 5 us: it did not end within 3 s");
    assert!(ended.err.contains(&why) && ended.err.contains("--patterns late:5"), "{}", ended.err);
    assert!(ended.out.contains("of 1 rows") && ended.out.contains("io-barrier"), "{}", ended.out);
    assert!(!has_processes(&folder), "a rank was left behind");
    assert!(folder.names().is_empty(), "something was left behind");
}

#[test]
fn a_run_that_is_stopped_ends_its_ranks_and_keeps_what_is_finished() {
    let Some(library) = mpi() else { return };
    let folder = Folder::new("steps-stopped");
    let front = front(&folder, library, "HANGING");
    let options = "--patterns io-barrier:5,late:5,pivot --time-per-row 20";
    let line = format!("steps --quick --baseline {} --library {} {options}", library.name, front.display());
    let running = Running::start(&folder, command(&line));
    let begin = Instant::now();
    let is_kept = || folder.records().iter().any(|record| record.join("results.json").is_file());
    while !is_kept() && begin.elapsed() < LIMIT {
        thread::sleep(Duration::from_millis(20));
    }
    kill(Pid::from_raw(running.child.id() as i32), Signal::SIGTERM).unwrap();
    let err = running.end().with(130).err;
    assert!(err.contains("(1 measurements) is kept") && err.contains("--patterns late:5,pivot:2048"), "{err}");
    let results = json(&folder.record().join("results.json"));
    assert_eq!(results["rows"].as_array().unwrap().len(), 1);
    assert!(!has_processes(&folder), "a rank was left behind");
}

/// Whether a process is told of a file of this folder.
fn has_processes(folder: &Folder) -> bool {
    let mark = folder.path().display().to_string();
    let holds = |line: Vec<u8>| line.windows(mark.len()).any(|part| part == mark.as_bytes());
    let mut processes = fs::read_dir("/proc").unwrap().flatten();
    processes.any(|process| fs::read(process.path().join("cmdline")).is_ok_and(holds))
}

#[test]
fn steps_that_cannot_be_are_refused_before_anything_is_measured() {
    let folder = Folder::new("steps-refused");
    for (options, why) in [
        ("--library /nowhere/lib.so", "scripts/dropin"),
        ("--patterns nothing", "bench steps --list"),
        ("--patterns cg:2", "96 points"),
        ("--ranks 1", "2 and more"),
        ("--baseline nothing", "openmpi5"),
        ("--library /dev/null --baseline mpich5 --peers /nowhere", "scripts/peers mpich5"),
    ] {
        let ended = bench(&folder, &format!("steps {options}")).with(2);
        assert!(ended.out.is_empty() && ended.err.contains(why), "{options}: {}{}", ended.out, ended.err);
    }
    let list = bench(&folder, "steps --list").with(0).out;
    assert!(list.contains("gradients-malloc") && list.contains("MPI_Iallreduce"), "{list}");
    assert!(folder.names().is_empty(), "something was left behind");
}
