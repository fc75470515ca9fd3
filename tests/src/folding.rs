//! The calls that combine, each as a value: these, as the checks around them, are compiled once for every type.

use hier::operator::Operator;

use crate::sample::Sample;
use crate::{Communicator, Error};

/// A call that combines, with this rank's buffers.
pub enum Folding<'a, T> {
    /// A contribution to a reduce of another root.
    Reduce {
        /// The root.
        root: usize,
        /// The contribution.
        send: &'a [T],
    },
    /// A reduce to this rank.
    ReduceAtRoot {
        /// The contribution.
        send: &'a [T],
        /// The result.
        recv: &'a mut [T],
    },
    /// The same in place.
    ReduceAtRootInPlace(&'a mut [T]),
    /// An allreduce.
    Allreduce {
        /// The contribution.
        send: &'a [T],
        /// The result.
        recv: &'a mut [T],
    },
    /// The same in place.
    AllreduceInPlace(&'a mut [T]),
    /// An allreduce whose result is only looked at.
    #[cfg(not(feature = "mpi"))]
    View {
        /// The contribution.
        send: &'a [T],
        /// Who looks at the result.
        look: &'a mut dyn FnMut(&[T]),
    },
    /// A reduce-scatter of blocks of one length.
    #[cfg(not(feature = "mpi"))]
    ReduceScatterBlock {
        /// A block for every rank.
        send: &'a [T],
        /// This rank's of the result.
        recv: &'a mut [T],
    },
    /// A reduce-scatter of others.
    #[cfg(not(feature = "mpi"))]
    ReduceScatter {
        /// A block for every rank.
        send: &'a [T],
        /// This rank's of the result.
        recv: &'a mut [T],
        /// The blocks' lengths.
        counts: &'a [usize],
    },
    /// A scan.
    #[cfg(not(feature = "mpi"))]
    Scan {
        /// The contribution.
        send: &'a [T],
        /// The result.
        recv: &'a mut [T],
    },
    /// The same in place.
    #[cfg(not(feature = "mpi"))]
    ScanInPlace(&'a mut [T]),
    /// An exclusive scan.
    #[cfg(not(feature = "mpi"))]
    ExclusiveScan {
        /// The contribution.
        send: &'a [T],
        /// The result.
        recv: &'a mut [T],
    },
    /// The same in place.
    #[cfg(not(feature = "mpi"))]
    ExclusiveScanInPlace(&'a mut [T]),
}

impl<T: Sample> Folding<'_, T> {
    /// Makes the call with an operator.
    ///
    /// # Errors
    /// That of the collective.
    pub fn make(self, comm: &Communicator, operator: &dyn Operator<T>) -> Result<(), Error> {
        let own = comm.process_at_rank(comm.rank());
        match self {
            Self::Reduce { root, send } => comm.process_at_rank(root).reduce_into(send, operator),
            Self::ReduceAtRoot { send, recv } => own.reduce_into_root(send, recv, operator),
            Self::ReduceAtRootInPlace(recv) => own.reduce_into_root_in_place(recv, operator),
            Self::Allreduce { send, recv } => comm.all_reduce_into(send, recv, operator),
            Self::AllreduceInPlace(recv) => comm.all_reduce_in_place(recv, operator),
            #[cfg(not(feature = "mpi"))]
            Self::View { send, look } => comm.all_reduce_shared(send, operator).map(|view| look(&view)),
            #[cfg(not(feature = "mpi"))]
            Self::ReduceScatterBlock { send, recv } => comm.reduce_scatter_block_into(send, recv, operator),
            #[cfg(not(feature = "mpi"))]
            Self::ReduceScatter { send, recv, counts } => comm.reduce_scatter_into(send, recv, counts, operator),
            #[cfg(not(feature = "mpi"))]
            Self::Scan { send, recv } => comm.scan_into(send, recv, operator),
            #[cfg(not(feature = "mpi"))]
            Self::ScanInPlace(recv) => comm.scan_in_place(recv, operator),
            #[cfg(not(feature = "mpi"))]
            Self::ExclusiveScan { send, recv } => comm.exclusive_scan_into(send, recv, operator),
            #[cfg(not(feature = "mpi"))]
            Self::ExclusiveScanInPlace(recv) => comm.exclusive_scan_in_place(recv, operator),
        }
    }
}
