//! MPI_Gather and MPI_Gatherv (MPI 4.1, section 6.5).

use super::blocks::{Arguments, Many, One, run};
use super::forms::forms;
use crate::abi;
use crate::what::What;

forms! {
    /// MPI_Gather.
    gather gather_c(send, sends, of, recv, gets, to, root, comm) |width, next| {
        let one = One { at: send, count: width.count(sends), datatype: of };
        let many = Many { at: recv, counts: width.even(gets), datatype: to };
        run(What::Gather, &Arguments::Gather(one, many, abi::int(root) as isize), comm, |shift| {
            next(send, sends, of, recv.wrapping_add_signed(shift), gets, to, root, comm)
        })
    };
    /// MPI_Gatherv.
    gatherv gatherv_c(send, sends, of, recv, gets, displs, to, root, comm) |width, next| {
        let one = One { at: send, count: width.count(sends), datatype: of };
        let many = Many { at: recv, counts: width.uneven(gets, displs), datatype: to };
        run(What::Gatherv, &Arguments::Gather(one, many, abi::int(root) as isize), comm, |shift| {
            next(send, sends, of, recv.wrapping_add_signed(shift), gets, displs, to, root, comm)
        })
    };
}
