//! How a communicator across nodes is made, and how its ranks come to one word on it.

use std::path::PathBuf;
use std::sync::Arc;

use super::error::{Error, Result};
use super::model::NetworkModel;
use super::rules::{self, ClusterRules};
use shm_core::Tuning;
use shm_core::job::variable;

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
    /// The file that says which hosts are at which switches (Slurm's `topology.conf`), so that rings load every link
    /// once; rank 0 reads it. Without one, rings go round nodes in the order of their first ranks.
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
    /// Measured now, by a few round trips of up to 64 KiB. Schedules, and the last bits of sums, may differ from run to
    /// run.
    Measured,
    /// `PHALANX_NETWORK` has a word that means nothing. No communicator is made so, should it be rank 0's.
    Unknown,
}

/// The words of rank 0 by which a communicator was made, on all ranks: files as their texts, so that what is made of it
/// when ranks have failed needs neither the files nor the environment of a rank that has.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Words {
    rules: String,
    algorithms: String,
    trees: String,
    /// `measured`, or nothing.
    network: String,
    /// The texts of the file of switches and of the table; empty without one.
    topology: String,
    table: String,
}

/// What all ranks have agreed on.
pub(super) struct Agreed {
    pub words: Words,
    pub rules: ClusterRules,
    /// None if it is to be measured.
    pub network: Option<NetworkModel>,
    pub tuning: Tuning,
    pub trees: TreeRules,
    /// What the table says of calls across nodes.
    pub table: Option<NetworkTable>,
    /// The hosts of all ranks.
    hosts: Vec<String>,
}

/// What each rank tells the others: texts, parted by a byte that is in none of them.
const PART: char = '\0';

impl ClusterSettings {
    /// The settings that the environment asks for: `PHALANX_CLUSTER`, `PHALANX_ALGORITHM` and `PHALANX_TREES` have
    /// rules, `PHALANX_TOPOLOGY` names a file, `PHALANX_NETWORK=measured` has the network measured, and `PHALANX_TABLE`
    /// names a table.
    #[must_use]
    pub fn from_environment() -> Self {
        let [rules, algorithms, trees] =
            [rules::VARIABLE, ALGORITHM, TREES].map(|name| variable(name).unwrap_or_default());
        let topology = std::env::var_os(TOPOLOGY).filter(|path| !path.is_empty()).map(PathBuf::from);
        let network = match variable(NETWORK).as_deref() {
            Some("measured") => Cost::Measured,
            Some("usual") | None => Cost::Usual,
            Some(_) => Cost::Unknown,
        };
        let table = Asked::from_environment();
        Self { nodes: Settings::default(), rules, algorithms, trees, topology, network, table }
    }

    /// Tells the others, and hears from them; `known` is what was agreed on before. Collective. A file that rank 0
    /// cannot read is an error on all ranks.
    pub(super) fn agree(&self, transport: &dyn Transport, known: Option<&Words>) -> Result<Agreed> {
        let host = nix::unistd::gethostname().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let own = match known {
            _ if transport.rank() > 0 => Ok(Words::default()),
            Some(words) => Ok(words.clone()),
            None => self.read(),
        };
        let mut texts = vec![host];
        match own {
            Ok(words) => texts.extend(words.into_texts()),
            Err(Error::Topology { why }) => texts.extend([TOPOLOGY.to_owned(), why]),
            Err(Error::Table { why }) => texts.extend([table::VARIABLE.to_owned(), why]),
            Err(Error::Node(shm_core::Error::Environment { value, .. })) => texts.extend([NETWORK.to_owned(), value]),
            Err(error) => texts.extend([table::VARIABLE.to_owned(), error.to_string()]),
        }
        let own: Vec<String> = texts.iter().map(|text| text.replace(PART, "")).collect();
        let all = all_gather(transport, own.join(&PART.to_string()).as_bytes(), None)?;
        let all: Vec<String> = all.iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect();
        let first: Vec<&str> = all.first().map_or("", String::as_str).split(PART).skip(1).collect();
        let words = match first[..] {
            [TOPOLOGY, why] => return Err(Error::Topology { why: why.to_owned() }),
            [NETWORK, value] => return Err(unknown_network(value.to_owned()).into()),
            [_, why] => return Err(Error::Table { why: why.to_owned() }),
            _ => Words::from_texts(&first),
        };
        let table = match words.table.as_str() {
            "" => None,
            text => Some(Table::from_toml(text).map_err(|flaw| Error::Table { why: flaw.to_string() })?),
        };
        let hosts = all.iter().map(|text| text.split(PART).next().unwrap_or_default().to_owned()).collect();
        let tuning = match &self.nodes.tuning {
            Some(tuning) => tuning.clone(),
            None => {
                let mut tuning = table.as_ref().map_or(Ok(Tuning::default()), Table::tuning)?;
                tuning.force(&words.algorithms)?;
                tuning
            }
        };
        let trees = match (words.trees.as_str(), &table) {
            ("", None) => TreeRules::default(),
            ("", Some(table)) => table.trees.clone(),
            (text, _) => text.parse()?,
        };
        let table = table.and_then(|table| table.network);
        let network = match self.network {
            Cost::Given(model) => Some(model),
            _ if words.network == "measured" => None,
            _ => Some(NetworkModel::default()),
        };
        Ok(Agreed { rules: words.rules.parse()?, words, network, tuning, trees, table, hosts })
    }

