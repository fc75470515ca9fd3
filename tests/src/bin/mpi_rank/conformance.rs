//! Every answer against the oracle.

use hier::Collective;
use hier::operator::{Max, Sum};
use mpi::topology::SimpleCommunicator;
use phalanx_tests::footprint::Footprint;
use phalanx_tests::mix::Mix;
use phalanx_tests::sweep::Sweep;

use crate::watch::step;
use crate::{collectives, well};

/// All types, if they are asked for; then lengths around the sizes where calls across `n` nodes change their ways (see
/// `hier::across`): short vectors, segments of a ring, long broadcasts, messages that are cut. And lines, cells and
/// shares within the node.
pub fn sweep(world: &SimpleCommunicator, seed: u64, all_types: bool) {
    let comm = collectives(world);
    let nodes = comm.placement().nodes();
    let label = std::env::var("PHALANX_CLUSTER").unwrap_or_default();
    let mut sweep = Sweep::new(&comm, label, seed, true);
    if all_types {
        sweep.types(2, 1200);
    }
    step("lengths".to_owned());
    for edge in [0, 8, 504, 2 << 10, 8 << 10, nodes * (4 << 10), 64 << 10, 256 << 10] {
        sweep.across(&[edge]);
        step(format!("lengths beyond {edge}"));
    }
    sweep.roots(&[1, 9, 130, 700]);
    step("slices".to_owned());
    // Slices look for their size meanwhile.
    for _ in 0..10 {
        let case = phalanx_tests::cases::named(&["u64 Sum"])[0];
        sweep.call(&case, Collective::Allreduce, 0, 40_000);
    }
    well(&comm, &format!("{} calls, {}", sweep.calls, comm.describe_network()));
}

pub fn mix(world: &SimpleCommunicator, seed: u64, calls: usize, most: usize) {
    let comm = collectives(world);
    let made = Mix { seed, calls, most, late: true }.run(&comm).expect("a mix");
    well(&comm, &format!("{made} calls on rank 0"));
}

/// More than 2^31 elements, of a byte each, in place.
pub fn octets(world: &SimpleCommunicator) {
    const COUNT: usize = (1 << 31) + 100_003;
    let comm = collectives(world);
    let (rank, size) = (comm.rank(), comm.size());
    let value = |rank: usize, i: usize| ((i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8 ^ rank as u8;
    step("a broadcast of 2^31 elements".to_owned());
    let root = size - 1;
    let mut buffer = vec![0_u8; COUNT];
    if rank == root {
        buffer.iter_mut().enumerate().for_each(|(i, x)| *x = value(root, i));
    }
    comm.process_at_rank(root).broadcast_into(&mut buffer).expect("a broadcast");
    assert!(buffer.iter().enumerate().all(|(i, &x)| x == value(root, i)), "rank {rank}: a broadcast");
    step("an allreduce of 2^31 elements".to_owned());
    buffer.iter_mut().enumerate().for_each(|(i, x)| *x = value(rank, i));
    comm.all_reduce_in_place(&mut buffer, Max).expect("an allreduce");
    step("the answers".to_owned());
    let most = |i: usize| (0..size).map(|rank| value(rank, i)).max();
    assert!(buffer.iter().enumerate().all(|(i, &x)| Some(x) == most(i)), "rank {rank}: an allreduce");
    well(&comm, &format!("{COUNT} elements of a byte"));
}

/// More than 2^31 bytes, in every rooted and unrooted collective that moves them.
pub fn long(world: &SimpleCommunicator) {
    const COUNT: usize = (1 << 29) + 3;
    let comm = collectives(world);
    let (rank, size) = (comm.rank(), comm.size());
    let value = |rank: usize, i: usize| (i as u32).wrapping_mul(2_654_435_761).rotate_left(rank as u32);
    step("a long broadcast".to_owned());
    let mut buffer = vec![0_u32; COUNT];
    let root = size - 1;
    if rank == root {
        buffer.iter_mut().enumerate().for_each(|(i, x)| *x = value(root, i));
    }
    comm.process_at_rank(root).broadcast_into(&mut buffer).expect("a broadcast");
    assert!(buffer.iter().enumerate().all(|(i, &x)| x == value(root, i)), "rank {rank}: a long broadcast");
    step("a long allreduce".to_owned());
    buffer.iter_mut().enumerate().for_each(|(i, x)| *x = value(rank, i));
    comm.all_reduce_in_place(&mut buffer, Max).expect("an allreduce");
    let most = |i: usize| (0..size).map(|rank| value(rank, i)).max();
    assert!(buffer.iter().enumerate().all(|(i, &x)| Some(x) == most(i)), "rank {rank}: a long allreduce");
    well(&comm, "long messages");
}

/// Communicators of all kinds, made and dropped: memory, descriptors and threads stay what they are.
pub fn churn(world: &SimpleCommunicator, times: usize) {
    let round = |number: usize| {
        step(format!("communicator {number}"));
        let comm = collectives(world);
        let sum = |comm: &phalanx_tests::Communicator, len: usize| {
            let mut ranks = vec![comm.rank(); len];
            comm.all_reduce_in_place(&mut ranks, Sum).expect("an allreduce");
            let expected = comm.size() * (comm.size() - 1) / 2;
            assert!(ranks.iter().all(|&sum| sum == expected), "rank {}: {} ranks", comm.rank(), comm.size());
        };
        sum(&comm, 1 + number % 7);
        for other in 0..4 {
            let part = comm.split(Some((comm.rank() % 2) as u32), -(other as i64)).expect("a split").expect("a part");
            sum(&part, 5000);
            sum(&part.duplicate().expect("a duplicate"), 3);
        }
        sum(&comm, 40_000);
        comm
    };
    let threads = || std::fs::read_dir("/proc/self/task").expect("the threads of this process").count();
    // What a library allocates once, and what the network keeps for reuse, is there after a few rounds.
    (0..5).for_each(|number| drop(round(number)));
    std::thread::sleep(std::time::Duration::from_secs(2));
    let (before, threads_before) = (Footprint::own(), threads());
    (0..times).for_each(|number| drop(round(number)));
    let comm = round(0);
    well(&comm, &format!("{times} communicators"));
    drop(comm);
    std::thread::sleep(std::time::Duration::from_secs(2));
    // Mapped ranges are not compared: stacks of threads that have ended, and the MPI's own, are kept for reuse.
    let after = Footprint { maps: before.maps, ..Footprint::own() };
    if let Some(growth) = after.growth(&before) {
        panic!("{times} communicators later: {growth}");
    }
    let maps = std::fs::read_to_string("/proc/self/maps").expect("the maps of this process");
    let segments = maps.lines().filter(|line| line.contains("phalanx") && line.contains("memfd")).count();
    assert_eq!(segments, 0, "segments are mapped yet");
    assert!(threads() <= threads_before, "{threads_before} threads became {}", threads());
}
