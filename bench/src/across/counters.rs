//! What the emulated links carried: the counters that a cluster shows to its ranks (`$CLUSTER_COUNTERS`).
//!
//! The file is that of a network namespace's interfaces, `/proc/net/dev`, in which the switches are. The interface `n3`
//! is the switch's end of host n3's link: it receives what the host sends. `up1` is the lower end of the trunk above
//! switch 1: it sends what goes up.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The variable that names the file.
const VARIABLE: &str = "CLUSTER_COUNTERS";

/// What a link carried, bytes with their headers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Carried {
    /// `n0` for a host's link, `up0` for a switch's trunk.
    pub link: String,
    /// Away from the host, or from the switch to the top.
    pub up: f64,
    /// Towards it.
    pub down: f64,
}

impl Carried {
    /// Whether it is a trunk and not a host's link.
    pub fn is_trunk(&self) -> bool {
        self.link.starts_with("up")
    }

    /// The busier direction.
    pub fn most(&self) -> f64 {
        self.up.max(self.down)
    }
}

/// Bytes up and down so far, by link.
pub type Reading = BTreeMap<String, [u64; 2]>;

/// The counters of the cluster that this rank runs on, if it shows any.
pub fn of_this_cluster() -> Option<PathBuf> {
    std::env::var_os(VARIABLE).map(PathBuf::from).filter(|path| path.exists())
}

/// The links in the text of such a file. What is no link, or no line of it, is left out.
pub fn read(text: &str) -> Reading {
    let mut reading = Reading::new();
    for (name, numbers) in text.lines().filter_map(|line| line.split_once(':')) {
        let name = name.trim();
        let fields: Vec<u64> = numbers.split_whitespace().filter_map(|field| field.parse().ok()).collect();
        let (Some(&received), Some(&sent)) = (fields.first(), fields.get(8)) else { continue };
        if is_link(name, "n") {
            reading.insert(name.into(), [received, sent]);
        } else if is_link(name, "up") {
            reading.insert(name.into(), [sent, received]);
        }
    }
    reading
}

fn is_link(name: &str, kind: &str) -> bool {
    name.strip_prefix(kind).is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

/// Adds to `sum` what was carried from one reading to the next.
pub fn add(sum: &mut Reading, before: &Reading, after: &Reading) {
    for (link, counts) in after {
        let start = before.get(link).copied().unwrap_or_default();
        let total = sum.entry(link.clone()).or_default();
        for way in 0..2 {
            total[way] += counts[way].saturating_sub(start[way]);
        }
    }
}

/// What each link carried in one of `calls` calls; hosts in their order, then trunks.
pub fn each(sum: &Reading, calls: u32) -> Vec<Carried> {
    let share = |count: u64| count as f64 / f64::from(calls.max(1));
    let mut links: Vec<Carried> = sum
        .iter()
        .map(|(link, &[up, down])| Carried { link: link.clone(), up: share(up), down: share(down) })
        .collect();
    links.sort_by_key(|carried| (carried.is_trunk(), carried.link.len()));
    links
}

/// The most that a host's link carried in one direction, and the most of a trunk.
pub fn busiest(carried: &[Carried]) -> (Option<f64>, Option<f64>) {
    let most =
        |trunk: bool| carried.iter().filter(|link| link.is_trunk() == trunk).map(Carried::most).max_by(f64::total_cmp);
    (most(false), most(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:       9       0    0    0    0     0          0         0        9       0    0    0    0     0       0          0
   sw0:      70       1    0    0    0     0          0         0        0       0    0    0    0     0       0          0
    n0:     100       5    0    0    0     0          0         0      300       6    0    0    0     0       0          0
   n10:     110       5    0    0    0     0          0         0      310       6    0    0    0     0       0          0
    n2:     102       5    0    0    0     0          0         0      302       6    0    0    0     0       0          0
   up0:    1000       5    0    0    0     0          0         0     2000       6    0    0    0     0       0          0
 down0:    2000       5    0    0    0     0          0         0     1000       6    0    0    0     0       0          0
";

    #[test]
    fn hosts_receive_downwards_and_trunks_send_upwards() {
        let reading = read(TEXT);
        assert_eq!(reading.keys().collect::<Vec<_>>(), ["n0", "n10", "n2", "up0"]);
        assert_eq!((reading["n0"], reading["up0"]), ([100, 300], [2000, 1000]));
        assert_eq!(read("nonsense\nn1: 5\n"), Reading::new());
    }

    #[test]
    fn what_was_carried_is_the_difference_a_call() {
        let before = read(TEXT);
        let mut after = before.clone();
        after.insert("n2".into(), [302, 402]);
        let mut sum = Reading::new();
        add(&mut sum, &before, &after);
        add(&mut sum, &before, &after);
        let each = each(&sum, 2);
        assert_eq!(each.iter().map(|link| link.link.as_str()).collect::<Vec<_>>(), ["n0", "n2", "n10", "up0"]);
        assert_eq!((each[1].up, each[1].down), (200.0, 100.0));
        assert_eq!(busiest(&each), (Some(200.0), Some(0.0)));
        assert_eq!(busiest(&[]), (None, None));
    }
}
