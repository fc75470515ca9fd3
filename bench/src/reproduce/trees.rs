//! Trees on a described machine of two sockets, simulated: kinds, K, skew, and whether they know the sockets.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::{Value, json};
use shm_core::Collective;

use super::piece::{Piece, Work};
use super::taken::Taken;
use crate::error::Result;
use crate::node_simulation::candidates::{algorithm, levels};
use crate::node_simulation::figures::{Costs, MachineFile};
use crate::node_simulation::places::{Place, Placement};
use crate::node_simulation::simulate::{Case, Pace};
use crate::sizes::show_size;

/// The cells of the paper: four of 8 KB [slides 23 and 24].
pub const PAPER_CELLS: &str = "up_cell=8K,up_cells=4,down_cell=8K,down_cells=4";
/// Shapes of trees.
const SHAPES: [&str; 8] = ["flat", "kary:2", "kary:3", "kary:4", "kary:8", "knomial:2", "knomial:4", "knomial:8"];
/// Shapes that are tried with the other skew too.
const BOTH_SKEWS: [&str; 2] = ["kary:3", "knomial:4"];

/// A machine on which trees are simulated.
pub struct Machine {
    costs: Costs,
    places: Vec<Place>,
    /// Its name, for people.
    pub name: String,
}

impl Machine {
    /// A machine file, all of its cores with a rank each, in blocks.
    ///
    /// # Errors
    ///
    /// [`Error::Usage`](crate::error::Error::Usage) for a machine that is not known.
    pub fn find(name: &str) -> Result<Machine> {
        let file = MachineFile::find(name)?;
        let cores = file.places()?;
        let places = Placement::Spread.places(&cores, cores.len())?;
        Ok(Machine { costs: file.costs(), places, name: file.name.clone() })
    }

    /// Ranks.
    pub fn ranks(&self) -> usize {
        self.places.len()
    }

    /// Microseconds of a collective over each tree.
    fn times(&self, what: Collective, bytes: usize) -> Result<Value> {
        let mut times = BTreeMap::new();
        for tree in self.trees(what) {
            let trees = match what {
                Collective::Broadcast => format!("release: {tree}"),
                _ => format!("gather: {tree}; release: flat"),
            };
            let algorithm = algorithm(&tree, &format!("{what}:cells,{PAPER_CELLS}"), &trees)?;
            let case =
                Case { costs: &self.costs, places: &self.places, what, bytes, algorithm: &algorithm, pace: Pace::Each };
            times.insert(tree, case.simulate()?.microseconds);
        }
        Ok(json!(times))
    }

    /// The trees: with the paper's skew all shapes, unaware and aware, and with the other one some.
    fn trees(&self, what: Collective) -> Vec<String> {
        let levels = levels(&self.places);
        let (skew, other, leaders) = match what {
            Collective::Broadcast => ("left", "right", "leaders-first"),
            _ => ("right", "left", "leaders-last"),
        };
        let mut trees = Vec::new();
        for shape in SHAPES {
            trees.extend([format!("{shape}:{skew}"), format!("{shape}:{skew}:{levels}:{leaders}")]);
            if BOTH_SKEWS.contains(&shape) {
                trees.extend([format!("{shape}:{other}"), format!("{shape}:{other}:{levels}:{leaders}")]);
            }
        }
        trees
    }
}

/// One piece a collective and size.
pub fn pieces(machine: &Rc<Machine>, collectives: &[Collective], sizes: &[u64]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for &what in collectives {
        for &bytes in sizes {
            let machine = Rc::clone(machine);
            pieces.push(Piece {
                key: key(what, bytes),
                work: Work::Here(Box::new(move || machine.times(what, bytes as usize))),
            });
        }
    }
    pieces
}

fn key(what: Collective, bytes: u64) -> String {
    format!("trees/{what}/{}", show_size(bytes))
}

/// The times of one collective at one size.
pub struct Times {
    /// Message bytes.
    pub bytes: u64,
    times: BTreeMap<String, f64>,
}

impl Times {
    /// What was taken, ascending by size.
    pub fn of(taken: &Taken, what: Collective, sizes: &[u64]) -> Vec<Times> {
        let one = |&bytes: &u64| {
            let times = serde_json::from_value(taken.get(&key(what, bytes))?.clone()).ok()?;
            Some(Times { bytes, times })
        };
        sizes.iter().filter_map(one).collect()
    }

    /// The tree of this shape and skew: unaware, or aware of sockets.
    pub fn tree(&self, shape: &str, skew: &str, aware: bool) -> Option<f64> {
        let plain = format!("{shape}:{skew}");
        let name = |tree: &&String| {
            if aware { tree.starts_with(&format!("{plain}:")) } else { **tree == plain }
        };
        self.times.keys().find(name).and_then(|tree| self.times.get(tree)).copied()
    }

    /// The quickest tree that is aware, or that is not, with its time.
    pub fn best(&self, aware: bool) -> Option<(&str, f64)> {
        let those = self.times.iter().filter(|(tree, _)| tree.contains("leaders") == aware);
        those.min_by(|a, b| a.1.total_cmp(b.1)).map(|(tree, time)| (tree.as_str(), *time))
    }
}

/// The paper's tree of the study of awareness: k-ary with K = 3 up to 4 KB, then 2; the unaware one k-nomial with K = 8
/// up to 16 KB, then 2 [slide 25].
pub fn papers(bytes: u64, aware: bool) -> &'static str {
    match (aware, bytes) {
        (true, 0..=4096) => "kary:3",
        (true, _) => "kary:2",
        (false, 0..=16384) => "knomial:8",
        (false, _) => "knomial:2",
    }
}

/// A tree's shape, without skew and levels.
pub fn shape(tree: &str) -> String {
    tree.split(':').take(if tree.starts_with("flat") { 1 } else { 2 }).collect::<Vec<_>>().join(":")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tree_is_simulated_once_and_found_again() {
        let machine = Rc::new(Machine::find("xeon-2x20").unwrap());
        assert_eq!(machine.ranks(), 40);
        let pieces = pieces(&machine, &[Collective::Reduce], &[8]);
        let Work::Here(compute) = &pieces[0].work else { panic!() };
        let mut taken = Taken::default();
        taken.put(&pieces[0].key, compute().unwrap());
        let times = Times::of(&taken, Collective::Reduce, &[8, 64]);
        assert_eq!((times.len(), times[0].times.len()), (1, 20));
        let (aware, unaware) = (times[0].best(true).unwrap(), times[0].best(false).unwrap());
        assert!(aware.0.contains("package") && !unaware.0.contains("package"));
        for shape in SHAPES {
            let [plain, knowing] = [false, true].map(|aware| times[0].tree(shape, "right", aware).unwrap());
            assert!(plain >= unaware.1 && knowing >= aware.1, "{shape}");
        }
        assert!(times[0].tree("kary:3", "left", true).is_some() && times[0].tree("kary:2", "left", true).is_none());
    }

    #[test]
    fn shapes_without_the_rest() {
        assert_eq!((shape("flat:left"), shape("kary:3:right:package:leaders-last")), ("flat".into(), "kary:3".into()));
    }
}
