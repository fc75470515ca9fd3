//! Short calls, many times, on two ranks that are threads: what `scripts/instructions` counts the instructions of.
//!
//! `warm_path barrier|allreduce|broadcast|reduce [BYTES]`. Each rank's calls are made in a function of its own name.

#![forbid(unsafe_code)]

use shm_core::operator::Sum;
use shm_core::{Communicator, Error};

/// Calls of each rank, after as many that are not counted.
const CALLS: usize = 1000;

fn calls(comm: &Communicator, what: &str, buffers: [&mut [u64]; 2]) -> Result<(), Error> {
    let [send, recv] = buffers;
    let root = comm.process_at_rank(0);
    match (what, comm.rank()) {
        ("barrier", _) => (0..CALLS).try_for_each(|_| comm.barrier()),
        ("allreduce", _) => (0..CALLS).try_for_each(|_| comm.all_reduce_into(send, recv, Sum)),
        ("broadcast", _) => (0..CALLS).try_for_each(|_| root.broadcast_into(recv)),
        ("reduce", 0) => (0..CALLS).try_for_each(|_| root.reduce_into_root(send, recv, Sum)),
        ("reduce", _) => (0..CALLS).try_for_each(|_| root.reduce_into(send, Sum)),
        (other, _) => panic!("{other:?} is no collective"),
    }
}

#[inline(never)]
fn counted_on_rank_0(comm: &Communicator, what: &str, buffers: [&mut [u64]; 2]) -> Result<(), Error> {
    calls(comm, what, buffers)
}

#[inline(never)]
fn counted_on_rank_1(comm: &Communicator, what: &str, buffers: [&mut [u64]; 2]) -> Result<(), Error> {
    calls(comm, what, buffers)?;
    // Two functions that the compiler cannot make one of.
    std::hint::black_box(Ok(()))
}

fn main() -> Result<(), Error> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let what = args.first().map_or("barrier", String::as_str);
    let bytes: usize = args.get(1).map_or(8, |bytes| bytes.parse().expect("a number of bytes"));
    let ended = Communicator::threads(2, |comm| {
        let (mut send, mut recv) = (vec![1u64; bytes / 8], vec![0u64; bytes / 8]);
        calls(&comm, what, [&mut send, &mut recv])?;
        comm.barrier()?;
        match comm.rank() {
            0 => counted_on_rank_0(&comm, what, [&mut send, &mut recv]),
            _ => counted_on_rank_1(&comm, what, [&mut send, &mut recv]),
        }?;
        comm.barrier()
    })?;
    ended.into_iter().collect()
}
