//! Random broadcasts and reductions of two ranks, among other calls that use the same rings: buffers in the job's heap
//! or private, at any offset, in place or not, with lengths around what a cell holds. What a rank has is compared byte
//! by byte after each call, with what lies around it, and written anew at once, so that whoever comes too late is seen:
//! in a wrong result, or in bytes that changed while they were private.
//!
//! Everything follows from one seed: `PHALANX_TEST_SEED=.. cargo test --test random_joint` repeats a run, the timing
//! apart.

use std::collections::VecDeque;
use std::os::fd::AsRawFd;
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bytemuck::{Pod, cast_slice, cast_slice_mut};
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use shm_core::job::{Invitation, Job, JobSpec};
use shm_core::operator::{Operator, Sum, User};
use shm_core::{Communicator, FlatPlan, SharedResult};

#[path = "random_joint/memory.rs"]
mod memory;

use memory::{Draw, Memory, ROOM, fill};

/// A rank, its memories, and the shared results that it holds.
struct Rank<'a> {
    comm: &'a Communicator,
    seed: u64,
    draw: Draw,
    late: Draw,
    memories: Vec<Memory>,
    results: VecDeque<(SharedResult<u64>, Vec<u64>)>,
}

/// The memory of a rank, and where in it.
type Spot = (usize, usize);

impl<'a> Rank<'a> {
    fn new(comm: &'a Communicator, seed: u64) -> Self {
        let own = seed.wrapping_add(1000 + comm.rank() as u64);
        let memories = (0..4).map(|i| Memory::new(comm, i < 2, own + 8 * i)).collect();
        Self { comm, seed, draw: Draw(seed), late: Draw(own), memories, results: VecDeque::new() }
    }

    /// What a rank contributes to a call.
    fn values<T: Pod>(&self, number: usize, rank: usize, n: usize) -> Vec<T> {
        let mut values = vec![T::zeroed(); n];
        let seed = self.seed.wrapping_mul(31).wrapping_add((number * 8 + rank) as u64);
        fill(seed.wrapping_mul(0x9e37_79b9), cast_slice_mut(&mut values));
        values
    }

    /// Spots for two vectors of this rank, in two of its memories, of which two are shared and two private.
    fn spots<T: Pod>(&mut self, n: usize) -> [Spot; 2] {
        let (first, other) = (self.late.below(4), 1 + self.late.below(3));
        let room = ROOM - n * size_of::<T>();
        let lines = self.late.below(3);
        [first, (first + other) % 4].map(|memory| {
            let at = match lines {
                0 => 0,
                1 => self.late.below(room / 64 + 1) * 64,
                _ => self.late.below(room + 1),
            };
            (memory, at.min(room) / align_of::<T>() * align_of::<T>())
        })
    }

    fn pause(&mut self) {
        match self.late.below(60) {
            0 => std::thread::sleep(Duration::from_micros(self.late.below(400) as u64)),
            1..6 => std::thread::yield_now(),
            6..12 => (0..self.late.below(3000)).for_each(|_| std::hint::spin_loop()),
            _ => {}
        }
    }

    /// Compares all that this rank has, and writes anew what it used.
    fn end<T: Pod>(&mut self, number: usize, what: &str, spots: [Spot; 2], n: usize) {
        let what = format!("seed {}, call {number} on rank {}: {what}", self.seed, self.comm.rank());
        self.memories.iter_mut().for_each(|memory| memory.check(&what));
        for (view, values) in &self.results {
            assert!(**view == **values, "{what}: a shared result has changed");
        }
        for (memory, at) in spots {
            let mut values = vec![0; n * size_of::<T>()];
            fill(self.late.next(), &mut values);
            self.memories[memory].set(at, &values);
        }
    }

    fn broadcast<T: Pod + Send + Sync>(&mut self, number: usize) {
        let (n, root) = (self.draw.length(size_of::<T>()), self.draw.below(2));
        let values = self.values::<T>(number, root, n);
        let spots = self.spots::<T>(n);
        let (memory, at) = spots[0];
        if self.comm.rank() == root {
            self.memories[memory].set(at, cast_slice(&values));
        }
        self.pause();
        let root = self.comm.process_at_rank(root);
        root.broadcast_into(self.memories[memory].part::<T>(at, n)).unwrap();
        self.memories[memory].expect(at, cast_slice(&values));
        self.end::<T>(number, &format!("broadcast of {n} of {}", size_of::<T>()), spots, n);
    }

