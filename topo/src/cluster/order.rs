//! Orders of a ring, good and bad, to compare.

use std::fmt;
use std::str::FromStr;

use super::{Cluster, Error};

/// An order in which a ring visits all hosts of a cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    /// `dfs`: depth-first from the top, as in [`Cluster::ring`].
    #[default]
    DepthFirst,
    /// `file`: as the description names them.
    File,
    /// `reverse`: the description backwards.
    Reverse,
    /// `alternating`: the first host of each switch, then the second of each, and so on. Where schedulers deal ranks
    /// around switches, it is what a ring in rank order becomes.
    Alternating,
    /// `random:SEED`: shuffled, the same for the same seed in every build.
    Random(u64),
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Order::DepthFirst => f.write_str("dfs"),
            Order::File => f.write_str("file"),
            Order::Reverse => f.write_str("reverse"),
            Order::Alternating => f.write_str("alternating"),
            Order::Random(seed) => write!(f, "random:{seed}"),
        }
    }
}

impl FromStr for Order {
    type Err = Error;

    /// # Errors
    ///
    /// * [`Error::Order`] when the text is none of the names.
    fn from_str(text: &str) -> Result<Self, Error> {
        let seed = || text.strip_prefix("random:")?.parse().ok();
        match text {
            "dfs" => Ok(Order::DepthFirst),
            "file" => Ok(Order::File),
            "reverse" => Ok(Order::Reverse),
            "alternating" => Ok(Order::Alternating),
            _ => seed().map(Order::Random).ok_or_else(|| Error::Order { text: text.to_owned() }),
        }
    }
}

impl Cluster {
    /// All hosts in this order.
    pub fn order(&self, order: Order) -> Vec<usize> {
        let mut hosts: Vec<usize> = (0..self.hosts.len()).collect();
        match order {
            Order::DepthFirst => return self.ring(),
            Order::File => {}
            Order::Reverse => hosts.reverse(),
            Order::Alternating => {
                let mut turn = vec![0; self.hosts.len()];
                for switch in &self.switches {
                    for (i, &host) in switch.hosts.iter().enumerate() {
                        turn[host] = i;
                    }
                }
                hosts.sort_by_key(|&host| turn[host]);
            }
            Order::Random(seed) => shuffle(&mut hosts, seed),
        }
        hosts
    }
}

/// Fisher and Yates' shuffle, over the numbers of SplitMix64 (Steele, Lea and Flood, 2014).
fn shuffle(hosts: &mut [usize], seed: u64) {
    let mut state = seed;
    for last in (1..hosts.len()).rev() {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        hosts.swap(last, (mixed % (last as u64 + 1)) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for text in ["dfs", "file", "reverse", "alternating", "random:0", "random:18446744073709551615"] {
            assert_eq!(text.parse::<Order>().unwrap().to_string(), text);
        }
        for text in ["", "DFS", "random", "random:", "random:-1", "random:x", "dfs "] {
            assert!(text.parse::<Order>().unwrap_err().to_string().contains("random:SEED"), "{text}");
        }
    }

    #[test]
    fn each_order_is_what_it_says() {
        // The top lists its switches against the order of the lines.
        let text = "SwitchName=a Nodes=n[0-2]\nSwitchName=b Nodes=n[3-4]\nSwitchName=top Switches=b,a Nodes=m";
        let cluster = Cluster::from_topology_conf(text).unwrap();
        for (order, hosts) in [
            (Order::DepthFirst, "m,n[3-4,0-2]"),
            (Order::File, "n[0-4],m"),
            (Order::Reverse, "m,n[4,3,2,1,0]"),
            (Order::Alternating, "n[0,3],m,n[1,4,2]"),
        ] {
            assert_eq!(cluster.host_list(&cluster.order(order)), hosts, "{order}");
        }
    }

    #[test]
    fn shuffles_are_fair_and_fixed() {
        let cluster: Cluster = "flat:3".parse().unwrap();
        let mut seen = std::collections::HashMap::new();
        for seed in 0..6000 {
            *seen.entry(cluster.order(Order::Random(seed))).or_insert(0) += 1;
        }
        assert_eq!(seen.len(), 6);
        assert!(seen.values().all(|&count| (850..1150).contains(&count)), "{seen:?}");
        assert_eq!(cluster.order(Order::Random(7)), cluster.order(Order::Random(7)));
    }
}
