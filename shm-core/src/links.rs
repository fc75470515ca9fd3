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
        Self { parent, children, in_order, readers }
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
