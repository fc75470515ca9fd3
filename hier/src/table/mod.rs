//! The table of choices as a file: TOML that people read, write and check in.
//!
//! `phalanx tune` measures a machine and writes one. A job takes the file that `PHALANX_TABLE` names, or else
//! `$XDG_CONFIG_HOME/phalanx/table.toml` (`~/.config/phalanx/table.toml`), or else the built-in table, which is
//! `default.toml` beside this file. What the launcher reads (or rank 0, under mpirun) counts for all ranks.
//! `PHALANX_ALGORITHM` and `PHALANX_TREES` change what the file says.
//!
//! ```toml
//! version = 1
//!
//! [machine]
//! model = "AMD EPYC"
//! packages = 1
//! cores = 2
//! pus = 2
//! l2 = "1M"
//! l3 = "32M"
//!
//! [node]
//! flat_ranks = 32
//! trees = "release: flat; gather(3..4): kary:3 < 8K, kary:2"
//!
//! [[rules]]
//! collective = "allreduce"
//! ranks = "3..4"
//! ladder = [
//!   { from = 0, take = "line" },
//!   { from = 505, take = "cells", up = "4 x 8K", down = "4 x 32K" },
//!   { from = "8K", take = "shares", leaders = "all", slice = "64K", down_cells = 2 },
//! ]
//! ```
//!
//! | key | what |
//! |---|---|
//! | `machine` | where it was measured; a job on another machine does not take it unasked |
//! | `node.flat_ranks` | ranks up to which lines are exchanged flat; 32 if it is not said |
//! | `node.flat_ranks_crowded` | the same in jobs whose ranks share cores; as `node.flat_ranks` says, if it is not said |
//! | `node.direct_from` | bytes from which buffers in the job's heap are used where they lie, if trials do not find cells to serve their callers better, or `"never"`: for the file's rules that do not say it, and for all built-in rules that complete them, whatever these say. `phalanx tune` does not write it |
//! | `node.reach_from` | bytes from which a collective reaches private buffers by kernel-assisted copies, or `"never"`, or of broadcasts `"tried"` |
//! | `node.readers` | ranks that reach into one rank's private memory at a time, at most, unless one waits for a millisecond, or 0 for any number; 4 if it is not said |
//! | `node.trees` | as [`TreeRules`] has it |
//! | `rules` | the first one that fits counts; what they do not speak of is as in the built-in table |
//! | `ranks` | of the communicator: `4`, `"3..8"`; all, if it is not said |
//! | `ranks_per_core` | of the job, rounded up: `1`, `"2..4"`; all, if it is not said |
//! | `l2_from` | for machines whose first processor has a second-level cache of so many bytes or more; all, if it is not said |
//! | `order` | `"rank"`: for the strict mode only |
//! | `direct_from` | bytes from which buffers in the job's heap are used where they lie, or `"never"`; as `node.direct_from` says, if it is not said, or else 8K |
//! | `reach_from` | bytes from which private buffers are reached by kernel-assisted copies, or `"never"`, or of broadcasts `"tried"`; as `node.reach_from` says, if it is not said. Gathers, scatters, allgathers and alltoalls go by that of broadcasts, scans and reduce-scatters by that of allreduces |
//! | `ladder` | by bytes of a message, from 0 on: [`Band`](shm_core::select::Band) |
//! | `network` | what was found across nodes: [`NetworkTable`] |

mod file;
mod find;
mod machine;
mod network;
mod read;
mod rust;
mod write;

pub use find::{Asked, Found, VARIABLE, default_place, found};
pub(crate) use find::{job_spec, own_variable, threads_spec};
pub use machine::Fingerprint;
pub use network::{NetworkBand, NetworkRule, NetworkTable};
pub use read::Flaw;
pub(crate) use write::bare;
pub use write::{with_network, with_network_of};

use shm_core::select::Rule;
use shm_core::{Error, Tuning};

use crate::rules::TreeRules;

/// The text of the built-in table.
pub const BUILT_IN: &str = include_str!("default.toml");

/// What a file says.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Where it was measured.
    pub machine: Fingerprint,
    /// Ranks up to which lines are exchanged flat, in jobs with a core for each rank.
    pub flat_ranks: u32,
    /// The same in jobs whose ranks share cores.
    pub flat_ranks_crowded: u32,
    /// Bytes from which buffers in the job's heap are used where they lie, by the built-in rules that complete these;
    /// `u64::MAX` for never, and nothing for as they say.
    pub direct_from: Option<u64>,
    /// Bytes from which private buffers are read by kernel-assisted copies, by [`Collective`](shm_core::Collective),
    /// where no rule says it; `u64::MAX` for never.
    pub reach_from: [u64; 4],
    /// Ranks that do so in one rank's memory at a time, at most; 0 for any number.
    pub readers: u32,
    /// The trees.
    pub trees: TreeRules,
    /// The rules, of which the first one that fits counts.
    pub rules: Vec<Rule>,
    /// What was found across nodes.
    pub network: Option<NetworkTable>,
    /// Remarks on the bands of each rule, for the one who reads the file. They are written, and not read.
    pub remarks: Vec<Vec<String>>,
}

impl Table {
    /// An empty table, which leaves all to the built-in one.
    #[must_use]
    pub fn new(machine: Fingerprint) -> Self {
        Self {
            machine,
            flat_ranks: shm_core::select::FLAT_RANKS,
            flat_ranks_crowded: shm_core::select::FLAT_RANKS,
            direct_from: None,
            reach_from: shm_core::select::REACH_FROM,
            readers: shm_core::select::READERS,
            trees: TreeRules::default(),
            rules: Vec::new(),
            network: None,
            remarks: Vec::new(),
        }
    }

    /// The value that rides in the segment.
    ///
    /// # Errors
    /// `Tuning` when there are too many rules.
    pub fn tuning(&self) -> Result<Tuning, Error> {
        let mut tuning = Tuning::of(&self.rules)?;
        (tuning.flat_ranks, tuning.flat_ranks_crowded) = (self.flat_ranks, self.flat_ranks_crowded);
        (tuning.reach_from, tuning.readers) = (self.reach_from, self.readers);
        self.direct_from.inspect(|&least| tuning.set_direct_from(self.rules.len(), least));
        Ok(tuning)
    }
}
