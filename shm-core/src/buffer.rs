//! Buffers in shared memory.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use bytemuck::Zeroable;

use crate::communicator::Communicator;
use crate::element::Element;
use crate::error::{Error, Result};
use crate::segment::pool::{HeapBlock, PAGE};

/// A vector of a rank's own that lies in the job's shared memory, so that the other ranks of the machine can reach it
/// without a copy while a collective runs (MPI 4.1, section 12.2.1 and, for the idea, `MPI_Alloc_mem`, section 10.2).
///
/// Use it as a slice. Outside of collectives it is private: nobody else reads or writes it. It does not grow; it is
/// given back when it is dropped, and may outlive the communicator that made it.
///
/// The memory is that of [`JobSpec::heap`](crate::job::JobSpec::heap). When a rank dies, its buffers stay until the job
/// ends.
pub struct Buffer<T> {
    /// `len` values of `T`, in `block` if they have bytes; not moved while this lives.
    at: NonNull<T>,
    len: usize,
    /// Keeps the memory and the mapping. None when there are no bytes.
    _block: Option<HeapBlock>,
}

// SAFETY: it owns its values as a `Box<[T]>` does; the block may be given back by any thread.
unsafe impl<T: Send> Send for Buffer<T> {}
// SAFETY: through a shared reference it gives shared references to its values alone.
unsafe impl<T: Sync> Sync for Buffer<T> {}

impl Communicator {
    /// Makes a vector of `len` elements in shared memory, all of whose bytes are zero.
    ///
    /// Not collective: a rank may have buffers that others have not, of other sizes. Collectives take them like all
    /// other slices, and a part of one too.
    ///
    /// From some size on collectives use them where they lie: their owner copies nothing, and waits in the call for
    /// those that read them. Shorter ones are copied, as private ones are.
    ///
    /// | call | used where they lie, as the built-in table has it |
    /// |---|---|
    /// | broadcast, reduce of two ranks | from 8 KiB on |
    /// | allreduce of two ranks | from 16 KiB on |
    /// | all three, of more ranks with a core each | from 8 KiB on; reductions of more than 32 ranks from 64 KiB |
    /// | all three, of more ranks that share cores | broadcast from 128 KiB (3 or 4 ranks) or 512 KiB on, reduce from 48 or 64 KiB, allreduce from 24 to 64 KiB |
    /// | allgather, alltoall, reduce-scatter | from 8 KiB on, of all that a rank sends |
    /// | gather, scatter, scan | whatever does not go in lines, but scans along a chain, and in place |
    ///
    /// The first rows are `direct_from` of the table. No rule speaks of the last two: they lend from less on, or never,
    /// where allreduces do.
    ///
    /// Buffers are aligned to 4 KiB. Memory is taken in pieces of 2 MiB, as huge pages where the system gives them, and
    /// lies on the NUMA node of the core that calls. Buffers of up to 1 MiB share pieces by pages of 4 KiB; longer ones
    /// take whole pieces. What is given back is kept for the next buffers of this rank, up to 64 MiB of it.
    ///
    /// What others have stored of a result lies in their cores' caches, and so does what they have read: who loads the
    /// one, or writes the other again, fetches it line by line, which between cores that share no cache can take longer
    /// than a call with private buffers would have. So allreduces, and of two ranks broadcasts and reductions, are
    /// tried both ways now and then (some 26 calls in 2048, from 1 MiB on 14 in 512), and go through cells where that
    /// saves the program a fifth of the time from one call to the next, from 256 KiB on an eighth. `direct=always` in
    /// `PHALANX_ALGORITHM` has no trials; with `direct_from=never` all is copied.
    ///
    /// # Cost
    /// Under a microsecond and the writing of zeros, when the rank has kept memory enough; else the system's time for
    /// fresh pages: of 2 MiB some 0.2 ms in a huge page, 2 to 4 ms in small ones (a virtual machine, AMD EPYC, Zen 3).
    ///
    /// # Errors
    /// [`HeapExhausted`](Error::HeapExhausted): the buffers of the job's ranks fill the heap (`PHALANX_HEAP=BYTES`).
    /// [`Memory`](Error::Memory): the system has not so much memory left.
    /// Either leaves everything as it was.
    ///
    /// ```
    /// use shm_core::{Communicator, operator::Sum};
    /// Communicator::threads(2, |comm| {
    ///     let mut vector = comm.alloc::<f32>(1000)?;
    ///     vector.fill(1.5);
    ///     comm.all_reduce_in_place(&mut vector, Sum)?;
    ///     assert!(vector.iter().all(|&x| x == 3.0));
    ///     Ok::<_, shm_core::Error>(())
    /// })?.into_iter().collect::<Result<Vec<_>, _>>()?;
    /// # Ok::<_, shm_core::Error>(())
    /// ```
    pub fn alloc<T: Element + Zeroable>(&self, len: usize) -> Result<Buffer<T>> {
        let (at, block) = self.take_memory::<T>(len)?;
        if block.as_ref().is_some_and(|block| !block.is_zero()) {
            // SAFETY: the block has `len` values of T, which nobody else knows of.
            unsafe { at.write_bytes(0, len) };
        }
        // All zero is a value of T: it is Zeroable.
        Ok(Buffer { at, len, _block: block })
    }

