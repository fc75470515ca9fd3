//! Edges B3, A1 and G1: a block of the arena from its grant to its return. B4 and B5: the same of shared results.

mod model;

use std::sync::Arc;

use loom::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use loom::sync::atomic::{AtomicU64, fence};
use loom::thread;

use model::calls::TAG;
use model::check::model;
use model::world::expect_value;
use model::{Bound, Mutant, Rank, Tree, Watched, World};
use shm_core::protocol::RingName::{Down, Line};
use shm_core::protocol::exchange::exchange;
use shm_core::protocol::step;

/// G1: rank 0 opens a block (here: the down cells of its own) and grants it by an exchange; rank 1 uses it afterwards.
/// The block is written by plain stores that no stamp of its own publishes.
fn a_block_is_granted(mutant: Mutant) {
    World::new(mutant, 2).line(1).down(1).run(|rank| {
        if rank.number() == 0 {
            rank.board.fill(Down, 0, 5);
        }
        let Rank { board, line, .. } = &mut *rank;
        exchange(
            board,
            line,
            TAG,
            |slot| board.fill(Line, slot, 1),
            |from, slot| {
                expect_value(board.read(Line, from, slot), 1);
            },
        )
        .unwrap();
        if rank.number() == 1 {
            expect_value(rank.board.read(Down, 0, 0), 5);
        }
    });
}

model! {
    grant, Bound::All, a_block_is_granted, [L1];
}

/// G1 through a tree: rank 0 grants, and the word reaches rank 2 only by way of rank 1. The order passes on.
fn a_block_is_granted_down_a_chain(mutant: Mutant) {
    World::new(mutant, 3).line(1).down(1).run(|rank| {
        if rank.number() == 0 {
            rank.board.fill(Down, 0, 5);
        }
        let links = rank.links(Tree::Chain(&[0, 1, 2]));
        let Rank { board, line, .. } = &mut *rank;
        let position = line.take(1);
        step::release(board, line, &links, position, TAG, |_| ()).unwrap();
        if rank.number() == 2 {
            expect_value(rank.board.read(Down, 0, 0), 5);
        }
    });
}

model! {
    grant_down_a_chain, Bound::All, a_block_is_granted_down_a_chain, [L1];
}

/// An ordering that a mutant weakens.
fn unless(weak: bool, strong: loom::sync::atomic::Ordering) -> loom::sync::atomic::Ordering {
    if weak { Relaxed } else { strong }
}

/// B3: three handles of one communicator are dropped; the last one gives the block back, that is, overwrites it.
///
/// `Communicator::drop` written out again: it is one operation on one word.
fn the_last_handle_gives_the_block_back(mutant: Mutant) {
    let shared = Arc::new((AtomicU64::new(3), Watched::new(1)));
    let drop_handle = move |shared: Arc<(AtomicU64, Watched)>| {
        let (users, block) = &*shared;
        expect_value(block.read(), 1);
        let ordering = match mutant {
            Mutant::StoreRelaxed => Acquire,
            Mutant::LoadRelaxed => Release,
            _ => AcqRel,
        };
        if users.fetch_sub(1, ordering) == 1 {
            block.write(0);
        }
    };
    let others = [(); 2].map(|()| {
        let shared = Arc::clone(&shared);
        thread::spawn(move || drop_handle(shared))
    });
    drop_handle(shared);
    for other in others {
        other.join().unwrap();
    }
}

model! {
    last_handle, Bound::All, the_last_handle_gives_the_block_back, [];
    rejects_a_count_without_release: Mutant::StoreRelaxed => [Race];
    rejects_a_count_without_acquire: Mutant::LoadRelaxed => [Race];
}

/// A1: two ranks take a chunk each under the arena's lock.
///
/// `Mapping::lock_maps` written out again, with a map that loom watches (the real one is made of relaxed atomic bytes,
/// so that even a broken lock would be no undefined behaviour, only a chunk that is given out twice).
fn two_ranks_lock_the_arena(mutant: Mutant) {
    let shared = Arc::new((AtomicU64::new(0), Watched::new(0)));
    let take_chunk = move |shared: Arc<(AtomicU64, Watched)>, rank: u64| {
        let (lock, map) = &*shared;
        if mutant != Mutant::NotLookedAt {
            let success = unless(mutant == Mutant::LoadRelaxed, Acquire);
            while lock.compare_exchange(0, rank + 1, success, Relaxed).is_err() {
                thread::yield_now();
            }
        }
        let chunk = map.read();
        map.write(chunk + 1);
        lock.store(0, unless(mutant == Mutant::StoreRelaxed, Release));
        chunk
    };
    let other = {
        let shared = Arc::clone(&shared);
        thread::spawn(move || take_chunk(shared, 1))
    };
    let own = take_chunk(shared, 0);
    assert_ne!(own, other.join().unwrap(), "wrong value");
}

model! {
    arena_lock, Bound::Preemptions(3), two_ranks_lock_the_arena, [];
    rejects_a_relaxed_unlock: Mutant::StoreRelaxed => [Race];
    rejects_a_relaxed_lock: Mutant::LoadRelaxed => [Race];
    rejects_a_missing_lock: Mutant::NotLookedAt => [Race];
}

/// A shared result of the provider and one other rank, which looks at it in two turns.
struct Shared {
    /// The views that the other rank has dropped, and the mark of who has let go: in the head, as `users`.
    dropped: AtomicU64,
    users: AtomicU64,
    /// The first value of `users`, written with it: who counts must have acquired that (the real one would count from
    /// what it finds).
    counted: Watched,
    /// Who may touch the head reads this; who gives it back, or provides it again, writes it.
    head: Watched,
    /// What is looked at.
    result: Watched,
    /// The turn that the other rank has been told of.
    told: AtomicU64,
    /// How often the memory was given back.
    given_back: AtomicU64,
}

