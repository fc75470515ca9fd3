//! The options of `bench allreduce`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::series::{Algorithm, schedules};
use crate::across::bound::Rate;
use crate::across::options::Across;
use crate::across::program::Library;
use crate::across::series::Series;
use crate::error::{Error, Result};
use crate::machine::usable_cores;
use crate::plan::{Combine, ElementType};
use crate::runs::baseline::Wanted;
use crate::sizes::{parse_count, parse_from, parse_ranks, parse_size};
use crate::study::{Description, StudyOptions};

/// What the study repeats.
pub const DESCRIPTION: Description = Description {
    name: "allreduce",
    paper: "P. H. Worley, ALLREDUCE, a message-passing benchmark code; Performance Studies, Oak Ridge National Laboratory, 1996-2002",
    did: &[
        "The time of the allreduce is measured for very short vectors, as in the inner products of conjugate gradients, where start-up costs \
         dominate, and for very long ones, as in spectral transforms, where bandwidth does.",
        "Latency and bandwidth describe both ends.",
    ],
    differs: &[
        "Every algorithm of Phalanx's nodes (line, cells, exchange, shares, direct: shares on buffers in shared memory, view: the result read where it \
         lies), or with --hosts every schedule across nodes, stands beside the choice that is made unasked (auto, ours) and beside the \
         MPI library's own allreduce.",
        "The operators are the sum, the greatest, the least, and a sum by a function of the program's own, for auto and for the MPIs.",
        "The input is written anew before each call, a barrier comes before each call, and the slowest rank's time counts. Answers are checked \
         before and after.",
        "Latency and bandwidth are fitted over all lengths at once by least squares of relative errors, with the residual; break-even points \
         between any two series are told where times differ by more than a margin.",
        "Direct and view have buffers in shared memory, which no MPI has: the MPIs' are private in every series.",
    ],
};

/// Options of `bench allreduce`.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = DESCRIPTION.render(), after_help = "--help says what the paper did, and what differs here.")]
pub struct AllReduce {
    /// Elements of the shortest vector
    #[arg(long, default_value = "1", value_parser = parse_size)]
    pub from: u64,
    /// Elements of the longest one [default: 4M; on a cluster 128K; with --quick 64K, on a cluster 4K]
    #[arg(long, value_parser = parse_size)]
    pub to: Option<u64>,
    /// How many times longer the next one is [default: 4; with --quick 16]
    #[arg(long, value_parser = clap::value_parser!(u64).range(2..=1024))]
    pub step: Option<u64>,
    /// How often all series take turns [default: 5, on a cluster 3; with --quick 1]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub turns: Option<u32>,
    /// Times that differ by no more than so many percent break even
    #[arg(long, default_value = "5", value_parser = parse_percent)]
    pub margin: f64,
    /// Seconds after which a run of ranks is stopped
    #[arg(long, default_value_t = 900, value_parser = clap::value_parser!(u64).range(1..))]
    pub timeout: u64,
    /// On one node
    #[command(flatten)]
    pub node: OnNode,
    /// Across nodes
    #[command(flatten)]
    pub cluster: OnCluster,
    /// How long, and where the record goes
    #[command(flatten)]
    pub study: StudyOptions,
}

/// What is measured on one node.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "On one node")]
pub struct OnNode {
    /// Rank counts [default: as many as usable cores, two at least]
    #[arg(short = 'n', long, value_delimiter = ',', value_parser = parse_ranks, conflicts_with = "hosts")]
    pub ranks: Vec<usize>,
    /// Element type
    #[arg(long = "type", default_value = "f64", conflicts_with = "hosts")]
    pub element: ElementType,
    /// Algorithms (repeatable): auto, line, cells, exchange, shares, direct, view, or NAME=RULE as in
    /// PHALANX_ALGORITHM: two=allreduce:shares,leaders=2 [default: all that have a name]
    #[arg(long = "algorithm", conflicts_with = "hosts")]
    pub algorithms: Vec<Algorithm>,
    /// Operators: sum, max, min, user [default: all; with --quick sum,user]
    #[arg(long, value_delimiter = ',', conflicts_with = "hosts")]
    pub operators: Vec<Combine>,
    /// An MPI to stand beside ours, as in `bench collectives` [default: openmpi, where it is installed]
    #[arg(long, value_delimiter = ',', conflicts_with = "hosts")]
    pub baseline: Vec<Wanted>,
    /// No MPI
    #[arg(long, conflicts_with_all = ["baseline", "hosts"])]
    pub no_baseline: bool,
    /// The folder that scripts/peers has filled
    #[arg(long, value_name = "DIR", default_value = "target/peers")]
    pub peers: PathBuf,
    /// Milliseconds of timed calls for each series and length, over all turns [default: 240; with --quick 60]
    #[arg(long, value_name = "MS")]
    pub time_per_size: Option<u64>,
}

