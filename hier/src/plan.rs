//! A plan for shm-core made of topo's trees.

use std::sync::{Arc, Mutex};

use shm_core::{Links, Plan, Step};
use topo::{SocketMap, Tree};

use crate::rules::{OfCrowd, TreeRules};

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
        let ranks = self.places.len();
        let build = |root| {
            let tree = self.rules.tree(step, ranks, class).build(&self.map, root);
            tree.expect("specifications are checked when they are parsed, roots by the call")
        };
        let tree = Arc::new(match self.rules.neighbours(step, ranks, class) {
            None => build(root),
            // Groups stay together whoever the root is: it takes the place of its group's first rank.
            Some((neighbours, _)) => {
                let first = root - root % neighbours;
                build(first).with_swapped(first, root)
            }
        });
        *last = Some((step, class, root, Arc::clone(&tree)));
        tree
    }

    /// The ranks behind this one in its relay, if it is in one: where groups of neighbours are relays, and it is not alone
    /// in its group.
    fn behind(&self, (step, class): (Step, usize), root: usize, rank: usize) -> Option<Vec<usize>> {
        let ranks = self.places.len();
        let (neighbours, kind) = self.rules.neighbours(step, ranks, class)?;
        if (step, kind) != (Step::Gather, OfCrowd::Relay) {
            return None;
        }
        // In the order of their places in the tree, of which the root has that of its group's first rank.
        let first = root - root % neighbours;
        let mut order: Vec<usize> = (first..ranks).chain(0..first).collect();
        order.swap(0, root - first);
        let group = order.chunks(neighbours).find(|group| group.contains(&rank))?;
        let behind = group.iter().skip_while(|&&other| other != rank).skip(1);
        (group.len() > 1).then(|| behind.copied().collect())
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
        let links = Links::new(tree.parent[rank], &tree.children[rank], size);
        match self.behind((step, class), root, rank) {
            Some(behind) => links.in_relay(&behind),
            None => links,
        }
    }

    fn name(&self, step: Step, class: usize) -> String {
        self.rules.name(step, self.places.len(), class)
    }

    fn restrict(&self, members: &[usize]) -> Arc<dyn Plan> {
        let places = members.iter().map(|&member| self.places[member]).collect();
        Arc::new(Self::settled(self.rules.clone(), places))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where ranks share cores, each group of neighbours but the root's sends one message to another, whoever is root.
    #[test]
    fn neighbours_combine_first() {
        for (ranks, crowd) in [(8, 4), (16, 8), (16, 4), (6, 2), (9, 3), (2, 2)] {
            let plan = TopologyPlan::new(TreeRules::default(), vec![[0; 3]; ranks], crowd as u32);
            let class = plan.class(Step::Gather, 1 << 20);
            for root in 0..ranks {
                let tree = plan.tree(Step::Gather, class, root);
                tree.check().unwrap();
                assert_eq!(tree.root, root);
                let leaves =
                    |&(rank, parent): &(usize, Option<usize>)| parent.is_some_and(|to| to / crowd != rank / crowd);
                let left = tree.parent.iter().copied().enumerate().filter(leaves).count();
                assert_eq!(left, ranks / crowd - 1, "{ranks} ranks, {crowd} a core, root {root}");
            }
        }
        // Whatever is left over.
        for (ranks, crowd) in [(7, 4), (5, 3), (17, 9), (3, 2)] {
            let plan = TopologyPlan::new(TreeRules::default(), vec![[0; 3]; ranks], crowd);
            let class = plan.class(Step::Gather, 1 << 20);
            for root in 0..ranks {
                let tree = plan.tree(Step::Gather, class, root);
                tree.check().unwrap();
                let kind = if ranks < 5 { "knomial" } else { "relay" };
                assert_eq!((tree.root, plan.name(Step::Gather, class)), (root, format!("{kind}:{crowd}")));
            }
        }
    }

    /// Each rank is in one relay, with others of its group, or alone; all but its head are leaves below that.
    #[test]
    fn groups_of_neighbours_are_relays() {
        let rules: TreeRules = "gather: flat < 1K, relay:crowd; release: relay:crowd".parse().unwrap();
        for ranks in 1..=20 {
            for crowd in 2..=6 {
                let plan = TopologyPlan::new(rules.clone(), vec![[0; 3]; ranks], crowd);
                let links = |step, class, root| -> Vec<Links> {
                    (0..ranks).map(|rank| plan.links(step, class, root, rank, ranks)).collect()
                };
                for root in 0..ranks {
                    for (step, bytes) in [(Step::Gather, 0), (Step::Release, 1 << 20)] {
                        assert!(links(step, plan.class(step, bytes), root).iter().all(|links| !links.has_relay()));
                    }
                    let links = links(Step::Gather, plan.class(Step::Gather, 1 << 20), root);
                    let mut seen = vec![0; ranks];
                    for (rank, own) in links.iter().enumerate() {
                        let (behind, others) = own.relay();
                        assert!(others.iter().all(|child| own.children().contains(child)));
                        let (first, head) = match own.parent() {
                            Some(head) if own.has_relay() && own.children().is_empty() => (false, head),
                            _ => (true, rank),
                        };
                        for (at, &next) in behind.iter().enumerate() {
                            assert!(links[next].children().is_empty() && links[next].parent() == Some(head));
                            assert_eq!(links[next].relay(), (&behind[at + 1..], &[][..]));
                            seen[next] += usize::from(first);
                        }
                        if first {
                            seen[rank] += 1;
                            assert_eq!(behind.len() + others.len(), own.children().len());
                            assert!(behind.len() < crowd as usize);
                        }
                    }
                    assert!(seen.iter().all(|&seen| seen == 1), "{ranks} ranks, {crowd} a core, root {root}");
                    let relays = links.iter().filter(|links| links.has_relay()).count();
                    assert!(relays + 1 >= ranks, "{relays} of {ranks}, {crowd} a core");
                }
            }
        }
    }
}
