//! Ranks whose calls are not the same: all are told.

use hier::across::HierComm;
use hier::operator::Sum;

use crate::{BEHAVIOURS, cluster};

/// What became of a call and, if it was nothing, of a barrier behind it: errors of both are told.
fn told(comm: &HierComm, call: impl FnOnce() -> hier::across::Result<()>) -> Option<String> {
    call().and_then(|()| comm.barrier()).err().map(|error| error.to_string())
}

#[test]
fn a_rank_that_gives_nothing_where_others_give_some_is_noticed() {
    for labels in [&[0, 1][..], &[0, 0, 1, 1], &[0, 0, 0, 1, 2, 2], &[0, 1, 2]] {
        for rules in ["", "allreduce:leaders=2,slice=64", "allreduce:slice=adaptive"] {
            for culprit in 0..labels.len() {
                let errors = cluster(labels, rules, BEHAVIOURS[0], |comm| {
                    let mut buffer = vec![1_i64; if comm.rank() == culprit { 0 } else { 355 }];
                    told(comm, || comm.all_reduce_in_place(&mut buffer, Sum))
                });
                assert!(errors.iter().all(Option::is_some), "{labels:?}, {rules:?}, culprit {culprit}: {errors:?}");
            }
        }
    }
}

#[test]
fn calls_that_are_the_same_to_a_node_are_told_from_each_other() {
    for labels in [&[0, 0, 1, 2][..], &[0, 0, 1, 1, 1, 2], &[0, 0, 1, 1]] {
        let errors = cluster(labels, "", BEHAVIOURS[0], |comm| {
            let (mine, mut sum) = ([1_i64; 355], [0; 355]);
            told(comm, || match comm.rank() {
                0 => comm.process_at_rank(0).reduce_into_root(&mine, &mut sum, Sum),
                _ => comm.all_reduce_into(&mine, &mut sum, Sum),
            })
        });
        assert!(errors.iter().all(Option::is_some), "{labels:?}: {errors:?}");
    }
}