/// What is measured across nodes.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Across nodes")]
pub struct OnCluster {
    /// Hosts of an emulated cluster, on which ranks are instead
    #[arg(long, value_parser = parse_count)]
    pub hosts: Option<usize>,
    /// Ranks on each of these hosts
    #[arg(long, default_value_t = 1, requires = "hosts", value_parser = parse_count)]
    pub slots: usize,
    /// Hosts on each switch [default: all on one]
    #[arg(long, requires = "hosts", value_parser = parse_count)]
    pub per_switch: Option<usize>,
    /// Rate of host links, each way; 0 for no limit
    #[arg(long, default_value = "100mbit", requires = "hosts")]
    pub rate: Rate,
    /// Rate of the trunks between switches, each way [default: that of --rate]
    #[arg(long, requires = "hosts")]
    pub trunk_rate: Option<Rate>,
    /// Where ranks are: block, round-robin or random:SEED
    #[arg(long, default_value = "block", requires = "hosts")]
    pub placement: String,
    /// Whose launcher and messages: openmpi, mpich
    #[arg(long, value_delimiter = ',', default_value = "openmpi", requires = "hosts")]
    pub mpi: Vec<Library>,
    /// Messages of all sizes are sent at once, without asking the receiver
    #[arg(long, requires = "hosts")]
    pub eager: bool,
    /// A schedule (repeatable), as a series of `bench across` [default: ours, native, all ranks in a ring, and every
    /// schedule among one leader a node]
    #[arg(long = "schedule", requires = "hosts")]
    pub schedules: Vec<Series>,
    /// Timed calls of each schedule and length, over all turns [default: 9; with --quick 3]
    #[arg(long, requires = "hosts", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub calls: Option<u32>,
    /// The script that makes clusters [default: scripts/cluster/run of the repository]
    #[arg(long, value_name = "PATH")]
    pub cluster: Option<PathBuf>,
    /// The program of ranks, instead of one built by cargo; for one --mpi
    #[arg(long, value_name = "PATH", requires = "hosts")]
    pub program: Option<PathBuf>,
}

impl AllReduce {
    /// Message bytes, ascending.
    ///
    /// # Errors
    ///
    /// [`Error::Usage`] for no length at all.
    pub fn sizes(&self) -> Result<Vec<u64>> {
        let across = self.cluster.hosts.is_some();
        let usual = match (across, self.study.quick) {
            (false, false) => 4 << 20,
            (true, false) => 128 << 10,
            (false, true) => 64 << 10,
            (true, true) => 4 << 10,
        };
        let (from, to) = (self.from, self.to.unwrap_or(usual));
        if from == 0 || from > to {
            return Err(Error::Usage(format!(
                "--from {from} --to {to}: vectors have one element at least, and --to no fewer"
            )));
        }
        let step = self.step.unwrap_or(if self.study.quick { 16 } else { 4 });
        let element = if across { ElementType::F64 } else { self.node.element };
        Ok(lengths(from, to, step).into_iter().map(|length| length * element.bytes()).collect())
    }

    /// How often all series take turns.
    pub fn turns(&self) -> usize {
        let usual = match (self.study.quick, self.cluster.hosts) {
            (true, _) => 1,
            (false, None) => 5,
            (false, Some(_)) => 3,
        };
        self.turns.unwrap_or(usual) as usize
    }

    /// Rank counts on one node.
    pub fn ranks(&self) -> Vec<usize> {
        if self.node.ranks.is_empty() { vec![usable_cores().len().max(2)] } else { self.node.ranks.clone() }
    }

    /// Algorithms on one node.
    pub fn algorithms(&self) -> Vec<Algorithm> {
        if self.node.algorithms.is_empty() { Algorithm::named() } else { self.node.algorithms.clone() }
    }

    /// Operators, the sum first.
    pub fn operators(&self) -> Vec<Combine> {
        let mut all = match (self.node.operators.as_slice(), self.study.quick) {
            ([], false) => Combine::ALL.to_vec(),
            ([], true) => vec![Combine::Sum, Combine::User],
            (given, _) => given.to_vec(),
        };
        all.sort_unstable();
        all.dedup();
        all
    }

