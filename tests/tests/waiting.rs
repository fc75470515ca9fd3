//! A rank that waits for long sleeps: it uses no processor time, over processes and over threads.

#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

use hier::Communicator;
use hier::operator::Sum;
use nix::sys::resource::{UsageWho, getrusage};
use phalanx_tests::command::{job, run};
use phalanx_tests::watchdog::watchdog;

const LIMIT: Duration = Duration::from_secs(60);

/// Milliseconds for which one rank keeps the others waiting.
const PAUSE: u64 = 2000;

/// Processor time, in milliseconds, that a wait of so long may take.
const ALLOWED: u64 = 50;

#[test]
fn processes_that_wait_for_long_use_no_processor_time() {
    for (ranks, late, collective) in [
        (2, 0, "barrier"),
        (2, 1, "broadcast"),
        (3, 2, "line"),
        (4, 1, "cells"),
        (5, 0, "shares"),
        (16, 9, "duplicate"),
    ] {
        let args = [&late.to_string(), &PAUSE.to_string(), collective];
        let said = run(&mut job(env!("CARGO_BIN_EXE_waiting_rank"), ranks, &args), LIMIT).succeeded();
        let waits: Vec<[u64; 3]> = said
            .lines()
            .filter(|line| line.starts_with("waited "))
            .map(|line| {
                let value =
                    |key: &str| line.split(' ').find_map(|word| word.strip_prefix(key)).unwrap().parse().unwrap();
                [value("cpu_us="), value("wall_ms="), value("sleeps=")]
            })
            .collect();
        assert_eq!(waits.len(), ranks - 1, "{collective}: {said}");
        for [cpu, wall, sleeps] in waits {
            assert!(wall + 100 >= PAUSE, "{collective} on {ranks}: somebody did not wait: {said}");
            assert!(cpu < ALLOWED * 1000, "{collective} on {ranks}: {cpu} us of processor time: {said}");
            assert!(sleeps > 0, "{collective} on {ranks}: somebody did not sleep: {said}");
        }
    }
}

#[test]
fn threads_that_wait_for_long_use_no_processor_time() {
    watchdog(LIMIT, || {
        let used = || {
            let usage = getrusage(UsageWho::RUSAGE_THREAD).unwrap();
            let sum = usage.user_time() + usage.system_time();
            (sum.tv_sec() * 1000 + sum.tv_usec() / 1000) as u64
        };
        for (ranks, len) in [(2, 1), (16, 1), (3, 5000)] {
            let waits = Communicator::threads(ranks, |comm| {
                let mut vector = vec![1u64; len];
                comm.all_reduce_in_place(&mut vector, Sum).unwrap();
                let (begin, before) = (Instant::now(), used());
                if comm.rank() == 1 {
                    std::thread::sleep(Duration::from_millis(PAUSE));
                }
                comm.all_reduce_in_place(&mut vector, Sum).unwrap();
                assert_eq!(vector, vec![(ranks * ranks) as u64; len]);
                (begin.elapsed(), used() - before)
            });
            for (wall, cpu) in waits.unwrap() {
                assert!(wall + Duration::from_millis(100) >= Duration::from_millis(PAUSE), "{ranks} ranks: {wall:?}");
                assert!(cpu < ALLOWED, "{ranks} ranks: {cpu} ms of processor time");
            }
        }
    });
}

/// Ranks that outnumber the cores by far take turns: thousands of calls that each wait for everybody.
#[test]
fn sixteen_ranks_share_the_cores() {
    watchdog(LIMIT, || {
        let sums = Communicator::threads(16, |comm| {
            let mut sum = [0usize];
            for _ in 0..3000 {
                comm.all_reduce_in_place(&mut sum, Sum).unwrap();
                sum = [(sum[0] + comm.rank()) % 1000];
                comm.barrier().unwrap();
            }
            comm.all_reduce_in_place(&mut sum, Sum).unwrap();
            sum[0]
        });
        // The same steps for all sixteen at once.
        let mut all = [0usize; 16];
        for _ in 0..3000 {
            let sum: usize = all.iter().sum();
            all = std::array::from_fn(|rank| (sum + rank) % 1000);
        }
        assert_eq!(sums.unwrap(), [all.iter().sum::<usize>(); 16]);
    });
}
