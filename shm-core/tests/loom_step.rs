//! Edges U1, U2, D1 and D2 in the release step, the gather step, and the pipeline of both.

mod model;

use model::calls::{TAG, chain, fold, gather_words, pass, release_word, sum_of_all};
use model::check::model;
use model::{Bound, ModelBoard, Mutant, World, run_ranks};
use shm_core::Links;
use shm_core::protocol::Edge::{DownPublish, DownReuse, UpPublish, UpReuse};
use shm_core::protocol::step::gather_release;
use shm_core::protocol::{Board, Ring, RingName};

/// Two ranks release four slices through two cells.
fn two_ranks_release(mutant: Mutant) {
    run_ranks(&World::of_cells(mutant, 2, 0, 2), |board| {
        let mut ring = Ring::new(RingName::Down, 2, 2);
        let links = Links::flat(board.rank(), 2, 0);
        for _ in 0..4 {
            release_word(board, RingName::Down, &mut ring, &links, 0);
        }
    });
}

model! {
    release_of_two, Bound::Preemptions(3), two_ranks_release;
    rejects_a_relaxed_stamp: Mutant::PublishRelaxed(DownPublish) => [Race];
    rejects_a_relaxed_look_at_a_stamp: Mutant::ObserveRelaxed(DownPublish) => [Race];
    rejects_a_stamp_not_waited_for: Mutant::SkipWait(DownPublish) => [Race, WrongValue];
    rejects_a_relaxed_done: Mutant::PublishRelaxed(DownReuse) => [Race];
    rejects_a_relaxed_look_at_done: Mutant::ObserveRelaxed(DownReuse) => [Race];
    rejects_reuse_without_wait: Mutant::SkipWait(DownReuse) => [Race, WrongValue, Deadlock];
}

/// Three ranks in a chain release three slices through two cells each: the one in the middle reads and is read.
fn a_chain_releases(mutant: Mutant) {
    run_ranks(&World::of_cells(mutant, 3, 0, 2), |board| {
        let mut ring = Ring::new(RingName::Down, 2, 3);
        let links = chain(&[0, 1, 2], board.rank());
        for _ in 0..3 {
            release_word(board, RingName::Down, &mut ring, &links, 0);
        }
    });
}

model! {
    release_along_a_chain, Bound::Preemptions(2), a_chain_releases;
    rejects_a_relaxed_stamp: Mutant::PublishRelaxed(DownPublish) => [Race];
    rejects_a_relaxed_look_at_a_stamp: Mutant::ObserveRelaxed(DownPublish) => [Race];
    rejects_a_stamp_not_waited_for: Mutant::SkipWait(DownPublish) => [Race, WrongValue];
    rejects_a_relaxed_done: Mutant::PublishRelaxed(DownReuse) => [Race];
    rejects_a_relaxed_look_at_done: Mutant::ObserveRelaxed(DownReuse) => [Race];
    rejects_reuse_without_wait: Mutant::SkipWait(DownReuse) => [Race, WrongValue, Deadlock];
}

/// A root with two children, which poll the one stamp that it writes, three times through one cell.
fn a_root_releases_to_two(mutant: Mutant) {
    run_ranks(&World::of_cells(mutant, 3, 0, 1), |board| {
        let mut ring = Ring::new(RingName::Down, 1, 3);
        let links = Links::flat(board.rank(), 3, 0);
        for _ in 0..3 {
            release_word(board, RingName::Down, &mut ring, &links, 0);
        }
    });
}

model! {
    release_to_two_children, Bound::Preemptions(2), a_root_releases_to_two;
    rejects_a_relaxed_stamp: Mutant::PublishRelaxed(DownPublish) => [Race];
    rejects_a_relaxed_look_at_a_stamp: Mutant::ObserveRelaxed(DownPublish) => [Race];
    rejects_a_relaxed_done: Mutant::PublishRelaxed(DownReuse) => [Race];
    rejects_a_relaxed_look_at_done: Mutant::ObserveRelaxed(DownReuse) => [Race];
    rejects_reuse_without_wait: Mutant::SkipWait(DownReuse) => [Race, WrongValue, Deadlock];
}

/// Two ranks gather four slices through two cells: a pipeline deeper than one.
fn two_ranks_gather(mutant: Mutant) {
    run_ranks(&World::of_cells(mutant, 2, 2, 0), |board| {
        let mut ring = Ring::new(RingName::Up, 2, 2);
        let links = Links::flat(board.rank(), 2, 0);
        for _ in 0..4 {
            gather_words(board, RingName::Up, &mut ring, &links);
        }
    });
}

model! {
    gather_of_two, Bound::Preemptions(3), two_ranks_gather;
    rejects_a_relaxed_stamp: Mutant::PublishRelaxed(UpPublish) => [Race];
    rejects_a_relaxed_look_at_a_stamp: Mutant::ObserveRelaxed(UpPublish) => [Race];
    rejects_a_stamp_not_waited_for: Mutant::SkipWait(UpPublish) => [Race, WrongValue];
    rejects_a_relaxed_done: Mutant::PublishRelaxed(UpReuse) => [Race];
    rejects_a_relaxed_look_at_done: Mutant::ObserveRelaxed(UpReuse) => [Race];
    rejects_reuse_without_wait: Mutant::SkipWait(UpReuse) => [Race, WrongValue, Deadlock];
}

