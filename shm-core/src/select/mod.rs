//! Which algorithm a call takes: a pure function of the call and of one table, which is the same on all ranks
//! because it rides in the segment's header.
//!
//! The table ([`Tuning`]) is a list of [`Rule`]s, each of which says, for communicators of some sizes, what a
//! collective takes by the bytes of a message. A communicator picks out the rules that are for it ([`Selection`]), so
//! that a call looks at a few bands, and a short one at a few numbers (`Singles`).

mod choice;
mod default;
mod force;
mod rule;
mod selection;
mod single;
pub(crate) mod tuning;

pub(crate) use choice::BlockChoice;
pub use choice::{Choice, Collective, Explanation, Regime, Vector};
pub use force::number_of_bytes;
pub use rule::{Band, DIRECT_FROM, MOST_BANDS, Rule};
pub use selection::Selection;
pub(crate) use single::{Single, Singles};
pub use tuning::{
    CONVERT_AFTER, CONVERT_FROM, DIRECT_ALWAYS, FLAT_RANKS, MOST_RULES, REACH_FROM, REACH_TRIED, READERS, Tuning,
};
