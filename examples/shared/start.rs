//! How an example begins: its ranks, its options, and who speaks for all.
//!
//! The ranks are those that `phalanx run` starts on one machine. Built with feature `mpi` they are those that an MPI's
//! mpirun starts, on one machine or many; an example says nothing of that itself, since both communicators have the
//! same calls.
//!
//! The examples share this file by `#[path = "../shared/start.rs"] mod start;`.

use std::process::ExitCode;

#[cfg(feature = "mpi")]
pub use phalanx::cluster::{Communicator, Result};
#[cfg(not(feature = "mpi"))]
pub use phalanx::{Communicator, Result};

use crate::arguments::Arguments;

/// Runs `program` on this rank, with the options that `parse` has read (none when only the usage is asked for).
///
/// All ranks are given the same arguments, so all come to the same verdict on them, and rank 0 speaks for them. An
/// error of `program` comes from a collective.
pub fn run<O>(
    name: &str,
    usage: &str,
    parse: impl FnOnce(&mut Arguments) -> std::result::Result<Option<O>, String>,
    program: impl FnOnce(&Communicator, &O) -> Result<ExitCode>,
) -> ExitCode {
    // Dropped last: the communicator must be gone before MPI ends.
    #[cfg(feature = "mpi")]
    let universe = phalanx::mpi::initialize().expect("MPI is initialised once");
    #[cfg(feature = "mpi")]
    let world = Communicator::from_mpi(&universe.world());
    #[cfg(not(feature = "mpi"))]
    let world = Communicator::world();

    let world = match world {
        Ok(world) => world,
        Err(error) => {
            eprintln!("{name}: {error}");
            return ExitCode::FAILURE;
        }
    };
    let ended = match parse(&mut Arguments::new(std::env::args().skip(1))) {
        Ok(Some(options)) => program(&world, &options),
        Ok(None) => leader_says(&world, || print!("{usage}")).map(|()| ExitCode::SUCCESS),
        Err(message) => leader_says(&world, || eprintln!("{name}: {message}")).map(|()| ExitCode::from(2)),
    };
    ended.unwrap_or_else(|error| {
        eprintln!("{name}: rank {}: {error}", world.rank());
        ExitCode::FAILURE
    })
}

/// Lets rank 0 speak, and holds the other ranks until it has: a launcher ends the job at the first rank that fails.
pub fn leader_says(world: &Communicator, speak: impl FnOnce()) -> Result<()> {
    if world.rank() == 0 {
        speak();
    }
    world.barrier()
}
