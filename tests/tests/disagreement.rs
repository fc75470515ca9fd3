//! Ranks that make different calls, or calls with wrong arguments: everybody gets an error that says so, nobody hangs.

#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

use hier::job::JobSpec;
use hier::operator::{Max, Sum};
use hier::{Communicator, Error, Partition, PartitionMut, TreeRules};
use phalanx_tests::watchdog::watchdog;

/// A test that takes longer hangs. Alone it takes 16 s, mostly asleep; where three others that compute come first to
/// two cores, more than 60.
const LIMIT: Duration = Duration::from_secs(300);

/// Within so long everybody has been told.
const PROMISE: Duration = Duration::from_secs(10);

type Outcome = Result<(), Error>;

/// What a rank does, given whether it is the odd one.
type Part = fn(&Communicator, bool) -> Outcome;

fn world(ranks: usize, rules: &str) -> JobSpec {
    let mut spec = JobSpec::new(ranks).unwrap();
    spec.tuning.force(rules).unwrap();
    spec
}

/// Lets every rank play its part, then a few barriers and sums; returns the first error of each, and of the part
/// itself.
fn outcomes(ranks: usize, rules: &str, odd: usize, part: Part) -> Vec<(Outcome, Outcome)> {
    Communicator::threads_of(&world(ranks, rules), TreeRules::default(), |comm| {
        comm.barrier().unwrap();
        let begin = Instant::now();
        let own = part(&comm, comm.rank() == odd);
        let mut first = own.clone();
        if matches!(own, Ok(()) | Err(Error::Length { .. } | Error::Root { .. } | Error::Blocks { .. })) {
            first = (0..3).try_for_each(|_| {
                comm.barrier()?;
                part(&comm, false)
            });
        }
        assert!(
            begin.elapsed() < PROMISE,
            "rank {} of {ranks}, odd {odd}, {rules}: {:?}",
            comm.rank(),
            begin.elapsed()
        );
        // The world is kept until all have been told.
        std::thread::sleep(Duration::from_millis(20));
        (own, first)
    })
    .unwrap()
}

fn allreduce(comm: &Communicator, len: usize) -> Outcome {
    comm.all_reduce_in_place(&mut vec![1u32; len], Sum)
}

fn reduce(comm: &Communicator, root: usize, len: usize) -> Outcome {
    let process = comm.process_at_rank(root);
    if comm.rank() == root {
        process.reduce_into_root_in_place(&mut vec![1u32; len], Sum)
    } else {
        process.reduce_into(&vec![1u32; len], Sum)
    }
}

fn broadcast(comm: &Communicator, root: usize, len: usize) -> Outcome {
    comm.process_at_rank(root).broadcast_into(&mut vec![1u32; len])
}

/// Ways to disagree.
const DISAGREEMENTS: [(&str, Part); 17] = [
    ("lengths of an allreduce", |comm, odd| allreduce(comm, if odd { 7 } else { 8 })),
    ("long lengths of an allreduce", |comm, odd| allreduce(comm, if odd { 3000 } else { 3001 })),
    ("a short and a long allreduce", |comm, odd| allreduce(comm, if odd { 1 } else { 20_000 })),
    ("an empty allreduce", |comm, odd| allreduce(comm, if odd { 0 } else { 1 })),
    ("lengths of a reduce", |comm, odd| reduce(comm, 1, if odd { 50 } else { 40 })),
    ("a short and a long reduce", |comm, odd| reduce(comm, 0, if odd { 50_000 } else { 4 })),
    ("lengths of a broadcast", |comm, odd| broadcast(comm, 1, if odd { 500 } else { 510 })),
    ("a short and a long broadcast", |comm, odd| broadcast(comm, 0, if odd { 50_000 } else { 1 })),
    ("roots of a reduce", |comm, odd| reduce(comm, usize::from(odd), 10)),
    ("roots of a broadcast", |comm, odd| broadcast(comm, usize::from(odd), 10)),
    ("roots of a long broadcast", |comm, odd| broadcast(comm, usize::from(!odd), 100_000)),
    ("a barrier and an allreduce", |comm, odd| if odd { comm.barrier() } else { allreduce(comm, 3) }),
    ("a reduce and a broadcast", |comm, odd| if odd { reduce(comm, 0, 300) } else { broadcast(comm, 0, 300) }),
    ("a call left out", |comm, odd| if odd { Ok(()) } else { allreduce(comm, 1000) }),
    ("a duplicate and a barrier", |comm, odd| if odd { comm.duplicate().map(drop) } else { comm.barrier() }),
    ("operators", |comm, odd| {
        let mut buffer = [1u64; 9];
        if odd { comm.all_reduce_in_place(&mut buffer, Max) } else { comm.all_reduce_in_place(&mut buffer, Sum) }
    }),
    ("types", |comm, odd| {
        if odd { comm.all_reduce_in_place(&mut [1f32; 9], Sum) } else { comm.all_reduce_in_place(&mut [1u32; 9], Sum) }
    }),
];

