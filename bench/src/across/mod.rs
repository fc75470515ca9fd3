//! `bench across`: collectives between the ranks of several machines, beside those of the MPI that carries their
//! messages.
//!
//! The command makes an emulated cluster (`scripts/cluster/run`), starts on it a program of ranks, and reads what its
//! rank 0 has written. The program of ranks is this one again, `bench across-rank`, built for the MPI in question
//! (feature `mpi`); on a real cluster it is started by hand.
//!
//! # What a figure means
//!
//! All series are measured by the same ranks in one run, in turns: A B C B C A. Before each call, the input is written
//! anew. On an emulated cluster, all of whose hosts read one clock, the ranks then agree on a time some milliseconds
//! later, sleep until then, and the time of the call is that of the last rank that ends; a call for which a rank comes
//! too late is repeated. On a real one an `MPI_Barrier` is passed, and the time of the call is the longest of any rank;
//! ranks leave the barrier one after another, which is part of it, for every series alike. The answers of every series
//! are checked before anything is timed. Ratios are taken turn by turn.
//!
//! # The bound
//!
//! No allreduce of n bytes on N hosts whose links carry B bytes a second takes less than 2 (N-1)/N n/B (Patarasuk and
//! Yuan, JPDC 2009), and where t of a switch's trunk carries less than that, no less than n/t. B is the goodput:
//! measured by streams from host to host in the same run, or what is left of the shaped rate after headers.
//!
//! | file | what |
//! |---|---|
//! | `series` | what is measured beside what |
//! | `plan` | what the ranks shall do, as the words of a command line |
//! | `rank` | a rank: checks, times, counts |
//! | `start` | how ranks begin a call together |
//! | `goodput` | what a link carries, and what a message takes |
//! | `message_rate` | messages a second, by pairs of ranks |
//! | `counters` | what the emulated links carried |
//! | `expected` | what a schedule makes them carry |
//! | `measured` | what rank 0 writes |
//! | `bound` | rates, and the least time |
//! | `cluster` | one run on an emulated cluster |
//! | `program` | the program of ranks, built for an MPI |
//! | `drive` | the command |
//! | `simulate` | the same schedules on described clusters |
//! | `report`, `sheet`, `picture` | tables, CSV, plot |

pub mod bound;
pub mod cluster;
pub mod counters;
pub mod drive;
pub mod expected;
#[cfg(feature = "mpi")]
mod goodput;
pub mod measured;
#[cfg(feature = "mpi")]
mod message_rate;
pub mod mode;
pub mod options;
pub mod picture;
pub mod plan;
pub mod program;
#[cfg(feature = "mpi")]
mod rank;
pub mod report;
pub mod series;
pub mod sheet;
pub mod simulate;
#[cfg(feature = "mpi")]
mod start;

pub use drive::run;

use crate::error::Result;

/// Runs one rank of a job that mpirun has started.
///
/// # Errors
///
/// [`Error::Usage`](crate::error::Error::Usage) for a plan that cannot be, and where this program was built without
/// MPI.
#[cfg(feature = "mpi")]
pub fn run_rank(options: &options::AcrossRank) -> Result<()> {
    rank::run(&plan::Plan::of(options)?)
}

/// Says that this program cannot be a rank of an MPI job.
///
/// # Errors
///
/// Always.
#[cfg(not(feature = "mpi"))]
pub fn run_rank(_: &options::AcrossRank) -> Result<()> {
    Err(without_mpi())
}

/// What a program says that was built without MPI.
#[cfg(not(feature = "mpi"))]
pub(crate) fn without_mpi() -> crate::error::Error {
    crate::error::Error::Usage(
        "this program was built without MPI: cargo build --release -p bench --features mpi, with MPICC=.. for the MPI in \
         question and a target folder (CARGO_TARGET_DIR) for each"
            .into(),
    )
}
