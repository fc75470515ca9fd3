//! The heap: extents of it, taken by a rank for its buffers and given back; and what peers say of places in it.
//!
//! An extent is 2 MiB, so that it can be one huge page. What is taken is there: zeroed, and on the NUMA node of the
//! rank that took it.

use std::sync::atomic::{AtomicU64, Ordering};

use nix::errno::Errno;

use super::arena::first_fit;
use super::layout::EXTENT;
use super::mapping::Mapping;
use super::{memory_file, memory_left};
use crate::error::{Error, Result};

/// What memory for a buffer is called in errors.
const WHAT: &str = "a buffer in shared memory";

/// The advice that goes with a shortage of memory for buffers.
const ADVICE: &str = "free memory, raise the container's limit, or ask for smaller buffers; PHALANX_HEAP=BYTES bounds \
                      what the buffers of all ranks take together";

/// Bytes that a process takes between two looks at what memory is left.
const UNSEEN: u64 = 16 << 20;

impl Mapping {
    /// Takes `count` extents in a row, all zero, for `rank` of the job, and returns the first one's number.
    ///
    /// # Errors
    /// `HeapExhausted` when no gap is long enough, `Memory` when the system cannot back it, `RankFailed`.
    pub fn take_extents(&self, rank: usize, count: usize) -> Result<usize> {
        let bytes = (count * EXTENT) as u64;
        look_for_memory(rank, bytes)?;
        let start = {
            let _lock = self.lock_maps(rank)?;
            let map = self.extent_map();
            let Some(start) = first_fit(map.iter().map(|extent| extent.load(Ordering::Relaxed) != 0), count) else {
                let free = map.iter().filter(|extent| extent.load(Ordering::Relaxed) == 0).count();
                return Err(Error::HeapExhausted {
                    rank,
                    needed: bytes,
                    free: (free * EXTENT) as u64,
                    heap: (map.len() * EXTENT) as u64,
                });
            };
            for extent in &map[start..start + count] {
                extent.store(1, Ordering::Relaxed);
            }
            start
        };
        if let Err(error) = self.back(rank, start, count) {
            self.give_extents_back(rank, start, count);
            return Err(error);
        }
        Ok(start)
    }

    /// Has the system back extents, with huge pages if it has them, near the core of `rank`, which calls.
    fn back(&self, rank: usize, start: usize, count: usize) -> Result<()> {
        let (at, bytes) = (start * EXTENT, count * EXTENT);
        // Faults them all in by the mapping, which has been advised to take huge pages; fallocate does not look at
        // that.
        match self.populate_heap(at, bytes) {
            Ok(()) => Ok(()),
            // Kernels before 5.14 know no such advice.
            Err(Errno::EINVAL) => memory_file::reserve(self.file(), WHAT, (self.layout.heap + at) as u64, bytes as u64)
                .map_err(|error| match error {
                    Error::Memory { cause, .. } => shortage(rank, bytes as u64, cause),
                    other => other,
                }),
            Err(error) => Err(shortage(rank, bytes as u64, error.desc().to_owned())),
        }
    }

    /// Gives extents back, memory and all. Nobody must touch them any more.
    pub fn give_extents_back(&self, rank: usize, start: usize, count: usize) {
        let offset = (self.layout.heap + start * EXTENT) as u64;
        // As of blocks: what cannot be punched out stays taken, so that extents are always handed out as zeros.
        if memory_file::give_back(self.file(), offset, (count * EXTENT) as u64).is_err() {
            return;
        }
        // After a failure of the job the lock may be held by a dead rank: then nobody needs the extents.
        if let Ok(_lock) = self.lock_maps(rank) {
            for extent in &self.extent_map()[start..start + count] {
                extent.store(0, Ordering::Relaxed);
            }
        }
    }

    /// Where `bytes` bytes at `ptr` lie in the heap, if they lie in it as this process has it mapped. A slice that
    /// somebody holds there lies in extents that are taken: no other way leads to one.
    #[inline]
    pub fn heap_offset(&self, ptr: *const u8, bytes: usize) -> Option<u64> {
        let at = ptr.addr().wrapping_sub(self.base().addr() + self.layout.heap);
        let heap = self.layout.extents * EXTENT;
        (at < heap && bytes <= heap - at).then_some(at as u64)
    }

