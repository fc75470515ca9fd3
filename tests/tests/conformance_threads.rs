//! The collectives against the oracle, over ranks that are threads: 1 to 16 of them, under every regime and tree.
//!
//! The product of everything with everything would take hours. What is complete, on 1 to 5 ranks: settings x types x
//! operators; settings x lengths around every edge x roots; trees x settings with cells and lines x roots. On the other
//! numbers each takes a third of the settings, and the run of another seed another third; each tree is taken on all
//! numbers, with every root. Within each, the remaining choices (type for a length, in place or not, root for an
//! allreduce) go round or are drawn.

#![forbid(unsafe_code)]

use std::time::Duration;

use hier::job::JobSpec;
use hier::{Communicator, TreeRules};
use phalanx_tests::bits::fingerprints;
use phalanx_tests::cases::cases;
use phalanx_tests::random::{mixed, seed_of_run};
use phalanx_tests::settings::{SETTINGS, TREES, is_tried, job, places};
use phalanx_tests::sweep::Sweep;
use phalanx_tests::watchdog::watchdog;

const LIMIT: Duration = Duration::from_secs(900);

/// Runs a sweep on `ranks` ranks; returns the calls that each made.
fn sweep(
    (ranks, rules, trees, seed): (usize, &str, &str, u64),
    late: bool,
    calls: impl Fn(&mut Sweep) + Sync,
) -> usize {
    let spec = job(ranks, rules, seed);
    let label = format!("{ranks} ranks on {} cores, {rules:?}, trees {trees:?}, seed {seed}", spec.cores);
    let trees: TreeRules = trees.parse().unwrap();
    let made = Communicator::threads_at(&spec, trees, places(ranks, seed), |comm| {
        let mut sweep = Sweep::new(&comm, &label, seed, late);
        calls(&mut sweep);
        comm.barrier().unwrap();
        assert_eq!(comm.counters().calls as usize, sweep.calls + 1, "every call was counted");
        sweep.calls
    })
    .unwrap();
    assert!(made.iter().all(|&calls| calls == made[0]));
    made[0]
}

#[test]
fn types_and_operators() {
    watchdog(LIMIT, || {
        let seed = seed_of_run();
        let mut calls = 0;
        for ranks in 1..=16 {
            for (at, setting) in SETTINGS.iter().enumerate().filter(|&(at, _)| is_tried(at, ranks, seed)) {
                let world =
                    (ranks, setting.rules, TREES[(ranks + at) % TREES.len()], mixed(seed ^ (ranks * 100 + at) as u64));
                let edges = setting.edges(ranks);
                let bytes = edges[ranks % edges.len()].min(1200);
                calls += sweep(world, false, |sweep| {
                    sweep.takes(setting).unwrap();
                    sweep.types(2, bytes);
                });
            }
        }
        println!("{calls} calls, {} cases, seed {seed}", cases().len());
    });
}

#[test]
fn lengths_around_every_edge_with_every_root() {
    watchdog(LIMIT, || {
        let seed = seed_of_run();
        let mut calls = 0;
        for ranks in 1..=16 {
            for (at, setting) in SETTINGS.iter().enumerate().filter(|&(at, _)| is_tried(at, ranks, seed)) {
                let world = (
                    ranks,
                    setting.rules,
                    TREES[(3 * ranks + at) % TREES.len()],
                    mixed(seed ^ (ranks * 100 + at) as u64),
                );
                calls += sweep(world, false, |sweep| sweep.lengths(setting));
            }
        }
        println!("{calls} calls, seed {seed}");
    });
}

#[test]
fn every_tree_with_every_root() {
    watchdog(LIMIT, || {
        let seed = seed_of_run();
        let mut calls = 0;
        for ranks in 1..=16 {
            for (at, trees) in TREES.iter().enumerate() {
                let rules = [
                    "all:cells,cell=64,cells=2",
                    "all:line,flat_ranks=1",
                    "all:auto,flat_ranks=2,line_most=64,shares_from=1000",
                ];
                // On many ranks each tree goes with one of them.
                for (_, rules) in rules.into_iter().enumerate().filter(|&(nth, _)| is_tried(at + nth, ranks, seed)) {
                    let world = (ranks, rules, *trees, mixed(seed ^ (ranks * 100 + at) as u64));
                    calls += sweep(world, false, |sweep| sweep.roots(&[1, 8, 9, 80, 130]));
                }
            }
        }
        println!("{calls} calls, seed {seed}");
    });
}

#[test]
fn late_ranks() {
    watchdog(LIMIT, || {
        let seed = seed_of_run();
        let mut calls = 0;
        for ranks in [2, 3, 4, 7, 16] {
            for (at, setting) in SETTINGS.iter().enumerate() {
                let world = (
                    ranks,
                    setting.rules,
                    TREES[(5 * ranks + at) % TREES.len()],
                    mixed(seed ^ (ranks * 100 + at) as u64),
                );
                calls += sweep(world, true, |sweep| sweep.roots(&[1, 8, 70, 200]));
            }
        }
        println!("{calls} calls, seed {seed}");
    });
}

#[test]
fn more_ranks_than_lines_are_exchanged_flat_by() {
    watchdog(LIMIT, || {
        let seed = seed_of_run();
        for ranks in [17, 31, 32, 33, 64, 100, 256] {
            for rules in [
                "all:auto",
                "all:cells,up_bytes=64K,down_bytes=64K",
                "all:shares,leaders=5,up_bytes=64K,down_bytes=64K",
            ] {
                let made = sweep((ranks, rules, "", seed), false, |sweep| sweep.few(&[0, 1, 7, 70, 3000]));
                assert!(made >= 15, "{made}");
            }
        }
    });
}

/// Settings under which everything is combined in rank order, and others.
const BITS: [(&str, &str, bool); 6] = [
    ("all:line", "", true),
    ("all:shares", "", true),
    ("all:shares,leaders=2,share_cell=256", "", true),
    ("all:cells,cell=1K,cells=3", "", false),
    ("all:auto", "", false),
    ("all:cells", "gather:kary:1:right", false),
];

#[test]
fn sums_that_round_have_the_same_bits_everywhere() {
    watchdog(LIMIT, || {
        let seed = seed_of_run();
        for ranks in [1, 2, 3, 5, 8, 16] {
            for (rules, trees, ordered) in BITS {
                let mut spec = JobSpec::new(ranks).unwrap();
                spec.tuning.force(rules).unwrap();
                let bits = |late: bool| {
                    let trees: TreeRules = trees.parse().unwrap();
                    Communicator::threads_of(&spec, trees, |comm| fingerprints(&comm, seed, ordered, late).unwrap())
                        .unwrap()
                };
                let (calm, late) = (bits(false), bits(true));
                assert!(calm.iter().chain(&late).all(|rank| *rank == calm[0]), "{ranks} ranks, {rules}, seed {seed}");
            }
        }
    });
}
