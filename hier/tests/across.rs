//! Collectives across nodes that are played by threads: every rank's answer against the naive oracle, over placements,
//! schedules, leaders, slices and transports that delay messages or end sends only with their receives.

mod collectives;
mod watchdog;

use std::sync::mpsc::channel;
use std::sync::{Barrier, Mutex};
use std::time::Duration;

use collectives::check;
use hier::across::{ClusterSettings, Error, HierComm, Line, NetworkModel};
use hier::nodes::{Nodes, Settings};
use hier::operator::{Operator, Sum, User};
use hier::table::{Asked, Fingerprint, NetworkBand, NetworkRule, NetworkTable, Table};
use hier::transport::local::{Behaviour, LocalTransport};
use hier::transport::{self, Request, Transport};
use watchdog::watchdog;

/// Ends the test program when a test hangs.
const LIMIT: Duration = Duration::from_secs(120);

/// Runs `f` on the ranks of a cluster: `labels` has each rank's node.
fn cluster<R: Send>(labels: &[usize], rules: &str, behaviour: Behaviour, f: impl Fn(&HierComm) -> R + Sync) -> Vec<R> {
    let settings = ClusterSettings { rules: rules.to_owned(), ..ClusterSettings::default() };
    cluster_by(labels, settings, behaviour, f)
}

/// The same with all settings but the nodes.
fn cluster_by<R: Send>(
    labels: &[usize],
    settings: ClusterSettings,
    behaviour: Behaviour,
    f: impl Fn(&HierComm) -> R + Sync,
) -> Vec<R> {
    let nodes = Settings { nodes: Nodes::Given(labels.to_vec()), ..Settings::default() };
    let settings = ClusterSettings { nodes, ..settings };
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

/// Holds all ranks until each has returned from its calls: an error, or a rank that leaves, ends also earlier calls
/// in which others may still be, and the communicator's own barrier is one of them.
fn meet(comm: &HierComm, threads: &Barrier) {
    comm.barrier().unwrap();
    threads.wait();
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

/// An operator that panics at a value.
fn fragile() -> User<impl Fn(&mut [i64], &[i64]) + Copy> {
    User::commutative(|into: &mut [i64], from: &[i64]| {
        for (left, &right) in into.iter_mut().zip(from) {
            assert!(*left != 666 && right != 666, "the operator is made to panic");
            *left += right;
        }
    })
}

#[test]
fn a_panic_of_an_operator_that_is_caught_ends_the_communicator_everywhere() {
    // One rank a node: the operator runs on the network. Two: within the node too.
    let cases = [&[0_usize, 1, 2][..], &[0, 0, 1, 1], &[0, 1, 1, 1]].map(|labels| (labels, "slice=2K,flight=3", 3000));
    // In a late stage of a message that goes whole.
    let whole = (&[0, 0, 1, 1, 2, 2][..], "slice=whole", 60_000);
    for (labels, how, count) in cases.into_iter().chain([whole]) {
        let errors = cluster(labels, &format!("allreduce:ring,{how}"), BEHAVIOURS[1], |comm| {
            let mut buffer = vec![1_i64; count];
            if comm.rank() == 0 {
                buffer[count / 7 * 4] = 666;
            }
            let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                comm.all_reduce_in_place(&mut buffer, fragile()).map_err(|error| error.to_string())
            }));
            buffer.fill(0);
            assert!((0..100).any(|_| comm.barrier().is_err()), "still usable");
            caught
        });
        assert!(errors.iter().any(|outcome| outcome.is_err()), "nobody panicked");
        assert!(errors.iter().all(|outcome| !matches!(outcome, Ok(Ok(())))), "{labels:?}: {errors:?}");
    }
}

#[test]
fn an_operator_that_uses_its_communicator_is_told() {
    cluster(&[0, 1], "", BEHAVIOURS[0], |comm| {
        let busy = std::cell::Cell::new(false);
        let operator = User::commutative(|into: &mut [u8], from: &[u8]| {
            let told = [comm.barrier().err(), comm.failed_ranks().err(), comm.revoke().err(), comm.shrink().err()];
            let is_busy = |error: &Option<Error>| matches!(error, Some(Error::Node(hier::Error::Busy { .. })));
            busy.set(busy.get() || told.iter().all(is_busy));
            assert!(!comm.describe_network().is_empty());
            into.iter_mut().zip(from).for_each(|(left, right)| *left += right);
        });
        let mut buffer = [1_u8; 5];
        comm.all_reduce_in_place(&mut buffer, operator).unwrap();
        assert!(buffer == [2; 5] && busy.get());
    });
}

