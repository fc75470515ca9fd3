//! Ranks that are threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use hier::job::JobSpec;
use hier::operator::User;
use hier::{Communicator, Error, TreeRules};
use phalanx_tests::watchdog::watchdog;

use crate::{LIMIT, PROMISE};

/// What one rank saw: the rank that its pending call named, and those that its later calls did.
type Seen = (usize, usize, [usize; 2]);

/// Runs threads of which `victim` does `ends`, while the others call until they fail.
fn threads(ranks: usize, rules: &str, len: usize, victim: usize, ends: impl Fn(Communicator) + Sync) {
    let seen: Mutex<Vec<Seen>> = Mutex::new(Vec::new());
    let blamed = |result: Result<(), Error>| match result {
        Err(Error::RankFailed { rank }) => rank,
        other => panic!("{other:?}"),
    };
    let mut spec = JobSpec::new(ranks).unwrap();
    spec.tuning.force(rules).unwrap();
    let begin = Instant::now();
    let result = catch_unwind(AssertUnwindSafe(|| {
        Communicator::threads_of(&spec, TreeRules::default(), |comm| {
            comm.barrier().unwrap();
            if comm.rank() == victim {
                std::thread::sleep(Duration::from_millis(60));
                return ends(comm);
            }
            let mut buffer = vec![1u64; len];
            let pending = loop {
                if let Err(error) = comm.all_reduce_in_place(&mut buffer, User::commutative(add)) {
                    break blamed(Err(error));
                }
            };
            let root = comm.process_at_rank(victim);
            let later = [blamed(comm.barrier()), blamed(root.broadcast_into(&mut buffer))];
            seen.lock().unwrap().push((comm.rank(), pending, later));
        })
    }));
    assert!(begin.elapsed() < Duration::from_millis(60) + PROMISE, "{:?}", begin.elapsed());
    let seen = seen.into_inner().unwrap();
    assert_eq!(seen.len(), ranks - 1, "{rules}: {seen:?} {result:?}");
    for (rank, pending, later) in seen {
        assert_eq!((pending, later), (victim, [victim; 2]), "{rules}: rank {rank} of {ranks}");
    }
}

fn add(left: &mut [u64], right: &[u64]) {
    left.iter_mut().zip(right).for_each(|(left, right)| *left = left.wrapping_add(*right));
}

#[test]
fn threads_that_return_or_panic() {
    watchdog(LIMIT, || {
        for (rules, len) in
            [("all:line", 1), ("all:cells", 100), ("all:cells,cell=64,cells=2", 500), ("all:shares", 9000)]
        {
            for (ranks, victim) in [(2, 0), (2, 1), (5, 3), (16, 9)] {
                threads(ranks, rules, len, victim, drop);
                threads(ranks, rules, len, victim, |comm| {
                    let _comm = comm;
                    // No message: these are meant.
                    std::panic::resume_unwind(Box::new("the victim panics"));
                });
                threads(ranks, rules, len, victim, |comm| {
                    let combine = |_: &mut [u64], _: &[u64]| std::panic::resume_unwind(Box::new("in an operator"));
                    let _ = comm.all_reduce_in_place(&mut vec![0; len], User::commutative(combine));
                });
            }
        }
    });
}
