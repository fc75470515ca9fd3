//! What stands against the next call: who hears of it, and by which names.

use std::panic::resume_unwind;
use std::sync::atomic::AtomicBool;

use super::*;
use crate::Communicator;
use crate::operator::Sum;
use crate::select::Tuning;
use crate::world::comes;

fn refused(comm: &Communicator) {
    let refused = comm.all_reduce_into(&[1_u64], &mut [0; 2], Sum);
    assert!(matches!(refused, Err(Error::Length { .. })), "{refused:?}");
}

/// Rank 0 does what it does, with calls that it refuses; then rank 1 makes the first of them, and learns of it.
fn learns_of_a_refusal(does: impl Fn(&Communicator) + Sync) {
    let (done, ended) = (AtomicBool::new(false), AtomicBool::new(false));
    Communicator::threads(2, |comm| match comm.rank() {
        0 => {
            does(&comm);
            done.store(true, Ordering::SeqCst);
            assert!(comes(&ended), "rank 1 waits for a call that this one has refused");
        }
        _ => {
            assert!(comes(&done));
            assert_eq!(comm.barrier(), Err(Error::Refused { rank: 0 }));
            ended.store(true, Ordering::SeqCst);
        }
    })
    .unwrap();
}

#[test]
fn many_refused_calls_hide_none() {
    learns_of_a_refusal(|comm| (0..3 * CALLS).for_each(|_| refused(comm)));
}

#[test]
fn calls_that_wait_for_nobody_hide_no_refused_one() {
    learns_of_a_refusal(|comm| {
        (0..CALLS).for_each(|_| refused(comm));
        let failed = comm.process_at_rank(0).broadcast_into(&mut [0_u64; 512]);
        assert_eq!(failed.and_then(|()| comm.barrier()), Err(Error::Refused { rank: 0 }));
    });
}

/// Where all refuse alike nothing stands against the next call.
#[test]
fn what_all_refuse_is_no_fault() {
    Communicator::threads(3, |comm| {
        for _ in 0..CALLS - 1 {
            refused(&comm);
        }
        comm.barrier().unwrap();
        (0..CALLS / 2).for_each(|_| refused(&comm));
        comm.barrier().unwrap();
    })
    .unwrap();
}

/// All ranks hear who differs, whoever noticed.
#[test]
fn the_ranks_that_differ_are_named() {
    Communicator::threads(4, |comm| {
        let differed = match comm.rank() {
            2 => comm.all_reduce_in_place(&mut [1.0_f32; 3], Sum),
            _ => comm.all_reduce_in_place(&mut [1_u64; 3], Sum).and_then(|()| comm.barrier()),
        };
        let Err(error @ Error::Mismatch { .. }) = differed else { panic!("{differed:?}") };
        let Error::Mismatch { ranks, own, .. } = &error else { unreachable!() };
        assert!(ranks.contains(&2) && ranks[0] != ranks[1] && *own == comm.rank(), "{error}");
        assert!(error.to_string().contains(&format!("rank {} and rank {} of", ranks[0], ranks[1])), "{error}");
    })
    .unwrap();
}

/// As the program sees them: a split is one call, and what made the communicator ready none.
#[test]
fn errors_count_the_calls_that_the_program_made() {
    Communicator::threads(2, |comm| {
        comm.barrier().unwrap();
        comm.count_calls_from_here().unwrap();
        comm.split(Some(0), 0).unwrap();
        comm.barrier().unwrap();
        let differed = match comm.rank() {
            0 => comm.all_reduce_in_place(&mut vec![1_f32; 5000], Sum),
            _ => comm.all_reduce_in_place(&mut vec![1_u64; 5000], Sum),
        };
        let error = differed.unwrap_err().to_string();
        assert!(error.contains("in its call 3,"), "{error}");
    })
    .unwrap();
    // Who has yet to come hears of it in the call that it makes then, and in no call before the first.
    let heard = std::sync::Barrier::new(3);
    Communicator::threads(3, |comm| {
        let root = comm.process_at_rank(1);
        match comm.rank() {
            0 => {}
            // The root may have gone on.
            1 => _ = root.broadcast_into(&mut [1_u64; 9]),
            _ => _ = root.broadcast_into(&mut [1_f32; 9]).unwrap_err(),
        }
        heard.wait();
        let error = comm.barrier().unwrap_err().to_string();
        assert!(error.contains(["in its call 1,", "in its call 2,"][usize::from(comm.rank() > 0)]), "{error}");
    })
    .unwrap();
}