#[test]
fn alarms_reach_ranks_that_wait_in_their_node() {
    // The root is no first rank; the culprit is on another node, and calls with the wrong arguments.
    let threads = Barrier::new(4);
    let errors = cluster(&[0, 0, 1, 1], "", BEHAVIOURS[1], |comm| {
        meet(comm, &threads);
        let root = comm.process_at_rank(1);
        let first = match comm.rank() {
            1 => root.reduce_into_root(&[1_i64; 9], &mut [0; 9], Sum),
            2 => root.reduce_into_root(&[1_i64; 9], &mut [0; 9], Sum),
            _ => root.reduce_into(&[1_i64; 9], Sum),
        };
        (first, comm.barrier())
    });
    for (rank, (first, second)) in errors.iter().enumerate() {
        assert!(first.is_err() || second.is_err(), "rank {rank}: {first:?} {second:?}");
    }
}

#[test]
fn alarms_reach_ranks_whose_first_rank_is_elsewhere() {
    for culprit in [0, 1] {
        let (told, hears) = channel::<()>();
        let hears = Mutex::new(hears);
        let told = Mutex::new(told);
        let threads = Barrier::new(4);
        let errors = cluster(&[0, 0, 1, 1], "", BEHAVIOURS[1], |comm| {
            meet(comm, &threads);
            match comm.rank() {
                // Makes no call before its neighbour was told.
                2 => hears.lock().unwrap().recv().unwrap(),
                rank if rank == culprit => {
                    let error = comm.all_reduce_into(&[1_u8; 2], &mut [0; 3], Sum).unwrap_err();
                    return error.to_string();
                }
                _ => {}
            }
            let error = comm.all_reduce_into(&[1_u8; 3], &mut [0; 3], Sum).unwrap_err();
            if comm.rank() == 3 {
                told.lock().unwrap().send(()).unwrap();
            }
            error.to_string()
        });
        let word = format!("rank {culprit}, on another node");
        assert!(errors[3].contains(&word), "{errors:?}");
        // The first rank may find its neighbour gone before it hears why.
        assert!(errors[2].contains(&word) || errors[2].starts_with("rank 3 of this communicator"), "{errors:?}");
    }
}

/// A transport whose process lives on when it is dropped: its peers wait for it as before.
struct Lingering(std::mem::ManuallyDrop<Box<dyn Transport>>);

impl Lingering {
    fn new(transport: Box<dyn Transport>) -> Box<Self> {
        Box::new(Self(std::mem::ManuallyDrop::new(transport)))
    }
}

impl Transport for Lingering {
    fn rank(&self) -> usize {
        self.0.rank()
    }

    fn size(&self) -> usize {
        self.0.size()
    }

    unsafe fn send(&self, to: usize, tag: u32, data: *const u8, bytes: usize) -> transport::Result<Request> {
        // SAFETY: by contract.
        unsafe { self.0.send(to, tag, data, bytes) }
    }

    unsafe fn receive(&self, from: usize, tag: u32, into: *mut u8, bytes: usize) -> transport::Result<Request> {
        // SAFETY: by contract.
        unsafe { self.0.receive(from, tag, into, bytes) }
    }

    fn test(&self, request: &mut Request) -> transport::Result<bool> {
        self.0.test(request)
    }

    fn progress(&self) -> transport::Result<()> {
        self.0.progress()
    }

    fn abandon(&self, request: Request, limit: Duration) -> bool {
        self.0.abandon(request, limit)
    }

    fn subset(&self, members: &[usize]) -> transport::Result<Box<dyn Transport>> {
        Ok(Self::new(self.0.subset(members)?))
    }

    fn describe(&self) -> String {
        self.0.describe()
    }
}

