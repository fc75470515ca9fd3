//! Edges L1 and L2: lines that all ranks exchange, lines of rooted calls, both mixed, and rings that are cut anew.

mod model;

use model::Tree::{Chain, Flat};
use model::check::model;
use model::{Bound, Mutant, World};
use shm_core::protocol::RingName::{Line, Up};

/// Two ranks exchange three times through one slot: every exchange but the first waits for the reader of the last.
fn exchanges_through_one_slot(mutant: Mutant) {
    World::new(mutant, 2).line(1).run(|rank| {
        for _ in 0..3 {
            rank.exchange();
        }
    });
}

model! {
    exchange_through_one_slot, Bound::Preemptions(3), exchanges_through_one_slot, [L1, L2];
    rejects_lines_taken_from_a_reader: Mutant::TakesWhatIsRead => [Race, WrongValue, Deadlock];
}

/// Two ranks exchange four times through two slots. No `done` word is waited for: that everybody has published the
/// exchange before proves that everybody is past the one before that.
fn exchanges_prove_progress(mutant: Mutant) {
    World::new(mutant, 2).line(2).run(|rank| {
        for _ in 0..4 {
            rank.exchange();
        }
    });
}

model! {
    exchange_proves_progress, Bound::Preemptions(3), exchanges_prove_progress, [L1];
}

/// Two ranks exchange five times through three slots: from the third on each finds the next slot, which was read, free
/// while it waits, and claims it without a look.
fn exchanges_find_slots_free(mutant: Mutant) {
    World::new(mutant, 2).line(3).run(|rank| {
        for _ in 0..5 {
            rank.exchange();
        }
    });
}

model! {
    exchange_finds_slots_free, Bound::Preemptions(2), exchanges_find_slots_free, [L1];
}

/// The same among calls of a root, which write at some positions and pass over others.
fn calls_find_slots_free(mutant: Mutant) {
    World::new(mutant, 2).line(3).run(|rank| {
        rank.exchange();
        rank.exchange();
        rank.collect(Line, 0);
        rank.exchange();
        rank.hand_out(Line, 1);
        rank.exchange();
    });
}

model! {
    calls_find_free_slots, Bound::Preemptions(2), calls_find_slots_free, [L1];
}

/// Two ranks exchange messages of two pieces, three times, through four slots: half of the ring a message, so that the
/// next but one is the first to come back to a slot.
fn messages_of_two_pieces(mutant: Mutant) {
    World::new(mutant, 2).line(4).run(|rank| {
        for _ in 0..3 {
            rank.exchange_in_pieces(2);
        }
    });
}

model! {
    exchange_of_pieces, Bound::Preemptions(2), messages_of_two_pieces, [L1];
}

/// What an exchange proves must not include the exchange itself: others may still read its lines.
fn proof_ends_before_the_exchange(mutant: Mutant) {
    World::new(mutant, 2).line(1).run(|rank| {
        for _ in 0..2 {
            rank.exchange();
            if rank.board.mutant() == Mutant::ProvesTooMuch {
                rank.line.prove(rank.line.next_position() - 1);
            }
        }
    });
}

model! {
    exchange_proves_no_more, Bound::Preemptions(3), proof_ends_before_the_exchange, [];
    rejects_a_proof_of_the_exchange_itself: Mutant::ProvesTooMuch => [Race, WrongValue, Deadlock];
}

/// Three ranks exchange twice through one slot.
fn three_ranks_exchange(mutant: Mutant) {
    World::new(mutant, 3).line(1).run(|rank| {
        for _ in 0..2 {
            rank.exchange();
        }
    });
}

model! {
    exchange_of_three, Bound::Preemptions(2), three_ranks_exchange, [L1, L2];
}

/// Two ranks: exchange, broadcast, reduce, exchange, through one slot. What rooted calls leave behind is waited for by
/// the exchange, and the other way round.
fn two_ranks_mix_calls(mutant: Mutant) {
    World::new(mutant, 2).line(1).run(|rank| {
        rank.exchange();
        rank.release(Line, Flat(0));
        rank.gather(Line, Flat(0));
        rank.exchange();
    });
}

model! {
    mixed_calls_of_two, Bound::Preemptions(3), two_ranks_mix_calls, [L1, L2];
}

/// Three ranks: a broadcast from rank 1, a reduction to rank 2, an exchange, through one slot.
fn three_ranks_mix_calls(mutant: Mutant) {
    World::new(mutant, 3).line(1).run(|rank| {
        rank.release(Line, Flat(1));
        rank.gather(Line, Flat(2));
        rank.exchange();
    });
}

model! {
    mixed_calls_of_three, Bound::Preemptions(2), three_ranks_mix_calls, [L1, L2];
}

/// A barrier along a chain of three: a gather step and a release step in the line ring, twice, through two slots. Here
/// the steps prove progress by themselves: who gets the release knows that its contribution was read, so that `done`
/// words are waited for in name only, and weakening L2 does no harm. (Collectives that share the ring do need L2:
/// `mixed_calls_*`.)
fn barriers_along_a_chain(mutant: Mutant) {
    World::new(mutant, 3).line(2).run(|rank| {
        for _ in 0..2 {
            rank.gather(Line, Chain(&[0, 1, 2]));
            rank.release(Line, Chain(&[0, 1, 2]));
        }
    });
}

model! {
    barrier_along_a_chain, Bound::Preemptions(2), barriers_along_a_chain, [L1];
}

/// The same memory as two slots of a unit, then as one slot of two units, then as two again: the writer waits for the
/// readers of all old slots, not only of the one that has the new slot's number.
fn a_ring_is_cut_anew(mutant: Mutant) {
    World::new(mutant, 2).up(2).run(|rank| {
        for (slots, pieces) in [(2, 2), (1, 1), (2, 1)] {
            rank.cut(Up, slots);
            for _ in 0..pieces {
                rank.gather(Up, Flat(0));
            }
        }
    });
}

model! {
    ring_cut_anew, Bound::Preemptions(3), a_ring_is_cut_anew, [U1, U2];
    rejects_a_cut_without_wait: Mutant::ReshapesAtOnce => [Race, WrongValue, Deadlock];
}