    /// Where `bytes` bytes at `offset` of the heap lie in this process, as a peer says: checked to be within extents
    /// that are taken, and aligned to `align`. The pointer is good until the peer gives them back.
    ///
    /// # Errors
    /// `Segment`.
    pub fn heap_pointer(&self, offset: u64, bytes: usize, align: usize) -> Result<*mut u8> {
        let heap = (self.layout.extents * EXTENT) as u64;
        let end = offset.checked_add(bytes as u64).filter(|&end| end <= heap);
        let taken = end.is_some_and(|end| {
            let extents = offset as usize / EXTENT..(end as usize).div_ceil(EXTENT);
            self.extent_map()[extents].iter().all(|extent| extent.load(Ordering::Relaxed) != 0)
        });
        // The heap begins at a page; what is aligned to more is not handed out.
        if !taken || !(offset as usize).is_multiple_of(align) {
            return Err(Error::Segment {
                why: format!("a rank speaks of {bytes} bytes at {offset} of the heap, which are not a buffer's"),
                advice: "the segment is damaged: start the job again",
            });
        }
        // SAFETY: M1: below the layout's total, since the end is within the heap (checked above).
        Ok(unsafe { self.base().add(self.layout.heap + offset as usize) })
    }

    /// Bytes of the heap that are taken.
    pub fn heap_taken(&self) -> u64 {
        let taken = self.extent_map().iter().filter(|extent| extent.load(Ordering::Relaxed) != 0).count();
        (taken * EXTENT) as u64
    }
}

fn shortage(rank: usize, bytes: u64, cause: String) -> Error {
    Error::Memory { rank: Some(rank), what: WHAT, bytes, cause, advice: ADVICE }
}

