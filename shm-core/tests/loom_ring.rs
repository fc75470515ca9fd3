//! Edges L1 and L2: lines that all ranks exchange, lines of rooted calls, both mixed, and rings that are cut anew.

mod model;

use model::calls::{chain, exchange_words, exchange_words_in_pieces, gather_words, release_word};
use model::check::model;
use model::{Bound, ModelBoard, Mutant, Shape, World, run_ranks};
use shm_core::Links;
use shm_core::protocol::Edge::{LinePublish, LineReuse, UpPublish, UpReuse};
use shm_core::protocol::{Board, Readers, Ring, RingName};

/// Two ranks exchange three times through one slot: every exchange but the first waits for the reader of the last.
fn exchanges_through_one_slot(mutant: Mutant) {
    run_ranks(&World::of_lines(mutant, 2, 1), |board| {
        let mut ring = Ring::new(RingName::Line, 1, 2);
        for _ in 0..3 {
            exchange_words(board, &mut ring);
        }
    });
}

model! {
    exchange_through_one_slot, Bound::Preemptions(3), exchanges_through_one_slot;
    rejects_a_relaxed_stamp: Mutant::PublishRelaxed(LinePublish) => [Race];
    rejects_a_relaxed_look_at_a_stamp: Mutant::ObserveRelaxed(LinePublish) => [Race];
    rejects_a_stamp_not_waited_for: Mutant::SkipWait(LinePublish) => [Race, WrongValue];
    rejects_a_relaxed_done: Mutant::PublishRelaxed(LineReuse) => [Race];
    rejects_a_relaxed_look_at_done: Mutant::ObserveRelaxed(LineReuse) => [Race];
    rejects_reuse_without_wait: Mutant::SkipWait(LineReuse) => [Race, WrongValue, Deadlock];
}

/// Two ranks exchange four times through two slots. No `done` word is waited for: that everybody has published the exchange
/// before proves that everybody is past the one before that.
fn exchanges_prove_progress(mutant: Mutant) {
    run_ranks(&World::of_lines(mutant, 2, 2), |board| {
        let mut ring = Ring::new(RingName::Line, 2, 2);
        for _ in 0..4 {
            exchange_words(board, &mut ring);
        }
    });
}

model! {
    exchange_proves_progress, Bound::Preemptions(3), exchanges_prove_progress;
    rejects_a_relaxed_stamp: Mutant::PublishRelaxed(LinePublish) => [Race];
    rejects_a_relaxed_look_at_a_stamp: Mutant::ObserveRelaxed(LinePublish) => [Race];
    rejects_a_stamp_not_waited_for: Mutant::SkipWait(LinePublish) => [Race, WrongValue];
}

/// Two ranks exchange messages of two pieces, three times, through four slots: half of the ring a message, so that the next
/// but one is the first to come back to a slot.
fn messages_of_two_pieces(mutant: Mutant) {
    run_ranks(&World::of_lines(mutant, 2, 4), |board| {
        let mut ring = Ring::new(RingName::Line, 4, 2);
        for _ in 0..3 {
            exchange_words_in_pieces(board, &mut ring, 2);
        }
    });
}

model! {
    exchange_of_pieces, Bound::Preemptions(2), messages_of_two_pieces;
    rejects_a_relaxed_stamp: Mutant::PublishRelaxed(LinePublish) => [Race];
    rejects_a_relaxed_look_at_a_stamp: Mutant::ObserveRelaxed(LinePublish) => [Race];
    rejects_a_stamp_not_waited_for: Mutant::SkipWait(LinePublish) => [Race, WrongValue];
}

/// What an exchange proves must not include the exchange itself: others may still read its lines.
fn proof_ends_before_the_exchange(mutant: Mutant) {
    run_ranks(&World::of_lines(mutant, 2, 1), |board| {
        let mut ring = Ring::new(RingName::Line, 1, 2);
        for _ in 0..2 {
            exchange_words(board, &mut ring);
            if board.mutant() == Mutant::ProvesTooMuch {
                ring.prove(ring.next_position() - 1);
            }
        }
    });
}

