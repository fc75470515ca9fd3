//! What a root offers where it lies: readers take it there, or decline, and get it through cells. Edges U1 and U2.

mod model;

use model::check::model;
use model::deliveries::Parts::{From, To};
use model::{Bound, Mutant, World};
use shm_core::protocol::RingName::Up;

/// Two ranks, two slices, two slots, twice: all is taken where it lies, and the root writes there behind each call.
fn one_takes(mutant: Mutant) {
    World::new(mutant, 2).up(2).buffers(2).run(|rank| {
        rank.offer(0, 2, true, &[], &[]);
        rank.offer(0, 2, true, &[], &[]);
    });
}

model! {
    taken, Bound::Preemptions(3), one_takes, [U1, U2];
    rejects_done_before_the_copy: Mutant::DoneTooEarly(Up) => [Race, WrongValue, Deadlock];
    rejects_done_left_out: Mutant::DoneMissing(Up) => [Deadlock];
}

/// The same, but that nothing is reached: the root finds that, and fills cells; those of a delivery follow.
fn one_declines(mutant: Mutant) {
    World::new(mutant, 2).up(2).buffers(2).run(|rank| {
        rank.offer(0, 2, true, &[1], &[]);
        rank.offer(0, 2, true, &[1], &[]);
        rank.deliver(Up, From(0), 1);
    });
}

model! {
    declined, Bound::Preemptions(3), one_declines, [U1, U2];
    rejects_done_before_the_copy: Mutant::DoneTooEarly(Up) => [Race, WrongValue, Deadlock];
    rejects_done_left_out: Mutant::DoneMissing(Up) => [Deadlock];
}

/// Two ranks, one slot, in which offers and slices take turns; the root changes, and offers or does not.
fn one_slot_for_all(mutant: Mutant) {
    World::new(mutant, 2).up(1).buffers(2).run(|rank| {
        rank.offer(0, 2, true, &[1], &[]);
        rank.offer(1, 1, false, &[], &[]);
        rank.offer(0, 1, true, &[], &[]);
        rank.deliver(Up, To(0), 1);
    });
}

model! {
    offers_through_one_slot, Bound::Preemptions(2), one_slot_for_all, [U1, U2];
    rejects_done_left_out: Mutant::DoneMissing(Up) => [Deadlock];
}

/// Three ranks, two slices, two slots: one takes, the other declines, or wants the first slice alone.
fn one_of_two_declines(mutant: Mutant) {
    World::new(mutant, 3).up(2).buffers(2).run(|rank| {
        rank.offer(0, 2, true, &[2], &[]);
        rank.offer(1, 2, true, &[0], &[0]);
    });
}

model! {
    declined_by_one_of_two, Bound::Preemptions(1), one_of_two_declines, [U1, U2];
    rejects_a_forgotten_reader: Mutant::ReaderForgotten(2) => [Race, WrongValue, Deadlock];
    rejects_another_reader_as_proof: Mutant::OthersProgress { of: 2, shown: 1 } => [Race, WrongValue, Deadlock];
    rejects_done_left_out: Mutant::DoneMissing(Up) => [Deadlock];
}

/// Three ranks: nothing is offered, and the next call's slices come to the same slots.
fn nothing_is_offered(mutant: Mutant) {
    World::new(mutant, 3).up(2).buffers(2).run(|rank| {
        rank.offer(0, 1, false, &[], &[]);
        rank.offer(2, 1, true, &[0, 1], &[]);
        rank.deliver(Up, From(0), 1);
    });
}

model! {
    nothing_offered, Bound::Preemptions(1), nothing_is_offered, [U1, U2];
    rejects_a_forgotten_reader: Mutant::ReaderForgotten(1) => [Race, WrongValue, Deadlock];
}
