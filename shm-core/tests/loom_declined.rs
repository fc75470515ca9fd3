//! Reductions of two ranks in which a leader goes on without a root that it does not find, and leaves the fold to it:
//! edges U1, U2, D1 and D2.

mod model;

use model::check::model;
use model::loans::{Lends, NOTHING};
use model::{Bound, Mutant, Rank, World};
use shm_core::protocol::RingName::{Down, Up};
use shm_core::protocol::shares::{LEAST_DOWN_SLOTS, up_slots_to_give_back};

/// Two ranks, of which that leads which is not the root, four calls of one round: it folds what it finds of the root,
/// and goes on without the rest, which the root folds.
fn calls_to_a_root(mutant: Mutant, down: usize) {
    World::new(mutant, 2).up(up_slots_to_give_back(1)).down(down).run(|rank| {
        for _ in 0..4 {
            rank.reduce_shares_may_decline(&[1], 1, 0);
        }
    });
}

/// With two slots to say so: what was said there the root has read, and so the cells before that.
fn calls_through_few_slots(mutant: Mutant) {
    calls_to_a_root(mutant, LEAST_DOWN_SLOTS);
}

model! {
    declined, Bound::Preemptions(2), calls_through_few_slots, [D1, D2];
    rejects_a_contribution_published_relaxed: Mutant::PublishRelaxed(model::U1) => [Race];
    rejects_a_contribution_found_relaxed: Mutant::ObserveRelaxed(model::U1) => [Race];
    rejects_up_done_left_out: Mutant::DoneMissing(Up) => [Deadlock];
    rejects_down_done_left_out: Mutant::DoneMissing(Down) => [Deadlock];
}

/// With one for each call: the fourth comes to the cells of the first.
fn calls_through_few_cells(mutant: Mutant) {
    calls_to_a_root(mutant, 4);
}

model! {
    declined_through_few_cells, Bound::Preemptions(2), calls_through_few_cells, [U2, D1];
    rejects_done_before_the_fold: Mutant::DoneTooEarly(Up) => [Race, WrongValue];
}

/// Both lead: the root folds its own share besides.
fn both_lead_to_a_root(mutant: Mutant) {
    World::new(mutant, 2).up(up_slots_to_give_back(2)).down(LEAST_DOWN_SLOTS).run(|rank| {
        rank.reduce_shares_may_decline(&[0, 1], 2, 0);
    });
}

model! {
    declined_where_both_lead, Bound::Preemptions(2), both_lead_to_a_root, [U1, D1];
}

/// The one leader in several rounds: in turns, and in phases; then a call to all.
fn rounds_to_a_root(mutant: Mutant, down: usize) {
    World::new(mutant, 2).up(up_slots_to_give_back(1)).down(down).run(|rank| {
        rank.reduce_shares_may_decline(&[1], 3, 0);
        rank.allreduce_shares(&[1], 1);
    });
}

fn rounds_in_turns(mutant: Mutant) {
    rounds_to_a_root(mutant, LEAST_DOWN_SLOTS);
}

fn rounds_in_phases(mutant: Mutant) {
    rounds_to_a_root(mutant, 3);
}

model! {
    declined_in_turns, Bound::Preemptions(2), rounds_in_turns, [U1, D1];
}

model! {
    declined_in_phases, Bound::Preemptions(2), rounds_in_phases, [U1, D1];
}

/// Two rounds to rank 1, both lead; the root changes, and words go through the same slots.
fn roots_change(mutant: Mutant) {
    World::new(mutant, 2).up(up_slots_to_give_back(2)).down(LEAST_DOWN_SLOTS).run(|rank| {
        rank.reduce_shares_may_decline(&[0, 1], 2, 1);
        rank.collect(Up, 0);
        rank.reduce_shares_may_decline(&[0, 1], 2, 0);
    });
}

model! {
    declined_by_either, Bound::Preemptions(1), roots_change, [U1, D1];
}

/// Both lead, four calls of one round: the fourth comes to the cells of the first, which the root has read when it has
/// taken, and not when it has folded its own share.
fn both_lead_again_and_again(mutant: Mutant) {
    World::new(mutant, 2).up(up_slots_to_give_back(2)).down(4).run(|rank| {
        for _ in 0..4 {
            rank.reduce_shares_may_decline(&[0, 1], 1, 0);
        }
    });
}

model! {
    declined_again_and_again, Bound::Preemptions(1), both_lead_again_and_again, [U2, D1];
    rejects_done_before_the_fold: Mutant::DoneTooEarly(Up) => [Race, WrongValue];
}

