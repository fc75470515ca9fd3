//! MPI_Alloc_mem (MPI 4.1, section 10.2): memory that all ranks of the node share, so that collectives use it where it
//! lies.

use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use hier::Buffer;

use crate::abi::{self, Word, next};
use crate::making;

/// Less than that gains nothing, and would take a page.
const LEAST: usize = 4096;

/// What the heap's memory is aligned to, a line of a cache; an info may ask for more.
const ALIGNMENT: usize = 64;

/// What was given out, by address.
static GIVEN: LazyLock<Mutex<HashMap<Word, Buffer<u8>>>> = LazyLock::new(Mutex::default);

fn given() -> MutexGuard<'static, HashMap<Word, Buffer<u8>>> {
    GIVEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// So many bytes of the node's heap, as an info asks; nothing where there is no heap, or no room, or no gain, or the info
/// asks for what the heap does not have.
pub fn take(bytes: isize, info: Word) -> Option<Word> {
    let bytes = usize::try_from(bytes).ok().filter(|&bytes| bytes >= LEAST && abi::alignment(info) <= ALIGNMENT)?;
    let buffer = making::with_keeper(|keeper| keeper.alloc::<u8>(bytes).ok()).flatten()?;
    let address = buffer.as_ptr() as Word;
    given().insert(address, buffer);
    Some(address)
}

/// Gives memory back; whether it was of the heap.
pub fn give_back(address: Word) -> bool {
    given().remove(&address).is_some()
}

/// Leaves to the program what it has not given back when MPI ends: it may use it until the process ends.
pub fn keep_for_ever() {
    given().drain().for_each(|(_, buffer)| std::mem::forget(buffer));
}

/// MPI_Alloc_mem.
pub extern "C-unwind" fn alloc_mem(size: Word, info: Word, base: Word) -> c_int {
    match take(size.cast_signed(), info) {
        Some(address) => {
            // SAFETY: by MPI's contract the third argument is a place for a pointer, of any alignment.
            unsafe { (base as *mut Word).write_unaligned(address) };
            abi::SUCCESS
        }
        None => next::alloc_mem(size, info, base),
    }
}

/// MPI_Free_mem.
pub extern "C-unwind" fn free_mem(base: Word) -> c_int {
    if give_back(base) { abi::SUCCESS } else { next::free_mem(base) }
}
