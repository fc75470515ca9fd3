//! What a root opens for what it gathers: senders put their parts there, or decline, and send them. Edges U1 and U2.

mod model;

use model::check::model;
use model::deliveries::Parts::{From, To};
use model::{Bound, Mutant, World};
use shm_core::protocol::RingName::Up;

/// Two ranks, one slot, twice: all is put where it belongs, and the root writes there behind each call.
fn one_puts(mutant: Mutant) {
    World::new(mutant, 2).up(1).buffers(2).run(|rank| {
        rank.open(0, 1, true, &[], &[]);
        rank.open(0, 1, true, &[], &[]);
    });
}

model! {
    put, Bound::Preemptions(3), one_puts, [U1];
}

/// The same of two slices, in two slots, but that nothing is reached: the sender finds that, and fills cells; those of
/// a delivery follow.
fn one_declines(mutant: Mutant) {
    World::new(mutant, 2).up(2).buffers(4).run(|rank| {
        rank.open(0, 2, true, &[1], &[]);
        rank.deliver(Up, To(0), 1);
        rank.open(0, 1, true, &[1], &[]);
    });
}

model! {
    declined, Bound::Preemptions(3), one_declines, [U1, U2];
    rejects_done_before_the_copy: Mutant::DoneTooEarly(Up) => [Race, WrongValue, Deadlock];
    rejects_done_left_out: Mutant::DoneMissing(Up) => [Deadlock];
}

/// Two ranks, one slot, in which openings, loans and slices take turns; the root changes, and opens or does not.
fn one_slot_for_all(mutant: Mutant) {
    World::new(mutant, 2).up(1).buffers(4).run(|rank| {
        rank.open(0, 2, true, &[1], &[]);
        rank.open(1, 1, false, &[], &[0]);
        rank.open(0, 1, true, &[], &[1]);
        rank.deliver(Up, From(0), 1);
    });
}

model! {
    openings_through_one_slot, Bound::Preemptions(2), one_slot_for_all, [U1, U2];
    rejects_done_before_the_copy: Mutant::DoneTooEarly(Up) => [Race, WrongValue, Deadlock];
    rejects_done_left_out: Mutant::DoneMissing(Up) => [Deadlock];
}

/// Three ranks: one puts, the other declines, and the root of the next call is another one.
fn one_of_two_declines(mutant: Mutant) {
    World::new(mutant, 3).up(2).buffers(6).run(|rank| {
        rank.open(0, 1, true, &[2], &[]);
        rank.open(1, 2, true, &[0], &[]);
    });
}

model! {
    declined_by_one_of_two, Bound::Preemptions(1), one_of_two_declines, [U1, U2];
    rejects_a_forgotten_reader: Mutant::ReaderForgotten(1) => [Race, WrongValue, Deadlock];
    rejects_done_left_out: Mutant::DoneMissing(Up) => [Deadlock];
}

/// Three ranks: one lends where the root opens nothing, the other's slices follow, and the next call's come to the same
/// slots.
fn nothing_is_opened(mutant: Mutant) {
    World::new(mutant, 3).up(2).buffers(6).run(|rank| {
        rank.open(0, 1, false, &[], &[1]);
        rank.open(2, 1, true, &[0, 1], &[]);
        rank.deliver(Up, To(0), 1);
    });
}

model! {
    nothing_opened, Bound::Preemptions(1), nothing_is_opened, [U1, U2];
    rejects_a_forgotten_reader: Mutant::ReaderForgotten(0) => [Race, WrongValue, Deadlock];
}

/// Three ranks: what the root knows once all have put their parts, and that it knows no more. It hands out in the next
/// call what it did not open in this one.
fn all_put_proves(mutant: Mutant) {
    World::new(mutant, 3).up(1).buffers(3).run(|rank| {
        rank.open(0, 1, true, &[], &[]);
        if rank.board.mutant() == Mutant::ProvesTooMuch {
            let proven = rank.up.next_position();
            rank.up.prove(proven);
        }
        rank.deliver(Up, From(0), 1);
        rank.deliver(Up, From(0), 1);
    });
}

model! {
    openings_prove_no_more, Bound::Preemptions(1), all_put_proves, [U1, U2];
    rejects_a_proof_of_the_next_call: Mutant::ProvesTooMuch => [Race, WrongValue, Deadlock];
}
