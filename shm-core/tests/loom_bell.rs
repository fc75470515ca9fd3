//! Edges W1, W2, J1, J2 and C3: sleeping without losing a wake-up, and being woken by a failure, by a rank that leaves,
//! or by one that drops its handle.
#![allow(clippy::arc_with_non_send_sync, reason = "the model shares what the real world shares")]

mod model;

use std::sync::Arc;
use std::time::Duration;

use loom::sync::atomic::AtomicU64;
use loom::sync::atomic::Ordering::{Acquire, Release};
use loom::thread;

use model::bell::{ModelBell, Notice};
use model::check::model;
use model::{Bound, Mutant, Watched};
use shm_core::wait::bell::{ring, ring_if_needed, sleep_unless};

/// Never reached: in the model nobody wakes by himself.
const NAP: Duration = Duration::ZERO;

/// A rank that publishes, and its bell.
struct Publisher {
    word: AtomicU64,
    bell: ModelBell,
    mutant: Mutant,
}

impl Publisher {
    fn new(mutant: Mutant) -> Arc<Self> {
        Arc::new(Self { word: AtomicU64::new(0), bell: ModelBell::new(mutant), mutant })
    }

    fn publish(&self, value: u64) {
        self.word.store(value, Release);
        ring_if_needed(&self.bell, &self.bell.words());
    }

    /// Waits as a rank does that has run out of patience.
    fn await_value(&self, value: u64) {
        let arrived = || self.word.load(Acquire) >= value;
        while !arrived() {
            self.sleep_unless(arrived);
        }
    }

    fn sleep_unless(&self, arrived: impl Fn() -> bool) {
        let look = || self.mutant != Mutant::NoSecondLook && arrived();
        sleep_unless(&self.bell, &self.bell.words(), NAP, look);
    }
}

/// A publisher and a sleeper that waits for each of two publications.
fn two_publications(mutant: Mutant) {
    let publisher = Publisher::new(mutant);
    let sleeper = {
        let publisher = Arc::clone(&publisher);
        thread::spawn(move || {
            publisher.await_value(1);
            publisher.await_value(2);
        })
    };
    publisher.publish(1);
    publisher.publish(2);
    sleeper.join().unwrap();
}

model! {
    sleep_and_wake, Bound::Preemptions(4), two_publications, [];
    rejects_a_missing_light_fence: Mutant::LightFenceMissing => [Deadlock];
    rejects_a_missing_heavy_fence: Mutant::HeavyFenceMissing => [Deadlock];
    rejects_a_missing_second_look: Mutant::NoSecondLook => [Deadlock];
    rejects_a_count_read_late: Mutant::CountReadLate => [Deadlock];
    rejects_a_bell_not_counted: Mutant::NoCount => [Deadlock];
    rejects_a_bell_that_wakes_nobody: Mutant::NoWake => [Deadlock];
}

/// A publisher and two sleepers on its bell.
fn one_publication_for_two(mutant: Mutant) {
    let publisher = Publisher::new(mutant);
    let sleepers = [(); 2].map(|()| {
        let publisher = Arc::clone(&publisher);
        thread::spawn(move || publisher.await_value(1))
    });
    publisher.publish(1);
    for sleeper in sleepers {
        sleeper.join().unwrap();
    }
}

model! {
    two_sleepers, Bound::Preemptions(3), one_publication_for_two, [];
    rejects_a_missing_light_fence: Mutant::LightFenceMissing => [Deadlock];
    rejects_a_missing_heavy_fence: Mutant::HeavyFenceMissing => [Deadlock];
    rejects_a_missing_second_look: Mutant::NoSecondLook => [Deadlock];
    rejects_a_count_read_late: Mutant::CountReadLate => [Deadlock];
    rejects_a_bell_not_counted: Mutant::NoCount => [Deadlock];
}