model! {
    exchange_proves_no_more, Bound::Preemptions(3), proof_ends_before_the_exchange;
    rejects_a_proof_of_the_exchange_itself: Mutant::ProvesTooMuch => [Race, WrongValue, Deadlock];
}

/// Three ranks exchange twice through one slot.
fn three_ranks_exchange(mutant: Mutant) {
    run_ranks(&World::of_lines(mutant, 3, 1), |board| {
        let mut ring = Ring::new(RingName::Line, 1, 3);
        for _ in 0..2 {
            exchange_words(board, &mut ring);
        }
    });
}

model! {
    exchange_of_three, Bound::Preemptions(2), three_ranks_exchange;
    rejects_a_relaxed_stamp: Mutant::PublishRelaxed(LinePublish) => [Race];
    rejects_a_relaxed_look_at_a_stamp: Mutant::ObserveRelaxed(LinePublish) => [Race];
    rejects_a_stamp_not_waited_for: Mutant::SkipWait(LinePublish) => [Race, WrongValue];
    rejects_a_relaxed_done: Mutant::PublishRelaxed(LineReuse) => [Race];
    rejects_a_relaxed_look_at_done: Mutant::ObserveRelaxed(LineReuse) => [Race];
    rejects_reuse_without_wait: Mutant::SkipWait(LineReuse) => [Race, WrongValue, Deadlock];
}

/// Two ranks: exchange, broadcast, reduce, exchange, through one slot. What rooted calls leave behind is waited for by the
/// exchange, and the other way round.
fn two_ranks_mix_calls(mutant: Mutant) {
    run_ranks(&World::of_lines(mutant, 2, 1), |board| {
        let mut ring = Ring::new(RingName::Line, 1, 2);
        let links = Links::flat(board.rank(), 2, 0);
        exchange_words(board, &mut ring);
        release_word(board, RingName::Line, &mut ring, &links, 0);
        gather_words(board, RingName::Line, &mut ring, &links);
        exchange_words(board, &mut ring);
    });
}

model! {
    mixed_calls_of_two, Bound::Preemptions(3), two_ranks_mix_calls;
    rejects_a_relaxed_stamp: Mutant::PublishRelaxed(LinePublish) => [Race];
    rejects_a_relaxed_look_at_a_stamp: Mutant::ObserveRelaxed(LinePublish) => [Race];
    rejects_a_stamp_not_waited_for: Mutant::SkipWait(LinePublish) => [Race, WrongValue];
    rejects_a_relaxed_done: Mutant::PublishRelaxed(LineReuse) => [Race];
    rejects_a_relaxed_look_at_done: Mutant::ObserveRelaxed(LineReuse) => [Race];
    rejects_reuse_without_wait: Mutant::SkipWait(LineReuse) => [Race, WrongValue, Deadlock];
}

/// Three ranks: a broadcast from rank 1, a reduction to rank 2, an exchange, through one slot.
fn three_ranks_mix_calls(mutant: Mutant) {
    run_ranks(&World::of_lines(mutant, 3, 1), |board| {
        let mut ring = Ring::new(RingName::Line, 1, 3);
        release_word(board, RingName::Line, &mut ring, &Links::flat(board.rank(), 3, 1), 1);
        gather_words(board, RingName::Line, &mut ring, &Links::flat(board.rank(), 3, 2));
        exchange_words(board, &mut ring);
    });
}

