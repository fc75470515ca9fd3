//! `bench collectives` and `bench bytes`, in a few seconds.

use std::fs;

use crate::running::{Folder, bench, command, json};

#[test]
fn two_ranks_are_measured_beside_the_floor_and_recorded() {
    let folder = Folder::new("short");
    let ended = bench(&folder, "collectives -n 2 --short --max 1K --buffers all --time-per-size 10 --name try");
    let out = ended.with(0).out;
    for word in [
        "beside the machine's floor",
        "does nothing",
        "allreduce, 2 ranks",
        "cold buffers",
        "x floor",
        "collectives-2-ranks.svg",
    ] {
        assert!(out.contains(word), "{word} in\n{out}");
    }
    let record = folder.record();
    assert!(record.to_string_lossy().ends_with("-try"));
    let csv = fs::read_to_string(record.join("results.csv")).unwrap();
    // A barrier and the empty call; three collectives, four buffer modes and a fifth of one of them, sizes 8, 64, 512
    // and 1K; the head.
    assert_eq!(csv.lines().count(), 1 + 2 + (3 * 4 + 1) * 4);
    let results = json(&record.join("results.json"));
    assert_eq!(results["rows"].as_array().unwrap().len(), 2 + (3 * 4 + 1) * 4);
    assert!(results["host"]["rustc"].as_str().unwrap().starts_with("rustc"));
    for name in ["host.txt", "tables.txt", "collectives-2-ranks.svg"] {
        assert!(record.join(name).metadata().unwrap().len() > 0, "{name}");
    }
    assert_eq!(folder.names(), ["records"], "something was left behind");
}

#[test]
fn an_unwritable_record_costs_the_record_and_not_the_results() {
    let folder = Folder::new("unwritable");
    let ended = bench(
        &folder,
        "collectives -n 2 --max 8 --min 8 --buffers warm --no-floor --time-per-size 5 --record /proc/none",
    );
    let (out, err) = {
        let ended = ended.with(1);
        (ended.out, ended.err)
    };
    assert!(out.contains("allreduce, 2 ranks"), "{out}");
    assert!(err.contains("cannot make the record folder /proc/none"), "{err}");
}

/// A full device is an error of one line; a reader that has left is told nothing.
#[test]
fn results_that_cannot_be_written() {
    for line in ["simulate-node --figures", "simulate-node --aware --machines xeon-2x20", "bytes -n 2 --size 8K"] {
        let folder = Folder::new("full");
        let to = |out: std::os::fd::OwnedFd| {
            let mut command = command(line);
            let ended = command.current_dir(folder.path()).env("TMPDIR", folder.path()).stdout(out).output().unwrap();
            (ended.status.code(), String::from_utf8_lossy(&ended.stderr).into_owned())
        };
        let (status, said) = to(fs::File::options().write(true).open("/dev/full").unwrap().into());
        assert_eq!(status, Some(1), "{line}: {said}");
        assert!(said.contains("bench: cannot write: No space") && !said.contains("panicked"), "{line}: {said}");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let (status, said) = to(writer.into());
        assert_eq!(status, Some(1), "{line}: {said}");
        assert!(!said.contains("bench:") && !said.contains("panicked"), "{line}: {said}");
        assert!(folder.names().is_empty(), "{line}: something was left behind");
    }
}

#[test]
fn late_ranks_other_roots_and_other_types() {
    let folder = Folder::new("late");
    let ended = bench(
        &folder,
        "collectives -n 3 --max 64 --min 4 --type i64 --root 2 --late 1:300 --no-floor --no-record --time-per-size 5 --turns 1",
    );
    let out = ended.with(0).out;
    assert!(out.contains("broadcast, 3 ranks"), "{out}");
    assert!(!folder.has_records());
}

#[test]
fn counted_bytes_are_those_of_the_formulas() {
    let folder = Folder::new("bytes");
    let ended = bench(&folder, "bytes -n 2,3,5 --size 256K");
    let out = ended.with(0).out;
    assert!(out.contains("9 of 9 equal"), "{out}");
}

#[test]
fn what_cannot_be_counted_or_called_is_explained_with_status_2() {
    for (line, why) in [
        ("bytes --ranks 1", "a rank alone"),
        ("bytes -n 2,1", "2 ranks and more"),
        ("collectives --calls 0", "at least 1 call"),
    ] {
        let folder = Folder::new("refused");
        let ended = bench(&folder, line).with(2);
        assert!(ended.out.is_empty() && ended.err.contains(why), "{line}: {}{}", ended.out, ended.err);
        assert!(folder.names().is_empty(), "{line}: something was left behind");
    }
}

#[test]
fn an_mpi_that_is_not_there_is_explained_with_status_2() {
    let folder = Folder::new("missing");
    let ended = bench(&folder, "collectives --baseline openmpi=/nowhere");
    let err = ended.with(2).err;
    assert!(err.contains("apt-get install -y --no-install-recommends openmpi-bin libopenmpi-dev"), "{err}");
    assert!(folder.names().is_empty(), "something was left behind");
}
