//! One process of the floor: ties itself to its parent, meets the others, times its blocks.

use std::io::stdin;
use std::path::Path;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::thread::yield_now;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::Kind;
use super::bandwidth::Buffers;
use super::rounds::{LINES, Rounds};
use crate::clock::nanoseconds_since;
use crate::error::Result;
use crate::machine::bind_to;
use crate::mapping::Mapping;
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
    let mapping = Mapping::of(stdin(), LINES)?;
    let mut rounds = Rounds::new(&mapping, spec.rank, spec.ranks);
    let mut buffers = Buffers::new(spec.bytes);
    let times = match spec.kind {
        Kind::Exchange => blocks(spec, &mapping, || rounds.exchange()),
        Kind::FlagBarrier => blocks(spec, &mapping, || rounds.flag_barrier()),
        Kind::FlagAllreduce => blocks(spec, &mapping, || rounds.flag_allreduce()),
        Kind::ThreadBarrier => blocks(spec, &mapping, || rounds.thread_barrier()),
        Kind::Copy => blocks(spec, &mapping, || buffers.copy()),
        Kind::Add => blocks(spec, &mapping, || buffers.add()),
    };
    write(spec, &spec.results, &times)
}

/// Finds how many rounds fill a block, then times the blocks; nanoseconds a round.
fn blocks(spec: &Spec, mapping: &Mapping, mut round: impl FnMut()) -> (u64, Vec<f64>) {
    let mut meeting = Meeting { mapping, ranks: spec.ranks as u64, times: 0 };
    let mut time = |meeting: &mut Meeting<'_>, rounds: u64| {
        meeting.wait();
        let start = Instant::now();
        for _ in 0..rounds {
            round();
        }
        nanoseconds_since(start)
    };
    let start = Instant::now();
    while meeting.agree(spec.rank, u64::from(start.elapsed() < SETTLE)) != 0 {
        time(&mut meeting, 1);
        (0..SETTLE_CALLS).for_each(|_| meeting.wait());
    }
    let block = Duration::from_nanos(spec.block).as_nanos() as f64;
    let mut tried = 1u64;
    let iterations = loop {
        let elapsed = time(&mut meeting, tried);
        let full = if elapsed >= block / 4.0 { (tried as f64 * block / elapsed).clamp(1.0, 1e9) as u64 } else { 0 };
        match meeting.agree(spec.rank, full) {
            0 => tried *= 2,
            agreed => break agreed,
        }
    };
    let samples = (0..spec.blocks).map(|_| time(&mut meeting, iterations) / iterations as f64).collect();
    (iterations, samples)
}

fn write(spec: &Spec, folder: &Path, (iterations, samples): &(u64, Vec<f64>)) -> Result<()> {
    let mut sheet = Sheet::create(folder, spec.rank, spec.ranks)?;
    sheet.times(0, *iterations, samples)?;
    sheet.end()
}
