//! Clusters as trees of switches: routes, orders of rings, loads of links.
//!
//! A [`Cluster`] is read from Slurm's `topology.conf` ([`Cluster::from_topology_file`]), or made from a short text such
//! as `16+16` or `4x8` (its [`FromStr`](std::str::FromStr)). Each host and each switch but the top one hangs on a
//! switch by a link. A link is full-duplex: it has two *channels*, one in each direction, that do not disturb each
//! other. Hosts, switches, links and channels are counted from 0.
//!
//! [`Cluster::ring`] gives an order of the hosts in which a ring loads no channel twice; [`Cluster::order_of`] gives it
//! for the hosts of one job, and [`consecutive`] does what can be done where nothing is known of switches.
//! [`Cluster::loads`] and [`Cluster::rounds`] count what flows put on each channel.
//!
//! ```
//! use topo::cluster::Order;
//!
//! # fn main() -> Result<(), topo::cluster::Error> {
//! let cluster: topo::Cluster = "16+16".parse()?;
//! let worst = |order| cluster.ring_loads(&cluster.order(order)).into_iter().max();
//! assert_eq!(worst(Order::DepthFirst), Some(1));
//! assert_eq!(worst(Order::Alternating), Some(16));
//! # Ok(())
//! # }
//! ```
//!
//! `docs/CLUSTERS.md` in this crate's folder explains it with pictures.

mod build;
mod conf;
mod described;
mod error;
mod host_list;
mod load;
mod order;
mod picture;
mod ring;
mod route;
mod svg;

use std::collections::HashMap;

pub use error::Error;
pub use host_list::{MOST_NAMES, compress, expand};
pub use load::RoundLoad;
pub use order::Order;
pub use ring::consecutive;
pub use route::{Channel, End};

/// How many hosts a cluster may have, and how many hosts and switches together a file may list.
pub const MOST_HOSTS: usize = 1 << 18;

/// The name of the switch that joins islands. No file can use it: names have no round brackets.
const VIRTUAL_TOP: &str = "(top)";

/// A host (a machine of the cluster), and the switch that it hangs on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Its name, as the description spells it.
    pub name: String,
    /// The index of its switch.
    pub switch: usize,
}

/// A switch, what hangs on it, and what it hangs on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Switch {
    /// Its name, as the description spells it.
    pub name: String,
    /// The switch above it; `None` for the top one.
    pub parent: Option<usize>,
    /// The hosts that hang on it, in the order of the description.
    pub hosts: Vec<usize>,
    /// The switches that hang on it, in the order of the description.
    pub switches: Vec<usize>,
    /// The speed that the description gives, in a unit of its own. Nothing is derived from it.
    pub speed: Option<u64>,
}

/// Hosts on a tree of switches.
///
/// Hosts and switches are counted in the order in which the description names them. Host `h` hangs on link `h`;
/// [`Cluster::channel`] tells what a channel joins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    /// I1: not empty; names differ; `switches[hosts[h].switch].hosts` holds `h`, once.
    hosts: Vec<Host>,
    /// I2: names differ; parents and children agree; all hang below `top`; each has a host at or below it.
    switches: Vec<Switch>,
    top: usize,
    /// How many links are between a switch and the top.
    depth: Vec<usize>,
    /// The link of each switch to its parent, counted on from the hosts' links. The top's is not used.
    uplink: Vec<usize>,
    /// The lower end of each link that is not a host's: `below[link - hosts]`.
    below: Vec<usize>,
    by_name: HashMap<String, usize>,
    notes: Vec<String>,
}

impl Cluster {
    /// The hosts, in the order of the description. There is at least one.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// The switches, in the order of the description. There is at least one.
    pub fn switches(&self) -> &[Switch] {
        &self.switches
    }

    /// The switch that all others are below.
    pub fn top(&self) -> usize {
        self.top
    }

    /// The host of this name.
    ///
    /// A name with dots that is not found is looked for without its domain: `n3.cluster.local` finds `n3`.
    pub fn host(&self, name: &str) -> Option<usize> {
        let short = || name.split_once('.').and_then(|(short, _)| self.by_name.get(short));
        self.by_name.get(name).or_else(short).copied()
    }

    /// The switch of this name.
    pub fn switch(&self, name: &str) -> Option<usize> {
        self.switches.iter().position(|switch| switch.name == name)
    }

    /// What the reader of the description should know, such as that islands were joined. Mostly empty.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The names of hosts, as a host list in this order.
    ///
    /// # Panics
    ///
    /// When a host is not one of the cluster's.
    pub fn host_list(&self, hosts: &[usize]) -> String {
        let names: Vec<&str> = hosts.iter().map(|&host| &self.hosts[host].name[..]).collect();
        compress(&names)
    }

    /// All switches in depth-first order from the top: a switch before those below it, and those in their order.
    pub fn switches_downwards(&self) -> Vec<usize> {
        self.downwards(self.top)
    }

    /// This switch, and all below it, in the same order.
    fn downwards(&self, from: usize) -> Vec<usize> {
        let mut order = Vec::with_capacity(self.switches.len());
        let mut waiting = vec![from];
        while let Some(switch) = waiting.pop() {
            order.push(switch);
            waiting.extend(self.switches[switch].switches.iter().rev());
        }
        order
    }
}
