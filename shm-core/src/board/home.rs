//! Where ranks share cores: neighbours in rank order on the same one.
//!
//! What ranks of one core hand to each other stays in its cache; what goes to another core is fetched line by line.
//! Trees and shares bring neighbours together, so where they share a core few lines go across, and each core has as
//! many ranks as the others. The system knows nothing of that. It spreads ranks as they start and moves them when some
//! sleep, so that a job is quick in one run and slow in the next: on 8 ranks of two cores reductions of 256 KiB
//! between shared buffers took 61 us so, and 109 to 154 where the system had put them (Intel Xeon).
//!
//! A rank that finds itself elsewhere when it begins a call that does not go in lines moves to its core, and at once
//! may run anywhere again, as before: nothing is bound, and what a program does between calls is for the system to
//! place. Where that does not leave a rank there, since another program has the core, say, it tries ever more rarely.
//!
//! Only ranks that may use all the cores of the job are moved: whoever makes the job says that nobody has bound any.
//! And only calls of the whole job (of a node) move any: the ranks of a smaller group may have all cores for
//! themselves while the others do nothing.
//!
//! From one system call to the other, microseconds or, where that core is busy, milliseconds, the calling thread is
//! bound to its core. What it starts from a signal handler then stays so. Whoever binds it from outside meanwhile is
//! heeded, unless that falls between the look and what follows it. A sandbox that does not refuse the call but kills
//! who makes it takes `PHALANX_PLACE=never`.

use std::cell::Cell;
use std::fs;

use nix::errno::Errno;
use nix::sched::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use nix::unistd::Pid;

use super::SharedBoard;

/// Calls that go by, at most, before a rank that is not left on its core looks again.
const MOST: u32 = 256;

/// What a rank knows of the core that it shares with its neighbours.
#[derive(Default)]
pub(super) struct Home {
    /// Calls before the next look, and how many that will be once it has moved.
    left: Cell<u32>,
    period: Cell<u32>,
}

impl SharedBoard {
    /// Moves this rank to its core if it is elsewhere: where ranks share cores, and this communicator is the whole job.
    pub(super) fn look_for_home(&self) {
        let Home { left, period } = &self.home;
        if left.get() > 0 {
            left.set(left.get() - 1);
            return;
        }
        let header = self.seat.mapping().header();
        let find = || find((self.seat.rank(), header.ranks as usize), header.cores as usize, &system());
        let Some(home) = self.seat.home.get_or_init(find) else { return };
        let is_there = sched_getcpu().is_ok_and(|processor| home.is_set(processor).unwrap_or(true));
        if is_there {
            period.set(period.get() / 2);
            return;
        }
        left.set(period.get());
        period.set((2 * period.get()).clamp(1, MOST));
        if move_to(home).is_err() {
            // It may not, or no longer: never again for long.
            left.set(u32::MAX);
        }
    }
}

/// Has the calling thread run on `processors`, if it may use them, and then wherever it might before.
fn move_to(processors: &CpuSet) -> Result<(), Errno> {
    let this = Pid::from_raw(0);
    let before = sched_getaffinity(this)?;
    if !is_within(processors, &before) {
        // Somebody has bound it since.
        return Err(Errno::EPERM);
    }
    sched_setaffinity(this, processors)?;
    if !is_within(&sched_getaffinity(this)?, processors) {
        // Somebody has bound it meanwhile.
        return Ok(());
    }
    // What is asked for counts for good, within what the system allows from time to time: so everything, which is what
    // a thread has that nobody has bound, unless that turns out to be more than it had.
    sched_setaffinity(this, &set_of(0..CpuSet::count())?)?;
    if sched_getaffinity(this)? == before { Ok(()) } else { sched_setaffinity(this, &before) }
}