    fn reduce<T: Pod + Send + Sync>(&mut self, number: usize, operator: impl Operator<T>, combine: fn(&mut [T], &[T])) {
        let (n, root, in_place) = (self.draw.length(size_of::<T>()), self.draw.below(2), self.draw.below(3) == 0);
        let own = self.values::<T>(number, self.comm.rank(), n);
        let [from, to] = self.spots::<T>(n);
        self.memories[from.0].set(from.1, cast_slice(&own));
        self.pause();
        let process = self.comm.process_at_rank(root);
        if self.comm.rank() != root {
            process.reduce_into(self.memories[from.0].part::<T>(from.1, n), operator).unwrap();
        } else {
            let mut sum = self.values::<T>(number, 0, n);
            combine(&mut sum, &self.values::<T>(number, 1, n));
            if in_place {
                process.reduce_into_root_in_place(self.memories[from.0].part::<T>(from.1, n), operator).unwrap();
                self.memories[from.0].expect(from.1, cast_slice(&sum));
            } else {
                let [sent, got] = self.memories.get_disjoint_mut([from.0, to.0]).unwrap();
                let (sent, got) = (sent.part::<T>(from.1, n), got.part::<T>(to.1, n));
                process.reduce_into_root(sent, got, operator).unwrap();
                self.memories[to.0].expect(to.1, cast_slice(&sum));
            }
        }
        let what = format!("reduction of {n} of {} to {root}, in place: {in_place}", size_of::<T>());
        self.end::<T>(number, &what, [from, to], n);
    }

    /// Calls that use the rings otherwise.
    fn other(&mut self, number: usize) {
        let (n, kind) = (self.draw.length(8), self.draw.below(8));
        let [own, theirs] = [self.comm.rank(), 1 - self.comm.rank()].map(|rank| self.values::<u64>(number, rank, n));
        let sum: Vec<u64> = own.iter().zip(&theirs).map(|(a, b)| a.wrapping_add(*b)).collect();
        let spots = self.spots::<u64>(n);
        let [from, to] = spots;
        let (comm, even) = (self.comm, n / 2 * 2);
        let in_order = |own: &[u64], theirs: &[u64]| match comm.rank() {
            0 => [own, theirs].concat(),
            _ => [theirs, own].concat(),
        };
        self.memories[from.0].set(from.1, cast_slice(&own));
        self.pause();
        let [sent, got] = self.memories.get_disjoint_mut([from.0, to.0]).unwrap();
        let (send, recv) = (sent.part::<u64>(from.1, n), got.part::<u64>(to.1, n));
        match kind {
            0 | 1 => {
                comm.all_reduce_into(send, recv, Sum).unwrap();
                got.expect(to.1, cast_slice(&sum));
            }
            2 => {
                comm.all_reduce_in_place(send, Sum).unwrap();
                sent.expect(from.1, cast_slice(&sum));
            }
            3 | 4 => {
                comm.all_to_all_into(&send[..even], &mut recv[..even]).unwrap();
                let block = comm.rank() * even / 2..(comm.rank() + 1) * even / 2;
                got.expect(to.1, cast_slice(&in_order(&own[block.clone()], &theirs[block])));
            }
            5 => {
                comm.all_gather_into(&send[..even / 2], &mut recv[..even]).unwrap();
                got.expect(to.1, cast_slice(&in_order(&own[..even / 2], &theirs[..even / 2])));
            }
            6 => comm.barrier().unwrap(),
            _ => {
                let view = comm.all_reduce_shared(send, Sum).unwrap();
                assert!(*view == *sum, "seed {}, call {number}: a shared result", self.seed);
                self.results.push_back((view, sum));
                if self.results.len() > 2 {
                    self.results.pop_front();
                }
            }
        }
        self.end::<u64>(number, &format!("other call {kind} of {n}"), spots, n);
    }

    /// A reduction of what both ranks hold a view of.
    fn reduce_view(&mut self, number: usize) {
        let root = self.draw.below(2);
        let Some((view, values)) = self.results.pop_back() else { return };
        let n = values.len();
        let spots = self.spots::<u64>(n);
        let (memory, at) = spots[0];
        let process = self.comm.process_at_rank(root);
        if self.comm.rank() == root {
            let recv = self.memories[memory].part(at, n);
            process.reduce_into_root(&view, recv, Sum).unwrap();
            let twice: Vec<u64> = values.iter().map(|value| value.wrapping_mul(2)).collect();
            self.memories[memory].expect(at, cast_slice(&twice));
        } else {
            process.reduce_into(&view, Sum).unwrap();
        }
        self.results.push_back((view, values));
        self.end::<u64>(number, &format!("reduction of a view of {n}"), spots, n);
    }

    fn call(&mut self, number: usize) {
        fn uneven<T: Pod>(left: &mut [T], right: &[T]) {
            for (left, right) in cast_slice_mut::<T, u8>(left).iter_mut().zip(cast_slice::<T, u8>(right)) {
                *left = left.wrapping_mul(3).wrapping_add(right.rotate_left(1));
            }
        }
        match self.draw.below(16) {
            0 => self.broadcast::<u8>(number),
            1 => self.broadcast::<[u8; 3]>(number),
            2 => self.broadcast::<u64>(number),
            3 => self.broadcast::<[u32; 3]>(number),
            4 | 5 => {
                self.reduce::<u8>(number, Sum, |a, b| a.iter_mut().zip(b).for_each(|(a, b)| *a = a.wrapping_add(*b)))
            }
            6 | 7 => {
                self.reduce::<u64>(number, Sum, |a, b| a.iter_mut().zip(b).for_each(|(a, b)| *a = a.wrapping_add(*b)))
            }
            8 => self.reduce::<[u8; 3]>(number, User::ordered(uneven), uneven),
            9 => self.reduce::<[u32; 3]>(number, User::ordered(uneven), uneven),
            10 => self.reduce::<u128>(number, User::ordered(uneven), uneven),
            11 => self.reduce::<[u64; 3]>(number, User::ordered(uneven), uneven),
            12 => self.reduce_view(number),
            _ => self.other(number),
        }
    }

