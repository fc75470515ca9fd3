//! MPI_Allgather and MPI_Allgatherv (MPI 4.1, section 6.7).

use std::ffi::c_int;

use super::blocks::{Arguments, Counts, Many, One, run};
use crate::abi::{self, Word, next};
use crate::what::What;

/// MPI_Allgather.
pub extern "C" fn allgather(send: Word, sends: Word, of: Word, recv: Word, gets: Word, to: Word, comm: Word) -> c_int {
    let one = One { at: send, count: abi::int(sends) as isize, datatype: of };
    let many = Many { at: recv, counts: Counts::Even(abi::int(gets) as isize), datatype: to };
    run(What::Allgather, &Arguments::Allgather(one, many), comm, |shift| {
        next::allgather(send, sends, of, recv.wrapping_add_signed(shift), gets, to, comm)
    })
}

/// MPI_Allgather_c.
pub extern "C" fn allgather_c(
    send: Word,
    sends: Word,
    of: Word,
    recv: Word,
    gets: Word,
    to: Word,
    comm: Word,
) -> c_int {
    let one = One { at: send, count: sends.cast_signed(), datatype: of };
    let many = Many { at: recv, counts: Counts::Even(gets.cast_signed()), datatype: to };
    run(What::Allgather, &Arguments::Allgather(one, many), comm, |shift| {
        next::allgather_c(send, sends, of, recv.wrapping_add_signed(shift), gets, to, comm)
    })
}

/// MPI_Allgatherv.
pub extern "C" fn allgatherv(
    send: Word,
    sends: Word,
    of: Word,
    recv: Word,
    gets: Word,
    displs: Word,
    to: Word,
    comm: Word,
) -> c_int {
    let one = One { at: send, count: abi::int(sends) as isize, datatype: of };
    let many = Many { at: recv, counts: Counts::Ints(gets, displs), datatype: to };
    run(What::Allgatherv, &Arguments::Allgather(one, many), comm, |shift| {
        next::allgatherv(send, sends, of, recv.wrapping_add_signed(shift), gets, displs, to, comm)
    })
}
