//! Ranks that end early, in every way and in every collective: nobody waits for them, everybody is told who it was,
//! and nothing stays behind. Over processes under `phalanx run`, and over threads.

#![forbid(unsafe_code)]

mod blocks;
mod job;
mod threads;

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use job::{HOWS, dies, dies_under, files, leaves, value};
use phalanx_tests::command::{self, force};

const LIMIT: Duration = Duration::from_secs(300);

/// Within so long of the victim's end, every pending call has returned.
const PROMISE: Duration = Duration::from_secs(5);

/// In which call the others are.
const PLACES: [&str; 10] = [
    "barrier",
    "broadcast:line",
    "broadcast:cells",
    "reduce:line",
    "reduce:cells",
    "reduce:shares",
    "allreduce:line",
    "allreduce:cells",
    "allreduce:shares",
    "split",
];

#[test]
fn processes_that_end_in_every_way() {
    for (turn, how) in HOWS.into_iter().enumerate() {
        for ranks in [2, 5] {
            let place = PLACES[(turn + ranks) % PLACES.len()];
            dies(how, place, ranks, (turn + ranks) % ranks);
        }
    }
}

#[test]
fn processes_that_end_in_every_collective() {
    for (turn, place) in PLACES.into_iter().enumerate() {
        for (next, ranks) in [3, 8].into_iter().enumerate() {
            dies(HOWS[(2 * turn + 5 * next) % HOWS.len()], place, ranks, [0, ranks - 1, 1][turn % 3]);
        }
    }
}

#[test]
fn processes_that_end_before_they_attach() {
    for (turn, how) in HOWS.into_iter().enumerate() {
        if !leaves(how.0) {
            dies(how, "unattached", 2 + turn % 3, turn % 2);
        }
    }
}

#[test]
fn processes_that_end_inside_of_a_call() {
    for (turn, how) in HOWS.into_iter().enumerate() {
        if !leaves(how.0) {
            // Whoever it is combines.
            dies_under("allreduce:exchange", how, "operator", 2 + turn % 4, turn % 2);
        }
    }
}

/// Reductions by shares that go through cells, and slots for results to come back in.
const SHARES_IN_CELLS: &str = "reduce:shares,leaders=2,share_cell=16K,share_downs=64;all:reach_from=1G";

/// Long calls, with the algorithm that is forced; the buffers of most of them are reached by others.
const LONG: [(&str, &str); 14] = [
    ("broadcast:cells:shared", "broadcast:cells"),
    ("broadcast:cells:private", "broadcast:cells;all:reach_from=1"),
    ("reduce:cells:shared", "reduce:cells"),
    ("reduce:cells:private", "reduce:cells;all:reach_from=1"),
    ("reduce:shares:shared", "reduce:shares"),
    ("reduce:shares:private", "reduce:shares;all:reach_from=1"),
    // Through cells; there the other one of two ranks may go on without the root.
    ("reduce:shares:private", SHARES_IN_CELLS),
    ("reduce-to:shares:private", SHARES_IN_CELLS),
    ("allreduce:cells:shared", "allreduce:cells"),
    ("allreduce:shares:shared", "allreduce:shares"),
    ("allreduce:shares:private", "allreduce:shares;all:reach_from=1"),
    ("view:shares:shared", "allreduce:shares"),
    ("broadcast:cells:private", "broadcast:cells;all:convert_from=1,convert_after=0"),
    ("allreduce:shares:private", "allreduce:shares;all:convert_from=1,convert_after=0"),
];

/// The ways to end that a thread has for its process.
const SUDDEN: [usize; 5] = [4, 1, 2, 4, 5];

#[test]
fn processes_that_end_amid_long_calls() {
    for (turn, (place, rules)) in LONG.into_iter().enumerate() {
        // Amid a call, where the victim's buffers may be being read, by various ways; and between two.
        for (next, ranks) in [2, 5].into_iter().enumerate() {
            let how = HOWS[SUDDEN[(turn + 2 * next) % SUDDEN.len()]];
            dies_under(rules, how, &format!("amid:{place}"), ranks, (turn + next) % ranks);
        }
        dies_under(rules, HOWS[(3 * turn + 1) % HOWS.len()], place, 3, turn % 3);
    }
}

/// Kills the launcher of ranks that all go on for ever.
fn launcher_dies(place: &str, rules: &str, ranks: usize) {
    let before = files();
    let mut command =
        command::job(env!("CARGO_BIN_EXE_dying_rank"), ranks, &["nothing", &format!("amid:{place}"), "0"]);
    force(&mut command, rules).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut launcher = command.spawn().unwrap();
    let mut lines = BufReader::new(launcher.stdout.take().unwrap()).lines().map(Result::unwrap);
    let started: Vec<String> = lines.by_ref().take(ranks).collect();
    assert!(started.len() == ranks && started.iter().all(|line| line.starts_with("process ")), "{place}: {started:?}");
    std::thread::sleep(Duration::from_millis(120));
    assert!(launcher.try_wait().unwrap().is_none(), "{place}, {ranks} ranks: the job ended by itself");
    launcher.kill().unwrap();
    launcher.wait().unwrap();
    let end = Instant::now() + PROMISE;
    for line in started {
        let pid = value(&line, "pid").parse().unwrap();
        while let Some(state) = command::state_of(pid) {
            assert!(Instant::now() < end, "{line} is still there, {state}: {place}, {ranks} ranks");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    assert!(files().is_subset(&before), "something was left in /dev/shm: {place}");
}

#[test]
fn a_launcher_that_is_killed_amid_long_calls() {
    for (turn, (place, rules)) in LONG.into_iter().enumerate() {
        launcher_dies(place, rules, 2 + turn % 3);
    }
}

#[test]
fn one_of_sixteen_processes() {
    dies(HOWS[4], "barrier", 16, 7);
    dies(HOWS[1], "allreduce:shares", 16, 15);
    dies(HOWS[9], "reduce:cells", 16, 3);
}