/// What each rank is told, by rank, where one drops its communicator, by a panic or in good order, and the others make
/// a call.
fn told_without(labels: &[usize], leaver: usize, panics: bool) -> Vec<Option<Error>> {
    let settings = ClusterSettings {
        nodes: Settings { nodes: Nodes::Given(labels.to_vec()), ..Settings::default() },
        ..ClusterSettings::default()
    };
    let threads = Barrier::new(labels.len());
    let rank = |transport: LocalTransport| {
        let comm = HierComm::over(Lingering::new(Box::new(transport)), &settings).unwrap();
        meet(&comm, &threads);
        if comm.rank() != leaver {
            return Some(comm.all_reduce_in_place(&mut [1_u8; 3], Sum).unwrap_err());
        }
        std::thread::sleep(Duration::from_millis(20));
        if panics {
            std::panic::resume_unwind(Box::new(()));
        }
        None
    };
    let transports = LocalTransport::group(labels.len(), BEHAVIOURS[0]);
    watchdog(LIMIT, || {
        std::thread::scope(|scope| {
            let ranks: Vec<_> = transports.into_iter().map(|transport| scope.spawn(|| rank(transport))).collect();
            ranks.into_iter().map(|rank| rank.join().unwrap_or(None)).collect()
        })
    })
}

#[test]
fn a_rank_that_panics_between_calls_tells_the_others() {
    for labels in [&[0, 1][..], &[0, 1, 2, 3, 4], &[0, 0, 1], &[0, 0, 1, 1, 2]] {
        for leaver in 0..labels.len() {
            for (rank, told) in told_without(labels, leaver, true).into_iter().enumerate() {
                assert_eq!(told.is_none(), rank == leaver, "{labels:?}, {leaver}: rank {rank}: {told:?}");
            }
        }
    }
}

#[test]
fn further_ranks_of_a_node_tell_when_those_before_them_have_gone() {
    for labels in [&[0, 0, 1][..], &[0, 0, 0, 1, 2], &[1, 0, 0, 0, 0, 0, 2, 2]] {
        let leaver = labels.iter().position(|&label| label == 0).unwrap();
        for (rank, told) in told_without(labels, leaver, false).into_iter().enumerate() {
            assert_eq!(told.is_none(), rank == leaver, "{labels:?}: rank {rank}: {told:?}");
        }
    }
}

/// Products of polynomials modulo `x^group - 1`, in vectors of their coefficients: each number of a group goes into all
/// of them, and the order of factors into none.
#[derive(Clone, Copy)]
struct Polynomials {
    group: usize,
    commutative: bool,
}

impl Polynomials {
    fn product(self, left: &[u64], right: &[u64]) -> Vec<u64> {
        let mut product = vec![0_u64; self.group];
        for (i, a) in left.iter().enumerate() {
            for (j, b) in right.iter().enumerate() {
                let at = (i + j) % self.group;
                product[at] = product[at].wrapping_add(a.wrapping_mul(*b));
            }
        }
        product
    }
}

// SAFETY: all elements of the result are written.
unsafe impl Operator<u64> for Polynomials {
    fn is_commutative(&self) -> bool {
        self.commutative
    }

    fn code(&self) -> u8 {
        0x70
    }

    fn group(&self) -> usize {
        self.group
    }

    unsafe fn fold(&self, dst: *mut u64, operands: &[*const u64], n: usize) {
        assert_eq!(n % self.group, 0, "whole groups");
        for at in (0..n).step_by(self.group) {
            // SAFETY: by contract so many elements are there.
            let group = |from: *const u64| unsafe { std::slice::from_raw_parts(from.wrapping_add(at), self.group) };
            let first = group(operands[0]).to_vec();
            let made = operands[1..].iter().fold(first, |made, &operand| self.product(&made, group(operand)));
            // SAFETY: by contract so many may be written; an operand that lies there is not read any more.
            unsafe { std::ptr::copy_nonoverlapping(made.as_ptr(), dst.wrapping_add(at), self.group) };
        }
    }
}

