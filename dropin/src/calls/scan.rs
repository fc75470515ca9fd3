//! MPI_Scan and MPI_Exscan (MPI 4.1, section 6.11).

use std::ffi::c_int;

use super::Call;
use super::reduction::{Arguments, Goal, refuses_one_buffer};
use crate::abi::{self, Word, next};
use crate::stats::Reason;
use crate::what::What;
use crate::{life, verify};

macro_rules! scans {
    ($($(#[$doc:meta])* $name:ident = $what:ident, $wide:expr;)*) => {$(
        $(#[$doc])*
        pub extern "C" fn $name(send: Word, recv: Word, count: Word, datatype: Word, op: Word, comm: Word) -> c_int {
            let elements = if $wide { count.cast_signed() } else { abi::int(count) as isize };
            let arguments = Arguments { send, recv, count: elements, datatype, op, goal: Goal::$what };
            run(What::$what, &arguments, comm, || next::$name(send, recv, count, datatype, op, comm))
        }
    )*};
}

scans! {
    /// MPI_Scan.
    scan = Scan, false;
    /// MPI_Scan_c.
    scan_c = Scan, true;
    /// MPI_Exscan.
    exscan = Exscan, false;
    /// MPI_Exscan_c.
    exscan_c = Exscan, true;
}

#[inline]
fn run(what: What, arguments: &Arguments, comm: Word, hand_on: impl FnOnce() -> c_int) -> c_int {
    Call { what, comm }.run(
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
