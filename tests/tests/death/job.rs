//! A job one of whose ranks ends, and all that must be so then.

use std::collections::BTreeSet;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{kill, killpg};
use nix::unistd::Pid;
use phalanx_tests::command::{force, job_under, run};

use crate::{LIMIT, PROMISE};

/// How a victim ends, the status of the job, and what the launcher says of it.
pub(crate) const HOWS: [(&str, i32, &str); 12] = [
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

/// Whether who ends so leaves between calls, and does not end its process there and then.
pub(crate) fn leaves(how: &str) -> bool {
    matches!(how, "return" | "drop" | "keep" | "forget")
}

/// The value of `key=` in a line.
pub(crate) fn value<'a>(line: &'a str, key: &str) -> &'a str {
    line.split_whitespace()
        .find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
        .unwrap_or_else(|| panic!("{line}"))
}

/// Names in /dev/shm that could be ours.
pub(crate) fn files() -> BTreeSet<String> {
    let entries =
        std::fs::read_dir("/dev/shm").map(|entries| entries.flatten().collect()).unwrap_or_else(|_| Vec::new());
    let names = entries.iter().map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.contains("phalanx")).collect()
}

/// Runs a job in which `victim` ends, and checks what everybody sees of it.
pub(crate) fn dies(how: (&str, i32, &str), place: &str, ranks: usize, victim: usize) {
    dies_under("", how, place, ranks, victim);
}

/// The same with a forced algorithm, which may go over trees that are said behind it.
pub(crate) fn dies_under(
    rules: &str,
    (how, status, said): (&str, i32, &str),
    place: &str,
    ranks: usize,
    victim: usize,
) {
    let before = files();
    let (rules, trees) = rules.split_once(" over ").unwrap_or((rules, ""));
    // Who has so long to notice is not ended before.
    let patience = ["--grace", &PROMISE.as_secs().to_string()];
    let mut command = job_under(&patience, env!("CARGO_BIN_EXE_dying_rank"), ranks, &[how, place, &victim.to_string()]);
    // Looking up the names of a backtrace can take a busy machine longer than all else.
    force(&mut command, rules).env("PHALANX_TREES", trees).env("RUST_BACKTRACE", "0");
    let ended = run(&mut command, LIMIT);
    let what = format!(
        "{how} in {place}, rank {victim} of {ranks}, {rules:?}, {trees:?}:\n{}\n{}",
        ended.stdout, ended.stderr
    );
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
