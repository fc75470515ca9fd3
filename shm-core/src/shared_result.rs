//! One result that all ranks read where it lies, or each at its own.

use std::fmt;
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::ptr::NonNull;

use crate::element::Element;
use crate::error::Result;
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
    at: NonNull<T>,
    len: usize,
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
    /// In a box of this rank.
    Own,
}

// SAFETY: it gives shared references to values alone, which nobody writes while it lives; it may be dropped in any
// thread.
unsafe impl<T: Sync> Send for SharedResult<T> {}
// SAFETY: the same.
unsafe impl<T: Sync> Sync for SharedResult<T> {}

impl<T: Element> SharedResult<T> {
    /// What `viewer` sees of `len` elements at `at`, which lie in a block of the heap if they have bytes.
    ///
    /// # Safety
    /// They are there, initialised, and of this turn of the block the viewer has no other view.
    pub(crate) unsafe fn new(viewer: Viewer<'_>, at: *mut u8, len: usize) -> Self {
        let bytes = len * size_of::<T>();
        let place =
            (bytes > 0).then(|| Place::Shared { view: View::of(viewer, at, bytes), process: own_process::id() });
        let at = if bytes > 0 { NonNull::new(at.cast::<T>()) } else { None };
        Self { at: at.unwrap_or(NonNull::dangling()), len, place }
    }

    /// A view of `len` elements in memory of this rank, which `fill` stores at the place that it is given.
    ///
    /// # Safety
    /// When `fill` returns without an error, all of them are initialised there.
    ///
    /// # Errors
    /// Those of `fill`.
    #[inline]
    pub(crate) unsafe fn of_own(len: usize, fill: impl FnOnce(*mut u8) -> Result<()>) -> Result<Self> {
        let memory = NonNull::from(Box::leak(Box::<[T]>::new_uninit_slice(len)));
        // Freed by its drop, whatever comes of the filling.
        let own = Self { at: memory.cast(), len, place: Some(Place::Own) };
        fill(own.at.as_ptr().cast()).map(|()| own)
    }
}

#[cfg(test)]
impl<T> SharedResult<T> {
    /// Whether it lies in memory of this rank.
    pub(crate) fn is_own(&self) -> bool {
        matches!(self.place, Some(Place::Own))
    }
}

impl<T> Deref for SharedResult<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: `len` values of T lie there, which nobody writes before this view and all others have been dropped.
        unsafe { NonNull::slice_from_raw_parts(self.at, self.len).as_ref() }
    }
}

