//! The functions that Fortran programs call.
//!
//! In Open MPI mpif.h and `use mpi` call `mpi_allreduce_` (spelt as the compiler does), `mpi_f08` calls
//! `ompi_allreduce_f`, and both go past the names of C. In MPICH and Intel MPI they come through C, but for a few
//! procedures of `mpi_f08`.

use std::ffi::c_int;

use crate::abi::{Word, next};
#[cfg(not(open_mpi))]
use crate::freeing::Freeing;
use crate::{calls, life};

/// The function for a name, if there is one.
pub fn own(name: &str) -> Option<*const ()> {
    #[cfg(open_mpi)]
    if let Some(own) = open_mpi::own(name) {
        return Some(own);
    }
    Some(match name {
        "mpi_init_f08_" => f08_init as *const (),
        "mpi_init_thread_f08_" => f08_init_thread as *const (),
        "mpi_finalize_f08_" => f08_finalize as *const (),
        #[cfg(not(open_mpi))]
        "mpi_comm_free_f08_" => f08_comm_free as *const (),
        #[cfg(not(open_mpi))]
        "mpi_comm_disconnect_f08_" => f08_comm_disconnect as *const (),
        #[cfg(not(open_mpi))]
        "mpi_barrier_f08_" => f08_barrier as *const (),
        _ => return None,
    })
}

/// An integer of Fortran.
fn integer(at: Word) -> c_int {
    // SAFETY: Fortran passes all arguments by address.
    unsafe { (at as *const c_int).read_unaligned() }
}

/// Tells MPI's code, if it is wanted.
fn tell(code: c_int, at: Word) {
    if at != 0 {
        // SAFETY: the caller's variable for the code.
        unsafe { (at as *mut c_int).write_unaligned(code) };
    }
}

/// A procedure that begins MPI has returned; its code, if it was wanted, is where `code` says.
fn begun(code: Word) {
    // Whether MPI runs, MPI knows.
    let _ = calls::begun(if code == 0 { crate::abi::SUCCESS } else { integer(code) });
}

extern "C-unwind" fn f08_init(code: Word) {
    next::f08_init(code);
    begun(code);
}

extern "C-unwind" fn f08_init_thread(required: Word, provided: Word, code: Word) {
    next::f08_init_thread(required, provided, code);
    begun(code);
}

extern "C-unwind" fn f08_finalize(code: Word) {
    life::end();
    next::f08_finalize(code);
}

/// A communicator of MPICH's mpi_f08, whose handles are integers.
#[cfg(not(open_mpi))]
fn f08_comm(at: Word) -> Word {
    integer(at) as u32 as Word
}

#[cfg(not(open_mpi))]
extern "C-unwind" fn f08_comm_free(comm: Word, code: Word) {
    let _freeing = Freeing::at(comm, f08_comm);
    next::f08_comm_free(comm, code);
}

#[cfg(not(open_mpi))]
extern "C-unwind" fn f08_comm_disconnect(comm: Word, code: Word) {
    let _freeing = Freeing::at(comm, f08_comm);
    next::f08_comm_disconnect(comm, code);
}

#[cfg(not(open_mpi))]
extern "C-unwind" fn f08_barrier(comm: Word, code: Word) {
    tell(calls::barrier(f08_comm(comm)), code);
}

#[cfg(open_mpi)]
mod open_mpi {
    use std::ffi::CStr;
    use std::sync::OnceLock;

    use mpi::ffi;

    use super::{begun, integer, tell};
    use crate::abi::{self, Word, next};
    use crate::freeing::Freeing;
    use crate::what::fortran_stem;
    use crate::{calls, life, memory};

    pub fn own(name: &str) -> Option<*const ()> {
        Some(match fortran_stem(name)?.as_str() {
            "init" => init as *const (),
            "init_thread" => init_thread as *const (),
            "finalize" => finalize as *const (),
            "alloc_mem" | "alloc_mem_cptr" => alloc_mem as *const (),
            "free_mem" => free_mem as *const (),
            "comm_free" => comm_free as *const (),
            "comm_disconnect" => comm_disconnect as *const (),
            "barrier" => barrier as *const (),
            "bcast" => bcast as *const (),
            "reduce" => reduce as *const (),
            "allreduce" => allreduce as *const (),
            "allgather" => allgather as *const (),
            "allgatherv" => allgatherv as *const (),
            "alltoall" => alltoall as *const (),
            "alltoallv" => alltoallv as *const (),
            "gather" => gather as *const (),
            "gatherv" => gatherv as *const (),
            "scatter" => scatter as *const (),
            "scatterv" => scatterv as *const (),
            "scan" => scan as *const (),
            "exscan" => exscan as *const (),
            "reduce_scatter" => reduce_scatter as *const (),
            "reduce_scatter_block" => reduce_scatter_block as *const (),
            _ => return None,
        })
    }

    /// Addresses that stand for something: common blocks in the program or in MPI's library, spelt as compilers do.
    struct Sentinels {
        in_place: Vec<Word>,
        bottom: Vec<Word>,
    }

    static SENTINELS: OnceLock<Sentinels> = OnceLock::new();

