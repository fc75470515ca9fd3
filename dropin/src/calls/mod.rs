//! The functions that programs call.
//!
//! Each looks, in this order, whether the communicator is taken over, whether the arguments are of a kind that is
//! carried out here, and then carries the call out. What it looks at agrees on all ranks of a correct program; where an
//! argument is plainly wrong the library gets the call, and says so through the program's error handler.

mod all_to_all;
mod allgather;
mod allreduce;
mod barrier;
pub mod bcast;
pub mod blocks;
pub mod fault;
mod folding;
mod forms;
mod gather;
mod layout;
pub mod packing;
mod plain;
pub mod planned;
mod reduce;
mod reduce_scatter;
pub mod reduction;
mod room;
mod scan;
mod scatter;

use std::ffi::c_int;
use std::time::{Duration, Instant};

use hier::HierComm;
use mpi::ffi;

use crate::abi::{self, Word, next, refusing};
use crate::communicators::{self, Group};
use crate::life;
use crate::stats::{Key, Reason};
use crate::what::What;

use fault::Fault;

pub use all_to_all::{alltoall, alltoall_c, alltoallv, alltoallv_c};
pub use allgather::{allgather, allgather_c, allgatherv, allgatherv_c};
pub use allreduce::{allreduce, allreduce_c};
pub use barrier::barrier;
pub use bcast::{bcast, bcast_c};
pub use gather::{gather, gather_c, gatherv, gatherv_c};
pub use reduce::{reduce, reduce_c};
pub use reduce_scatter::{reduce_scatter, reduce_scatter_block, reduce_scatter_block_c, reduce_scatter_c};
pub use scan::{exscan, exscan_c, scan, scan_c};
pub use scatter::{scatter, scatter_c, scatterv, scatterv_c};

/// MPI_Init.
pub extern "C-unwind" fn init(argc: Word, argv: Word) -> c_int {
    begun(next::init(argc, argv))
}

/// MPI_Init_thread.
pub extern "C-unwind" fn init_thread(argc: Word, argv: Word, required: Word, provided: Word) -> c_int {
    begun(next::init_thread(argc, argv, required, provided))
}

/// MPI_Finalize.
pub extern "C-unwind" fn finalize() -> c_int {
    life::end();
    next::finalize()
}

/// MPI_Comm_create_from_group: communicators of sessions are the library's, since their ranks may not have a world.
pub extern "C-unwind" fn comm_create_from_group(
    group: Word,
    tag: Word,
    info: Word,
    handler: Word,
    comm: Word,
) -> c_int {
    let code = next::comm_create_from_group(group, tag, info, handler, comm);
    if code == abi::SUCCESS && comm != 0 {
        // SAFETY: MPI has just written a handle there.
        let made = unsafe { (comm as *const ffi::MPI_Comm).read_unaligned() };
        communicators::leave_alone(abi::word_of_comm(made), Reason::Foreign);
    }
    code
}

/// Notes that MPI has begun, if it has.
pub fn begun(code: c_int) -> c_int {
    if code == abi::SUCCESS {
        life::begin();
    }
    code
}

/// How long a launcher may take to end a job one rank of which has ended.
const LAUNCHER: Duration = Duration::from_secs(2);

/// A call on its way: to be carried out, or to be handed on.
pub struct Call {
    pub what: What,
    pub comm: Word,
}

impl Call {
    /// Carries the call out, or hands it on. `glance` tells at once how many bytes the call is about, where that is
    /// easily seen: one that is left to the library is so handed on with as little loss as can be. `plan` looks at the
    /// arguments: how the call is carried out and how many bytes it is about; or why it is handed on. `carry_out` does
    /// it.
    #[inline]
    fn run<P>(
        self,
        glance: impl FnOnce(&Group) -> Option<usize>,
        plan: impl FnOnce(&Group) -> Result<(P, usize), (Reason, usize)>,
        carry_out: impl FnOnce(&HierComm, P) -> Result<(), Fault>,
        hand_on: impl FnOnce() -> c_int,
    ) -> c_int {
        if !life::is_ready(self.comm) {
            return hand_on();
        }
        let Some(group) = communicators::find(self.comm) else { return hand_on() };
        let settings = life::settings();
        let counts = settings.stats;
        let comm = match group.enter(self.comm, self.what) {
            Ok(comm) => comm,
            Err(reason) => {
                // Of an intercommunicator arrays of counts have the remote group's length.
                let counts = counts && reason != Reason::Intercommunicator;
                let bytes = if counts { plan(group).map_or_else(|(_, bytes)| bytes, |(_, bytes)| bytes) } else { 0 };
                return self.handed_on(group, reason, bytes, hand_on);
            }
        };
        if self.what.collective().is_none() && comm.single_node().is_none() {
            return self.handed_on(group, Reason::Nodes, 0, hand_on);
        }
        let takes = |bytes| comm.single_node().is_none() || settings.takes(self.what, group.ranks, bytes);
        // Calls that are counted are looked at more closely: the reason is told.
        if !counts && glance(group).is_some_and(|bytes| !takes(bytes)) {
            return hand_on();
        }
        let (planned, bytes) = match plan(group) {
            Ok(planned) => planned,
            Err((reason, bytes)) => return self.handed_on(group, reason, bytes, hand_on),
        };
        if !takes(bytes) {
            return self.handed_on(group, Reason::Slower, bytes, hand_on);
        }
        let begin = counts.then(Instant::now);
        let outcome = carry_out(comm, planned);
        if let Some(begin) = begin {
            self.note(group, comm, bytes, begin);
        }
        match outcome {
            Ok(()) => abi::SUCCESS,
            Err(fault) => self.fail(comm, &fault),
        }
    }

    #[cold]
    fn note(&self, group: &Group, comm: &HierComm, bytes: usize, begin: Instant) {
        let seconds = begin.elapsed().as_secs_f64();
        if let Ok(mut stats) = group.stats.lock() {
            stats.note(Key::of(self.what, group.ranks, bytes), seconds, || {
                match (self.what.collective(), comm.single_node()) {
                    (Some(what), Some(node)) => {
                        node.explain(what, bytes).map(|how| how.to_string()).unwrap_or_default()
                    }
                    (Some(what), None) => comm.explain(what, bytes),
                    (None, _) => "blocks".to_owned(),
                }
            });
        }
    }

    fn handed_on(&self, group: &Group, reason: Reason, bytes: usize, hand_on: impl FnOnce() -> c_int) -> c_int {
        if !life::settings().stats {
            return hand_on();
        }
        let begin = Instant::now();
        let code = hand_on();
        let seconds = begin.elapsed().as_secs_f64();
        if let Ok(mut stats) = group.stats.lock() {
            stats.note_handed(Key::of(self.what, group.ranks, bytes), seconds, reason);
        }
        code
    }

    /// Tells of an error: the other ranks, should they wait for this one's part; standard error; and the program's
    /// error handler, which may end the job.
    #[cold]
    fn fail(&self, comm: &HierComm, fault: &Fault) -> c_int {
        if fault.is_absence() {
            comm.give_up();
        }
        if fault.may_be_an_end() {
            // Its launcher ends the job with that rank's status, as if this rank waited for it in MPI.
            std::thread::sleep(LAUNCHER);
        }
        hier::remark(format_args!("rank {}: {} failed: {fault}", comm.rank(), self.what.function()));
        // SAFETY: a communicator that the library knows.
        let _ = unsafe { refusing::PMPI_Comm_call_errhandler(abi::comm(self.comm), abi::ERR_OTHER) };
        abi::ERR_OTHER
    }
}
