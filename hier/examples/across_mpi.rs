//! Checks the collectives across nodes between the ranks of an MPI job, wherever they are; says so on rank 0.
//!
//! ```sh
//! MPICC=mpicc.openmpi cargo build -p hier --features mpi --example across_mpi
//! mpirun.openmpi -n 4 --oversubscribe target/debug/examples/across_mpi
//! ```

#[path = "../tests/collectives/mod.rs"]
mod collectives;

use collectives::check;
use hier::HierComm;
use mpi::Threading;
use mpi::traits::Communicator;

fn main() {
    let (universe, _) = mpi::initialize_with_threading(Threading::Funneled).expect("MPI is initialised once");
    {
        let world = universe.world();
        let comm = match HierComm::from_mpi(&world) {
            Ok(comm) => comm,
            Err(error) => {
                eprintln!("across_mpi: rank {}: {error}", world.rank());
                world.abort(1);
            }
        };
        for count in [0, 1, 2, 63, 64, 100, 1000, 5000, 70_000] {
            check(&comm, count);
        }
        let part = comm.split(Some(comm.rank() as u32 % 2), 0).expect("a split").expect("a part");
        check(&part, 1000);
        check(&part.duplicate().expect("a duplicate"), 10);
        check(&comm, 10);
        comm.barrier().expect("a barrier");
        if comm.rank() == 0 {
            let nodes = comm.placement().nodes();
            println!(
                "across_mpi: {} ranks on {nodes} nodes, all checks passed: {}",
                comm.size(),
                comm.describe_network()
            );
        }
    }
}
