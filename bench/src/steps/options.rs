//! Options of `bench steps`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::command::RecordWish;
use crate::runs::baseline::Wanted;
use crate::sizes::parse_ranks;

/// Options of `bench steps`.
#[derive(Clone, Debug, Args)]
pub struct Steps {
    /// Rank counts, for example 2,8: bound to cores where there are enough of them, otherwise not bound
    /// [default: 2,8; with --quick 2]
    #[arg(short = 'n', long, value_delimiter = ',', value_parser = parse_ranks)]
    pub ranks: Vec<usize>,
    /// Only these patterns, as NAME or NAME:ARGUMENT, for example cg,gradients:64K; --list explains them
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub patterns: Vec<String>,
    /// Lists the patterns with their arguments, and measures nothing
    #[arg(long)]
    pub list: bool,
    /// The library that is loaded in front of the MPI, and that scripts/dropin builds
    #[arg(long, value_name = "FILE", default_value = "target/dropin/libphalanx_mpi.so")]
    pub library: PathBuf,
    /// The MPIs: openmpi, mpich (of the system), openmpi5, mpich5, impi (of scripts/peers), NAME=FOLDER of its mpicc and
    /// mpirun, or all: every known one that is here
    #[arg(long, value_delimiter = ',', default_value = "all")]
    pub baseline: Vec<Wanted>,
    /// The folder that scripts/peers has filled
    #[arg(long, value_name = "DIR", default_value = "target/peers")]
    pub peers: PathBuf,
    /// How often jobs with the library and without take turns, another one first each time [default: 4; with --quick 2]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub turns: Option<u32>,
    /// Milliseconds of timed steps for each row, with the library and as many without, over all turns [default: 1200;
    /// with --quick 200]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..))]
    pub time_per_row: Option<u64>,
    /// The short form: two ranks, each pattern with one argument; one to two minutes for each MPI
    #[arg(long, visible_alias = "short")]
    pub quick: bool,
    /// Seconds after which a job is stopped, with all its ranks
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    pub timeout: u64,
    /// Where the record goes
    #[command(flatten)]
    pub record: RecordWish,
}

impl Steps {
    /// The rank counts.
    pub fn rank_counts(&self) -> Vec<usize> {
        match (self.ranks.as_slice(), self.quick) {
            ([], true) => vec![2],
            ([], false) => vec![2, 8],
            (given, _) => given.to_vec(),
        }
    }

    /// How often jobs with the library and without take turns.
    pub fn turns(&self) -> u32 {
        self.turns.unwrap_or(if self.quick { 2 } else { 4 })
    }

    /// How long the timed steps of one job last.
    pub fn time(&self) -> Duration {
        let all = self.time_per_row.unwrap_or(if self.quick { 200 } else { 1200 });
        Duration::from_millis(all) / self.turns()
    }

    /// When a job is stopped.
    pub fn limit(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }
}
