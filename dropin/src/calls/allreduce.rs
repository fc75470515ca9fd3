//! MPI_Allreduce (MPI 4.1, section 6.9.6).

use std::ffi::c_int;

use super::Call;
use super::reduction::{Arguments, Goal, refuses_one_buffer};
use crate::abi::{self, Word, next};
use crate::stats::Reason;
use crate::what::What;
use crate::{life, verify};

/// MPI_Allreduce.
pub extern "C" fn allreduce(send: Word, recv: Word, count: Word, datatype: Word, op: Word, comm: Word) -> c_int {
    let arguments = Arguments { send, recv, count: abi::int(count) as isize, datatype, op, goal: Goal::All };
    all_reduce(&arguments, comm, || next::allreduce(send, recv, count, datatype, op, comm))
}

/// MPI_Allreduce_c.
pub extern "C" fn allreduce_c(send: Word, recv: Word, count: Word, datatype: Word, op: Word, comm: Word) -> c_int {
    let arguments = Arguments { send, recv, count: count.cast_signed(), datatype, op, goal: Goal::All };
    all_reduce(&arguments, comm, || next::allreduce_c(send, recv, count, datatype, op, comm))
}

#[inline]
fn all_reduce(arguments: &Arguments, comm: Word, hand_on: impl FnOnce() -> c_int) -> c_int {
    let call = Call { what: What::Allreduce, comm };
    call.run(
        |_| {
            let planned = arguments.plan()?;
            let is_one = arguments.send == arguments.recv && refuses_one_buffer();
            if arguments.send == 0 || arguments.recv == 0 || abi::is_in_place(arguments.recv) || is_one {
                return Err((Reason::Argument, planned.1));
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
