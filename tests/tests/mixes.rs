//! Random mixes of all collectives over several communicators that come and go, with random delays.
//!
//! Everything follows from one seed, which is printed: `PHALANX_TEST_SEED=.. cargo test --test mixes` repeats a run,
//! the timing apart.

#![forbid(unsafe_code)]

use std::time::Duration;

use hier::{Communicator, TreeRules};
use phalanx_tests::command::{self, run};
use phalanx_tests::mix::Mix;
use phalanx_tests::random::{SEED, mixed, seed_of_run};
use phalanx_tests::settings::{TREES, job, places};
use phalanx_tests::watchdog::watchdog;

const LIMIT: Duration = Duration::from_secs(600);

/// Regimes by size, with thresholds so low that all of them meet in a mix.
const RULES: [&str; 5] = [
    "all:auto,line_most=32,shares_from=400,cell=64,cells=2,share_cell=64,share_downs=2",
    "all:auto,line_most=64,shares_from=1000,cell=128,cells=3,share_cell=192,leaders=2,flat_ranks=2",
    "broadcast:cells,cell=64,cells=3;reduce:shares,share_cell=128;allreduce:auto,line_most=100,shares_from=700",
    "all:auto,leaders=3,shares_from=256,share_cell=64,up_cell=192,up_cells=2,down_cell=64,down_cells=4",
    "all:auto,convert_from=2K,convert_after=1",
];

#[test]
fn over_threads() {
    watchdog(LIMIT, || {
        let first = seed_of_run();
        println!("{SEED}={first}");
        let (mut calls, mut taken) = (0, 0);
        for (turn, ranks) in (2..=16).chain([2, 3, 4, 5, 8]).enumerate() {
            let seed = mixed(first.wrapping_add(turn as u64));
            let mix = Mix { seed, calls: 3000, most: if turn % 5 == 4 { 40_000 } else { 3000 }, late: turn % 2 == 0 };
            let (rules, trees) = (RULES[turn % RULES.len()], TREES[(turn + seed as usize % 7) % TREES.len()]);
            let spec = job(ranks, rules, seed);
            let done =
                Communicator::threads_at(&spec, trees.parse::<TreeRules>().unwrap(), places(ranks, seed), |world| {
                    mix.run(&world).unwrap_or_else(|error| {
                        panic!(
                            "{SEED}={first}: rank {} of {ranks} on {} cores, {rules}, trees {trees}, {mix:?}: {error}",
                            world.rank(),
                            spec.cores
                        )
                    })
                });
            calls += mix.calls;
            taken += done.unwrap().iter().sum::<usize>() / ranks;
        }
        println!("{calls} steps, of which a rank took part in {taken} as calls");
        assert!(taken > calls / 2, "{taken} of {calls}");
    });
}

#[test]
fn over_processes() {
    let first = seed_of_run();
    println!("{SEED}={first}");
    for (turn, ranks) in (2..=16).enumerate() {
        let seed = mixed(first.wrapping_add(1000 + turn as u64)).to_string();
        let most = if turn % 5 == 4 { "40000" } else { "3000" };
        let mut command = command::job(env!("CARGO_BIN_EXE_conformance_rank"), ranks, &["mix", &seed, "3000", most]);
        command::force(&mut command, RULES[turn % RULES.len()]).env("PHALANX_TREES", TREES[turn % TREES.len()]);
        let said = run(&mut command, LIMIT).succeeded();
        assert!(said.contains(&format!("calls on {ranks} ranks")), "{SEED}={first}: {said}");
    }
}
