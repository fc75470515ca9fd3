//! `phalanx topo`: the machine, where ranks would be bound, and trees over them; or a cluster.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{ArgGroup, Args};
use hier::launch::default_policy;
use hier::remark;
use phalanx::topo::cluster::Order;
use phalanx::topo::{BindPolicy, Error, Level, Location, Machine, SocketMap, Tree, TreeSpec, Usable};

use super::cluster::Shown;
use super::{Bind, out, ranks};

/// Show a machine, where its ranks would be bound, and trees over them; or the switches of a cluster, and rings
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
#[command(group = ArgGroup::new("drawn").args(["trees", "cluster"]))]
pub struct Topo {
    /// A machine in hwloc's words instead of this one: "pack:2 core:20 pu:2"
    #[arg(long, value_name = "WORDS", conflicts_with = "xml")]
    synthetic: Option<String>,

    /// A machine from a file that `lstopo-no-graphics FILE.xml` wrote
    #[arg(long, value_name = "FILE")]
    xml: Option<PathBuf>,

    /// How many ranks, 1 to 256 [default: one for each usable core]
    #[arg(short = 'n', long, value_name = "N", value_parser = ranks)]
    ranks: Option<usize>,

    /// How ranks are bound [default: core if there are N usable cores, else none]
    #[arg(long, value_enum)]
    bind: Option<Bind>,

    /// Trees to build: flat, kary:K or knomial:K, each with options after further colons
    #[arg(long = "tree", value_name = "SPEC", num_args = 1..)]
    trees: Vec<TreeSpec>,

    /// The root of the trees
    #[arg(long, value_name = "RANK", default_value_t = 0)]
    root: usize,

    /// The switches of a cluster instead of a machine: Slurm's topology.conf, or "flat:32", "16+16", "4x8"
    #[arg(long, value_name = "FILE", conflicts_with_all = ["synthetic", "xml", "ranks", "bind", "root"])]
    cluster: Option<String>,

    /// Show the ring over all hosts of the cluster, and what it puts on each link
    #[arg(long, requires = "cluster")]
    ring: bool,

    /// The order of the ring: dfs, file, reverse, alternating or random:SEED [default: dfs]
    #[arg(long, value_name = "ORDER", requires = "ring")]
    order: Option<Order>,

    /// Draw the tree or the cluster into this file; the second tree of several goes to FILE-2.svg, and so on
    #[arg(long, value_name = "FILE", requires = "drawn")]
    svg: Option<PathBuf>,
}

const AFTER: &str = "\
Trees:
  flat                               the root serves everybody
  kary:3                             each serves up to 3
  knomial:4                          the parent is the rank with its last digit, in base 4, made 0
  kary:3:right                       the largest subtree is served last (default: left)
  kary:2:right:package:leaders-last  one message between packages; also numa, l3, leaders-first

Clusters:
  topology.conf     lines such as `SwitchName=s0 Nodes=n[0-15]` and `SwitchName=top Switches=s[0-1]`
  flat:32           one switch with 32 hosts
  16+16             two switches with 16 hosts each, below one more
  2x4x8             2 switches of 4 switches of 8 hosts

Examples:
  phalanx topo
  phalanx topo --synthetic 'pack:2 core:20 pu:1' --tree kary:2:right:package:leaders-last --svg tree.svg
  phalanx topo --ranks 16 --tree knomial:4 kary:3 --root 5
  phalanx topo --cluster /etc/slurm/topology.conf --ring
  phalanx topo --cluster 16+16 --ring --order alternating --svg ring.svg";

impl Topo {
    pub fn run(self) -> ExitCode {
        let text = match self.text() {
            Ok(text) => text,
            Err(error) => {
                remark(format_args!("{error}"));
                return ExitCode::from(2);
            }
        };
        match out::say(&text) {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => {
                remark(format_args!("{why}"));
                ExitCode::FAILURE
            }
        }
    }