/// Ranks that go by different tables do not take each other's cells for what they are not.
#[test]
fn another_table_is_another_call() {
    Communicator::threads(2, |mut comm| {
        if comm.rank() == 1 {
            let mut tuning = Tuning::default();
            tuning.force("allreduce:cells,up_cell=4K").unwrap();
            comm.set_tuning(&tuning).unwrap();
            comm.set_tuning(&tuning).unwrap();
        }
        // What all refuse alike hides nothing.
        refused(&comm);
        let differed = comm.all_reduce_in_place(&mut vec![1_u64; 5000], Sum);
        assert!(matches!(differed, Err(Error::Mismatch { .. })), "{differed:?}");
    })
    .unwrap();
}

/// A root that its hook throws out of a call has left a slot half taken: neither it nor others go on from there.
#[test]
fn a_hook_that_panics_ends_the_job() {
    let thrown = AtomicBool::new(false);
    Communicator::threads(2, |comm| {
        let mut message = [0_u64; 4];
        let mut broadcast = || comm.process_at_rank(0).broadcast_into(&mut message);
        if comm.rank() == 0 {
            comm.set_idle(Some(Box::new(|| resume_unwind(Box::new(()))))).unwrap();
            // Until no slot is left.
            let mut made = || (0..10 * CALLS).all(|_| broadcast().is_ok());
            assert!(catch_unwind(AssertUnwindSafe(&mut made)).is_err(), "the ring is never full");
            assert_eq!(broadcast(), Err(Error::RankFailed { rank: 0 }));
            thrown.store(true, Ordering::SeqCst);
        } else {
            assert!(comes(&thrown));
            let ended = (0..10 * CALLS).find_map(|_| broadcast().err());
            assert_eq!(ended, Some(Error::RankFailed { rank: 0 }));
        }
    })
    .unwrap();
}

/// Whoever waits for a rank that has dropped its handle hears of it, also from others that have, and goes on elsewhere.
#[test]
fn a_dropped_handle_is_told() {
    type Call = fn(&Communicator) -> Result<()>;
    let calls: [Call; 6] = [
        |comm| comm.barrier(),
        |comm| comm.all_reduce_in_place(&mut [1_u64; 3], Sum),
        |comm| comm.all_reduce_in_place(&mut vec![1_u64; 5000], Sum),
        |comm| comm.all_gather_in_place(&mut vec![1_u8; 3 * comm.size()]),
        // Nobody waits in these, until there is no room for more.
        |comm| comm.process_at_rank(1).broadcast_into(&mut [1_u64; 3]),
        |comm| comm.process_at_rank(0).broadcast_into(&mut vec![1_u64; 700]),
    ];
    for (size, call) in [2, 3, 5].into_iter().flat_map(|size| calls.map(|call| (size, call))) {
        for leaver in 0..size {
            Communicator::threads(size, |comm| {
                let copy = comm.duplicate().unwrap();
                (0..3).for_each(|_| call(&copy).unwrap());
                // An error ends earlier calls, too.
                comm.barrier().unwrap();
                if comm.rank() != leaver {
                    let told = Err(Error::Dropped { rank: leaver });
                    assert_eq!((0..10 * CALLS).map(|_| call(&copy)).find(Result::is_err), Some(told.clone()));
                    assert_eq!(copy.barrier(), told);
                }
                drop(copy);
                comm.barrier().unwrap();
            })
            .unwrap();
        }
    }
}

/// What a rank has published before it drops its handle is there for all, however late they come.
#[test]
fn calls_made_before_a_handle_is_dropped_end_well() {
    for (len, ahead) in [(1, 16), (100, 16), (700, 2)] {
        let (dropped, readers) = (AtomicBool::new(false), std::sync::Barrier::new(2));
        Communicator::threads(3, |comm| {
            let copy = comm.duplicate().unwrap();
            let root = copy.process_at_rank(1);
            let message = |call| vec![call; len];
            if comm.rank() == 1 {
                (0..ahead).for_each(|call| root.broadcast_into(&mut message(call)).unwrap());
                drop(copy);
                dropped.store(true, Ordering::SeqCst);
            } else {
                assert!(comes(&dropped));
                for call in 0..ahead {
                    let mut buffer = vec![0_u64; len];
                    root.broadcast_into(&mut buffer).unwrap();
                    assert_eq!(buffer, message(call));
                }
                readers.wait();
                assert_eq!(root.broadcast_into(&mut message(0)), Err(Error::Dropped { rank: 1 }));
            }
            comm.barrier().unwrap();
        })
        .unwrap();
    }
}
