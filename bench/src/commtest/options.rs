//! The options of `bench commtest`, and of its ranks.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;

use super::channel::Slots;
use super::partners::{Command, Cycles};
use super::protocol::{Program, Protocol, group};
use crate::across::bound::Rate;
use crate::across::options::Across;
use crate::across::program::Library;
use crate::error::Result;
use crate::sizes::{parse_count, parse_ranks, parse_some};
use crate::study::{Description, StudyOptions};

/// What the study repeats.
pub const DESCRIPTION: Description = Description {
    name: "commtest",
    paper: "P. H. Worley, COMMTEST, a message-passing benchmark code; Performance Studies, Oak Ridge National Laboratory, 1996-2002",
    did: &[
        "A volume (2 MB, say) is exchanged as 1, 2, 4 .. packets down to a least one, each from and to memory of its own, so that start-up \
         costs show in the differences and the bandwidth in the minimum.",
        "SWAP exchanges between pairs, SENDRECV along cycles, by unordered protocols (0,0) to (0,9), both sides alike, and ordered ones (1,0) to \
         (1,10), in which one side sends first.",
        "A second program posts receives one packet ahead and completes sends one packet later.",
        "It reports the longest time of any process, and notes where that and the elapsed time by a global clock disagree.",
    ],
    differs: &[
        "All protocols and programs take turns at each packetisation, with the same two buffers; medians of repetitions and their quartiles are \
         reported, where the paper does not say what it takes from its iterations.",
        "Every packet's contents are checked, in a pass that is not timed.",
        "Latency and bandwidth are fitted too, by least squares of relative errors, and the residual says how little or much of a line it is.",
        "Where an ordered exchange of two needs a word before a ready send and has the proof already, the word is left out; the paper leaves \
         out all of them in its table, and says that they are there.",
        "(0,0) takes BSEND with a buffer for all packets. What has no nonblocking call ((0,0), (0,6), (1,0), (1,6), (1,10)) has no second program.",
        "On one node, Phalanx's shared memory stands beside the MPI. It has no point-to-point calls: two-rank communicators in which always \
         the same rank broadcasts stand for them, by lines and by cells, for (0,0) and (1,0) of the first program.",
        "The list of three ways of running, of which the paper's page has lost the text, is read as: SWAP between two processes, SWAP between \
         all, SENDRECV.",
    ],
};

/// What carries the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// An MPI's point-to-point calls.
    Mpi(Library),
    /// Our shared memory.
    Channels(Slots),
}

impl fmt::Display for Over {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Over::Mpi(library) => f.pad(library.name()),
            Over::Channels(slots) => f.pad(slots.name()),
        }
    }
}

impl FromStr for Over {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Over, String> {
        match text {
            "lines" => Ok(Over::Channels(Slots::Lines)),
            "cells" => Ok(Over::Channels(Slots::Cells)),
            other => other
                .parse()
                .map(Over::Mpi)
                .map_err(|_| format!("{text:?} carries nothing here: openmpi, mpich, lines, cells")),
        }
    }
}

/// What is exchanged with whom.
#[derive(Clone, Debug, Args)]
pub struct Exchange {
    /// What ranks do: swap (pairs exchange) or sendrecv (along cycles)
    #[arg(long, default_value = "swap")]
    pub command: Command,
    /// The volume that a rank sends and receives
    #[arg(long, default_value = "2M", value_parser = parse_some)]
    pub total: u64,
    /// How many ranks further the partner is [default: 1; on a cluster the ranks of a host]
    #[arg(long)]
    pub distance: Option<usize>,
    /// Only rank 0 and its partner, or the ranks of its cycle; the others wait
    #[arg(long)]
    pub only_zero: bool,
    /// The cycles of sendrecv, like 0-1-2,3-4 [default: by --distance]
    #[arg(long)]
    pub cycles: Option<Cycles>,
    /// Protocols: 0.0 to 0.9, 1.0 to 1.10, unordered, ordered, all
    #[arg(long, value_delimiter = ',', default_value = "all", value_parser = parse_protocols)]
    pub protocols: Vec<Protocols>,
    /// Programs: basic, reorganised
    #[arg(long, value_delimiter = ',', default_value = "basic,reorganised")]
    pub programs: Vec<Program>,
    /// Timed repetitions of each protocol, program and packetisation, over all turns [default: 10; with --quick 4]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub iterations: Option<u32>,
}

