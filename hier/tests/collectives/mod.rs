//! Every collective across nodes against the naive oracle.

use hier::across::HierComm;
use hier::operator::{Max, Min, Sum, User};

fn value(rank: usize, i: usize) -> i64 {
    ((rank * 31 + i * 7) % 1009) as i64 - 300
}

fn vector(rank: usize, count: usize) -> Vec<i64> {
    (0..count).map(|i| value(rank, i)).collect()
}

fn folded(size: usize, count: usize, f: impl Fn(i64, i64) -> i64 + Copy) -> Vec<i64> {
    (0..count).map(|i| (0..size).map(|rank| value(rank, i)).reduce(f).unwrap()).collect()
}

/// A composition of affine maps x -> a x + b modulo 2^16: associative, and every order gives another result.
fn compose(left: u32, right: u32) -> u32 {
    let (a, b) = (left >> 16, left & 0xffff);
    let (c, d) = (right >> 16, right & 0xffff);
    ((a * c) & 0xffff) << 16 | ((a * d + b) & 0xffff)
}

fn map_of(rank: usize, i: usize) -> u32 {
    ((2 * (rank as u32 + i as u32) + 3) & 0xffff) << 16 | ((rank as u32 * 17 + i as u32 + 1) & 0xffff)
}

/// Checks all collectives of one communicator, for vectors of `count` elements.
pub fn check(comm: &HierComm, count: usize) {
    let (rank, size) = (comm.rank(), comm.size());
    let own = vector(rank, count);
    let sum = folded(size, count, |a, b| a + b);
    let mut recv = vec![0; count];
    comm.all_reduce_into(&own, &mut recv, Sum).unwrap();
    assert_eq!(recv, sum);
    recv.copy_from_slice(&own);
    comm.all_reduce_in_place(&mut recv, Max).unwrap();
    assert_eq!(recv, folded(size, count, i64::max));
    comm.barrier().unwrap();

    let operator = User::ordered(|into: &mut [u32], from: &[u32]| {
        for (left, &right) in into.iter_mut().zip(from) {
            *left = compose(*left, right);
        }
    });
    let maps: Vec<u32> = (0..count).map(|i| map_of(rank, i)).collect();
    let composed: Vec<u32> =
        (0..count).map(|i| (0..size).map(|rank| map_of(rank, i)).reduce(compose).unwrap()).collect();
    let mut result = vec![0; count];
    comm.all_reduce_into(&maps, &mut result, operator).unwrap();
    assert_eq!(result, composed);

    for root in 0..size {
        let process = comm.process_at_rank(root);
        let mut buffer = if rank == root { vector(root + 100, count) } else { vec![-1; count] };
        process.broadcast_into(&mut buffer).unwrap();
        assert_eq!(buffer, vector(root + 100, count));
        if rank == root {
            process.reduce_into_root(&own, &mut recv, Min).unwrap();
            assert_eq!(recv, folded(size, count, i64::min));
            process.reduce_into_root(&maps, &mut result, operator).unwrap();
            assert_eq!(result, composed);
            recv.copy_from_slice(&own);
            process.reduce_into_root_in_place(&mut recv, Sum).unwrap();
            assert_eq!(recv, sum);
        } else {
            process.reduce_into(&own, Min).unwrap();
            process.reduce_into(&maps, operator).unwrap();
            process.reduce_into(&own, Sum).unwrap();
        }
    }
}
