//! The order of hosts in which a ring loads no channel twice.

use std::collections::HashMap;
use std::hash::Hash;

use super::{Cluster, Error};

/// How many characters of a list of hosts an error shows.
const SHOWN: usize = 60;

impl Cluster {
    /// The hosts in depth-first order from the top: [`Cluster::ring_from`] for that switch.
    pub fn ring(&self) -> Vec<usize> {
        self.ring_from(self.top)
    }

    /// The hosts in the order in which a depth-first walk from a switch first visits them. The last one is followed by
    /// the first: a ring in which each host sends to the next loads no channel with more than one flow, and so is
    /// contention-free.
    ///
    /// Why: such a walk, which comes back to where it started, passes each link twice, once in each direction. The way
    /// from each host to the next is a part of that walk with detours left out, and the parts do not overlap. So it is
    /// for any switch to start from, for any order in which a switch visits what hangs on it, and for any hosts that
    /// are left out of the ring.
    ///
    /// At each switch the walk visits its hosts first, then the switches below it, both in the order of the
    /// description, and then the switch above it.
    ///
    /// # Cost
    ///
    /// Linear in hosts and switches.
    ///
    /// # Panics
    ///
    /// When there is no such switch.
    ///
    /// # References
    ///
    /// A. Faraj, P. Patarasuk and X. Yuan, "Bandwidth efficient all-to-all broadcast on switched clusters"; P.
    /// Patarasuk and X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", which closes the
    /// ring in the same way.
    pub fn ring_from(&self, switch: usize) -> Vec<usize> {
        let mut ring = Vec::with_capacity(self.hosts.len());
        // Switches to enter, each with the one that it is entered from. Not recursive: switches may form a chain.
        let mut waiting = vec![(switch, None)];
        while let Some((at, from)) = waiting.pop() {
            let switch = &self.switches[at];
            ring.extend(&switch.hosts);
            let neighbours = switch.switches.iter().copied().chain(switch.parent);
            let others = neighbours.filter(|&next| Some(next) != from).map(|next| (next, Some(at)));
            let start = waiting.len();
            waiting.extend(others);
            waiting[start..].reverse();
        }
        ring
    }

    /// The ring of a job: `order[i]` is the index in `hosts` of the `i`-th in the ring, and the last is followed by the
    /// first.
    ///
    /// `hosts` names the host of each rank (or of each host's leader), in any order; the cluster may have others. Ranks
    /// of one host stay together, in their order. Such a ring is contention-free between hosts, and equal on all ranks
    /// that pass the same names in the same order for the same description.
    ///
    /// # Errors
    ///
    /// * [`Error::UnknownHost`] when a name is not one of the cluster's ([`Cluster::host`] says how it is looked for).
    ///
    /// ```
    /// # fn main() -> Result<(), topo::cluster::Error> {
    /// let cluster: topo::Cluster = "4+4".parse()?;
    /// // Ranks that some scheduler dealt around two switches.
    /// let order = cluster.order_of(&["n0", "n5", "n1", "n6", "n0"])?;
    /// assert_eq!(order, [0, 4, 2, 1, 3]); // n0, n0, n1, n5, n6
    /// # Ok(())
    /// # }
    /// ```
    pub fn order_of<Name: AsRef<str>>(&self, hosts: &[Name]) -> Result<Vec<usize>, Error> {
        let mut turn = vec![0; self.hosts.len()];
        for (i, host) in self.ring().into_iter().enumerate() {
            turn[host] = i;
        }
        let turns: Vec<usize> = hosts
            .iter()
            .map(|name| self.host(name.as_ref()).map(|host| turn[host]).ok_or_else(|| self.unknown(name.as_ref())))
            .collect::<Result<_, _>>()?;
        let mut order: Vec<usize> = (0..hosts.len()).collect();
        order.sort_by_key(|&rank| turns[rank]);
        Ok(order)
    }

    fn unknown(&self, host: &str) -> Error {
        let all: Vec<usize> = (0..self.hosts.len().min(1000)).collect();
        let list = self.host_list(&all);
        let mut hosts: String = list.chars().take(SHOWN).collect();
        if hosts.len() < list.len() || all.len() < self.hosts.len() {
            hosts.push_str("..");
        }
        Error::UnknownHost { host: host.to_owned(), hosts }
    }
}

/// The ring where nothing is known of switches: `order[i]` is the rank that is the `i`-th in the ring.
///
/// `nodes` tells the machine of each rank, by any name or number that differs between machines. Machines follow one
/// another in the order of their first rank, and ranks of one machine stay together, in their order: each machine is
/// entered once and left once, so that its link carries one flow in each direction.
///
/// Equal on all ranks that pass equal lists.
///
/// # References
///
/// P. Patarasuk and X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", Lemma 6, which
/// states it for ranks that are numbered so already.
///
/// ```
/// assert_eq!(topo::cluster::consecutive(&["b", "a", "b", "c", "a"]), [0, 2, 1, 4, 3]);
/// ```
pub fn consecutive<Node: Eq + Hash>(nodes: &[Node]) -> Vec<usize> {
    let mut first = HashMap::new();
    let firsts: Vec<usize> = nodes.iter().enumerate().map(|(rank, node)| *first.entry(node).or_insert(rank)).collect();
    let mut order: Vec<usize> = (0..nodes.len()).collect();
    order.sort_by_key(|&rank| firsts[rank]);
    order
}