/// One word of `--protocols`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protocols(pub Vec<Protocol>);

fn parse_protocols(text: &str) -> std::result::Result<Protocols, String> {
    group(text).map(Protocols)
}

impl Exchange {
    /// The protocols, each once, in their order.
    pub fn protocols(&self) -> Vec<Protocol> {
        let mut all: Vec<Protocol> = self.protocols.iter().flat_map(|word| word.0.iter().copied()).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// Options of `bench commtest`.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = DESCRIPTION.render(), after_help = "--help says what the paper did, and what differs here.")]
pub struct CommTest {
    /// What is exchanged with whom
    #[command(flatten)]
    pub exchange: Exchange,
    /// The shortest packet [default: 2K; with --quick 32K]
    #[arg(long, value_parser = parse_some)]
    pub least: Option<u64>,
    /// What carries: openmpi, mpich, lines, cells [default: openmpi,lines,cells; on a cluster openmpi]
    #[arg(long, value_delimiter = ',')]
    pub over: Vec<Over>,
    /// How often all that carry take turns [default: 2; with --quick 1]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub turns: Option<u32>,
    /// Ranks, on this host
    #[arg(short = 'n', long, default_value = "2", value_parser = parse_ranks, conflicts_with = "hosts")]
    pub ranks: usize,
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
    /// Messages of all sizes are sent at once, without asking the receiver
    #[arg(long, requires = "hosts")]
    pub eager: bool,
    /// Seconds after which a run of ranks is stopped
    #[arg(long, default_value_t = 900, value_parser = clap::value_parser!(u64).range(1..))]
    pub timeout: u64,
    /// The script that makes clusters [default: scripts/cluster/run of the repository]
    #[arg(long, value_name = "PATH")]
    pub cluster: Option<PathBuf>,
    /// The program of MPI ranks, instead of one built by cargo; for one MPI
    #[arg(long, value_name = "PATH")]
    pub program: Option<PathBuf>,
    /// How long, and where the record goes
    #[command(flatten)]
    pub study: StudyOptions,
}

impl CommTest {
    /// How many ranks there are.
    pub fn size(&self) -> usize {
        self.hosts.map_or(self.ranks, |hosts| hosts * self.slots)
    }

    /// The shortest packet, in bytes.
    pub fn least(&self) -> usize {
        self.least.unwrap_or(if self.study.quick { 32 << 10 } else { 2 << 10 }) as usize
    }

    /// How often all that carry take turns.
    pub fn turns(&self) -> usize {
        self.turns.unwrap_or(if self.study.quick { 1 } else { 2 }) as usize
    }

    /// What carries.
    pub fn over(&self) -> Vec<Over> {
        let openmpi = Over::Mpi(Library::OpenMpi);
        match (self.over.as_slice(), self.hosts) {
            ([], None) => vec![openmpi, Over::Channels(Slots::Lines), Over::Channels(Slots::Cells)],
            ([], Some(_)) => vec![openmpi],
            (given, _) => given.to_vec(),
        }
    }

    /// The cluster, as `bench across` has it.
    ///
    /// # Errors
    ///
    /// None that a caller could cause.
    pub fn across(&self) -> Result<Across> {
        let usual = Across::usual()?;
        Ok(Across {
            hosts: self.hosts.unwrap_or(1),
            slots: self.slots,
            per_switch: self.per_switch,
            rate: self.rate.clone(),
            trunk_rate: self.trunk_rate.clone(),
            timeout: self.timeout,
            cluster: self.cluster.clone(),
            ..usual
        })
    }
}

/// Options of `bench commtest-rank`.
#[derive(Clone, Debug, Args)]
pub struct CommTestRank {
    /// What is exchanged with whom
    #[command(flatten)]
    pub exchange: Exchange,
    /// Numbers of packets
    #[arg(long, value_delimiter = ',', required = true)]
    pub packets: Vec<usize>,
    /// How many ranks there must be
    #[arg(long)]
    pub ranks: usize,
    /// The file to which rank 0 appends what is finished
    #[arg(long)]
    pub lines: PathBuf,
    /// What the keys of finished measurements begin with
    #[arg(long)]
    pub prefix: String,
    /// Over our shared memory, and not over MPI
    #[arg(long)]
    pub channels: Option<Slots>,
}
