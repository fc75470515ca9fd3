//! A plan for shm-core made of topo's trees.

use std::sync::{Arc, Mutex};

use shm_core::{Links, Plan, Step};
use topo::{SocketMap, Tree};

use crate::rules::TreeRules;

/// A tree, and what it was built for: step, class, root.
type Built = (Step, usize, usize, Arc<Tree>);

/// Trees by rules, for ranks at known places.
pub struct TopologyPlan {
    rules: TreeRules,
    /// Package, NUMA node and L3 of each rank.
    places: Vec<[usize; 3]>,
    map: SocketMap,
    /// The tree that was built last, since the ranks of a process ask for it one after the other.
    last: Mutex<Option<Built>>,
}

impl TopologyPlan {
    /// A plan for ranks whose package, NUMA node and L3 are given, in a job with `crowd` ranks for each core (rounded
    /// up).
    #[must_use]
    pub fn new(rules: TreeRules, places: Vec<[usize; 3]>, crowd: u32) -> Self {
        Self::settled(rules.on_crowd(crowd), places)
    }

    /// A plan of rules that are those of the job's crowd already.
    fn settled(rules: TreeRules, places: Vec<[usize; 3]>) -> Self {
        let map = SocketMap::from_groups(places.clone());
        Self { rules, places, map, last: Mutex::new(None) }
    }

    /// The whole tree of a class.
    #[must_use]
    pub fn tree(&self, step: Step, class: usize, root: usize) -> Arc<Tree> {
        let mut last = self.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some((of_step, of_class, of_root, tree)) = &*last
            && (*of_step, *of_class, *of_root) == (step, class, root)
        {
            return Arc::clone(tree);
        }
        let tree = self
            .rules
            .tree(step, self.places.len(), class)
            .build(&self.map, root)
            .expect("specifications are checked when they are parsed, roots by the call");
        let tree = Arc::new(tree);
        *last = Some((step, class, root, Arc::clone(&tree)));
        tree
    }
}

// SAFETY: answers hang on the rules and on the places, which all ranks of a job have from one note; a tree is built of
// all ranks.
unsafe impl Plan for TopologyPlan {
    fn class(&self, step: Step, bytes: usize) -> usize {
        self.rules.class(step, self.places.len(), bytes)
    }

    fn links(&self, step: Step, class: usize, root: usize, rank: usize, size: usize) -> Links {
        let tree = self.tree(step, class, root);
        Links::new(tree.parent[rank], &tree.children[rank], size)
    }

    fn name(&self, step: Step, class: usize) -> String {
        self.rules.tree(step, self.places.len(), class).to_string()
    }

    fn restrict(&self, members: &[usize]) -> Arc<dyn Plan> {
        let places = members.iter().map(|&member| self.places[member]).collect();
        Arc::new(Self::settled(self.rules.clone(), places))
    }
}
