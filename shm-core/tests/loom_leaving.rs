//! Edge E1: a rank that leaves a call by an error, with a buffer lent to another that may be in the call, or about to
//! begin it.

mod model;

use std::sync::Arc;

use loom::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use loom::sync::atomic::{AtomicU64, Ordering, fence};
use loom::thread;

use model::check::model;
use model::world::expect_value;
use model::{Bound, Mutant, Watched};

/// The words of two ranks.
struct Words {
    /// What the other rank noted: 1 in the call, 0 before it, or out of it again.
    noted: AtomicU64,
    /// The other rank has finished its reads of the call.
    done: AtomicU64,
    /// The communicator cannot go on.
    fault: AtomicU64,
    /// The buffer is lent.
    stamp: AtomicU64,
    buffer: Watched,
}

fn unless(weak: bool, strong: Ordering) -> Ordering {
    if weak { Relaxed } else { strong }
}

/// `SharedBoard::begin`, a read of what is lent, and `SharedBoard::leave`, written out again: one rank lends its
/// buffer, fails, and writes the buffer when it has left the call; the other begins the call meanwhile, or has begun
/// it.
fn a_rank_leaves_with_a_buffer_lent(mutant: Mutant) {
    let words = Arc::new(Words {
        noted: AtomicU64::new(0),
        done: AtomicU64::new(0),
        fault: AtomicU64::new(0),
        stamp: AtomicU64::new(0),
        buffer: Watched::new(0),
    });
    let store = unless(mutant == Mutant::StoreRelaxed, Release);
    let other = {
        let words = Arc::clone(&words);
        thread::spawn(move || {
            words.noted.store(1, Release);
            if mutant != Mutant::LightFenceMissing {
                fence(SeqCst);
            }
            if words.fault.load(Acquire) == 0 {
                if words.stamp.load(Acquire) == 1 {
                    expect_value(words.buffer.read(), 1);
                }
                words.done.store(1, store);
            } else {
                words.noted.store(0, Release);
            }
        })
    };
    words.buffer.write(1);
    words.stamp.store(1, Release);
    words.fault.store(1, Release);
    if mutant != Mutant::HeavyFenceMissing {
        fence(SeqCst);
    }
    let load = unless(mutant == Mutant::LoadRelaxed, Acquire);
    while mutant != Mutant::NotLookedAt && words.noted.load(load) == 1 && words.done.load(load) == 0 {
        thread::yield_now();
    }
    words.buffer.write(2);
    other.join().unwrap();
}

model! {
    leaving, Bound::Preemptions(3), a_rank_leaves_with_a_buffer_lent, [];
    rejects_a_missing_light_fence: Mutant::LightFenceMissing => [Race, WrongValue];
    rejects_a_missing_heavy_fence: Mutant::HeavyFenceMissing => [Race, WrongValue];
    rejects_a_relaxed_store: Mutant::StoreRelaxed => [Race];
    rejects_a_relaxed_load: Mutant::LoadRelaxed => [Race];
    rejects_nobody_waited_for: Mutant::NotLookedAt => [Race, WrongValue];
}