    fn sentinels() -> &'static Sentinels {
        let look_up = |names: [&CStr; 4]| {
            names
                .into_iter()
                // SAFETY: the names are strings of C.
                .map(|name| unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) } as Word)
                .filter(|&address| address != 0)
                .collect()
        };
        SENTINELS.get_or_init(|| Sentinels {
            in_place: look_up([
                c"mpi_fortran_in_place_",
                c"mpi_fortran_in_place",
                c"mpi_fortran_in_place__",
                c"MPI_FORTRAN_IN_PLACE",
            ]),
            bottom: look_up([
                c"mpi_fortran_bottom_",
                c"mpi_fortran_bottom",
                c"mpi_fortran_bottom__",
                c"MPI_FORTRAN_BOTTOM",
            ]),
        })
    }

    /// A buffer, as C has it.
    fn buffer(at: Word) -> Word {
        let sentinels = sentinels();
        if sentinels.in_place.contains(&at) {
            abi::in_place()
        } else if sentinels.bottom.contains(&at) {
            0
        } else {
            at
        }
    }

    fn comm(at: Word) -> Word {
        // SAFETY: any number may be asked for.
        abi::word_of_comm(unsafe { ffi::PMPI_Comm_f2c(integer(at)) })
    }

    fn datatype(at: Word) -> Word {
        // SAFETY: any number may be asked for.
        abi::word_of_datatype(unsafe { ffi::PMPI_Type_f2c(integer(at)) })
    }

    fn op(at: Word) -> Word {
        // SAFETY: any number may be asked for.
        abi::word_of_op(unsafe { ffi::PMPI_Op_f2c(integer(at)) })
    }

    fn number(at: Word) -> Word {
        integer(at) as isize as Word
    }

    extern "C-unwind" fn init(code: Word) {
        next::fortran_init(code);
        begun(code);
    }

    extern "C-unwind" fn init_thread(required: Word, provided: Word, code: Word) {
        next::fortran_init_thread(required, provided, code);
        begun(code);
    }

    extern "C-unwind" fn finalize(code: Word) {
        life::end();
        next::fortran_finalize(code);
    }

    extern "C-unwind" fn alloc_mem(size: Word, info: Word, base: Word, code: Word) {
        // SAFETY: the caller's integer of the kind of addresses.
        let bytes = unsafe { (size as *const isize).read_unaligned() };
        match memory::take(bytes, abi::info_of(integer(info))) {
            Some(address) => {
                // SAFETY: the caller's place for an address.
                unsafe { (base as *mut Word).write_unaligned(address) };
                tell(abi::SUCCESS, code);
            }
            None => {
                next::fortran_alloc_mem(size, info, base, code);
            }
        }
    }

    extern "C-unwind" fn comm_free(group: Word, code: Word) {
        let _freeing = Freeing::at(group, comm);
        next::fortran_comm_free(group, code);
    }

    extern "C-unwind" fn comm_disconnect(group: Word, code: Word) {
        let _freeing = Freeing::at(group, comm);
        next::fortran_comm_disconnect(group, code);
    }

    extern "C-unwind" fn free_mem(base: Word, code: Word) {
        if memory::give_back(base) {
            tell(abi::SUCCESS, code);
        } else {
            next::fortran_free_mem(base, code);
        }
    }

    extern "C-unwind" fn barrier(group: Word, code: Word) {
        tell(calls::barrier(comm(group)), code);
    }

    extern "C-unwind" fn bcast(data: Word, count: Word, kind: Word, root: Word, group: Word, code: Word) {
        tell(calls::bcast(buffer(data), number(count), datatype(kind), number(root), comm(group)), code);
    }

    extern "C-unwind" fn reduce(
        send: Word,
        recv: Word,
        count: Word,
        kind: Word,
        operator: Word,
        root: Word,
        group: Word,
        code: Word,
    ) {
        let (send, recv) = (buffer(send), buffer(recv));
        let (kind, operator) = (datatype(kind), op(operator));
        tell(calls::reduce(send, recv, number(count), kind, operator, number(root), comm(group)), code);
    }

    extern "C-unwind" fn allreduce(
        send: Word,
        recv: Word,
        count: Word,
        kind: Word,
        operator: Word,
        group: Word,
        code: Word,
    ) {
        let (send, recv) = (buffer(send), buffer(recv));
        tell(calls::allreduce(send, recv, number(count), datatype(kind), op(operator), comm(group)), code);
    }

    /// Each argument by what it is; arrays of integers are C's.
    macro_rules! procedures {
        ($($name:ident($($argument:ident: $kind:ident),*);)*) => {$(
            extern "C-unwind" fn $name($($argument: Word,)* code: Word) {
                tell(calls::$name($($kind($argument)),*), code);
            }
        )*};
    }

    fn array(at: Word) -> Word {
        at
    }

    procedures! {
        allgather(send: buffer, sends: number, of: datatype, recv: buffer, gets: number, to: datatype, group: comm);
        allgatherv(send: buffer, sends: number, of: datatype, recv: buffer, gets: array, displs: array, to: datatype, group: comm);
        alltoall(send: buffer, sends: number, of: datatype, recv: buffer, gets: number, to: datatype, group: comm);
        alltoallv(send: buffer, sends: array, places: array, of: datatype, recv: buffer, gets: array, displs: array, to: datatype,
            group: comm);
        gather(send: buffer, sends: number, of: datatype, recv: buffer, gets: number, to: datatype, root: number, group: comm);
        gatherv(send: buffer, sends: number, of: datatype, recv: buffer, gets: array, displs: array, to: datatype, root: number,
            group: comm);
        scatter(send: buffer, sends: number, of: datatype, recv: buffer, gets: number, to: datatype, root: number, group: comm);
        scatterv(send: buffer, sends: array, displs: array, of: datatype, recv: buffer, gets: number, to: datatype, root: number,
            group: comm);
        scan(send: buffer, recv: buffer, count: number, kind: datatype, operator: op, group: comm);
        exscan(send: buffer, recv: buffer, count: number, kind: datatype, operator: op, group: comm);
        reduce_scatter(send: buffer, recv: buffer, counts: array, kind: datatype, operator: op, group: comm);
        reduce_scatter_block(send: buffer, recv: buffer, count: number, kind: datatype, operator: op, group: comm);
    }
}
