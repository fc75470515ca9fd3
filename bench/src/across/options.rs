//! The options of `bench across` and `bench across-rank`.

use std::path::PathBuf;

use clap::{Args, FromArgMatches};

use super::bound::Rate;
use super::program::Library;
use super::series::Series;
use crate::command::RecordWish;
use crate::error::Error;
use crate::plan::Operation;
use crate::sizes::{parse_count, parse_size};

/// What ranks do in every run of them.
#[derive(Clone, Debug, Args)]
pub struct Work {
    /// The collective: allreduce or broadcast (from rank 0)
    #[arg(long, default_value = "allreduce", value_parser = parse_operation)]
    pub collective: Operation,
    /// Message bytes
    #[arg(long, value_delimiter = ',', default_value = "32K,256K,1M,4M", value_parser = parse_size)]
    pub sizes: Vec<u64>,
    /// Timed calls of each series and size
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub calls: u32,
    /// A series (repeatable): ours; native (the library's own); flat (a ring of all ranks, nodes ignored);
    /// smp-binomial, smp-butterfly (one leader a node); rabenseifner-near, rabenseifner-far (all ranks); NAME=RULES, or
    /// RULES as in PHALANX_CLUSTER: allreduce:ring,leaders=2,slice=64K; NAME@flat=RULES, every rank a node of its own;
    /// NAME@unordered=RULES, nodes in the order of their first ranks [default: all that have a name]
    #[arg(long = "series", value_name = "SERIES")]
    pub series: Vec<Series>,
    /// Further rules to measure, beside the series (repeatable)
    #[arg(long, value_name = "RULES")]
    pub rules: Vec<Series>,
    /// Also streams messages of these bytes from host to host, by 1, 2, 4, .. ranks of each host at once: messages a
    /// second
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = parse_size)]
    pub message_rates: Vec<u64>,
    /// Does not stream from host to host to find what a link carries
    #[arg(long)]
    pub no_goodput: bool,
}

/// Options of `bench across`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
On a real cluster, build the program of ranks there and start it by the MPI's own launcher (`bench across-rank --help`):
  MPICC=mpicc cargo build --release -p bench --features mpi
  mpirun -n 64 target/release/bench across-rank --sizes 32K,1M,16M --json times.json")]
pub struct Across {
    /// Hosts of the emulated cluster
    #[arg(long, default_value_t = 8, value_parser = parse_count)]
    pub hosts: usize,
    /// Ranks on each host
    #[arg(long, default_value_t = 1, value_parser = parse_count)]
    pub slots: usize,
    /// Hosts on each switch [default: all on one]
    #[arg(long, value_parser = parse_count)]
    pub per_switch: Option<usize>,
    /// Rate of host links, each way; 0 for no limit
    #[arg(long, default_value = "100mbit")]
    pub rate: Rate,
    /// Rate of the trunks between switches, each way [default: that of --rate]
    #[arg(long)]
    pub trunk_rate: Option<Rate>,
    /// Where ranks are: block, round-robin or random:SEED
    #[arg(long, default_value = "block")]
    pub placement: String,
    /// Whose launcher and messages: openmpi, mpich
    #[arg(long, value_delimiter = ',', default_value = "openmpi")]
    pub mpi: Vec<Library>,
    /// Only with messages of all sizes sent at once, without asking the receiver
    #[arg(long, conflicts_with = "stock")]
    pub eager: bool,
    /// Only with the library's own settings [default: these, then --eager]
    #[arg(long)]
    pub stock: bool,
    /// Runs again with Open MPI's coll/han in place of its usual collectives
    #[arg(long)]
    pub han: bool,
    /// Runs again with each of the library's own algorithms for allreduces forced
    #[arg(long)]
    pub forced: bool,
    /// What ranks do
    #[command(flatten)]
    pub work: Work,
    /// Seconds after which a run is stopped
    #[arg(long, default_value_t = 900, value_parser = clap::value_parser!(u64).range(1..))]
    pub timeout: u64,
    /// The script that makes clusters [default: scripts/cluster/run of the repository]
    #[arg(long, value_name = "PATH")]
    pub cluster: Option<PathBuf>,
    /// The program of ranks, instead of one built by cargo; for one --mpi
    #[arg(long, value_name = "PATH")]
    pub program: Option<PathBuf>,
    /// Where the record goes
    #[command(flatten)]
    pub record: RecordWish,
}

impl Across {
    /// The options of a command line without a word.
    ///
    /// # Errors
    ///
    /// [`Error::Usage`] where such a line is refused: never.
    pub fn usual() -> Result<Across, Error> {
        let refused = |error: clap::Error| Error::Usage(error.to_string());
        let command = Across::augment_args(clap::Command::new("across"));
        let matches = command.try_get_matches_from(["across"]).map_err(refused)?;
        Across::from_arg_matches(&matches).map_err(refused)
    }
}

/// Options of `bench across-rank`.
#[derive(Clone, Debug, Args)]
#[command(
    about = "One rank of an MPI job: measures collectives across its nodes, beside the library's own",
    after_help = "\
mpirun starts it, on every rank with the same options; rank 0 prints a table, or writes what it measured with --json.
  MPICC=mpicc cargo build --release -p bench --features mpi
  mpirun -n 64 target/release/bench across-rank --sizes 32K,1M,16M --rules allreduce:ring,leaders=4,slice=256K
PHALANX_TOPOLOGY=FILE (Slurm's topology.conf) puts `ours` and --rules in an order that goes round the switches."
)]
pub struct AcrossRank {
    /// What ranks do
    #[command(flatten)]
    pub work: Work,
    /// How many ranks there must be: a program built for another MPI than mpirun's finds itself alone
    #[arg(long)]
    pub ranks: Option<usize>,
    /// Where rank 0 writes what was measured
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

fn parse_operation(text: &str) -> Result<Operation, String> {
    match text.parse()? {
        operation @ (Operation::Allreduce | Operation::Broadcast) => Ok(operation),
        other => Err(format!("{other} is not measured across nodes: allreduce or broadcast")),
    }
}
