//! A rank's seat in its job: the mapped segment, its standing, its bell, and how it waits.

use std::sync::atomic::{AtomicU32, Ordering, compiler_fence, fence};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use nix::sched::CpuSet;
use rustix::thread::futex;

use crate::convert::Conversions;
use crate::error::{Error, Result};
use crate::reach::Reach;
use crate::segment::header::{RankWords, Standing};
use crate::segment::mapping::Mapping;
use crate::segment::pool::RankHeap;
use crate::wait::Patience;
use crate::wait::bell::{self, Bell, BellWord, Sleepers};
pub(crate) use watch::Watch;

mod watch;

/// The longest sleep: after it a rank looks at the whole situation again, even if nobody woke it.
pub(crate) const NAP: Duration = Duration::from_millis(200);

/// A rank that is attached to a job. Shared by all its communicators; the rank leaves with the last of them.
pub(crate) struct Seat {
    mapping: Arc<Mapping>,
    rank: usize,
    heap: Arc<RankHeap>,
    reach: Reach,
    conversions: Conversions,
    pub patience: Patience,
    /// The processors of the core that it shares with its neighbours, once they were asked for; nothing where nobody is
    /// moved.
    pub home: OnceLock<Option<CpuSet>>,
    system: System,
}

impl Seat {
    /// Attaches as `rank`.
    pub fn take(mapping: Arc<Mapping>, rank: usize) -> Result<Self> {
        let header = mapping.header();
        let fences = header.membarrier == 0;
        if !fences {
            register_for_heavy_fences()
                .map_err(|e| Error::system("membarrier (which the creator of the job could use)", e).of(rank))?;
        }
        mapping.rank(rank).attach(rank)?;
        let patience = Patience::new(mapping.layout.ranks, header.cores.max(1) as usize);
        let heap = RankHeap::new(Arc::clone(&mapping), rank);
        let reach = Reach::new(Arc::clone(&mapping), rank);
        let conversions = Conversions::new(Arc::clone(&mapping), Arc::clone(&heap));
        Ok(Self { mapping, rank, heap, reach, conversions, patience, home: OnceLock::new(), system: System { fences } })
    }

    /// The rank in the job's world.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Whether this is not the copy that a forked child has, which is nobody's.
    pub fn is_of_this_process(&self) -> bool {
        self.heap.is_of_this_process()
    }

    pub fn mapping(&self) -> &Arc<Mapping> {
        &self.mapping
    }

    /// The rank's part of the heap.
    pub fn heap(&self) -> &Arc<RankHeap> {
        &self.heap
    }

    /// The rank's way to the others' private memory.
    pub fn reach(&self) -> &Reach {
        &self.reach
    }

    /// The rank's private buffers that others can reach.
    pub fn conversions(&self) -> &Conversions {
        &self.conversions
    }

    /// What every call looks at.
    ///
    /// # Safety
    /// Who uses it keeps this seat meanwhile.
    pub unsafe fn watch(&self) -> Watch {
        // SAFETY: the mapping stays as long as this seat, and so, by contract, as long as what is returned.
        unsafe { Watch::new(&self.mapping, self.rank, self.system) }
    }

    /// Sleeps until `writer` publishes, `nap` at most, unless `arrived` says that there is no need. Returns whether it
    /// slept.
    pub fn sleep_on(&self, writer: usize, nap: Duration, arrived: impl Fn() -> bool) -> bool {
        let job = &self.mapping.header().shared.fault;
        let words = self.mapping.rank(writer);
        bell::sleep_unless(&self.system, &bell_of(words), nap, || {
            arrived() || job.load(Ordering::Acquire) != 0 || words.standing() as u32 >= Standing::Left as u32
        })
    }

    /// E1: the other side of [`light_fence`](Watch::light_fence).
    pub fn heavy_fence(&self) {
        self.system.heavy_fence();
    }

    /// Says that `failed` is the rank because of which this job cannot go on; the first word stands.
    pub fn condemn(&self, failed: usize) -> Error {
        Error::RankFailed { rank: condemn(&self.mapping, failed) }
    }