/// The processors that the calling thread may use, core by core.
fn system() -> Vec<Vec<usize>> {
    let Ok(mask) = sched_getaffinity(Pid::from_raw(0)) else { return Vec::new() };
    // Where nobody says which ones share a core, each is one.
    let core_of = |processor: usize| {
        let path = format!("/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list");
        fs::read_to_string(path).unwrap_or_else(|_| processor.to_string())
    };
    let mut cores: Vec<(String, Vec<usize>)> = Vec::new();
    for processor in members(&mask) {
        let core = core_of(processor);
        match cores.iter_mut().find(|(known, _)| *known == core) {
            Some((_, processors)) => processors.push(processor),
            None => cores.push((core, vec![processor])),
        }
    }
    cores.into_iter().map(|(_, processors)| processors).collect()
}

fn set_of(processors: impl IntoIterator<Item = usize>) -> Result<CpuSet, Errno> {
    let mut set = CpuSet::new();
    processors.into_iter().try_for_each(|processor| set.set(processor))?;
    Ok(set)
}

fn is_within(part: &CpuSet, whole: &CpuSet) -> bool {
    members(part).all(|processor| whole.is_set(processor).unwrap_or(false))
}

fn members(set: &CpuSet) -> impl Iterator<Item = usize> {
    (0..CpuSet::count()).filter(|&processor| set.is_set(processor).unwrap_or(false))
}

