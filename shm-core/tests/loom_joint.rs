//! Two ranks of which one lends all it gives: both do the work. What each stores where the other one looks, or lends,
//! is ordered by U1 and D1 on the way there, and by U2 and D2 on the way back. Each rank writes its buffers anew right
//! before and right after each call.

mod model;

use model::check::model;
use model::joint::Answer::{Cell, Declined, Wanted};
use model::joint::Joint;
use model::{Bound, Mutant, World};
use shm_core::protocol::RingName::{Down, Up};

/// Two ranks with a slot for each position of a call of two slices in the giver's ring, one in the other, and buffers
/// of two units.
fn world(mutant: Mutant, up: usize, down: usize) -> World {
    World::new(mutant, 2).up(up).down(down).buffers(2)
}

/// A broadcast of two slices from rank 0, twice: each rank copies one.
fn both_copy(mutant: Mutant) {
    world(mutant, 1, 2).run(|rank| {
        for _ in 0..2 {
            rank.joint(Joint { giver: 0, ring: Down, slices: 2, lends: true, answers: Wanted });
        }
    });
}

model! {
    broadcast, Bound::Preemptions(3), both_copy, [U1, U2, D1, D2];
    rejects_done_before_the_giver_has_stored: Mutant::DoneTooEarly(Up) => [Race, WrongValue];
    rejects_a_half_that_both_do: Mutant::ClaimedTwice => [Race, WrongValue];
    rejects_a_half_that_nobody_does: Mutant::ClaimedByNobody => [Race, WrongValue];
    rejects_done_left_out_up: Mutant::DoneMissing(Up) => [Deadlock];
    rejects_done_left_out_down: Mutant::DoneMissing(Down) => [Deadlock];
}

/// A reduction of two slices to rank 1, then to rank 0: each rank folds one.
fn both_fold(mutant: Mutant) {
    world(mutant, 2, 1).run(|rank| {
        rank.joint(Joint { giver: 0, ring: Up, slices: 2, lends: true, answers: Wanted });
        rank.joint(Joint { giver: 1, ring: Up, slices: 2, lends: true, answers: Wanted });
    });
}

model! {
    reduction, Bound::Preemptions(3), both_fold, [U1, U2, D1, D2];
    rejects_a_half_that_both_do: Mutant::ClaimedTwice => [Race, WrongValue];
    rejects_done_before_the_giver_has_stored: Mutant::DoneTooEarly(Down) => [Race, WrongValue];
}

/// A taker that cannot be reached does all of it; then the giver lends nothing; then both reach, by slots that were
/// used otherwise.
fn some_reach(mutant: Mutant) {
    world(mutant, 1, 2).run(|rank| {
        let call = Joint { giver: 0, ring: Down, slices: 2, lends: true, answers: Cell };
        rank.joint(call);
        rank.joint(Joint { lends: false, ..call });
        rank.joint(Joint { answers: Wanted, ..call });
    });
}

model! {
    some, Bound::Preemptions(2), some_reach, [U1, U2, D1, D2];
}

/// A taker declines what is lent; then the giver lends nothing; then both reach, and the taker declines again.
fn one_declines(mutant: Mutant) {
    world(mutant, 1, 2).run(|rank| {
        let call = Joint { giver: 0, ring: Down, slices: 2, lends: true, answers: Declined };
        rank.joint(call);
        rank.joint(Joint { lends: false, ..call });
        rank.joint(Joint { answers: Wanted, ..call });
        rank.joint(call);
    });
}

model! {
    declined, Bound::Preemptions(2), one_declines, [U1, U2, D1, D2];
    rejects_done_left_out_where_it_is_declined: Mutant::DoneMissing(Down) => [Deadlock];
    rejects_done_of_the_answer_left_out: Mutant::DoneMissing(Up) => [Deadlock];
}

/// Broadcasts of one slice, of which some are lent and the taker finds out: their slots, and the answers', serve
/// either.
fn some_of_one(mutant: Mutant) {
    world(mutant, 1, 1).run(|rank| {
        for lends in [true, false, true] {
            rank.one(Joint { giver: 0, ring: Down, slices: 1, lends, answers: Wanted });
        }
    });
}

model! {
    one_slice, Bound::Preemptions(2), some_of_one, [U1, U2, D1, D2];
    rejects_done_left_out: Mutant::DoneMissing(Down) => [Deadlock];
    rejects_done_of_the_answer_left_out: Mutant::DoneMissing(Up) => [Deadlock];
    rejects_done_before_the_giver_has_stored: Mutant::DoneTooEarly(Up) => [Race, WrongValue];
}

/// The same of reductions, one by the other's root.
fn some_of_one_fold(mutant: Mutant) {
    world(mutant, 1, 1).run(|rank| {
        for (giver, lends) in [(0, true), (0, false), (1, true)] {
            rank.one(Joint { giver, ring: Up, slices: 1, lends, answers: Wanted });
        }
    });
}

model! {
    one_slice_folded, Bound::Preemptions(2), some_of_one_fold, [U1, U2, D1, D2];
    rejects_done_before_the_giver_has_stored: Mutant::DoneTooEarly(Down) => [Race, WrongValue];
}

/// A reduction and a broadcast, which use the same slots the other way round.
fn one_after_the_other(mutant: Mutant) {
    world(mutant, 2, 2).run(|rank| {
        rank.joint(Joint { giver: 1, ring: Up, slices: 2, lends: true, answers: Wanted });
        rank.joint(Joint { giver: 0, ring: Down, slices: 2, lends: true, answers: Wanted });
    });
}

model! {
    both_ways, Bound::Preemptions(2), one_after_the_other, [U1, U2, D1, D2];
}

/// A broadcast and a reduction of a slice that the taker does alone, twice.
fn the_taker_works_alone(mutant: Mutant) {
    world(mutant, 1, 1).run(|rank| {
        for ring in [Down, Up, Down, Up] {
            rank.joint(Joint { giver: 0, ring, slices: 1, lends: true, answers: Cell });
        }
    });
}

model! {
    alone, Bound::Preemptions(1), the_taker_works_alone, [U1, U2, D1, D2];
    rejects_done_before_the_taker_has_copied: Mutant::DoneTooEarly(Down) => [Race, WrongValue];
    rejects_done_before_the_taker_has_folded: Mutant::DoneTooEarly(Up) => [Race, WrongValue];
}
