//! Calls in which some ranks publish slices and some read them: gathers, scatters, their all-to-all forms, scans.

mod model;

use model::check::model;
use model::deliveries::Parts::{All, From, To, Upwards};
use model::{Bound, Mutant, World};
use shm_core::protocol::RingName::{Line, Up};

/// Two ranks: a root publishes three slices through two slots, twice, and runs ahead.
fn a_root_runs_ahead(mutant: Mutant) {
    World::new(mutant, 2).up(2).run(|rank| {
        rank.deliver(Up, From(0), 3);
        rank.deliver(Up, From(0), 1);
    });
}

model! {
    scattered_to_one, Bound::Preemptions(3), a_root_runs_ahead, [U1, U2];
    rejects_done_before_the_copy: Mutant::DoneTooEarly(Up) => [Race, WrongValue, Deadlock];
    rejects_done_left_out: Mutant::DoneMissing(Up) => [Deadlock];
}

/// Two ranks: a leaf does.
fn a_leaf_runs_ahead(mutant: Mutant) {
    World::new(mutant, 2).up(2).run(|rank| {
        rank.deliver(Up, To(0), 3);
        rank.deliver(Up, To(0), 1);
    });
}

model! {
    gathered_from_one, Bound::Preemptions(3), a_leaf_runs_ahead, [U1, U2];
    rejects_done_before_the_copy: Mutant::DoneTooEarly(Up) => [Race, WrongValue, Deadlock];
    rejects_done_left_out: Mutant::DoneMissing(Up) => [Deadlock];
}

/// Two ranks, two slots: who wants the first slice alone lets the others pass unseen, and still says when its slots may
/// be filled again.
fn one_takes_less(mutant: Mutant) {
    World::new(mutant, 2).up(2).run(|rank| {
        rank.deliver_some(Up, From(0), 3, &[1], &[]);
        rank.deliver(Up, From(0), 2);
    });
}

model! {
    a_short_block, Bound::Preemptions(3), one_takes_less, [U1, U2];
    rejects_done_before_the_copy: Mutant::DoneTooEarly(Up) => [Race, WrongValue, Deadlock];
    rejects_done_left_out: Mutant::DoneMissing(Up) => [Deadlock];
}

/// Two ranks, all for all, through two slots: `done` words are waited for.
fn all_for_all(mutant: Mutant) {
    World::new(mutant, 2).up(2).run(|rank| {
        rank.deliver(Up, All, 3);
        rank.deliver(Up, All, 1);
    });
}

model! {
    all_to_all_through_two_slots, Bound::Preemptions(3), all_for_all, [U1, U2];
    rejects_done_before_the_copy: Mutant::DoneTooEarly(Up) => [Race, WrongValue, Deadlock];
    rejects_done_left_out: Mutant::DoneMissing(Up) => [Deadlock];
}

/// The same through four: what is published proves what was read.
fn stamps_prove_progress(mutant: Mutant) {
    World::new(mutant, 2).up(4).run(|rank| {
        rank.deliver(Up, All, 4);
        rank.deliver(Up, All, 1);
        rank.deliver(Up, All, 1);
    });
}

model! {
    all_to_all_through_four_slots, Bound::Preemptions(2), stamps_prove_progress, [U1];
}

/// The proof must not include the last slices: others may still read them.
fn proof_ends_before_the_last_slices(mutant: Mutant) {
    World::new(mutant, 2).up(2).run(|rank| {
        rank.deliver(Up, All, 2);
        if rank.board.mutant() == Mutant::ProvesTooMuch {
            rank.up.know(1 - rank.number(), rank.up.next_position() - 1);
        }
        rank.deliver(Up, All, 2);
    });
}

model! {
    all_to_all_proves_no_more, Bound::Preemptions(2), proof_ends_before_the_last_slices, [];
    rejects_a_proof_of_the_last_slice: Mutant::ProvesTooMuch => [Race, WrongValue, Deadlock];
}

/// Two ranks, one slot: what goes to the root proves that what came from it was read, and the other way round, but
/// nothing about itself.
fn each_proves_the_one_before(mutant: Mutant) {
    World::new(mutant, 2).up(1).run(|rank| {
        for _ in 0..2 {
            rank.deliver(Up, From(0), 1);
            rank.deliver(Up, To(0), 1);
        }
        if rank.board.mutant() == Mutant::ProvesTooMuch {
            rank.up.prove(rank.up.next_position() - 1);
        }
        rank.deliver(Up, From(1), 1);
    });
}

model! {
    to_and_from_a_root, Bound::Preemptions(3), each_proves_the_one_before, [U1, U2];
    rejects_a_proof_of_the_call_itself: Mutant::ProvesTooMuch => [Race, WrongValue, Deadlock];
}

/// Three ranks, one slot: a scan, twice. The highest rank publishes nothing, the lowest reads nothing.
fn two_scans(mutant: Mutant) {
    World::new(mutant, 3).up(1).run(|rank| {
        rank.deliver(Up, Upwards, 1);
        rank.deliver(Up, Upwards, 1);
    });
}

model! {
    scans_of_three, Bound::Preemptions(2), two_scans, [U1, U2];
    rejects_a_forgotten_reader: Mutant::ReaderForgotten(2) => [Race, WrongValue, Deadlock];
    rejects_the_next_rank_as_proof_for_the_last: Mutant::OthersProgress { of: 2, shown: 1 } => [Race, WrongValue, Deadlock];
    rejects_done_before_the_fold: Mutant::DoneTooEarly(Up) => [Race, WrongValue, Deadlock];
}

