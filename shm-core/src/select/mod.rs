//! Which algorithm a call takes: a pure function of the call and of one table, which is the same on all ranks
//! because it rides in the segment's header.

mod choice;
mod force;
pub(crate) mod tuning;

pub use choice::{Choice, Collective, Explanation, Regime, Vector};
pub use force::number_of_bytes;
pub use tuning::Tuning;