/// Looks whether the system has so many bytes left, if this process has taken much since it looked last: most systems
/// hand out memory that they do not have, and then end processes.
fn look_for_memory(rank: usize, bytes: u64) -> Result<()> {
    static TAKEN: AtomicU64 = AtomicU64::new(UNSEEN);
    if TAKEN.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) < UNSEEN {
        return Ok(());
    }
    TAKEN.store(0, Ordering::Relaxed);
    match memory_left::now() {
        Some(left) if left < bytes + bytes / 16 => {
            Err(shortage(rank, bytes, format!("{left} bytes are left on this machine, or in this container")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::communicator::Communicator;
    use crate::error::Error;
    use crate::job::JobSpec;
    use crate::segment::layout::EXTENT;

    fn threads<R: Send>(ranks: usize, heap: usize, f: impl Fn(Communicator) -> R + Sync) -> Vec<R> {
        let mut spec = JobSpec::new(ranks).unwrap();
        spec.heap = Some(heap as u64);
        spec.on_threads(f)
    }

    #[test]
    fn places_in_the_heap_are_told_from_others() {
        threads(1, 4 * EXTENT, |comm| {
            let mapping = Arc::clone(comm.seat().mapping());
            let buffer = comm.alloc::<u32>(3 * EXTENT / 8).unwrap();
            let at = buffer.as_ptr().cast::<u8>();
            let bytes = 4 * buffer.len();
            let offset = mapping.heap_offset(at, bytes).unwrap();
            assert_eq!(mapping.heap_offset(at.wrapping_add(1000), 8), Some(offset + 1000));
            assert_eq!(mapping.heap_offset(std::ptr::from_ref(&bytes).cast(), 8), None);
            assert_eq!(mapping.heap_offset(at.wrapping_sub(1), 8), None, "the arena lies before");
            assert_eq!(mapping.heap_offset(at, 4 * EXTENT + 1), None);
            assert_eq!(mapping.heap_offset(at, usize::MAX), None);
            assert_eq!(mapping.heap_offset(std::ptr::null(), 0), None);

            assert_eq!(mapping.heap_pointer(offset, bytes, 64).unwrap().cast_const(), at);
            let refused = |offset, bytes, align| {
                let error = mapping.heap_pointer(offset, bytes, align).unwrap_err();
                assert!(matches!(error, Error::Segment { .. }), "{error}");
            };
            refused(offset + 2, 8, 4);
            refused(offset + 2 * EXTENT as u64 - 4, 8, 4);
            refused(offset + 3 * EXTENT as u64, 8, 8);
            refused(4 * EXTENT as u64 + 8, 8, 8);
            refused(8, usize::MAX, 8);
            refused(u64::MAX - 7, 16, 8);
            drop(buffer);
        });
    }

    /// Buffers of several ranks at once, of all sizes: nobody sees another's values; zeros at first; all comes back.
    #[test]
    fn buffers_of_ranks_that_take_and_give_back_at_once() {
        let mut spec = JobSpec::new(4).unwrap();
        spec.heap = Some(64 * EXTENT as u64);
        let job = crate::job::Job::create(&spec).unwrap();
        job.on_threads(|world| {
            let mut number = world.rank() as u64 + 1;
            let mut random = |below: usize| {
                number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (number >> 33) as usize % below
            };
            let mut held: Vec<(crate::Buffer<u64>, u64)> = Vec::new();
            for turn in 0..600 {
                if held.len() < 6 && random(5) < 3 {
                    let most = [20, 600, EXTENT / 8, 3 * EXTENT / 8][random(4)];
                    let mut buffer = world.alloc::<u64>(random(most)).unwrap();
                    assert!(buffer.iter().all(|&word| word == 0));
                    let mark = (turn << 8) | world.rank() as u64 | 1 << 60;
                    buffer.fill(mark);
                    held.push((buffer, mark));
                } else if !held.is_empty() {
                    let (buffer, mark) = held.swap_remove(random(held.len()));
                    assert!(buffer.iter().all(|&word| word == mark));
                }
            }
            drop(world);
            // The buffers outlive the communicator.
            assert!(held.iter().all(|(buffer, mark)| buffer.iter().all(|word| word == mark)));
        });
        assert_eq!(job.heap_taken(), 0);
    }

    #[test]
    fn a_heap_that_is_full_says_so_and_can_be_used_again() {
        threads(2, 6 * EXTENT, |comm| {
            for _ in 0..20 {
                if comm.rank() == 0 {
                    let whole = comm.alloc::<u8>(6 * EXTENT).unwrap();
                    let error = comm.alloc::<u8>(1).unwrap_err();
                    let expected =
                        Error::HeapExhausted { rank: 0, needed: EXTENT as u64, free: 0, heap: 6 * EXTENT as u64 };
                    assert_eq!(error, expected);
                    assert!(error.to_string().contains("PHALANX_HEAP") && error.to_string().contains("rank 0"));
                    drop(whole);
                    let small: Vec<_> = (0..100).map(|_| comm.alloc::<u8>(5000).unwrap()).collect();
                    drop(small);
                }
                comm.barrier().unwrap();
                if comm.rank() == 1 {
                    drop(comm.alloc::<u8>(6 * EXTENT).unwrap());
                }
                comm.barrier().unwrap();
            }
        });
        threads(1, 0, |comm| {
            let error = comm.alloc::<u8>(1).unwrap_err();
            assert!(matches!(error, Error::HeapExhausted { heap: 0, .. }), "{error}");
            assert_eq!(comm.alloc::<u8>(0).unwrap().len(), 0);
        });
    }

    #[test]
    fn elements_of_all_kinds() {
        #[derive(Clone, Copy, PartialEq, Debug, bytemuck::NoUninit, bytemuck::Zeroable)]
        #[repr(C, align(4096))]
        struct Wide([u64; 512]);
        threads(1, 8 * EXTENT, |comm| {
            let wide = comm.alloc::<Wide>(3).unwrap();
            assert!(wide.as_ptr().is_aligned() && *wide == [Wide([0; 512]); 3]);
            assert_eq!(comm.alloc::<()>(usize::MAX).unwrap().len(), usize::MAX);
            assert_eq!(comm.alloc::<[u64; 0]>(7).unwrap().len(), 7);
            let error = comm.alloc::<u64>(usize::MAX / 4).unwrap_err();
            assert!(matches!(error, Error::Memory { .. }), "{error}");
            let error = comm.alloc::<u8>(isize::MAX as usize).unwrap_err();
            assert!(matches!(error, Error::Memory { .. } | Error::HeapExhausted { .. }), "{error}");
            // No zero is among its values.
            let odd = std::num::NonZeroU16::new(7).unwrap();
            assert_eq!(*comm.alloc_copy(&[odd; 5]).unwrap(), [odd; 5]);
            assert_eq!(format!("{:?}", comm.alloc_copy(&[1, 2]).unwrap()), "[1, 2]");
        });
    }

    #[test]
    fn more_than_the_system_has_is_refused() {
        let error = threads(1, 1 << 44, |comm| comm.alloc::<u8>(1 << 43).unwrap_err()).remove(0);
        assert!(matches!(error, Error::Memory { .. }), "{error}");
        assert!(error.to_string().contains("PHALANX_HEAP"), "{error}");
    }
}
