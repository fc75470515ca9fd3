//! Calls that look at no tree: one slot handed out or collected, and exchanges of slices through cells.

mod model;

use model::Tree::Flat;
use model::check::model;
use model::loans::{Lends, NOTHING};
use model::rank::Rank;
use model::{Bound, Mutant, World};
use shm_core::protocol::RingName::{Down, Line, Up};

/// Two ranks: a root hands out three times through two slots, and so runs ahead.
fn a_root_runs_ahead(mutant: Mutant) {
    World::new(mutant, 2).line(2).run(|rank| {
        for _ in 0..3 {
            rank.hand_out(Line, 0);
        }
    });
}

model! {
    handed_out_to_one, Bound::Preemptions(3), a_root_runs_ahead, [L1, L2];
    rejects_done_before_the_copy: Mutant::DoneTooEarly(Line) => [Race, WrongValue, Deadlock];
    rejects_done_left_out: Mutant::DoneMissing(Line) => [Deadlock];
    rejects_lines_taken_from_a_reader: Mutant::TakesWhatIsRead => [Race, WrongValue, Deadlock];
}

/// Two ranks: three contributions through two slots.
fn a_leaf_runs_ahead(mutant: Mutant) {
    World::new(mutant, 2).line(2).run(|rank| {
        for _ in 0..3 {
            rank.collect(Line, 0);
        }
    });
}

model! {
    collected_from_one, Bound::Preemptions(3), a_leaf_runs_ahead, [L1, L2];
    rejects_done_before_the_fold: Mutant::DoneTooEarly(Line) => [Race, WrongValue, Deadlock];
    rejects_done_left_out: Mutant::DoneMissing(Line) => [Deadlock];
    rejects_lines_taken_from_a_reader: Mutant::TakesWhatIsRead => [Race, WrongValue, Deadlock];
}

/// Three ranks, one slot: handed out by rank 1, collected by rank 2, handed out by rank 2.
fn roots_change(mutant: Mutant) {
    World::new(mutant, 3).line(1).run(|rank| {
        rank.hand_out(Line, 1);
        rank.collect(Line, 2);
        rank.hand_out(Line, 2);
    });
}

model! {
    flat_calls_of_three, Bound::Preemptions(2), roots_change, [L1, L2];
    rejects_a_forgotten_reader: Mutant::ReaderForgotten(0) => [Race, WrongValue, Deadlock];
}

/// Two ranks, one slot: what is collected proves that what was handed out before was read, and the other way round, but
/// nothing about itself.
fn each_proves_the_one_before(mutant: Mutant) {
    World::new(mutant, 2).line(1).run(|rank| {
        for _ in 0..2 {
            rank.hand_out(Line, 0);
            rank.collect(Line, 0);
        }
        if rank.board.mutant() == Mutant::ProvesTooMuch {
            rank.line.prove(rank.line.next_position() - 1);
        }
        rank.hand_out(Line, 1);
        rank.exchange();
    });
}

model! {
    flat_calls_prove, Bound::Preemptions(3), each_proves_the_one_before, [L1, L2];
    rejects_a_proof_of_the_call_itself: Mutant::ProvesTooMuch => [Race, WrongValue, Deadlock];
}

/// Two ranks, cells of both rings: the flat way and the steps over a tree are the same to the other side.
fn ways_are_mixed(mutant: Mutant) {
    World::new(mutant, 2).up(1).down(1).run(|rank| {
        let first = rank.number() == 0;
        for ring in [Up, Down] {
            for turn in 0..3 {
                match (ring, first ^ (turn == 1)) {
                    (Up, true) => rank.collect(ring, 0),
                    (Up, false) => rank.gather(ring, Flat(0)),
                    (_, true) => rank.hand_out(ring, 0),
                    (_, false) => rank.release(ring, Flat(0)),
                }
            }
        }
    });
}

model! {
    flat_and_over_trees, Bound::Preemptions(2), ways_are_mixed, [U1, U2, D1, D2];
}

/// Two ranks exchange four slices through four slots, twice: no `done` word is waited for.
fn slices_prove_progress(mutant: Mutant) {
    World::new(mutant, 2).up(4).run(|rank| {
        rank.exchange_slices(4);
        rank.exchange_slices(1);
        rank.exchange_slices(1);
    });
}

model! {
    exchange_of_slices, Bound::Preemptions(2), slices_prove_progress, [U1];
}