    /// How long one of `blocks` blocks of a turn lasts.
    pub fn block(&self, blocks: usize) -> Duration {
        let all = self.node.time_per_size.unwrap_or(if self.study.quick { 60 } else { 240 }).max(1);
        Duration::from_millis(all) / (self.turns() * blocks).max(1) as u32
    }

    /// The options of `bench across` for one length and turn.
    ///
    /// # Errors
    ///
    /// None that a caller could cause.
    pub fn across(&self, bytes: u64) -> Result<Across> {
        let usual = Across::usual()?;
        let own = &self.cluster;
        let calls = own.calls.unwrap_or(if self.study.quick { 3 } else { 9 }) as usize;
        let mut work = usual.work.clone();
        work.sizes = vec![bytes];
        work.calls = calls.div_ceil(self.turns()) as u32;
        work.series = if own.schedules.is_empty() { schedules(own.slots) } else { own.schedules.clone() };
        work.no_goodput = true;
        Ok(Across {
            hosts: own.hosts.unwrap_or(1),
            slots: own.slots,
            per_switch: own.per_switch,
            rate: own.rate.clone(),
            trunk_rate: own.trunk_rate.clone(),
            placement: own.placement.clone(),
            mpi: own.mpi.clone(),
            timeout: self.timeout,
            cluster: own.cluster.clone(),
            program: own.program.clone(),
            work,
            ..usual
        })
    }
}

/// Lengths from `from` on, each `step` times the one before, and `to`.
fn lengths(from: u64, to: u64, step: u64) -> Vec<u64> {
    let next = |length: &u64| length.checked_mul(step);
    let mut all: Vec<u64> = std::iter::successors(Some(from), next).take_while(|&length| length < to).collect();
    all.push(to);
    all
}

/// Reads what a margin may be.
fn parse_percent(text: &str) -> std::result::Result<f64, String> {
    parse_from(0.0, text).map_err(|why| format!("{why}, in percent"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::command::{Cli, Command};

    fn options(words: &[&str]) -> AllReduce {
        match Cli::try_parse_from(["bench", "allreduce"].iter().chain(words)).unwrap().command {
            Command::AllReduce(options) => *options,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn lengths_go_from_one_element_to_millions() {
        let sizes = options(&[]).sizes().unwrap();
        assert_eq!((sizes[0], sizes.len(), sizes.last()), (8, 12, Some(&(32 << 20))));
        assert_eq!(lengths(1, 100, 4), [1, 4, 16, 64, 100]);
        assert_eq!(lengths(7, 7, 2), [7]);
        assert_eq!(options(&["--type", "f32", "--to", "4", "--step", "2"]).sizes().unwrap(), [4, 8, 16]);
        assert!(options(&["--from", "8", "--to", "4"]).sizes().unwrap_err().to_string().contains("--to 4"));
        assert!(options(&["--from", "0"]).sizes().is_err());
    }

    #[test]
    fn the_sum_comes_first_and_all_algorithms_are_there() {
        let options = options(&["--operators", "user,max,sum,max"]);
        assert_eq!(options.operators(), [Combine::Sum, Combine::Max, Combine::User]);
        assert_eq!(options.algorithms().len(), 7);
    }

    #[test]
    fn a_cluster_is_one_of_bench_across() {
        let options = options(&["--hosts", "4", "--slots", "2", "--per-switch", "2", "--quick"]);
        let across = options.across(64).unwrap();
        assert_eq!((across.hosts, across.slots, across.per_switch), (4, 2, Some(2)));
        assert_eq!((across.work.sizes.as_slice(), across.work.calls), (&[64][..], 3));
        assert!(across.work.series.len() > 6);
    }

    #[test]
    fn a_node_has_no_schedules_and_a_cluster_no_algorithms() {
        for words in [
            &["--schedule", "ours"][..],
            &["--hosts", "4", "--algorithm", "line"],
            &["--hosts", "4", "-n", "2"],
            &["--baseline", "mpich", "--no-baseline"],
            &["--algorithm", "x"],
            &["--operators", "product"],
            &["--step", "1"],
        ] {
            assert!(Cli::try_parse_from(["bench", "allreduce"].iter().chain(words)).is_err(), "{words:?}");
        }
    }
}