/// Three ranks in a chain gather three slices through two cells each.
fn a_chain_gathers(mutant: Mutant) {
    run_ranks(&World::of_cells(mutant, 3, 2, 0), |board| {
        let mut ring = Ring::new(RingName::Up, 2, 3);
        let links = chain(&[0, 1, 2], board.rank());
        for _ in 0..3 {
            gather_words(board, RingName::Up, &mut ring, &links);
        }
    });
}

model! {
    gather_along_a_chain, Bound::Preemptions(2), a_chain_gathers;
    rejects_a_relaxed_stamp: Mutant::PublishRelaxed(UpPublish) => [Race];
    rejects_a_relaxed_look_at_a_stamp: Mutant::ObserveRelaxed(UpPublish) => [Race];
    rejects_a_stamp_not_waited_for: Mutant::SkipWait(UpPublish) => [Race, WrongValue];
    rejects_a_relaxed_done: Mutant::PublishRelaxed(UpReuse) => [Race];
    rejects_a_relaxed_look_at_done: Mutant::ObserveRelaxed(UpReuse) => [Race];
    rejects_reuse_without_wait: Mutant::SkipWait(UpReuse) => [Race, WrongValue, Deadlock];
}

/// One call of the pipeline, through two cells each way.
fn pipeline(board: &ModelBoard, up: &mut Ring, down: &mut Ring, slices: u64, gather: &Links, release: &Links) {
    let (first_up, slots) = (up.next_position(), up.slots() as u64);
    // The ranks' words are those of the up position; the sum goes down under the same number.
    gather_release(
        board,
        (up, gather),
        (down, release),
        slices,
        TAG,
        |slice, own| {
            let position = first_up + slice;
            fold(board, RingName::Up, gather, position, (position % slots) as usize, own);
        },
        |slice, passage| pass(board, RingName::Down, passage, sum_of_all(board, first_up + slice)),
    )
    .unwrap();
}

/// Two ranks, four slices, two cells each way: the leaf is two slices ahead of what it takes.
fn pipeline_of_two_ranks(mutant: Mutant) {
    run_ranks(&World::of_cells(mutant, 2, 2, 2), |board| {
        let (mut up, mut down) = (Ring::new(RingName::Up, 2, 2), Ring::new(RingName::Down, 2, 2));
        let links = Links::flat(board.rank(), 2, 0);
        pipeline(board, &mut up, &mut down, 4, &links, &links);
    });
}

model! {
    pipeline_of_two, Bound::Preemptions(3), pipeline_of_two_ranks;
    rejects_a_relaxed_up_stamp: Mutant::PublishRelaxed(UpPublish) => [Race];
    rejects_a_relaxed_look_at_an_up_stamp: Mutant::ObserveRelaxed(UpPublish) => [Race];
    rejects_an_up_stamp_not_waited_for: Mutant::SkipWait(UpPublish) => [Race, WrongValue];
    rejects_a_relaxed_down_stamp: Mutant::PublishRelaxed(DownPublish) => [Race];
    rejects_a_relaxed_look_at_a_down_stamp: Mutant::ObserveRelaxed(DownPublish) => [Race];
    rejects_a_down_stamp_not_waited_for: Mutant::SkipWait(DownPublish) => [Race, WrongValue];
    rejects_a_relaxed_up_done: Mutant::PublishRelaxed(UpReuse) => [Race];
    rejects_a_relaxed_look_at_up_done: Mutant::ObserveRelaxed(UpReuse) => [Race];
    rejects_up_reuse_without_wait: Mutant::SkipWait(UpReuse) => [Race, WrongValue, Deadlock];
    rejects_a_relaxed_down_done: Mutant::PublishRelaxed(DownReuse) => [Race];
    rejects_a_relaxed_look_at_down_done: Mutant::ObserveRelaxed(DownReuse) => [Race];
    rejects_down_reuse_without_wait: Mutant::SkipWait(DownReuse) => [Race, WrongValue, Deadlock];
}

/// Three ranks, two slices, one cell each way; up a chain, down a flat tree.
fn pipeline_of_three_ranks(mutant: Mutant) {
    run_ranks(&World::of_cells(mutant, 3, 1, 1), |board| {
        let (mut up, mut down) = (Ring::new(RingName::Up, 1, 3), Ring::new(RingName::Down, 1, 3));
        let rank = board.rank();
        pipeline(board, &mut up, &mut down, 2, &chain(&[0, 1, 2], rank), &Links::flat(rank, 3, 0));
    });
}

model! {
    pipeline_of_three, Bound::Preemptions(2), pipeline_of_three_ranks;
    rejects_a_relaxed_up_stamp: Mutant::PublishRelaxed(UpPublish) => [Race];
    rejects_a_relaxed_look_at_an_up_stamp: Mutant::ObserveRelaxed(UpPublish) => [Race];
    rejects_a_relaxed_up_done: Mutant::PublishRelaxed(UpReuse) => [Race];
    rejects_a_relaxed_look_at_up_done: Mutant::ObserveRelaxed(UpReuse) => [Race];
    rejects_up_reuse_without_wait: Mutant::SkipWait(UpReuse) => [Race, WrongValue, Deadlock];
    rejects_a_relaxed_down_stamp: Mutant::PublishRelaxed(DownPublish) => [Race];
    rejects_a_relaxed_look_at_a_down_stamp: Mutant::ObserveRelaxed(DownPublish) => [Race];
    rejects_a_relaxed_down_done: Mutant::PublishRelaxed(DownReuse) => [Race];
    rejects_a_relaxed_look_at_down_done: Mutant::ObserveRelaxed(DownReuse) => [Race];
    rejects_down_reuse_without_wait: Mutant::SkipWait(DownReuse) => [Race, WrongValue, Deadlock];
}