impl<T: fmt::Debug> fmt::Debug for SharedResult<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T> Drop for SharedResult<T> {
    fn drop(&mut self) {
        match &self.place {
            Some(Place::Shared { view, process }) if *process == own_process::id() => view.leave(),
            Some(Place::Own) => {
                let memory = NonNull::slice_from_raw_parts(self.at.cast::<MaybeUninit<T>>(), self.len);
                // SAFETY: it was leaked from such a box, and nobody looks at it any more.
                drop(unsafe { Box::from_raw(memory.as_ptr()) });
            }
            Some(Place::Shared { .. }) | None => (),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Place, SharedResult};
    use crate::communicator::Communicator;
    use crate::error::Error;
    use crate::job::{Job, JobSpec, Standing};
    use crate::operator::{Max, Sum};
    use std::sync::atomic::Ordering;

    /// Elements of eight bytes that no rank has for itself.
    const LONG: usize = 4096;

    #[test]
    fn several_results_at_once() {
        for size in 1..=4 {
            Communicator::threads(size, |comm| {
                let rank = comm.rank() as u64;
                let sum = (size * (size - 1) / 2) as u64;
                let mut held = std::collections::VecDeque::new();
                for turn in 0..40u64 {
                    let count = [0, 1, 5, 300, 20_000, 300_000][turn as usize % 6];
                    let mine: Vec<u64> = (0..count).map(|i| i + turn + rank).collect();
                    let view = if turn % 2 == 0 {
                        comm.all_reduce_shared(&mine, Sum).unwrap()
                    } else {
                        comm.all_reduce_shared(&comm.alloc_copy(&mine).unwrap(), Sum).unwrap()
                    };
                    held.push_back((turn, count, view));
                    // Ranks hold different numbers of them.
                    while held.len() > 3 * comm.rank() {
                        let (turn, count, view) = held.pop_front().unwrap();
                        assert_eq!(view.len() as u64, count);
                        assert!((0..count).zip(view.iter()).all(|(i, &x)| x == size as u64 * (i + turn) + sum));
                    }
                }
                // They outlive the communicator.
                drop(comm);
                assert!(held.iter().all(|(turn, count, view)| {
                    (0..*count).zip(view.iter()).all(|(i, &x)| x == size as u64 * (i + turn) + sum)
                }));
            })
            .unwrap();
        }
    }

    /// Trials have two ranks make results that each has for itself, and go back to one; both look at the right values
    /// all the time, however long they keep them.
    #[test]
    fn both_have_one_or_each_its_own() {
        let job = Job::create(&JobSpec::new(2).unwrap()).unwrap();
        let kinds = job.on_threads(|world| {
            let mut kept = std::collections::VecDeque::new();
            let mut mine = world.alloc::<u64>(LONG).unwrap();
            let kinds: Vec<_> = (0..700u64)
                .map(|call| {
                    let len = if call % 7 == 0 { LONG } else { LONG - 8 };
                    (0..).zip(mine.iter_mut()).for_each(|(i, x): (u64, _)| *x = i * call + world.rank() as u64);
                    let view = world.all_reduce_shared(&mine[..len], Sum).unwrap();
                    let own = view.is_own();
                    kept.push_back((call, view));
                    if kept.len() > 2 + world.rank() {
                        let (call, view) = kept.pop_front().unwrap();
                        assert!((0..).zip(view.iter()).all(|(i, &x): (u64, _)| x == 2 * i * call + 1), "call {call}");
                    }
                    own
                })
                .collect();
            drop((world, mine));
            assert!(kept.iter().all(|(call, view)| (0..).zip(view.iter()).all(|(i, &x)| x == 2 * i * call + 1)));
            kinds
        });
        assert_eq!(kinds[0], kinds[1]);
        let own = kinds[0].iter().filter(|&&own| own).count();
        assert!((16..700).contains(&own), "{own}");
        assert_eq!(job.heap_taken(), 0);
    }

    #[test]
    fn memory_comes_back() {
        let job = Job::create(&JobSpec::new(2).unwrap()).unwrap();
        job.on_threads(|world| {
            let views: Vec<_> =
                (0..6).map(|turn| world.all_reduce_shared(&[turn + world.rank(); LONG], Max).unwrap()).collect();
            assert!(job.heap_taken() > 0);
            drop(world);
            assert!(views.iter().enumerate().all(|(turn, view)| **view == [turn + 1; LONG]));
        });
        assert_eq!(job.heap_taken(), 0);
    }

    /// A rank that keeps a result, and a buffer, has left with its communicator: the others do not wait for it.
    #[test]
    fn who_keeps_a_result_has_left() {
        for size in [2, 3] {
            let job = Job::create(&JobSpec::new(size).unwrap()).unwrap();
            let told = std::sync::Barrier::new(size);
            job.on_threads(|world| {
                let rank = world.rank();
                let mine = world.alloc_copy(&vec![rank as u64; 5000]).unwrap();
                let view = world.all_reduce_shared(&mine, Sum).unwrap();
                let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
                if rank == 1 {
                    drop(world);
                    assert_eq!(job.standing(1), Standing::Left);
                    told.wait();
                } else {
                    assert_eq!(world.barrier(), Err(Error::RankFailed { rank: 1 }));
                    assert!(std::time::Instant::now() < end);
                    told.wait();
                }
                assert!(view.iter().all(|&x| x == (size * (size - 1) / 2) as u64));
            });
            assert_eq!(job.heap_taken(), 0);
        }
    }

    /// Calls that fail leave no memory behind: those that cannot begin, and those that end half-way.
    #[test]
    fn calls_that_fail_give_the_memory_back() {
        let job = Job::create(&JobSpec::new(3).unwrap()).unwrap();
        job.on_threads(|world| {
            for odd in 0..3 {
                for len in [1, 5000, 300_000] {
                    let comm = world.duplicate().unwrap();
                    let kept = comm.all_reduce_shared(&vec![1u32; len], Sum).unwrap();
                    // One rank goes by another length; then nobody can begin.
                    let own = if comm.rank() == odd { len + 1 } else { len };
                    let failed = comm.all_reduce_shared(&vec![1u32; own], Sum).and_then(|_| comm.barrier());
                    assert!(matches!(failed, Err(Error::Mismatch { .. })), "{failed:?}");
                    for _ in 0..9 {
                        comm.all_reduce_shared(&[1u32], Sum).unwrap_err();
                    }
                    assert_eq!(*kept, *vec![3; len]);
                    drop(kept);
                    drop(comm);
                    world.barrier().unwrap();
                    assert_eq!(job.heap_taken(), 0, "odd {odd}, {len}");
                    world.barrier().unwrap();
                }
            }
        });
    }

    /// A rank that made another call, which ended well, and then cannot begin the next one, never saw the result.
    #[test]
    fn who_made_another_call_has_no_view() {
        let job = Job::create(&JobSpec::new(3).unwrap()).unwrap();
        let rounds = 30;
        let failed = std::sync::atomic::AtomicUsize::new(0);
        job.on_threads(|world| {
            for round in 0..rounds {
                let comm = world.duplicate().unwrap();
                comm.barrier().unwrap();
                if comm.rank() == 2 {
                    // The root of a short broadcast waits for nobody.
                    comm.process_at_rank(2).broadcast_into(&mut [1u64]).unwrap();
                    // Another has returned with an error; rank 0 is about to.
                    while failed.load(Ordering::SeqCst) == round {
                        std::hint::spin_loop();
                    }
                    comm.barrier().unwrap_err();
                } else {
                    comm.all_reduce_shared(&[1u64; LONG], Sum).unwrap_err();
                    failed.fetch_max(round + 1, Ordering::SeqCst);
                }
                drop(comm);
                world.barrier().unwrap();
                assert_eq!(job.heap_taken(), 0, "round {round}");
                world.barrier().unwrap();
            }
        });
    }

    /// A forked child has copies of its parent's views, which count for nothing.
    #[test]
    fn copies_of_other_processes_give_nothing_back() {
        Communicator::threads(2, |comm| {
            let view = comm.all_reduce_shared(&vec![1u64; LONG], Sum).unwrap();
            let Some(Place::Shared { view: counted, process }) = &view.place else { panic!("it is long") };
            comm.barrier().unwrap();
            let before = counted.dropped();
            let place = Some(Place::Shared { view: counted.copy(), process: process + 1 });
            drop(SharedResult { at: view.at, len: view.len, place });
            assert_eq!(counted.dropped(), before);
            comm.barrier().unwrap();
        })
        .unwrap();
    }

    #[test]
    fn a_heap_that_is_full_fails_everywhere() {
        let mut spec = JobSpec::new(2).unwrap();
        spec.heap = Some(0);
        let errors = Job::create(&spec).unwrap().on_threads(|comm| {
            // What is short takes none of it.
            assert_eq!(*comm.all_reduce_shared(&[1.0, 2.0], Sum).unwrap(), [2.0, 4.0]);
            comm.all_reduce_shared(&[1.0; LONG], Sum).unwrap_err()
        });
        assert!(matches!(errors[0], Error::HeapExhausted { .. }), "{}", errors[0]);
        assert_eq!(errors[1], Error::Refused { rank: 0 });
    }
}