/// J1: a third party condemns the job while a sleeper waits for a publication that never comes. As in `seat.rs`: the
/// failure is stored once, then every bell is rung, announced or not, without a fence, as by a rank that leaves.
///
/// A count that is read without acquire ordering does no harm here: the heavy fence stands between it and the second
/// look.
fn a_job_is_condemned(mutant: Mutant) {
    a_rank_goes_without_a_word(mutant, leaves);
}

model! {
    condemned_job, Bound::All, a_job_is_condemned, [];
    rejects_a_failure_not_looked_at: Mutant::NotLookedAt => [Deadlock];
    rejects_a_missing_second_look: Mutant::NoSecondLook => [Deadlock];
    rejects_a_count_read_late: Mutant::CountReadLate => [Deadlock];
    rejects_a_count_stored_relaxed: Mutant::CountRelaxed => [Deadlock];
    rejects_a_bell_not_counted: Mutant::NoCount => [Deadlock];
    rejects_a_bell_that_wakes_nobody: Mutant::NoWake => [Deadlock];
}

/// Two ranks find two failures at once: both name the one that stands, and the sleeper, whom either wakes, sees it too.
fn a_job_is_condemned_twice(mutant: Mutant) {
    let publisher = Publisher::new(mutant);
    let failure = Arc::new(Notice::new(0, mutant));
    let condemn = |failed: u64| {
        let (publisher, failure) = (Arc::clone(&publisher), Arc::clone(&failure));
        move || {
            let stands = if failure.say(0, failed) { failed } else { failure.look() };
            ring(&publisher.bell, &publisher.bell.words());
            stands
        }
    };
    let other = thread::spawn(condemn(2));
    let sleeper = {
        let (publisher, failure) = (Arc::clone(&publisher), Arc::clone(&failure));
        thread::spawn(move || {
            while failure.look() == 0 {
                publisher.sleep_unless(|| mutant != Mutant::NotLookedAt && failure.look() != 0);
            }
            failure.look()
        })
    };
    let own = condemn(1)();
    assert_eq!(other.join().unwrap(), own, "wrong value");
    assert_eq!(sleeper.join().unwrap(), own, "wrong value");
}

/// The same, with a count that is read relaxed: it holds.
fn a_relaxed_count_is_fenced(mutant: Mutant) {
    assert_eq!(mutant, Mutant::None);
    a_job_is_condemned(Mutant::CountReadRelaxed);
}

model! {
    condemned_job_with_a_relaxed_count, Bound::All, a_relaxed_count_is_fenced, [];
}

model! {
    condemned_twice, Bound::Preemptions(2), a_job_is_condemned_twice, [];
    rejects_a_failure_not_looked_at: Mutant::NotLookedAt => [Deadlock];
    rejects_a_bell_not_counted: Mutant::NoCount => [Deadlock];
}

/// J2: a rank leaves, as in `seat.rs`: the bell is rung, announced or not, without a fence.
fn leaves(publisher: &Publisher, standing: &Notice) {
    assert!(standing.say(0, 1));
    ring(&publisher.bell, &publisher.bell.words());
}

/// C3: a rank drops its handle, as in `board/calls.rs`: that is published like any word.
fn drops(publisher: &Publisher, dropped: &Notice) {
    dropped.store(1);
    ring_if_needed(&publisher.bell, &publisher.bell.words());
}

/// A rank publishes its last word and goes. Who waits for it either finds the word, or finds it gone and then the word,
/// but never finds it gone without the word.
///
/// The word is stored here without the fence and the look for sleepers that follow it in a real publication: a fence
/// would order the word before the departure, and the real one is there for the compiler only. The ring of who goes
/// wakes.
fn a_rank_goes(mutant: Mutant, goes: impl Fn(&Publisher, &Notice)) {
    let publisher = Publisher::new(mutant);
    let gone = Arc::new(Notice::new(0, mutant));
    let cell = Arc::new(Watched::new(0));
    let waiter = {
        let (publisher, gone, cell) = (Arc::clone(&publisher), Arc::clone(&gone), Arc::clone(&cell));
        thread::spawn(move || {
            let arrived = || publisher.word.load(Acquire) == 1;
            while !arrived() {
                if gone.look() != 0 {
                    assert!(arrived(), "wrong value: it is gone, and its last word is not there");
                    break;
                }
                publisher.sleep_unless(|| arrived() || (mutant != Mutant::NotLookedAt && gone.look() != 0));
            }
            assert_eq!(cell.read(), 7, "wrong value");
        })
    };
    cell.write(7);
    publisher.word.store(1, Release);
    goes(&publisher, &gone);
    waiter.join().unwrap();
}

