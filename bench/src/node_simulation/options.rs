//! The options of `bench simulate-node`.

use std::path::PathBuf;

use clap::Args;

use super::places::Placement;
use crate::plan::Operation;
use crate::sizes::{parse_ranks, parse_size};

/// Options of `bench simulate-node`.
#[derive(Clone, Debug, Args)]
pub struct SimulateNode {
    /// Machines: vm-2, xeon-2x20, epyc-2x64, or files of the same form [default: xeon-2x20,epyc-2x64]
    #[arg(long, value_delimiter = ',')]
    pub machines: Vec<String>,
    /// Rank counts [default: 2, 8, a socket full, the machine full]
    #[arg(short = 'n', long, value_delimiter = ',', value_parser = parse_ranks)]
    pub ranks: Vec<usize>,
    /// Message bytes
    #[arg(long, value_delimiter = ',', default_value = "8,64,512,4K,32K,256K,1M,4M", value_parser = parse_size)]
    pub sizes: Vec<u64>,
    /// Only these collectives: barrier, broadcast, reduce, allreduce
    #[arg(long, value_delimiter = ',')]
    pub collectives: Vec<Operation>,
    /// Which rank sits where: block (socket after socket), spread (as many on each socket, in blocks), cyclic (sockets
    /// in turn) [default: spread; for trees spread and cyclic]
    #[arg(long, value_delimiter = ',')]
    pub placement: Vec<Placement>,
    /// A further algorithm: rules as PHALANX_ALGORITHM takes them (repeatable); with --against, what the table is
    /// changed by
    #[arg(long, value_name = "RULES")]
    pub algorithm: Vec<String>,
    /// Further trees: rules as PHALANX_TREES takes them, through cells (repeatable); with --against, the trees of all
    /// rows
    #[arg(long, value_name = "RULES")]
    pub trees: Vec<String>,
    /// Compares trees that know sockets with trees that do not, as in the study of Jain et al. (SC18), instead of
    /// algorithms
    #[arg(long)]
    pub aware: bool,
    /// With --aware: how far the paper's gain moves when each assumed or derived figure is so many times more, or less
    #[arg(long, value_name = "FACTOR", requires = "aware")]
    pub vary: Option<f64>,
    /// The results.json of a record of `bench collectives`: simulates its rows, and shows simulated / measured
    #[arg(long, value_name = "FILE", conflicts_with = "aware")]
    pub against: Option<PathBuf>,
    /// With --against: only turns in which the cores were near each other, or far apart, as the record has it
    #[arg(long, value_parser = ["near", "far"], requires = "against")]
    pub cores: Option<String>,
    /// Writes the tables' figures as a plot
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Prints every figure of the machines, with its source
    #[arg(long)]
    pub figures: bool,
}
