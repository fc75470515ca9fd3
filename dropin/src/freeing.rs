//! MPI_Comm_free and MPI_Comm_disconnect (MPI 4.1, sections 7.4.3, 11.10.4): which communicators MPI is freeing.
//!
//! MPI deletes a communicator's attributes one by one, ours among them, and calls back the program for its own, which may
//! call collectives meanwhile. What is left with a communicator then is never told of its end. So such calls go to the
//! library, on all ranks alike, and nothing is left there.
//!
//! A callback may refuse, too: MPI keeps the communicator then, and the program may go on with it. In which order
//! attributes are deleted before is each rank's own matter. So ours is taken away first, on all ranks, and given back where
//! MPI has freed nothing.

use std::cell::RefCell;
use std::ffi::c_int;
use std::mem::ManuallyDrop;

use mpi::ffi;

use crate::abi::{self, Word, next};
use crate::communicators::{self, Taken};

thread_local! {
    /// Handles whose communicators this thread is freeing: a callback may free another one. Never dropped, and so there
    /// for calls that a program makes when its thread's locals have gone: from `atexit`, or destructors of static objects.
    static UNDER_WAY: ManuallyDrop<RefCell<Vec<Word>>> = const { ManuallyDrop::new(RefCell::new(Vec::new())) };
}

/// Whether this thread is freeing a communicator, by its handle.
pub fn is_under_way(handle: Word) -> bool {
    UNDER_WAY.with(|handles| handles.borrow().contains(&handle))
}

/// A communicator that is being freed, until this is dropped.
pub struct Freeing {
    comm: Word,
    /// The caller's place for its handle, and what reads it.
    place: Word,
    read: fn(Word) -> Word,
    /// What was left with it.
    group: Option<Taken>,
}

impl Freeing {
    /// Begins to free the communicator whose handle `read` finds at a caller's place; nothing if it is none.
    pub fn at(place: Word, read: fn(Word) -> Word) -> Option<Self> {
        let comm = read(place);
        if abi::is_no_comm(comm) {
            return None;
        }
        let handle = abi::handle(comm);
        communicators::forget_handle(handle);
        let group = communicators::take(comm);
        UNDER_WAY.with(|handles| handles.borrow_mut().push(handle));
        Some(Self { comm, place, read, group })
    }
}

impl Drop for Freeing {
    fn drop(&mut self) {
        UNDER_WAY.with(|handles| {
            let mut handles = handles.borrow_mut();
            handles.pop();
            // A thread that ends leaves no memory behind.
            if handles.is_empty() {
                *handles = Vec::new();
            }
        });
        // MPI sets the handle of what it has freed to that of none. Its code says less: MPICH 5 returns success of what it has
        // refused where a user's error handler was told, and a handler's exception may pass through here.
        let is_freed = abi::is_no_comm((self.read)(self.place));
        match self.group.take() {
            Some(group) if is_freed => communicators::give_up(group),
            Some(group) => communicators::restore(self.comm, group),
            None => {}
        }
        if is_freed {
            communicators::is_over(abi::handle(self.comm));
        }
    }
}

/// Begins to free the communicator of a caller of C's.
fn of_c(place: Word) -> Option<Freeing> {
    if place == 0 {
        return None;
    }
    // SAFETY: by MPI's contract the argument is the place of a handle.
    Freeing::at(place, |place| abi::word_of_comm(unsafe { (place as *const ffi::MPI_Comm).read_unaligned() }))
}

/// MPI_Comm_free.
pub extern "C-unwind" fn comm_free(comm: Word) -> c_int {
    let _freeing = of_c(comm);
    next::comm_free(comm)
}

/// MPI_Comm_disconnect.
pub extern "C-unwind" fn comm_disconnect(comm: Word) -> c_int {
    let _freeing = of_c(comm);
    next::comm_disconnect(comm)
}
