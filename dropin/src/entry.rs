//! The front is answered: which names lead here.

use std::ffi::c_int;
use std::sync::OnceLock;

use crate::abi::next::{Entry, WayPast};
use crate::what::What;
use crate::{calls, fortran, freeing, memory};

/// Takes notice of the functions behind the names, and answers with those of this core.
///
/// # Safety
/// `entries` points to `count` entries of the front.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn phalanx_mpi_attach_names(entries: *mut Entry, count: usize) -> c_int {
    // SAFETY: by contract.
    let entries = unsafe { std::slice::from_raw_parts_mut(entries, count) };
    register_early();
    for entry in entries.iter_mut() {
        entry.note();
        if let Some(own) = own(entry.name()) {
            entry.lead_to(own);
        }
    }
    WAYS_PAST.get_or_init(|| {
        entries.iter().filter_map(|entry| Some((What::of_name(entry.name())?, entry.way_past()))).collect()
    });
    0
}

/// The ways past this core, of the names of all collectives.
static WAYS_PAST: OnceLock<Vec<(What, WayPast)>> = OnceLock::new();

/// Has the names of these collectives lead to the library at once from now on.
pub fn lead_past(is_left: impl Fn(What) -> bool) {
    let ways = WAYS_PAST.get().into_iter().flatten();
    ways.filter(|(what, _)| is_left(*what)).for_each(|(_, way)| way.take());
}

/// Registers the process for the system's barriers, which shm-core needs of all ranks: while it has one thread that
/// costs nothing, and tens of milliseconds once MPI has started its own.
fn register_early() {
    // SAFETY: a system call without pointers. Should it fail, shm-core finds out.
    let _ = unsafe { libc::syscall(libc::SYS_membarrier, libc::MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) };
}

fn own(name: &str) -> Option<*const ()> {
    Some(match name {
        "MPI_Init" => calls::init as *const (),
        "MPI_Init_thread" => calls::init_thread as *const (),
        "MPI_Finalize" => calls::finalize as *const (),
        "MPI_Comm_create_from_group" => calls::comm_create_from_group as *const (),
        "MPI_Comm_free" => freeing::comm_free as *const (),
        "MPI_Comm_disconnect" => freeing::comm_disconnect as *const (),
        "MPI_Alloc_mem" => memory::alloc_mem as *const (),
        "MPI_Free_mem" => memory::free_mem as *const (),
        "MPI_Barrier" => calls::barrier as *const (),
        "MPI_Bcast" => calls::bcast as *const (),
        "MPI_Bcast_c" => calls::bcast_c as *const (),
        "MPI_Reduce" => calls::reduce as *const (),
        "MPI_Reduce_c" => calls::reduce_c as *const (),
        "MPI_Allreduce" => calls::allreduce as *const (),
        "MPI_Allreduce_c" => calls::allreduce_c as *const (),
        "MPI_Allgather" => calls::allgather as *const (),
        "MPI_Allgather_c" => calls::allgather_c as *const (),
        "MPI_Allgatherv" => calls::allgatherv as *const (),
        "MPI_Allgatherv_c" => calls::allgatherv_c as *const (),
        "MPI_Alltoall" => calls::alltoall as *const (),
        "MPI_Alltoall_c" => calls::alltoall_c as *const (),
        "MPI_Alltoallv" => calls::alltoallv as *const (),
        "MPI_Alltoallv_c" => calls::alltoallv_c as *const (),
        "MPI_Gather" => calls::gather as *const (),
        "MPI_Gather_c" => calls::gather_c as *const (),
        "MPI_Gatherv" => calls::gatherv as *const (),
        "MPI_Gatherv_c" => calls::gatherv_c as *const (),
        "MPI_Scatter" => calls::scatter as *const (),
        "MPI_Scatter_c" => calls::scatter_c as *const (),
        "MPI_Scatterv" => calls::scatterv as *const (),
        "MPI_Scatterv_c" => calls::scatterv_c as *const (),
        "MPI_Scan" => calls::scan as *const (),
        "MPI_Scan_c" => calls::scan_c as *const (),
        "MPI_Exscan" => calls::exscan as *const (),
        "MPI_Exscan_c" => calls::exscan_c as *const (),
        "MPI_Reduce_scatter" => calls::reduce_scatter as *const (),
        "MPI_Reduce_scatter_c" => calls::reduce_scatter_c as *const (),
        "MPI_Reduce_scatter_block" => calls::reduce_scatter_block as *const (),
        "MPI_Reduce_scatter_block_c" => calls::reduce_scatter_block_c as *const (),
        _ => return fortran::own(name),
    })
}