/// Two ranks exchange three slices through two slots: here `done` words are waited for.
fn slices_through_two_slots(mutant: Mutant) {
    World::new(mutant, 2).up(2).run(|rank| {
        rank.exchange_slices(3);
        rank.exchange_slices(1);
    });
}

model! {
    exchange_through_two_slots, Bound::Preemptions(3), slices_through_two_slots, [U1, U2];
    rejects_done_before_the_fold: Mutant::DoneTooEarly(Up) => [Race, WrongValue, Deadlock];
    rejects_done_left_out: Mutant::DoneMissing(Up) => [Deadlock];
}

/// What an exchange of slices proves must not include its last slices: others may still read them.
fn proof_ends_before_the_last_slices(mutant: Mutant) {
    World::new(mutant, 2).up(2).run(|rank| {
        rank.exchange_slices(2);
        if rank.board.mutant() == Mutant::ProvesTooMuch {
            rank.up.know(1 - rank.number(), rank.up.next_position() - 1);
        }
        rank.exchange_slices(2);
    });
}

model! {
    exchange_of_slices_proves_no_more, Bound::Preemptions(2), proof_ends_before_the_last_slices, [];
    rejects_a_proof_of_the_last_slice: Mutant::ProvesTooMuch => [Race, WrongValue, Deadlock];
}

/// Three ranks exchange two slices through two slots, after a reduction to rank 1 and before one to rank 2.
fn three_exchange_slices(mutant: Mutant) {
    World::new(mutant, 3).up(2).run(|rank| {
        rank.collect(Up, 1);
        rank.exchange_slices(2);
        rank.gather(Up, Flat(2));
    });
}

model! {
    exchange_of_slices_of_three, Bound::Preemptions(1), three_exchange_slices, [U1, U2];
    rejects_a_forgotten_reader: Mutant::ReaderForgotten(0) => [Race, WrongValue, Deadlock];
}

/// Two ranks, three slices, two slots, twice: rank 0 lends its contribution whole, rank 1 goes through cells.
fn one_lends(mutant: Mutant) {
    World::new(mutant, 2).up(2).buffers(3).run(|rank| {
        for _ in 0..2 {
            rank.lend_exchange(3, Lends { send: &[0], receive: &[], result: &[] });
        }
    });
}

model! {
    lent_to_an_exchange, Bound::Preemptions(1), one_lends, [U1, U2];
    rejects_done_before_the_fold: Mutant::DoneTooEarly(Up) => [Race, WrongValue, Deadlock];
    rejects_done_left_out: Mutant::DoneMissing(Up) => [Deadlock];
}

/// Two ranks, two units: both lend and want the result where they say, twice; each stores half of it for both. With two
/// slots the last position has a slot that lends; with three it has another.
fn all_is_lent(mutant: Mutant) {
    all_is_lent_through(2, mutant);
}

fn all_is_lent_through_three_slots(mutant: Mutant) {
    all_is_lent_through(3, mutant);
}

fn all_is_lent_through(slots: usize, mutant: Mutant) {
    World::new(mutant, 2).up(slots).buffers(2).run(|rank| {
        for _ in 0..2 {
            rank.lend_exchange(2, Lends { send: &[0, 1], receive: &[0, 1], result: &[] });
        }
    });
}

model! {
    divided_exchange, Bound::Preemptions(2), all_is_lent, [U1];
}

model! {
    divided_exchange_through_three_slots, Bound::Preemptions(2), all_is_lent_through_three_slots, [U1];
}

/// Three ranks, two slices: two lend, one does not.
fn two_lend(mutant: Mutant) {
    World::new(mutant, 3).up(2).buffers(2).run(|rank| {
        rank.lend_exchange(2, Lends { send: &[0, 2], receive: &[], result: &[] });
    });
}

model! {
    lent_by_two_of_three, Bound::Preemptions(1), two_lend, [U1, U2];
}

/// Two ranks exchange slices through four slots. Each call takes two positions: its slot was used two calls before, and
/// in every second turn the ranks write in each other's cells.
fn cells_change_hands(mutant: Mutant) {
    World::new(mutant, 2).up(4).run(|rank| {
        let crossed: Vec<u64> = (0..5).map(|_| rank.exchange_crossing(1, 2)).collect();
        assert_eq!(crossed, [0, 0, 1, 1, 0]);
    });
}

model! {
    crossing, Bound::Preemptions(2), cells_change_hands, [U1];
}

