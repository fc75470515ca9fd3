//! Trap 1: different trees, roots and classes of messages that follow one another in one ring.

mod model;

use model::calls::{chain, gather_words, release_word};
use model::check::model;
use model::{Bound, Mutant, World, run_ranks};
use shm_core::Links;
use shm_core::protocol::Edge::{DownReuse, UpPublish, UpReuse};
use shm_core::protocol::{Board, Ring, RingName};

/// Three ranks reduce to rank 0 by the flat tree (a short message, say), then along the chain 1, 2, 0 (a long one), through
/// one cell. In the second tree rank 2 is the parent of rank 1, but rank 0 is who still reads rank 1's cell.
fn gathers_of_two_trees(mutant: Mutant) {
    run_ranks(&World::of_cells(mutant, 3, 1, 0), |board| {
        let mut ring = Ring::new(RingName::Up, 1, 3);
        gather_words(board, RingName::Up, &mut ring, &Links::flat(board.rank(), 3, 0));
        gather_words(board, RingName::Up, &mut ring, &chain(&[0, 2, 1], board.rank()));
    });
}

model! {
    two_gather_trees, Bound::Preemptions(3), gathers_of_two_trees;
    rejects_progress_of_another_trees_parent: Mutant::OthersProgress { of: 0, shown: 2 } => [Race, WrongValue, Deadlock];
    rejects_a_relaxed_stamp: Mutant::PublishRelaxed(UpPublish) => [Race];
    rejects_a_relaxed_look_at_a_stamp: Mutant::ObserveRelaxed(UpPublish) => [Race];
    rejects_a_relaxed_done: Mutant::PublishRelaxed(UpReuse) => [Race];
    rejects_a_relaxed_look_at_done: Mutant::ObserveRelaxed(UpReuse) => [Race];
    rejects_reuse_without_wait: Mutant::SkipWait(UpReuse) => [Race, WrongValue, Deadlock];
}

/// Three ranks: a broadcast from rank 0 by the flat tree, then one along the chain 1, 0, 2, through one cell. Rank 0's child
/// in the second tree is rank 2, but rank 1 reads rank 0's cell too.
fn releases_of_two_trees(mutant: Mutant) {
    run_ranks(&World::of_cells(mutant, 3, 0, 1), |board| {
        let mut ring = Ring::new(RingName::Down, 1, 3);
        release_word(board, RingName::Down, &mut ring, &Links::flat(board.rank(), 3, 0), 0);
        release_word(board, RingName::Down, &mut ring, &chain(&[1, 0, 2], board.rank()), 1);
    });
}

model! {
    two_release_trees, Bound::Preemptions(3), releases_of_two_trees;
    rejects_progress_of_another_trees_child: Mutant::OthersProgress { of: 2, shown: 1 } => [Race, WrongValue, Deadlock];
    rejects_a_relaxed_done: Mutant::PublishRelaxed(DownReuse) => [Race];
    rejects_a_relaxed_look_at_done: Mutant::ObserveRelaxed(DownReuse) => [Race];
    rejects_reuse_without_wait: Mutant::SkipWait(DownReuse) => [Race, WrongValue, Deadlock];
}

/// Two trees again, through two cells and in two slices each: the pipeline stays as deep as there are cells, across the
/// change of trees.
fn pipelines_of_two_trees(mutant: Mutant) {
    run_ranks(&World::of_cells(mutant, 3, 2, 0), |board| {
        let mut ring = Ring::new(RingName::Up, 2, 3);
        for _ in 0..2 {
            gather_words(board, RingName::Up, &mut ring, &Links::flat(board.rank(), 3, 0));
        }
        for _ in 0..2 {
            gather_words(board, RingName::Up, &mut ring, &chain(&[0, 2, 1], board.rank()));
        }
    });
}

model! {
    two_gather_pipelines, Bound::Preemptions(2), pipelines_of_two_trees;
    rejects_progress_of_another_trees_parent: Mutant::OthersProgress { of: 0, shown: 2 } => [Race, WrongValue, Deadlock];
    rejects_a_relaxed_done: Mutant::PublishRelaxed(UpReuse) => [Race];
    rejects_a_relaxed_look_at_done: Mutant::ObserveRelaxed(UpReuse) => [Race];
    rejects_reuse_without_wait: Mutant::SkipWait(UpReuse) => [Race, WrongValue, Deadlock];
}
