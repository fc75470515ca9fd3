//! Trap 1: different trees, roots and classes of messages that follow one another in one ring.

mod model;

use model::Tree::{Chain, Flat};
use model::check::model;
use model::{Bound, Mutant, World};
use shm_core::protocol::RingName::{Down, Up};

/// Three ranks reduce to rank 0 by the flat tree (a short message, say), then along the chain 1, 2, 0 (a long one),
/// through one cell. In the second tree rank 2 is the parent of rank 1, but rank 0 is who still reads rank 1's cell.
fn gathers_of_two_trees(mutant: Mutant) {
    World::new(mutant, 3).up(1).run(|rank| {
        rank.gather(Up, Flat(0));
        rank.gather(Up, Chain(&[0, 2, 1]));
    });
}

model! {
    two_gather_trees, Bound::Preemptions(3), gathers_of_two_trees, [U1, U2];
    rejects_progress_of_another_trees_parent: Mutant::OthersProgress { of: 0, shown: 2 } => [Race, WrongValue, Deadlock];
}

/// Three ranks: a broadcast from rank 0 by the flat tree, then one along the chain 1, 0, 2, through one cell. Rank 0's
/// child in the second tree is rank 2, but rank 1 reads rank 0's cell too.
fn releases_of_two_trees(mutant: Mutant) {
    World::new(mutant, 3).down(1).run(|rank| {
        rank.release(Down, Flat(0));
        rank.release(Down, Chain(&[1, 0, 2]));
    });
}

model! {
    two_release_trees, Bound::Preemptions(3), releases_of_two_trees, [D2];
    rejects_progress_of_another_trees_child: Mutant::OthersProgress { of: 2, shown: 1 } => [Race, WrongValue, Deadlock];
}

/// Two trees again, through two cells and in two slices each: the pipeline stays as deep as there are cells, across the
/// change of trees.
fn pipelines_of_two_trees(mutant: Mutant) {
    World::new(mutant, 3).up(2).run(|rank| {
        for _ in 0..2 {
            rank.gather(Up, Flat(0));
        }
        for _ in 0..2 {
            rank.gather(Up, Chain(&[0, 2, 1]));
        }
    });
}

model! {
    two_gather_pipelines, Bound::Preemptions(2), pipelines_of_two_trees, [U2];
    rejects_progress_of_another_trees_parent: Mutant::OthersProgress { of: 0, shown: 2 } => [Race, WrongValue, Deadlock];
}
