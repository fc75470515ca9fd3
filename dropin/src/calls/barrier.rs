//! MPI_Barrier (MPI 4.1, section 6.3).

use std::ffi::c_int;

use super::Call;
use crate::abi::{Word, next};
use crate::what::What;

/// MPI_Barrier.
pub extern "C-unwind" fn barrier(comm: Word) -> c_int {
    let call = Call { what: What::Barrier, comm };
    call.run(
        |_| None,
        |_| Ok(((), 0)),
        |comm, ()| match comm.single_node() {
            Some(node) => Ok(node.barrier()?),
            None => Ok(comm.barrier()?),
        },
        || next::barrier(comm),
    )
}
