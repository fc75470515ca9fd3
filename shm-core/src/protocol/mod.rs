//! The protocols: who waits for which word before touching which slot.
//!
//! Nothing here knows memory. A protocol sees the flag words of all ranks through a [`Board`], and moves
//! payload through closures that are called exactly while the protocol holds the slot. So the same code
//! runs over a shared segment between processes, over the same segment between threads, and under a
//! model checker, which watches both words and payload.
//!
//! | file | protocol |
//! |---|---|
//! | [`location`] | where the payload of a slot lies: in its cell, or in a buffer of its writer |
//! | [`ring`] | a ring of slots: publish, read, reuse; every other protocol is made of it |
//! | [`exchange`] | everybody publishes, everybody reads everybody |
//! | [`delivery`] | slices from those who write to those who read, each by its part in the call |
//! | [`offer`] | the same from a root that says where all of it lies: who cannot reach that gets slices |
//! | [`mutual`] | the same from all to all, where each says where its parts lie |
//! | [`opening`] | all others to a root that says where their parts belong: who cannot reach that sends slices |
//! | [`following`] | the slices behind these words, for those who could not reach what they spoke of |
//! | [`flat`] | a root to all others, or all others to a root, in one slot |
//! | [`step`] | the release step and the gather step over a tree, and the pipeline of both |
//! | [`joint`] | of two ranks one lends all it gives, and both do the work |
//! | [`shares`] | the data-partitioned reduction with several leaders |
//! | `rounds` | one call of it, round by round |
//! | `pair` | the same at its shortest: one round of two ranks |
//! | [`spread`] | its other half alone: each leader hands out its share |
//!
//! `PROTOCOL.md` beside this crate names every synchronisation edge, its proof and its model.

pub mod board;
pub mod delivery;
pub mod exchange;
pub mod flat;
pub mod following;
pub mod joint;
pub mod location;
pub mod mutual;
pub mod offer;
pub mod opening;
mod pair;
pub mod ring;
mod rounds;
pub mod shares;
pub mod spread;
pub mod step;

pub use board::{Board, Edge, Moment, RingName, Stamp, Until, Word};
pub use location::{Location, Place};
pub use ring::{Readers, Ring};