/// Three ranks, one slot: from rank 1, upwards, to rank 2, from rank 0.
fn parts_change(mutant: Mutant) {
    World::new(mutant, 3).up(1).run(|rank| {
        rank.deliver(Up, From(1), 1);
        rank.deliver(Up, Upwards, 1);
        rank.deliver(Up, To(2), 1);
        rank.deliver(Up, From(0), 1);
    });
}

model! {
    parts_of_three, Bound::Preemptions(1), parts_change, [U1, U2];
    rejects_a_forgotten_reader: Mutant::ReaderForgotten(2) => [Race, WrongValue, Deadlock];
}

/// Three ranks, all for all through two slots, between a scan and a gather.
fn three_for_all(mutant: Mutant) {
    World::new(mutant, 3).up(2).run(|rank| {
        rank.deliver(Up, Upwards, 1);
        rank.deliver(Up, All, 2);
        rank.deliver(Up, To(1), 1);
    });
}

model! {
    all_to_all_of_three, Bound::Preemptions(1), three_for_all, [U1, U2];
    rejects_a_forgotten_reader: Mutant::ReaderForgotten(0) => [Race, WrongValue, Deadlock];
}

/// Two ranks in lines, one slot: beside exchanges and what is handed out and collected.
fn lines_are_shared(mutant: Mutant) {
    World::new(mutant, 2).line(1).run(|rank| {
        rank.deliver(Line, From(0), 1);
        rank.collect(Line, 1);
        rank.deliver(Line, All, 1);
        rank.hand_out(Line, 0);
        rank.deliver(Line, To(0), 1);
        rank.exchange();
    });
}

model! {
    lines_of_two, Bound::Preemptions(2), lines_are_shared, [L1, L2];
}

/// Two ranks, two slices, two slots, twice: the root lends what it scatters.
fn a_root_lends(mutant: Mutant) {
    World::new(mutant, 2).up(2).buffers(2).run(|rank| {
        for _ in 0..2 {
            rank.deliver_some(Up, From(0), 2, &[], &[0]);
        }
    });
}

model! {
    lent_by_a_root, Bound::Preemptions(2), a_root_lends, [U1, U2];
    rejects_done_left_out: Mutant::DoneMissing(Up) => [Deadlock];
}

/// Two ranks, all for all, two slices, two slots: rank 0 lends, rank 1 goes through cells.
fn one_of_all_lends(mutant: Mutant) {
    World::new(mutant, 2).up(2).buffers(2).run(|rank| {
        rank.deliver_some(Up, All, 2, &[], &[0]);
        rank.deliver_some(Up, All, 2, &[], &[0]);
    });
}

model! {
    lent_by_one_of_all, Bound::Preemptions(1), one_of_all_lends, [U1, U2];
    rejects_done_before_the_copy: Mutant::DoneTooEarly(Up) => [Race, WrongValue, Deadlock];
}

/// Two ranks, one slice, two of four cells: in the second turn of the ring the ranks write in each other's, in the
/// third in their own again.
fn cells_change_hands(mutant: Mutant) {
    World::new(mutant, 2).up(4).run(|rank| {
        let crossed: Vec<u64> = (0..5).map(|_| rank.deliver_crossing(1, 2, &[])).collect();
        assert_eq!(crossed, [0, 0, 1, 1, 0]);
    });
}

model! {
    crossing, Bound::Preemptions(2), cells_change_hands, [U1];
}

/// Two ranks, one of two cells: rank 0 lends in the turn in which cells change hands, and both then fill their own. In
/// between rank 1 is a root at the same slot.
fn cells_change_hands_beside_others(mutant: Mutant) {
    World::new(mutant, 2).up(2).buffers(1).run(|rank| {
        assert_eq!(rank.deliver_crossing(1, 2, &[]), 0);
        assert_eq!(rank.deliver_crossing(1, 2, &[0]), u64::from(rank.number() == 1));
        assert_eq!(rank.deliver_crossing(1, 2, &[]), 0);
        rank.deliver(Up, From(1), 1);
        rank.deliver(Up, From(1), 1);
    });
}

model! {
    crossing_beside_others, Bound::Preemptions(1), cells_change_hands_beside_others, [U1, U2];
}

/// Two ranks, one of two cells: exchanges and a delivery hand the same cells to each other.
fn an_exchange_hands_on(mutant: Mutant) {
    World::new(mutant, 2).up(2).run(|rank| {
        assert_eq!(rank.exchange_crossing(1, 2), 0);
        assert_eq!(rank.deliver_crossing(1, 2, &[]), 1);
        assert_eq!(rank.exchange_crossing(1, 2), 0);
    });
}

model! {
    crossing_with_an_exchange, Bound::Preemptions(2), an_exchange_hands_on, [U1, U2];
}

/// Three ranks, two slices: the leaves lend, one takes the second slice nowhere.
fn leaves_lend(mutant: Mutant) {
    World::new(mutant, 3).up(2).buffers(2).run(|rank| {
        rank.deliver_some(Up, To(1), 2, &[], &[0, 2]);
        rank.deliver_some(Up, From(0), 2, &[2], &[0]);
    });
}

model! {
    lent_by_leaves, Bound::Preemptions(1), leaves_lend, [U1, U2];
    rejects_a_forgotten_reader: Mutant::ReaderForgotten(1) => [Race, WrongValue, Deadlock];
}
