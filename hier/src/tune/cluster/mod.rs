//! Finding the part of a table that speaks of calls across nodes, by measuring them.
//!
//! What messages cost is measured first, and from that follows what a call would take without a table. Then, size by
//! size, three questions one after the other: which schedule, with one leader a node and whole messages; how many
//! leaders; and what slices. Each is answered as within a node: another choice is taken only where it wins by more than
//! the spread.
//!
//! | file | what |
//! |---|---|
//! | `candidate` | what is compared |
//! | `search` | which candidate for which sizes |
//! | `measure` | times on a communicator |
//! | `explain` | the findings as a table, and as text |

mod candidate;
mod explain;
mod measure;
mod search;

pub use candidate::{Candidate, Shape};
pub use explain::{explanation, network_of};
pub use measure::tune_cluster;
pub use search::{Finding, Findings, Looked, Search, Times};

use super::Effort;

impl Effort {
    /// Across nodes: minutes, on networks that are not too slow.
    #[must_use]
    pub fn usual_across() -> Self {
        let sizes = [8, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20].to_vec();
        Self { sizes, blocks: 7, block: 20e-3, halvings: 2, strict: false }
    }

    /// Across nodes, under a minute on networks that are not too slow.
    #[must_use]
    pub fn quick_across() -> Self {
        let sizes = [8, 4 << 10, 64 << 10, 1 << 20].to_vec();
        Self { sizes, blocks: 5, block: 5e-3, halvings: 1, strict: false }
    }

    /// Across nodes, so little that the figures mean nothing: for tests.
    #[must_use]
    pub fn tiny_across() -> Self {
        Self { sizes: vec![8, 20 << 10], blocks: 2, block: 1e-4, halvings: 1, strict: false }
    }
}

/// About how many measurements a search makes.
#[must_use]
pub fn steps(effort: &Effort, shape: Shape) -> usize {
    let led = usize::from(shape.ranks_a_node > 1) * effort.sizes.len();
    let cut = effort.sizes.iter().filter(|&&bytes| bytes >= 128 << 10).count();
    1 + 3 * (effort.sizes.len() + cut + 2 * effort.halvings) + led
}
