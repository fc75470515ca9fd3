//! A message of the program that is under way when its rank enters a collective moves on while that rank waits there:
//! its peer enters only when it is through.
//!
//! A library that waits for its node without looking at MPI deadlocks here, as would one that keeps MPI's attention
//! only on the ranks that speak for their nodes.

use hier::operator::Sum;
use mpi::request::scope;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator as _, Destination, Source};
use phalanx_tests::Communicator;

use crate::watch::step;
use crate::{collectives, well};

/// The collective that the ranks meet in.
#[derive(Clone, Copy, Debug)]
enum Meeting {
    Barrier,
    Broadcast { root: usize },
    Reduce { root: usize },
    Allreduce { len: usize },
}

/// Every ordered pair, every meeting, the message sent and awaited ahead of it.
pub fn run(world: &SimpleCommunicator, bytes: usize) {
    let comm = collectives(world);
    let (rank, size) = (comm.rank(), comm.size());
    let mut meetings = vec![Meeting::Barrier, Meeting::Allreduce { len: 1 }, Meeting::Allreduce { len: 100_000 }];
    for root in 0..size {
        meetings.extend([Meeting::Broadcast { root }, Meeting::Reduce { root }]);
    }
    let mut count = 0;
    for early in 0..size {
        for late in (0..size).filter(|&late| late != early) {
            for &meeting in &meetings {
                for sends in [true, false] {
                    count += 1;
                    step(format!("{bytes} bytes, {early} early, {late} late, {early} sends: {sends}, {meeting:?}"));
                    let content = (count % 251) as u8;
                    if rank == early {
                        under_way(world, &comm, late, sends, vec![content; bytes], meeting);
                    } else if rank == late {
                        ahead(world, early, sends, vec![content; bytes]);
                        meet(&comm, meeting);
                    } else {
                        meet(&comm, meeting);
                    }
                }
            }
        }
    }
    well(&comm, &format!("{count} messages of {bytes} bytes"));
}

/// Enters the meeting with a message under way, and finds it ended after that.
fn under_way(
    world: &SimpleCommunicator,
    comm: &Communicator,
    peer: usize,
    sends: bool,
    content: Vec<u8>,
    meeting: Meeting,
) {
    let other = world.process_at_rank(peer as i32);
    if sends {
        scope(|scope| {
            let message = other.immediate_send(scope, &content[..]);
            meet(comm, meeting);
            message.wait();
        });
    } else {
        let mut arrived = vec![0; content.len()];
        scope(|scope| {
            let message = other.immediate_receive_into(scope, &mut arrived[..]);
            meet(comm, meeting);
            message.wait();
        });
        assert!(arrived == content, "rank {}: the message from {peer} is another", comm.rank());
    }
}

/// The other end of the message, all through before the meeting.
fn ahead(world: &SimpleCommunicator, peer: usize, peer_sends: bool, content: Vec<u8>) {
    let other = world.process_at_rank(peer as i32);
    if peer_sends {
        let mut arrived = vec![0; content.len()];
        other.receive_into(&mut arrived[..]);
        assert!(arrived == content, "rank {}: the message from {peer} is another", world.rank());
    } else {
        other.send(&content[..]);
    }
}

fn meet(comm: &Communicator, meeting: Meeting) {
    let (rank, size) = (comm.rank(), comm.size());
    let total = size * (size - 1) / 2;
    let done = match meeting {
        Meeting::Barrier => comm.barrier(),
        Meeting::Broadcast { root } => {
            let mut word = [if rank == root { root + 7 } else { 0 }; 100];
            let done = comm.process_at_rank(root).broadcast_into(&mut word);
            assert_eq!(word, [root + 7; 100]);
            done
        }
        Meeting::Reduce { root } if rank == root => {
            let mut sum = [0; 100];
            let done = comm.process_at_rank(root).reduce_into_root(&[rank; 100], &mut sum, Sum);
            assert_eq!(sum, [total; 100]);
            done
        }
        Meeting::Reduce { root } => comm.process_at_rank(root).reduce_into(&[rank; 100], Sum),
        Meeting::Allreduce { len } => {
            let mut sum = vec![rank; len];
            let done = comm.all_reduce_in_place(&mut sum, Sum);
            assert!(sum.iter().all(|&sum| sum == total), "rank {rank}: {meeting:?}");
            done
        }
    };
    done.unwrap_or_else(|error| panic!("rank {rank}: {meeting:?}: {error}"));
}
