//! Whatever the tree of switches: routes are ways, and the depth-first ring loads no channel twice.
//!
//! Trees are drawn at random, written as `topology.conf`, and read back, so that the reader is tested as well. The
//! oracles work on the lists that the text was written from, not on the library's tree.

use std::fmt::Write;

use proptest::prelude::*;
use topo::Cluster;
use topo::cluster::{End, Order, compress, consecutive, expand};

/// Switches with the one above each (the first has none) and their numbers of hosts, and the order of their lines.
#[derive(Debug, Clone)]
struct Drawn {
    above: Vec<Option<usize>>,
    hosts: Vec<usize>,
    lines: Vec<usize>,
}

impl Drawn {
    fn text(&self) -> String {
        let mut text = String::from("# a cluster\n\n");
        for &switch in &self.lines {
            let _ = write!(text, "SwitchName=s{switch}");
            if self.hosts[switch] > 0 {
                let _ = write!(text, " nodes=\"s{switch}n[1-{}]\"", self.hosts[switch]);
            }
            let below: Vec<String> = (0..self.above.len())
                .filter(|&other| self.above[other] == Some(switch))
                .map(|other| format!("s{other}"))
                .collect();
            if !below.is_empty() {
                let _ = write!(text, " \\\n SWITCHES = {} # below s{switch}", below.join(","));
            }
            text.push('\n');
        }
        text
    }

    fn cluster(&self) -> Cluster {
        let cluster =
            Cluster::from_topology_conf(&self.text()).unwrap_or_else(|error| panic!("{}\n{error}", self.text()));
        assert_eq!(cluster.hosts().len(), self.hosts.iter().sum::<usize>());
        assert_eq!(cluster.switches().len(), self.above.len());
        assert_eq!(cluster.links(), cluster.hosts().len() + self.above.len() - 1);
        cluster
    }

    /// The switches that a host is below, by the host's name and the lists alone.
    fn above_host(&self, name: &str) -> Vec<usize> {
        let mut above = Vec::new();
        let mut next = name[1..].split('n').next().and_then(|switch| switch.parse().ok());
        while let Some(switch) = next {
            above.push(switch);
            next = self.above[switch];
        }
        above
    }

    /// For each switch, how many steps of a ring of these hosts leave what is below it.
    fn leaving(&self, ring: &[&str]) -> Vec<u64> {
        let mut leaving = vec![0; self.above.len()];
        for (i, name) in ring.iter().enumerate() {
            let next = self.above_host(ring[(i + 1) % ring.len()]);
            self.above_host(name).iter().filter(|switch| !next.contains(switch)).for_each(|&s| leaving[s] += 1);
        }
        leaving
    }
}

/// Stars, chains and all between, with hosts on any switch and at least one on each leaf.
fn drawn(most: usize) -> impl Strategy<Value = Drawn> {
    (1..=most).prop_flat_map(|count| {
        let above = prop_oneof![
            prop::collection::vec(any::<prop::sample::Index>(), count)
                .prop_map(|draws| (0..draws.len()).map(|i| (i > 0).then(|| draws[i].index(i.max(1)))).collect()),
            Just((0..count).map(|i| i.checked_sub(1)).collect::<Vec<_>>()),
        ];
        let hosts = prop::collection::vec(prop_oneof![2 => 0..=5usize, 1 => Just(0)], count);
        let lines = Just((0..count).collect::<Vec<_>>()).prop_shuffle();
        (above, hosts, lines).prop_map(|(above, mut hosts, lines): (Vec<Option<usize>>, Vec<usize>, _)| {
            for (switch, hosts) in hosts.iter_mut().enumerate() {
                if !above.contains(&Some(switch)) {
                    *hosts = 1.max(*hosts);
                }
            }
            Drawn { above, hosts, lines }
        })
    })
}

fn names<'a>(cluster: &'a Cluster, hosts: &[usize]) -> Vec<&'a str> {
    hosts.iter().map(|&host| &cluster.hosts()[host].name[..]).collect()
}