    fn text(&self) -> Result<String, String> {
        if let Some(cluster) = &self.cluster {
            let ring = self.ring.then(|| self.order.unwrap_or_default());
            return Shown { cluster, ring, svg: self.svg.as_deref() }.text();
        }
        let (machine, usable) = self.machine().map_err(|error| error.to_string())?;
        let cores = usable.cores(&machine);
        let ranks = self.ranks.unwrap_or(cores.min(hier::launch::MOST_RANKS));
        let policy = self.bind.map_or_else(|| default_policy(ranks, cores), BindPolicy::from);
        let places = machine.place(ranks, policy, &usable);
        let locations: Vec<Location> =
            places.iter().map(|pus| pus.as_deref().map(|pus| machine.location(pus)).unwrap_or_default()).collect();
        let map = SocketMap::from_locations(&locations);

        let mut text = format!("{machine}\n{}\n\n", usable_text(&machine, &usable));
        text += &places_text(&places, &locations, policy);
        for (number, spec) in self.trees.iter().enumerate() {
            let tree = spec.build(&map, self.root).map_err(|error| error.to_string())?;
            text += &format!("\n{}\n{tree}\n", caption(spec, &tree));
            if let Some(file) = &self.svg {
                let file = numbered(file, number);
                let level = spec.levels.first().copied().unwrap_or(Level::Package);
                fs::write(&file, tree.to_svg(&map, level, &spec.to_string())).map_err(|error| {
                    format!("cannot write {}: {error}; name a file in a folder that exists", file.display())
                })?;
                text += &format!("drawn in {}\n", file.display());
            }
        }
        Ok(text)
    }

    /// The machine that was asked for, and what of it ranks may use: all of one that is only described.
    fn machine(&self) -> Result<(Machine, Usable), Error> {
        let described = match (&self.synthetic, &self.xml) {
            (Some(words), _) => Machine::synthetic(words)?,
            (None, Some(file)) => Machine::from_xml_file(file)?,
            (None, None) => return Ok((Machine::discover()?, Usable::discover()?)),
        };
        let usable = Usable::all_of(&described);
        Ok((described, usable))
    }
}

fn usable_text(machine: &Machine, usable: &Usable) -> String {
    let quota = usable.quota_cores.map_or(String::new(), |quota| format!(", a quota of {quota:.2} cores"));
    format!(
        "usable: {} of {} PUs{quota}; ranks that run at the same time: {}",
        usable.pus.len(),
        machine.pus().len(),
        usable.cores(machine)
    )
}

fn places_text(places: &[Option<Vec<usize>>], locations: &[Location], policy: BindPolicy) -> String {
    let mut text = format!("{} rank{}, bound to: {policy}\n", places.len(), if places.len() == 1 { "" } else { "s" });
    if policy == BindPolicy::None {
        return text;
    }
    for (rank, (pus, location)) in places.iter().zip(locations).enumerate() {
        let Some(pus) = pus else { continue };
        let part = |name: &str, index: Option<usize>| index.map_or(String::new(), |index| format!(", {name} {index}"));
        let pus: Vec<String> = pus.iter().map(usize::to_string).collect();
        text += &format!(
            "  rank {rank:3}: PU {}{}{}{}{}\n",
            pus.join(","),
            part("core", location.core),
            part("L3", location.l3),
            part("NUMA node", location.numa),
            part("package", location.package)
        );
    }
    text
}

fn caption(spec: &TreeSpec, tree: &Tree) -> String {
    format!(
        "tree {spec}, root {}: {} ranks, depth {}, at most {} children",
        tree.root,
        tree.size(),
        tree.height(),
        tree.widest()
    )
}

