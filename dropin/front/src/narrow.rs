//! Functions with counts of eight bytes (MPI 4.0, 2.5.8), for libraries that do not have them: programs that look them up while they
//! run (mpi4py does) find this library's names, and so must be served.

use std::ffi::{CStr, c_int, c_void};
use std::mem::transmute;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::library::Library;
use crate::names::Word;

/// MPI_ERR_COUNT, the same in all ABIs.
const ERR_COUNT: Word = 2;

static BCAST: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static REDUCE: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static ALLREDUCE: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static CALL_ERRHANDLER: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// What stands for a function that the library does not have: nothing but for counts of eight bytes, which go to the functions with
/// counts of four.
pub(crate) fn stand_in(library: &Library, name: &CStr) -> *mut c_void {
    let (plain, place, own) = match name.to_bytes() {
        b"MPI_Bcast_c" => (c"MPI_Bcast", &BCAST, bcast as *mut c_void),
        b"MPI_Reduce_c" => (c"MPI_Reduce", &REDUCE, reduce as *mut c_void),
        b"MPI_Allreduce_c" => (c"MPI_Allreduce", &ALLREDUCE, allreduce as *mut c_void),
        _ => return null_mut(),
    };
    CALL_ERRHANDLER.store(library.function(c"MPI_Comm_call_errhandler"), Ordering::Release);
    place.store(library.function(plain), Ordering::Release);
    own
}

/// Tells the communicator's error handler of a count that is too large.
#[cold]
fn refuse(comm: Word) -> Word {
    let function = CALL_ERRHANDLER.load(Ordering::Acquire);
    if !function.is_null() {
        // SAFETY: the library's function of this name takes a handle and an integer.
        let function = unsafe { transmute::<*mut c_void, extern "C" fn(Word, Word) -> c_int>(function) };
        function(comm, ERR_COUNT);
    }
    ERR_COUNT
}

macro_rules! narrow {
    ($($name:ident = $place:ident($($before:ident)*; $($after:ident)*) of $comm:ident;)*) => {$(
        extern "C" fn $name($($before: Word,)* count: Word, $($after: Word),*) -> Word {
            if c_int::try_from(count.cast_signed()).is_err() {
                return refuse($comm);
            }
            let function = $place.load(Ordering::Acquire);
            // SAFETY: `stand_in` has found the function of this name, which takes so many words, before it gave this one out.
            let function = unsafe {
                transmute::<*mut c_void, extern "C" fn($(narrow!(@word $before),)* Word, $(narrow!(@word $after)),*) -> c_int>(function)
            };
            function($($before,)* count, $($after),*) as Word
        }
    )*};
    (@word $argument:ident) => { Word };
}

narrow! {
    bcast = BCAST(buffer; datatype root comm) of comm;
    reduce = REDUCE(send recv; datatype op root comm) of comm;
    allreduce = ALLREDUCE(send recv; datatype op comm) of comm;
}
