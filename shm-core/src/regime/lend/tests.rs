use std::sync::Arc;

use crate::communicator::Communicator;
use crate::job::JobSpec;
use crate::operator::{Sum, User};
use crate::{Buffer, Error};

fn threads<R: Send>(ranks: usize, rules: &str, f: impl Fn(Communicator) -> R + Sync) -> Vec<R> {
    let mut spec = JobSpec::new(ranks).unwrap();
    // Short ones are lent too.
    spec.tuning.force(&format!("all:direct_from=1;{rules}")).unwrap();
    spec.on_threads(f)
}

/// A vector that lies in shared or in private memory.
enum Vector {
    Private(Vec<u64>),
    Shared(Buffer<u64>),
}

impl Vector {
    fn new(comm: &Communicator, shared: bool, values: Vec<u64>) -> Self {
        if shared { Vector::Shared(comm.alloc_copy(&values).unwrap()) } else { Vector::Private(values) }
    }

    fn slice(&mut self) -> &mut [u64] {
        match self {
            Vector::Private(values) => values,
            Vector::Shared(values) => values,
        }
    }
}

fn own(rank: usize, count: usize) -> Vec<u64> {
    (0..count as u64).map(|i| i * 7 + rank as u64).collect()
}

/// Every collective on these buffers of a rank; what it sent is overwritten as soon as a call has ended.
fn all_collectives(comm: &Communicator, count: usize, sends_shared: bool, receives_shared: bool) {
    let (rank, size) = (comm.rank(), comm.size());
    let sum: Vec<u64> = (0..count as u64).map(|i| i * 7 * size as u64 + (size * (size - 1) / 2) as u64).collect();
    let fresh = || Vector::new(comm, receives_shared, vec![u64::MAX; count]);
    let ordered = User::ordered(|left: &mut [u64], right: &[u64]| {
        left.iter_mut().zip(right).for_each(|(left, right)| *left += right);
    });
    let mut send = Vector::new(comm, sends_shared, own(rank, count));
    let mut recv = fresh();
    comm.all_reduce_into(send.slice(), recv.slice(), Sum).unwrap();
    send.slice().fill(1);
    assert!(*recv.slice() == *sum, "allreduce of {count} on rank {rank} of {size}");
    recv.slice().copy_from_slice(&own(rank, count));
    comm.all_reduce_in_place(recv.slice(), ordered).unwrap();
    assert!(*recv.slice() == *sum, "in place, {count} on rank {rank} of {size}");
    for root in [0, size - 1] {
        let process = comm.process_at_rank(root);
        send.slice().copy_from_slice(&own(rank, count));
        let mut recv = fresh();
        if rank == root {
            process.reduce_into_root(send.slice(), recv.slice(), Sum).unwrap();
            assert!(*recv.slice() == *sum, "reduce of {count} to {root} of {size}");
        } else {
            process.reduce_into(send.slice(), Sum).unwrap();
        }
        send.slice().copy_from_slice(&own(root, count));
        if rank != root {
            send.slice().fill(3);
        }
        process.broadcast_into(send.slice()).unwrap();
        assert!(*send.slice() == own(root, count), "broadcast of {count} from {root} to {rank} of {size}");
        send.slice().fill(2);
    }
    for leaders in [1, size] {
        send.slice().copy_from_slice(&own(rank, count));
        let mut recv = fresh();
        comm.reduce_to_leaders(leaders, send.slice(), recv.slice(), Sum).unwrap();
        send.slice().fill(4);
        comm.gather_from_leaders(leaders, recv.slice()).unwrap();
        assert!(*recv.slice() == *sum, "halves of {count} with {leaders} leaders on {rank} of {size}");
    }
}

#[test]
fn buffers_may_lie_anywhere() {
    for regime in ["cells", "shares", "exchange"] {
        for reach in ["1", "never"] {
            for size in 1..=4 {
                let cells = "all:cell=1K,share_cell=1K";
                let forced = if regime == "exchange" { "allreduce:exchange" } else { &format!("all:{regime}") };
                threads(size, &format!("{cells};{forced};all:reach_from={reach}"), |comm| {
                    for count in [0, 1, 9, 500, 5000] {
                        // All, none, and one of each kind, on other ranks.
                        for kind in 0..4 + size {
                            let shared = |bit: usize| match kind {
                                0..4 => kind >> bit & 1 == 1,
                                one => (one - 4 == comm.rank()) ^ (bit == 1),
                            };
                            all_collectives(&comm, count, shared(0), shared(1));
                        }
                    }
                });
            }
        }
    }
}

/// What is loaded and stored when all buffers are shared: nothing but each operand once, and each result where it
/// is wanted.
#[test]
fn nothing_moves_twice() {
    for size in 2..=5 {
        let n = 8 * 10_000;
        let counts = threads(size, "allreduce:shares;reduce:shares;broadcast:cells", |comm| {
            let send = comm.alloc_copy(&own(comm.rank(), n / 8)).unwrap();
            let mut recv = comm.alloc::<u64>(n / 8).unwrap();
            let counted = |call: &mut dyn FnMut()| {
                comm.reset_counters();
                call();
                let counters = comm.counters();
                (counters.loaded + counters.stored) as usize
            };
            let root = comm.process_at_rank(0);
            let all = counted(&mut || comm.all_reduce_into(&send, &mut recv, Sum).unwrap());
            let one = counted(&mut || match comm.rank() {
                0 => root.reduce_into_root(&send, &mut recv, Sum).unwrap(),
                _ => root.reduce_into(&send, Sum).unwrap(),
            });
            let told = counted(&mut || root.broadcast_into(&mut recv).unwrap());
            [all, one, told]
        });
        let total = |what: usize| counts.iter().map(|count| count[what]).sum::<usize>();
        assert_eq!([total(0), total(1), total(2)], [2 * size * n, (size + 1) * n, 2 * (size - 1) * n]);
    }
}

