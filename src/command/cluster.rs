//! `phalanx topo --cluster`: the switches of a cluster, and what a ring puts on its links.

use std::fs;
use std::path::{Path, PathBuf};

use phalanx::topo::Cluster;
use phalanx::topo::cluster::{End, Order};

/// What is shown of a cluster.
#[derive(Debug)]
pub struct Shown<'a> {
    /// A file, or a short text such as `16+16`.
    pub cluster: &'a str,
    /// The order of the ring, if one is asked for.
    pub ring: Option<Order>,
    /// Where it is drawn.
    pub svg: Option<&'a Path>,
}

impl Shown<'_> {
    /// What `phalanx topo` prints; the drawing is in its file then.
    pub fn text(&self) -> Result<String, String> {
        let cluster = read(self.cluster)?;
        let mut text = format!("{cluster}\n");
        for note in cluster.notes() {
            text += &format!("note: {note}\n");
        }
        let ring = self.ring.map(|order| (order, cluster.order(order)));
        if let Some((order, ring)) = &ring {
            text += &format!("\nring ({order}): {}\n", cluster.host_list(ring));
            text += &loads_text(&cluster, &cluster.ring_loads(ring));
        }
        if let Some(file) = self.svg {
            let source = PathBuf::from(self.cluster);
            let name = source.file_name().map_or(self.cluster.into(), |name| name.to_string_lossy());
            let caption = ring.as_ref().map_or(name.to_string(), |(order, _)| format!("{name}: ring in {order} order"));
            let drawn = cluster.to_svg(ring.as_ref().map(|(_, ring)| &ring[..]), &caption);
            fs::write(file, drawn).map_err(|error| {
                format!("cannot write {}: {error}; name a file in a folder that exists", file.display())
            })?;
            text += &format!("\ndrawn in {}\n", file.display());
        }
        Ok(text)
    }
}

/// The cluster of this file, or, when there is no such file, of this short text.
fn read(text: &str) -> Result<Cluster, String> {
    if Path::new(text).exists() {
        return Cluster::from_topology_file(text).map_err(|error| error.to_string());
    }
    text.parse().map_err(|error| format!("there is no file {text:?}, and {error}"))
}

/// One line for each link between switches, and one for the links of hosts that hang on one switch and carry the same;
/// in the order of the tree.
fn loads_text(cluster: &Cluster, loads: &[u64]) -> String {
    let loads_of = |link: usize| (loads[2 * link], loads[2 * link + 1]);
    let mut rows: Vec<(String, u64, u64)> = Vec::new();
    for at in cluster.switches_downwards() {
        let switch = &cluster.switches()[at];
        if let (Some(link), Some(parent)) = (cluster.uplink(at), switch.parent) {
            let (up, down) = loads_of(link);
            rows.push((format!("{} - {}", switch.name, cluster.name(End::Switch(parent))), up, down));
        }
        let mut alike: Vec<((u64, u64), Vec<usize>)> = Vec::new();
        for &host in &switch.hosts {
            match alike.iter_mut().find(|(loads, _)| *loads == loads_of(host)) {
                Some((_, hosts)) => hosts.push(host),
                None => alike.push((loads_of(host), vec![host])),
            }
        }
        for ((up, down), hosts) in alike {
            rows.push((format!("{} - {}", cluster.host_list(&hosts), switch.name), up, down));
        }
    }
    let title = "flows over each link";
    let width = rows.iter().map(|(name, ..)| name.chars().count()).fold(title.len(), usize::max);
    let mut text = format!("\n{title:width$}  {:>6}  {:>6}\n", "up", "down");
    for (name, up, down) in rows {
        let mark = if up.max(down) > 1 { "  shared" } else { "" };
        text += &format!("{name:width$}  {up:6}  {down:6}{mark}\n");
    }
    text += &match cluster.busiest(loads) {
        None => "\nworst: none, as the ring leaves no host\n".to_owned(),
        Some((_, 1)) => "\nworst: 1, so this ring is contention-free\n".to_owned(),
        Some((channel, flows)) => format!(
            "\nworst: {flows} flows from {} to {}; a contention-free ring (`--order dfs`) has 1\n",
            cluster.name(channel.from),
            cluster.name(channel.to)
        ),
    };
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(cluster: &str, ring: Option<Order>) -> Result<String, String> {
        Shown { cluster, ring, svg: None }.text()
    }

    #[test]
    fn a_ring_and_its_loads() {
        let good = text("16+16", Some(Order::DepthFirst)).unwrap();
        assert!(good.starts_with("cluster: 32 hosts, 3 switches, 34 links\ntop\n├─ s0: n[0-15]\n"), "{good}");
        assert!(good.contains("\nring (dfs): n[0-31]\n"), "{good}");
        assert!(good.contains("\nn[0-15] - s0               1       1\n"), "{good}");
        assert!(good.ends_with("contention-free\n"), "{good}");
        let bad = text("16+16", Some(Order::Alternating)).unwrap();
        assert!(bad.contains("\ns1 - top                  16      16  shared\n"), "{bad}");
        assert!(bad.contains("worst: 16 flows from s0 to top;"), "{bad}");
        assert!(!text("16+16", None).unwrap().contains("ring"));
        assert!(text("flat:1", Some(Order::File)).unwrap().contains("leaves no host"));
    }

    #[test]
    fn bad_clusters_are_explained() {
        let error = text("/no/such/topology.conf", None).unwrap_err();
        assert!(error.contains("no file \"/no/such/topology.conf\"") && error.contains("16+16"), "{error}");
        let error = text("/", None).unwrap_err();
        assert!(error.contains("cannot read the cluster file /"), "{error}");
    }
}
