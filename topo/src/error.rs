//! The one error type of this crate.

use std::path::PathBuf;

use crate::Level;

/// What can go wrong when a machine is described or a tree is built.
///
/// Every message says what was wrong and what to try next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// hwloc could not look at the live machine.
    #[error(
        "hwloc cannot discover this machine: {reason}; try `lstopo-no-graphics` to see what hwloc says, or describe \
         the machine with a synthetic string such as \"pack:2 core:20 pu:2\""
    )]
    Discovery {
        /// What hwloc said.
        reason: String,
    },

    /// A synthetic description that hwloc does not understand.
    #[error(
        "{description:?} does not describe a machine ({reason}); write levels from the outside in, each with how many \
         there are in the one before, and end with PUs, as in \"pack:2 numa:1 l3:2 core:10 pu:2\""
    )]
    Synthetic {
        /// The text that was given.
        description: String,
        /// Why it was refused.
        reason: String,
    },

    /// An XML file that could not be read.
    #[error("cannot read the machine file {}: {source}; write one with `lstopo-no-graphics FILE.xml`", path.display())]
    XmlFile {
        /// The file.
        path: PathBuf,
        /// Why it could not be read.
        source: std::io::Error,
    },

    /// A file that could be read, but is not a machine in hwloc's XML.
    #[error(
        "{} is not a machine in hwloc's XML ({reason}); write it again with `lstopo-no-graphics FILE.xml` of hwloc 2",
        path.display()
    )]
    Xml {
        /// The file.
        path: PathBuf,
        /// Why it was refused.
        reason: String,
    },

    /// PUs that do not make a machine.
    #[error("these PUs do not make a machine: {reason}; list every PU once, and every core in one place")]
    Machine {
        /// What contradicts what.
        reason: String,
    },

    /// A text that [`Machine::to_compact`](crate::Machine::to_compact) did not write.
    #[error(
        "word {word} of the compact machine text: {reason}; hand on the text of `Machine::to_compact` unchanged, \
         between processes of the same build"
    )]
    Compact {
        /// Which word of the text, counted from 1.
        word: usize,
        /// What is wrong with it.
        reason: String,
    },

    /// The affinity mask of a process could not be read.
    #[error("cannot read where process {process} may run: {source}; is it alive, and does it belong to this user?")]
    Affinity {
        /// The process (0 is the calling thread).
        process: u32,
        /// What the system said.
        source: std::io::Error,
    },

    /// A quota file of a cgroup that does not hold a quota.
    #[error("{} holds {text:?}, which is not a processor quota; is something else mounted over /sys/fs/cgroup?", file.display())]
    Quota {
        /// The file.
        file: PathBuf,
        /// What it holds.
        text: String,
    },

    /// A name that is not one of the binding policies.
    #[error("{text:?} is not a way to bind ranks; write `core`, `numa` or `none`")]
    BindPolicy {
        /// The text that was given.
        text: String,
    },

    /// A tree over no ranks.
    #[error("a tree needs at least one rank, and the socket map holds none; give it a place for every rank")]
    NoRanks,

    /// A root that is not one of the ranks.
    #[error("root {root} is not one of the {size} ranks; ranks count from 0 to {}", size - 1)]
    RootOutOfRange {
        /// The root that was asked for.
        root: usize,
        /// The number of ranks.
        size: usize,
    },

    /// A k-ary or k-nomial tree with `k` = 0.
    #[error("k is 0, and a rank that serves nobody makes no tree; give k of at least 1, usually 2 to 8")]
    ZeroK,

    /// The same level twice in one specification.
    #[error("the level `{level}` stands twice in the tree; name each level once, the outermost first")]
    RepeatedLevel {
        /// The level.
        level: Level,
    },

    /// A text that does not describe a tree.
    #[error(
        "{text:?} does not describe a tree: {reason}; write for example `flat`, `knomial:4` or \
         `kary:3:right:package:leaders-last`"
    )]
    TreeSpec {
        /// The text that was given.
        text: String,
        /// What is wrong with it.
        reason: String,
    },

    /// A [`Tree`](crate::Tree) whose links contradict each other.
    #[error(
        "this is not a tree over {size} ranks: {reason}; build it with `TreeSpec::build`, which makes no such tree"
    )]
    BrokenTree {
        /// The number of ranks.
        size: usize,
        /// The first contradiction.
        reason: String,
    },
}
