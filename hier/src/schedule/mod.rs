//! Collectives across ranks as pure values: who sends which part of the vector to whom, round after round.
//!
//! A [`Program`] is what one rank does. It is data: it can be printed ([`Schedule`] is a table), counted
//! ([`Program::count`], [`Pattern::formula`]), checked ([`check`]), simulated ([`crate::simulate`]), and executed over
//! any transport. Here the ranks are nodes, or the leaders of nodes; a schedule knows neither memory nor network.
//!
//! # How a program is executed
//!
//! The vector is parted into `segments` segments, balanced ([`segment_range`]). In each round a rank starts all its
//! sends and receives, and the round ends when all of them have ended. Sends read the vector as it was at the start of
//! the round; what arrives is applied at the end of the round, in the order of the list. The k-th message from one rank
//! to another is received by the k-th receive that the other has from it; messages carry no other name.
//!
//! # Which algorithm serves what
//!
//! `N` ranks, `L` = ceil(log2 N), vector of `n` bytes; the last column is what the busiest rank sends.
//!
//! | algorithm | goals | in rank order | rounds of an allreduce (a broadcast) | bytes |
//! |---|---|---|---|---|
//! | `ring` | allreduce, reduce-scatter, allgather | | 2(N-1) | 2(N-1)/N n |
//! | `recursive-doubling` | allreduce | yes | log2 N | n log2 N |
//! | `halving-nearest` | allreduce, reduce | yes | 2 log2 N | 2(N-1)/N n |
//! | `halving-farthest` | the same; reduce-scatter and allgather where N is a power of two | | 2 log2 N | 2(N-1)/N n |
//! | `halving-exchange`, `-2`, `-3` | allreduce | yes | 2 log2 N - 1, - 2, - 3 | 2(N-1)/N n, 2 n, (2 + 8/N) n |
//! | `binomial` | allreduce, reduce, broadcast | yes | 2L (L) | n L |
//! | `circulant` | allreduce, reduce-scatter, allgather | | 2L | 2(N-1)/N n |
//! | `scatter-ring-native`, `scatter-ring` | broadcast | yes | (L + N-1) | 2(N-1)/N n |
//! | `dissemination` | barrier | yes | (L) | 0 |
//!
//! Recursive doubling and halving take a power of two of ranks at heart. The ranks beyond it hand their vector to a
//! neighbour in one more round, and get the result in another: n more bytes each way.
//!
//! ```
//! use hier::schedule::{Algorithm, Goal, Schedule, check};
//!
//! # fn main() -> Result<(), hier::schedule::Error> {
//! let ring: Algorithm = "ring".parse()?;
//! let program = ring.program(Goal::Allreduce, 4, 1)?;
//! assert_eq!(program.rounds.len(), 6);
//! assert_eq!(program.count(4000).sent.elements, 6000); // 2(N-1)/N of the vector
//!
//! let schedule = Schedule::new(Algorithm::Circulant, Goal::Allreduce, 5)?;
//! check(&schedule.programs, Goal::Allreduce, false)?;
//! println!("{schedule}");
//! # Ok(())
//! # }
//! ```

mod algorithm;
mod binomial;
mod check;
mod circulant;
mod count;
mod dissemination;
mod error;
mod fold;
mod formula;
mod halving;
mod names;
mod pattern;
mod program;
mod ring;
mod scatter_ring;
mod segment;
mod text;

pub use algorithm::{Algorithm, Exchanges, Goal, Order};
pub use check::{Flaw, check};
pub use count::{Count, Volume};
pub use error::Error;
pub use formula::Formula;
pub use pattern::{MOST_RANKS, Pattern, Schedule};
pub use program::{Combine, Program, Receive, Round, Send, Span};
pub use segment::segment_range;
