//! The command line.

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use shm_core::Tuning;

use crate::across::options::{Across, AcrossRank};
use crate::across::simulate::Simulate;
use crate::allreduce::options::AllReduce;
use crate::commtest::options::{CommTest, CommTestRank};
use crate::floor::process;
use crate::kernels::Kernels;
use crate::node_simulation::options::SimulateNode;
use crate::plan::{BufferMode, ElementType, Late, Operation};
use crate::rank;
use crate::report_page::Report;
use crate::reproduce::options::Reproduce;
use crate::runs::Binding;
use crate::runs::baseline::{ALL, Wanted};
use crate::runs::peers::SettingsWish;
use crate::sizes::{parse_ranks, parse_size};
use crate::steps::options::Steps;

/// Times the collectives between the processes of this machine, beside the machine's floor and
/// beside an MPI. Tables go to standard output, progress to standard error, and the figures with
/// their plots into a record folder.
#[derive(Debug, Parser)]
#[command(name = "bench", version)]
pub struct Cli {
    /// What is done
    #[command(subcommand)]
    pub command: Command,
}

/// What is done.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Barrier, broadcast, reduce and allreduce over message sizes; answers are checked first
    Collectives(Box<Collectives>),
    /// What the bare machine takes: line exchange, flat flags, pthread barrier, copy and add
    Floor(Floor),
    /// Bytes loaded and stored, counted, beside the formulas; no times
    Bytes(Bytes),
    /// How fast the operators fold on one core, by element type and number of operands
    Kernels(Kernels),
    /// Collectives across the hosts of an emulated cluster, beside those of the MPI below
    Across(Box<Across>),
    /// Schedules of allreduce on described clusters, simulated
    Simulate(Simulate),
    /// The collectives of one node on machines that are not here: protocols under a cost model
    SimulateNode(SimulateNode),
    /// The allreduce from one element to millions, by every algorithm and schedule (Worley's ALLREDUCE)
    #[command(name = "allreduce")]
    AllReduce(Box<AllReduce>),
    /// One volume exchanged in ever more packets, by all ways of sending and receiving (Worley's COMMTEST)
    #[command(name = "commtest")]
    CommTest(Box<CommTest>),
    /// One rank of it
    #[command(hide = true, name = "commtest-rank")]
    CommTestRank(Box<CommTestRank>),
    /// The experiments of the papers, repeated, with their findings beside ours
    Reproduce {
        /// Which one
        #[command(subcommand)]
        study: Box<Reproduce>,
    },
    /// Whole steps of application patterns on MPIs, with the drop-in library in front of them and without
    Steps(Box<Steps>),
    /// Gathers records into one page of HTML
    Report(Report),
    /// One rank of a job that mpirun started (a build with the feature `mpi`)
    #[command(hide = true)]
    AcrossRank(Box<AcrossRank>),
    /// One rank of a run
    #[command(hide = true)]
    Rank(rank::Spec),
    /// One process of the floor
    #[command(hide = true)]
    FloorProcess(process::Spec),
    /// A program that gets SIGTERM when its parent ends
    #[command(hide = true)]
    Tethered {
        /// The parent
        parent: u32,
        /// The program and its arguments
        #[arg(last = true, required = true)]
        program: Vec<PathBuf>,
    },
}

