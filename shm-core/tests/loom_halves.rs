//! The two halves of an allreduce through shares, alone and among other calls: edges U1 and U2 between contributors and
//! leaders (a reduce-scatter), edges D1 and D2 between leaders and everybody (an allgather).

mod model;

use model::Tree::Chain;
use model::check::model;
use model::{Bound, Mutant, World};
use shm_core::protocol::RingName::{Down, Up};
use shm_core::protocol::shares::{LEAST_DOWN_SLOTS, least_up_slots};

/// Two ranks, both leaders, three rounds through the least number of cells: each keeps its share.
fn two_leaders_keep_their_shares(mutant: Mutant) {
    World::new(mutant, 2).up(least_up_slots(2)).down(LEAST_DOWN_SLOTS).run(|rank| {
        rank.reduce_to_leaders(&[0, 1], 3);
    });
}

model! {
    kept_by_two, Bound::Preemptions(3), two_leaders_keep_their_shares, [U1, U2];
    rejects_done_before_the_fold: Mutant::DoneTooEarly(Up) => [Race, WrongValue, Deadlock];
    rejects_done_left_out: Mutant::DoneMissing(Up) => [Deadlock];
}

/// Two ranks, of which first the second leads, four rounds, then the first, two rounds, through three cells.
fn a_deeper_ring_of_contributions(mutant: Mutant) {
    World::new(mutant, 2).up(3).down(LEAST_DOWN_SLOTS).run(|rank| {
        rank.reduce_to_leaders(&[1], 4);
        rank.reduce_to_leaders(&[0], 2);
    });
}

model! {
    kept_through_a_deeper_ring, Bound::Preemptions(3), a_deeper_ring_of_contributions, [U1, U2];
    rejects_done_before_the_fold: Mutant::DoneTooEarly(Up) => [Race, WrongValue, Deadlock];
}

/// Three ranks contribute to one leader, which is neither the first nor the last of them: four rounds through two
/// cells.
fn one_of_three_keeps_all(mutant: Mutant) {
    World::new(mutant, 3).up(least_up_slots(1)).down(LEAST_DOWN_SLOTS).run(|rank| {
        rank.reduce_to_leaders(&[1], 4);
    });
}

model! {
    kept_by_one_of_three, Bound::Preemptions(2), one_of_three_keeps_all, [U1, U2];
    rejects_done_before_the_fold: Mutant::DoneTooEarly(Up) => [Race, WrongValue, Deadlock];
    rejects_done_left_out: Mutant::DoneMissing(Up) => [Deadlock];
}

/// Three ranks, of which two lead, the last first, two rounds through the least number of cells; then they lead the
/// other's share, one round.
fn two_of_three_keep_their_shares(mutant: Mutant) {
    World::new(mutant, 3).up(least_up_slots(2)).down(LEAST_DOWN_SLOTS).run(|rank| {
        rank.reduce_to_leaders(&[2, 0], 2);
        rank.reduce_to_leaders(&[0, 2], 1);
    });
}

model! {
    kept_by_two_of_three, Bound::Preemptions(2), two_of_three_keep_their_shares, [U1, U2];
    rejects_done_before_the_fold: Mutant::DoneTooEarly(Up) => [Race, WrongValue, Deadlock];
    rejects_progress_of_another_leader: Mutant::OthersProgress { of: 0, shown: 2 } => [Race, WrongValue, Deadlock];
}

/// Two ranks, both leaders, hand their shares to each other: three rounds through one cell.
fn two_leaders_hand_out(mutant: Mutant) {
    World::new(mutant, 2).down(1).run(|rank| {
        rank.gather_from_leaders(&[0, 1], 3);
    });
}

model! {
    handed_by_two, Bound::Preemptions(3), two_leaders_hand_out, [D1, D2];
    rejects_done_before_the_copy: Mutant::DoneTooEarly(Down) => [Race, WrongValue, Deadlock];
    rejects_done_left_out: Mutant::DoneMissing(Down) => [Deadlock];
}

/// Two ranks, of which one leads, four rounds through three cells, and the other, one round.
fn a_deeper_ring_of_results(mutant: Mutant) {
    World::new(mutant, 2).down(3).run(|rank| {
        rank.gather_from_leaders(&[1], 4);
        rank.gather_from_leaders(&[0], 1);
        rank.gather_from_leaders(&[1], 1);
    });
}

