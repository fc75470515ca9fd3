//! MPI_Gather and MPI_Gatherv (MPI 4.1, section 6.5).

use std::ffi::c_int;

use super::blocks::{Arguments, Counts, Many, One, run};
use crate::abi::{self, Word, next};
use crate::what::What;

/// MPI_Gather.
pub extern "C" fn gather(
    send: Word,
    sends: Word,
    of: Word,
    recv: Word,
    gets: Word,
    to: Word,
    root: Word,
    comm: Word,
) -> c_int {
    let one = One { at: send, count: abi::int(sends) as isize, datatype: of };
    let many = Many { at: recv, counts: Counts::Even(abi::int(gets) as isize), datatype: to };
    let at = abi::int(root) as isize;
    run(What::Gather, &Arguments::Gather(one, many, at), comm, |shift| {
        next::gather(send, sends, of, recv.wrapping_add_signed(shift), gets, to, root, comm)
    })
}

/// MPI_Gather_c.
pub extern "C" fn gather_c(
    send: Word,
    sends: Word,
    of: Word,
    recv: Word,
    gets: Word,
    to: Word,
    root: Word,
    comm: Word,
) -> c_int {
    let one = One { at: send, count: sends.cast_signed(), datatype: of };
    let many = Many { at: recv, counts: Counts::Even(gets.cast_signed()), datatype: to };
    let at = abi::int(root) as isize;
    run(What::Gather, &Arguments::Gather(one, many, at), comm, |shift| {
        next::gather_c(send, sends, of, recv.wrapping_add_signed(shift), gets, to, root, comm)
    })
}

/// MPI_Gatherv.
pub extern "C" fn gatherv(
    send: Word,
    sends: Word,
    of: Word,
    recv: Word,
    gets: Word,
    displs: Word,
    to: Word,
    root: Word,
    comm: Word,
) -> c_int {
    let one = One { at: send, count: abi::int(sends) as isize, datatype: of };
    let many = Many { at: recv, counts: Counts::Ints(gets, displs), datatype: to };
    let at = abi::int(root) as isize;
    run(What::Gatherv, &Arguments::Gather(one, many, at), comm, |shift| {
        next::gatherv(send, sends, of, recv.wrapping_add_signed(shift), gets, displs, to, root, comm)
    })
}
