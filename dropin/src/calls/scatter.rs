//! MPI_Scatter and MPI_Scatterv (MPI 4.1, section 6.6).

use std::ffi::c_int;

use super::blocks::{Arguments, Counts, Many, One, run};
use crate::abi::{self, Word, next};
use crate::what::What;

/// MPI_Scatter.
pub extern "C" fn scatter(
    send: Word,
    sends: Word,
    of: Word,
    recv: Word,
    gets: Word,
    to: Word,
    root: Word,
    comm: Word,
) -> c_int {
    let one = One { at: recv, count: abi::int(gets) as isize, datatype: to };
    let many = Many { at: send, counts: Counts::Even(abi::int(sends) as isize), datatype: of };
    let at = abi::int(root) as isize;
    run(What::Scatter, &Arguments::Scatter(many, one, at), comm, |shift| {
        next::scatter(send, sends, of, recv.wrapping_add_signed(shift), gets, to, root, comm)
    })
}

/// MPI_Scatter_c.
pub extern "C" fn scatter_c(
    send: Word,
    sends: Word,
    of: Word,
    recv: Word,
    gets: Word,
    to: Word,
    root: Word,
    comm: Word,
) -> c_int {
    let one = One { at: recv, count: gets.cast_signed(), datatype: to };
    let many = Many { at: send, counts: Counts::Even(sends.cast_signed()), datatype: of };
    let at = abi::int(root) as isize;
    run(What::Scatter, &Arguments::Scatter(many, one, at), comm, |shift| {
        next::scatter_c(send, sends, of, recv.wrapping_add_signed(shift), gets, to, root, comm)
    })
}

/// MPI_Scatterv.
pub extern "C" fn scatterv(
    send: Word,
    sends: Word,
    displs: Word,
    of: Word,
    recv: Word,
    gets: Word,
    to: Word,
    root: Word,
    comm: Word,
) -> c_int {
    let one = One { at: recv, count: abi::int(gets) as isize, datatype: to };
    let many = Many { at: send, counts: Counts::Ints(sends, displs), datatype: of };
    let at = abi::int(root) as isize;
    run(What::Scatterv, &Arguments::Scatter(many, one, at), comm, |shift| {
        next::scatterv(send, sends, displs, of, recv.wrapping_add_signed(shift), gets, to, root, comm)
    })
}