/// Two ranks exchange five slices through two slots: cells change hands within the call, and `done` words are waited
/// for.
fn cells_change_hands_within_a_call(mutant: Mutant) {
    World::new(mutant, 2).up(2).run(|rank| {
        assert_eq!(rank.exchange_crossing(5, 6), 2);
        assert_eq!(rank.exchange_crossing(1, 2), 1);
    });
}

model! {
    crossing_through_two_slots, Bound::Preemptions(2), cells_change_hands_within_a_call, [U1, U2];
    rejects_done_before_the_fold: Mutant::DoneTooEarly(Up) => [Race, WrongValue, Deadlock];
    rejects_done_left_out: Mutant::DoneMissing(Up) => [Deadlock];
}

/// Two ranks, two slots: calls with a root come before, between and after exchanges whose cells change hands.
fn rooted_calls_among_crossings(mutant: Mutant) {
    World::new(mutant, 2).up(2).run(|rank| {
        rank.collect(Up, 0);
        rank.collect(Up, 1);
        assert_eq!(rank.exchange_crossing(1, 2), 0);
        assert_eq!(rank.exchange_crossing(1, 2), 1);
        rank.collect(Up, 1);
        rank.collect(Up, 0);
        assert_eq!(rank.exchange_crossing(1, 2), 0);
    });
}

model! {
    rooted_among_crossings, Bound::Preemptions(2), rooted_calls_among_crossings, [U1, U2];
}

/// Two ranks, three slots: what is collected comes right before a slot at which cells change hands, so that its lines
/// are not taken.
fn collected_between_crossings(mutant: Mutant) {
    World::new(mutant, 2).up(3).run(|rank| {
        assert_eq!(rank.exchange_crossing(1, 2), 0);
        rank.collect(Up, 0);
        assert_eq!(rank.exchange_crossing(1, 2), 1);
    });
}

model! {
    collected_among_crossings, Bound::Preemptions(3), collected_between_crossings, [U1];
    rejects_lines_taken_from_another_writer: Mutant::TakesWhatIsRead => [Race, WrongValue, Deadlock];
}

/// Exchanges of one slice, always at the same of two slots. Cells change hands from call to call, whatever was lent in
/// them.
fn exchange_at_one_slot(rank: &mut Rank, calls: [Lends; 4]) {
    for (call, lends) in calls.into_iter().enumerate() {
        let slot = rank.up.slot(rank.up.next_position());
        rank.lend_exchange(1, lends);
        assert_eq!((slot, rank.up.is_crossed(slot)), (1, call % 2 == 1));
    }
}

/// Rank 1 lends in the third call. In the fourth rank 0 fills rank 1's cell, which that read in the second, and nobody
/// used in the third.
fn one_lends_among_crossings(mutant: Mutant) {
    World::new(mutant, 2).up(2).buffers(1).run(|rank| {
        exchange_at_one_slot(rank, [NOTHING, NOTHING, Lends { send: &[1], ..NOTHING }, NOTHING]);
    });
}

/// Both lend in the third call, and each stores half of the result: neither cell is used.
fn all_is_lent_among_crossings(mutant: Mutant) {
    World::new(mutant, 2).up(2).buffers(1).run(|rank| {
        let all = Lends { send: &[0, 1], receive: &[0, 1], result: &[] };
        exchange_at_one_slot(rank, [NOTHING, NOTHING, all, NOTHING]);
    });
}

model! {
    crossing_beside_a_loan, Bound::Preemptions(1), one_lends_among_crossings, [U1, U2];
}

model! {
    divided_among_crossings, Bound::Preemptions(1), all_is_lent_among_crossings, [U1, U2];
}

/// Two ranks: slot 1 of two is cut anew to slot 1 of four, where cells are others, before the turn in which its cells
/// would change hands.
fn cells_are_cut_anew(mutant: Mutant) {
    World::new(mutant, 2).up(4).run(|rank| {
        rank.cut(Up, 2);
        assert_eq!(rank.exchange_crossing(1, 4), 0);
        rank.cut(Up, 4);
        assert_eq!(rank.exchange_crossing(1, 4), 0);
        assert_eq!(rank.exchange_crossing(1, 4), 1);
        rank.cut(Up, 2);
        assert_eq!(rank.exchange_crossing(1, 2), 0);
    });
}

model! {
    crossing_through_a_ring_cut_anew, Bound::Preemptions(2), cells_are_cut_anew, [U1, U2];
}
