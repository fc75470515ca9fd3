//! A share's slice readiness: edges U1, U2, D1 and D2 between contributors and leaders, without a barrier anywhere.

mod model;

use model::check::model;
use model::{Bound, Mutant, World};
use shm_core::protocol::RingName::{Down, Up};
use shm_core::protocol::shares::{LEAST_DOWN_SLOTS, least_up_slots};

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

/// Three ranks, of which the first and the last lead, one round of an allreduce, then one to rank 1, which leads nothing.
fn two_leaders_of_three(mutant: Mutant) {
    world(mutant, 3, 2).run(|rank| {
        rank.allreduce_shares(&[0, 2], 1);
        rank.reduce_shares(&[0, 2], 1, 1);
    });
}

model! {
    two_leaders_and_a_follower, Bound::Preemptions(2), two_leaders_of_three, [U1, D1];
}