model! {
    handed_through_a_deeper_ring, Bound::Preemptions(3), a_deeper_ring_of_results, [D1, D2];
    rejects_done_before_the_copy: Mutant::DoneTooEarly(Down) => [Race, WrongValue, Deadlock];
}

/// Three ranks, of which one leads, three rounds through two cells: it waits for both of the others.
fn one_of_three_hands_out(mutant: Mutant) {
    World::new(mutant, 3).down(2).run(|rank| {
        rank.gather_from_leaders(&[1], 3);
    });
}

model! {
    handed_by_one_of_three, Bound::Preemptions(2), one_of_three_hands_out, [D1, D2];
    rejects_one_reader_for_all: Mutant::ReaderForgotten(2) => [Race, WrongValue, Deadlock];
    rejects_done_before_the_copy: Mutant::DoneTooEarly(Down) => [Race, WrongValue, Deadlock];
}

/// Three ranks, of which two lead, the last first, two rounds through one cell.
fn two_of_three_hand_out(mutant: Mutant) {
    World::new(mutant, 3).down(1).run(|rank| {
        rank.gather_from_leaders(&[2, 0], 2);
    });
}

model! {
    handed_by_two_of_three, Bound::Preemptions(2), two_of_three_hand_out, [D1, D2];
    rejects_a_follower_forgotten: Mutant::ReaderForgotten(1) => [Race, WrongValue, Deadlock];
    rejects_a_leader_forgotten: Mutant::ReaderForgotten(0) => [Race, WrongValue, Deadlock];
    rejects_done_before_the_copy: Mutant::DoneTooEarly(Down) => [Race, WrongValue, Deadlock];
    rejects_done_left_out: Mutant::DoneMissing(Down) => [Deadlock];
}

/// Two ranks, both leaders: the halves in turn, twice, as a hierarchy calls them. Here the calls prove progress by
/// themselves, each half that of the other: weakening U2 and D2 does no harm.
fn halves_one_after_the_other(mutant: Mutant) {
    World::new(mutant, 2).up(least_up_slots(2)).down(LEAST_DOWN_SLOTS).run(|rank| {
        for _ in 0..2 {
            rank.reduce_to_leaders(&[0, 1], 1);
            rank.gather_from_leaders(&[0, 1], 1);
        }
    });
}

model! {
    halves_in_turn, Bound::Preemptions(2), halves_one_after_the_other, [U1, D1];
}

/// Two ranks, one leader, the least number of cells: one half, an allreduce of two rounds, the other half.
fn an_allreduce_between_halves(mutant: Mutant) {
    World::new(mutant, 2).up(least_up_slots(1)).down(LEAST_DOWN_SLOTS).run(|rank| {
        rank.reduce_to_leaders(&[0], 1);
        rank.allreduce_shares(&[0], 2);
        rank.gather_from_leaders(&[0], 1);
    });
}

/// The same with two leaders, which wait for each other in every round.
fn an_allreduce_between_halves_of_two(mutant: Mutant) {
    World::new(mutant, 2).up(least_up_slots(2)).down(LEAST_DOWN_SLOTS).run(|rank| {
        rank.reduce_to_leaders(&[0, 1], 1);
        rank.allreduce_shares(&[0, 1], 2);
        rank.gather_from_leaders(&[0, 1], 1);
    });
}

model! {
    halves_and_whole, Bound::Preemptions(3), an_allreduce_between_halves, [U1, U2, D1, D2];
    rejects_done_before_the_fold: Mutant::DoneTooEarly(Up) => [Race, WrongValue, Deadlock];
    rejects_done_before_the_copy: Mutant::DoneTooEarly(Down) => [Race, WrongValue, Deadlock];
}

model! {
    halves_and_whole_of_two, Bound::Preemptions(1), an_allreduce_between_halves_of_two, [U1, U2, D1, D2];
    rejects_done_before_the_fold: Mutant::DoneTooEarly(Up) => [Race, WrongValue, Deadlock];
    rejects_done_before_the_copy: Mutant::DoneTooEarly(Down) => [Race, WrongValue, Deadlock];
}

/// Three ranks: a reduction through one leader to rank 1, two rounds, then one that the leader keeps. Rank 2 takes
/// nothing that would tell it how far the leader is.
fn a_root_takes_before_a_leader_keeps(mutant: Mutant) {
    World::new(mutant, 3).up(least_up_slots(1)).down(LEAST_DOWN_SLOTS).run(|rank| {
        rank.reduce_shares(&[0], 2, 1);
        rank.reduce_to_leaders(&[0], 1);
    });
}

