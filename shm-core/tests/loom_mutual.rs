//! What all offer to all: each takes its parts where they lie, or finds that it cannot, and gets slices of all. Edges
//! U1 and U2.

mod model;

use model::check::model;
use model::deliveries::Parts::{All, From};
use model::{Bound, Mutant, World};
use shm_core::protocol::RingName::Up;

/// Two ranks, two slots, twice: all is taken where it lies, and each writes there behind each call.
fn both_take(mutant: Mutant) {
    World::new(mutant, 2).up(2).buffers(1).run(|rank| {
        rank.offer_all(1, &[0, 1], &[], &[]);
        rank.offer_all(1, &[0, 1], &[], &[]);
    });
}

model! {
    taken, Bound::Preemptions(3), both_take, [U1, U2];
    rejects_done_before_the_copy: Mutant::DoneTooEarly(Up) => [Race, WrongValue, Deadlock];
    rejects_done_left_out: Mutant::DoneMissing(Up) => [Deadlock];
}

/// One of two does not reach the other, and gets slices, two in two slots; then all for all.
fn one_declines(mutant: Mutant) {
    World::new(mutant, 2).up(2).buffers(2).run(|rank| {
        rank.offer_all(2, &[0, 1], &[1], &[]);
        rank.deliver(Up, All, 1);
    });
}

model! {
    declined, Bound::Preemptions(2), one_declines, [U1, U2];
    rejects_done_before_the_copy: Mutant::DoneTooEarly(Up) => [Race, WrongValue, Deadlock];
    rejects_done_left_out: Mutant::DoneMissing(Up) => [Deadlock];
}

/// One of two offers nothing: the other one takes nothing, and both get slices where they want them.
fn one_offers_nothing(mutant: Mutant) {
    World::new(mutant, 2).up(2).buffers(2).run(|rank| {
        rank.offer_all(2, &[0], &[], &[1]);
        rank.deliver(Up, From(0), 1);
    });
}

model! {
    offered_by_one, Bound::Preemptions(2), one_offers_nothing, [U1, U2];
    rejects_done_left_out: Mutant::DoneMissing(Up) => [Deadlock];
}

/// Three ranks, of whom one declines.
fn one_of_three_declines(mutant: Mutant) {
    World::new(mutant, 3).up(2).buffers(1).run(|rank| {
        rank.offer_all(1, &[0, 1, 2], &[2], &[]);
    });
}

model! {
    declined_by_one_of_three, Bound::Preemptions(1), one_of_three_declines, [U1];
    rejects_done_before_the_copy: Mutant::DoneTooEarly(Up) => [Race, WrongValue, Deadlock];
    rejects_another_reader_as_proof: Mutant::OthersProgress { of: 2, shown: 1 } => [Race, WrongValue, Deadlock];
    rejects_a_forgotten_reader: Mutant::ReaderForgotten(1) => [Race, WrongValue, Deadlock];
    rejects_done_left_out: Mutant::DoneMissing(Up) => [Deadlock];
}
