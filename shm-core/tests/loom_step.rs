//! Edges U1, U2, D1 and D2 in the release step, the gather step, and the pipeline of both.

mod model;

use model::Tree::{Chain, Flat};
use model::check::model;
use model::{Bound, Mutant, World};
use shm_core::protocol::RingName::{Down, Up};

/// Two ranks release four slices through two cells.
fn two_ranks_release(mutant: Mutant) {
    World::new(mutant, 2).down(2).run(|rank| {
        for _ in 0..4 {
            rank.release(Down, Flat(0));
        }
    });
}

model! {
    release_of_two, Bound::Preemptions(3), two_ranks_release, [D1, D2];
}

/// Three ranks in a chain release three slices through two cells each: the one in the middle reads and is read.
fn a_chain_releases(mutant: Mutant) {
    World::new(mutant, 3).down(2).run(|rank| {
        for _ in 0..3 {
            rank.release(Down, Chain(&[0, 1, 2]));
        }
    });
}

model! {
    release_along_a_chain, Bound::Preemptions(2), a_chain_releases, [D1, D2];
    rejects_done_before_the_copy: Mutant::DoneTooEarly(Down) => [Race, WrongValue, Deadlock];
}

/// A root with two children, which poll the one stamp that it writes, three times through one cell.
fn a_root_releases_to_two(mutant: Mutant) {
    World::new(mutant, 3).down(1).run(|rank| {
        for _ in 0..3 {
            rank.release(Down, Flat(0));
        }
    });
}

model! {
    release_to_two_children, Bound::Preemptions(2), a_root_releases_to_two, [D1, D2];
    rejects_a_child_forgotten: Mutant::ReaderForgotten(2) => [Race, WrongValue, Deadlock];
}

/// Two ranks gather four slices through two cells: a pipeline deeper than one.
fn two_ranks_gather(mutant: Mutant) {
    World::new(mutant, 2).up(2).run(|rank| {
        for _ in 0..4 {
            rank.gather(Up, Flat(0));
        }
    });
}

model! {
    gather_of_two, Bound::Preemptions(3), two_ranks_gather, [U1, U2];
}

/// Three ranks in a chain gather three slices through two cells each.
fn a_chain_gathers(mutant: Mutant) {
    World::new(mutant, 3).up(2).run(|rank| {
        for _ in 0..3 {
            rank.gather(Up, Chain(&[0, 1, 2]));
        }
    });
}

model! {
    gather_along_a_chain, Bound::Preemptions(2), a_chain_gathers, [U1, U2];
    rejects_done_before_the_fold: Mutant::DoneTooEarly(Up) => [Race, WrongValue, Deadlock];
}

/// Two ranks, four slices, two cells each way: the leaf is two slices ahead of what it takes.
fn pipeline_of_two_ranks(mutant: Mutant) {
    World::new(mutant, 2).up(2).down(2).run(|rank| {
        rank.pipeline(4, Flat(0), Flat(0));
    });
}

model! {
    pipeline_of_two, Bound::Preemptions(3), pipeline_of_two_ranks, [U1, U2, D1, D2];
}

/// Three ranks, two slices, one cell each way; up a chain, down a flat tree.
fn pipeline_of_three_ranks(mutant: Mutant) {
    World::new(mutant, 3).up(1).down(1).run(|rank| {
        rank.pipeline(2, Chain(&[0, 1, 2]), Flat(0));
    });
}

model! {
    pipeline_of_three, Bound::Preemptions(2), pipeline_of_three_ranks, [U1, U2, D1, D2];
}
