//! The functions behind ours: where a call goes that is handed on.

#![cfg_attr(not(open_mpi), allow(dead_code, reason = "only Open MPI has Fortran functions that go past those of C"))]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::transmute;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::Word;

/// A name, as the front tells of it and as it is answered. The front's `Entry`.
#[repr(C)]
pub struct Entry {
    name: *const c_char,
    next: *mut c_void,
    own: *mut c_void,
    target: *const AtomicPtr<()>,
}

impl Entry {
    /// The name.
    pub fn name(&self) -> &str {
        // SAFETY: the front's names are static strings of C.
        unsafe { CStr::from_ptr(self.name) }.to_str().unwrap_or_default()
    }

    /// Answers with a function of the same arguments.
    pub fn lead_to(&mut self, own: *const ()) {
        self.own = own.cast_mut().cast();
    }

    /// How the name is led past this core.
    pub fn way_past(&self) -> WayPast {
        // SAFETY: the front's word for the name, a static.
        WayPast { target: unsafe { &*self.target }, next: AtomicPtr::new(self.next.cast()) }
    }

    /// Notes the function that comes next.
    pub fn note(&self) {
        let name = self.name();
        if let Some(place) = NEXT.iter().find(|next| next.name == name) {
            place.function.store(self.next, Ordering::Release);
        }
    }
}

/// The way from a name to the function behind ours.
pub struct WayPast {
    target: &'static AtomicPtr<()>,
    next: AtomicPtr<()>,
}

impl WayPast {
    /// Has the name lead there from now on, if there is such a function.
    pub fn take(&self) {
        let next = self.next.load(Ordering::Relaxed);
        if !next.is_null() {
            self.target.store(next, Ordering::Release);
        }
    }
}

/// A function behind ours.
struct Next {
    name: &'static str,
    function: AtomicPtr<c_void>,
}

