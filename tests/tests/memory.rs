//! Memory: communicators give theirs back, shortage is an error with a word on what to do, and messages may be longer
//! than what 32 bits count.

#![forbid(unsafe_code)]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hier::job::{Job, JobSpec};
use hier::operator::{Max, Sum};
use hier::{Communicator, Error, TopologyPlan, TreeRules};
use phalanx_tests::command::{bare, job, run};
use phalanx_tests::footprint::Footprint;
use phalanx_tests::library::say_skipped;
use phalanx_tests::phalanx_command;
use phalanx_tests::watchdog::watchdog;

const LIMIT: Duration = Duration::from_secs(600);

/// The tests of this program count what the process holds, so they go one after the other.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn ten_thousand_communicators_of_threads_leave_nothing() {
    let _alone = alone();
    watchdog(LIMIT, || {
        const RANKS: usize = 4;
        // Small cells: it is not the memory's speed that counts here.
        let mut spec = JobSpec::new(RANKS).unwrap();
        spec.tuning.force("all:auto,up_bytes=32K,down_bytes=32K,cell=4K").unwrap();
        let job = Job::create(&spec).unwrap();
        let taken = job.arena_taken();
        let plan = Arc::new(TopologyPlan::new(TreeRules::default(), vec![[0; 3]; RANKS], 1));
        let worlds: Vec<_> = (0..RANKS).map(|rank| job.attach(rank, plan.clone()).unwrap()).collect();
        let churn = |times: usize, worlds: Vec<_>| {
            std::thread::scope(|scope| {
                let mut ranks = Vec::new();
                for world in worlds {
                    // All of the same type, which only the job knows.
                    ranks.push(scope.spawn(move || {
                        turns(&world, times);
                        world
                    }));
                }
                ranks.into_iter().map(|rank| rank.join().unwrap()).collect::<Vec<_>>()
            })
        };
        let worlds = churn(200, worlds);
        let before = Footprint::own();
        let worlds = churn(10_000, worlds);
        let after = Footprint::own();
        assert_eq!(after.growth(&before), None);
        assert_eq!(job.arena_taken(), taken, "the world's block alone is taken");
        drop(worlds);
        assert_eq!(job.arena_taken(), 0, "the world's block too has been given back");
    });
}

/// Makes and drops communicators, so many times.
fn turns(world: &shm_core::Communicator, times: usize) {
    for turn in 0..times {
        let copy = world.duplicate().unwrap();
        let part = world.split(Some((world.rank() + turn) as u32 % 2), -(world.rank() as i64)).unwrap().unwrap();
        let mut sum = [1usize; 20];
        part.all_reduce_in_place(&mut sum, Sum).unwrap();
        assert_eq!(sum, [2; 20]);
        copy.barrier().unwrap();
    }
}

/// Two in each turn, of the default size.
#[test]
fn ten_thousand_communicators_of_processes_leave_nothing() {
    let _alone = alone();
    let said = run(&mut job(env!("CARGO_BIN_EXE_churning_rank"), 3, &["5000"]), LIMIT).succeeded();
    assert_eq!(said.lines().filter(|line| line.starts_with("flat ")).count(), 3, "{said}");
}

#[test]
fn jobs_that_end_give_everything_back() {
    let _alone = alone();
    watchdog(LIMIT, || {
        let jobs = |times: usize| {
            for _ in 0..times {
                let sizes = Communicator::threads(5, |world| world.duplicate().unwrap().size()).unwrap();
                assert_eq!(sizes, [5; 5]);
            }
        };
        jobs(20);
        let before = Footprint::own();
        jobs(300);
        assert_eq!(Footprint::own().growth(&before), None);
    });
}

#[test]
fn an_arena_that_is_used_up_is_told_to_all_alike_and_can_be_used_again() {
    let _alone = alone();
    watchdog(LIMIT, || {
        for ranks in [1, 2, 5] {
            let mut spec = JobSpec::new(ranks).unwrap();
            // Room for the world and a few more.
            spec.tuning.force("all:auto,up_bytes=8K,down_bytes=8K,cell=1K,share_cell=1K").unwrap();
            spec.arena = Some(1 << 20);
            let most = Communicator::threads_of(&spec, TreeRules::default(), |world| {
                let fill = || {
                    let mut list = Vec::new();
                    loop {
                        match world.duplicate() {
                            Ok(copy) => list.push(copy),
                            Err(error) => return (list, error),
                        }
                    }
                };
                let mut counts = Vec::new();
                for round in 0..20 {
                    let (mut list, error) = fill();
                    let Error::ArenaExhausted { needed, free, arena } = &error else { panic!("{error}") };
                    assert!(free < needed && needed <= arena, "{error}");
                    assert!(error.to_string().contains("PHALANX_ARENA"), "{error}");
                    counts.push(list.len());
                    // Those that are there go on working, and the world too.
                    for comm in list.iter().chain([&world]) {
                        let mut sum = [1usize];
                        comm.all_reduce_in_place(&mut sum, Sum).unwrap();
                        assert_eq!(sum, [ranks]);
                    }
                    // Dropped in another order on each rank.
                    if (round + world.rank()) % 2 == 0 {
                        list.reverse();
                    }
                    drop(list);
                    // All have dropped theirs before anybody asks again.
                    world.barrier().unwrap();
                }
                assert!(counts.iter().all(|&count| count == counts[0]), "{counts:?}");
                counts[0]
            });
            let most = most.unwrap();
            assert!(most.iter().all(|&count| count == most[0] && count > 0), "{most:?}");
        }
        let mut spec = JobSpec::new(16).unwrap();
        spec.arena = Some(1);
        let error = Communicator::threads_of(&spec, TreeRules::default(), |_| ()).unwrap_err();
        assert!(matches!(error, Error::ArenaExhausted { .. }), "{error}");
        assert!(!error.to_string().contains("no longer used"), "there is none yet: {error}");
    });
}

