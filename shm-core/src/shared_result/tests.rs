use super::{Bytes, Place};
use crate::communicator::Communicator;
use crate::error::Error;
use crate::job::{Job, JobSpec, Standing};
use crate::operator::{Max, Sum, User};
use std::sync::atomic::Ordering;

/// Elements of eight bytes that no rank has for itself.
const LONG: usize = 4096;

thread_local! {
    /// Whether this thread gets no memory for results of its own.
    pub(super) static REFUSED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// A rank that gets no memory for a result of its own says so, and the others hear of it: in lines, through a cell,
/// and in the trial of a long one, where all ranks would have one.
#[test]
fn who_gets_no_memory_refuses() {
    for (size, len) in [(2, 5), (3, 5), (2, 700), (4, 700), (2, LONG)] {
        let job = Job::create(&JobSpec::new(size).unwrap()).unwrap();
        let errors = job.on_threads(|world| {
            let mine = world.alloc_copy(&vec![1u64; len]).unwrap();
            REFUSED.set(world.rank() == 1);
            let error = (0..200).find_map(|_| world.all_reduce_shared(&mine, Sum).err()).unwrap();
            REFUSED.set(false);
            error
        });
        for (rank, error) in errors.into_iter().enumerate() {
            match rank {
                1 => assert!(matches!(error, Error::Memory { rank: Some(1), .. }), "{size}, {len}: {error}"),
                _ => assert_eq!(error, Error::Refused { rank: 1 }, "{size}, {len}"),
            }
        }
        assert_eq!(job.heap_taken(), 0);
    }
}

/// Elements that are too large for shares of so many ranks, and not for an allreduce: each rank has its own result.
#[test]
fn elements_that_fit_no_share_are_reduced() {
    let size = 9;
    let sum = User::ordered(|left: &mut [[u32; 20_000]], right: &[[u32; 20_000]]| {
        for (left, right) in left.iter_mut().zip(right) {
            left.iter_mut().zip(right).for_each(|(left, right)| *left = left.wrapping_mul(3).wrapping_add(*right));
        }
    });
    let job = Job::create(&JobSpec::new(size).unwrap()).unwrap();
    job.on_threads(|world| {
        for is_shared in [false, true] {
            let values = vec![[world.rank() as u32 + 1; 20_000]; 3];
            let result = match is_shared {
                true => world.all_reduce_shared(&world.alloc_copy(&values).unwrap(), sum).unwrap(),
                false => world.all_reduce_shared(&values, sum).unwrap(),
            };
            let wanted = (1..=size as u32).reduce(|left, right| left.wrapping_mul(3).wrapping_add(right)).unwrap();
            assert!(result.is_own() && result.iter().flatten().all(|&value| value == wanted));
        }
        // Nothing can carry this out, and all ranks are refused alike.
        let error = world.all_reduce_shared(&[[0_u8; 3 << 20]; 1], User::commutative(|_: &mut [_], _: &[_]| ()));
        assert!(matches!(error, Err(Error::Tuning { .. })), "{error:?}");
        world.barrier().unwrap();
    });
}

/// Elements of no bytes lie nowhere, in their alignment.
#[test]
fn results_of_no_bytes_have_their_length() {
    Communicator::threads(2, |comm| {
        let nothing = crate::operator::User::commutative(|_: &mut [()], _: &[()]| ());
        assert_eq!(comm.all_reduce_shared(&[(); 3], nothing).unwrap().len(), 3);
        assert!(comm.all_reduce_shared::<u64, _>(&[], Sum).unwrap().is_empty());
        let own = 3 + comm.rank();
        let differ = comm.all_reduce_shared(&vec![(); own], nothing).and_then(|_| comm.barrier());
        assert!(matches!(differ, Err(Error::Mismatch { .. })), "{differ:?}");
    })
    .unwrap();
}

#[test]
fn several_results_at_once() {
    for size in 1..=4 {
        Communicator::threads(size, |comm| {
            let rank = comm.rank() as u64;
            let sum = (size * (size - 1) / 2) as u64;
            let mut held = std::collections::VecDeque::new();
            for turn in 0..40u64 {
                let count = [0, 1, 5, 300, 20_000, 300_000][turn as usize % 6];
                let mine: Vec<u64> = (0..count).map(|i| i + turn + rank).collect();
                let view = if turn % 2 == 0 {
                    comm.all_reduce_shared(&mine, Sum).unwrap()
                } else {
                    comm.all_reduce_shared(&comm.alloc_copy(&mine).unwrap(), Sum).unwrap()
                };
                held.push_back((turn, count, view));
                // Ranks hold different numbers of them.
                while held.len() > 3 * comm.rank() {
                    let (turn, count, view) = held.pop_front().unwrap();
                    assert_eq!(view.len() as u64, count);
                    assert!((0..count).zip(view.iter()).all(|(i, &x)| x == size as u64 * (i + turn) + sum));
                }
            }
            // They outlive the communicator.
            drop(comm);
            assert!(held.iter().all(|(turn, count, view)| {
                (0..*count).zip(view.iter()).all(|(i, &x)| x == size as u64 * (i + turn) + sum)
            }));
        })
        .unwrap();
    }
}

/// Trials have two ranks make results that each has for itself, and go back to one; both look at the right values
/// all the time, however long they keep them.
#[test]
fn both_have_one_or_each_its_own() {
    let job = Job::create(&JobSpec::new(2).unwrap()).unwrap();
    let kinds = job.on_threads(|world| {
        let mut kept = std::collections::VecDeque::new();
        let mut mine = world.alloc::<u64>(LONG).unwrap();
        let kinds: Vec<_> = (0..700u64)
            .map(|call| {
                let len = if call % 7 == 0 { LONG } else { LONG - 8 };
                (0..).zip(mine.iter_mut()).for_each(|(i, x): (u64, _)| *x = i * call + world.rank() as u64);
                let view = world.all_reduce_shared(&mine[..len], Sum).unwrap();
                let own = view.is_own();
                kept.push_back((call, view));
                if kept.len() > 2 + world.rank() {
                    let (call, view) = kept.pop_front().unwrap();
                    assert!((0..).zip(view.iter()).all(|(i, &x): (u64, _)| x == 2 * i * call + 1), "call {call}");
                }
                own
            })
            .collect();
        drop((world, mine));
        assert!(kept.iter().all(|(call, view)| (0..).zip(view.iter()).all(|(i, &x)| x == 2 * i * call + 1)));
        kinds
    });
    assert_eq!(kinds[0], kinds[1]);
    let own = kinds[0].iter().filter(|&&own| own).count();
    assert!((16..700).contains(&own), "{own}");
    assert_eq!(job.heap_taken(), 0);
}

#[test]
fn memory_comes_back() {
    let job = Job::create(&JobSpec::new(2).unwrap()).unwrap();
    job.on_threads(|world| {
        let views: Vec<_> =
            (0..6).map(|turn| world.all_reduce_shared(&[turn + world.rank(); LONG], Max).unwrap()).collect();
        assert!(job.heap_taken() > 0);
        drop(world);
        assert!(views.iter().enumerate().all(|(turn, view)| **view == [turn + 1; LONG]));
    });
    assert_eq!(job.heap_taken(), 0);
}

/// A rank that keeps a result, and a buffer, has left with its communicator: the others do not wait for it.
#[test]
fn who_keeps_a_result_has_left() {
    for size in [2, 3] {
        let job = Job::create(&JobSpec::new(size).unwrap()).unwrap();
        let told = std::sync::Barrier::new(size);
        job.on_threads(|world| {
            let rank = world.rank();
            let mine = world.alloc_copy(&vec![rank as u64; 5000]).unwrap();
            let view = world.all_reduce_shared(&mine, Sum).unwrap();
            let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
            if rank == 1 {
                drop(world);
                assert_eq!(job.standing(1), Standing::Left);
                told.wait();
            } else {
                assert_eq!(world.barrier(), Err(Error::RankFailed { rank: 1 }));
                assert!(std::time::Instant::now() < end);
                told.wait();
            }
            assert!(view.iter().all(|&x| x == (size * (size - 1) / 2) as u64));
        });
        assert_eq!(job.heap_taken(), 0);
    }
}

/// Calls that fail leave no memory behind: those that cannot begin, and those that end half-way.
#[test]
fn calls_that_fail_give_the_memory_back() {
    let job = Job::create(&JobSpec::new(3).unwrap()).unwrap();
    job.on_threads(|world| {
        for odd in 0..3 {
            for len in [1, 5000, 300_000] {
                let comm = world.duplicate().unwrap();
                let kept = comm.all_reduce_shared(&vec![1u32; len], Sum).unwrap();
                // One rank goes by another length; then nobody can begin.
                let own = if comm.rank() == odd { len + 1 } else { len };
                let failed = comm.all_reduce_shared(&vec![1u32; own], Sum).and_then(|_| comm.barrier());
                assert!(matches!(failed, Err(Error::Mismatch { .. })), "{failed:?}");
                for _ in 0..9 {
                    comm.all_reduce_shared(&[1u32], Sum).unwrap_err();
                }
                assert_eq!(*kept, *vec![3; len]);
                drop(kept);
                drop(comm);
                world.barrier().unwrap();
                assert_eq!(job.heap_taken(), 0, "odd {odd}, {len}");
                world.barrier().unwrap();
            }
        }
    });
}

/// A rank that made another call, which ended well, and then cannot begin the next one, never saw the result.
#[test]
fn who_made_another_call_has_no_view() {
    let job = Job::create(&JobSpec::new(3).unwrap()).unwrap();
    let rounds = 30;
    let failed = std::sync::atomic::AtomicUsize::new(0);
    job.on_threads(|world| {
        for round in 0..rounds {
            let comm = world.duplicate().unwrap();
            comm.barrier().unwrap();
            if comm.rank() == 2 {
                // The root of a short broadcast waits for nobody.
                comm.process_at_rank(2).broadcast_into(&mut [1u64]).unwrap();
                // Another has returned with an error; rank 0 is about to.
                while failed.load(Ordering::SeqCst) == round {
                    std::hint::spin_loop();
                }
                comm.barrier().unwrap_err();
            } else {
                comm.all_reduce_shared(&[1u64; LONG], Sum).unwrap_err();
                failed.fetch_max(round + 1, Ordering::SeqCst);
            }
            drop(comm);
            world.barrier().unwrap();
            assert_eq!(job.heap_taken(), 0, "round {round}");
            world.barrier().unwrap();
        }
    });
}

/// A forked child has copies of its parent's views, which count for nothing.
#[test]
fn copies_of_other_processes_give_nothing_back() {
    Communicator::threads(2, |comm| {
        let view = comm.all_reduce_shared(&vec![1u64; LONG], Sum).unwrap();
        let Some(Place::Shared { view: counted, process }) = &view.bytes.place else { panic!("it is long") };
        comm.barrier().unwrap();
        let before = counted.dropped();
        let place = Some(Place::Shared { view: counted.copy(), process: process + 1 });
        drop(Bytes { at: view.bytes.at, place });
        assert_eq!(counted.dropped(), before);
        comm.barrier().unwrap();
    })
    .unwrap();
}

#[test]
fn a_heap_that_is_full_fails_everywhere() {
    let mut spec = JobSpec::new(2).unwrap();
    spec.heap = Some(0);
    let errors = Job::create(&spec).unwrap().on_threads(|comm| {
        // What is short takes none of it.
        assert_eq!(*comm.all_reduce_shared(&[1.0, 2.0], Sum).unwrap(), [2.0, 4.0]);
        comm.all_reduce_shared(&[1.0; LONG], Sum).unwrap_err()
    });
    assert!(matches!(errors[0], Error::HeapExhausted { .. }), "{}", errors[0]);
    assert_eq!(errors[1], Error::Refused { rank: 0 });
}