fn gather(comm: &Communicator, root: usize, len: usize) -> Outcome {
    let process = comm.process_at_rank(root);
    match comm.rank() == root {
        true => process.gather_into_root(&vec![1u32; len], &mut vec![0; len * comm.size()]),
        false => process.gather_into(&vec![1u32; len]),
    }
}

fn scatter(comm: &Communicator, root: usize, len: usize) -> Outcome {
    let process = comm.process_at_rank(root);
    match comm.rank() == root {
        true => process.scatter_into_root(&vec![1u32; len * comm.size()], &mut vec![0; len]),
        false => process.scatter_into(&mut vec![0u32; len]),
    }
}

/// Blocks of `len` elements, that of this rank of `own`.
fn gather_varying(comm: &Communicator, root: usize, len: usize, own: usize) -> Outcome {
    let process = comm.process_at_rank(root);
    if comm.rank() != root {
        return process.gather_varcount_into(&vec![1u32; own]);
    }
    let mut counts = vec![len; comm.size()];
    counts[root] = own;
    let displs: Vec<usize> = (0..comm.size()).map(|rank| rank * len.max(own)).collect();
    let mut all = vec![0; comm.size() * len.max(own)];
    process.gather_varcount_into_root(&vec![1u32; own], &mut PartitionMut::new(&mut all, &counts, &displs))
}

/// The odd one has another count: for itself, or, as the root, for all others.
fn uneven_gather(comm: &Communicator, count: usize) -> Outcome {
    match comm.rank() {
        0 => gather_varying(comm, 0, count, 30),
        _ => gather_varying(comm, 0, 30, count),
    }
}

fn scatter_varying(comm: &Communicator, root: usize, len: usize, own: usize) -> Outcome {
    let process = comm.process_at_rank(root);
    if comm.rank() != root {
        return process.scatter_varcount_into(&mut vec![1u32; own]);
    }
    let counts = vec![own; comm.size()];
    let displs: Vec<usize> = (0..comm.size()).map(|rank| rank * own).collect();
    let all = vec![1u32; comm.size() * own];
    // A root that differs has other counts than all others expect.
    process.scatter_varcount_into_root(&Partition::new(&all, &counts, &displs), &mut vec![0; own])?;
    assert_eq!(len, own, "the others' lengths are not the root's");
    Ok(())
}

fn all_to_all_varying(comm: &Communicator, len: usize, first: usize) -> Outcome {
    let mut counts = vec![len; comm.size()];
    counts[(comm.rank() + 1) % comm.size()] = first;
    let longest = len.max(first);
    let displs: Vec<usize> = (0..comm.size()).map(|rank| rank * longest).collect();
    let (send, mut recv) = (vec![1u32; comm.size() * longest], vec![0; comm.size() * longest]);
    let receives = vec![len; comm.size()];
    comm.all_to_all_varcount_into(
        &Partition::new(&send, &counts, &displs),
        &mut PartitionMut::new(&mut recv, &receives, &displs),
    )
}

