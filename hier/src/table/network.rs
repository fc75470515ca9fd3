//! What a table says of calls across nodes.

use shm_core::Collective;

use crate::across::{NetworkModel, Rule};

/// What was measured on so many nodes with so many ranks each, and is taken there only.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkTable {
    /// Nodes.
    pub nodes: usize,
    /// Ranks of each node.
    pub ranks_a_node: usize,
    /// What messages cost.
    pub model: NetworkModel,
    /// What calls take.
    pub rules: Vec<NetworkRule>,
}

/// What a collective takes, by bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkRule {
    /// The collective.
    pub what: Collective,
    /// Rising from 0 bytes on.
    pub bands: Vec<NetworkBand>,
}

/// From so many bytes on.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkBand {
    /// Bytes.
    pub from: u64,
    /// The words of it, as in `PHALANX_CLUSTER` behind the collective.
    pub take: String,
    /// What they mean.
    pub rule: Rule,
    /// A remark for the one who reads the file. It is written, and not read.
    pub remark: String,
}

impl NetworkTable {
    /// Whether it speaks of such a communicator: of so many nodes, each of which has so many ranks.
    #[must_use]
    pub fn fits(&self, nodes: usize, fewest: usize, most: usize) -> bool {
        (self.nodes, self.ranks_a_node, self.ranks_a_node) == (nodes, fewest, most)
    }

    /// What a call takes; nothing where the table does not speak of it.
    #[must_use]
    pub fn rule(&self, what: Collective, bytes: usize) -> Rule {
        let rule = self.rules.iter().find(|rule| rule.what == what);
        let band = rule.and_then(|rule| rule.bands.iter().rfind(|band| band.from <= bytes as u64));
        band.map_or(Rule::default(), |band| band.rule)
    }
}
