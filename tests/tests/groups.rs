//! Operators that take several elements for one: no group is ever parted, whatever the algorithm, and lengths that are
//! not whole groups are refused on all ranks.

use std::num::NonZeroUsize;
use std::time::Duration;

use hier::job::JobSpec;
use hier::operator::{Operator, Sum};
use hier::{Communicator, Error, TreeRules};
use phalanx_tests::settings::{TREES, places};
use phalanx_tests::watchdog::watchdog;

const LIMIT: Duration = Duration::from_secs(600);

/// Groups of a map of numbers, `x -> a x + b`, and further numbers: maps follow one another, which does not commute,
/// and numbers are added.
#[derive(Clone, Copy)]
struct Maps {
    group: usize,
    commutative: bool,
}

impl Maps {
    fn combine(self, left: &mut [u32], right: &[u32]) {
        if self.commutative {
            left.iter_mut().zip(right).for_each(|(left, right)| *left = left.wrapping_add(*right));
            return;
        }
        let [a, b] = [left[0], left[1]];
        left[0] = a.wrapping_mul(right[0]);
        left[1] = b.wrapping_mul(right[0]).wrapping_add(right[1]);
        left[2..].iter_mut().zip(&right[2..]).for_each(|(left, right)| *left = left.wrapping_add(*right));
    }
}

// SAFETY: all elements of the result are copied from the first operand.
unsafe impl Operator<u32> for Maps {
    fn is_commutative(&self) -> bool {
        self.commutative
    }

    fn code(&self) -> u8 {
        0x70
    }

    fn group(&self) -> NonZeroUsize {
        NonZeroUsize::new(self.group).unwrap()
    }

    unsafe fn fold(&self, dst: *mut u32, operands: &[*const u32], n: usize) {
        assert_eq!(n % self.group, 0, "whole groups");
        for at in (0..n).step_by(self.group) {
            // SAFETY: by contract so many elements are there.
            let group =
                |operand: *const u32| unsafe { std::slice::from_raw_parts(operand.wrapping_add(at), self.group) };
            let mut made = group(operands[0]).to_vec();
            operands[1..].iter().for_each(|&operand| self.combine(&mut made, group(operand)));
            // SAFETY: by contract so many may be written; an operand that lies there is not read any more.
            unsafe { std::ptr::copy_nonoverlapping(made.as_ptr(), dst.wrapping_add(at), self.group) };
        }
    }
}

fn contribution(rank: usize, count: usize) -> Vec<u32> {
    (0..count).map(|i| 3 + ((rank * 7 + i * 5) % 11) as u32).collect()
}

/// What ranks `from` on, so many, come to, in rank order.
fn in_order(maps: Maps, ranks: usize, count: usize) -> Vec<u32> {
    let mut all = contribution(0, count);
    for rank in 1..ranks {
        let next = contribution(rank, count);
        all.chunks_mut(maps.group).zip(next.chunks(maps.group)).for_each(|(left, right)| maps.combine(left, right));
    }
    all
}

const RULES: [&str; 8] = [
    "",
    "strict",
    "all:line",
    "all:cells,cell=16K,cells=3",
    "all:shares",
    "all:shares,leaders=2",
    "allreduce:exchange",
    "all:direct_from=1,reach_from=1",
];

