//! Ranks that end early, in every way and in every collective: nobody waits for them, everybody is told who it was,
//! and nothing stays behind. Over processes under `phalanx run`, and over threads.

#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Stdio;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use hier::job::JobSpec;
use hier::operator::User;
use hier::{Communicator, Error, TreeRules};
use nix::errno::Errno;
use nix::sys::signal::{kill, killpg};
use nix::unistd::Pid;
use phalanx_tests::command::{force, job, run};
use phalanx_tests::watchdog::watchdog;

const LIMIT: Duration = Duration::from_secs(300);

/// Within so long of the victim's end, every pending call has returned.
const PROMISE: Duration = Duration::from_secs(5);

/// How a victim ends, the status of the job, and what the launcher says of it.
const HOWS: [(&str, i32, &str); 12] = [
    ("exit:0", 1, "exited with status 0"),
    ("exit:3", 3, "exited with status 3"),
    ("abort", 134, "SIGABRT"),
    ("panic", 101, "exited with status 101"),
    ("kill", 137, "SIGKILL"),
    ("segv", 139, "SIGSEGV"),
    ("term", 143, "SIGTERM"),
    ("exec", 1, "exited with status 0"),
    ("return", 1, "exited with status 0"),
    ("drop", 9, "exited with status 9"),
    ("keep", 9, "exited with status 9"),
    ("forget", 1, "exited with status 0"),
];

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

/// The value of `key=` in a line.
fn value<'a>(line: &'a str, key: &str) -> &'a str {
    line.split_whitespace()
        .find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
        .unwrap_or_else(|| panic!("{line}"))
}

/// Names in /dev/shm that could be ours.
fn files() -> BTreeSet<String> {
    let entries =
        std::fs::read_dir("/dev/shm").map(|entries| entries.flatten().collect()).unwrap_or_else(|_| Vec::new());
    let names = entries.iter().map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.contains("phalanx")).collect()
}

/// Runs a job in which `victim` ends, and checks what everybody sees of it.
fn dies(how: (&str, i32, &str), place: &str, ranks: usize, victim: usize) {
    dies_under("", how, place, ranks, victim);
}

/// The same with a forced algorithm.
fn dies_under(rules: &str, (how, status, said): (&str, i32, &str), place: &str, ranks: usize, victim: usize) {
    let before = files();
    let mut command = job(env!("CARGO_BIN_EXE_dying_rank"), ranks, &[how, place, &victim.to_string()]);
    // Looking up the names of a backtrace can take a busy machine longer than all else.
    force(&mut command, rules).env("RUST_BACKTRACE", "0");
    let ended = run(&mut command, LIMIT);
    let what = format!("{how} in {place}, rank {victim} of {ranks}:\n{}\n{}", ended.stdout, ended.stderr);
    let lines = |kind: &str| -> Vec<&str> { ended.stdout.lines().filter(|line| line.starts_with(kind)).collect() };
    let time = |line: &str| value(line, "at").parse::<u64>().unwrap();

    let deaths = lines("died ");
    assert!(!deaths.is_empty(), "{what}");
    let death = time(deaths[0]);
    let survivors = lines("survivor ");
    assert_eq!(survivors.len(), ranks - 1, "{what}");
    for line in survivors {
        assert_eq!(value(line, "blames"), victim.to_string(), "{line}: {what}");
        let waited = Duration::from_nanos(time(line).saturating_sub(death));
        assert!(waited < PROMISE, "{line}: {waited:?} after the end: {what}");
    }
    for line in lines("later ") {
        assert!(value(line, "blames").split(',').all(|rank| rank == victim.to_string()), "{line}: {what}");
    }
    if place != "unattached" {
        assert_eq!(lines("later ").len(), ranks - 1, "{what}");
    }

    assert_eq!(ended.status.code(), Some(status), "{what}");
    let processes = lines("process ");
    assert_eq!(processes.len(), ranks, "{what}");
    // The first thing that the launcher says is of the victim; of one that goes on for long without the others, it
    // can say nothing, but that the first of them has ended.
    let report =
        ended.stderr.lines().find(|line| line.starts_with("phalanx: rank ")).unwrap_or_else(|| panic!("{what}"));
    let named = processes
        .iter()
        .find(|line| report.contains(&format!("rank {} (pid {})", value(line, "rank"), value(line, "pid"))));
    let named = value(named.unwrap_or_else(|| panic!("{what}")), "rank");
    assert_eq!(named == victim.to_string(), !matches!(how, "drop" | "keep"), "{what}");
    assert!(report.contains(said), "{said}: {what}");
    for line in processes {
        let pid = Pid::from_raw(value(line, "pid").parse().unwrap());
        assert_eq!(kill(pid, None), Err(Errno::ESRCH), "{line}: still there: {what}");
        assert_eq!(killpg(pid, None), Err(Errno::ESRCH), "{line}: its group is still there: {what}");
    }
    assert!(files().is_subset(&before), "something was left in /dev/shm: {what}");
}

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
        if !matches!(how.0, "return" | "drop" | "keep" | "forget") {
            dies(how, "unattached", 2 + turn % 3, turn % 2);
        }
    }
}

#[test]
fn processes_that_end_inside_of_a_call() {
    for (turn, how) in HOWS.into_iter().enumerate() {
        if !matches!(how.0, "return" | "drop" | "keep" | "forget") {
            // Whoever it is combines.
            dies_under("allreduce:exchange", how, "operator", 2 + turn % 4, turn % 2);
        }
    }
}

/// Reductions by shares that go through cells, and slots for results to come back in.
const SHARES_IN_CELLS: &str = "reduce:shares,leaders=2,share_cell=16K,share_downs=64;all:reach_least=1G";