/// A rank that leaves a call by an error waits for another's operator, and that for what the first one's hook does.
#[test]
fn who_waits_to_leave_goes_on_with_its_hook() {
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    use std::time::{Duration, Instant};
    /// More than there are before a rank that waits looks whether the communicator can go on.
    const MANY: u32 = 4000;
    static HELD_UP: AtomicBool = AtomicBool::new(false);
    static TURNS: AtomicU32 = AtomicU32::new(0);
    let ended = threads(2, "allreduce:shares,share_cell=4K", |comm| {
        let send = comm.alloc_copy(&own(comm.rank(), 20_000)).unwrap();
        let mut recv = comm.alloc::<u64>(20_000).unwrap();
        let rank = comm.rank();
        let waited = std::cell::Cell::new(false);
        let operator = User::commutative(|left: &mut [u64], right: &[u64]| {
            // Rank 1 holds rank 0 up in this call, until that waits, cannot go on, leaves, and still looks after
            // its hook.
            let end = Instant::now() + Duration::from_secs(60);
            HELD_UP.fetch_or(rank == 1, Ordering::Relaxed);
            while rank == 1 && !waited.get() && TURNS.load(Ordering::Relaxed) < MANY {
                assert!(Instant::now() < end, "the hook is not called any more");
                std::thread::yield_now();
            }
            waited.set(true);
            left.iter_mut().zip(right).for_each(|(left, right)| *left += right);
        });
        if rank == 0 {
            // It gives up once rank 1 is in its operator, and is called on.
            let hook = || {
                let held_up = HELD_UP.load(Ordering::Relaxed);
                (!held_up || TURNS.fetch_add(1, Ordering::Relaxed) > 0).then_some(Duration::ZERO)
            };
            comm.set_idle(Some(Box::new(hook))).unwrap();
        }
        let own = comm.all_reduce_into(&send, &mut recv, operator);
        (own, comm.barrier())
    });
    let refused = Err(Error::Refused { rank: 0 });
    // Rank 0 had done its part for rank 1 before it left.
    assert_eq!(ended[0], (refused.clone(), refused.clone()));
    assert_eq!(ended[1].1, refused);
    assert!(TURNS.load(Ordering::Relaxed) >= MANY);
}

/// A rank that leaves a call in which it has lent its buffer does not wait for one that has ended the call,
/// whatever that goes on with: nor after calls that passed positions over, at which nobody has anything to read.
#[test]
fn who_leaves_does_not_wait_for_the_next_call() {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use crate::world::comes;

    for before in ["nothing", "an allreduce", "a reduce-scatter", "an alltoall"] {
        let [ended, left] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        threads(2, "allreduce:shares,share_cell=4K", |comm| {
            let (send, mut recv) = (own(comm.rank(), 4096), vec![0; 4096]);
            match before {
                "an allreduce" => comm.all_reduce_into(&send, &mut recv, Sum).unwrap(),
                "a reduce-scatter" => comm.reduce_scatter_block_into(&send, &mut recv[..2048], Sum).unwrap(),
                "an alltoall" => comm.all_to_all_into(&send, &mut recv).unwrap(),
                _ => (),
            }
            // The root waits for nothing but the end of the broadcast: both are through with what was before.
            comm.barrier().unwrap();
            let mut lent = comm.alloc::<u64>(4096).unwrap();
            if comm.rank() == 0 {
                let ended = Arc::clone(&ended);
                // The other one has ended the call, and makes no other.
                let hook = move || {
                    assert!(comes(&ended), "the other rank does not end its call, after {before}");
                    panic!("a hook that fails")
                };
                comm.set_idle(Some(Box::new(hook))).unwrap();
                assert!(catch_unwind(AssertUnwindSafe(|| comm.process_at_rank(0).broadcast_into(&mut lent))).is_err());
                left.store(true, Ordering::SeqCst);
            } else {
                // The root waits by then.
                std::thread::sleep(Duration::from_millis(50));
                comm.process_at_rank(0).broadcast_into(&mut lent).unwrap();
                ended.store(true, Ordering::SeqCst);
                let in_time = comes(&left);
                // Lets the root go, if nothing else did.
                comm.barrier().unwrap_err();
                assert!(in_time, "the root does not leave, after {before}");
            }
        });
    }
}

/// A rank that panics in an operator has lent its buffers: it stays until nobody is in them.
#[test]
fn a_panic_in_an_operator_with_lent_buffers() {
    let outcome = std::panic::catch_unwind(|| {
        threads(3, "allreduce:shares,share_cell=4K", |comm| {
            let send = comm.alloc_copy(&own(comm.rank(), 20_000)).unwrap();
            let mut recv = comm.alloc::<u64>(20_000).unwrap();
            let rank = comm.rank();
            let times = std::cell::Cell::new(0);
            let operator = User::commutative(|left: &mut [u64], right: &[u64]| {
                times.set(times.get() + 1);
                assert!(rank != 1 || times.get() < 5, "an operator that fails");
                left.iter_mut().zip(right).for_each(|(left, right)| *left += right);
            });
            let error = comm.all_reduce_into(&send, &mut recv, operator).unwrap_err();
            assert_eq!(error, Error::RankFailed { rank: 1 });
        })
    });
    assert!(outcome.is_err());
}
