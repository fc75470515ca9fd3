//! One process of the floor: ties itself to its parent, meets the others, looks at the cores, times its blocks.

use std::io::stdin;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::thread::yield_now;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::Kind;
use super::bandwidth::Buffers;
use super::moves::{self, Moves};
use super::rounds::Rounds;
use crate::clock::nanoseconds_since;
use crate::error::Result;
use crate::gate::look::Look;
use crate::gate::{Each, Elapsed, Gate, now};
use crate::machine::bind_to;
use crate::mapping::Mapping;
use crate::rank::measure::CALIBRATING_RUNS;
use crate::rank::{SETTLE, SETTLE_CALLS};
use crate::samples::Sheet;
use crate::tether::tie_to;

/// What one process of the floor is told on its command line.
#[derive(Clone, Debug, clap::Args)]
pub struct Spec {
    /// What is done
    #[arg(long)]
    pub kind: Kind,
    /// Which process this is
    #[arg(long)]
    pub rank: usize,
    /// How many processes there are
    #[arg(long)]
    pub ranks: usize,
    /// The core to bind to
    #[arg(long)]
    pub core: Option<usize>,
    /// Bytes of each buffer
    #[arg(long)]
    pub bytes: usize,
    /// Blocks to time
    #[arg(long)]
    pub blocks: usize,
    /// Nanoseconds of a block
    #[arg(long)]
    pub block: u64,
    /// The process to end with
    #[arg(long)]
    pub parent: u32,
    /// Where the samples go
    #[arg(long)]
    pub results: std::path::PathBuf,
}

/// The mapping's first line, where the processes meet outside of what is timed.
struct Meeting<'a> {
    mapping: &'a Mapping,
    ranks: u64,
    times: u64,
}

impl Meeting<'_> {
    /// Waits until all processes are here.
    fn wait(&mut self) {
        self.times += 1;
        let arrived = &self.mapping.lines()[0].words[0];
        arrived.fetch_add(1, AcqRel);
        while arrived.load(Acquire) < self.times * self.ranks {
            yield_now();
        }
    }

    /// Gives everybody the value of process 0.
    fn agree(&mut self, rank: usize, value: u64) -> u64 {
        let place = &self.mapping.lines()[0].words[1];
        if rank == 0 {
            place.store(value, Release);
        }
        self.wait();
        let agreed = place.load(Acquire);
        self.wait();
        agreed
    }
}

/// Runs one process of the floor to its end. Its standard input is the shared mapping's file.
pub fn run(spec: &Spec) -> Result<()> {
    tie_to(spec.parent, Signal::SIGKILL)?;
    if let Some(core) = spec.core {
        bind_to(core)?;
    }
    let mapping = Mapping::of(stdin(), moves::lines(spec.kind, spec.bytes))?;
    let mut gate = Gate::open(&spec.results, spec.rank, spec.ranks)?;
    let mut rounds = Rounds::new(&mapping, spec.rank, spec.ranks);
    let mut buffers = Buffers::new(if spec.kind.is_move() { 0 } else { spec.bytes });
    let mut of = |rounds: &mut dyn FnMut(&mut Gate, u64) -> Elapsed| blocks(spec, &mapping, &mut gate, rounds);
    let timed = match spec.kind {
        Kind::Exchange => of(&mut together(|| rounds.exchange())),
        Kind::ExchangeAlone => of(&mut alone(|| rounds.exchange())),
        Kind::LineAlone => of(&mut alone(|| rounds.hand_over())),
        Kind::FlagBarrier => of(&mut together(|| rounds.flag_barrier())),
        Kind::FlagAllreduce => of(&mut together(|| rounds.flag_allreduce())),
        Kind::ThreadBarrier => of(&mut together(|| rounds.thread_barrier())),
        Kind::Copy => of(&mut together(|| buffers.copy())),
        Kind::Add => of(&mut together(|| buffers.add())),
        _ => {
            let mut moves = Moves::new(spec.kind, &mapping, spec.rank, spec.bytes);
            of(&mut |gate, rounds| {
                let mut each = Each::default();
                for _ in 0..rounds {
                    let took = moves.round(|| each.begin(gate));
                    each.took(took);
                }
                assert!(moves.is_right(), "a wrong result of {}", spec.kind);
                each.end(gate)
            })
        }
    };
    write(spec, &timed)
}

/// What one process timed.
struct Timed {
    /// Rounds in a block.
    iterations: u64,
    /// Nanoseconds a round, by block: this process's, and the slowest one's.
    blocks: Vec<[f64; 2]>,
    /// How the cores looked before each block and after the last; empty where nobody looked.
    looks: Vec<Look>,
}

/// Rounds that are timed together.
fn together(mut round: impl FnMut()) -> impl FnMut(&mut Gate, u64) -> Elapsed {
    move |gate, rounds| {
        let start = Instant::now();
        (0..rounds).for_each(|_| round());
        gate.stretch(nanoseconds_since(start) as u64)
    }
}

/// Rounds that are timed one by one, each after a common start.
fn alone(mut round: impl FnMut()) -> impl FnMut(&mut Gate, u64) -> Elapsed {
    move |gate, rounds| {
        let mut each = Each::default();
        for _ in 0..rounds {
            let start = each.begin(gate);
            round();
            each.took(now() - start);
        }
        each.end(gate)
    }
}

/// Finds how many rounds fill a block, then times the blocks. `timed` makes so many rounds, and says what they took.
fn blocks(spec: &Spec, mapping: &Mapping, gate: &mut Gate, timed: &mut dyn FnMut(&mut Gate, u64) -> Elapsed) -> Timed {
    let mut meeting = Meeting { mapping, ranks: spec.ranks as u64, times: 0 };
    let mut time = |gate: &mut Gate, meeting: &mut Meeting<'_>, rounds: u64| {
        meeting.wait();
        timed(gate, rounds)
    };
    let start = Instant::now();
    while meeting.agree(spec.rank, u64::from(start.elapsed() < SETTLE)) != 0 {
        time(gate, &mut meeting, 1);
        (0..SETTLE_CALLS).for_each(|_| meeting.wait());
    }
    let block = Duration::from_nanos(spec.block).as_nanos() as f64;
    let mut tried = 1u64;
    let iterations = loop {
        // Whatever meets a single short run would stand for all rounds.
        let runs = (0..CALIBRATING_RUNS).map(|_| time(gate, &mut meeting, tried).own as f64);
        let elapsed = runs.fold(f64::INFINITY, f64::min);
        let full = if elapsed >= block / 4.0 { (tried as f64 * block / elapsed).clamp(1.0, 1e9) as u64 } else { 0 };
        match meeting.agree(spec.rank, full) {
            0 => tried *= 2,
            agreed => break agreed,
        }
    };
    let (mut blocks, mut looks) = (Vec::new(), Vec::new());
    for _ in 0..spec.blocks {
        looks.extend(gate.look());
        blocks.push(time(gate, &mut meeting, iterations).of_each(iterations));
    }
    looks.extend(gate.look());
    Timed { iterations, blocks, looks }
}

fn write(spec: &Spec, timed: &Timed) -> Result<()> {
    let mut sheet = Sheet::create(&spec.results, spec.rank, spec.ranks)?;
    sheet.times(0, timed.iterations, &timed.blocks)?;
    sheet.looks(0, &timed.looks)?;
    sheet.end()
}
