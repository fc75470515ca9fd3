//! How a communicator across nodes is made, and how its ranks come to one word on it.

use std::path::PathBuf;
use std::sync::Arc;

use super::error::{Error, Result};
use super::model::NetworkModel;
use super::rules::{self, ClusterRules};
use shm_core::Tuning;

use crate::nodes::{Placement, Settings};
use crate::rules::TreeRules;
use crate::table::{self, Asked, NetworkTable, Table};
use crate::transport::{Transport, all_gather};

/// The variable that names the file of switches.
const TOPOLOGY: &str = "PHALANX_TOPOLOGY";
/// The variable that asks for a measurement.
const NETWORK: &str = "PHALANX_NETWORK";
/// Those of single nodes.
const ALGORITHM: &str = "PHALANX_ALGORITHM";
const TREES: &str = "PHALANX_TREES";

/// How a communicator across nodes is made.
#[derive(Clone, Debug, Default)]
pub struct ClusterSettings {
    /// How nodes are found.
    pub nodes: Settings,
    /// How calls are carried out, as text (see [`ClusterRules`]); what rank 0 says counts.
    pub rules: String,
    /// How calls within nodes are carried out, as text (that of `PHALANX_ALGORITHM`); what rank 0 says counts, unless
    /// `nodes` has a table.
    pub algorithms: String,
    /// The trees within nodes, as text (that of `PHALANX_TREES`, see [`TreeRules`]); what rank 0 says counts.
    pub trees: String,
    /// The file that says which hosts are at which switches (Slurm's `topology.conf`), so that rings load every link once; rank 0
    /// reads it. Without one, rings go round nodes in the order of their first ranks.
    pub topology: Option<PathBuf>,
    /// What the network costs: the choice of schedules follows from it.
    pub network: Cost,
    /// The table by which calls choose, within nodes and across them; rank 0 looks for it. None is the built-in one.
    pub table: Asked,
}

/// Where the model of the network comes from. The same on all ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Cost {
    /// A usual network: the same schedules, and the same bits of sums, in every run.
    #[default]
    Usual,
    /// This one.
    Given(NetworkModel),
    /// Measured now, by a few round trips of up to 64 KiB. Schedules, and the last bits of sums, may differ from run to run.
    Measured,
}

/// What all ranks have agreed on.
pub(super) struct Agreed {
    pub rules: ClusterRules,
    /// None if it is to be measured.
    pub network: Option<NetworkModel>,
    pub tuning: Tuning,
    pub trees: TreeRules,
    /// What the table says of calls across nodes.
    pub table: Option<NetworkTable>,
    /// The hosts of all ranks, and the file's text; empty without one.
    hosts: Vec<String>,
    topology: String,
}

/// What each rank tells the others: texts, parted by a byte that is in none of them.
const PART: char = '\0';

impl ClusterSettings {
    /// The settings that the environment asks for: `PHALANX_CLUSTER`, `PHALANX_ALGORITHM` and `PHALANX_TREES` have rules,
    /// `PHALANX_TOPOLOGY` names a file, `PHALANX_NETWORK=measured` has the network measured, and `PHALANX_TABLE` names a table.
    #[must_use]
    pub fn from_environment() -> Self {
        let [rules, algorithms, trees] =
            [rules::VARIABLE, ALGORITHM, TREES].map(|name| std::env::var(name).unwrap_or_default());
        let topology = std::env::var_os(TOPOLOGY).filter(|path| !path.is_empty()).map(PathBuf::from);
        let network = match std::env::var(NETWORK) {
            Ok(value) if value == "measured" => Cost::Measured,
            _ => Cost::Usual,
        };
        let table = Asked::from_environment();
        Self { nodes: Settings::default(), rules, algorithms, trees, topology, network, table }
    }

    /// Tells the others, and hears from them. Collective. A file that rank 0 cannot read is an error on all ranks.
    pub(super) fn agree(&self, transport: &dyn Transport) -> Result<Agreed> {
        let host = nix::unistd::gethostname().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let (topology, fault) = match &self.topology {
            Some(path) if transport.rank() == 0 => match std::fs::read_to_string(path) {
                Ok(text) => (text, String::new()),
                Err(error) => (String::new(), format!("{}: {error}", path.display())),
            },
            _ => (String::new(), String::new()),
        };
        let asked = if transport.rank() == 0 { &self.table } else { &Asked::BuiltIn };
        let (table, fault_of_table) = match table::found(asked) {
            Ok(table) => (table.map(|table| table.to_toml()).unwrap_or_default(), String::new()),
            Err(error) => (String::new(), error.to_string()),
        };
        let network = if self.network == Cost::Measured { "measured" } else { "" }.to_owned();
        let texts = [&self.rules, &self.algorithms, &self.trees, &network, &topology, &fault, &table, &fault_of_table];
        let own = std::iter::once(&host).chain(texts).map(|text| text.replace(PART, "")).collect::<Vec<_>>();
        let all = all_gather(transport, own.join(&PART.to_string()).as_bytes(), None)?;
        let all: Vec<String> = all.iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect();
        let mut first = all.first().map_or("", String::as_str).split(PART).skip(1);
        let [rules, algorithms, trees, network, topology, fault, table, fault_of_table] =
            [(); 8].map(|()| first.next().unwrap_or_default().to_owned());
        if !fault.is_empty() {
            return Err(Error::Topology { why: fault });
        }
        if !fault_of_table.is_empty() {
            return Err(Error::Table { why: fault_of_table });
        }
        let table = match table.as_str() {
            "" => None,
            text => Some(Table::from_toml(text).map_err(|flaw| Error::Table { why: flaw.to_string() })?),
        };
        let hosts = all.iter().map(|text| text.split(PART).next().unwrap_or_default().to_owned()).collect();
        let tuning = match self.nodes.tuning {
            Some(tuning) => tuning,
            None => {
                let mut tuning = table.as_ref().map_or(Ok(Tuning::default()), Table::tuning)?;
                tuning.force(&algorithms)?;
                tuning
            }
        };
        let trees = match (trees.as_str(), &table) {
            ("", None) => TreeRules::default(),
            ("", Some(table)) => table.trees.clone(),
            (text, _) => text.parse()?,
        };
        let table = table.and_then(|table| table.network);
        let network = match self.network {
            Cost::Given(model) => Some(model),
            _ if network == "measured" => None,
            _ => Some(NetworkModel::default()),
        };
        Ok(Agreed { rules: rules.parse()?, network, tuning, trees, table, hosts, topology })
    }
}

impl Agreed {
    /// The order of the nodes in rings: depth first through the switches, where they are known.
    pub fn ring(&self, placement: &Placement) -> Result<Arc<[usize]>> {
        if self.topology.is_empty() {
            return Ok((0..placement.nodes()).collect());
        }
        let wrong = |error: topo::cluster::Error| Error::Topology { why: error.to_string() };
        let cluster = topo::Cluster::from_topology_conf(&self.topology).map_err(wrong)?;
        let hosts: Vec<&String> = (0..placement.nodes()).map(|node| &self.hosts[placement.members(node)[0]]).collect();
        Ok(cluster.order_of(&hosts).map_err(wrong)?.into())
    }
}
