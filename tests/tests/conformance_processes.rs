//! The collectives against the oracle, over ranks that are processes which `phalanx run` started: 1 to 16 of them. The
//! ranks run the sweeps of `conformance_threads` as the program `conformance_rank`: each pair of ranks and setting by
//! types or by lengths, in turn.

#![forbid(unsafe_code)]

use std::time::Duration;

use hier::job::{self as node_job, JobSpec};
use hier::{Communicator, TreeRules};
use phalanx_tests::bits::fingerprints;
use phalanx_tests::command::{force, job, run};
use phalanx_tests::random::{mixed, seed_of_run};
use phalanx_tests::settings::{SETTINGS, TREES};

const LIMIT: Duration = Duration::from_secs(600);

const RANKS: [usize; 7] = [1, 2, 3, 4, 5, 8, 16];

/// Runs a sweep, and returns what rank 0 said.
fn sweep(ranks: usize, (rules, trees): (&str, &str), args: &[&str]) -> String {
    let mut command = job(env!("CARGO_BIN_EXE_conformance_rank"), ranks, args);
    force(&mut command, rules).env("PHALANX_TREES", trees);
    let said = run(&mut command, LIMIT).succeeded();
    assert!(said.contains(&format!("calls on {ranks} ranks")), "{args:?}: {said}");
    let moves = rules.contains("convert_from") && ranks > 1 && args[0] == "lengths" && node_job::can_convert();
    assert!(!moves || !said.contains("; 0 private bytes"), "{rules} {args:?}: {said}");
    said
}

#[test]
fn types_and_operators() {
    let seed = seed_of_run();
    for (turn, ranks) in RANKS.into_iter().enumerate() {
        for at in (0..SETTINGS.len()).filter(|at| (at + turn).is_multiple_of(2)) {
            let trees = TREES[(ranks + at) % TREES.len()];
            let seed = mixed(seed ^ (ranks * 100 + at) as u64).to_string();
            sweep(ranks, (SETTINGS[at].rules, trees), &["types", &seed, &at.to_string()]);
        }
    }
}

#[test]
fn lengths_around_every_edge_with_every_root() {
    let seed = seed_of_run();
    for (turn, ranks) in RANKS.into_iter().enumerate() {
        for at in (0..SETTINGS.len()).filter(|at| !(at + turn).is_multiple_of(2)) {
            let trees = TREES[(3 * ranks + at) % TREES.len()];
            let seed = mixed(seed ^ (ranks * 100 + at) as u64).to_string();
            sweep(ranks, (SETTINGS[at].rules, trees), &["lengths", &seed, &at.to_string()]);
        }
    }
}

#[test]
fn every_root_over_trees_in_time_and_late() {
    let seed = seed_of_run();
    for ranks in RANKS {
        for (at, trees) in TREES.into_iter().enumerate() {
            let seed = mixed(seed ^ (ranks * 100 + at) as u64).to_string();
            let mode = if at % 2 == 0 { "roots" } else { "late" };
            sweep(ranks, ("all:auto,line_most=64,shares_from=3000,cell=128,cells=2", trees), &[mode, &seed]);
        }
    }
}

#[test]
fn sums_that_round_have_the_same_bits_in_threads_and_processes() {
    let seed = seed_of_run();
    for ranks in [2, 5, 16] {
        for (rules, trees, ordered) in [
            ("all:line", "", true),
            ("all:shares", "", true),
            ("all:auto", "", false),
            ("all:cells,cell=1K,cells=3", "gather:knomial:3:right", false),
        ] {
            let mut spec = JobSpec::new(ranks).unwrap();
            spec.tuning.force(rules).unwrap();
            let rules_of_trees: TreeRules = trees.parse().unwrap();
            let threads = Communicator::threads_of(&spec, rules_of_trees, |comm| {
                fingerprints(&comm, seed, ordered, false).unwrap()
            })
            .unwrap();
            let said = sweep(ranks, (rules, trees), &["bits", &seed.to_string(), if ordered { "1" } else { "0" }]);
            assert!(said.contains(&format!("bits {:?}", threads[0])), "{ranks} ranks, {rules}, seed {seed}:\n{said}");
        }
    }
}

/// A rank that finds a wrong answer must fail its job: the sweeps above would show nothing otherwise.
#[test]
fn a_rank_that_panics_fails_the_sweep() {
    let ended = run(&mut job(env!("CARGO_BIN_EXE_conformance_rank"), 2, &["no such mode", "1"]), LIMIT);
    assert_eq!(ended.status.code(), Some(101), "{ended:?}");
    assert!(ended.stderr.contains("no such mode"), "{ended:?}");
}
