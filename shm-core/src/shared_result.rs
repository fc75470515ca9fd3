//! One result that all ranks read where it lies, or each at its own.

use std::alloc::{self, Layout};
use std::fmt;
use std::marker::PhantomData;
use std::num::NonZero;
use std::ops::Deref;
use std::ptr::NonNull;

use crate::element::Element;
use crate::error::{Error, Result};
use crate::own_process;

mod memory;

pub(crate) use memory::{ResultMemory, View, Viewer};

/// A read-only view of a vector that is the same on all ranks of a communicator, and that they share as a rule: what
/// [`all_reduce_shared`](crate::Communicator::all_reduce_shared) returns.
///
/// Use it as a slice. It may outlive the communicator: a rank that has dropped all its communicators has left the job,
/// whatever results and buffers it keeps, and those who call it still are told so. Its memory is used again when all
/// ranks have dropped theirs. A short vector each rank has for itself: to agree on a place costs more than to copy it;
/// and of two ranks each may have longer ones, of less than 2 MiB, where that has shown to serve their program better.
pub struct SharedResult<T> {
    bytes: Bytes,
    len: usize,
    elements: PhantomData<NonNull<T>>,
}

/// A result without the type of its elements: what is the same for all types is compiled once.
pub(crate) struct Bytes {
    /// Aligned for the elements, even where there are no bytes.
    at: NonNull<u8>,
    /// None when there are no bytes.
    place: Option<Place>,
}

/// Where a result lies.
enum Place {
    /// In the heap. It keeps the memory mapped, and nothing else: not the rank's seat in the job.
    Shared {
        view: View,
        /// The process whose view is counted. The copy that a forked child has is nobody's.
        process: u32,
    },
    /// In memory of this rank, which was allocated so.
    Own(Layout),
}

// SAFETY: it gives shared references to values alone, which nobody writes while it lives; it may be dropped in any
// thread.
unsafe impl<T: Sync> Send for SharedResult<T> {}
// SAFETY: the same.
unsafe impl<T: Sync> Sync for SharedResult<T> {}

impl Bytes {
    /// What `viewer` sees of `bytes` bytes at `at`, which lie in a block of the heap if there are any; for elements of
    /// this alignment.
    ///
    /// # Safety
    /// They are there, and of this turn of the block the viewer has no other view.
    pub unsafe fn in_heap(viewer: Viewer<'_>, at: *mut u8, bytes: usize, align: usize) -> Self {
        if bytes == 0 {
            let align = NonZero::new(align).expect("an alignment");
            return Self { at: NonNull::without_provenance(align), place: None };
        }
        let view = View::of(viewer, at, bytes);
        let at = NonNull::new(at).expect("a result of some bytes lies somewhere");
        Self { at, place: Some(Place::Shared { view, process: own_process::id() }) }
    }

    /// Memory of this rank, of one byte or more: uninitialised.
    ///
    /// # Errors
    /// [`Memory`](Error::Memory).
    pub fn own(rank: usize, bytes: usize, align: usize) -> Result<Self> {
        assert!(bytes > 0, "memory of no bytes is not allocated");
        let layout = Layout::from_size_align(bytes, align).expect("as large as a contribution");
        #[cfg(test)]
        let is_refused = tests::REFUSED.with(std::cell::Cell::get);
        #[cfg(not(test))]
        let is_refused = false;
        // SAFETY: it has bytes.
        let at = if is_refused { None } else { NonNull::new(unsafe { alloc::alloc(layout) }) };
        let at = at.ok_or_else(|| Error::Memory {
            rank: Some(rank),
            what: "a result of an allreduce",
            bytes: bytes as u64,
            cause: "the process gets no more of it".into(),
            advice: "look at its limits (ulimit -v), or make the vector shorter",
        })?;
        Ok(Self { at, place: Some(Place::Own(layout)) })
    }

    pub fn as_ptr(&self) -> *mut u8 {
        self.at.as_ptr()
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        match &self.place {
            Some(Place::Shared { view, process }) if *process == own_process::id() => view.leave(),
            // SAFETY: it was allocated so, and nobody looks at it any more.
            Some(Place::Own(layout)) => unsafe { alloc::dealloc(self.at.as_ptr(), *layout) },
            Some(Place::Shared { .. }) | None => (),
        }
    }
}

impl<T: Element> SharedResult<T> {
    /// The view of `len` elements.
    ///
    /// # Safety
    /// They lie there, initialised, in their alignment; nobody writes them while this lives.
    pub(crate) unsafe fn of(bytes: Bytes, len: usize) -> Self {
        Self { bytes, len, elements: PhantomData }
    }
}

#[cfg(test)]
impl<T> SharedResult<T> {
    /// Whether it lies in memory of this rank.
    pub(crate) fn is_own(&self) -> bool {
        matches!(self.bytes.place, Some(Place::Own(_)))
    }
}

impl<T> Deref for SharedResult<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: `len` values of T lie there, which nobody writes before this view and all others have been dropped.
        unsafe { NonNull::slice_from_raw_parts(self.bytes.at.cast(), self.len).as_ref() }
    }
}

impl<T: fmt::Debug> fmt::Debug for SharedResult<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests;