fn is_permutation(order: &[usize], count: usize) -> bool {
    let mut sorted = order.to_vec();
    sorted.sort_unstable();
    sorted.iter().copied().eq(0..count)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// Faraj, Patarasuk and Yuan: from any switch, the ring loads each channel with one flow at most.
    #[test]
    fn depth_first_rings_are_contention_free(drawn in drawn(24)) {
        let cluster = drawn.cluster();
        let hosts = cluster.hosts().len();
        for switch in 0..cluster.switches().len() {
            let ring = cluster.ring_from(switch);
            prop_assert!(is_permutation(&ring, hosts));
            let loads = cluster.ring_loads(&ring);
            prop_assert!(loads.iter().all(|&load| load <= 1), "from {switch} of\n{cluster}\n{loads:?}");
            // A host sends once and receives once, unless it is alone.
            prop_assert!(loads[..2 * hosts].iter().all(|&load| load == u64::from(hosts > 1)));
        }
        prop_assert_eq!(cluster.ring(), cluster.ring_from(cluster.top()));
    }

    /// The same holds for the ranks of a job on some of the hosts, in any order and several on one host.
    #[test]
    fn rings_of_jobs_are_contention_free(
        drawn in drawn(16),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 1..40),
    ) {
        let cluster = drawn.cluster();
        let ranks: Vec<usize> = picks.iter().map(|pick| pick.index(cluster.hosts().len())).collect();
        let order = cluster.order_of(&names(&cluster, &ranks)).unwrap();
        prop_assert!(is_permutation(&order, ranks.len()));
        let ring: Vec<usize> = order.iter().map(|&rank| ranks[rank]).collect();
        prop_assert!(cluster.ring_loads(&ring).iter().all(|&load| load <= 1), "{ring:?} on\n{cluster}");
        // Ranks of one host follow one another in their order.
        for (i, pair) in order.windows(2).enumerate() {
            prop_assert!(ring[i] != ring[i + 1] || pair[0] < pair[1]);
        }
        let mut hosts = ring.clone();
        hosts.dedup();
        let changes = hosts.len();
        hosts.sort_unstable();
        hosts.dedup();
        prop_assert_eq!(hosts.len(), changes);
    }

    /// In any order, what a ring puts on a switch's link is how often it leaves the hosts below; it returns as often.
    #[test]
    fn loads_of_rings_are_crossings(drawn in drawn(16), seed: u64) {
        let cluster = drawn.cluster();
        for order in [Order::DepthFirst, Order::File, Order::Reverse, Order::Alternating, Order::Random(seed)] {
            let ring = cluster.order(order);
            prop_assert!(is_permutation(&ring, cluster.hosts().len()), "{order}");
            let loads = cluster.ring_loads(&ring);
            let leaving = drawn.leaving(&names(&cluster, &ring));
            for (switch, flows) in leaving.into_iter().enumerate() {
                let at = cluster.switch(&format!("s{switch}")).unwrap();
                match cluster.uplink(at) {
                    Some(link) => prop_assert_eq!((loads[2 * link], loads[2 * link + 1]), (flows, flows), "{}", order),
                    None => prop_assert_eq!(flows, 0),
                }
            }
        }
    }

    /// A route starts and ends where it should, each channel starts where the one before ends, and none comes twice.
    #[test]
    fn routes_are_ways(drawn in drawn(16)) {
        let cluster = drawn.cluster();
        let hosts = cluster.hosts().len();
        for (from, to) in (0..hosts).flat_map(|from| (0..hosts).map(move |to| (from, to))) {
            let route = cluster.route(from, to);
            let mut at = End::Host(from);
            let mut seen = vec![at];
            for &channel in &route {
                prop_assert!(channel < cluster.channels());
                let step = cluster.channel(channel);
                prop_assert_eq!(step.link, channel / 2);
                prop_assert_eq!(step.from, at);
                at = step.to;
                prop_assert!(!seen.contains(&at), "{} to {} is at {:?} twice", from, to, at);
                seen.push(at);
            }
            prop_assert_eq!(at, End::Host(to));
            // The way back takes the other channel of the same links.
            let back: Vec<usize> = cluster.route(to, from).into_iter().rev().map(|channel| channel ^ 1).collect();
            prop_assert_eq!(back, route);
        }
    }

    /// Loads and rounds are what one gets by adding up routes.
    #[test]
    fn loads_are_sums_over_routes(
        drawn in drawn(8),
        draws in prop::collection::vec(
            prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..1000u64), 0..20),
            0..5,
        ),
    ) {
        let cluster = drawn.cluster();
        let hosts = cluster.hosts().len();
        let rounds: Vec<Vec<(usize, usize, u64)>> = draws
            .iter()
            .map(|round| round.iter().map(|(from, to, bytes)| (from.index(hosts), to.index(hosts), *bytes)).collect())
            .collect();
        let over = |round: &[(usize, usize, u64)], channel: usize| -> Vec<u64> {
            round.iter().filter(|flow| cluster.route(flow.0, flow.1).contains(&channel)).map(|flow| flow.2).collect()
        };
        let all = rounds.concat();
        let loads = cluster.loads(all.iter().copied());
        for (channel, &load) in loads.iter().enumerate() {
            prop_assert_eq!(load, over(&all, channel).iter().sum::<u64>());
        }
        prop_assert_eq!(cluster.busiest(&loads).map_or(0, |(_, most)| most), loads.iter().copied().max().unwrap());
        let worst = cluster.rounds(rounds.iter().map(|round| round.iter().copied()));
        prop_assert_eq!(worst.len(), rounds.len());
        for (worst, round) in worst.iter().zip(&rounds) {
            let flows = |channel| over(round, channel).len();
            prop_assert_eq!(worst.flows, (0..cluster.channels()).map(flows).max().unwrap());
            prop_assert_eq!(worst.channel.map(flows), (worst.flows > 0).then_some(worst.flows));
            let bytes = (0..cluster.channels()).map(|channel| over(round, channel).iter().sum::<u64>()).max().unwrap();
            prop_assert_eq!(worst.bytes, bytes);
        }
    }

    /// Lemma 6: ranks of a machine stay together and in order, and machines in the order of their first rank.
    #[test]
    fn consecutive_keeps_machines_together(nodes in prop::collection::vec(0..12u8, 0..60)) {
        let order = consecutive(&nodes);
        prop_assert!(is_permutation(&order, nodes.len()));
        // The oracle: rank by rank, all ranks of each machine that is new.
        let mut expected: Vec<usize> = Vec::new();
        for rank in 0..nodes.len() {
            if !expected.contains(&rank) {
                expected.extend((rank..nodes.len()).filter(|&other| nodes[other] == nodes[rank]));
            }
        }
        prop_assert_eq!(order, expected);
    }

    #[test]
    fn host_lists_are_read_back(
        names in prop::collection::vec(("[a-c]{0,2}", prop_oneof![0..30u32, 95..105u32], 1..4usize, "[.-]?"), 1..40),
    ) {
        let names: Vec<String> = names
            .into_iter()
            .map(|(prefix, number, width, end)| format!("{prefix}{number:0width$}{end}"))
            .collect();
        prop_assert_eq!(expand(&compress(&names)).unwrap(), names);
    }

    /// Whatever stands in a file, reading it ends, with a cluster or with an error that says something.
    #[test]
    fn any_text_is_read_or_refused(
        words in prop::collection::vec(
            prop::sample::select(vec![
                "SwitchName=", "Nodes=", "Switches=", "LinkSpeed=", "a", "b", "s[0-1]", "s0", "s1", "[", "]", ",", "-",
                "=", " ", " ", "\n", "\n", "\\\n", "#", "\"", "9", "n[1-3]", "ä",
            ]),
            0..30,
        ),
    ) {
        match Cluster::from_topology_conf(&words.concat()) {
            Ok(cluster) => prop_assert!(cluster.ring_loads(&cluster.ring()).iter().all(|&load| load <= 1)),
            Err(error) => prop_assert!(error.to_string().contains("; "), "{error}"),
        }
    }
}