model! {
    rooted_before_kept, Bound::Preemptions(2), a_root_takes_before_a_leader_keeps, [U1, U2, D1];
    rejects_done_before_the_fold: Mutant::DoneTooEarly(Up) => [Race, WrongValue, Deadlock];
    rejects_progress_of_a_follower: Mutant::OthersProgress { of: 0, shown: 2 } => [Race, WrongValue, Deadlock];
}

/// Three ranks: a reduction through one leader to rank 1, two rounds, then the leader hands its share to all, one
/// round. Both its down cells are read by rank 1 alone until then.
fn a_root_takes_before_a_leader_hands_out(mutant: Mutant) {
    World::new(mutant, 3).up(least_up_slots(1)).down(LEAST_DOWN_SLOTS).run(|rank| {
        rank.reduce_shares(&[0], 2, 1);
        rank.gather_from_leaders(&[0], 1);
    });
}

model! {
    rooted_before_handed, Bound::Preemptions(2), a_root_takes_before_a_leader_hands_out, [U1, D1, D2];
    rejects_the_root_forgotten: Mutant::ReaderForgotten(1) => [Race, WrongValue, Deadlock];
    rejects_done_before_the_copy: Mutant::DoneTooEarly(Down) => [Race, WrongValue, Deadlock];
    rejects_progress_of_another_root: Mutant::OthersProgress { of: 1, shown: 2 } => [Race, WrongValue, Deadlock];
}

/// Three ranks, one down cell: rank 0 hands its share to all, broadcasts down the chain 0, 2, 1, and hands out its
/// share again. In the tree its one child is rank 2; before and after, rank 1 reads its cell too.
fn a_broadcast_between_shares(mutant: Mutant) {
    World::new(mutant, 3).down(1).run(|rank| {
        rank.gather_from_leaders(&[0], 1);
        rank.release(Down, Chain(&[0, 2, 1]));
        rank.gather_from_leaders(&[0], 1);
    });
}

model! {
    broadcast_between_shares, Bound::Preemptions(2), a_broadcast_between_shares, [D1, D2];
    rejects_the_trees_child_alone: Mutant::ReaderForgotten(1) => [Race, WrongValue, Deadlock];
    rejects_progress_of_the_trees_child: Mutant::OthersProgress { of: 1, shown: 2 } => [Race, WrongValue, Deadlock];
    rejects_progress_of_who_is_no_child: Mutant::OthersProgress { of: 2, shown: 1 } => [Race, WrongValue, Deadlock];
    rejects_done_before_the_copy: Mutant::DoneTooEarly(Down) => [Race, WrongValue, Deadlock];
}

/// Three ranks, two up cells: all contribute to rank 0, then a reduction goes up the chain 1, 2, 0, then all contribute
/// to rank 0 again. In the tree rank 1's cell is read by rank 2, before and after by rank 0.
fn a_reduction_between_shares(mutant: Mutant) {
    World::new(mutant, 3).up(least_up_slots(1)).down(LEAST_DOWN_SLOTS).run(|rank| {
        rank.reduce_to_leaders(&[0], 2);
        rank.gather(Up, Chain(&[0, 2, 1]));
        rank.reduce_to_leaders(&[0], 1);
    });
}

model! {
    reduction_between_shares, Bound::Preemptions(2), a_reduction_between_shares, [U1, U2];
    rejects_progress_of_the_trees_parent: Mutant::OthersProgress { of: 0, shown: 2 } => [Race, WrongValue, Deadlock];
    rejects_done_before_the_fold: Mutant::DoneTooEarly(Up) => [Race, WrongValue, Deadlock];
}

/// Two ranks hand out their shares through two cells, then through one of twice the size, then through two again.
fn shares_of_other_sizes(mutant: Mutant) {
    World::new(mutant, 2).down(2).run(|rank| {
        for (slots, rounds) in [(2, 2), (1, 1), (2, 1)] {
            rank.cut(Down, slots);
            rank.gather_from_leaders(&[0, 1], rounds);
        }
    });
}

model! {
    handed_through_a_ring_cut_anew, Bound::Preemptions(2), shares_of_other_sizes, [D1, D2];
    rejects_a_cut_without_wait: Mutant::ReshapesAtOnce => [Race, WrongValue, Deadlock];
    rejects_done_before_the_copy: Mutant::DoneTooEarly(Down) => [Race, WrongValue, Deadlock];
}
