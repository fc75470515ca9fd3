//! The same collectives by Rust's interface, on the communicator that serves one of MPI's: what
//! dropin/bench/added_cost.c compares with.

use std::ffi::c_int;

use hier::operator::Sum;
use hier::{Error, NodeCommunicator};

use crate::abi::Word;
use crate::communicators;
use crate::what::What;

/// Makes `times` calls of a collective (its place in [`What`]) of one double at `send` and `recv`; -1 where the
/// communicator is not taken over on one node or the collective is none of the four, 1 when a call fails.
///
/// # Safety
/// `send` and `recv` point to a double each, which nobody else uses meanwhile. Collective over `comm`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn phalanx_mpi_direct(
    comm: Word,
    what: c_int,
    times: c_int,
    send: *const f64,
    recv: *mut f64,
) -> c_int {
    let group = communicators::find(comm);
    let Some(node) = group.and_then(|group| group.enter(comm, What::Barrier).ok()).and_then(|ours| ours.single_node())
    else {
        return -1;
    };
    // SAFETY: by contract.
    let send = unsafe { std::slice::from_raw_parts(send, 1) };
    // SAFETY: by contract.
    let recv = unsafe { std::slice::from_raw_parts_mut(recv, 1) };
    let done = match what as usize {
        place if place == What::Barrier as usize => repeat(times, || node.barrier()),
        place if place == What::Broadcast as usize => repeat(times, || node.process_at_rank(0).broadcast_into(recv)),
        place if place == What::Reduce as usize => repeat(times, || reduce(node, send, recv)),
        place if place == What::Allreduce as usize => repeat(times, || node.all_reduce_into(send, recv, Sum)),
        _ => return -1,
    };
    c_int::from(done.is_err())
}

fn repeat(times: c_int, mut call: impl FnMut() -> Result<(), Error>) -> Result<(), Error> {
    (0..times).try_for_each(|_| call())
}

#[inline]
fn reduce(node: &NodeCommunicator, send: &[f64], recv: &mut [f64]) -> Result<(), Error> {
    let root = node.process_at_rank(0);
    if node.rank() == 0 { root.reduce_into_root(send, recv, Sum) } else { root.reduce_into(send, Sum) }
}