fn all_gather_varying(comm: &Communicator, counts: &[usize]) -> Outcome {
    let displs: Vec<usize> = (0..comm.size()).map(|rank| 10 * rank).collect();
    let mut all = vec![0u32; 10 * comm.size()];
    let counts: Vec<usize> = (0..comm.size()).map(|rank| counts[rank % counts.len()]).collect();
    let own = vec![1; counts[comm.rank()]];
    comm.all_gather_varcount_into(&own, &mut PartitionMut::new(&mut all, &counts, &displs))
}

fn all_to_all(comm: &Communicator, len: usize) -> Outcome {
    comm.all_to_all_in_place(&mut vec![1u32; len * comm.size()])
}

fn reduce_scatter(comm: &Communicator, len: usize) -> Outcome {
    comm.reduce_scatter_block_into(&vec![1u32; len * comm.size()], &mut vec![0; len], Sum)
}

/// Ways to disagree about blocks.
const BLOCK_DISAGREEMENTS: [(&str, Part); 19] = [
    ("lengths of a gather", |comm, odd| gather(comm, 1, if odd { 7 } else { 8 })),
    ("long lengths of a gather", |comm, odd| gather(comm, 0, if odd { 3000 } else { 30_000 })),
    ("roots of a gather", |comm, odd| gather(comm, usize::from(odd), 300)),
    ("lengths of a scatter", |comm, odd| scatter(comm, 1, if odd { 7 } else { 8 })),
    ("a short and a long scatter", |comm, odd| scatter(comm, 0, if odd { 30_000 } else { 3 })),
    ("lengths of an allgather", |comm, odd| {
        let len = if odd { 126 } else { 127 };
        comm.all_gather_in_place(&mut vec![1u32; len * comm.size()])
    }),
    ("counts of an uneven allgather", |comm, odd| all_gather_varying(comm, if odd { &[4, 7] } else { &[4, 8] })),
    ("an even and an uneven allgather", |comm, odd| match odd {
        true => comm.all_gather_in_place(&mut vec![1u32; 4 * comm.size()]),
        false => all_gather_varying(comm, &[4]),
    }),
    ("lengths of an alltoall", |comm, odd| all_to_all(comm, if odd { 3 } else { 4 })),
    ("long lengths of an alltoall", |comm, odd| all_to_all(comm, if odd { 3000 } else { 20_000 })),
    ("a count of an uneven gather", |comm, odd| uneven_gather(comm, if odd { 31 } else { 30 })),
    ("a long count of an uneven gather", |comm, odd| uneven_gather(comm, if odd { 60_000 } else { 30 })),
    ("a count of an uneven scatter", |comm, odd| scatter_varying(comm, 1, 30, if odd { 20 } else { 30 })),
    ("a count of an uneven alltoall", |comm, odd| all_to_all_varying(comm, 30, if odd { 29 } else { 30 })),
    ("lengths of a reduce-scatter", |comm, odd| reduce_scatter(comm, if odd { 3 } else { 5 })),
    ("a short and a long reduce-scatter", |comm, odd| reduce_scatter(comm, if odd { 9000 } else { 1 })),
    ("lengths of a scan", |comm, odd| comm.scan_in_place(&mut vec![1u32; if odd { 126 } else { 200 }], Sum)),
    ("a scan and an exclusive one", |comm, odd| match odd {
        true => comm.scan_in_place(&mut [1u32; 9], Sum),
        false => comm.exclusive_scan_in_place(&mut [1u32; 9], Sum),
    }),
    ("operators of a long scan", |comm, odd| match odd {
        true => comm.scan_in_place(&mut vec![1u32; 50_000], Max),
        false => comm.scan_in_place(&mut vec![1u32; 50_000], Sum),
    }),
];

const RULES: [&str; 4] = ["all:auto", "all:line", "all:cells,cell=64,cells=2", "all:shares,share_cell=128"];

