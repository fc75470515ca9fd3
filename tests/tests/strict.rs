//! The strict mode: the bits of every sum are those of a loop over the ranks, at every size, with every algorithm and
//! tree.

#![forbid(unsafe_code)]

use std::time::Duration;

use hier::job::JobSpec;
use hier::operator::Sum;
use hier::{Communicator, TreeRules};
use phalanx_tests::settings::{TREES, places};
use phalanx_tests::watchdog::watchdog;

const LIMIT: Duration = Duration::from_secs(600);

/// Numbers whose sum hangs on the order of additions.
fn contribution(rank: usize, count: usize) -> Vec<f64> {
    let number = |i: usize| {
        let mixed =
            (rank as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (i as u64).wrapping_mul(0xd6e8_feb8_6659_fd93);
        let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed >> 11) as f64 * if mixed & 1 == 0 { 1e-9 } else { -1e3 }
    };
    (0..count).map(number).collect()
}

/// The sum in rank order.
fn in_order(ranks: usize, count: usize) -> Vec<f64> {
    let mut sum = contribution(0, count);
    for rank in 1..ranks {
        sum.iter_mut().zip(contribution(rank, count)).for_each(|(sum, next)| *sum += next);
    }
    sum
}

const RULES: [&str; 7] = [
    "strict",
    "strict; all:line",
    "strict; all:line,flat_ranks=1",
    "strict; all:cells,cell=256,cells=3",
    "strict; all:shares,share_cell=192",
    "strict; all:shares,leaders=2",
    "all:auto,line_most=64,shares_from=2000; strict",
];

/// Whether all sums are those in rank order.
fn sums_are_in_order(comm: &Communicator) -> bool {
    let (rank, ranks) = (comm.rank(), comm.size());
    let mut all = true;
    for count in [1, 2, 7, 63, 64, 200, 900, 5000, 40_000] {
        let (send, expected) = (contribution(rank, count), in_order(ranks, count));
        let same = |sum: &[f64]| sum.iter().zip(&expected).all(|(a, b)| a.to_bits() == b.to_bits());
        let mut sum = vec![0.0; count];
        comm.all_reduce_into(&send, &mut sum, Sum).unwrap();
        all &= same(&sum);
        for root in [0, ranks / 2, ranks - 1] {
            let process = comm.process_at_rank(root);
            if rank == root {
                sum.fill(0.0);
                process.reduce_into_root(&send, &mut sum, Sum).unwrap();
                all &= same(&sum);
            } else {
                process.reduce_into(&send, Sum).unwrap();
            }
        }
    }
    all
}

fn world(ranks: usize, rules: &str, trees: &str) -> bool {
    let mut spec = JobSpec::new(ranks).unwrap();
    spec.tuning.force(rules).unwrap();
    let trees: TreeRules = trees.parse().unwrap();
    Communicator::threads_at(&spec, trees, places(ranks, 7), |comm| sums_are_in_order(&comm))
        .unwrap()
        .into_iter()
        .all(|ok| ok)
}

#[test]
fn sums_are_those_of_a_loop_over_the_ranks() {
    watchdog(LIMIT, || {
        for ranks in [1, 2, 3, 4, 5, 8, 13, 16, 33] {
            for (at, rules) in RULES.iter().enumerate() {
                let trees = TREES[(ranks + at) % TREES.len()];
                assert!(world(ranks, rules, trees), "{ranks} ranks, {rules}, trees {trees:?}");
            }
        }
    });
}

#[test]
fn without_it_trees_add_in_another_order() {
    watchdog(LIMIT, || {
        assert!(!world(8, "all:cells", "gather: kary:2"), "or the numbers above are too tame");
    });
}
