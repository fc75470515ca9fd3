//! Functions with counts of eight bytes (MPI 4.0, 2.5.8), for libraries that do not have them: programs that look them
//! up while they run (mpi4py does) find this library's names, and so must be served.

use std::ffi::{CStr, c_int, c_void};
use std::mem::transmute;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::arrays::{self, Numbers};
use crate::library::Library;
use crate::names::Word;

/// MPI_ERR_COUNT, the same in all ABIs.
const ERR_COUNT: Word = 2;

static CALL_ERRHANDLER: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// What stands for a function that the library does not have: nothing but for counts of eight bytes, which go to the
/// functions with counts of four.
pub(crate) fn stand_in(library: &Library, name: &CStr) -> *mut c_void {
    let Some(form) = FORMS.iter().chain(&ARRAYS).find(|form| form.wide == name) else { return null_mut() };
    arrays::learn(library);
    CALL_ERRHANDLER.store(library.function(c"MPI_Comm_call_errhandler"), Ordering::Release);
    form.plain.store(library.function(form.name), Ordering::Release);
    form.own as *mut c_void
}

/// Tells the communicator's error handler of a count that is too large.
#[cold]
fn refuse(comm: Word) -> Word {
    let function = CALL_ERRHANDLER.load(Ordering::Acquire);
    if !function.is_null() {
        // SAFETY: the library's function of this name takes a handle and an integer.
        let function = unsafe { transmute::<*mut c_void, extern "C-unwind" fn(Word, Word) -> c_int>(function) };
        function(comm, ERR_COUNT);
    }
    ERR_COUNT
}

/// A function with counts of eight bytes, and that with counts of four.
struct Form {
    wide: &'static CStr,
    name: &'static CStr,
    plain: AtomicPtr<c_void>,
    own: *const (),
}

// SAFETY: functions may be called by any thread.
unsafe impl Sync for Form {}

macro_rules! narrow {
    ($($place:ident $name:ident = $wide:literal $plain:literal ($($argument:ident)*) counts($($count:ident)*);)*) => {
        enum Place { $($place,)* }

        static FORMS: [Form; [$($plain),*].len()] = [$(
            Form { wide: $wide, name: $plain, plain: AtomicPtr::new(null_mut()), own: $name as *const () },
        )*];

        $(
            extern "C-unwind" fn $name($($argument: Word,)* comm: Word) -> Word {
                if $(c_int::try_from($count.cast_signed()).is_err())||* {
                    return refuse(comm);
                }
                let function = FORMS[Place::$place as usize].plain.load(Ordering::Acquire);
                // SAFETY: `stand_in` has found the function of this name, which takes so many words, before it gave
                // this one out.
                let function = unsafe {
                    transmute::<*mut c_void, extern "C-unwind" fn($(narrow!(@word $argument),)* Word) -> c_int>(function)
                };
                function($($argument,)* comm) as Word
            }
        )*
    };
    (@word $argument:ident) => { Word };
}

narrow! {
    Bcast bcast = c"MPI_Bcast_c" c"MPI_Bcast" (buffer count datatype root) counts(count);
    Reduce reduce = c"MPI_Reduce_c" c"MPI_Reduce" (send recv count datatype op root) counts(count);
    Allreduce allreduce = c"MPI_Allreduce_c" c"MPI_Allreduce" (send recv count datatype op) counts(count);
    Scan scan = c"MPI_Scan_c" c"MPI_Scan" (send recv count datatype op) counts(count);
    Exscan exscan = c"MPI_Exscan_c" c"MPI_Exscan" (send recv count datatype op) counts(count);
    Allgather allgather = c"MPI_Allgather_c" c"MPI_Allgather" (send sends of recv gets to) counts(sends gets);
    Alltoall alltoall = c"MPI_Alltoall_c" c"MPI_Alltoall" (send sends of recv gets to) counts(sends gets);
    Gather gather = c"MPI_Gather_c" c"MPI_Gather" (send sends of recv gets to root) counts(sends gets);
    Scatter scatter = c"MPI_Scatter_c" c"MPI_Scatter" (send sends of recv gets to root) counts(sends gets);
    ReduceScatterBlock reduce_scatter_block = c"MPI_Reduce_scatter_block_c" c"MPI_Reduce_scatter_block"
        (send recv count datatype op) counts(count);
}

/// The same for functions with arrays of counts and displacements, as long as `$ranks` says.
macro_rules! narrow_arrays {
    ($($place:ident $name:ident = $wide:literal $plain:literal ($($argument:ident)*) count($($count:ident)?)
        arrays($($array:ident: $ranks:expr),*);)*) => {
        enum Array { $($place,)* }

        static ARRAYS: [Form; [$($plain),*].len()] = [$(
            Form { wide: $wide, name: $plain, plain: AtomicPtr::new(null_mut()), own: $name as *const () },
        )*];

        $(
            #[allow(clippy::too_many_arguments, reason = "MPI has so many")]
            extern "C-unwind" fn $name($($argument: Word,)* comm: Word) -> Word {
                let is_long = false $(|| c_int::try_from($count.cast_signed()).is_err())?;
                $(let $array = Numbers::narrow($array, ($ranks)(comm));)*
                if is_long $(|| $array.is_none())* {
                    return refuse(comm);
                }
                // What is hidden by these names lives until the call returns.
                $(let $array = $array.as_ref().map_or(0, Numbers::place);)*
                let function = ARRAYS[Array::$place as usize].plain.load(Ordering::Acquire);
                // SAFETY: `stand_in` has found the function of this name, which takes so many words, before it gave
                // this one out.
                let function = unsafe {
                    transmute::<*mut c_void, extern "C-unwind" fn($(narrow!(@word $argument),)* Word) -> c_int>(function)
                };
                function($($argument,)* comm) as Word
            }
        )*
    };
}

narrow_arrays! {
    Allgatherv allgatherv = c"MPI_Allgatherv_c" c"MPI_Allgatherv" (send sends of recv gets displs to) count(sends)
        arrays(gets: arrays::others, displs: arrays::others);
    Alltoallv alltoallv = c"MPI_Alltoallv_c" c"MPI_Alltoallv" (send sends places of recv gets displs to) count()
        arrays(sends: |comm| arrays::others_unless_in_place(comm, send), places: |comm| arrays::others_unless_in_place(comm, send),
            gets: arrays::others, displs: arrays::others);
    Gatherv gatherv = c"MPI_Gatherv_c" c"MPI_Gatherv" (send sends of recv gets displs to root) count(sends)
        arrays(gets: |comm| arrays::others_at(comm, root), displs: |comm| arrays::others_at(comm, root));
    Scatterv scatterv = c"MPI_Scatterv_c" c"MPI_Scatterv" (send sends displs of recv gets to root) count(gets)
        arrays(sends: |comm| arrays::others_at(comm, root), displs: |comm| arrays::others_at(comm, root));
    ReduceScatter reduce_scatter = c"MPI_Reduce_scatter_c" c"MPI_Reduce_scatter" (send recv gets datatype op) count()
        arrays(gets: arrays::members);
}
