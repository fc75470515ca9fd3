//! MPI_Comm_free and MPI_Comm_disconnect (MPI 4.1, sections 7.4.3, 11.10.4): which communicators MPI is freeing.
//!
//! MPI deletes a communicator's attributes one by one, ours among them, and calls back the program for its own, which may
//! call collectives meanwhile. What is left with a communicator then is never told of its end. So such calls go to the
//! library, on all ranks alike, and nothing is left there.

use std::cell::RefCell;
use std::ffi::c_int;

use mpi::ffi;

use crate::abi::{self, Word, next};
use crate::communicators;

thread_local! {
    /// Handles whose communicators this thread is freeing: a callback may free another one.
    static UNDER_WAY: RefCell<Vec<Word>> = const { RefCell::new(Vec::new()) };
}

/// Whether this thread is freeing a communicator, by its handle.
pub fn is_under_way(handle: Word) -> bool {
    UNDER_WAY.with_borrow(|handles| handles.contains(&handle))
}

/// A communicator that is being freed, until this is dropped.
pub struct Freeing {
    handle: Word,
}

impl Freeing {
    /// Begins to free a communicator; nothing if it is none.
    pub fn of(comm: Word) -> Option<Self> {
        if abi::is_no_comm(comm) {
            return None;
        }
        let handle = abi::handle(comm);
        communicators::forget_handle(handle);
        UNDER_WAY.with_borrow_mut(|handles| handles.push(handle));
        Some(Self { handle })
    }

    /// That of a caller's place for a handle.
    fn at(place: Word) -> Option<Self> {
        if place == 0 {
            return None;
        }
        // SAFETY: by MPI's contract the argument is the place of a handle.
        let comm = unsafe { (place as *const ffi::MPI_Comm).read_unaligned() };
        Self::of(abi::word_of_comm(comm))
    }
}

impl Drop for Freeing {
    fn drop(&mut self) {
        UNDER_WAY.with_borrow_mut(|handles| handles.pop());
        communicators::is_over(self.handle);
    }
}

/// MPI_Comm_free.
pub extern "C-unwind" fn comm_free(comm: Word) -> c_int {
    let _freeing = Freeing::at(comm);
    next::comm_free(comm)
}

/// MPI_Comm_disconnect.
pub extern "C-unwind" fn comm_disconnect(comm: Word) -> c_int {
    let _freeing = Freeing::at(comm);
    next::comm_disconnect(comm)
}
