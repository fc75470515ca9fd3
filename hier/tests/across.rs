//! Collectives across nodes that are played by threads: every rank's answer against the naive oracle, over placements,
//! schedules, leaders, slices and transports that delay messages or end sends only with their receives.

mod collectives;

use std::sync::mpsc::channel;
use std::time::Duration;

use collectives::check;
use hier::across::{ClusterSettings, HierComm};
use hier::nodes::{Nodes, Settings};
use hier::operator::Sum;
use hier::transport::local::{Behaviour, LocalTransport};

/// Ends the test program when a test hangs.
const LIMIT: Duration = Duration::from_secs(120);

/// Runs `f` on the ranks of a cluster: `labels` has each rank's node.
fn cluster<R: Send>(labels: &[usize], rules: &str, behaviour: Behaviour, f: impl Fn(&HierComm) -> R + Sync) -> Vec<R> {
    let nodes = Settings { nodes: Nodes::Given(labels.to_vec()), ..Settings::default() };
    let settings = ClusterSettings { nodes, rules: rules.to_owned(), ..ClusterSettings::default() };
    let (alive, watched) = channel::<()>();
    std::thread::spawn(move || {
        if watched.recv_timeout(LIMIT) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            eprintln!("a cluster of threads has not ended within {LIMIT:?}");
            std::process::abort();
        }
    });
    let transports = LocalTransport::group(labels.len(), behaviour);
    let results = std::thread::scope(|scope| {
        let ranks: Vec<_> = transports
            .into_iter()
            .map(|transport| {
                let (f, settings) = (&f, &settings);
                scope.spawn(move || f(&HierComm::over(Box::new(transport), settings).unwrap()))
            })
            .collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    });
    drop(alive);
    results
}

const PLACEMENTS: [&[usize]; 9] = [
    &[0],
    &[0, 0, 0],
    &[0, 1],
    &[0, 1, 2, 3, 4],
    &[0, 0, 1, 1],
    &[0, 1, 0, 1, 0, 1],
    &[0, 0, 0, 1, 2, 2],
    &[0, 1, 1, 2, 2, 2, 3],
    &[2, 0, 1, 2, 0, 1, 3, 3],
];

const BEHAVIOURS: [Behaviour; 3] = [
    Behaviour { rendezvous: false, longest_delay: Duration::ZERO, seed: 1 },
    Behaviour { rendezvous: true, longest_delay: Duration::ZERO, seed: 2 },
    Behaviour { rendezvous: true, longest_delay: Duration::from_micros(300), seed: 3 },
];

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
fn a_rank_that_refuses_its_arguments_ends_the_call_on_all_nodes() {
    for labels in [&[0_usize, 0, 1, 1, 2, 2][..], &[0, 1, 2, 3], &[0, 0, 0]] {
        for culprit in 0..labels.len() {
            let errors = cluster(labels, "", BEHAVIOURS[1], |comm| {
                check(comm, 10);
                // An error ends earlier calls too, in which other ranks may still be.
                comm.barrier().unwrap();
                std::thread::sleep(Duration::from_millis(20));
                let mut recv = [0_i64; 3];
                let send = if comm.rank() == culprit { &[1; 2][..] } else { &[1; 3] };
                let error = comm.all_reduce_into(send, &mut recv, Sum).unwrap_err().to_string();
                assert!(comm.barrier().is_err());
                error
            });
            for (rank, error) in errors.iter().enumerate() {
                // A rank may also find that a peer has left before it hears why.
                let words = if rank == culprit { ["receive buffer"; 2] } else { ["its own error says", "is gone"] };
                assert!(words.iter().any(|word| error.contains(word)), "culprit {culprit}, rank {rank}: {error}");
            }
        }
    }
}

#[test]
fn a_rank_that_leaves_ends_the_call_on_all_nodes() {
    for culprit in 0..6 {
        let errors = cluster(&[0, 0, 1, 1, 2, 2], "", BEHAVIOURS[0], |comm| {
            check(comm, 10);
            comm.barrier().unwrap();
            std::thread::sleep(Duration::from_millis(20));
            if comm.rank() == culprit {
                return None;
            }
            let mut buffer = vec![1_i64; 3];
            Some(comm.all_reduce_in_place(&mut buffer, Sum).unwrap_err().to_string())
        });
        assert_eq!(errors.iter().filter(|error| error.is_none()).count(), 1);
    }
}
