//! MPI_Scatter and MPI_Scatterv (MPI 4.1, section 6.6).

use super::blocks::{Arguments, Many, One, run};
use super::forms::forms;
use crate::abi;
use crate::what::What;

forms! {
    /// MPI_Scatter.
    scatter scatter_c(send, sends, of, recv, gets, to, root, comm) |width, next| {
        let one = One { at: recv, count: width.count(gets), datatype: to };
        let many = Many { at: send, counts: width.even(sends), datatype: of };
        run(What::Scatter, &Arguments::Scatter(many, one, abi::int(root) as isize), comm, |shift| {
            next(send, sends, of, recv.wrapping_add_signed(shift), gets, to, root, comm)
        })
    };
    /// MPI_Scatterv.
    scatterv scatterv_c(send, sends, displs, of, recv, gets, to, root, comm) |width, next| {
        let one = One { at: recv, count: width.count(gets), datatype: to };
        let many = Many { at: send, counts: width.uneven(sends, displs), datatype: of };
        run(What::Scatterv, &Arguments::Scatter(many, one, abi::int(root) as isize), comm, |shift| {
            next(send, sends, displs, of, recv.wrapping_add_signed(shift), gets, to, root, comm)
        })
    };
}
