//! MPI_Alltoall and MPI_Alltoallv (MPI 4.1, section 6.8).

use super::blocks::{Arguments, Many, run};
use super::forms::forms;
use crate::what::What;

forms! {
    /// MPI_Alltoall.
    alltoall alltoall_c(send, sends, of, recv, gets, to, comm) |width, next| {
        let from = Many { at: send, counts: width.even(sends), datatype: of };
        let many = Many { at: recv, counts: width.even(gets), datatype: to };
        run(What::Alltoall, &Arguments::Alltoall(from, many), comm, |shift| {
            next(send, sends, of, recv.wrapping_add_signed(shift), gets, to, comm)
        })
    };
    /// MPI_Alltoallv.
    alltoallv alltoallv_c(send, sends, places, of, recv, gets, displs, to, comm) |width, next| {
        let from = Many { at: send, counts: width.uneven(sends, places), datatype: of };
        let many = Many { at: recv, counts: width.uneven(gets, displs), datatype: to };
        run(What::Alltoallv, &Arguments::Alltoall(from, many), comm, |shift| {
            next(send, sends, places, of, recv.wrapping_add_signed(shift), gets, displs, to, comm)
        })
    };
}
