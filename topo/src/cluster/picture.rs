//! The text picture of a cluster.

use std::fmt;

use super::Cluster;

/// Levels of switches that a picture shows: what stands before the deepest grows with each.
const LEVELS: usize = 64;

/// One switch a line, with its hosts as a host list; of switches more than 64 deep how many they are.
///
/// ```
/// # fn main() -> Result<(), topo::cluster::Error> {
/// let cluster: topo::Cluster = "2x2x3".parse()?;
/// assert_eq!(cluster.to_string(), "\
/// cluster: 12 hosts, 7 switches, 18 links
/// top
/// ├─ s0
/// │  ├─ s0.0: n[0-2]
/// │  └─ s0.1: n[3-5]
/// └─ s1
///    ├─ s1.0: n[6-8]
///    └─ s1.1: n[9-11]");
/// # Ok(())
/// # }
/// ```
impl fmt::Display for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |number: usize, one: &str, many: &str| format!("{number} {}", if number == 1 { one } else { many });
        write!(
            f,
            "cluster: {}, {}, {}",
            count(self.hosts.len(), "host", "hosts"),
            count(self.switches.len(), "switch", "switches"),
            count(self.links(), "link", "links")
        )?;
        // Switches still to be written, each with what stands before it and before those below it.
        let mut waiting = vec![(self.top, String::new(), String::new())];
        while let Some((at, before, indent)) = waiting.pop() {
            let switch = &self.switches[at];
            write!(f, "\n{before}{}", switch.name)?;
            if let Some(speed) = switch.speed {
                write!(f, " (link speed {speed})")?;
            }
            if !switch.hosts.is_empty() {
                write!(f, ": {}", self.host_list(&switch.hosts))?;
            }
            if self.depth[at] + 1 == LEVELS && !switch.switches.is_empty() {
                write!(f, "\n{indent}└─ .. {} below", count(self.downwards(at).len() - 1, "switch", "switches"))?;
                continue;
            }
            for (i, &below) in switch.switches.iter().enumerate().rev() {
                let (branch, space) =
                    if i + 1 == switch.switches.len() { ("└─ ", "   ") } else { ("├─ ", "│  ") };
                waiting.push((below, format!("{indent}{branch}"), format!("{indent}{space}")));
            }
        }
        Ok(())
    }
}