/// Long calls, with the algorithm that is forced; the buffers of most of them are reached by others.
const LONG: [(&str, &str); 14] = [
    ("broadcast:cells:shared", "broadcast:cells"),
    ("broadcast:cells:private", "broadcast:cells;all:reach_least=1"),
    ("reduce:cells:shared", "reduce:cells"),
    ("reduce:cells:private", "reduce:cells;all:reach_least=1"),
    ("reduce:shares:shared", "reduce:shares"),
    ("reduce:shares:private", "reduce:shares;all:reach_least=1"),
    // Through cells; there the other one of two ranks may go on without the root.
    ("reduce:shares:private", SHARES_IN_CELLS),
    ("reduce-to:shares:private", SHARES_IN_CELLS),
    ("allreduce:cells:shared", "allreduce:cells"),
    ("allreduce:shares:shared", "allreduce:shares"),
    ("allreduce:shares:private", "allreduce:shares;all:reach_least=1"),
    ("view:shares:shared", "allreduce:shares"),
    ("broadcast:cells:private", "broadcast:cells;all:convert_least=1,convert_after=0"),
    ("allreduce:shares:private", "allreduce:shares;all:convert_least=1,convert_after=0"),
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

#[test]
fn a_launcher_that_is_killed_amid_long_calls() {
    for (turn, (place, rules)) in LONG.into_iter().enumerate() {
        let before = files();
        let ranks = 2 + turn % 3;
        // No rank ends: all go on for ever.
        let mut command = job(env!("CARGO_BIN_EXE_dying_rank"), ranks, &["nothing", &format!("amid:{place}"), "0"]);
        force(&mut command, rules).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut launcher = command.spawn().unwrap();
        let mut lines = BufReader::new(launcher.stdout.take().unwrap()).lines().map(Result::unwrap);
        let started: Vec<String> = lines.by_ref().take(ranks).collect();
        std::thread::sleep(Duration::from_millis(120));
        launcher.kill().unwrap();
        launcher.wait().unwrap();
        let end = Instant::now() + PROMISE;
        for line in started {
            let pid = Pid::from_raw(value(&line, "pid").parse().unwrap());
            while kill(pid, None) != Err(Errno::ESRCH) {
                assert!(Instant::now() < end, "{line} is still there: {place}, {ranks} ranks");
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        assert!(files().is_subset(&before), "something was left in /dev/shm: {place}");
    }
}

#[test]
fn one_of_sixteen_processes() {
    dies(HOWS[4], "barrier", 16, 7);
    dies(HOWS[1], "allreduce:shares", 16, 15);
    dies(HOWS[9], "reduce:cells", 16, 3);
}

/// What one rank saw: the rank that its pending call named, and those that its later calls did.
type Seen = (usize, usize, [usize; 2]);

/// Runs threads of which `victim` does `ends`, while the others call until they fail.
fn threads(ranks: usize, rules: &str, len: usize, victim: usize, ends: impl Fn(Communicator) + Sync) {
    let seen: Mutex<Vec<Seen>> = Mutex::new(Vec::new());
    let blamed = |result: Result<(), Error>| match result {
        Err(Error::RankFailed { rank }) => rank,
        other => panic!("{other:?}"),
    };
    let mut spec = JobSpec::new(ranks).unwrap();
    spec.tuning.force(rules).unwrap();
    let begin = Instant::now();
    let result = catch_unwind(AssertUnwindSafe(|| {
        Communicator::threads_of(&spec, TreeRules::default(), |comm| {
            comm.barrier().unwrap();
            if comm.rank() == victim {
                std::thread::sleep(Duration::from_millis(60));
                return ends(comm);
            }
            let mut buffer = vec![1u64; len];
            let pending = loop {
                if let Err(error) = comm.all_reduce_in_place(&mut buffer, User::commutative(add)) {
                    break blamed(Err(error));
                }
            };
            let root = comm.process_at_rank(victim);
            let later = [blamed(comm.barrier()), blamed(root.broadcast_into(&mut buffer))];
            seen.lock().unwrap().push((comm.rank(), pending, later));
        })
    }));
    assert!(begin.elapsed() < Duration::from_millis(60) + PROMISE, "{:?}", begin.elapsed());
    let seen = seen.into_inner().unwrap();
    assert_eq!(seen.len(), ranks - 1, "{rules}: {seen:?} {result:?}");
    for (rank, pending, later) in seen {
        assert_eq!((pending, later), (victim, [victim; 2]), "{rules}: rank {rank} of {ranks}");
    }
}

fn add(left: &mut [u64], right: &[u64]) {
    left.iter_mut().zip(right).for_each(|(left, right)| *left = left.wrapping_add(*right));
}

#[test]
fn threads_that_return_or_panic() {
    watchdog(LIMIT, || {
        for (rules, len) in
            [("all:line", 1), ("all:cells", 100), ("all:cells,cell=64,cells=2", 500), ("all:shares", 9000)]
        {
            for (ranks, victim) in [(2, 0), (2, 1), (5, 3), (16, 9)] {
                threads(ranks, rules, len, victim, drop);
                threads(ranks, rules, len, victim, |comm| {
                    let _comm = comm;
                    // No message: these are meant.
                    std::panic::resume_unwind(Box::new("the victim panics"));
                });
                threads(ranks, rules, len, victim, |comm| {
                    let combine = |_: &mut [u64], _: &[u64]| std::panic::resume_unwind(Box::new("in an operator"));
                    let _ = comm.all_reduce_in_place(&mut vec![0; len], User::commutative(combine));
                });
            }
        }
    });
}
