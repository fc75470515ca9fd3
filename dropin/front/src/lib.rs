//! What is preloaded into the processes of an MPI job.
//!
//! It has the names of MPI's functions that Phalanx looks at, and nothing else: it needs no MPI, so that it may be
//! loaded into `mpirun`, shells and interpreters as well. The first call of any of those names finds the MPI that the
//! process has by then (`library`), loads the core that was built for its ABI, and from there on each name leads to
//! the core (`join`), or to the library's own function where the core does not want it, or where there is no core
//! that fits.
//!
//! Functions are passed on with as many machine words as they have arguments: all of MPI's are integers, pointers, or
//! handles that are either. So nothing here depends on an ABI of MPI.

mod arrays;
mod join;
mod library;
mod names;
mod narrow;
mod remark;