/// The file for the tree of this number, counted from 0.
fn numbered(file: &Path, number: usize) -> PathBuf {
    if number == 0 {
        return file.to_owned();
    }
    let part = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    let extension = file.extension().map_or(String::new(), |_| format!(".{}", part(file.extension())));
    file.with_file_name(format!("{}-{}{extension}", part(file.file_stem()), number + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topo(words: &str, trees: &[&str]) -> Topo {
        let trees = trees.iter().map(|tree| tree.parse().unwrap()).collect();
        let synthetic = Some(words.to_owned());
        let (cluster, ring, order) = (None, false, None);
        Topo { synthetic, xml: None, ranks: None, bind: None, trees, root: 0, cluster, ring, order, svg: None }
    }

    #[test]
    fn a_described_machine_and_its_trees() {
        let text = topo("pack:2 core:2 pu:1", &["kary:2", "flat"]).text().unwrap();
        assert!(text.starts_with("machine: 2 packages"), "{text}");
        assert!(text.contains("rank   3: PU 3, core 3"), "{text}");
        assert!(
            text.contains("tree kary:2, root 0: 4 ranks, depth 2, at most 2 children\n0\n├─ 1\n│  └─ 3\n└─ 2\n"),
            "{text}"
        );
        assert!(text.contains("tree flat, root 0: 4 ranks, depth 1, at most 3 children"), "{text}");
    }

    #[test]
    fn more_ranks_than_cores_are_not_bound() {
        let text = Topo { ranks: Some(5), ..topo("core:2 pu:1", &[]) }.text().unwrap();
        assert!(text.ends_with("5 ranks, bound to: none\n"), "{text}");
    }

    #[test]
    fn bad_input_is_explained() {
        assert!(topo("pack:two", &[]).text().unwrap_err().contains("pack:2"));
        assert!(Topo { root: 9, ..topo("core:2 pu:1", &["flat"]) }.text().unwrap_err().contains("root 9"));
        let xml = Topo { synthetic: None, xml: Some("/no/such.xml".into()), ..topo("", &[]) };
        assert!(xml.text().unwrap_err().contains("/no/such.xml"));
    }

    #[test]
    fn a_cluster_and_its_ring() {
        let topo = Topo { cluster: Some("2+2".to_owned()), ring: true, ..topo("", &[]) };
        assert!(topo.text().unwrap().contains("ring (dfs): n[0-3]\n"));
        let topo = Topo { order: Some(Order::Alternating), ..topo };
        assert!(topo.text().unwrap().contains("ring (alternating): n[0,2,1,3]\n"));
    }

    #[test]
    fn options_that_do_not_go_together() {
        use clap::Parser;
        for (words, why) in [
            ("--cluster 2+2 --xml a.xml", "cannot be used with"),
            ("--cluster 2+2 --synthetic core:2", "cannot be used with"),
            ("--cluster 2+2 --ranks 4", "cannot be used with"),
            ("--cluster 2+2 --bind core", "cannot be used with"),
            ("--cluster 2+2 --root 0", "cannot be used with"),
            ("--cluster 2+2 --tree flat", "cannot be used with"),
            ("--ring", "--cluster <FILE>"),
            ("--cluster 2+2 --order dfs", "--ring"),
            ("--cluster 2+2 --ring --order sorted", "random:SEED"),
            ("--svg a.svg", "--tree <SPEC>...|--cluster <FILE>"),
        ] {
            let words = ["phalanx", "topo"].into_iter().chain(words.split(' '));
            let error = super::super::Arguments::try_parse_from(words.clone()).unwrap_err().to_string();
            assert!(error.contains(why), "{words:?}: {error}");
        }
        for words in ["--cluster 2+2 --svg a.svg", "--cluster 2+2 --ring --order dfs", "--tree flat --svg a.svg"] {
            let words = ["phalanx", "topo"].into_iter().chain(words.split(' '));
            assert!(super::super::Arguments::try_parse_from(words).is_ok());
        }
    }

    #[test]
    fn each_tree_has_its_file() {
        assert_eq!(numbered(Path::new("a/b.svg"), 0), Path::new("a/b.svg"));
        assert_eq!(numbered(Path::new("a/b.svg"), 1), Path::new("a/b-2.svg"));
        assert_eq!(numbered(Path::new("b"), 2), Path::new("b-3"));
    }
}