#[test]
fn groups_are_never_parted_across_nodes() {
    let coefficients = |rank: usize, count: usize| -> Vec<u64> {
        (0..count).map(|i| 1 + (rank as u64 * 5 + i as u64 * 3) % 7).collect()
    };
    let factor = |rank: usize, count: usize, operator: Polynomials| -> Vec<u64> {
        (1..=rank).fold(coefficients(0, count), |all, rank| {
            let next = coefficients(rank, count);
            let groups = all.chunks(operator.group).zip(next.chunks(operator.group));
            groups.flat_map(|(left, right)| operator.product(left, right)).collect()
        })
    };
    for (at, labels) in PLACEMENTS.into_iter().enumerate() {
        for rules in [
            "",
            "allreduce:ring,leaders=2,slice=1K;reduce:slice=600",
            "allreduce:circulant,leaders=3;reduce:halving-farthest",
            "allreduce:one-sided",
            "allreduce:halving-exchange,leaders=2,slice=3000;reduce:binomial,slice=100",
        ] {
            cluster(labels, rules, BEHAVIOURS[at % BEHAVIOURS.len()], |comm| {
                for (group, commutative) in [(2, true), (2, false), (3, true), (40, true), (40, false), (600, true)] {
                    let operator = Polynomials { group, commutative };
                    for groups in [1, 2, 7, 50, 700].into_iter().filter(|groups| groups * group * group <= 100_000) {
                        let count = groups * group;
                        let (send, expected) =
                            (coefficients(comm.rank(), count), factor(comm.size() - 1, count, operator));
                        let mut found = vec![0; count];
                        comm.all_reduce_into(&send, &mut found, operator).unwrap();
                        assert!(found == expected, "{labels:?}, {rules:?}: {groups} groups of {group}");
                        let root = comm.process_at_rank(comm.size() / 2);
                        if comm.rank() == comm.size() / 2 {
                            found.copy_from_slice(&send);
                            root.reduce_into_root_in_place(&mut found, operator).unwrap();
                            assert!(
                                found == expected,
                                "{labels:?}, {rules:?}: reduction of {groups} groups of {group}"
                            );
                        } else {
                            root.reduce_into(&send, operator).unwrap();
                        }
                    }
                }
            });
        }
    }
}

