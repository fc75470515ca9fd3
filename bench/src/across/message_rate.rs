//! Messages a second from one host to another, by how many pairs of ranks send at once.
//!
//! Hosts 0 and 1, 2 and 3, .. are partners; rank i of a host streams to rank i of its partner, one way, and is told at
//! the end that all has come. Few pairs cannot fill a link with short messages; long ones fill it with one pair
//! (Bayatpour et al., SC 2017, the zones of their study of throughput).

use std::time::Instant;

use hier::nodes::Placement;
use mpi::collective::SystemOperation;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives, Destination, Source};

use super::measured::MessageRate;

/// Streams of each size and number of pairs.
const REPETITIONS: usize = 5;
/// A stream is so many bytes, but no fewer and no more messages than these.
const STREAM: u64 = 1 << 20;
const FEWEST: u64 = 8;
const MOST: u64 = 2000;

/// All rates; the same on all ranks. Empty with one host. Collective over `world`.
pub fn measure(world: &SimpleCommunicator, placement: &Placement, sizes: &[u64]) -> Vec<MessageRate> {
    if placement.nodes() < 2 {
        return Vec::new();
    }
    let rank = world.rank() as usize;
    let node = placement.node_of(rank);
    let partner = node ^ 1;
    let place = placement.members(node).iter().position(|&member| member == rank).unwrap_or(usize::MAX);
    let other = (partner < placement.nodes()).then(|| placement.members(partner).get(place).copied()).flatten();
    let mut rates = Vec::new();
    for &bytes in sizes {
        for pairs in counts(placement.fewest()) {
            let messages = (STREAM / bytes).clamp(FEWEST, MOST);
            let mut per_second = Vec::with_capacity(REPETITIONS);
            // The first stream opens the way, and does not count.
            for repetition in 0..=REPETITIONS {
                let seconds = stream(world, other.filter(|_| place < pairs), node < partner, bytes, messages);
                let mut longest = 0.0;
                world.all_reduce_into(&seconds, &mut longest, SystemOperation::max());
                if repetition > 0 {
                    per_second.push((pairs as u64 * messages) as f64 / longest);
                }
            }
            rates.push(MessageRate { bytes, pairs, per_second });
        }
    }
    rates
}

/// 1, 2, 4, .. and `most`.
fn counts(most: usize) -> Vec<usize> {
    let mut counts: Vec<usize> =
        std::iter::successors(Some(1), |count| Some(2 * count)).take_while(|&c| c < most).collect();
    counts.push(most.max(1));
    counts
}

/// The seconds of one stream; 0 for a rank that has no part in it.
fn stream(world: &SimpleCommunicator, other: Option<usize>, sends: bool, bytes: u64, messages: u64) -> f64 {
    world.barrier();
    let Some(other) = other else { return 0.0 };
    let other = world.process_at_rank(other as i32);
    let mut message = vec![0_u8; bytes as usize];
    let start = Instant::now();
    if sends {
        (0..messages).for_each(|_| other.send(&message[..]));
        let _ = other.receive::<u8>();
    } else {
        for _ in 0..messages {
            let _ = other.receive_into(&mut message[..]);
        }
        other.send(&1_u8);
    }
    start.elapsed().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_double_up_to_all() {
        assert_eq!(counts(1), [1]);
        assert_eq!(counts(4), [1, 2, 4]);
        assert_eq!(counts(6), [1, 2, 4, 6]);
    }
}