const LET_GO: u64 = 1 << 63;

impl Shared {
    fn new() -> Self {
        let [dropped, users, given_back] = [(); 3].map(|()| AtomicU64::new(0));
        let told = AtomicU64::new(1);
        let [counted, head, result] = [0, 0, 1].map(Watched::new);
        Self { dropped, users, counted, head, result, told, given_back }
    }

    /// What comes next in this memory is somebody else's.
    fn give_back(&self) {
        self.head.write(1);
        self.result.write(9);
        self.given_back.fetch_add(1, Relaxed);
    }

    /// So many users less, of whom the last one gives the memory back.
    fn leave(&self, users: u64, mutant: Mutant) {
        expect_value(self.head.read(), 0);
        expect_value(self.counted.read(), 2);
        let ordering = match mutant {
            Mutant::CountRelaxed => Acquire,
            Mutant::CountReadRelaxed => Release,
            _ => AcqRel,
        };
        if self.users.fetch_sub(users, ordering) == users {
            self.give_back();
        }
    }

    /// `View::leave`.
    fn drop_view(&self, mutant: Mutant) {
        expect_value(self.head.read(), 0);
        if mutant == Mutant::LookedAtLate {
            // A store, and then a look whether the provider has let go: with no fence between them missing.
            let before = self.dropped.load(Relaxed);
            self.dropped.store(before + 1, Release);
            fence(SeqCst);
            expect_value(self.head.read(), 0);
            if self.users.load(Acquire) != 0 {
                self.leave(1, mutant);
            }
            return;
        }
        let ordering = match mutant {
            Mutant::StoreRelaxed => Acquire,
            Mutant::MarkFoundRelaxed => Release,
            _ => AcqRel,
        };
        if self.dropped.fetch_add(1, ordering) & LET_GO != 0 && mutant != Mutant::MarkNotHeeded {
            self.leave(1, mutant);
        }
    }

    /// `Kept::is_free`.
    fn is_free(&self, turns: u64, mutant: Mutant) -> bool {
        let load = unless(mutant == Mutant::LoadRelaxed, Acquire);
        mutant == Mutant::NotLookedAt || self.dropped.load(load) == turns
    }

    /// `Kept::let_go`.
    fn let_go(&self, turns: u64, mutant: Mutant) {
        if self.is_free(turns, mutant) {
            return self.give_back();
        }
        self.users.store(2, Relaxed);
        self.counted.write(2);
        if mutant == Mutant::LookedAtLate {
            fence(SeqCst);
            let gone = u64::from(self.dropped.load(Acquire) == turns);
            return self.leave(1 + gone, mutant);
        }
        let ordering = match mutant {
            Mutant::MarkRelaxed => Acquire,
            Mutant::MarkReadRelaxed => Release,
            _ => AcqRel,
        };
        let gone = self.dropped.fetch_or(LET_GO, ordering) == turns && mutant != Mutant::GoneNotCounted;
        self.leave(1 + u64::from(gone), mutant);
    }
}

/// B4, B5: the provider uses the memory again if it finds that the other rank has dropped its view, and lets go of it
/// in the end, whoever looks. The other rank looks at both turns, and may drop the first view late.
///
/// `View::leave`, `ResultMemory::take` and `Kept::let_go` written out again.
fn the_memory_of_a_result_is_used_again_and_let_go(mutant: Mutant) {
    let shared = Arc::new(Shared::new());
    let first = {
        let shared = Arc::clone(&shared);
        thread::spawn(move || {
            expect_value(shared.result.read(), 1);
            shared.drop_view(mutant);
        })
    };
    let second = {
        let shared = Arc::clone(&shared);
        thread::spawn(move || {
            if shared.told.load(Acquire) == 2 {
                expect_value(shared.result.read(), 2);
                shared.drop_view(mutant);
                return true;
            }
            false
        })
    };
    let mut turns = 1;
    if shared.is_free(turns, mutant) {
        turns = 2;
        shared.result.write(2);
        shared.told.store(2, Release);
    }
    shared.let_go(turns, mutant);
    first.join().unwrap();
    if !second.join().unwrap() && turns == 2 {
        // It came too early to be told, and looks now.
        expect_value(shared.result.read(), 2);
        shared.drop_view(mutant);
    }
    assert_eq!(shared.given_back.load(Relaxed), 1, "wrong value: how often it was given back");
}

model! {
    shared_result, Bound::Preemptions(3), the_memory_of_a_result_is_used_again_and_let_go, [];
    rejects_a_view_dropped_without_release: Mutant::StoreRelaxed => [Race];
    rejects_a_look_without_acquire: Mutant::LoadRelaxed => [Race];
    rejects_views_that_are_not_looked_at: Mutant::NotLookedAt => [Race, WrongValue];
    rejects_a_count_without_release: Mutant::CountRelaxed => [Race];
    rejects_a_count_without_acquire: Mutant::CountReadRelaxed => [Race];
    rejects_a_look_at_memory_that_was_left: Mutant::LookedAtLate => [Race, WrongValue];
    rejects_a_mark_without_release: Mutant::MarkRelaxed => [Race];
    rejects_a_mark_that_does_not_acquire: Mutant::MarkReadRelaxed => [Race];
    rejects_a_mark_found_without_acquire: Mutant::MarkFoundRelaxed => [Race];
    rejects_who_is_gone_not_counted: Mutant::GoneNotCounted => [WrongValue];
    rejects_a_mark_that_is_not_heeded: Mutant::MarkNotHeeded => [WrongValue];
}
