//! Payload that stays in the buffers of ranks: locations ride on U1 and D1, and U2 and D2 give the buffers back before
//! a call ends. Each rank writes its buffers anew right before and right after each call, as an application does.

mod model;

use model::Tree::{Chain, Flat};
use model::check::model;
use model::loans::{Lends, NOTHING};
use model::{Bound, Mutant, World};
use shm_core::protocol::RingName::{Down, Up};
use shm_core::protocol::shares::{LEAST_DOWN_SLOTS, Takers, least_up_slots, up_slots_to_give_back};

/// A world with the least number of cells for so many leaders, and buffers of so many units.
fn world(mutant: Mutant, size: usize, leaders: usize, units: usize) -> World {
    World::new(mutant, size).up(least_up_slots(leaders)).down(LEAST_DOWN_SLOTS).buffers(units)
}

/// Two ranks, both lend all they have: an allreduce of two rounds, twice.
fn all_is_lent(mutant: Mutant) {
    world(mutant, 2, 2, 4).run(|rank| {
        for _ in 0..2 {
            rank.lend_shares(&[0, 1], 2, Takers::All, Lends { send: &[0, 1], receive: &[0, 1], result: &[] });
        }
    });
}

model! {
    everything, Bound::Preemptions(2), all_is_lent, [U1, D1];
}

/// Two ranks: a reduce-scatter to rank 0, which reads the other's buffer. Nothing comes back but the word that it was
/// read.
fn a_contribution_is_lent(mutant: Mutant) {
    world(mutant, 2, 1, 2).run(|rank| {
        rank.lend_shares(&[0], 2, Takers::Owners, Lends { send: &[1], ..NOTHING });
        rank.lend_shares(&[0], 1, Takers::Owners, Lends { send: &[1], ..NOTHING });
    });
}

model! {
    contribution, Bound::Preemptions(3), a_contribution_is_lent, [U1, U2];
    rejects_done_before_the_fold: Mutant::DoneTooEarly(Up) => [Race, WrongValue, Deadlock];
    rejects_done_left_out: Mutant::DoneMissing(Up) => [Deadlock];
}

/// Two ranks, both leaders, three rounds: rank 0 lends and is served, rank 1 goes through cells.
fn one_of_two_lends(mutant: Mutant) {
    world(mutant, 2, 2, 6).run(|rank| {
        rank.lend_shares(&[0, 1], 3, Takers::All, Lends { send: &[0], receive: &[0], result: &[] });
    });
}

model! {
    one_of_two, Bound::Preemptions(3), one_of_two_lends, [U1, U2, D1, D2];
}

/// Two ranks, rank 0 leads: the other takes the result where rank 0 has it for itself.
fn a_result_is_lent(mutant: Mutant) {
    world(mutant, 2, 1, 2).run(|rank| {
        rank.lend_shares(&[0], 2, Takers::All, Lends { result: &[0], ..NOTHING });
    });
}

model! {
    result, Bound::Preemptions(3), a_result_is_lent, [U1, D1, D2];
    rejects_done_before_the_copy: Mutant::DoneTooEarly(Down) => [Race, WrongValue];
    rejects_done_left_out: Mutant::DoneMissing(Down) => [Deadlock];
}

/// Two ranks, both lead: a reduction to rank 1, into whose buffer rank 0 stores its share; then to rank 0.
fn a_root_is_served(mutant: Mutant) {
    world(mutant, 2, 2, 4).run(|rank| {
        let lends = Lends { send: &[0, 1], receive: &[0, 1], result: &[] };
        rank.lend_shares(&[0, 1], 2, Takers::Root(1), lends);
        rank.lend_shares(&[0, 1], 1, Takers::Root(0), lends);
    });
}

model! {
    served_root, Bound::Preemptions(2), a_root_is_served, [U1, U2, D1];
}

/// Three ranks, of which the first and the last lead; the first lends, the second is served, the last does neither.
fn three_differ(mutant: Mutant) {
    world(mutant, 3, 2, 2).run(|rank| {
        rank.lend_shares(&[0, 2], 1, Takers::All, Lends { send: &[0], receive: &[1], result: &[2] });
    });
}

model! {
    three_ranks, Bound::Preemptions(2), three_differ, [U1, D1, D2];
    rejects_a_reader_forgotten: Mutant::ReaderForgotten(0) => [Race, WrongValue];
}

/// Three ranks, rank 0 lends its contribution to leaders 1 and 2, and hears from them only that they have read it.
fn two_leaders_read_one(mutant: Mutant) {
    world(mutant, 3, 2, 2).run(|rank| {
        rank.lend_shares(&[1, 2], 1, Takers::Owners, Lends { send: &[0], ..NOTHING });
    });
}

