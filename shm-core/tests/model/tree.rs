//! The trees of models.

use shm_core::Links;

/// A tree of all ranks.
#[derive(Clone, Copy, Debug)]
pub enum Tree {
    /// Everybody is a child of this root.
    Flat(usize),
    /// Everybody is a child of the one before; the first is the root.
    Chain(&'static [usize]),
    /// Everybody is in one relay, whose head is the first, the root.
    Relay(&'static [usize]),
    /// The first rank is the root, and the others are a relay below it.
    RelayBelow(&'static [usize]),
}

impl Tree {
    /// The rank at its root.
    pub fn root(self) -> usize {
        match self {
            Tree::Flat(root) => root,
            Tree::Chain(order) | Tree::Relay(order) | Tree::RelayBelow(order) => order[0],
        }
    }

    /// What `rank` of `size` ranks knows of it.
    pub fn links(self, rank: usize, size: usize) -> Links {
        match self {
            Tree::Flat(root) => Links::flat(rank, size, root),
            Tree::Relay(order) | Tree::RelayBelow(order) => {
                let place = order.iter().position(|&other| other == rank).expect("every rank is in the tree");
                let head = usize::from(matches!(self, Tree::RelayBelow(_)));
                let behind = &order[place + 1..];
                let (parent, children) = match place.checked_sub(head) {
                    None => return Links::new(None, &order[1..2], size),
                    Some(0) => (place.checked_sub(1).map(|root| order[root]), behind),
                    Some(_) => (Some(order[head]), &[][..]),
                };
                Links::new(parent, children, size).in_relay(behind)
            }
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