/// Between two exchanges through slot 1 a slice there may be declined: the second one must not cross.
fn exchanges_around(mutant: Mutant) {
    World::new(mutant, 2).up(up_slots_to_give_back(1)).down(LEAST_DOWN_SLOTS).run(|rank| {
        assert_eq!(rank.exchange_crossing(1, 3), 0);
        rank.reduce_shares_may_decline(&[1], 1, 0);
        rank.collect(Up, 0);
        rank.collect(Up, 1);
        assert_eq!(rank.exchange_crossing(1, 3), 0);
    });
}

model! {
    declined_between_exchanges, Bound::Preemptions(1), exchanges_around, [U1, D1];
}

/// The slots are cut anew behind a call of which the root may not have read rank 1's part; words to the root go through
/// the new ones.
fn cut_behind(mutant: Mutant) {
    World::new(mutant, 2).up(4).down(LEAST_DOWN_SLOTS).run(|rank| {
        rank.reduce_shares_may_decline(&[1], 1, 0);
        rank.cut(Up, 3);
        rank.reduce_shares_may_decline(&[1], 1, 0);
        rank.collect(Up, 0);
        rank.collect(Up, 0);
    });
}

model! {
    declined_before_a_cut, Bound::Preemptions(2), cut_behind, [U1, U2, D1];
    rejects_a_cut_without_waiting: Mutant::ReshapesAtOnce => [Race, WrongValue];
}

/// A world with so many leaders, whose calls have two rounds at most.
fn lending_world(mutant: Mutant, leaders: usize) -> World {
    World::new(mutant, 2).up(up_slots_to_give_back(leaders)).down(LEAST_DOWN_SLOTS).buffers(2 * leaders)
}

/// Calls of two rounds and of one to rank 0.
fn two_calls(rank: &mut Rank, leaders: &[usize], lends: Lends) {
    for rounds in [2, 1] {
        rank.lend_shares_may_decline(leaders, rounds, 0, lends);
    }
}

/// The root lends what it gives: the leader reads it there, or has gone on and never does.
fn a_root_that_lends(mutant: Mutant) {
    lending_world(mutant, 1).run(|rank| two_calls(rank, &[1], Lends { send: &[0], ..NOTHING }));
}

model! {
    declined_to_a_lender, Bound::Preemptions(2), a_root_that_lends, [D1, D2];
    rejects_a_contribution_published_relaxed: Mutant::PublishRelaxed(model::U1) => [Race];
    rejects_a_contribution_found_relaxed: Mutant::ObserveRelaxed(model::U1) => [Race];
}

/// The root says where it wants the result: the leader stores it there, or leaves it to the root.
fn a_root_that_wants(mutant: Mutant) {
    lending_world(mutant, 1).run(|rank| two_calls(rank, &[1], Lends { receive: &[0], ..NOTHING }));
}

model! {
    declined_to_who_is_served, Bound::Preemptions(2), a_root_that_wants, [D1];
    rejects_a_contribution_published_relaxed: Mutant::PublishRelaxed(model::U1) => [Race];
    rejects_a_contribution_found_relaxed: Mutant::ObserveRelaxed(model::U1) => [Race];
}

/// Both lead, and the root lends and is served.
fn a_leading_root_that_lends(mutant: Mutant) {
    lending_world(mutant, 2).run(|rank| two_calls(rank, &[0, 1], Lends { send: &[0], receive: &[0], ..NOTHING }));
}

model! {
    declined_to_a_leading_lender, Bound::Preemptions(1), a_leading_root_that_lends, [U1, D1];
}

/// Both lead, the root is served, and the other one lends: it declines nothing, and says at last that all is there.
fn a_leader_that_lends(mutant: Mutant) {
    lending_world(mutant, 2).run(|rank| two_calls(rank, &[0, 1], Lends { send: &[1], receive: &[0], ..NOTHING }));
}

model! {
    not_declined_by_a_lender, Bound::Preemptions(2), a_leader_that_lends, [U1, U2, D1];
}

/// It alone leads: the root, which cannot know that it declines nothing, hears of each round.
fn the_leader_lends(mutant: Mutant) {
    lending_world(mutant, 1).run(|rank| two_calls(rank, &[1], Lends { send: &[1], receive: &[0], ..NOTHING }));
}

model! {
    not_declined_by_the_leader, Bound::Preemptions(2), the_leader_lends, [U1, D1];
}
