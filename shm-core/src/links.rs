//! A rank's place in a tree: all that the steps need to know of it.

use std::sync::Arc;

use crate::protocol::Readers;

/// Parent and children of one rank in one tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Links {
    parent: Option<usize>,
    children: Arc<[usize]>,
    /// The same in rank order.
    in_order: Arc<[usize]>,
    /// The children as readers.
    readers: Readers,
    /// If it is in a relay: those behind this rank, the nearest first, and then the children that are in none, in rank
    /// order; and how many are behind it.
    relay: Option<(Arc<[usize]>, usize)>,
}

impl Links {
    /// The place of a rank below `parent` (none: it is the root) and above `children`, in the order in
    /// which they are served, in a communicator of `size` ranks.
    #[must_use]
    pub fn new(parent: Option<usize>, children: &[usize], size: usize) -> Self {
        let children: Arc<[usize]> = children.into();
        let all = children.len() + 1 == size;
        let readers = if all { Readers::All } else { Readers::These(Arc::clone(&children)) };
        let in_order = match children.is_sorted() {
            true => Arc::clone(&children),
            false => {
                let mut children = children.to_vec();
                children.sort_unstable();
                children.into()
            }
        };
        Self { parent, children, in_order, readers, relay: None }
    }

    /// The same place in a tree that has relays, in one of which it is. A relay is a rank, at its head, with some of its
    /// children that are leaves, in an order: these ranks are `behind` this one, the nearest first, and nobody is behind
    /// the last.
    ///
    /// In the gather steps of a reduction the last one of a relay fills a cell, and each one adds to it what it has, one
    /// after the other: the head takes out what they all have. So one cell serves all of them, and stays in the cache of
    /// a core that they share; where they have cores of their own it goes from one to the other each time. What somebody
    /// lends is added by the next one that lends nothing. All are combined in this order: from the last one to the head.
    ///
    /// Each rank of a relay says so, its last one with nobody behind it; the list of each begins with the next one, whose
    /// own list is the rest of it. No rank is in two.
    #[must_use]
    pub fn in_relay(self, behind: &[usize]) -> Self {
        debug_assert!(self.children.is_empty() || behind.iter().all(|rank| self.children.contains(rank)));
        let others = self.in_order.iter().filter(|child| !behind.contains(child));
        let below = behind.iter().chain(others).copied().collect();
        Self { relay: Some((below, behind.len())), ..self }
    }

    /// The place of `rank` in the flat tree: every other rank is a child of `root`.
    #[must_use]
    pub fn flat(rank: usize, size: usize, root: usize) -> Self {
        if rank == root {
            let children: Vec<usize> = (0..size).filter(|&other| other != root).collect();
            Self::new(None, &children, size)
        } else {
            Self::new(Some(root), &[], size)
        }
    }

    /// The rank above, if any.
    #[inline]
    #[must_use]
    pub fn parent(&self) -> Option<usize> {
        self.parent
    }

    /// The ranks below, in the order in which they are served.
    #[inline]
    #[must_use]
    pub fn children(&self) -> &[usize] {
        &self.children
    }

    /// The ranks below, in rank order: that in which their contributions are combined.
    #[inline]
    #[must_use]
    pub(crate) fn in_order(&self) -> &[usize] {
        &self.in_order
    }

    /// The ranks behind this one in its relay, the nearest first, and the children that are in none, in rank order.
    #[inline]
    #[must_use]
    pub fn relay(&self) -> (&[usize], &[usize]) {
        let (below, behind) = self.below();
        below.split_at(behind)
    }

    /// Both, one after the other, and how many are behind.
    #[inline]
    #[must_use]
    pub(crate) fn below(&self) -> (&[usize], usize) {
        self.relay.as_ref().map_or((&self.in_order, 0), |(below, behind)| (below, *behind))
    }

    /// Whether this rank is in a relay.
    #[inline]
    #[must_use]
    pub fn has_relay(&self) -> bool {
        self.relay.is_some()
    }

    /// Whether this rank is the root.
    #[inline]
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.parent.is_none()
    }

    /// The children as the readers of what this rank releases.
    #[inline]
    #[must_use]
    pub(crate) fn readers(&self) -> &Readers {
        &self.readers
    }
}
