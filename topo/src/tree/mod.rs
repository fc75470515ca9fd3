//! Trees over ranks: who talks to whom, and in which order.

mod build;
mod picture;
mod shape;
mod socket_map;
mod spec;
mod spelling;
mod svg;

pub use shape::theory_depth;
pub use socket_map::SocketMap;
pub use spec::{Kind, Leaders, Level, Skew, TreeSpec};

use crate::Error;

/// A tree over the ranks `0..size`: plain links, which say nothing of how they were made.
///
/// A *release step* walks it from the root to the leaves, a *gather step* from the leaves to the root.
/// Printed with `{}` it is a picture in text, [`Tree::to_svg`] draws it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// The rank that has no parent.
    pub root: usize,
    /// For each rank its parent; `None` for the root only.
    pub parent: Vec<Option<usize>>,
    /// For each rank its children, in the order in which it serves them.
    pub children: Vec<Vec<usize>>,
    /// For each rank the number of links between it and the root.
    pub depth: Vec<usize>,
}

impl Tree {
    /// The number of ranks.
    pub fn size(&self) -> usize {
        self.parent.len()
    }

    /// The same tree, in which these two ranks have each other's place.
    #[must_use]
    pub fn with_swapped(self, one: usize, other: usize) -> Self {
        let of = |rank| match rank {
            _ if rank == one => other,
            _ if rank == other => one,
            _ => rank,
        };
        let Tree { root, mut parent, mut children, mut depth } = self;
        parent.swap(one, other);
        children.swap(one, other);
        depth.swap(one, other);
        parent.iter_mut().flatten().chain(children.iter_mut().flatten()).for_each(|rank| *rank = of(*rank));
        Tree { root: of(root), parent, children, depth }
    }

    /// The number of links on the longest way from the root to a leaf.
    pub fn height(&self) -> usize {
        self.depth.iter().copied().max().unwrap_or(0)
    }

    /// The largest number of children that one rank serves.
    pub fn widest(&self) -> usize {
        self.children.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// Whether this is a tree over all ranks: from the root each is reached exactly once, parents and children agree,
    /// and the depths are right. Every tree that [`TreeSpec::build`] makes is; links that come from elsewhere may not
    /// be.
    ///
    /// # Errors
    ///
    /// * [`Error::BrokenTree`] with the first contradiction.
    pub fn check(&self) -> Result<(), Error> {
        let size = self.size();
        let broken = |reason: String| Err(Error::BrokenTree { size, reason });
        if self.children.len() != size || self.depth.len() != size {
            return broken(format!(
                "it lists {size} parents, {} lists of children and {} depths",
                self.children.len(),
                self.depth.len()
            ));
        }
        if self.root >= size {
            return broken(format!("its root is {}", self.root));
        }
        if let Some(parent) = self.parent[self.root] {
            return broken(format!("its root {} has a parent, {parent}", self.root));
        }
        if self.depth[self.root] != 0 {
            return broken(format!("its root has depth {}", self.depth[self.root]));
        }
        let mut reached = vec![false; size];
        reached[self.root] = true;
        let mut waiting = vec![self.root];
        while let Some(rank) = waiting.pop() {
            for &child in &self.children[rank] {
                if child >= size {
                    return broken(format!("rank {rank} has the child {child}"));
                }
                if self.parent[child] != Some(rank) {
                    let parent = self.parent[child];
                    return broken(format!("{child} is a child of {rank}, but its parent is {parent:?}"));
                }
                if reached[child] {
                    return broken(format!("rank {rank} lists its child {child} twice"));
                }
                if self.depth[child] != self.depth[rank] + 1 {
                    let (above, below) = (self.depth[rank], self.depth[child]);
                    return broken(format!("{rank} has depth {above} and its child {child} depth {below}"));
                }
                reached[child] = true;
                waiting.push(child);
            }
        }
        match reached.iter().position(|&reached| !reached) {
            Some(rank) => broken(format!("rank {rank} cannot be reached from the root {}", self.root)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Tree {
        Tree {
            root: 1,
            parent: vec![Some(1), None, Some(0)],
            children: vec![vec![2], vec![0], vec![]],
            depth: vec![1, 0, 2],
        }
    }

    #[test]
    fn a_good_tree_passes() {
        assert!(good().check().is_ok());
        assert_eq!((good().size(), good().height(), good().widest()), (3, 2, 1));
    }

    #[test]
    fn every_contradiction_is_found() {
        type Harm = fn(&mut Tree);
        let harms: [(Harm, &str); 10] = [
            (|tree| tree.root = 3, "its root is 3"),
            (|tree| tree.parent[1] = Some(2), "has a parent"),
            (|tree| tree.depth[1] = 1, "its root has depth 1"),
            (|tree| tree.depth[2] = 1, "its child 2 depth 1"),
            (|tree| tree.children[1].push(0), "child 0 twice"),
            (|tree| tree.children[1].push(2), "its parent is Some(0)"),
            (|tree| tree.children[2].push(9), "the child 9"),
            (|tree| tree.children[0].clear(), "rank 2 cannot be reached"),
            (|tree| tree.parent[2] = None, "its parent is None"),
            (|tree| drop(tree.children.pop()), "2 lists of children"),
        ];
        for (harm, why) in harms {
            let mut tree = good();
            harm(&mut tree);
            let error = tree.check().unwrap_err().to_string();
            assert!(error.contains(why), "{why}: {error}");
        }
    }
}
