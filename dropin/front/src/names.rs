//! The names that lead elsewhere.

use std::ffi::CStr;
use std::mem::transmute;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::join;

/// A word of an argument: an integer, a pointer or a handle, whose upper half may be anything where the type is
/// narrower.
pub(crate) type Word = usize;

/// Where a name leads: before the first call, and where no library has the function, to what looks for it.
pub(crate) struct Name {
    pub name: &'static CStr,
    pub target: AtomicPtr<()>,
}

impl Name {
    /// Where it leads, found by the function `first`, to which it has led until then.
    #[cold]
    fn find(&self, first: *mut ()) -> *mut () {
        join::join();
        let target = self.target.load(Ordering::Acquire);
        if target == first { join::find_late(self.name) } else { target }
    }
}

macro_rules! words {
    ($argument:ident) => {
        Word
    };
}

macro_rules! names {
    ($($symbol:ident($($argument:ident)*);)*) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        enum Place { $($symbol,)* }

        /// All of them.
        pub(crate) static NAMES: [Name; [$(stringify!($symbol)),*].len()] = [$(Name {
            name: match CStr::from_bytes_with_nul(concat!(stringify!($symbol), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => c"",
            },
            target: AtomicPtr::new(first::$symbol as *mut ()),
        },)*];

        $(
            // A load and a jump: no argument is moved.
            #[unsafe(no_mangle)]
            extern "C-unwind" fn $symbol($($argument: Word),*) -> Word {
                let target = NAMES[Place::$symbol as usize].target.load(Ordering::Acquire);
                // SAFETY: the target is a function of this name, whose arguments are as many words, passed in the same
                // places whatever they mean; its result, if it has one, is a word or less.
                let target = unsafe { transmute::<*mut (), extern "C-unwind" fn($(words!($argument)),*) -> Word>(target) };
                target($($argument),*)
            }
        )*

        /// Where names lead until it is known where they should.
        #[allow(non_snake_case, clippy::too_many_arguments)]
        mod first {
            use super::{NAMES, Place, Word, transmute};

            $(
                pub extern "C-unwind" fn $symbol($($argument: Word),*) -> Word {
                    let target = NAMES[Place::$symbol as usize].find($symbol as *mut ());
                    // SAFETY: as there.
                    let target = unsafe { transmute::<*mut (), extern "C-unwind" fn($(words!($argument)),*) -> Word>(target) };
                    target($($argument),*)
                }
            )*
        }
    };
}