/// Options of `bench collectives`.
#[derive(Clone, Debug, Args)]
pub struct Collectives {
    /// Rank counts, for example 2,8 [default: as many as usable cores; beside several baselines 8 as well;
    /// with --quick 2,8]
    #[arg(short = 'n', long, value_delimiter = ',', value_parser = parse_ranks)]
    pub ranks: Vec<usize>,
    /// Only these collectives: barrier, broadcast, reduce, allreduce; and, which are left out where none is named,
    /// gather, scatter, allgather, alltoall, reduce-scatter, scan, and empty, a call that does nothing. Sizes are those
    /// of a block
    #[arg(long, alias = "collective", value_delimiter = ',')]
    pub collectives: Vec<Operation>,
    /// Smallest message
    #[arg(long, default_value = "0", value_parser = parse_size)]
    pub min: u64,
    /// Largest message
    #[arg(long, default_value = "8M", value_parser = parse_size)]
    pub max: u64,
    /// Exactly these sizes, for example 8,4K,1M [default: 0 and powers of two; with --quick, or with more ranks than
    /// cores beside several baselines, steps of eight; else beside several baselines 8 and powers of four from 64 on]
    #[arg(long, value_delimiter = ',', value_parser = parse_size, conflicts_with_all = ["min", "max"])]
    pub sizes: Vec<u64>,
    /// Buffers: warm (the same, untouched), rewritten (input written anew before each call), cold (a set larger than
    /// the last-level cache takes turns), shared (rewritten, in the job's shared memory; beside an MPI's rewritten
    /// ones), view (the same, and an allreduce's result is read where it lies), or all [default: warm,rewritten,cold;
    /// with --quick warm,rewritten; beside several baselines warm,rewritten,shared,view]
    #[arg(long, value_delimiter = ',', value_parser = parse_buffers)]
    pub buffers: Vec<Buffers>,
    /// Element type; sums below its size use the half type
    #[arg(long = "type", default_value = "f64")]
    pub element: ElementType,
    /// Root of broadcast and reduce
    #[arg(long, default_value_t = 0)]
    pub root: usize,
    /// Where ranks are bound
    #[arg(long, value_enum, default_value = "auto")]
    pub bind: Binding,
    /// How calls are timed. stream: back to back; each: a common start before each, timed alone; auto:
    /// stream for warm buffers, each for others (rewritten buffers are always timed alone)
    #[arg(long, value_enum, default_value = "auto")]
    pub timing: TimingWish,
    /// Makes a rank late to each call; implies --timing each
    #[arg(long, value_name = "RANK:MICROSECONDS", value_delimiter = ',')]
    pub late: Vec<Late>,
    /// A call's time lasts until each rank has loaded all of the result that it has from it, ours and the baselines'
    /// alike; each is timed alone
    #[arg(long)]
    pub reads: bool,
    /// The same, from before each rank writes its input anew: what a step of an application takes that does no more; of
    /// calls whose input is written anew (buffers rewritten, shared, view)
    #[arg(long, conflicts_with_all = ["reads", "late"])]
    pub steps: bool,
    /// The short form: few sizes, two rank counts, short tables, about a minute
    #[arg(long, visible_alias = "short")]
    pub quick: bool,
    /// Times so many calls in one block, the first of a new process for each turn and case, but for three that are
    /// checked; so no case finds anything that an earlier one has learnt
    #[arg(long, value_name = "CALLS", value_parser = parse_calls, conflicts_with_all = ["time_per_size", "repetitions"])]
    pub calls: Option<NonZeroU64>,
    /// Milliseconds of timed calls for each size and collective, over all turns [default: 400;
    /// with --quick 250, beside several baselines 240]
    #[arg(long, value_name = "MS")]
    pub time_per_size: Option<u64>,
    /// How often the runs of ours and of each baseline take turns [default: 2; beside several baselines 3]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub turns: Option<u32>,
    /// Repetitions (blocks of calls) in each turn
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repetitions: u32,
    /// An MPI to run beside ours: openmpi, mpich (of the system), openmpi5, mpich5, impi (of scripts/peers),
    /// NAME=FOLDER of its mpicc and mpirun, or all: every known one that is here
    #[arg(long, value_delimiter = ',')]
    pub baseline: Vec<Wanted>,
    /// The settings of baselines: best (several series where several are best somewhere), stock (as they come), both
    #[arg(long, value_enum, default_value = "both")]
    pub settings: SettingsWish,
    /// The folder that scripts/peers has filled
    #[arg(long, value_name = "DIR", default_value = "target/peers")]
    pub peers: PathBuf,
    /// The compiler wrapper of the baseline, where it is not in the path
    #[arg(long, requires = "baseline")]
    pub mpicc: Option<PathBuf>,
    /// The launcher of the baseline, where it is not in the path
    #[arg(long, requires = "baseline")]
    pub mpirun: Option<PathBuf>,
    /// A further option for the baseline's launcher (repeatable)
    #[arg(long, requires = "baseline", allow_hyphen_values = true)]
    pub mpirun_option: Vec<String>,
    /// Forces an algorithm, as PHALANX_ALGORITHM does
    #[arg(long, value_parser = parse_algorithm)]
    pub algorithm: Option<String>,
    /// Runs ours once more with an algorithm forced, in turns, as a series of its own beside ours and the baselines;
    /// for example strict (repeatable)
    #[arg(long, value_name = "ALGORITHM", value_parser = parse_algorithm)]
    pub beside: Vec<String>,
    /// Leaves out the comparison with the machine's floor
    #[arg(long)]
    pub no_floor: bool,
    /// Seconds after which a run of ranks is stopped
    #[arg(long, default_value_t = 900, value_parser = clap::value_parser!(u64).range(1..))]
    pub timeout: u64,
    /// Where the record goes
    #[command(flatten)]
    pub record: RecordWish,
}