#[test]
fn lengths_that_are_no_whole_groups_are_refused() {
    let told = cluster(&[0, 0, 1], "", BEHAVIOURS[0], |comm| {
        let operator = Polynomials { group: 2, commutative: true };
        comm.all_reduce_in_place(&mut [1; 5], operator).unwrap_err().to_string()
    });
    // Who comes late hears of the others' refusal first.
    assert!(told.iter().any(|told| told.contains("whole groups")), "{told:?}");
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

/// A table that speaks of two nodes of two ranks.
fn table_of_four() -> Table {
    let rule = |what: hier::Collective, takes: &[(u64, &str)]| {
        let bands = takes.iter().map(|&(from, take)| {
            let rules: hier::across::ClusterRules = format!("{what}:{take}").parse().unwrap();
            NetworkBand { from, take: take.to_owned(), rule: rules.of(what), remark: "of a test".to_owned() }
        });
        NetworkRule { what, bands: bands.collect() }
    };
    let line = Line { latency: 33.0, per_byte: 0.25 };
    let mut table = Table::new(Fingerprint::of_this_machine());
    table.network = Some(NetworkTable {
        nodes: 2,
        ranks_a_node: 2,
        model: NetworkModel { shift: line, exchange: line },
        rules: vec![
            rule(hier::Collective::Allreduce, &[(0, "binomial"), (1000, "ring,leaders=2,slice=whole")]),
            rule(hier::Collective::Broadcast, &[(0, "scatter-ring-native,slice=2K")]),
        ],
    });
    table
}

#[test]
fn a_table_speaks_of_clusters_of_its_shape() {
    use hier::Collective::{Allreduce, Broadcast};
    let path = std::env::temp_dir().join(format!("phalanx-table-{}.toml", std::process::id()));
    std::fs::write(&path, table_of_four().to_toml()).unwrap();
    let settings = |rules: &str| ClusterSettings {
        rules: rules.to_owned(),
        table: Asked::File { path: path.clone(), adapt: false },
        ..ClusterSettings::default()
    };
    for labels in [&[0_usize, 0, 1, 1][..], &[0, 1, 0, 1], &[0, 0, 0, 1], &[0, 1], &[0, 0, 1, 1, 2, 2]] {
        let fits = labels.len() == 4 && labels.iter().sum::<usize>() == 2;
        cluster_by(labels, settings(""), BEHAVIOURS[1], |comm| {
            for count in [1, 124, 126, 5000] {
                check(comm, count);
            }
            let [short, long] = [8, 1000].map(|bytes| comm.explain(Allreduce, bytes));
            let broadcast = comm.explain(Broadcast, 8000);
            assert_eq!(comm.network_model() != NetworkModel::default(), fits);
            assert!([&short, &long, &broadcast].iter().all(|text| text.ends_with("by the table") == fits), "{long}");
            if fits {
                assert!(short.starts_with("binomial"), "{short}");
                assert!(long.starts_with("ring") && long.contains("leaders a node: 2"), "{long}");
                assert!(broadcast.starts_with("scatter-ring-native") && broadcast.contains("2048"), "{broadcast}");
            }
            // A part has another shape.
            let part = comm.split(Some(comm.rank() as u32 / 3), 0).unwrap().unwrap();
            assert!(!part.explain(Allreduce, 8).ends_with("by the table"));
        });
        // The word of the environment comes first.
        cluster_by(labels, settings("allreduce:ring"), BEHAVIOURS[0], |comm| {
            check(comm, 10);
            assert!(comm.explain(Allreduce, 8).starts_with("ring among"));
        });
    }
    std::fs::remove_file(&path).unwrap();
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
fn a_node_without_room_refuses_a_split_on_all() {
    let made = cluster(&[0, 0, 1], "", BEHAVIOURS[0], |comm| {
        let mut kept = Vec::new();
        let error = loop {
            match comm.duplicate() {
                Ok(copy) => kept.push(copy),
                Err(error) => break error.to_string(),
            }
            assert!(kept.len() < 5000);
        };
        assert!(error.contains("room for another communicator"), "{error}");
        // The communicator is as it was, and there is room again when others are dropped.
        check(comm, 10);
        let count = kept.len();
        kept.truncate(count / 2);
        comm.barrier().unwrap();
        check(&comm.duplicate().unwrap(), 10);
        count
    });
    assert!(made[0] > 10 && made.iter().all(|&count| count == made[0]), "{made:?}");
}

/// A buffer that nobody has room for: the error names the rank as the communicator numbers it, and a part of it too.
#[test]
fn memory_that_is_missing_names_the_rank_of_the_communicator() {
    const MUCH: usize = 1 << 50;
    cluster(&[0, 0, 1, 1], "", BEHAVIOURS[0], |comm| {
        let whole = comm.alloc::<u8>(MUCH).unwrap_err().to_string();
        assert!(whole.starts_with(&format!("rank {}: ", comm.rank())), "{whole}");
        let backwards = comm.split(Some(0), -(comm.rank() as i64)).unwrap().unwrap();
        let part = backwards.alloc::<u8>(MUCH).unwrap_err().to_string();
        assert!(part.starts_with(&format!("rank {}: ", 3 - comm.rank())), "{part}");
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
fn a_rank_that_refuses_its_arguments_ends_the_call_on_all_nodes() {
    for labels in [&[0_usize, 0, 1, 1, 2, 2][..], &[0, 1, 2, 3], &[0, 0, 0]] {
        for culprit in 0..labels.len() {
            let threads = Barrier::new(labels.len());
            let errors = cluster(labels, "", BEHAVIOURS[1], |comm| {
                check(comm, 10);
                meet(comm, &threads);
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
        let threads = Barrier::new(6);
        let errors = cluster(&[0, 0, 1, 1, 2, 2], "", BEHAVIOURS[0], |comm| {
            check(comm, 10);
            meet(comm, &threads);
            if comm.rank() == culprit {
                return None;
            }
            let mut buffer = vec![1_i64; 3];
            Some(comm.all_reduce_in_place(&mut buffer, Sum).unwrap_err().to_string())
        });
        assert_eq!(errors.iter().filter(|error| error.is_none()).count(), 1);
    }
}

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
