//! The system beneath the bells, as the model has it: a futex, two fences, and words to sleep on.

use std::time::Duration;

use loom::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use loom::sync::atomic::{AtomicU32, fence};
use loom::sync::{Condvar, Mutex};

use shm_core::wait::bell::{Bell, BellWord, Sleepers};

use super::mutant::Mutant;

/// A word of a bell.
pub struct ModelBellWord {
    value: AtomicU32,
    /// Whether it is the one that is counted up and slept on.
    counts: bool,
    mutant: Mutant,
}

impl BellWord for ModelBellWord {
    fn add(&self, value: u32) {
        match self.mutant {
            Mutant::NoCount if self.counts => {}
            Mutant::CountRelaxed if self.counts => {
                self.value.fetch_add(value, Acquire);
            }
            _ => {
                self.value.fetch_add(value, SeqCst);
            }
        }
    }

    fn sub(&self, value: u32) {
        self.value.fetch_sub(value, SeqCst);
    }

    fn read(&self) -> u32 {
        self.value.load(if self.mutant == Mutant::CountReadRelaxed { Relaxed } else { Acquire })
    }

    fn glance(&self) -> u32 {
        self.value.load(Relaxed)
    }
}

/// A rank's bell, and the queue in the kernel of those who sleep on it.
pub struct ModelBell {
    announced: ModelBellWord,
    rung: ModelBellWord,
    queue: Mutex<()>,
    woken: Condvar,
    mutant: Mutant,
}

impl ModelBell {
    /// A bell that was never rung.
    pub fn new(mutant: Mutant) -> Self {
        let word = |counts| ModelBellWord { value: AtomicU32::new(0), counts, mutant };
        Self { announced: word(false), rung: word(true), queue: Mutex::new(()), woken: Condvar::new(), mutant }
    }

    /// Its words.
    pub fn words(&self) -> Bell<'_, ModelBellWord> {
        Bell { announced: &self.announced, rung: &self.rung }
    }
}

/// The system, for one bell: the kernel holds a queue for each word, and takes it while it compares and while it wakes.
impl Sleepers for ModelBell {
    type Word = ModelBellWord;

    /// The real one is a compiler fence where membarrier is to be had. membarrier then puts a full fence into every
    /// running rank at some point of its program order, and that point may lie where this fence stands, or before, or
    /// after: wherever it makes a difference, it is as if this fence were a full one against a heavy fence.
    fn light_fence(&self) {
        if self.mutant != Mutant::LightFenceMissing {
            fence(SeqCst);
        }
    }

    fn heavy_fence(&self) {
        if self.mutant != Mutant::HeavyFenceMissing {
            fence(SeqCst);
        }
    }

    /// The timeout never fires: it would hide a lost wake-up, which shows here as a deadlock.
    fn sleep(&self, word: &ModelBellWord, value: u32, _: Duration) {
        let guard = self.queue.lock().unwrap();
        let now = word.value.load(Relaxed);
        if self.mutant == Mutant::CountReadLate || now == value {
            drop(self.woken.wait(guard).unwrap());
        }
    }

    fn wake(&self, _: &ModelBellWord) {
        let _guard = self.queue.lock().unwrap();
        if self.mutant != Mutant::NoWake {
            self.woken.notify_all();
        }
    }
}

/// A word that says something once: a failure, a departure, a lock. Its orderings can be weakened.
pub struct Notice {
    value: loom::sync::atomic::AtomicU64,
    mutant: Mutant,
}

impl Notice {
    /// A word that says nothing.
    pub fn new(value: u64, mutant: Mutant) -> Self {
        Self { value: loom::sync::atomic::AtomicU64::new(value), mutant }
    }

    /// As the word of a dropped handle: a store.
    pub fn store(&self, value: u64) {
        self.value.store(value, if self.mutant == Mutant::StoreRelaxed { Relaxed } else { Release });
    }

    /// As the other real words: compare-and-exchange with `AcqRel`.
    pub fn say(&self, from: u64, to: u64) -> bool {
        let success = if self.mutant == Mutant::StoreRelaxed { Acquire } else { AcqRel };
        self.value.compare_exchange(from, to, success, Acquire).is_ok()
    }

    /// As the real words: load with `Acquire`.
    pub fn look(&self) -> u64 {
        self.value.load(if self.mutant == Mutant::LoadRelaxed { Relaxed } else { Acquire })
    }
}