fn a_rank_leaves(mutant: Mutant) {
    a_rank_goes(mutant, leaves);
}

model! {
    departure, Bound::Preemptions(3), a_rank_leaves, [];
    rejects_a_standing_stored_relaxed: Mutant::StoreRelaxed => [WrongValue];
    rejects_a_standing_loaded_relaxed: Mutant::LoadRelaxed => [WrongValue];
    rejects_a_bell_not_counted: Mutant::NoCount => [Deadlock];
    rejects_a_bell_that_wakes_nobody: Mutant::NoWake => [Deadlock];
}

fn a_handle_is_dropped(mutant: Mutant) {
    a_rank_goes(mutant, drops);
}

model! {
    dropped_handle, Bound::Preemptions(3), a_handle_is_dropped, [];
    rejects_a_drop_stored_relaxed: Mutant::StoreRelaxed => [WrongValue];
    rejects_a_drop_loaded_relaxed: Mutant::LoadRelaxed => [WrongValue];
    rejects_a_bell_not_counted: Mutant::NoCount => [Deadlock];
    rejects_a_bell_that_wakes_nobody: Mutant::NoWake => [Deadlock];
}

/// A rank goes without the word that is waited for: who waits finds out, awake or asleep.
fn a_rank_goes_without_a_word(mutant: Mutant, goes: impl Fn(&Publisher, &Notice)) {
    let publisher = Publisher::new(mutant);
    let gone = Arc::new(Notice::new(0, mutant));
    let waiter = {
        let (publisher, gone) = (Arc::clone(&publisher), Arc::clone(&gone));
        thread::spawn(move || {
            while publisher.word.load(Acquire) == 0 && gone.look() == 0 {
                publisher.sleep_unless(|| {
                    publisher.word.load(Acquire) != 0 || (mutant != Mutant::NotLookedAt && gone.look() != 0)
                });
            }
        })
    };
    goes(&publisher, &gone);
    waiter.join().unwrap();
}

fn a_rank_leaves_without_a_word(mutant: Mutant) {
    a_rank_goes_without_a_word(mutant, leaves);
}

model! {
    departure_without_a_word, Bound::All, a_rank_leaves_without_a_word, [];
    rejects_a_departure_not_looked_at: Mutant::NotLookedAt => [Deadlock];
    rejects_a_count_read_late: Mutant::CountReadLate => [Deadlock];
    rejects_a_bell_not_counted: Mutant::NoCount => [Deadlock];
    rejects_a_bell_that_wakes_nobody: Mutant::NoWake => [Deadlock];
}

fn a_handle_is_dropped_without_a_word(mutant: Mutant) {
    a_rank_goes_without_a_word(mutant, drops);
}

model! {
    dropped_handle_without_a_word, Bound::All, a_handle_is_dropped_without_a_word, [];
    rejects_a_drop_not_looked_at: Mutant::NotLookedAt => [Deadlock];
    rejects_a_missing_light_fence: Mutant::LightFenceMissing => [Deadlock];
    rejects_a_missing_heavy_fence: Mutant::HeavyFenceMissing => [Deadlock];
    rejects_a_missing_second_look: Mutant::NoSecondLook => [Deadlock];
    rejects_a_count_read_late: Mutant::CountReadLate => [Deadlock];
    rejects_a_bell_not_counted: Mutant::NoCount => [Deadlock];
    rejects_a_bell_that_wakes_nobody: Mutant::NoWake => [Deadlock];
}
