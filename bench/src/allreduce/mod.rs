//! `bench allreduce`: the allreduce from one element to millions, by every algorithm and schedule.
//!
//! What differs from the paper's program says [`options::DESCRIPTION`]. Nothing is started here that other commands do
//! not start too: ranks of a node are those of `bench collectives`, ranks of a cluster those of `bench across`.
//!
//! | file | what |
//! |---|---|
//! | `series` | algorithms of a node, schedules across nodes |
//! | `options` | the command line |
//! | `node`, `across` | what is measured, as runs of ranks that are finished one by one |
//! | `drive` | the command |
//! | `curves` | medians, fits, break-even points |
//! | `report`, `picture` | tables, CSV, plot |

pub mod across;
pub mod curves;
pub mod drive;
pub mod node;
pub mod options;
pub mod picture;
pub mod report;
pub mod series;

pub use drive::run;
