//! Collective operations between the processes of one machine, over shared memory.
//!
//! ```
//! use phalanx::{Communicator, operator::Sum};
//!
//! // Four ranks that are threads of this process; `Communicator::world()` is for ranks that are processes.
//! let sums = Communicator::threads(4, |comm| {
//!     let mut sum = [0.0];
//!     comm.all_reduce_into(&[comm.rank() as f64], &mut sum, Sum)?;
//!     Ok::<_, phalanx::Error>(sum[0])
//! })?;
//! assert!(sums.into_iter().all(|sum| sum == Ok(6.0)));
//! # Ok::<(), phalanx::Error>(())
//! ```
//!
//! A program whose ranks are processes calls [`Communicator::world`] once, and is started by
//! `phalanx run -n 4 -- ./program`. Started without the launcher, it has a world of one rank.
//!
//! This package only re-exports: the communicator is [`hier`]'s, elements, operators and errors are [`shm_core`]'s, machines
//! and trees are [`topo`]'s.
#![forbid(unsafe_code)]

pub use hier::{
    Collective, Communicator, Counters, Element, Error, Explanation, Pair, Process, Regime, Result, operator,
};
pub use topo;
