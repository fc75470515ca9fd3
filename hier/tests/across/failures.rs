//! Ranks that panic, leave, refuse their arguments or find no memory: all others are told.

use std::sync::mpsc::channel;
use std::sync::{Barrier, Mutex};
use std::time::Duration;

use hier::across::{ClusterSettings, Error, HierComm};
use hier::nodes::{Nodes, Settings};
use hier::operator::{Sum, User};
use hier::transport::local::LocalTransport;
use hier::transport::{self, Request, Transport};

use crate::collectives::check;
use crate::watchdog::watchdog;
use crate::{BEHAVIOURS, LIMIT, cluster, meet};

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
    // Run by the network, by nodes and the network, and by a node alone. How often, and by whom, depends.
    for labels in [&[0, 1][..], &[0, 0, 1, 1], &[0, 1, 1, 1], &[0, 0, 0]] {
        let all = labels.len() as u8;
        let asked = cluster(labels, "", BEHAVIOURS[0], |comm| {
            let asked = std::cell::Cell::new(0);
            let operator = User::commutative(|into: &mut [u8], from: &[u8]| {
                asked.set(asked.get() + 1);
                let (mut sum, root) = ([1_u8; 3], comm.process_at_rank(comm.rank()));
                let told = [
                    comm.barrier().err(),
                    comm.all_reduce_in_place(&mut sum, Sum).err(),
                    root.broadcast_into(&mut sum).err(),
                    root.reduce_into_root_in_place(&mut sum, Sum).err(),
                    comm.duplicate().err(),
                    comm.split(None, 0).err(),
                ];
                let is_busy = |error: &Option<Error>| matches!(error, Some(Error::Node(hier::Error::Busy { .. })));
                assert!(told.iter().all(is_busy) && sum == [1; 3], "{labels:?}: {told:?}");
                assert!(!comm.describe_network().is_empty());
                into.iter_mut().zip(from).for_each(|(left, right)| *left += right);
            });
            for count in [1, 5, 5000] {
                let mut buffer = vec![1_u8; count];
                comm.all_reduce_in_place(&mut buffer, operator).unwrap();
                assert!(buffer == vec![all; count]);
                // Nothing has ended.
                check(comm, count);
                comm.duplicate().unwrap();
            }
            asked.get()
        });
        assert!(asked.iter().sum::<i32>() > 0, "{labels:?}");
    }
    // What ranks of a network alone may ask of it.
    cluster(&[0, 1], "", BEHAVIOURS[0], |comm| {
        let busy = std::cell::Cell::new(false);
        let operator = User::commutative(|into: &mut [u8], from: &[u8]| {
            let told = [comm.failed_ranks().err(), comm.revoke().err(), comm.shrink().err()];
            let is_busy = |error: &Option<Error>| matches!(error, Some(Error::Node(hier::Error::Busy { .. })));
            busy.set(busy.get() || told.iter().all(is_busy));
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
fn a_rank_hears_what_is_wrong_with_its_own_call_whatever_went_wrong_before() {
    for labels in [&[0_usize, 0, 1, 1][..], &[0, 1, 2], &[0, 0, 0]] {
        for late in 0..labels.len() {
            let others = Barrier::new(labels.len());
            let errors = cluster(labels, "", BEHAVIOURS[0], |comm| {
                check(comm, 10);
                meet(comm, &others);
                if comm.rank() == late {
                    // All others have failed by then, some because of others.
                    others.wait();
                }
                let mut recv = [0_i64; 3];
                let first = comm.rank() == (late + 1) % comm.size();
                let send = if first || comm.rank() == late { &[1; 2][..] } else { &[1; 3] };
                let error = comm.all_reduce_into(send, &mut recv, Sum).unwrap_err().to_string();
                if comm.rank() != late {
                    others.wait();
                }
                error
            });
            assert!(errors[late].contains("receive buffer"), "{labels:?}, {late}: {}", errors[late]);
        }
    }
}

/// Its node notices, and tells the others.
#[test]
fn a_rank_that_drops_a_communicator_ends_the_call_on_all_nodes() {
    for (labels, leaver) in [(&[0_usize, 0, 1, 1, 1][..], 1), (&[0, 1, 0, 1, 2], 0), (&[0, 0, 0], 2)] {
        let errors = cluster(labels, "", BEHAVIOURS[0], |comm| {
            let copy = comm.duplicate().unwrap();
            check(&copy, 10);
            // An error ends earlier calls, too.
            comm.barrier().unwrap();
            let error = (comm.rank() != leaver).then(|| {
                let error = copy.all_reduce_in_place(&mut [1_i64; 3], Sum).unwrap_err().to_string();
                assert!(copy.barrier().is_err());
                error
            });
            drop(copy);
            check(comm, 10);
            error
        });
        for (rank, error) in errors.iter().enumerate().filter(|&(rank, _)| rank != leaver) {
            let error = error.as_deref().unwrap();
            let dropped = format!("rank {leaver} has dropped");
            let words = if labels[rank] == labels[leaver] { [&*dropped; 2] } else { ["its own error says", "is gone"] };
            assert!(words.iter().any(|word| error.contains(word)), "{labels:?}, rank {rank}: {error}");
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
