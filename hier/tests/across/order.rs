//! In which order operands are combined: the same bits on all ranks, and rank order where it is asked for.

use hier::across::ClusterSettings;
use hier::operator::{Sum, User};

use crate::{BEHAVIOURS, PLACEMENTS, cluster, cluster_by};

/// Sums of which every order of additions has other bits.
fn rough(rank: usize, count: usize) -> Vec<f64> {
    (0..count).map(|i| ((rank * 7919 + i * 104_729) % 1_000_003) as f64 / 977.0 + 1e-9 * i as f64).collect()
}

#[test]
fn bits_do_not_depend_on_calls_slices_or_leaders() {
    for labels in [&[0_usize, 1, 2, 3, 4][..], &[0, 0, 1, 1, 2, 2], &[0, 0, 0, 1, 1, 1, 1]] {
        for schedule in ["ring", "circulant", "halving-exchange"] {
            let mut seen: Option<Vec<u64>> = None;
            for how in ["", "slice=whole", "slice=10K", "slice=3K,leaders=2,flight=4", "slice=adaptive", "leaders=3"] {
                let results = cluster(labels, &format!("allreduce:{schedule},{how}"), BEHAVIOURS[1], |comm| {
                    let own = rough(comm.rank(), 20_001);
                    let mut bits: Option<Vec<u64>> = None;
                    for _ in 0..6 {
                        let mut sum = vec![0.0; own.len()];
                        comm.all_reduce_into(&own, &mut sum, Sum).unwrap();
                        let now: Vec<u64> = sum.iter().map(|x| x.to_bits()).collect();
                        assert!(
                            bits.as_ref().is_none_or(|before| *before == now),
                            "{schedule},{how}: another call, other bits"
                        );
                        bits = Some(now);
                    }
                    bits
                });
                for result in results {
                    assert!(seen.is_none() || seen == result, "{schedule},{how}: other bits");
                    seen = result;
                }
            }
        }
    }
}

/// Segments that are halved a few times and then exchanged, on so many nodes that there is something of both, powers of
/// two or not: the order of operands, and the same bits on all ranks, whatever the slices and the rest of a division.
#[test]
fn exchanges_in_the_place_of_halvings_on_many_nodes() {
    let fixed = User::ordered(|into: &mut [[u64; 2]], from: &[[u64; 2]]| {
        into.iter_mut().zip(from).for_each(|(left, right)| *left = then(*left, *right));
    });
    for (i, nodes) in [6, 8, 11, 16, 19].into_iter().enumerate() {
        // One rank a node, and some nodes with two, which follow one another or do not.
        let mut labels: Vec<usize> = (0..nodes).chain(0..nodes / 3).collect();
        if i % 2 == 0 {
            labels.sort_unstable();
        }
        for (k, exchanges) in ["", "-2", "-3"].into_iter().enumerate() {
            let how = ["slice=whole", "slice=100,flight=3", "slice=adaptive", "slice=40,leaders=2"][(i + k) % 4];
            let rules = format!("allreduce:halving-exchange{exchanges},{how}");
            let results = cluster(&labels, &rules, BEHAVIOURS[(i + k) % 2], |comm| {
                let mut bits = Vec::new();
                for count in [0, 1, 5, nodes - 1, nodes + 1, 1003] {
                    let maps: Vec<_> = (0..count).map(|i| map_after(comm.rank(), i)).collect();
                    let mut composed = vec![[0; 2]; count];
                    comm.all_reduce_into(&maps, &mut composed, fixed).unwrap();
                    let expected =
                        |i| (0..comm.size()).map(|rank| map_after(rank, i)).reduce(then).expect("there are ranks");
                    assert!((0..count).all(|i| composed[i] == expected(i)), "{rules}, {nodes} nodes, {count}");
                    let mut sum = rough(comm.rank(), count);
                    comm.all_reduce_in_place(&mut sum, Sum).unwrap();
                    bits.extend(sum.iter().map(|x| x.to_bits()));
                }
                bits
            });
            assert!(
                results.iter().all(|bits| *bits == results[0]),
                "{rules}, {nodes} nodes: other bits on other ranks"
            );
        }
    }
}

/// Maps of numbers, one after the other: associative, and in another order another map.
fn map_after(rank: usize, i: usize) -> [u64; 2] {
    [2 + (rank as u64 + i as u64) % 5, 1 + rank as u64]
}

fn then(into: [u64; 2], from: [u64; 2]) -> [u64; 2] {
    [into[0].wrapping_mul(from[0]), into[1].wrapping_mul(from[0]).wrapping_add(from[1])]
}

#[test]
fn the_strict_mode_keeps_rank_order_across_nodes() {
    let mut kept_without = true;
    for labels in PLACEMENTS {
        for algorithms in ["", "strict"] {
            for rules in ["", "allreduce:ring,leaders=2,slice=1K", "allreduce:circulant;reduce:halving-farthest"] {
                let settings = ClusterSettings {
                    algorithms: algorithms.to_owned(),
                    rules: rules.to_owned(),
                    ..ClusterSettings::default()
                };
                let all_kept = cluster_by(labels, settings, BEHAVIOURS[1], |comm| {
                    // It is said to commute, which it does not: who makes use of that gives another answer.
                    let operator = User::commutative(|into: &mut [[u64; 2]], from: &[[u64; 2]]| {
                        into.iter_mut().zip(from).for_each(|(left, &right)| *left = then(*left, right));
                    });
                    let ranks = comm.size();
                    [1, 40, 3000].into_iter().all(|count| {
                        let own: Vec<[u64; 2]> = (0..count).map(|i| map_after(comm.rank(), i)).collect();
                        let fold = |i| (1..ranks).fold(map_after(0, i), |left, rank| then(left, map_after(rank, i)));
                        let expected: Vec<[u64; 2]> = (0..count).map(fold).collect();
                        let mut found = vec![[0; 2]; count];
                        comm.all_reduce_into(&own, &mut found, operator).unwrap();
                        let root = comm.process_at_rank(ranks / 2);
                        let mut at_root = expected.clone();
                        if comm.rank() == ranks / 2 {
                            root.reduce_into_root(&own, &mut at_root, operator).unwrap();
                        } else {
                            root.reduce_into(&own, operator).unwrap();
                        }
                        found == expected && at_root == expected
                    })
                });
                let kept = all_kept.iter().all(|&kept| kept);
                assert!(kept || algorithms.is_empty(), "{labels:?}, {rules:?}: not in rank order");
                kept_without &= kept;
            }
        }
    }
    assert!(!kept_without, "the test sees no difference");
}
