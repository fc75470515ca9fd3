//! MPI_Scan and MPI_Exscan (MPI 4.1, section 6.11).

use std::ffi::c_int;

use super::Call;
use super::forms::forms;
use super::reduction::{Arguments, Goal, refuses_one_buffer};
use crate::abi::{self, Word};
use crate::stats::Reason;
use crate::what::What;
use crate::{life, verify};

forms! {
    /// MPI_Scan.
    scan scan_c(send, recv, count, datatype, op, comm) |width, next| {
        let arguments = Arguments { send, recv, count: width.count(count), datatype, op, goal: Goal::Scan };
        run(What::Scan, &arguments, comm, || next(send, recv, count, datatype, op, comm))
    };
    /// MPI_Exscan.
    exscan exscan_c(send, recv, count, datatype, op, comm) |width, next| {
        let arguments = Arguments { send, recv, count: width.count(count), datatype, op, goal: Goal::Exscan };
        run(What::Exscan, &arguments, comm, || next(send, recv, count, datatype, op, comm))
    };
}

#[inline]
fn run(what: What, arguments: &Arguments, comm: Word, hand_on: impl FnOnce() -> c_int) -> c_int {
    Call { what, comm }.run(
        |_| arguments.glance(),
        |group| {
            let planned = arguments.plan()?;
            let is_one = arguments.send == arguments.recv && refuses_one_buffer();
            // The first rank of an exclusive scan gets nothing.
            let wants = what == What::Scan || group.rank > 0;
            if arguments.send == 0 || (wants && arguments.recv == 0) || abi::is_in_place(arguments.recv) || is_one {
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