model! {
    two_readers, Bound::Preemptions(2), two_leaders_read_one, [U1, U2];
    rejects_a_reader_forgotten: Mutant::ReaderForgotten(1) => [Race, WrongValue];
    rejects_progress_of_the_other_leader: Mutant::OthersProgress { of: 2, shown: 1 } => [Race, WrongValue];
}

/// Two ranks hand out their shares; rank 0 lends its own.
fn a_share_is_lent(mutant: Mutant) {
    World::new(mutant, 2).up(1).down(2).buffers(2).run(|rank| {
        rank.lend_handed(&[0, 1], 2, &[0]);
        rank.lend_handed(&[0, 1], 1, &[0]);
    });
}

model! {
    share, Bound::Preemptions(3), a_share_is_lent, [D1, D2];
    rejects_done_left_out: Mutant::DoneMissing(Down) => [Deadlock];
}

/// Two ranks gather two slices; the leaf lends its buffer.
fn a_leaf_lends(mutant: Mutant) {
    World::new(mutant, 2).up(2).down(1).buffers(2).run(|rank| {
        rank.lend_gather(Flat(0), 2, &[1]);
        rank.lend_gather(Flat(0), 1, &[1]);
    });
}

model! {
    leaf, Bound::Preemptions(3), a_leaf_lends, [U1, U2];
    rejects_done_before_the_fold: Mutant::DoneTooEarly(Up) => [Race, WrongValue, Deadlock];
}

/// Three ranks in a chain gather two slices: the leaf lends, the one in the middle passes cells on.
fn a_leaf_of_a_chain_lends(mutant: Mutant) {
    World::new(mutant, 3).up(2).down(1).buffers(2).run(|rank| {
        rank.lend_gather(Chain(&[0, 1, 2]), 2, &[2]);
    });
}

model! {
    leaf_of_a_chain, Bound::Preemptions(2), a_leaf_of_a_chain_lends, [U1];
    rejects_the_leafs_wait_left_out: Mutant::SkipWait(model::U2) => [Race, WrongValue];
}

/// A root lends a message of two slices to two children.
fn a_root_lends(mutant: Mutant) {
    World::new(mutant, 3).up(1).down(2).buffers(2).run(|rank| {
        rank.lend_release(Flat(0), 2, &[0]);
    });
}

model! {
    root, Bound::Preemptions(2), a_root_lends, [D1, D2];
    rejects_a_child_forgotten: Mutant::ReaderForgotten(2) => [Race, WrongValue];
}

/// Three ranks in a chain: root and the one in the middle lend, the latter slice by slice.
fn a_chain_lends(mutant: Mutant) {
    World::new(mutant, 3).up(1).down(2).buffers(2).run(|rank| {
        rank.lend_release(Chain(&[0, 1, 2]), 2, &[0, 1]);
    });
}

model! {
    chain, Bound::Preemptions(2), a_chain_lends, [D1, D2];
    rejects_done_left_out: Mutant::DoneMissing(Down) => [Deadlock];
}

/// Two ranks, three slices up and down, one cell each way: the leaf lends what it contributes, the root what it has
/// summed up.
fn a_pipeline_lends(mutant: Mutant) {
    World::new(mutant, 2).up(1).down(1).buffers(3).run(|rank| {
        rank.lend_pipeline(3, (Flat(0), Flat(0)), Lends { send: &[1], result: &[0], ..NOTHING });
    });
}

model! {
    pipeline, Bound::Preemptions(3), a_pipeline_lends, [U1, D1, D2];
}

/// Three ranks, two slices, up a chain and down a flat tree: that the leaf's buffer was read it knows by the root's
/// last slice.
fn a_leaf_of_a_pipeline_lends(mutant: Mutant) {
    World::new(mutant, 3).up(2).down(2).buffers(2).run(|rank| {
        rank.lend_pipeline(2, (Chain(&[0, 1, 2]), Flat(0)), Lends { send: &[2], ..NOTHING });
    });
}

model! {
    leaf_of_a_pipeline, Bound::Preemptions(2), a_leaf_of_a_pipeline_lends, [U1, D1];
}

/// Two ranks gather: the leaf lends two slices, the root goes by three, and finds out before it reads the third.
fn a_leaf_lends_too_little(mutant: Mutant) {
    World::new(mutant, 2).up(3).down(1).buffers(3).run(|rank| {
        rank.lend_unequal_gather(Flat(0), [3, 2], &[1]);
    });
}

model! {
    too_short_a_contribution, Bound::Preemptions(3), a_leaf_lends_too_little, [U1];
    rejects_lengths_that_are_not_compared: Mutant::LengthsNotCompared => [WrongValue];
}

