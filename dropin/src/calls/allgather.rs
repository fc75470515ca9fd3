//! MPI_Allgather and MPI_Allgatherv (MPI 4.1, section 6.7).

use super::blocks::{Arguments, Many, One, run};
use super::forms::forms;
use crate::what::What;

forms! {
    /// MPI_Allgather.
    allgather allgather_c(send, sends, of, recv, gets, to, comm) |width, next| {
        let one = One { at: send, count: width.count(sends), datatype: of };
        let many = Many { at: recv, counts: width.even(gets), datatype: to };
        run(What::Allgather, &Arguments::Allgather(one, many), comm, |shift| {
            next(send, sends, of, recv.wrapping_add_signed(shift), gets, to, comm)
        })
    };
    /// MPI_Allgatherv.
    allgatherv allgatherv_c(send, sends, of, recv, gets, displs, to, comm) |width, next| {
        let one = One { at: send, count: width.count(sends), datatype: of };
        let many = Many { at: recv, counts: width.uneven(gets, displs), datatype: to };
        run(What::Allgatherv, &Arguments::Allgather(one, many), comm, |shift| {
            next(send, sends, of, recv.wrapping_add_signed(shift), gets, displs, to, comm)
        })
    };
}