macro_rules! next {
    ($($(#[$doc:meta])* $rust:ident = $symbol:ident($($argument:ident),*);)*) => {
        #[allow(non_camel_case_types)]
        enum Place { $($rust,)* }

        static NEXT: [Next; [$(stringify!($rust)),*].len()] =
            [$(Next { name: stringify!($symbol), function: AtomicPtr::new(std::ptr::null_mut()) },)*];

        $(
            $(#[$doc])*
            #[allow(clippy::too_many_arguments, reason = "MPI has so many")]
            pub fn $rust($($argument: Word),*) -> c_int {
                let function = NEXT[Place::$rust as usize].function.load(Ordering::Acquire);
                if function.is_null() {
                    missing(stringify!($symbol));
                }
                // SAFETY: the library's function of this name, or that of a tool in front of it, takes so many words.
                let function = unsafe { transmute::<*mut c_void, extern "C-unwind" fn($(next!(@word $argument)),*) -> c_int>(function) };
                function($($argument),*)
            }
        )*
    };
    (@word $argument:ident) => { Word };
}

next! {
    /// MPI_Init.
    init = MPI_Init(argc, argv);
    /// MPI_Init_thread.
    init_thread = MPI_Init_thread(argc, argv, required, provided);
    /// MPI_Finalize.
    finalize = MPI_Finalize();
    /// MPI_Comm_create_from_group.
    comm_create_from_group = MPI_Comm_create_from_group(group, tag, info, handler, comm);
    /// MPI_Comm_free.
    comm_free = MPI_Comm_free(comm);
    /// MPI_Comm_disconnect.
    comm_disconnect = MPI_Comm_disconnect(comm);
    /// MPI_Alloc_mem.
    alloc_mem = MPI_Alloc_mem(size, info, base);
    /// MPI_Free_mem.
    free_mem = MPI_Free_mem(base);
    /// MPI_Barrier.
    barrier = MPI_Barrier(comm);
    /// MPI_Bcast.
    bcast = MPI_Bcast(buffer, count, datatype, root, comm);
    /// MPI_Reduce.
    reduce = MPI_Reduce(send, recv, count, datatype, op, root, comm);
    /// MPI_Allreduce.
    allreduce = MPI_Allreduce(send, recv, count, datatype, op, comm);
    /// MPI_Bcast with a count of eight bytes.
    bcast_c = MPI_Bcast_c(buffer, count, datatype, root, comm);
    /// MPI_Reduce with a count of eight bytes.
    reduce_c = MPI_Reduce_c(send, recv, count, datatype, op, root, comm);
    /// MPI_Allreduce with a count of eight bytes.
    allreduce_c = MPI_Allreduce_c(send, recv, count, datatype, op, comm);
    /// MPI_Allgather.
    allgather = MPI_Allgather(send, sends, of, recv, gets, to, comm);
    /// MPI_Allgather with counts of eight bytes.
    allgather_c = MPI_Allgather_c(send, sends, of, recv, gets, to, comm);
    /// MPI_Allgatherv.
    allgatherv = MPI_Allgatherv(send, sends, of, recv, gets, displs, to, comm);
    /// MPI_Allgatherv with counts of eight bytes.
    allgatherv_c = MPI_Allgatherv_c(send, sends, of, recv, gets, displs, to, comm);
    /// MPI_Alltoall.
    alltoall = MPI_Alltoall(send, sends, of, recv, gets, to, comm);
    /// MPI_Alltoall with counts of eight bytes.
    alltoall_c = MPI_Alltoall_c(send, sends, of, recv, gets, to, comm);
    /// MPI_Alltoallv.
    alltoallv = MPI_Alltoallv(send, sends, places, of, recv, gets, displs, to, comm);
    /// MPI_Alltoallv with counts of eight bytes.
    alltoallv_c = MPI_Alltoallv_c(send, sends, places, of, recv, gets, displs, to, comm);
    /// MPI_Gather.
    gather = MPI_Gather(send, sends, of, recv, gets, to, root, comm);
    /// MPI_Gather with counts of eight bytes.
    gather_c = MPI_Gather_c(send, sends, of, recv, gets, to, root, comm);
    /// MPI_Gatherv.
    gatherv = MPI_Gatherv(send, sends, of, recv, gets, displs, to, root, comm);
    /// MPI_Gatherv with counts of eight bytes.
    gatherv_c = MPI_Gatherv_c(send, sends, of, recv, gets, displs, to, root, comm);
    /// MPI_Scatter.
    scatter = MPI_Scatter(send, sends, of, recv, gets, to, root, comm);
    /// MPI_Scatter with counts of eight bytes.
    scatter_c = MPI_Scatter_c(send, sends, of, recv, gets, to, root, comm);
    /// MPI_Scatterv.
    scatterv = MPI_Scatterv(send, sends, displs, of, recv, gets, to, root, comm);
    /// MPI_Scatterv with counts of eight bytes.
    scatterv_c = MPI_Scatterv_c(send, sends, displs, of, recv, gets, to, root, comm);
    /// MPI_Scan.
    scan = MPI_Scan(send, recv, count, datatype, op, comm);
    /// MPI_Scan with a count of eight bytes.
    scan_c = MPI_Scan_c(send, recv, count, datatype, op, comm);
    /// MPI_Exscan.
    exscan = MPI_Exscan(send, recv, count, datatype, op, comm);
    /// MPI_Exscan with a count of eight bytes.
    exscan_c = MPI_Exscan_c(send, recv, count, datatype, op, comm);
    /// MPI_Reduce_scatter.
    reduce_scatter = MPI_Reduce_scatter(send, recv, counts, datatype, op, comm);
    /// MPI_Reduce_scatter with counts of eight bytes.
    reduce_scatter_c = MPI_Reduce_scatter_c(send, recv, counts, datatype, op, comm);
    /// MPI_Reduce_scatter_block.
    reduce_scatter_block = MPI_Reduce_scatter_block(send, recv, count, datatype, op, comm);
    /// MPI_Reduce_scatter_block with a count of eight bytes.
    reduce_scatter_block_c = MPI_Reduce_scatter_block_c(send, recv, count, datatype, op, comm);
    /// MPI_INIT of Fortran.
    fortran_init = mpi_init_(code);
    /// MPI_INIT_THREAD of Fortran.
    fortran_init_thread = mpi_init_thread_(required, provided, code);
    /// MPI_FINALIZE of Fortran.
    fortran_finalize = mpi_finalize_(code);
    /// MPI_FREE_MEM of Fortran.
    fortran_free_mem = mpi_free_mem_(base, code);
    /// MPI_COMM_FREE of Fortran.
    fortran_comm_free = mpi_comm_free_(comm, code);
    /// MPI_COMM_DISCONNECT of Fortran.
    fortran_comm_disconnect = mpi_comm_disconnect_(comm, code);
    /// MPI_ALLOC_MEM of Fortran.
    fortran_alloc_mem = mpi_alloc_mem_(size, info, base, code);
    /// MPI_Init of mpi_f08.
    f08_init = mpi_init_f08_(code);
    /// MPI_Init_thread of mpi_f08.
    f08_init_thread = mpi_init_thread_f08_(required, provided, code);
    /// MPI_Comm_free of mpi_f08.
    #[cfg_attr(open_mpi, allow(dead_code, reason = "of MPICH alone"))]
    f08_comm_free = mpi_comm_free_f08_(comm, code);
    /// MPI_Comm_disconnect of mpi_f08.
    #[cfg_attr(open_mpi, allow(dead_code, reason = "of MPICH alone"))]
    f08_comm_disconnect = mpi_comm_disconnect_f08_(comm, code);
    /// MPI_Finalize of mpi_f08.
    f08_finalize = mpi_finalize_f08_(code);
}

/// Ends the process: a function was called that the library does not have.
#[cold]
fn missing(name: &str) -> ! {
    hier::remark(format_args!("{name} was called, but the MPI of this process does not have it"));
    std::process::abort();
}