/// The root lends a message of one slice to a child that goes by two.
fn a_root_lends_too_little(mutant: Mutant) {
    World::new(mutant, 2).up(1).down(2).buffers(2).run(|rank| {
        rank.lend_unequal_release(Flat(0), [1, 2], &[0]);
    });
}

model! {
    too_short_a_message, Bound::Preemptions(3), a_root_lends_too_little, [D1];
    rejects_lengths_that_are_not_compared: Mutant::LengthsNotCompared => [WrongValue];
}

/// Two ranks, three up slots, rank 0 leads: its result comes back in the other's cell where that neither lent nor is
/// served, and the result is not lent. All calls come to the same slot. In the last one rank 1 fills the cell again in
/// which the first result came back, after it has lent, was served, and took a result that rank 0 lent.
fn some_comes_back(mutant: Mutant) {
    World::new(mutant, 2).up(up_slots_to_give_back(1)).down(LEAST_DOWN_SLOTS).buffers(1).run(|rank| {
        let taker = u64::from(rank.number() == 1);
        let mut share = |lends| rank.lend_shares(&[0], 1, Takers::All, lends);
        assert_eq!(share(NOTHING), taker);
        assert_eq!(share(Lends { send: &[1], ..NOTHING }), 0);
        assert_eq!(share(Lends { receive: &[1], ..NOTHING }), 0);
        assert_eq!(share(Lends { result: &[0], ..NOTHING }), 0);
        assert_eq!(share(NOTHING), taker);
        rank.lend_exchange(1, NOTHING);
    });
}

model! {
    given_back_among_loans, Bound::Preemptions(1), some_comes_back, [U1, D1, D2];
}

/// The same for a root, so that no call takes whole turns, among exchanges through one slot: in the last one rank 0
/// fills the cell again in which the first result came back, which rank 1 took out there before it lent.
fn some_comes_back_to_a_root(mutant: Mutant) {
    World::new(mutant, 2).up(up_slots_to_give_back(1)).down(LEAST_DOWN_SLOTS).buffers(1).run(|rank| {
        let taker = u64::from(rank.number() == 1);
        let mut share = |lends| rank.lend_shares(&[0], 1, Takers::Root(1), lends);
        assert_eq!(share(NOTHING), taker);
        assert_eq!(share(Lends { send: &[1], ..NOTHING }), 0);
        assert_eq!(share(Lends { receive: &[1], ..NOTHING }), 0);
        rank.lend_exchange(1, Lends { send: &[1], ..NOTHING });
        assert_eq!(rank.lend_shares(&[0], 1, Takers::Root(1), Lends { send: &[1], ..NOTHING }), 0);
        let slot = rank.up.slot(rank.up.next_position());
        rank.lend_exchange(1, NOTHING);
        assert_eq!((slot, rank.up.is_crossed(slot)), (1, true));
    });
}

model! {
    given_back_to_a_root_among_loans, Bound::Preemptions(1), some_comes_back_to_a_root, [U1, U2, D1];
}

/// Two ranks, both lead two rounds: rank 0 gets back what rank 1 folds, rank 1 lends; then rank 1 gets back what rank 0
/// folds, and rank 0 is served.
fn one_of_two_gets_back(mutant: Mutant) {
    World::new(mutant, 2).up(up_slots_to_give_back(2)).down(LEAST_DOWN_SLOTS).buffers(4).run(|rank| {
        let first = u64::from(rank.number() == 0);
        let mut share = |lends| rank.lend_shares(&[0, 1], 2, Takers::All, lends);
        assert_eq!(share(Lends { send: &[1], ..NOTHING }), 2 * first);
        assert_eq!(share(Lends { receive: &[0], ..NOTHING }), 2 - 2 * first);
    });
}

model! {
    given_back_beside_a_loan, Bound::Preemptions(1), one_of_two_gets_back, [U1, D1];
}

/// Two ranks, both lead one round: who neither lends nor is served goes the short way, the other one the long way. In
/// turn rank 1 lends, rank 0 is served, and rank 1 lends its result; in the end both go the short way.
fn one_of_two_goes_the_long_way(mutant: Mutant) {
    World::new(mutant, 2).up(up_slots_to_give_back(2)).down(LEAST_DOWN_SLOTS).buffers(2).run(|rank| {
        let first = u64::from(rank.number() == 0);
        let mut share = |lends| rank.lend_shares(&[0, 1], 1, Takers::All, lends);
        assert_eq!(share(Lends { send: &[1], ..NOTHING }), first);
        assert_eq!(share(Lends { receive: &[0], ..NOTHING }), 1 - first);
        assert_eq!(share(Lends { result: &[1], ..NOTHING }), 1 - first);
        assert_eq!(share(NOTHING), 1);
    });
}

model! {
    given_back_the_short_way, Bound::Preemptions(1), one_of_two_goes_the_long_way, [U1, D1, D2];
}
