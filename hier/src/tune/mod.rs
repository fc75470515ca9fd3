//! Measuring a machine, and making a table of what was found.
//!
//! All ranks of a job run the same search: it asks for times, which ranks agree on before anybody looks at them (the
//! slowest rank's counts), so that the search takes the same way everywhere. Times of candidates are taken in turns,
//! block by block, and compared block by block: what others do to the machine meanwhile hits all of them alike.
//!
//! | file | what |
//! |---|---|
//! | `candidate` | what is compared: a band of a ladder, with trees |
//! | `figures` | blocks of times, and when one wins over another |
//! | `search` | which candidates at which sizes, and where one gives way to the next: pure, but for the times it asks for |
//! | `threshold` | from which size on one of two candidates takes the other's place, in the same way |
//! | `direct` | shared buffers: copied, or used where they lie |
//! | `reach` | private buffers: copied, or reached by kernel-assisted copies, and by how many at a time |
//! | `measure` | times on a communicator |
//! | `ledger` | finished measurements on disk, from which an interrupted run goes on |
//! | `explain` | the findings as a table, and as text |
//! | `cluster` | the same across nodes |

mod candidate;
pub mod cluster;
mod direct;
mod explain;
mod figures;
mod ledger;
mod measure;
mod reach;
mod search;
mod threshold;

pub use candidate::{Candidate, Lying};
pub use explain::{check_room, explanation, table_of};
pub use figures::Figures;
pub use ledger::{Ledger, begin_ledger, read_ledger};
pub use measure::{replay, tune_rank};
pub use reach::LEAST_REACHED;
pub use search::{Finding, Findings, Looked, Search, Times};

/// How thorough a search is.
#[derive(Clone, Debug, PartialEq)]
pub struct Effort {
    /// Message sizes at which all candidates are compared, rising.
    pub sizes: Vec<usize>,
    /// Blocks of each candidate.
    pub blocks: usize,
    /// Seconds of a block.
    pub block: f64,
    /// Halvings of the way between two sizes that take different candidates.
    pub halvings: usize,
    /// Whether the strict mode is measured too.
    pub strict: bool,
}

impl Effort {
    /// A few minutes.
    #[must_use]
    pub fn usual() -> Self {
        let sizes = [64, 512, 2 << 10, 8 << 10, 32 << 10, 128 << 10, 512 << 10, 2 << 20].to_vec();
        Self { sizes, blocks: 11, block: 8e-3, halvings: 3, strict: true }
    }

    /// Under a minute.
    #[must_use]
    pub fn quick() -> Self {
        let sizes = [64, 1 << 10, 8 << 10, 64 << 10, 512 << 10].to_vec();
        Self { sizes, blocks: 7, block: 3e-3, halvings: 2, strict: false }
    }

    /// So little that the figures mean nothing: for tests.
    #[must_use]
    pub fn tiny() -> Self {
        Self { sizes: vec![64, 4 << 10], blocks: 3, block: 1e-4, halvings: 1, strict: true }
    }
}
