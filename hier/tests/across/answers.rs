//! Every call beside the naive oracle, over placements, schedules, leaders, slices and transports.

use hier::operator::Sum;

use crate::collectives::check;
use crate::{BEHAVIOURS, PLACEMENTS, cluster};

#[test]
fn all_placements_and_behaviours() {
    for labels in PLACEMENTS {
        for behaviour in BEHAVIOURS {
            cluster(labels, "", behaviour, |comm| {
                for count in [0, 1, 5, 300, 5000] {
                    check(comm, count);
                }
            });
        }
    }
}

#[test]
fn all_schedules_leaders_and_slices() {
    let rules = [
        "allreduce:ring,slice=whole",
        "allreduce:ring,slice=1K,flight=1",
        "allreduce:ring,leaders=2,slice=5000,flight=3;broadcast:scatter-ring,slice=3000",
        "allreduce:ring,leaders=3,slice=adaptive;reduce:halving-nearest,slice=1000",
        "allreduce:recursive-doubling,leaders=16,slice=2K;broadcast:binomial,slice=1K",
        "allreduce:halving-nearest,slice=4K,flight=8;reduce:halving-farthest",
        "allreduce:halving-farthest;broadcast:scatter-ring-native",
        "allreduce:halving-exchange,leaders=2,slice=3000",
        "allreduce:halving-exchange-3,slice=adaptive",
        "allreduce:binomial;reduce:binomial,slice=100",
        "allreduce:circulant,leaders=2,slice=10K",
    ];
    for labels in PLACEMENTS {
        for rules in rules {
            cluster(labels, rules, BEHAVIOURS[1], |comm| {
                for count in [1, 3, 2001] {
                    check(comm, count);
                }
            });
        }
    }
}

/// Vectors that a node reduces and hands out in stages, while a schedule is under way.
#[test]
fn messages_that_go_whole_overlap_with_themselves() {
    let labels = [&[0, 0, 1, 1, 2][..], &[0, 1, 0, 1, 0, 1], &[0, 0, 0, 1, 2, 2, 3, 3]];
    let schedules = [
        "ring",
        "halving-nearest",
        "halving-farthest",
        "halving-exchange-2",
        "circulant",
        "binomial",
        "recursive-doubling",
    ];
    for (i, schedule) in schedules.iter().enumerate() {
        for leaders in 1..=2 {
            let rules = format!("allreduce:{schedule},leaders={leaders},slice=whole");
            cluster(labels[i % labels.len()], &rules, BEHAVIOURS[i % BEHAVIOURS.len()], |comm| check(comm, 70_001));
        }
    }
}

/// The same over every kind of transport, sums, into another buffer and in place: the gates of a ring open one by one
/// while sends wait for their receives.
#[test]
fn stages_of_a_ring_on_every_transport() {
    const COUNT: usize = 50_001;
    for labels in [&[0, 0, 1, 1, 2, 2][..], &[0, 1, 0, 1, 0, 1, 2, 3]] {
        for (i, behaviour) in BEHAVIOURS.into_iter().enumerate() {
            let rules = format!("allreduce:ring,leaders={},slice=whole", 1 + i % 2);
            cluster(labels, &rules, behaviour, |comm| {
                let (rank, size) = (comm.rank() as u64, comm.size() as u64);
                let sum = |i: u64| size * i + size * (size - 1) / 2 * 1000;
                // More than one call, so that messages of one meet those of the next.
                for turn in 0..3 {
                    let own: Vec<u64> = (turn..turn + COUNT as u64).map(|i| i + 1000 * rank).collect();
                    let (mut into, mut in_place) = (vec![0; COUNT], own.clone());
                    comm.all_reduce_into(&own, &mut into, Sum).unwrap();
                    comm.all_reduce_in_place(&mut in_place, Sum).unwrap();
                    assert!(into.iter().zip(turn..).all(|(&found, i)| found == sum(i)), "{behaviour:?}");
                    assert_eq!(into, in_place);
                }
            });
        }
    }
}

#[test]
fn groups_of_groups() {
    for labels in PLACEMENTS {
        cluster(labels, "", BEHAVIOURS[2], |comm| {
            let copy = comm.duplicate().unwrap();
            check(&copy, 50);
            // Odd and even ranks, in reverse order; rank 0 stays out.
            let color = (comm.rank() > 0).then_some(comm.rank() as u32 % 2);
            let part = comm.split(color, -(comm.rank() as i64)).unwrap();
            assert_eq!(part.is_some(), color.is_some());
            if let Some(part) = part {
                check(&part, 50);
                let mut order = vec![0; part.size()];
                order[part.rank()] = comm.rank();
                part.all_reduce_in_place(&mut order, Sum).unwrap();
                assert!(order.windows(2).all(|pair| pair[0] == pair[1] + 2), "{order:?}");
                check(&part.duplicate().unwrap(), 7);
            }
            check(comm, 50);
        });
    }
}

#[test]
fn nothing_and_elements_of_no_size() {
    cluster(&[0, 0, 1], "", BEHAVIOURS[1], |comm| {
        comm.process_at_rank(2).broadcast_into(&mut [(); 1 << 20]).unwrap();
        comm.process_at_rank(2).broadcast_into(&mut [0_u8; 0]).unwrap();
        comm.barrier().unwrap();
    });
}

#[test]
fn slices_find_their_size_alike_on_all_ranks() {
    let explained = cluster(&[0, 0, 1, 1], "", BEHAVIOURS[0], |comm| {
        let mut buffer = vec![1.0_f64; 1 << 17];
        for _ in 0..20 {
            buffer.fill(1.0);
            comm.all_reduce_in_place(&mut buffer, Sum).unwrap();
            assert!(buffer.iter().all(|&x| x == 4.0));
        }
        comm.explain(hier::Collective::Allreduce, 1 << 20)
    });
    assert!(explained.windows(2).all(|pair| pair[0] == pair[1]), "{explained:?}");
}

#[test]
fn vectors_of_no_elements_are_combined_by_all() {
    for labels in PLACEMENTS {
        for rules in ["", "allreduce:leaders=2", "allreduce:slice=adaptive"] {
            cluster(labels, rules, BEHAVIOURS[1], |comm| {
                for _ in 0..3 {
                    comm.all_reduce_into(&[0_i64; 0], &mut [], Sum).unwrap();
                    check(comm, 10);
                }
            });
        }
    }
}
