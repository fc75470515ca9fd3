//! Edges U1 and U2 in relays: a cell that several ranks read and write, one after the other, and the head gives back.

mod model;

use model::Tree::{Chain, Flat, Relay, RelayBelow};
use model::check::model;
use model::loans::{Lends, NOTHING};
use model::{Bound, Mutant, World};
use shm_core::protocol::RingName::Up;

/// Rank 2 fills its only cell three times, rank 1 adds to it, rank 0 takes out what is there.
fn a_cell_is_handed_on(mutant: Mutant) {
    World::new(mutant, 3).up(1).down(1).buffers(3).run(|rank| {
        rank.lend_gather(Relay(&[0, 1, 2]), 3, &[]);
    });
}

model! {
    handed_on, Bound::Preemptions(3), a_cell_is_handed_on, [U1, U2];
    rejects_the_head_forgotten: Mutant::ReaderForgotten(0) => [Race, WrongValue, Deadlock];
    rejects_progress_of_who_hands_it_on: Mutant::OthersProgress { of: 0, shown: 1 } => [Race, WrongValue, Deadlock];
    rejects_done_before_it_is_taken_out: Mutant::DoneTooEarly(Up) => [Race, WrongValue, Deadlock];
    rejects_done_left_out: Mutant::DoneMissing(Up) => [Deadlock];
}

/// The same through two cells, and then the other way round: who filled cells takes out of another's what is there.
fn cells_are_handed_on_both_ways(mutant: Mutant) {
    World::new(mutant, 3).up(2).down(1).buffers(2).run(|rank| {
        rank.lend_gather(Relay(&[0, 1, 2]), 2, &[]);
        rank.lend_gather(Relay(&[2, 1, 0]), 2, &[]);
    });
}

model! {
    handed_on_both_ways, Bound::Preemptions(2), cells_are_handed_on_both_ways, [U1];
}

/// Trees of all kinds follow one another through one cell: whoever read it in one is asked before it is filled in the
/// next.
fn a_cell_is_handed_on_between_others(mutant: Mutant) {
    World::new(mutant, 3).up(1).down(1).buffers(1).run(|rank| {
        rank.lend_gather(Flat(1), 1, &[]);
        rank.lend_gather(Relay(&[0, 1, 2]), 1, &[]);
        rank.lend_gather(Chain(&[0, 1, 2]), 1, &[]);
    });
}

model! {
    handed_on_between_others, Bound::Preemptions(2), a_cell_is_handed_on_between_others, [U1, U2];
    rejects_progress_of_another_trees_parent: Mutant::OthersProgress { of: 0, shown: 1 } => [Race, WrongValue, Deadlock];
}

/// The head puts what it takes out, and what it has itself, in its own cell for the root.
fn a_relay_below_the_root(mutant: Mutant) {
    World::new(mutant, 4).up(1).down(1).buffers(2).run(|rank| {
        rank.lend_gather(RelayBelow(&[0, 1, 2, 3]), 2, &[]);
    });
}

model! {
    relay_below_the_root, Bound::Preemptions(2), a_relay_below_the_root, [U1, U2];
    rejects_the_head_forgotten: Mutant::ReaderForgotten(1) => [Race, WrongValue, Deadlock];
}

/// What is lent at the end is added by the one before, to its own cell; its owner waits until that is taken out.
fn the_last_one_lends(mutant: Mutant) {
    World::new(mutant, 3).up(2).down(1).buffers(2).run(|rank| {
        rank.lend_gather(Relay(&[0, 1, 2]), 2, &[2]);
    });
}

model! {
    lent_at_the_end, Bound::Preemptions(2), the_last_one_lends, [U1];
    rejects_the_wait_left_out: Mutant::SkipWait(model::U2) => [Race, WrongValue];
}

/// What is lent in the middle is added by the head, which finds the cell behind it.
fn the_middle_one_lends(mutant: Mutant) {
    World::new(mutant, 3).up(1).down(1).buffers(2).run(|rank| {
        rank.lend_gather(Relay(&[0, 1, 2]), 2, &[1]);
    });
}

model! {
    lent_in_the_middle, Bound::Preemptions(2), the_middle_one_lends, [U1, U2];
    rejects_done_before_it_is_taken_out: Mutant::DoneTooEarly(Up) => [Race, WrongValue, Deadlock];
}

/// All but the head lend, once what two slices are, and once what one is, behind a relay that lends nothing.
fn all_lend_behind_others(mutant: Mutant) {
    World::new(mutant, 3).up(1).down(1).buffers(2).run(|rank| {
        rank.lend_gather(Relay(&[0, 1, 2]), 1, &[]);
        rank.lend_gather(Relay(&[0, 1, 2]), 2, &[1, 2]);
    });
}

model! {
    all_lend, Bound::Preemptions(2), all_lend_behind_others, [U1, U2];
}

/// An allreduce: up by a cell that is handed on, down a flat tree; and once with what is lent.
fn a_pipeline_hands_on(mutant: Mutant) {
    World::new(mutant, 3).up(1).down(1).buffers(2).run(|rank| {
        rank.lend_pipeline(2, (Relay(&[0, 1, 2]), Flat(0)), NOTHING);
        rank.lend_pipeline(1, (Relay(&[0, 1, 2]), Flat(0)), Lends { send: &[2], ..NOTHING });
    });
}

model! {
    pipeline_that_hands_on, Bound::Preemptions(2), a_pipeline_hands_on, [U1, U2, D1];
    rejects_the_head_forgotten: Mutant::ReaderForgotten(0) => [Race, WrongValue, Deadlock];
}