/// Where the record goes.
#[derive(Clone, Debug, Args)]
pub struct RecordWish {
    /// Folder in which the record folder is made
    #[arg(long = "record", value_name = "DIR", default_value = "records")]
    pub folder: PathBuf,
    /// Last part of the record folder's name
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Writes no record
    #[arg(long)]
    pub no_record: bool,
}

/// How calls shall be timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum TimingWish {
    /// By the buffers.
    Auto,
    /// Back to back.
    Stream,
    /// Each alone, after a common start.
    Each,
}

/// One word of `--buffers`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffers {
    /// This mode.
    One(BufferMode),
    /// Every mode.
    All,
}

/// The rules of an algorithm as they stand, if they are understood.
fn parse_algorithm(text: &str) -> Result<String, String> {
    match Tuning::default().force(text) {
        Ok(()) => Ok(text.to_owned()),
        Err(shm_core::Error::Environment { why, .. }) => Err(why),
        Err(error) => Err(error.to_string()),
    }
}

fn parse_calls(text: &str) -> Result<NonZeroU64, String> {
    match text.trim().parse::<u64>().map(NonZeroU64::new) {
        Ok(Some(calls)) => Ok(calls),
        Ok(None) => Err("a block has at least 1 call".into()),
        Err(_) => Err(format!("'{text}' is no number of calls: write for example 100")),
    }
}

fn parse_buffers(text: &str) -> Result<Buffers, String> {
    match text {
        "all" => Ok(Buffers::All),
        other => other.parse().map(Buffers::One).map_err(|error| format!("{error}, all")),
    }
}

/// Options of `bench floor`.
#[derive(Clone, Debug, Args)]
pub struct Floor {
    /// Process counts for flags and barriers
    #[arg(short = 'n', long, alias = "ranks", value_delimiter = ',', value_parser = parse_ranks, default_value = "2,4,8,16")]
    pub ranks: Vec<usize>,
    /// Binds processes to cores in turn where they outnumber the cores; otherwise the kernel places them
    #[arg(long)]
    pub bind: bool,
    /// How often the whole is gone through
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub turns: u32,
    /// Repetitions (blocks) of each figure in a turn
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repetitions: u32,
    /// Milliseconds of a block
    #[arg(long, default_value_t = 20)]
    pub block: u64,
    /// Where the record goes
    #[command(flatten)]
    pub record: RecordWish,
}

/// Options of `bench bytes`.
#[derive(Clone, Debug, Args)]
pub struct Bytes {
    /// Rank counts, from 2 on [default: 2 to 16]
    #[arg(short = 'n', long, value_delimiter = ',', value_parser = parse_ranks)]
    pub ranks: Vec<usize>,
    /// Message bytes
    #[arg(long, default_value = "1M", value_parser = parse_size)]
    pub size: u64,
    /// The regime that is forced; shares has no broadcast, exchange nothing but allreduce, and direct is shares (a
    /// broadcast: cells) with all buffers in shared memory; blocks is gather, scatter, allgather, alltoall,
    /// reduce-scatter and scan
    #[arg(long, default_value = "cells", value_parser = ["cells", "shares", "exchange", "direct", "blocks"])]
    pub regime: String,
}

impl Collectives {
    /// The buffer modes that are asked for, in the order in which they are shown.
    pub fn buffer_modes(&self) -> Vec<BufferMode> {
        let asked = |mode: &BufferMode| {
            if self.buffers.is_empty() {
                return match mode {
                    BufferMode::Rewritten | BufferMode::Warm => true,
                    BufferMode::Cold => !self.quick && !self.compares(),
                    BufferMode::Shared | BufferMode::View => self.compares(),
                };
            }
            self.buffers.iter().any(|word| *word == Buffers::All || *word == Buffers::One(*mode))
        };
        BufferMode::ALL.iter().copied().filter(asked).collect()
    }

    /// Whether several MPIs stand beside ours.
    pub fn compares(&self) -> bool {
        self.baseline.len() > 1 || self.baseline.iter().any(|wanted| wanted.name == ALL)
    }

    /// How often ours and each baseline take turns.
    pub fn turns(&self) -> u32 {
        self.turns.unwrap_or(if self.compares() { 3 } else { 2 })
    }

    /// How long one block lasts.
    pub fn block(&self) -> Duration {
        let usual = match (self.compares(), self.quick) {
            (true, _) => 240,
            (false, true) => 250,
            (false, false) => 400,
        };
        let all = Duration::from_millis(self.time_per_size.unwrap_or(usual).max(1));
        all / (self.turns() * self.repetitions).max(1)
    }
}

#[cfg(test)]
mod tests;
