//! Ranks that wait on cores where others compute.

#![forbid(unsafe_code)]

use std::panic::{catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use phalanx_tests::command::{job, run};

const LIMIT: Duration = Duration::from_secs(60);

/// Each yield takes a turn of the scheduler then, and longer ones where the others come first: a rank that waits for
/// long sleeps after a few of them, not after hundreds.
#[test]
fn who_waits_beside_others_that_compute_sleeps_too() {
    let stop = AtomicBool::new(false);
    let computing = || {
        while !stop.load(Relaxed) {
            std::hint::spin_loop();
        }
    };
    let said = std::thread::scope(|scope| {
        for _ in 0..2 * std::thread::available_parallelism().unwrap().get() {
            scope.spawn(computing);
        }
        let args = ["-n", "10", env!("CARGO_BIN_EXE_waiting_rank"), "2", "2000", "line"];
        let said = catch_unwind(|| run(&mut job("nice", 3, &args), LIMIT).succeeded());
        stop.store(true, Relaxed);
        said
    });
    let said = said.unwrap_or_else(|panic| resume_unwind(panic));
    let waits: Vec<&str> = said.lines().filter(|line| line.starts_with("waited ")).collect();
    assert_eq!(waits.len(), 2, "{said}");
    assert!(!waits.iter().any(|wait| wait.ends_with(" sleeps=0")), "somebody did not sleep: {said}");
}
