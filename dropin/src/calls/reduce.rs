//! MPI_Reduce (MPI 4.1, section 6.9.1).

use std::ffi::c_int;

use mpi::ffi;

use super::Call;
use super::forms::forms;
use super::reduction::{Arguments, Goal, refuses_one_buffer};
use crate::abi::{self, Word};
use crate::stats::Reason;
use crate::what::What;
use crate::{life, verify};

forms! {
    /// MPI_Reduce.
    reduce reduce_c(send, recv, count, datatype, op, root, comm) |width, next| {
        let at = usize::try_from(abi::int(root)).unwrap_or(usize::MAX);
        let arguments = Arguments { send, recv, count: width.count(count), datatype, op, goal: Goal::Root(at) };
        reduce_to(&arguments, at, comm, || next(send, recv, count, datatype, op, root, comm))
    };
}

#[inline]
fn reduce_to(arguments: &Arguments, root: usize, comm: Word, hand_on: impl FnOnce() -> c_int) -> c_int {
    let call = Call { what: What::Reduce, comm };
    call.run(
        |_| None,
        |group| {
            let planned = arguments.plan()?;
            let wrong = (Reason::Argument, planned.1);
            if root >= group.ranks || arguments.send == 0 {
                return Err(wrong);
            }
            let has_no_result = arguments.recv == 0 || abi::is_in_place(arguments.recv);
            let is_one = arguments.send == arguments.recv && refuses_one_buffer();
            if (has_no_result || is_one || abi::is_in_place(arguments.send)) && is_wrong_at(arguments, root, comm) {
                return Err(wrong);
            }
            Ok(planned)
        },
        |ours, plan| {
            if life::settings().verify {
                return verify::reduction(arguments, &plan, comm, ours.rank(), || arguments.carry_out(ours, &plan));
            }
            arguments.carry_out(ours, &plan)
        },
        hand_on,
    )
}

/// Whether buffers that some ranks may pass are wrong on this one: a root without a place for the result, another rank
/// without a contribution.
#[cold]
fn is_wrong_at(arguments: &Arguments, root: usize, comm: Word) -> bool {
    let mut rank = 0;
    // SAFETY: a communicator that the library knows.
    let code = unsafe { ffi::PMPI_Comm_rank(abi::comm(comm), &mut rank) };
    if code == abi::SUCCESS && rank as usize == root {
        arguments.recv == 0
            || abi::is_in_place(arguments.recv)
            || arguments.send == arguments.recv && refuses_one_buffer()
    } else {
        abi::is_in_place(arguments.send)
    }
}