#[test]
fn too_little_address_space_is_a_clear_error() {
    let _alone = alone();
    let stray = env!("CARGO_BIN_EXE_stray_rank");
    let limited = |kib: u32, line: &str| {
        let mut command = bare("sh".as_ref());
        command.args(["-c", &format!("ulimit -v {kib}; exec {line}")]);
        run(&mut command, LIMIT)
    };
    // A program without a launcher.
    let ended = limited(150_000, stray);
    assert_eq!(ended.status.code(), Some(2), "{ended:?}");
    assert!(ended.stdout.contains("could not be reserved") && ended.stdout.contains("ulimit -v"), "{ended:?}");
    // The launcher itself.
    let ended = limited(150_000, &format!("{} run -n 2 -- {stray}", phalanx_command().display()));
    assert!(!ended.status.success() && ended.status.code().is_some_and(|code| code < 128), "{ended:?}");
    assert!(ended.stderr.contains("could not be reserved") && ended.stderr.contains("ulimit -v"), "{ended:?}");
    // One rank of a job, which the others do not wait for.
    let script = format!("test $PHALANX_RANK = 1 && ulimit -v 150000; exec {stray}");
    let begin = Instant::now();
    let ended = run(&mut job("sh", 3, &["-c", &script]), LIMIT);
    assert_eq!(ended.status.code(), Some(2), "{ended:?}");
    assert!(ended.stdout.contains("rank 1: ") && ended.stdout.contains("could not be reserved"), "{ended:?}");
    assert!(ended.stdout.contains("ulimit -v"), "{ended:?}");
    assert_eq!(ended.stdout.matches("rank 1 of the job has ended").count(), 2, "{ended:?}");
    assert!(begin.elapsed() < Duration::from_secs(5), "{ended:?}");
}

/// Needs 12 GiB of free memory, and says so when there is less.
#[test]
fn messages_longer_than_four_gibibytes() {
    let _alone = alone();
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap();
    let free = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:")).unwrap();
    let free: u64 = free.split_whitespace().next().unwrap().parse().unwrap();
    if free < 12 << 20 {
        return say_skipped(&format!("{} GiB of memory are free, 12 are needed", free >> 20));
    }
    watchdog(LIMIT, || {
        // In words, so that the loops are short; as bytes, more than 2^32.
        const LEN: usize = ((4 << 30) + (100 << 20)) / 8 + 3;
        // At the ends, where bytes and words reach 2^31 and 2^32, and in places between.
        let places: Vec<usize> = (0..400)
            .map(|i| i * (LEN / 400))
            .chain([(1 << 28) - 1, 1 << 28, (1 << 29) - 1, 1 << 29, (1 << 29) + 1, LEN - 1])
            .collect();
        let value = |place: usize| place as u64 + 1;
        Communicator::threads(2, |comm| {
            let rank = comm.rank();
            // The root's is written all over: pages that were only read would be copied one by one when the sum is
            // stored.
            let mut vector = vec![if rank == 1 { 7u64 } else { 0 }; LEN];
            if rank == 1 {
                places.iter().for_each(|&place| vector[place] = value(place));
            }
            comm.process_at_rank(1).broadcast_into(&mut vector).unwrap();
            assert!(places.iter().all(|&place| vector[place] == value(place)), "rank {rank}: broadcast");
            let between =
                |place: usize| vector.get(place + 1).is_none_or(|&word| word == 7) || places.contains(&(place + 1));
            assert!(places.iter().all(|&place| between(place)), "rank {rank}: broadcast");
            places.iter().for_each(|&place| vector[place] = if place % 2 == rank { value(place) } else { 3 });
            comm.all_reduce_in_place(&mut vector, Max).unwrap();
            assert!(places.iter().all(|&place| vector[place] == value(place).max(3)), "rank {rank}: allreduce");
        })
        .unwrap();
    });
}