    /// Makes a call; should it be left by a panic, the job cannot go on because of this rank, and `then` is done.
    #[inline]
    pub fn stopping_at_panic<R>(&self, call: impl FnOnce() -> R, then: impl Fn()) -> R {
        struct Stop<'a, F: Fn()>(&'a Seat, F);
        impl<F: Fn()> Drop for Stop<'_, F> {
            fn drop(&mut self) {
                let _ = self.0.condemn(self.0.rank());
                (self.1)();
            }
        }
        let stop = Stop(self, then);
        let result = call();
        // Only unwinding drops it.
        std::mem::forget(stop);
        result
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if !self.is_of_this_process() {
            return;
        }
        self.conversions.end();
        end(&self.mapping, self.rank, std::thread::panicking());
    }
}

/// Ends a rank's part in the job: with a failure, which stops the job, or in good order, and then has those who wait
/// for it look.
pub(crate) fn end(mapping: &Mapping, rank: usize, failed: bool) {
    if failed {
        mapping.rank(rank).end(Standing::Failed);
        condemn(mapping, rank);
    } else {
        mapping.rank(rank).end(Standing::Left);
        bell::ring(&System { fences: true }, &bell_of(mapping.rank(rank)));
    }
}

/// J1, writer: stops the job because of a rank, wakes everybody, and returns the rank whose failure stands.
fn condemn(mapping: &Mapping, failed: usize) -> usize {
    let fault = &mapping.header().shared.fault;
    let stands = match fault.compare_exchange(0, failed as u64 + 1, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => failed,
        Err(earlier) => earlier as usize - 1,
    };
    for rank in 0..mapping.layout.ranks {
        bell::ring(&System { fences: true }, &bell_of(mapping.rank(rank)));
    }
    stands
}

fn bell_of(words: &RankWords) -> Bell<'_, AtomicU32> {
    Bell { announced: &words.announced, rung: &words.rung }
}

/// The real system beneath the bells: the shared futex, and membarrier.
#[derive(Clone, Copy)]
struct System {
    /// Whether both sides must fence, because membarrier is not to be had.
    fences: bool,
}

impl BellWord for AtomicU32 {
    fn add(&self, value: u32) {
        self.fetch_add(value, Ordering::SeqCst);
    }

    fn sub(&self, value: u32) {
        self.fetch_sub(value, Ordering::SeqCst);
    }

    fn read(&self) -> u32 {
        self.load(Ordering::Acquire)
    }

    #[inline]
    fn glance(&self) -> u32 {
        self.load(Ordering::Relaxed)
    }
}

impl Sleepers for System {
    type Word = AtomicU32;

    #[inline]
    fn light_fence(&self) {
        if self.fences {
            fence(Ordering::SeqCst);
        } else {
            compiler_fence(Ordering::SeqCst);
        }
    }

    fn heavy_fence(&self) {
        let command = rustix::thread::MembarrierCommand::GlobalExpedited;
        if self.fences || rustix::thread::membarrier(command).is_err() {
            // Without membarrier the publishers fence too; should it fail after having worked, the nap bounds the harm.
            fence(Ordering::SeqCst);
        }
    }

    fn sleep(&self, word: &AtomicU32, value: u32, timeout: Duration) {
        let timeout = futex::Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: i64::from(timeout.subsec_nanos()) };
        // The shared kind (no PRIVATE flag): the waker is another process. Woken, changed, interrupted, timed out: the
        // caller looks again in any case.
        if let Err(error) = futex::wait(word, futex::Flags::empty(), value, Some(&timeout)) {
            let expected = [rustix::io::Errno::AGAIN, rustix::io::Errno::INTR, rustix::io::Errno::TIMEDOUT];
            if !expected.contains(&error) {
                // A sandbox that refuses the futex: sleep a little instead, and look again.
                std::thread::sleep(Duration::from_micros(500));
            }
        }
    }

    fn wake(&self, word: &AtomicU32) {
        // Nothing can be done about a refusal; sleepers look again after their nap.
        let _ = futex::wake(word, futex::Flags::empty(), i32::MAX as u32);
    }
}

/// Makes this process one that a heavy fence of any other reaches.
pub(crate) fn register_for_heavy_fences() -> std::result::Result<(), rustix::io::Errno> {
    rustix::thread::membarrier(rustix::thread::MembarrierCommand::RegisterGlobalExpedited)
}
