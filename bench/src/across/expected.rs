//! What a schedule makes the links carry, counted from its programs.

use hier::nodes::Placement;
use hier::schedule::{Algorithm, Goal, segment_range};
use serde::{Deserialize, Serialize};
use topo::Cluster;
use topo::cluster::End;

/// Bytes over the busiest links in one call, headers left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expected {
    /// The most that a host sends or gets.
    pub host: u64,
    /// The most that a link between switches carries in one direction; none where no switches are known.
    pub trunk: Option<u64>,
}

/// The switches of the hosts of a job.
#[derive(Clone, Debug)]
pub struct Switches {
    cluster: Cluster,
    /// The cluster's host of each node.
    hosts: Vec<usize>,
    /// The nodes in an order that loads every link once.
    ring: Vec<usize>,
}

impl Switches {
    /// Those that a file in Slurm's form describes; `names` has the host of each node. None for what is not understood.
    pub fn of(text: &str, names: &[String]) -> Option<Switches> {
        let cluster = Cluster::from_topology_conf(text).ok()?;
        let hosts = names.iter().map(|name| cluster.host(name)).collect::<Option<Vec<_>>>()?;
        let ring = cluster.order_of(names).ok()?;
        Some(Switches { cluster, hosts, ring })
    }

    /// The nodes in an order that loads every link once.
    pub fn ring(&self) -> &[usize] {
        &self.ring
    }
}

/// What an allreduce of `elements` elements of `size` bytes by `algorithm` makes the links carry, when `places` has the
/// node of each rank of the schedule. None for an algorithm that does not serve them.
pub fn allreduce(
    algorithm: Algorithm,
    places: &[usize],
    elements: usize,
    size: u64,
    switches: Option<&Switches>,
) -> Option<Expected> {
    let pattern = algorithm.pattern(Goal::Allreduce, places.len() as u32).ok()?;
    let mut flows: Vec<(usize, usize, u64)> = Vec::new();
    for rank in 0..places.len() as u32 {
        for round in 0..pattern.rounds() {
            for send in &pattern.round(rank, round).sends {
                let segments = pattern.segments();
                let of = |segment: u32| segment_range(elements, segments as usize, segment as usize).len() as u64;
                let bytes: u64 = send.span.segments(segments).map(of).sum::<u64>() * size;
                let (from, to) = (places[rank as usize], places[send.to as usize]);
                if from != to {
                    flows.push((from, to, bytes));
                }
            }
        }
    }
    let nodes = places.iter().max().map_or(0, |most| most + 1);
    let (mut sent, mut got) = (vec![0_u64; nodes], vec![0_u64; nodes]);
    for &(from, to, bytes) in &flows {
        sent[from] += bytes;
        got[to] += bytes;
    }
    let host = sent.into_iter().chain(got).max().unwrap_or(0);
    let trunk = switches.and_then(|switches| {
        let loads = switches.cluster.loads(flows.iter().map(|&(a, b, n)| (switches.hosts[a], switches.hosts[b], n)));
        let between = |&(channel, _): &(usize, &u64)| {
            let channel = switches.cluster.channel(channel);
            matches!((channel.from, channel.to), (End::Switch(_), End::Switch(_)))
        };
        loads.iter().enumerate().filter(between).map(|(_, &load)| load).max()
    });
    Some(Expected { host, trunk })
}

/// The nodes of the ranks of a schedule: one rank a node, in the order of the ring where there is one; or all ranks.
pub fn places(placement: &Placement, flat: bool, ring: Option<&[usize]>) -> Vec<usize> {
    match (flat, ring) {
        (true, _) => (0..placement.ranks()).map(|rank| placement.node_of(rank)).collect(),
        (false, Some(ring)) => ring.to_vec(),
        (false, None) => (0..placement.nodes()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use hier::schedule::Order;

    use super::*;

    const TWO_SWITCHES: &str = "SwitchName=a Nodes=n[0-3]\nSwitchName=b Nodes=n[4-7]\nSwitchName=t Switches=a,b\n";

    fn names(order: [usize; 8]) -> Vec<String> {
        order.map(|host| format!("n{host}")).into()
    }

    #[test]
    fn a_ring_of_nodes_sends_its_formula_over_every_link() {
        let switches = Switches::of(TWO_SWITCHES, &names([0, 1, 2, 3, 4, 5, 6, 7])).unwrap();
        let places: Vec<usize> = (0..8).collect();
        let ring = allreduce(Algorithm::Ring, &places, 8000, 8, Some(&switches)).unwrap();
        assert_eq!(ring, Expected { host: 2 * 7 * 8000, trunk: Some(2 * 7 * 8000) });
        assert_eq!(allreduce(Algorithm::Ring, &places, 8000, 8, None).unwrap().trunk, None);
    }

    #[test]
    fn an_order_by_switches_mends_a_ring_over_scattered_hosts() {
        let switches = Switches::of(TWO_SWITCHES, &names([0, 4, 1, 5, 2, 6, 3, 7])).unwrap();
        assert_eq!(switches.ring(), [0, 2, 4, 6, 1, 3, 5, 7]);
        let trunk = |places: &[usize]| allreduce(Algorithm::Ring, places, 8000, 8, Some(&switches)).unwrap().trunk;
        assert_eq!(trunk(switches.ring()), Some(112_000));
        assert_eq!(trunk(&[0, 1, 2, 3, 4, 5, 6, 7]), Some(4 * 112_000));
    }

    #[test]
    fn whole_vectors_and_distances_by_hand() {
        let switches = Switches::of(TWO_SWITCHES, &names([0, 1, 2, 3, 4, 5, 6, 7])).unwrap();
        let of = |algorithm| allreduce(algorithm, &[0, 1, 2, 3, 4, 5, 6, 7], 8000, 8, Some(&switches)).unwrap();
        // Three exchanges of whole vectors; in the last, four hosts of each switch send theirs over the trunk.
        assert_eq!(of(Algorithm::RecursiveDoubling), Expected { host: 3 * 64_000, trunk: Some(4 * 64_000) });
        // The distance 4 has an eighth of the vector when near comes first, and half of it when far does, there and
        // back.
        let near = of(Algorithm::HalvingDoubling { order: Order::Nearest });
        let far = of(Algorithm::HalvingDoubling { order: Order::Farthest });
        assert_eq!((near.trunk, far.trunk), (Some(2 * 4 * 8000), Some(2 * 4 * 32_000)));
    }

    #[test]
    fn ranks_of_one_node_send_nothing_over_its_link() {
        let placement = Placement::new(&[0, 0, 1, 1]);
        let places = places(&placement, true, None);
        let ring = allreduce(Algorithm::Ring, &places, 400, 8, None).unwrap();
        // One rank of each node sends to the other node: six rounds of a quarter.
        assert_eq!((places, ring.host), (vec![0, 0, 1, 1], 6 * 100 * 8));
        let scattered = allreduce(Algorithm::Ring, &[0, 1, 0, 1], 400, 8, None).unwrap();
        assert_eq!(scattered.host, 2 * 6 * 100 * 8);
    }

    #[test]
    fn what_is_not_known_is_none() {
        assert!(Switches::of(TWO_SWITCHES, &["m1".into()]).is_none());
        assert!(Switches::of("nonsense", &names([0; 8])).is_none());
        assert!(allreduce(Algorithm::Dissemination, &[0, 1], 10, 8, None).is_none());
    }
}
