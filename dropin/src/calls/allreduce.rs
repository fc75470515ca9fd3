//! MPI_Allreduce (MPI 4.1, section 6.9.6).

use std::ffi::c_int;

use super::Call;
use super::forms::forms;
use super::reduction::{Arguments, Goal, refuses_one_buffer};
use crate::abi::{self, Word};
use crate::stats::Reason;
use crate::what::What;
use crate::{life, verify};

forms! {
    /// MPI_Allreduce.
    allreduce allreduce_c(send, recv, count, datatype, op, comm) |width, next| {
        let arguments = Arguments { send, recv, count: width.count(count), datatype, op, goal: Goal::All };
        all_reduce(&arguments, comm, || next(send, recv, count, datatype, op, comm))
    };
}

#[inline]
fn all_reduce(arguments: &Arguments, comm: Word, hand_on: impl FnOnce() -> c_int) -> c_int {
    let call = Call { what: What::Allreduce, comm };
    call.run(
        |_| None,
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
