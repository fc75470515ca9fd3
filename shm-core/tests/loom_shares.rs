//! A share's slice readiness: edges U1, U2, D1 and D2 between contributors and leaders, without a barrier anywhere.

mod model;

use model::check::model;
use model::{Bound, Mutant, World};
use shm_core::protocol::RingName::{Down, Up};
use shm_core::protocol::shares::{LEAST_DOWN_SLOTS, least_up_slots, up_slots_to_give_back};

/// A world with the least number of cells for so many leaders.
fn world(mutant: Mutant, size: usize, leaders: usize) -> World {
    World::new(mutant, size).up(least_up_slots(leaders)).down(LEAST_DOWN_SLOTS)
}

/// Two ranks, both leaders, three rounds through the least number of cells: an allreduce.
fn two_leaders_of_two(mutant: Mutant) {
    world(mutant, 2, 2).run(|rank| {
        rank.allreduce_shares(&[0, 1], 3);
    });
}

model! {
    two_leaders, Bound::Preemptions(3), two_leaders_of_two, [U1, U2, D1, D2];
    rejects_done_before_the_fold: Mutant::DoneTooEarly(Up) => [Race, WrongValue, Deadlock];
    rejects_done_before_the_copy: Mutant::DoneTooEarly(Down) => [Race, WrongValue, Deadlock];
    rejects_up_done_left_out: Mutant::DoneMissing(Up) => [Deadlock];
    rejects_down_done_left_out: Mutant::DoneMissing(Down) => [Deadlock];
}

/// Two ranks, one leader, to a root that is not the leader, three rounds; then an allreduce of one round.
fn one_leader_and_another_root(mutant: Mutant) {
    world(mutant, 2, 1).run(|rank| {
        rank.reduce_shares(&[0], 3, 1);
        rank.allreduce_shares(&[0], 1);
    });
}

model! {
    one_leader, Bound::Preemptions(3), one_leader_and_another_root, [U1, U2, D1, D2];
}

/// Three ranks, of which the first and the last lead, one round of an allreduce, then one to rank 1, which leads
/// nothing.
fn two_leaders_of_three(mutant: Mutant) {
    world(mutant, 3, 2).run(|rank| {
        rank.allreduce_shares(&[0, 2], 1);
        rank.reduce_shares(&[0, 2], 1, 1);
    });
}

model! {
    two_leaders_and_a_follower, Bound::Preemptions(2), two_leaders_of_three, [U1, D1];
}

/// Two ranks, of which one leads: what it folds comes back in the other's cell. Four rounds to that other, through
/// slots for three.
///
/// U2 is proven by D1: who has taken what came back knows that it was folded, and looks at no word for it.
fn one_leader_gives_back(mutant: Mutant) {
    World::new(mutant, 2).up(up_slots_to_give_back(1)).down(LEAST_DOWN_SLOTS).run(|rank| {
        rank.reduce_shares(&[0], 4, 1);
    });
}

model! {
    given_back_by_one, Bound::Preemptions(2), one_leader_gives_back, [U1, D1, D2];
    rejects_down_done_left_out: Mutant::DoneMissing(Down) => [Deadlock];
}

/// Two ranks, both lead, and each gets back what the other folds: three rounds.
fn two_leaders_give_back(mutant: Mutant) {
    World::new(mutant, 2).up(up_slots_to_give_back(2)).down(LEAST_DOWN_SLOTS).run(|rank| {
        rank.allreduce_shares(&[0, 1], 3);
    });
}

model! {
    given_back_by_two, Bound::Preemptions(2), two_leaders_give_back, [U1, D1, D2];
}

/// The same with a down cell for each round: either rank contributes to all rounds before it folds any, and folds all
/// before it takes any.
fn two_leaders_in_phases(mutant: Mutant) {
    World::new(mutant, 2).up(up_slots_to_give_back(2)).down(3).run(|rank| {
        rank.allreduce_shares(&[0, 1], 3);
    });
}

model! {
    given_back_in_phases, Bound::Preemptions(1), two_leaders_in_phases, [U1, D1];
}

/// So with one leader, to the other rank, and to all: both calls come to the same slots.
fn one_leader_in_phases(mutant: Mutant) {
    World::new(mutant, 2).up(up_slots_to_give_back(1)).down(3).run(|rank| {
        rank.reduce_shares(&[0], 3, 1);
        rank.allreduce_shares(&[0], 3);
    });
}

