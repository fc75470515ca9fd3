//! The command line of `bench reproduce`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{bcast, dpml, release_gather, ring, salar};
use crate::across::bound::Rate;
use crate::across::program::Library;
use crate::runs::baseline::Wanted;
use crate::sizes::{parse_count, parse_ranks, parse_size};
use crate::study::StudyOptions;

/// The studies.
#[derive(Clone, Debug, Subcommand)]
pub enum Reproduce {
    /// The ring allreduce beside butterflies, on two switches (Patarasuk and Yuan, 2009)
    #[command(after_help = ring::DESCRIPTION.render())]
    Ring(ClusterStudy),
    /// The broadcast that leaves out useless transfers (Zhou et al., 2016)
    #[command(after_help = bcast::DESCRIPTION.render())]
    Bcast(ClusterStudy),
    /// Broadcast, reduce and allreduce from release and gather steps (Jain et al., 2018)
    #[command(after_help = release_gather::DESCRIPTION.render())]
    ReleaseGather(NodeStudy),
    /// Several leaders a node (Bayatpour et al., DPML, 2017)
    #[command(after_help = dpml::DESCRIPTION.render())]
    Dpml(ClusterStudy),
    /// The pipeline of node and network, and the size of its slices (Bayatpour et al., SALaR, 2018)
    #[command(after_help = salar::DESCRIPTION.render())]
    Salar(ClusterStudy),
}

/// Options of a study on the emulated cluster.
#[derive(Clone, Debug, Args)]
pub struct ClusterStudy {
    /// How long it is, and where it is kept
    #[command(flatten)]
    pub study: StudyOptions,
    /// Hosts of the emulated cluster [default: the study's, see below]
    #[arg(long, value_parser = parse_count)]
    pub hosts: Option<usize>,
    /// Ranks on each host, where the study has several
    #[arg(long, value_parser = parse_count)]
    pub slots: Option<usize>,
    /// Rate of links, each way, such as 100mbit
    #[arg(long)]
    pub rate: Option<Rate>,
    /// Message bytes
    #[arg(long, value_delimiter = ',', value_parser = parse_size)]
    pub sizes: Vec<u64>,
    /// Timed calls of each series and size
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub calls: Option<u32>,
    /// Whose launcher, messages and native collectives: openmpi, mpich
    #[arg(long, default_value = "openmpi")]
    pub mpi: Library,
    /// Leaves out all that needs the cluster: counts and simulations only
    #[arg(long)]
    pub no_cluster: bool,
    /// Seconds after which one run of ranks is stopped
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..))]
    pub timeout: u64,
    /// The script that makes clusters [default: scripts/cluster/run of the repository]
    #[arg(long, value_name = "PATH")]
    pub cluster: Option<PathBuf>,
    /// The program of ranks, instead of one built by cargo
    #[arg(long, value_name = "PATH")]
    pub program: Option<PathBuf>,
}

/// Options of a study within this machine.
#[derive(Clone, Debug, Args)]
pub struct NodeStudy {
    /// How long it is, and where it is kept
    #[command(flatten)]
    pub study: StudyOptions,
    /// Ranks [default: as many as usable cores]
    #[arg(short = 'n', long, value_parser = parse_ranks)]
    pub ranks: Option<usize>,
    /// Message bytes
    #[arg(long, value_delimiter = ',', value_parser = parse_size)]
    pub sizes: Vec<u64>,
    /// How often all settings take turns
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub turns: Option<u32>,
    /// An MPI beside which ours is measured: openmpi, mpich, NAME=FOLDER, or all [default: openmpi and mpich, those
    /// that are here]
    #[arg(long, value_delimiter = ',')]
    pub baseline: Vec<Wanted>,
    /// A described machine of two sockets, on which trees are simulated
    #[arg(long, default_value = "xeon-2x20")]
    pub machine: String,
    /// Seconds after which one run of ranks is stopped
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..))]
    pub timeout: u64,
}

#[cfg(test)]
pub(crate) mod tests {
    use clap::Parser;

    use super::Reproduce;
    use crate::command::{Cli, Command};

    /// What `bench reproduce STUDY` is asked for by these words.
    pub fn asked(study: &str, words: &[&str]) -> Reproduce {
        match Cli::try_parse_from(["bench", "reproduce", study].iter().chain(words)).unwrap().command {
            Command::Reproduce { study } => *study,
            other => panic!("{other:?}"),
        }
    }
}
