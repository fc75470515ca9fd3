//! MPI_Alltoall and MPI_Alltoallv (MPI 4.1, section 6.8).

use std::ffi::c_int;

use super::blocks::{Arguments, Counts, Many, run};
use crate::abi::{self, Word, next};
use crate::what::What;

/// MPI_Alltoall.
pub extern "C" fn alltoall(send: Word, sends: Word, of: Word, recv: Word, gets: Word, to: Word, comm: Word) -> c_int {
    let from = Many { at: send, counts: Counts::Even(abi::int(sends) as isize), datatype: of };
    let many = Many { at: recv, counts: Counts::Even(abi::int(gets) as isize), datatype: to };
    run(What::Alltoall, &Arguments::Alltoall(from, many), comm, |shift| {
        next::alltoall(send, sends, of, recv.wrapping_add_signed(shift), gets, to, comm)
    })
}

/// MPI_Alltoall_c.
pub extern "C" fn alltoall_c(send: Word, sends: Word, of: Word, recv: Word, gets: Word, to: Word, comm: Word) -> c_int {
    let from = Many { at: send, counts: Counts::Even(sends.cast_signed()), datatype: of };
    let many = Many { at: recv, counts: Counts::Even(gets.cast_signed()), datatype: to };
    run(What::Alltoall, &Arguments::Alltoall(from, many), comm, |shift| {
        next::alltoall_c(send, sends, of, recv.wrapping_add_signed(shift), gets, to, comm)
    })
}

/// MPI_Alltoallv.
pub extern "C" fn alltoallv(
    send: Word,
    sends: Word,
    places: Word,
    of: Word,
    recv: Word,
    gets: Word,
    displs: Word,
    to: Word,
    comm: Word,
) -> c_int {
    let from = Many { at: send, counts: Counts::Ints(sends, places), datatype: of };
    let many = Many { at: recv, counts: Counts::Ints(gets, displs), datatype: to };
    run(What::Alltoallv, &Arguments::Alltoall(from, many), comm, |shift| {
        next::alltoallv(send, sends, places, of, recv.wrapping_add_signed(shift), gets, displs, to, comm)
    })
}