    /// What this rank says, should it be the first: files are read.
    fn read(&self) -> Result<Words> {
        if self.network == Cost::Unknown {
            return Err(unknown_network(variable(NETWORK).unwrap_or_default()).into());
        }
        let topology = match &self.topology {
            Some(path) => topo::read_text(path)
                .map_err(|error| Error::Topology { why: format!("{}: {error}", path.display()) })?,
            None => String::new(),
        };
        let table = table::found(&self.table).map_err(|error| Error::Table { why: error.to_string() })?;
        Ok(Words {
            rules: self.rules.clone(),
            algorithms: self.algorithms.clone(),
            trees: self.trees.clone(),
            network: if self.network == Cost::Measured { "measured" } else { "" }.to_owned(),
            topology,
            table: table.map(|table| table.to_toml()).unwrap_or_default(),
        })
    }
}

fn unknown_network(value: String) -> shm_core::Error {
    let why = "it says nothing of the network: write measured, or usual".to_owned();
    shm_core::Error::Environment { name: NETWORK, value, why }
}

impl Words {
    fn into_texts(self) -> [String; 6] {
        [self.rules, self.algorithms, self.trees, self.network, self.topology, self.table]
    }

    fn from_texts(texts: &[&str]) -> Self {
        let mut texts = texts.iter().map(|&text| text.to_owned());
        let [rules, algorithms, trees, network, topology, table] = [(); 6].map(|()| texts.next().unwrap_or_default());
        Self { rules, algorithms, trees, network, topology, table }
    }
}

impl Agreed {
    /// The order of the nodes in rings: depth first through the switches, where they are known.
    pub fn ring(&self, placement: &Placement) -> Result<Arc<[usize]>> {
        if self.words.topology.is_empty() {
            return Ok((0..placement.nodes()).collect());
        }
        let wrong = |error: topo::cluster::Error| Error::Topology { why: error.to_string() };
        let cluster = topo::Cluster::from_topology_conf(&self.words.topology).map_err(wrong)?;
        let hosts: Vec<&String> = (0..placement.nodes()).map(|node| &self.hosts[placement.members(node)[0]]).collect();
        Ok(cluster.order_of(&hosts).map_err(wrong)?.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::local::{Behaviour, LocalTransport};

    /// What two ranks agree on, each with settings of its own.
    fn agreed(settings: [&ClusterSettings; 2], known: Option<&Words>) -> [Result<Words>; 2] {
        let transports = LocalTransport::group(2, Behaviour::default());
        std::thread::scope(|scope| {
            let ranks: Vec<_> = transports
                .into_iter()
                .zip(settings)
                .map(|(transport, settings)| {
                    scope.spawn(move || settings.agree(&transport, known).map(|agreed| agreed.words))
                })
                .collect();
            let words: Vec<_> = ranks.into_iter().map(|rank| rank.join().unwrap()).collect();
            words.try_into().unwrap()
        })
    }

    #[test]
    fn rank_0_counts_and_its_files_are_not_needed_twice() {
        let path = std::env::temp_dir().join(format!("phalanx-switches-{}", std::process::id()));
        std::fs::write(&path, "SwitchName=s Nodes=a,b\n").unwrap();
        let rules = "allreduce:ring".to_owned();
        let first = ClusterSettings { rules, topology: Some(path.clone()), ..ClusterSettings::default() };
        let other = ClusterSettings { rules: "nonsense".to_owned(), ..ClusterSettings::default() };
        let [one, two] = agreed([&first, &other], None).map(Result::unwrap);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(one, two);
        assert_eq!((one.rules.as_str(), one.topology.as_str()), ("allreduce:ring", "SwitchName=s Nodes=a,b\n"));
        // Ranks that had other words, and have neither the file nor the variables of the first.
        for again in agreed([&other, &first], Some(&one)) {
            assert_eq!(again.unwrap(), one);
        }
        for missing in agreed([&first, &other], None) {
            assert!(matches!(missing, Err(Error::Topology { why }) if why.contains("phalanx-switches")));
        }
    }

    #[test]
    fn what_rank_0_cannot_take_is_said_on_all_ranks() {
        let other = ClusterSettings::default();
        let misspelt = ClusterSettings { network: Cost::Unknown, ..ClusterSettings::default() };
        assert!(agreed([&other, &misspelt], None).iter().all(Result::is_ok));
        // A file without end.
        let endless = ClusterSettings { topology: Some("/dev/zero".into()), ..ClusterSettings::default() };
        let file = Asked::File { path: "/dev/zero".into(), adapt: false };
        let table = ClusterSettings { table: file, ..ClusterSettings::default() };
        let word = "more than 16 MiB";
        for (first, words) in [
            (&misspelt, ["PHALANX_NETWORK", "write measured"]),
            (&endless, ["PHALANX_TOPOLOGY: /dev/zero", word]),
            (&table, ["rank 0 cannot take the table: environment", word]),
        ] {
            for told in agreed([first, &other], None) {
                let told = told.unwrap_err().to_string();
                assert!(words.iter().all(|&word| told.matches(word).count() == 1), "{told}");
            }
        }
    }

    #[test]
    fn words_are_texts() {
        let texts = ["a", "", "c", "d", "e", "f"];
        assert_eq!(Words::from_texts(&texts).into_texts(), texts);
    }
}
