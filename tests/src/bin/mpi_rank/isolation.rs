//! Receives of the program that take anything from anybody get what the program sends, and nothing else.

use mpi::request::{Request, scope};
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator as _, Destination, Source};
use phalanx_tests::sweep::Sweep;

use crate::{collectives, well};

/// Receives that are posted.
const POSTED: usize = 8;

/// Posts receives of any source and any tag before there is a communicator of ours, and again beside it; makes all
/// kinds of calls; looks that no receive has ended; sends what they wait for.
pub fn run(world: &SimpleCommunicator) {
    let (rank, size) = (world.rank(), world.size());
    let mut early = vec![[0_u64; 1000]; POSTED];
    let mut later = vec![[0_u64; 1000]; POSTED];
    scope(|scope| {
        let anybody = world.any_process();
        let mut posted: Vec<Request<'_, _, _>> =
            early.iter_mut().map(|buffer| anybody.immediate_receive_into(scope, &mut buffer[..])).collect();
        let comm = collectives(world);
        posted.extend(later.iter_mut().map(|buffer| anybody.immediate_receive_into(scope, &mut buffer[..])));
        let mut sweep = Sweep::new(&comm, "beside receives of anything", 5, true);
        sweep.roots(&[1, 9, 130, 700, 20_000]);
        let part = comm.split(Some(comm.rank() as u32 % 2), 0).expect("a split").expect("a part");
        let mut beside = Sweep::new(&part, "in a part", 6, true);
        beside.roots(&[1, 700]);
        let posted: Vec<_> = posted
            .into_iter()
            .map(|request| match request.test() {
                Ok(status) => panic!(
                    "rank {rank}: a receive of the program has taken {} of {}",
                    status.tag(),
                    status.source_rank()
                ),
                Err(request) => request,
            })
            .collect();
        comm.barrier().expect("a barrier");
        let next = world.process_at_rank((rank + 1) % size);
        for number in 0..2 * POSTED {
            // Posted there: no send waits.
            next.send_with_tag(&[number as u64, rank as u64, 77][..], 1000 + number as i32);
        }
        for request in posted {
            request.wait();
        }
        well(&comm, &format!("{} calls beside {} receives", sweep.calls + beside.calls, 2 * POSTED));
    });
    let from = (rank + size - 1) % size;
    for (number, buffer) in early.iter().chain(&later).enumerate() {
        assert_eq!(buffer[..3], [number as u64, from as u64, 77], "rank {rank}: receive {number}");
    }
}
