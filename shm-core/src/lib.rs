//! Collectives between the ranks of one node, over one shared segment.
//!
//! A *job* has a fixed number of *ranks*: processes that a launcher starts, or threads of one process. They share one
//! sealed memory file, the *segment* ([`segment`]). Ranks meet in [`Communicator`]s, and call collectives together:
//! barrier, broadcast, reduce, allreduce; gather, scatter, allgather, alltoall, with equal blocks or not;
//! reduce-scatter, scan.
//!
//! The crate is built in layers, each of which knows only those below it:
//!
//! * [`protocol`]: who waits for which flag before touching which slot; no memory in it, and model-checked;
//! * [`wait`]: spinning, yielding, sleeping on a shared futex without losing a wake-up; model-checked too;
//! * [`segment`]: layout, reservation, sealing, checks;
//! * the regimes (line, cells, exchange, shares, and payload that stays where it lies), which join protocols to
//!   payload, and the table that chooses between them ([`select`]);
//! * the collectives of [`Communicator`], and [`job`], the launcher's side.
//!
//! Trees come from outside, as plain [`Links`], through a [`Plan`]. The crate knows no machine topology and no MPI.

mod abreast;
mod ask;
mod board;
mod buffer;
#[doc(hidden)]
pub mod caches;
mod collective;
mod communicator;
mod convert;
mod cost;
mod counters;
#[cfg(any(test, feature = "counts"))]
pub mod counts;
#[cfg(not(any(test, feature = "counts")))]
mod counts;
mod element;
mod error;
pub mod first_processor;
pub mod job;
mod last_level;
mod links;
pub mod operator;
mod own_process;
mod pace;
mod payload;
mod plan;
#[cfg(test)]
mod processes;
pub mod protocol;
mod reach;
mod regime;
mod remark;
mod seat;
pub mod segment;
pub mod select;
mod shared_result;
pub mod wait;
mod world;

pub use board::IdleHook;
pub use buffer::Buffer;
/// What elements of [`Communicator::alloc`] are besides: all zero is a value of them.
pub use bytemuck::Zeroable;
pub use collective::{Partition, PartitionMut, Process};
pub use communicator::Communicator;
pub use counters::Counters;
pub use element::{Element, Pair};
pub use error::{Error, Result};
pub use links::Links;
pub use plan::{FlatPlan, MOST_CLASSES, Plan, Step};
pub use reach::Reaching;
pub use regime::blocks::Blocks;
pub use regime::cut::Cut;
pub use regime::division::{Division, leader_of};
pub use regime::exchange::exchange_positions;
#[doc(hidden)]
pub use remark::remark;
pub use select::{Collective, Explanation, Regime, Tuning};
pub use shared_result::SharedResult;
/// The packages whose types are elements: `half::{f16, bf16}`, `num_complex::Complex`, and the traits of own types.
pub use {bytemuck, half, num_complex};