#[test]
fn calls_that_differ_are_refused_by_all() {
    watchdog(LIMIT, || {
        for (what, part) in DISAGREEMENTS.into_iter().chain(BLOCK_DISAGREEMENTS) {
            for rules in RULES {
                for (ranks, odd) in [(2, 0), (2, 1), (3, 2), (5, 0), (5, 3)] {
                    for (rank, (_, first)) in outcomes(ranks, rules, odd, part).into_iter().enumerate() {
                        assert!(
                            matches!(first, Err(Error::Mismatch { .. } | Error::RankFailed { .. })),
                            "{what}, {rules}: rank {rank} of {ranks}, odd {odd}: {first:?}"
                        );
                    }
                }
            }
        }
    });
}

/// Wrong arguments: of the odd rank's call, which the others make in order.
const WRONG: [(&str, Part); 16] =
    [
        ("root of a broadcast", |comm, odd| broadcast(comm, if odd { comm.size() } else { 0 }, 10)),
        ("root of a long broadcast", |comm, odd| broadcast(comm, if odd { usize::MAX } else { 1 }, 30_000)),
        ("root of a reduce", |comm, odd| {
            if odd { comm.process_at_rank(99).reduce_into(&[1u32; 9], Sum) } else { reduce(comm, 1, 9) }
        }),
        ("side of a reduce", |comm, odd| {
            // The root contributes as if it were not the root, or another rank as if it were.
            match (odd, comm.rank()) {
                (true, 1) => comm.process_at_rank(1).reduce_into(&[1u32; 900], Sum),
                (true, _) => comm.process_at_rank(1).reduce_into_root_in_place(&mut [1u32; 900], Sum),
                _ => reduce(comm, 1, 900),
            }
        }),
        ("length of an allreduce", |comm, odd| {
            if odd { comm.all_reduce_into(&[1u32; 5], &mut [0; 6], Sum) } else { allreduce(comm, 5) }
        }),
        ("length of a long allreduce", |comm, odd| {
            if odd { comm.all_reduce_into(&vec![1u32; 5000], &mut [], Sum) } else { allreduce(comm, 5000) }
        }),
        ("length of a reduce", |comm, odd| match (odd, comm.rank()) {
            (true, 1) => comm.process_at_rank(1).reduce_into_root(&[1u32; 5], &mut [0; 4], Sum),
            (true, _) => comm.process_at_rank(1).reduce_into_root(&[1u32; 5], &mut [0; 4], Sum),
            _ => reduce(comm, 1, 5),
        }),
        ("length of a long reduce", |comm, odd| match odd {
            true => comm.process_at_rank(1).reduce_into_root(&[1u32; 3000], &mut [0; 4], Sum),
            false => reduce(comm, 1, 3000),
        }),
        ("room of a gather", |comm, odd| match odd {
            true => comm.process_at_rank(comm.rank()).gather_into_root(&[1u32; 5], &mut vec![0; 5 * comm.size() - 1]),
            false => gather(comm, 0, 5),
        }),
        ("root of a scatter", |comm, odd| match odd {
            true => comm.process_at_rank(77).scatter_into(&mut [1u32; 5]),
            false => scatter(comm, 0, 5),
        }),
        ("room of an allgather", |comm, odd| match odd {
            true => comm.all_gather_into(&[1u32; 5], &mut vec![0; 5 * comm.size() + 1]),
            false => comm.all_gather_in_place(&mut vec![1u32; 5 * comm.size()]),
        }),
        ("counts of an uneven allgather", |comm, odd| match odd {
            true => comm.all_gather_varcount_into(&[1u32], &mut PartitionMut::new(&mut [0; 9], &[1], &[0, 0])),
            false => all_gather_varying(comm, &[4]),
        }),
        ("a block outside", |comm, odd| match odd {
            true => {
                let (counts, displs) = (vec![1; comm.size()], vec![usize::MAX; comm.size()]);
                comm.all_to_all_varcount_in_place(&mut PartitionMut::new(&mut [0u32; 99], &counts, &displs))
            }
            false => all_to_all_varying(comm, 4, 4),
        }),
        ("lengths of an alltoall", |comm, odd| match odd {
            true => comm.all_to_all_into(&vec![1u32; comm.size()], &mut vec![0; 2 * comm.size()]),
            false => all_to_all(comm, 1),
        }),
        ("length of a reduce-scatter", |comm, odd| match odd {
            true => comm.reduce_scatter_into(&[1u32; 5], &mut [0; 2], &vec![2; comm.size()], Sum),
            false => reduce_scatter(comm, 2),
        }),
        ("length of a scan", |comm, odd| match odd {
            true => comm.scan_into(&[1u32; 5], &mut [0; 4], Sum),
            false => comm.scan_in_place(&mut [1u32; 5], Sum),
        }),
    ];

