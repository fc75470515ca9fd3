//! `bench reproduce`: the experiments of the papers that Phalanx stands on, each by one command.
//!
//! A study measures nothing by means of its own. It is a list of [`piece`]s, most of which are commands of this very
//! program (`bench across`, `bench collectives`) that anybody can run by hand, and a function that sets what they found
//! beside what the paper found. Pieces that are finished are kept at once ([`crate::study`]).
//!
//! | file | what |
//! |---|---|
//! | `options` | the command line |
//! | `piece` | one measurement: a command, or a simulation |
//! | `run` | a study from its beginning to its record |
//! | `cluster` | commands of `bench across` |
//! | `taken` | what the pieces found |
//! | `outcome`, `text` | what a study found; as text, CSV, plot |
//! | `ring` | Patarasuk and Yuan: the ring allreduce |
//! | `bcast`, `transfers` | Zhou et al.: the bandwidth-saving broadcast; its transfers, counted |
//! | `release_gather`, `trees` | Jain et al.: release and gather steps; its trees, simulated |
//! | `dpml` | Bayatpour et al.: several leaders |
//! | `salar` | Bayatpour et al.: the pipeline |

pub mod bcast;
pub mod cluster;
pub mod dpml;
pub mod options;
pub mod outcome;
pub mod piece;
pub mod release_gather;
pub mod ring;
pub mod run;
pub mod salar;
pub mod taken;
pub mod text;
pub mod transfers;
pub mod trees;

use options::Reproduce;

use crate::error::Result;

/// Runs the command.
///
/// # Errors
///
/// Those of the study.
pub fn run(study: &Reproduce) -> Result<()> {
    match study {
        Reproduce::Ring(options) => run::on_cluster(options, ring::Ring::of),
        Reproduce::Bcast(options) => run::on_cluster(options, bcast::Bcast::of),
        Reproduce::ReleaseGather(options) => release_gather::run(options),
        Reproduce::Dpml(options) => run::on_cluster(options, dpml::Dpml::of),
        Reproduce::Salar(options) => run::on_cluster(options, salar::Salar::of),
    }
}
