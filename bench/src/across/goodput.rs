//! What a link carries: bytes a second of a stream from one host to another, one way; and what one message takes.

use std::time::Instant;

use hier::nodes::Placement;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives, Destination, Source};

use crate::statistics::median;

/// Streams are so many messages of so many bytes: long ones, since a library may ask before it sends each.
const MESSAGES: usize = 2;
const MESSAGE: usize = 1 << 20;
/// The best of so many streams counts: a link carries no more than it can, and the processor may be busy.
const STREAMS: usize = 3;

/// Small messages there and back that are timed.
const ROUND_TRIPS: usize = 30;

/// The way from one host to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// Bytes a second of a stream.
    pub goodput: f64,
    /// Seconds of a message of one byte: half of a way there and back, the median.
    pub latency: f64,
}

/// Streams and messages between the first ranks of hosts 0 and 1, 2 and 3, .., all at once: the median of the pairs.
/// None with one host. Collective over `world`.
pub fn measure(world: &SimpleCommunicator, placement: &Placement) -> Option<Link> {
    let rank = world.rank() as usize;
    let first = |node: usize| placement.members(node)[0];
    let node = placement.node_of(rank);
    let partner = node ^ 1;
    let paired = partner < placement.nodes() && first(node) == rank;
    let mut best = 0.0_f64;
    let mut message = if paired { vec![0_u8; MESSAGE] } else { Vec::new() };
    for _ in 0..STREAMS {
        world.barrier();
        if !paired {
            continue;
        }
        let other = world.process_at_rank(first(partner) as i32);
        if node < partner {
            let start = Instant::now();
            (0..MESSAGES).for_each(|_| other.send(&message[..]));
            let _ = other.receive::<u8>();
            best = best.max((MESSAGES * MESSAGE) as f64 / start.elapsed().as_secs_f64());
        } else {
            for _ in 0..MESSAGES {
                other.receive_into(&mut message[..]);
            }
            other.send(&0_u8);
        }
    }
    let mut trips = Vec::new();
    world.barrier();
    if paired {
        let other = world.process_at_rank(first(partner) as i32);
        for _ in 0..ROUND_TRIPS {
            let start = Instant::now();
            if node < partner {
                other.send(&0_u8);
                let _ = other.receive::<u8>();
                trips.push(start.elapsed().as_secs_f64());
            } else {
                let _ = other.receive::<u8>();
                other.send(&0_u8);
            }
        }
    }
    let of_pairs = |own: f64| {
        let mut all = vec![0.0; placement.ranks()];
        world.all_gather_into(&own, &mut all[..]);
        all.retain(|&value| value > 0.0);
        (!all.is_empty()).then(|| median(&all))
    };
    let (goodput, latency) = (of_pairs(best), of_pairs(median(&trips) / 2.0));
    Some(Link { goodput: goodput?, latency: latency? })
}