fn reduce_all(comm: &Communicator, maps: Maps, groups: usize) {
    let (rank, ranks, count) = (comm.rank(), comm.size(), groups * maps.group);
    let (send, expected) = (contribution(rank, count), in_order(maps, ranks, count));
    let mut found = vec![0; count];
    comm.all_reduce_into(&send, &mut found, maps).unwrap();
    assert!(found == expected, "allreduce of {groups} groups of {}", maps.group);
    found.copy_from_slice(&send);
    comm.all_reduce_in_place(&mut found, maps).unwrap();
    assert!(found == expected, "allreduce in place of {groups} groups of {}", maps.group);
    let shared = comm.all_reduce_shared(&send, maps).unwrap();
    assert!(shared[..] == expected, "shared allreduce of {groups} groups of {}", maps.group);
    for root in [0, ranks - 1] {
        let process = comm.process_at_rank(root);
        if rank == root {
            process.reduce_into_root(&send, &mut found, maps).unwrap();
            assert!(found == expected, "reduction of {groups} groups of {}", maps.group);
        } else {
            process.reduce_into(&send, maps).unwrap();
        }
    }
    comm.scan_into(&send, &mut found, maps).unwrap();
    assert!(found == in_order(maps, rank + 1, count), "scan of {groups} groups of {}", maps.group);
    comm.exclusive_scan_into(&send, &mut found, maps).unwrap();
    assert!(rank == 0 || found == in_order(maps, rank, count), "exclusive scan of {groups} groups of {}", maps.group);
    let (rows, expected) = (contribution(rank, count * ranks), in_order(maps, ranks, count * ranks));
    comm.reduce_scatter_block_into(&rows, &mut found, maps).unwrap();
    assert!(found == expected[rank * count..][..count], "reduce-scatter of {groups} groups of {}", maps.group);
    // Blocks of 0, 1, 2 .. groups.
    let counts: Vec<usize> = (0..ranks).map(|rank| rank % (groups + 1) * maps.group).collect();
    let (begin, all) = (counts[..rank].iter().sum::<usize>(), counts.iter().sum::<usize>());
    let mut block = vec![0; counts[rank]];
    comm.reduce_scatter_into(&rows[..all], &mut block, &counts, maps).unwrap();
    assert!(block == expected[begin..][..counts[rank]], "uneven reduce-scatter of groups of {}", maps.group);
}

fn world(ranks: usize, rules: &str) {
    let mut spec = JobSpec::new(ranks).unwrap();
    spec.tuning.force(rules).unwrap();
    let trees: TreeRules = TREES[(ranks + rules.len()) % TREES.len()].parse().unwrap();
    let calls = |comm: Communicator| {
        for group in [2, 3, 5, 38, 300, 1000] {
            for groups in [1, 2, 7, 40, 333].into_iter().filter(|groups| groups * group <= 30_000) {
                for commutative in [false, true] {
                    reduce_all(&comm, Maps { group, commutative }, groups);
                }
            }
        }
    };
    Communicator::threads_at(&spec, trees, places(ranks, 7), calls)
        .unwrap_or_else(|error| panic!("{rules:?}: {error}"));
}

#[test]
fn groups_are_never_parted() {
    watchdog(LIMIT, || {
        for ranks in [1, 2, 3, 4, 7] {
            for rules in RULES {
                world(ranks, rules);
            }
        }
    });
}

#[test]
fn lengths_that_are_no_whole_groups_are_refused() {
    watchdog(LIMIT, || {
        Communicator::threads(3, |comm| {
            let maps = Maps { group: 4, commutative: true };
            let (mut short, mut whole) = ([1; 6], [1; 8]);
            let root = comm.process_at_rank(0);
            let scanned = comm.scan_into(&[1; 6], &mut short, maps);
            let reduced = match comm.rank() {
                0 => root.reduce_into_root_in_place(&mut short, maps),
                _ => root.reduce_into(&[1; 6], maps),
            };
            let scattered = comm.reduce_scatter_into(&[1; 9], &mut [0; 3], &[3; 3], maps);
            for error in [comm.all_reduce_in_place(&mut short, maps), scanned, reduced, scattered] {
                assert!(matches!(error, Err(Error::Blocks { .. })), "{error:?}");
            }
            assert_eq!(short, [1; 6], "nothing was written");
            // All were refused alike.
            comm.all_reduce_in_place(&mut whole, maps).unwrap();
            assert_eq!(whole, [3; 8]);
            comm.all_reduce_in_place(&mut whole, Sum).unwrap();
        })
        .unwrap();
    });
}