    fn run(mut self, calls: usize) {
        (0..calls).for_each(|number| self.call(number));
    }
}

const RULES: [&str; 11] = [
    "all:auto",
    "all:auto,reach_from=1",
    "all:cells,cell=32K,cells=2,reach_from=20000",
    "all:cells,cell=1K,cells=2",
    "all:cells,cell=256,cells=3,stream=2",
    "all:cells,cell=8K,cells=3,stream=4",
    "all:cells,cell=1K,cells=4,reach_from=1",
    "all:cells,up_cell=1K,up_cells=3,down_cell=256,down_cells=5,direct_from=3000",
    "broadcast:cells,cell=256,cells=3;reduce:cells,cell=512,cells=2;allreduce:exchange,cell=128,cells=4",
    "strict;all:cells,cell=512,cells=2,reach_from=1,stream=2",
    "allreduce:shares,share_cell=4K;all:line_most=64,cell=2K,cells=4",
];

fn seed_of_run() -> u64 {
    let seed = std::env::var("PHALANX_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| {
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(1, |since| since.as_micros() as u64)
    });
    println!("PHALANX_TEST_SEED={seed}");
    seed
}

/// `JOINT_CALLS=..` makes so many with each of the rules.
fn calls_of_run() -> usize {
    std::env::var("JOINT_CALLS").ok().and_then(|calls| calls.parse().ok()).unwrap_or(250)
}

fn spec(size: usize, rules: &str) -> JobSpec {
    let mut spec = JobSpec::new(size).unwrap();
    // Short ones are lent too, where nobody says otherwise.
    let short = if rules == "all:auto" { "" } else { "all:direct_from=1;" };
    spec.tuning.force(&format!("{short}{rules}")).unwrap();
    spec
}

#[test]
fn threads_bring_what_was_sent() {
    let seed = seed_of_run();
    for (turn, rules) in RULES.into_iter().enumerate() {
        Communicator::threads_of(&spec(2, rules), &(Arc::new(FlatPlan) as _), |comm| {
            Rank::new(&comm, seed.wrapping_add(turn as u64)).run(calls_of_run());
        })
        .unwrap();
    }
}

/// Pairs of a world of four, whose ranks go by another order there.
#[test]
fn pairs_of_a_larger_world() {
    let seed = seed_of_run();
    for (turn, rules) in RULES.into_iter().enumerate() {
        Communicator::threads_of(&spec(4, rules), &(Arc::new(FlatPlan) as _), |comm| {
            let pair = comm.split(Some(comm.rank() as u32 % 2), -(comm.rank() as i64)).unwrap().unwrap();
            let mut rank = Rank::new(&pair, seed.wrapping_add(turn as u64));
            for number in 0..calls_of_run() / 4 {
                rank.call(number);
                let mut all = [1_u32; 300];
                comm.all_reduce_in_place(&mut all, Sum).unwrap();
                assert_eq!(all, [4; 300]);
            }
        })
        .unwrap();
    }
}

/// What a process of the test below does: not a test of its own.
#[test]
#[ignore = "the other tests start it, or `phalanx run`"]
fn process() {
    let Some(invitation) = Invitation::from_environment().unwrap() else { return };
    let world = invitation.accept(Arc::new(FlatPlan)).unwrap();
    let mut seed = [seed_of_run()];
    world.process_at_rank(0).broadcast_into(&mut seed).unwrap();
    Rank::new(&world, seed[0]).run(calls_of_run());
    world.barrier().unwrap();
}

#[test]
fn processes_bring_what_was_sent() {
    let seed = seed_of_run();
    for (turn, rules) in RULES.into_iter().enumerate() {
        let job = Job::create(&spec(2, rules)).unwrap();
        let start = |rank| {
            let fd = job.descriptor().try_clone_to_owned().unwrap();
            fcntl(&fd, FcntlArg::F_SETFD(FdFlag::empty())).unwrap();
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["--exact", "process", "--ignored", "--nocapture", "-q"]);
            command.env("PHALANX_TEST_SEED", seed.wrapping_add(turn as u64).to_string());
            command.envs(job.environment(rank, fd.as_raw_fd())).spawn().unwrap()
        };
        let mut children: Vec<Child> = (0..2).map(start).collect();
        let end = Instant::now() + Duration::from_secs(120 + calls_of_run() as u64 / 10);
        while children.iter_mut().any(|child| child.try_wait().unwrap().is_none()) {
            let failed =
                children.iter_mut().any(|child| child.try_wait().unwrap().is_some_and(|ended| !ended.success()));
            if failed || Instant::now() > end {
                children.iter_mut().for_each(|child| child.kill().unwrap());
                panic!("{rules}: failed: {failed}, or too late");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(children.into_iter().all(|mut child| child.wait().unwrap().success()), "{rules}");
    }
}
