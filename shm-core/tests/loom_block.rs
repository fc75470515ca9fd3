//! Edges B3, A1 and G1: a block of the arena from its grant to its return.

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

/// B4: a shared result is looked at by two other ranks, whose views are dropped by plain stores, each to a word of its
/// own; the rank that provides the memory uses it again if it finds both dropped.
///
/// `View::leave` and `ResultMemory::take` written out again.
fn the_memory_of_a_result_is_used_again(mutant: Mutant) {
    let shared = Arc::new(([AtomicU64::new(0), AtomicU64::new(0)], Watched::new(1)));
    let store = unless(mutant == Mutant::StoreRelaxed, Release);
    let others = [0, 1].map(|other| {
        let shared = Arc::clone(&shared);
        thread::spawn(move || {
            expect_value(shared.1.read(), 1);
            shared.0[other].store(1, store);
        })
    });
    let (dropped, block) = &*shared;
    let load = unless(mutant == Mutant::LoadRelaxed, Acquire);
    if mutant == Mutant::NotLookedAt || dropped.iter().all(|word| word.load(load) == 1) {
        block.write(2);
    }
    for other in others {
        other.join().unwrap();
    }
}

model! {
    shared_result, Bound::All, the_memory_of_a_result_is_used_again, [];
    rejects_a_view_dropped_without_release: Mutant::StoreRelaxed => [Race];
    rejects_a_look_without_acquire: Mutant::LoadRelaxed => [Race];
    rejects_views_that_are_not_looked_at: Mutant::NotLookedAt => [Race, WrongValue];
}

/// The head of a result's memory, of which two other ranks have a view.
struct Head {
    let_go: AtomicU64,
    users: AtomicU64,
    dropped: [AtomicU64; 2],
    block: Watched,
}

impl Head {
    /// The last user gives the memory back, that is, overwrites it.
    fn leave(&self, mutant: Mutant) {
        let ordering = match mutant {
            Mutant::CountRelaxed => Acquire,
            Mutant::CountReadRelaxed => Release,
            _ => AcqRel,
        };
        if self.users.fetch_sub(1, ordering) == 1 {
            self.block.write(self.block.read() + 1);
        }
    }

    /// A view that both sides find dropped is counted out once.
    fn count_out(&self, other: usize, mutant: Mutant) {
        let counted = self.dropped[other].fetch_or(COUNTED, AcqRel) & COUNTED != 0;
        if !counted || mutant == Mutant::ClaimedTwice {
            self.leave(mutant);
        }
    }
}

/// The mark in a viewer's word.
const COUNTED: u64 = 1 << 63;

/// B5: the rank that provides the memory of a result lets go of it while others may still look, or drop their views;
/// once all have, it has been given back, and once only.
///
/// `View::leave` and `Kept::let_go` written out again; what is given back at once, without a fence, is B4.
fn the_memory_of_a_result_is_left_to_others(mutant: Mutant) {
    let head = Arc::new(Head {
        let_go: AtomicU64::new(0),
        users: AtomicU64::new(0),
        dropped: [AtomicU64::new(0), AtomicU64::new(0)],
        block: Watched::new(1),
    });
    let others = [0, 1].map(|other| {
        let head = Arc::clone(&head);
        thread::spawn(move || {
            expect_value(head.block.read(), 1);
            head.dropped[other].store(1, Release);
            if mutant != Mutant::LightFenceMissing {
                fence(SeqCst);
            }
            if head.let_go.load(Acquire) == 1 {
                head.count_out(other, mutant);
            }
        })
    });
    head.users.store(3, Relaxed);
    head.let_go.store(1, Release);
    if mutant != Mutant::HeavyFenceMissing {
        fence(SeqCst);
    }
    for other in 0..2 {
        if mutant != Mutant::NotLookedAt && head.dropped[other].load(Acquire) == 1 {
            head.count_out(other, mutant);
        }
    }
    head.leave(mutant);
    for other in others {
        other.join().unwrap();
    }
    expect_value(head.block.read(), 2);
}

model! {
    shared_result_let_go, Bound::Preemptions(3), the_memory_of_a_result_is_left_to_others, [];
    rejects_a_missing_light_fence: Mutant::LightFenceMissing => [WrongValue];
    rejects_a_missing_heavy_fence: Mutant::HeavyFenceMissing => [WrongValue];
    rejects_views_that_are_not_looked_at: Mutant::NotLookedAt => [WrongValue];
    rejects_a_count_without_release: Mutant::CountRelaxed => [Race];
    rejects_a_count_without_acquire: Mutant::CountReadRelaxed => [Race];
    rejects_a_view_that_is_counted_twice: Mutant::ClaimedTwice => [Race, WrongValue];
}
