//! Gathers, scatters, their all-to-all forms, reduce-scatters and scans against the oracle, over ranks that are threads
//! and ranks that are processes: 1 to 16 of them, under every setting; blocks even and uneven, empty ones among them,
//! in place and not, in memory of every kind.
//!
//! On 1 to 5 threads every setting is tried with every length, on other numbers a third of them, by another seed
//! another third; types and operators take every other one of these, roots the rest; processes take some of each, in
//! turn.

#![forbid(unsafe_code)]

use std::time::Duration;

use hier::{Communicator, TreeRules};
use phalanx_tests::command::{self, run};
use phalanx_tests::random::{mixed, seed_of_run};
use phalanx_tests::settings::{SETTINGS, TREES, is_tried, job, places};
use phalanx_tests::sweep::Sweep;
use phalanx_tests::watchdog::watchdog;

const LIMIT: Duration = Duration::from_secs(900);

/// Runs a sweep on `ranks` ranks; returns the calls that each made.
fn sweep((ranks, rules, seed): (usize, &str, u64), late: bool, calls: impl Fn(&mut Sweep) + Sync) -> usize {
    let spec = job(ranks, rules, seed);
    let trees = TREES[seed as usize % TREES.len()];
    let label = format!("{ranks} ranks on {} cores, {rules:?}, trees {trees:?}, seed {seed}", spec.cores);
    let made = Communicator::threads_at(&spec, trees.parse::<TreeRules>().unwrap(), places(ranks, seed), |comm| {
        let mut sweep = Sweep::new(&comm, &label, seed, late);
        calls(&mut sweep);
        comm.barrier().unwrap();
        assert_eq!(comm.counters().calls as usize, sweep.calls + 1, "every call was counted");
        sweep.calls
    });
    let made = made.unwrap();
    assert!(made.iter().all(|&calls| calls == made[0]));
    made[0]
}

/// All numbers of ranks with the settings that are tried on them.
fn worlds(seed: u64) -> impl Iterator<Item = (usize, usize, u64)> {
    (1..=16).flat_map(move |ranks| {
        (0..SETTINGS.len())
            .filter(move |&at| is_tried(at, ranks, seed))
            .map(move |at| (ranks, at, mixed(seed ^ (ranks * 100 + at) as u64)))
    })
}

#[test]
fn types_and_operators() {
    watchdog(LIMIT, || {
        let seed = seed_of_run();
        let mut calls = 0;
        for (ranks, at, seed) in worlds(seed).filter(|(ranks, at, _)| (ranks + at) % 2 == 1) {
            let edges = SETTINGS[at].edges(ranks);
            let bytes = edges[ranks % edges.len()].min(1200);
            calls += sweep((ranks, SETTINGS[at].rules, seed), false, |sweep| sweep.block_types(bytes));
        }
        println!("{calls} calls, seed {seed}");
    });
}

#[test]
fn lengths_around_every_edge() {
    watchdog(LIMIT, || {
        let seed = seed_of_run();
        let mut calls = 0;
        for (ranks, at, seed) in worlds(seed) {
            calls += sweep((ranks, SETTINGS[at].rules, seed), false, |sweep| sweep.block_lengths(&SETTINGS[at]));
        }
        println!("{calls} calls, seed {seed}");
    });
}

#[test]
fn every_root_among_other_calls_in_time_and_late() {
    watchdog(LIMIT, || {
        let seed = seed_of_run();
        let mut calls = 0;
        for (ranks, at, seed) in worlds(seed).filter(|(ranks, at, _)| (ranks + at) % 2 == 0) {
            let world = (ranks, SETTINGS[at].rules, seed);
            calls += sweep(world, at % 4 < 2, |sweep| sweep.block_roots(&[0, 1, 8, 70, 200]));
        }
        println!("{calls} calls, seed {seed}");
    });
}

#[test]
fn more_ranks_than_lines_are_exchanged_flat_by() {
    watchdog(LIMIT, || {
        let seed = seed_of_run();
        for ranks in [17, 33, 63, 65, 100, 256] {
            for rules in ["all:auto", "all:cells,cell=64,cells=2,up_bytes=64K,down_bytes=64K"] {
                let made = sweep((ranks, rules, seed), false, |sweep| sweep.block_few(&[0, 1, 3, 70]));
                assert!(made >= 40, "{made}");
            }
        }
    });
}

/// A third of the numbers of ranks, by the seed, as threads and as processes. With an odd seed the ranks share the
/// cores of this machine.
#[test]
fn long_blocks_of_ranks_that_share_cores() {
    watchdog(LIMIT, || {
        let run_of = seed_of_run();
        let (seed, turn) = (run_of | 1, run_of as usize);
        let rules =
            ["all:auto", "all:auto,direct_from=never", "all:auto,reach_from=never,readers=1", "all:auto,stream=2"];
        let is_tried = |at: usize| (at + turn).is_multiple_of(3);
        for (at, ranks) in [3, 8, 4, 6, 5, 16].into_iter().enumerate().filter(|(at, _)| is_tried(*at)) {
            let made = sweep((ranks, rules[(at + turn) % rules.len()], seed), false, |sweep| sweep.block_long());
            assert!(made >= 72, "{made}");
        }
        for (at, ranks) in [4, 3, 8].into_iter().enumerate().filter(|(at, _)| is_tried(*at)) {
            let args = ["block-long", &seed.to_string()];
            let mut command = command::job(env!("CARGO_BIN_EXE_conformance_rank"), ranks, &args);
            command::force(&mut command, rules[(at + turn / 3) % rules.len()]);
            let said = run(&mut command, LIMIT).succeeded();
            assert!(said.contains(&format!("calls on {ranks} ranks")), "{args:?}: {said}");
        }
    });
}

#[test]
fn over_processes() {
    let seed = seed_of_run();
    for (turn, ranks) in [1, 2, 3, 4, 5, 8, 16].into_iter().enumerate() {
        for (at, setting) in SETTINGS.iter().enumerate() {
            let mode = ["block-types", "block-lengths", "block-roots"][(at + turn) % 3];
            let args = [mode, &mixed(seed ^ (ranks * 100 + at) as u64).to_string(), &at.to_string()];
            let mut command = command::job(env!("CARGO_BIN_EXE_conformance_rank"), ranks, &args);
            command::force(&mut command, setting.rules).env("PHALANX_TREES", TREES[(ranks + at) % TREES.len()]);
            let said = run(&mut command, LIMIT).succeeded();
            assert!(said.contains(&format!("calls on {ranks} ranks")), "{args:?}: {said}");
        }
    }
}