#[test]
fn wrong_arguments_of_one_rank_are_told_to_all() {
    watchdog(LIMIT, || {
        for (what, part) in WRONG {
            for rules in RULES {
                for (ranks, odd) in [(2, 0), (2, 1), (3, 0), (3, 1), (3, 2), (5, 0), (5, 1), (5, 3)] {
                    for (rank, (own, first)) in outcomes(ranks, rules, odd, part).into_iter().enumerate() {
                        let what =
                            format!("{what}, {rules}: rank {rank} of {ranks}, odd {odd}: {own:?}, then {first:?}");
                        if rank == odd {
                            assert!(
                                matches!(own, Err(Error::Length { .. } | Error::Root { .. } | Error::Blocks { .. })),
                                "{what}"
                            );
                        }
                        assert!(matches!(first, Err(Error::Refused { .. } | Error::Mismatch { .. })), "{what}");
                    }
                }
            }
        }
    });
}

#[test]
fn wrong_arguments_of_all_ranks_do_no_harm() {
    watchdog(LIMIT, || {
        for rules in RULES {
            for ranks in [1, 2, 5] {
                Communicator::threads_of(&world(ranks, rules), TreeRules::default(), |comm| {
                    for _ in 0..100 {
                        for (what, part) in WRONG {
                            // Where everybody plays the odd one, everybody is refused at once.
                            if what != "side of a reduce" || ranks == 2 {
                                let result = part(&comm, true);
                                assert!(
                                    matches!(
                                        result,
                                        Err(Error::Length { .. } | Error::Root { .. } | Error::Blocks { .. })
                                    ),
                                    "{what}: {result:?}"
                                );
                            }
                        }
                        let mut sum = [comm.rank()];
                        comm.all_reduce_in_place(&mut sum, Sum).unwrap();
                        assert_eq!(sum, [ranks * (ranks - 1) / 2]);
                        reduce(&comm, 0, 700).unwrap();
                        broadcast(&comm, ranks - 1, 700).unwrap();
                    }
                })
                .unwrap();
            }
        }
    });
}

#[test]
fn errors_name_rank_sizes_and_what_to_do() {
    watchdog(LIMIT, || {
        let texts = Communicator::threads(2, |comm| {
            let length = comm.all_reduce_into(&[1u8; 5], &mut [0; 6], Sum).unwrap_err();
            let root = comm.process_at_rank(7).broadcast_into(&mut [0u8]).unwrap_err();
            let mismatch = allreduce(&comm, 1 + comm.rank()).unwrap_err();
            std::thread::sleep(Duration::from_millis(20));
            [length, root, mismatch].map(|error| error.to_string())
        });
        for (rank, [length, root, mismatch]) in texts.unwrap().into_iter().enumerate() {
            assert!(length.contains(&format!("rank {rank}: ")) && length.contains("6 elements where 5"), "{length}");
            assert!(root.contains(&format!("rank {rank} of 2: root 7")), "{root}");
            let own = format!("an allreduce of {} elements", 1 + rank);
            // Both ranks are named to both; one of the two noticed.
            let both = ["rank 0 and rank 1", "rank 1 and rank 0"].iter().any(|both| mismatch.contains(both));
            let heard = ["noticed", "heard of"].iter().any(|how| mismatch.contains(&format!("rank {rank} {how}")));
            assert!(mismatch.contains("different calls") && both && heard, "{mismatch}");
            assert!(mismatch.contains(&own) && mismatch.contains("same collective"), "{mismatch}");
        }
    });
}