    /// Makes a vector in shared memory that is a copy of `values`: [`alloc`](Communicator::alloc) for elements of which
    /// all zero is no value.
    ///
    /// # Errors
    /// As of [`alloc`](Communicator::alloc).
    pub fn alloc_copy<T: Element>(&self, values: &[T]) -> Result<Buffer<T>> {
        let (at, block) = self.take_memory::<T>(values.len())?;
        // SAFETY: the block has room for as many values of T, which are Copy, and nobody else knows of it.
        unsafe { at.copy_from_nonoverlapping(NonNull::from(values).cast(), values.len()) };
        Ok(Buffer { at, len: values.len(), _block: block })
    }

    /// Takes memory for `len` values of `T`, aligned for them; none if they have no bytes.
    fn take_memory<T: Element>(&self, len: usize) -> Result<(NonNull<T>, Option<HeapBlock>)> {
        const { assert!(align_of::<T>() <= PAGE, "buffers are aligned to a page") };
        let bytes = size_of::<T>().checked_mul(len).filter(|&bytes| bytes <= isize::MAX as usize);
        let bytes = bytes.ok_or_else(|| Error::Memory {
            rank: Some(self.seat().rank()),
            what: "a buffer in shared memory",
            bytes: u64::MAX,
            cause: format!("{len} elements of {} bytes are more than there are addresses", size_of::<T>()),
            advice: "ask for fewer elements",
        })?;
        if bytes == 0 {
            return Ok((NonNull::dangling(), None));
        }
        let block = match self.seat().heap().take(bytes) {
            Err(Error::HeapExhausted { .. } | Error::Memory { .. }) => {
                self.seat().conversions().release();
                self.seat().heap().take(bytes)?
            }
            other => other?,
        };
        let at = NonNull::new(block.pointer().cast::<T>()).expect("a mapping does not begin at nothing");
        Ok((at, Some(block)))
    }
}

impl<T> Deref for Buffer<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: `len` values of T lie there, this buffer's own.
        unsafe { NonNull::slice_from_raw_parts(self.at, self.len).as_ref() }
    }
}

impl<T> DerefMut for Buffer<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: `len` values of T lie there, this buffer's own; it is borrowed mutably.
        unsafe { NonNull::slice_from_raw_parts(self.at, self.len).as_mut() }
    }
}

impl<T> AsRef<[T]> for Buffer<T> {
    fn as_ref(&self) -> &[T] {
        self
    }
}

impl<T> AsMut<[T]> for Buffer<T> {
    fn as_mut(&mut self) -> &mut [T] {
        self
    }
}

impl<T: fmt::Debug> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
