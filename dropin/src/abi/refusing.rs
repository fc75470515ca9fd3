//! MPI's functions that this library calls with what a program passes: they may refuse it, by the program's own error
//! handler.
//!
//! A handler in C++ may throw, and its exception then passes through MPI, which is in C, and through this library to
//! the program. So these functions, those behind ours ([`next`](super::next)) and ours may unwind; all others of MPI
//! get what was looked at before.

use std::ffi::{c_int, c_void};

use mpi::ffi::{MPI_Comm, MPI_Count, MPI_Datatype, MPI_Op};

unsafe extern "C-unwind" {
    pub fn PMPI_Comm_call_errhandler(comm: MPI_Comm, code: c_int) -> c_int;
    pub fn PMPI_Comm_get_attr(comm: MPI_Comm, key: c_int, value: *mut c_void, flag: *mut c_int) -> c_int;
    pub fn PMPI_Type_get_attr(datatype: MPI_Datatype, key: c_int, value: *mut c_void, flag: *mut c_int) -> c_int;
    pub fn PMPI_Type_size_x(datatype: MPI_Datatype, size: *mut MPI_Count) -> c_int;
    pub fn PMPI_Op_commutative(op: MPI_Op, commutes: *mut c_int) -> c_int;
}