/// The processors of the core that `rank` of so many shares with its neighbours, if these `cores`, which it may use,
/// are all that the job has: `all` in number, by cores or, where nobody knew which processors are threads of one, by
/// processors.
fn find((rank, ranks): (usize, usize), all: usize, cores: &[Vec<usize>]) -> Option<CpuSet> {
    if all != cores.len() && all != cores.iter().map(Vec::len).sum() {
        return None;
    }
    set_of(cores.get(rank * cores.len() / ranks)?.iter().copied()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::communicator::Communicator;
    use crate::job::{Job, JobSpec};
    use crate::operator::Sum;

    fn homes(ranks: usize, all: usize, cores: &[Vec<usize>]) -> Vec<Vec<usize>> {
        let home = |rank| find((rank, ranks), all, cores).map_or_else(Vec::new, |home| members(&home).collect());
        (0..ranks).map(home).collect()
    }

    #[test]
    fn neighbours_share_a_core() {
        let cores = [vec![0], vec![1], vec![5]];
        assert_eq!(homes(6, 3, &cores), [[0], [0], [1], [1], [5], [5]]);
        assert_eq!(homes(4, 3, &cores), [[0], [0], [1], [5]]);
        // Two threads of each core, whichever of them are counted.
        let threads = [vec![0, 2], vec![1, 3]];
        for all in [2, 4] {
            assert_eq!(homes(5, all, &threads), [[0, 2], [0, 2], [0, 2], [1, 3], [1, 3]]);
        }
    }

    /// A rank that may not use all cores of the job, or more than these, was bound by somebody, or is held to less.
    #[test]
    fn who_is_bound_stays_there() {
        for cores in [vec![], vec![vec![0]], vec![vec![0], vec![1], vec![2]]] {
            assert_eq!(homes(8, 2, &cores), vec![vec![]; 8], "{cores:?}");
        }
    }

    /// The cores that a test may use, if it may use several.
    fn several_cores() -> Option<Vec<Vec<usize>>> {
        let cores = system();
        if cores.len() < 2 {
            crate::processes::say_skipped("who may use one core is nowhere else");
            return None;
        }
        Some(cores)
    }

    /// Has the calling thread run there, and then wherever `mask` lets it.
    fn come_from(there: &CpuSet, mask: &CpuSet) {
        for set in [there, mask] {
            sched_setaffinity(Pid::from_raw(0), set).unwrap();
        }
    }

    /// Makes so many long calls of `comm`, for each of which this rank comes from elsewhere.
    fn come_from_elsewhere(world: &Communicator, comm: &Communicator, calls: usize) {
        let this = Pid::from_raw(0);
        let mask = sched_getaffinity(this).unwrap();
        let cores = system();
        let home = find((world.rank(), world.size()), cores.len(), &cores).unwrap();
        let elsewhere = set_of(members(&mask).find(|&processor| !home.is_set(processor).unwrap())).unwrap();
        let (mine, mut all) = (vec![1_u64; 4096], vec![0; 4096]);
        for _ in 0..calls {
            come_from(&elsewhere, &mask);
            comm.all_reduce_into(&mine, &mut all, Sum).unwrap();
            assert_eq!(all[4095], comm.size() as u64);
            assert!(sched_getaffinity(this).unwrap() == mask, "a rank is bound");
        }
    }

    #[test]
    fn long_calls_of_the_whole_job_begin_at_home() {
        let Some(cores) = several_cores().map(|cores| cores.len()) else { return };
        let mut spec = JobSpec::new(2 * cores).unwrap();
        spec.cores = cores;
        for places in [true, false] {
            spec.place = places;
            Job::create(&spec).unwrap().on_threads(|world| {
                // The system may move a rank at any time: that it has moved itself shows in what it knows.
                let has_moved = |comm: &Communicator| comm.enter().unwrap().board.home.period.get() > 0;
                come_from_elsewhere(&world, &world, 40);
                assert_eq!(has_moved(&world), places);
                let half = world.split(Some((world.rank() / cores) as u32), 0).unwrap().unwrap();
                come_from_elsewhere(&world, &half, 20);
                assert!(!has_moved(&half));
            });
        }
    }

    #[test]
    fn a_thread_moves_and_is_not_bound() {
        let Some(cores) = several_cores() else { return };
        let this = Pid::from_raw(0);
        let [home, elsewhere] = [0, 1].map(|at| set_of(cores[at].iter().copied()).unwrap());
        std::thread::spawn(move || {
            let mask = sched_getaffinity(this).unwrap();
            // The system may move it on at once, but hardly always.
            let moves = |_: &i32| {
                come_from(&elsewhere, &mask);
                move_to(&home).unwrap();
                assert!(sched_getaffinity(this).unwrap() == mask, "it is bound");
                home.is_set(sched_getcpu().unwrap()).unwrap()
            };
            let moved = (0..50).filter(moves).count();
            assert!(moved >= 10, "{moved} of 50");
            // Bound to another core it stays there.
            sched_setaffinity(this, &elsewhere).unwrap();
            assert_eq!(move_to(&home), Err(Errno::EPERM));
            assert!(sched_getaffinity(this).unwrap() == elsewhere);
            // Bound to some cores it stays bound to these.
            let two = set_of(members(&elsewhere).chain(members(&home))).unwrap();
            sched_setaffinity(this, &two).unwrap();
            move_to(&home).unwrap();
            assert!(sched_getaffinity(this).unwrap() == two);
        })
        .join()
        .unwrap();
    }

    /// Ranks that are never left at home move ever more rarely; those that are move as often as it takes.
    #[test]
    fn who_is_not_left_there_tries_rarely() {
        let Some(cores) = several_cores() else { return };
        let mut spec = JobSpec::new(2 * cores.len()).unwrap();
        spec.cores = cores.len();
        Job::create(&spec).unwrap().on_threads(|world| {
            let engine = world.enter().unwrap();
            let Home { left, period } = &engine.board.home;
            let home = find((world.rank(), world.size()), cores.len(), &cores).unwrap();
            let elsewhere = set_of(cores.iter().flatten().copied().filter(|&at| !home.is_set(at).unwrap())).unwrap();
            let this = Pid::from_raw(0);
            let mask = sched_getaffinity(this).unwrap();
            let mut looks = 0;
            for _ in 0..2000 {
                looks += u32::from(left.get() == 0);
                come_from(&elsewhere, &mask);
                engine.board.look_for_home();
            }
            // At home in a look now and then, if the system happens to have moved it there.
            assert!(looks < 400, "{looks} of 2000");
            left.set(0);
            for _ in 0..20 {
                sched_setaffinity(this, &home).unwrap();
                engine.board.look_for_home();
            }
            sched_setaffinity(this, &mask).unwrap();
            assert!(period.get() <= 1, "{}", period.get());
        });
    }
}