model! {
    given_back_in_phases_by_one, Bound::Preemptions(1), one_leader_in_phases, [U1, D1];
}

/// With an up cell too few for that: in turns again.
fn one_leader_in_turns(mutant: Mutant) {
    World::new(mutant, 2).up(up_slots_to_give_back(1)).down(4).run(|rank| {
        rank.allreduce_shares(&[0], 4);
    });
}

model! {
    given_back_in_turns, Bound::Preemptions(2), one_leader_in_turns, [U1, D1];
}

/// Two ranks, both lead, three calls of one round through two down cells and so many up cells: D2 is proven by U1,
/// since who contributes has taken the results of all calls before, and U2 by D1.
fn three_calls(mutant: Mutant, up: usize) {
    World::new(mutant, 2).up(up).down(LEAST_DOWN_SLOTS).run(|rank| {
        for _ in 0..3 {
            rank.allreduce_shares(&[0, 1], 1);
        }
    });
}

/// With one up cell too few for results to come back there.
fn two_leaders_again_and_again(mutant: Mutant) {
    three_calls(mutant, up_slots_to_give_back(2) - 1);
}

model! {
    calls_of_one_round, Bound::Preemptions(2), two_leaders_again_and_again, [U1, D1];
}

/// With as many as that takes: each call takes a turn of the up ring, so that all come to the same cells.
fn turns_of_one_round(mutant: Mutant) {
    three_calls(mutant, up_slots_to_give_back(2));
}

model! {
    given_back_in_one_round, Bound::Preemptions(2), turns_of_one_round, [U1, D1];
}

/// A turn of words to either root between two such calls: all three go through the same slots.
fn turns_around_words(mutant: Mutant) {
    World::new(mutant, 2).up(up_slots_to_give_back(2)).down(LEAST_DOWN_SLOTS).run(|rank| {
        rank.allreduce_shares(&[0, 1], 1);
        for word in 0..rank.up.slots() {
            rank.collect(Up, word % 2);
        }
        rank.allreduce_shares(&[0, 1], 1);
    });
}

model! {
    given_back_around_words, Bound::Preemptions(1), turns_around_words, [U1, D1];
}

/// Results of two such calls, and between and behind them words of rank 0 through the same two down slots: it must not
/// tell one where rank 1 has not seen that its result came back.
fn turns_and_words(mutant: Mutant) {
    World::new(mutant, 2).up(up_slots_to_give_back(2)).down(LEAST_DOWN_SLOTS).run(|rank| {
        for _ in 0..2 {
            rank.allreduce_shares(&[0, 1], 1);
            if rank.board.mutant() == Mutant::ProvesTooMuch {
                rank.down.prove(rank.down.next_position() - 1);
            }
            rank.hand_out(Down, 0);
            rank.hand_out(Down, 0);
        }
    });
}

model! {
    given_back_among_words, Bound::Preemptions(2), turns_and_words, [U1, D1, D2];
    rejects_a_proof_of_the_call_itself: Mutant::ProvesTooMuch => [Race, WrongValue, Deadlock];
}

/// The same slots before, between and after: a reduction through cells, and exchanges whose cells change hands.
fn cells_of_all_kinds(mutant: Mutant) {
    World::new(mutant, 2).up(3).down(LEAST_DOWN_SLOTS).run(|rank| {
        rank.collect(Up, 1);
        rank.allreduce_shares(&[0], 1);
        rank.exchange_crossing(1, 3);
        rank.exchange_crossing(1, 3);
        rank.allreduce_shares(&[0], 1);
        rank.collect(Up, 0);
    });
}

model! {
    given_back_among_others, Bound::Preemptions(1), cells_of_all_kinds, [U1, D1];
}

/// Two ranks, three slots: between two exchanges through slot 1 a result comes back there, which rank 1 may be late to
/// take: rank 0, which has nothing to wait for but what was exchanged, must not fill rank 1's cell.
fn a_result_between_exchanges(mutant: Mutant) {
    World::new(mutant, 2).up(up_slots_to_give_back(1)).down(LEAST_DOWN_SLOTS).run(|rank| {
        assert_eq!(rank.exchange_crossing(1, 3), 0);
        rank.reduce_shares(&[0], 1, 1);
        rank.collect(Up, 1);
        rank.collect(Up, 1);
        assert_eq!(rank.exchange_crossing(1, 3), 0);
    });
}

model! {
    given_back_between_exchanges, Bound::Preemptions(1), a_result_between_exchanges, [U1, D1];
}
