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
//! With feature `mpi`, ranks may be those that an MPI's `mpirun` starts, on one machine or many: module `cluster`.
//!
//! This package only re-exports: the communicator is [`hier`]'s, elements, operators and errors are [`shm_core`]'s,
//! machines and trees are [`topo`]'s.
#![forbid(unsafe_code)]

pub use hier::{
    Buffer, Collective, Communicator, Counters, Element, Error, Explanation, Pair, Partition, PartitionMut, Process,
    Reaching, Regime, Result, SharedResult, Zeroable, operator,
};
/// What a job of threads may be made of: [`Communicator::threads_of`].
pub use hier::{TreeRules, Tuning, job::JobSpec};
pub use hier::{bytemuck, half, num_complex};
pub use topo;

/// Ranks that an MPI's `mpirun` starts, on one machine or many (feature `mpi`).
///
/// [`Communicator`](cluster::Communicator) has barrier, broadcast, reduce and allreduce, `split`, `duplicate` and
/// `alloc`, under the names that they have in the one machine's [`crate::Communicator`]. Ranks of a machine work
/// through shared memory, and messages go between machines only. Where all ranks are on one machine
/// [`single_node`](cluster::Communicator::single_node) gives a communicator that has the other calls, too: gathers,
/// scatters, alltoalls, scans, `all_reduce_shared`.
///
/// ```no_run
/// use phalanx::mpi::{self, topology::SimpleCommunicator, traits::Communicator as _};
/// use phalanx::{cluster::Communicator, operator::Sum};
///
/// fn main() {
///     let universe = mpi::initialize().expect("MPI is initialised once");
///     if let Err(error) = run(&universe.world()) {
///         // Here, and not behind `universe`, which waits until all ranks have come to its end.
///         eprintln!("{error}");
///         universe.world().abort(1);
///     }
/// }
///
/// // What makes a communicator drops it before `universe` is: MPI ends with that.
/// fn run(all: &SimpleCommunicator) -> Result<(), Box<dyn std::error::Error>> {
///     let world = Communicator::from_mpi(all)?;
///
///     let mut sum = [0.0; 3];
///     world.all_reduce_into(&[world.rank() as f64, 1.0, 0.5], &mut sum, Sum)?;
///
///     let mut name = *b"........";
///     if world.rank() == 0 {
///         name = *b"Ariadne.";
///     }
///     world.process_at_rank(0).broadcast_into(&mut name)?;
///
///     let (rank, size, nodes) = (world.rank(), world.size(), world.placement().nodes());
///     println!("rank {rank} of {size} on {nodes} machines: {sum:?}");
///     Ok(())
/// }
/// ```
///
/// It is built with the compiler wrapper of the MPI that will run it, in a target folder for each MPI, and takes
/// libclang:
///
/// ```sh
/// MPICC=mpicc.openmpi CARGO_TARGET_DIR=target/mpi-openmpi cargo build --release --features phalanx/mpi
/// mpirun.openmpi -n 8 target/mpi-openmpi/release/program
/// ```
///
/// Some variables are read on rank 0: those that shape a job on one machine (`PHALANX_ALGORITHM`, `PHALANX_TABLE`,
/// `PHALANX_TREES`); `PHALANX_CLUSTER`, which says which schedule, how many leaders and what slices a call takes
/// ([`Rules`](cluster::Rules)); `PHALANX_TOPOLOGY`, which names a file in the form of Slurm's `topology.conf`, so that
/// rings pass each link once; and `PHALANX_NETWORK=measured`, which has the network measured. With `PHALANX_DEBUG=1`
/// rank 0 prints what is chosen.
#[cfg(feature = "mpi")]
pub mod cluster {
    pub use hier::HierComm as Communicator;
    pub use hier::across::{ClusterRules as Rules, Error, HierProcess as Process, Result};
    pub use hier::nodes::Placement;
}

#[cfg(feature = "mpi")]
pub use mpi;
