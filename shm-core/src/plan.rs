//! Which trees a communicator uses: decided elsewhere, asked for here.

use std::sync::Arc;

use crate::links::Links;

/// The two steps that have trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// From the root to the leaves.
    Release = 0,
    /// From the leaves to the root.
    Gather = 1,
}

/// Classes of message sizes that a plan may tell apart, for each step.
pub const MOST_CLASSES: usize = 8;

/// A source of trees.
///
/// Messages are divided into classes by size; each class of each step has one tree for each root.
///
/// # Safety
/// Who reads whose cells goes by what a plan answers. So it answers alike on all ranks of a communicator, and each
/// time; and for each step, class and root what it says of the ranks is one tree of all of them with this root, and its
/// relays, if it has any, are as [`Links::in_relay`] wants them.
pub unsafe trait Plan: Send + Sync {
    /// The class, below [`MOST_CLASSES`], of a message of `bytes` bytes.
    fn class(&self, step: Step, bytes: usize) -> usize;

    /// The place of `rank` in the tree of a class with this `root`, in a communicator of `size` ranks.
    fn links(&self, step: Step, class: usize, root: usize, rank: usize, size: usize) -> Links;

    /// The name of the tree of a class, for people.
    fn name(&self, step: Step, class: usize) -> String;

    /// The plan of a communicator that is made of these ranks of this one, in this order.
    fn restrict(&self, members: &[usize]) -> Arc<dyn Plan>;
}

/// Flat trees for everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlatPlan;

// SAFETY: answers hang on the arguments alone, and `Links::flat` gives one tree.
unsafe impl Plan for FlatPlan {
    fn class(&self, _: Step, _: usize) -> usize {
        0
    }

    fn links(&self, _: Step, _: usize, root: usize, rank: usize, size: usize) -> Links {
        Links::flat(rank, size, root)
    }

    fn name(&self, _: Step, _: usize) -> String {
        "flat".to_owned()
    }

    fn restrict(&self, _: &[usize]) -> Arc<dyn Plan> {
        Arc::new(FlatPlan)
    }
}
