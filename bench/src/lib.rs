//! The benchmark of the collectives.
//!
//! A figure stands here only beside what it can be read against: the bare loops of [`floor`],
//! taken in turns with ours in one run, and the collectives of an MPI ([`runs::mpi`]), measured
//! by the same method to the letter (`baseline/collectives.c`). Answers are checked before
//! anything is timed; how times are taken, and what skew they contain, says [`rank`].
//!
//! The driver ([`collectives`]) measures nothing itself. It writes a [`plan`], starts processes
//! that execute it, and merges the [`samples`] that each of them leaves in a file of its own.

pub mod across;
pub mod against;
pub mod allreduce;
pub mod bare;
pub mod bytes;
pub mod clock;
pub mod collectives;
pub mod command;
pub mod commtest;
pub mod compare;
pub mod cores;
pub mod empty;
pub mod error;
pub mod floor;
pub mod gate;
pub mod group;
pub mod keep;
pub mod kernels;
pub mod machine;
pub mod mapping;
pub mod node_simulation;
pub mod out;
pub mod plan;
pub mod plot;
pub mod progress;
pub mod rank;
pub mod record;
pub mod report_page;
pub mod reproduce;
pub mod rows;
pub mod runs;
pub mod samples;
pub mod scratch;
pub mod sizes;
pub mod statistics;
pub mod steps;
pub mod study;
pub mod table;
pub mod tether;