// C, and the spellings of Fortran's compilers that end in underscores or are in capitals; ompi_*_f is what Open MPI's
// mpi_f08 calls, mpi_*_f08_ are MPICH's procedures that do not come through C. Names like mpi_barrier, which compilers
// spell so only if they are told to (gfortran's -fno-underscoring), are not here: functions of C have such names too
// (those of R's Rmpi), and these would stand before them.
names! {
    MPI_Init(a b);
    MPI_Init_thread(a b c d);
    MPI_Finalize();
    MPI_Comm_create_from_group(a b c d e);
    MPI_Comm_free(a);
    MPI_Comm_disconnect(a);
    MPI_Alloc_mem(a b c);
    MPI_Free_mem(a);
    MPI_Barrier(a);
    MPI_Bcast(a b c d e);
    MPI_Bcast_c(a b c d e);
    MPI_Reduce(a b c d e f g);
    MPI_Reduce_c(a b c d e f g);
    MPI_Allreduce(a b c d e f);
    MPI_Allreduce_c(a b c d e f);
    MPI_Allgather(a b c d e f g);
    MPI_Allgather_c(a b c d e f g);
    MPI_Allgatherv(a b c d e f g h);
    MPI_Allgatherv_c(a b c d e f g h);
    MPI_Alltoall(a b c d e f g);
    MPI_Alltoall_c(a b c d e f g);
    MPI_Alltoallv(a b c d e f g h i);
    MPI_Alltoallv_c(a b c d e f g h i);
    MPI_Gather(a b c d e f g h);
    MPI_Gather_c(a b c d e f g h);
    MPI_Gatherv(a b c d e f g h i);
    MPI_Gatherv_c(a b c d e f g h i);
    MPI_Scatter(a b c d e f g h);
    MPI_Scatter_c(a b c d e f g h);
    MPI_Scatterv(a b c d e f g h i);
    MPI_Scatterv_c(a b c d e f g h i);
    MPI_Scan(a b c d e f);
    MPI_Scan_c(a b c d e f);
    MPI_Exscan(a b c d e f);
    MPI_Exscan_c(a b c d e f);
    MPI_Reduce_scatter(a b c d e f);
    MPI_Reduce_scatter_c(a b c d e f);
    MPI_Reduce_scatter_block(a b c d e f);
    MPI_Reduce_scatter_block_c(a b c d e f);

    mpi_init_(a); mpi_init__(a); MPI_INIT(a); ompi_init_f(a);
    mpi_init_thread_(a b c); mpi_init_thread__(a b c); MPI_INIT_THREAD(a b c); ompi_init_thread_f(a b c);
    mpi_finalize_(a); mpi_finalize__(a); MPI_FINALIZE(a); ompi_finalize_f(a);
    mpi_comm_free_(a b); mpi_comm_free__(a b); MPI_COMM_FREE(a b); ompi_comm_free_f(a b);
    mpi_comm_disconnect_(a b); mpi_comm_disconnect__(a b); MPI_COMM_DISCONNECT(a b); ompi_comm_disconnect_f(a b);
    mpi_free_mem_(a b); mpi_free_mem__(a b); MPI_FREE_MEM(a b); ompi_free_mem_f(a b);
    mpi_alloc_mem_(a b c d); mpi_alloc_mem__(a b c d); MPI_ALLOC_MEM(a b c d); ompi_alloc_mem_f(a b c d);
    mpi_alloc_mem_cptr_(a b c d); mpi_alloc_mem_cptr__(a b c d); MPI_ALLOC_MEM_CPTR(a b c d);
    ompi_alloc_mem_cptr_f(a b c d);
    mpi_barrier_(a b); mpi_barrier__(a b); MPI_BARRIER(a b); ompi_barrier_f(a b);
    mpi_bcast_(a b c d e f); mpi_bcast__(a b c d e f); MPI_BCAST(a b c d e f);
    ompi_bcast_f(a b c d e f);
    mpi_reduce_(a b c d e f g h); mpi_reduce__(a b c d e f g h); MPI_REDUCE(a b c d e f g h);
    ompi_reduce_f(a b c d e f g h);
    mpi_allreduce_(a b c d e f g); mpi_allreduce__(a b c d e f g); MPI_ALLREDUCE(a b c d e f g);
    ompi_allreduce_f(a b c d e f g);

    mpi_allgather_(a b c d e f g h); mpi_allgather__(a b c d e f g h); MPI_ALLGATHER(a b c d e f g h);
    ompi_allgather_f(a b c d e f g h);
    mpi_allgatherv_(a b c d e f g h i); mpi_allgatherv__(a b c d e f g h i); MPI_ALLGATHERV(a b c d e f g h i);
    ompi_allgatherv_f(a b c d e f g h i);
    mpi_alltoall_(a b c d e f g h); mpi_alltoall__(a b c d e f g h); MPI_ALLTOALL(a b c d e f g h);
    ompi_alltoall_f(a b c d e f g h);
    mpi_alltoallv_(a b c d e f g h i j); mpi_alltoallv__(a b c d e f g h i j); MPI_ALLTOALLV(a b c d e f g h i j);
    ompi_alltoallv_f(a b c d e f g h i j);
    mpi_gather_(a b c d e f g h i); mpi_gather__(a b c d e f g h i); MPI_GATHER(a b c d e f g h i);
    ompi_gather_f(a b c d e f g h i);
    mpi_gatherv_(a b c d e f g h i j); mpi_gatherv__(a b c d e f g h i j); MPI_GATHERV(a b c d e f g h i j);
    ompi_gatherv_f(a b c d e f g h i j);
    mpi_scatter_(a b c d e f g h i); mpi_scatter__(a b c d e f g h i); MPI_SCATTER(a b c d e f g h i);
    ompi_scatter_f(a b c d e f g h i);
    mpi_scatterv_(a b c d e f g h i j); mpi_scatterv__(a b c d e f g h i j); MPI_SCATTERV(a b c d e f g h i j);
    ompi_scatterv_f(a b c d e f g h i j);
    mpi_scan_(a b c d e f g); mpi_scan__(a b c d e f g); MPI_SCAN(a b c d e f g);
    ompi_scan_f(a b c d e f g);
    mpi_exscan_(a b c d e f g); mpi_exscan__(a b c d e f g); MPI_EXSCAN(a b c d e f g);
    ompi_exscan_f(a b c d e f g);
    mpi_reduce_scatter_block_(a b c d e f g); mpi_reduce_scatter_block__(a b c d e f g); MPI_REDUCE_SCATTER_BLOCK(a b c d e f g);
    ompi_reduce_scatter_block_f(a b c d e f g);
    mpi_reduce_scatter_(a b c d e f g); mpi_reduce_scatter__(a b c d e f g); MPI_REDUCE_SCATTER(a b c d e f g);
    ompi_reduce_scatter_f(a b c d e f g);

    mpi_init_f08_(a);
    mpi_init_thread_f08_(a b c);
    mpi_finalize_f08_(a);
    mpi_comm_free_f08_(a b);
    mpi_comm_disconnect_f08_(a b);
    mpi_barrier_f08_(a b);
}