/// With two switches of n hosts, alternating order sends all n hosts of each across at once.
#[test]
fn alternating_order_shares_the_trunk() {
    for n in [1, 2, 4, 16, 100] {
        let cluster: Cluster = format!("{n}+{n}").parse().unwrap();
        let worst = |order| cluster.ring_loads(&cluster.order(order)).into_iter().max();
        assert_eq!(worst(Order::DepthFirst), Some(1));
        assert_eq!(worst(Order::Alternating), Some(n));
    }
}

/// By hand: recursive doubling on 16 + 16 hosts, distances 1 to 16, crosses the trunk in the last round alone; with
/// alternating ranks in the first alone.
#[test]
fn rounds_of_recursive_doubling() {
    let cluster: Cluster = "16+16".parse().unwrap();
    let worst = |order: Order| -> Vec<usize> {
        let host = cluster.order(order);
        let rounds = (0..5).map(|k| (0..32).map(|rank| (host[rank], host[rank ^ (1 << k)], 1)).collect::<Vec<_>>());
        cluster.rounds(rounds).iter().map(|load| load.flows).collect()
    };
    assert_eq!(worst(Order::File), [1, 1, 1, 1, 16]);
    assert_eq!(worst(Order::Alternating), [16, 1, 1, 1, 1]);
}

/// Many hosts, and switches in a long chain: little time, and no deep recursion.
#[test]
fn large_clusters() {
    let cluster: Cluster = "64x64x64".parse().unwrap();
    assert_eq!(cluster.hosts().len(), 1 << 18);
    assert_eq!(cluster.ring_loads(&cluster.ring()).into_iter().max(), Some(1));

    let depth = 20_000;
    let mut text = format!("SwitchName=s{depth} Nodes=n{depth}\n");
    for i in 0..depth {
        let _ = writeln!(text, "SwitchName=s{i} Nodes=n{i} Switches=s{}", i + 1);
    }
    let chain = Cluster::from_topology_conf(&text).unwrap();
    assert_eq!(chain.ring_loads(&chain.ring()).into_iter().max(), Some(1));
    let host = |i: usize| chain.host(&format!("n{i}")).unwrap();
    assert_eq!(chain.route(host(0), host(depth)).len(), depth + 2);
}

#[test]
fn hosts_are_found_by_name() {
    let text = "SwitchName=s Nodes=n[08-10],login.here";
    let cluster = Cluster::from_topology_conf(text).unwrap();
    assert_eq!(cluster.host("n09"), Some(1));
    assert_eq!(cluster.host("n09.cluster.local"), Some(1));
    assert_eq!(cluster.host("login.here"), Some(3));
    assert_eq!((cluster.host("n9"), cluster.host("login")), (None, None));
    assert_eq!(cluster.order_of(&["n10.x", "n08", "n10"]).unwrap(), [1, 0, 2]);
    let error = cluster.order_of(&["n08", "n11"]).unwrap_err().to_string();
    assert!(error.contains("no host \"n11\"") && error.contains("n[08-10],login.here"), "{error}");
}