model! {
    mixed_calls_of_three, Bound::Preemptions(2), three_ranks_mix_calls;
    rejects_a_relaxed_stamp: Mutant::PublishRelaxed(LinePublish) => [Race];
    rejects_a_relaxed_look_at_a_stamp: Mutant::ObserveRelaxed(LinePublish) => [Race];
    rejects_a_stamp_not_waited_for: Mutant::SkipWait(LinePublish) => [Race, WrongValue];
    rejects_a_relaxed_done: Mutant::PublishRelaxed(LineReuse) => [Race];
    rejects_a_relaxed_look_at_done: Mutant::ObserveRelaxed(LineReuse) => [Race];
    rejects_reuse_without_wait: Mutant::SkipWait(LineReuse) => [Race, WrongValue, Deadlock];
}

/// A barrier along a chain of three: a gather step and a release step in the line ring, twice, through two slots. Here the
/// steps prove progress by themselves: who gets the release knows that its contribution was read, so that `done` words are
/// waited for in name only, and weakening L2 does no harm. (Collectives that share the ring do need L2: `mixed_calls_*`.)
fn barriers_along_a_chain(mutant: Mutant) {
    run_ranks(&World::of_lines(mutant, 3, 2), |board| {
        let mut ring = Ring::new(RingName::Line, 2, 3);
        let links = chain(&[0, 1, 2], board.rank());
        for _ in 0..2 {
            gather_words(board, RingName::Line, &mut ring, &links);
            release_word(board, RingName::Line, &mut ring, &links, 0);
        }
    });
}

model! {
    barrier_along_a_chain, Bound::Preemptions(2), barriers_along_a_chain;
    rejects_a_relaxed_stamp: Mutant::PublishRelaxed(LinePublish) => [Race];
    rejects_a_relaxed_look_at_a_stamp: Mutant::ObserveRelaxed(LinePublish) => [Race];
    rejects_a_stamp_not_waited_for: Mutant::SkipWait(LinePublish) => [Race, WrongValue];
}

/// The same memory as two slots of a unit, then as one slot of two units, then as two again: the writer waits for the
/// readers of all old slots, not only of the one that has the new slot's number.
fn a_ring_is_cut_anew(mutant: Mutant) {
    let world = World::new(mutant, 2, Shape::default(), Shape { slots: 2, units: 2 }, Shape::default());
    run_ranks(&world, |board| {
        let mut ring = Ring::new(RingName::Up, 2, 2);
        for (slots, cut, pieces) in [(2, 1, 2), (1, 2, 1), (2, 1, 1)] {
            if board.mutant() == Mutant::ReshapesAtOnce {
                let clock = ring.next_position() - 1;
                ring = Ring::new(RingName::Up, slots, 2);
                ring.take(clock);
            } else {
                ring.reshape(board, slots).unwrap();
            }
            for _ in 0..pieces {
                one_way(board, &mut ring, cut);
            }
        }
    });
}

/// Rank 1 sends a slot to rank 0.
fn one_way(board: &ModelBoard, ring: &mut Ring, cut: usize) {
    let position = ring.take(1);
    let word = model::world::word_of(1, position);
    if board.rank() == 1 {
        let slot = ring.claim(board, position).unwrap();
        board.fill_cut(RingName::Up, slot, cut, word);
        ring.publish(board, position, model::calls::TAG, Readers::One(0));
    } else {
        let slot = ring.expect(board, 1, position, model::calls::TAG).unwrap();
        model::world::expect_value(board.read_cut(RingName::Up, 1, slot, cut), word);
    }
    ring.finish(board, position);
}

model! {
    ring_cut_anew, Bound::Preemptions(3), a_ring_is_cut_anew;
    rejects_a_relaxed_stamp: Mutant::PublishRelaxed(UpPublish) => [Race];
    rejects_a_relaxed_look_at_a_stamp: Mutant::ObserveRelaxed(UpPublish) => [Race];
    rejects_a_relaxed_done: Mutant::PublishRelaxed(UpReuse) => [Race];
    rejects_a_relaxed_look_at_done: Mutant::ObserveRelaxed(UpReuse) => [Race];
    rejects_a_cut_without_wait: Mutant::ReshapesAtOnce => [Race, WrongValue, Deadlock];
}
