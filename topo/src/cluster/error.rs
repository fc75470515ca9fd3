//! What can go wrong with clusters.

use std::path::PathBuf;

/// What can go wrong when a cluster is described, or asked for hosts that it does not have.
///
/// Every message says what was wrong and what to try next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file that could not be read.
    #[error(
        "cannot read the cluster file {}: {source}; give Slurm's `topology.conf`, which lies beside its `slurm.conf`",
        path.display()
    )]
    File {
        /// The file.
        path: PathBuf,
        /// Why it could not be read.
        source: std::io::Error,
    },

    /// A file that could be read, but does not describe a tree of switches.
    #[error("{}, {error}", path.display())]
    InFile {
        /// The file.
        path: PathBuf,
        /// What is wrong in it.
        error: Box<Error>,
    },

    /// A text in the form of `topology.conf` that does not describe a tree of switches.
    #[error("line {line}, column {column}: found `{found}`: {reason}; {instead}")]
    Conf {
        /// The line, counted from 1.
        line: usize,
        /// The character in the line, counted from 1.
        column: usize,
        /// What stands there.
        found: String,
        /// What is wrong with it.
        reason: String,
        /// What to write instead.
        instead: String,
    },

    /// A host list that cannot be read.
    #[error("character {column} of the host list {list:?}: found `{found}`: {reason}; {instead}")]
    HostList {
        /// The list.
        list: String,
        /// The character in the list, counted from 1.
        column: usize,
        /// What stands there.
        found: String,
        /// What is wrong with it.
        reason: String,
        /// What to write instead.
        instead: String,
    },

    /// A short text that describes no cluster.
    #[error(
        "{text:?} does not describe a cluster: {reason}; write for example `flat:32`, `16+16` (two switches) or `4x8` \
         (four switches of eight hosts)"
    )]
    Description {
        /// The text that was given.
        text: String,
        /// What is wrong with it.
        reason: String,
    },

    /// A name that is not one of the orders of a ring.
    #[error("{text:?} is no order of a ring: write `dfs`, `file`, `reverse`, `alternating` or `random:SEED`")]
    Order {
        /// The text that was given.
        text: String,
    },

    /// A host of a job that the cluster does not have.
    #[error(
        "the cluster has no host {host:?} (it has {hosts}); give the file of the cluster that the job runs on, or \
         order the ranks by `topo::cluster::consecutive`, which needs no file"
    )]
    UnknownHost {
        /// The name that was asked for.
        host: String,
        /// The hosts of the cluster, as a host list, cut off where it is long.
        hosts: String,
    },
}

/// What is wrong at one place of a text: the reader of the text around it knows which line that is.
#[derive(Debug)]
pub(super) struct Fault {
    /// How many characters stand before the place.
    pub(super) at: usize,
    pub(super) found: String,
    pub(super) reason: String,
    pub(super) instead: String,
}

impl Fault {
    pub(super) fn new(
        at: usize,
        found: impl Into<String>,
        reason: impl Into<String>,
        instead: impl Into<String>,
    ) -> Self {
        Fault { at, found: found.into(), reason: reason.into(), instead: instead.into() }
    }
}
