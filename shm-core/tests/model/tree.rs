//! The trees of models.

use shm_core::Links;

/// A tree of all ranks.
#[derive(Clone, Copy, Debug)]
pub enum Tree {
    /// Everybody is a child of this root.
    Flat(usize),
    /// Everybody is a child of the one before; the first is the root.
    Chain(&'static [usize]),
}

impl Tree {
    /// The rank at its root.
    pub fn root(self) -> usize {
        match self {
            Tree::Flat(root) => root,
            Tree::Chain(order) => order[0],
        }
    }

    /// What `rank` of `size` ranks knows of it.
    pub fn links(self, rank: usize, size: usize) -> Links {
        match self {
            Tree::Flat(root) => Links::flat(rank, size, root),
            Tree::Chain(order) => {
                assert_eq!(order.len(), size, "every rank is in the chain");
                let place = order.iter().position(|&other| other == rank).expect("every rank is in the chain");
                let parent = place.checked_sub(1).map(|above| order[above]);
                let children: Vec<usize> = order.get(place + 1).copied().into_iter().collect();
                Links::new(parent, &children, size)
            }
        }
    }
}
