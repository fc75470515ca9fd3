//! A share's slice readiness: edges U1, U2, D1 and D2 between contributors and leaders, without a barrier anywhere.

mod model;

use model::calls::TAG;
use model::check::model;
use model::world::{expect_value, word_of};
use model::{Bound, ModelBoard, Mutant, World, run_ranks};
use shm_core::protocol::Edge::{DownPublish, DownReuse, UpPublish, UpReuse};
use shm_core::protocol::shares::{self, LEAST_DOWN_SLOTS, Shares, Takers, Work, least_up_slots};
use shm_core::protocol::{Board, Ring, RingName};

/// The words of one call: a word for each slice of each share.
struct Slices<'a> {
    board: &'a ModelBoard,
    leaders: &'a [usize],
    call: u64,
    taken: u64,
}

impl Slices<'_> {
    /// What `rank` contributes to a slice.
    fn word(&self, rank: usize, round: u64, leader: usize) -> u64 {
        word_of(rank, 100 * self.call + 10 * round + leader as u64 + 1)
    }

    fn sum(&self, round: u64, leader: usize) -> u64 {
        (0..self.board.size()).map(|rank| self.word(rank, round, leader)).sum()
    }
}

impl Work for Slices<'_> {
    fn contribute(&mut self, round: u64, leader: usize, slot: usize) {
        self.board.fill(RingName::Up, slot, self.word(self.board.rank(), round, leader));
    }

    fn fold(&mut self, round: u64, leader: usize, up: usize, down: Option<usize>) {
        let me = self.board.rank();
        let others = (0..self.board.size()).filter(|&rank| rank != me);
        let sum =
            others.map(|rank| self.board.read(RingName::Up, rank, up)).sum::<u64>() + self.word(me, round, leader);
        expect_value(sum, self.sum(round, leader));
        if let Some(slot) = down {
            self.board.fill(RingName::Down, slot, sum);
        }
    }

    fn take(&mut self, round: u64, leader: usize, slot: usize) {
        expect_value(self.board.read(RingName::Down, self.leaders[leader], slot), self.sum(round, leader));
        self.taken += 1;
    }
}

fn world(mutant: Mutant, size: usize, leaders: usize) -> std::sync::Arc<World> {
    World::of_cells(mutant, size, least_up_slots(leaders), LEAST_DOWN_SLOTS)
}

fn reduce(
    board: &ModelBoard,
    up: &mut Ring,
    down: &mut Ring,
    leaders: &[usize],
    rounds: u64,
    call: u64,
    takers: Takers,
) {
    let mut work = Slices { board, leaders, call, taken: 0 };
    shares::run(board, up, down, Shares { leaders, rounds, takers }, TAG, &mut work).unwrap();
    let takes = takers == Takers::All || takers == Takers::Root(board.rank());
    let others = leaders.iter().filter(|&&leader| leader != board.rank()).count() as u64;
    assert_eq!(work.taken, if takes { rounds * others } else { 0 });
}

fn rings(size: usize, leaders: usize) -> (Ring, Ring) {
    let up = Ring::new(RingName::Up, least_up_slots(leaders), size);
    (up, Ring::new(RingName::Down, LEAST_DOWN_SLOTS, size))
}

/// Two ranks, both leaders, three rounds through the least number of cells: an allreduce.
fn two_leaders_of_two(mutant: Mutant) {
    run_ranks(&world(mutant, 2, 2), |board| {
        let (mut up, mut down) = rings(2, 2);
        reduce(board, &mut up, &mut down, &[0, 1], 3, 0, Takers::All);
    });
}

model! {
    two_leaders, Bound::Preemptions(3), two_leaders_of_two;
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

/// Two ranks, one leader, to a root that is not the leader, three rounds; then an allreduce of one round.
fn one_leader_and_another_root(mutant: Mutant) {
    run_ranks(&world(mutant, 2, 1), |board| {
        let (mut up, mut down) = rings(2, 1);
        reduce(board, &mut up, &mut down, &[0], 3, 0, Takers::Root(1));
        reduce(board, &mut up, &mut down, &[0], 1, 1, Takers::All);
    });
}

model! {
    one_leader, Bound::Preemptions(3), one_leader_and_another_root;
    rejects_a_relaxed_up_stamp: Mutant::PublishRelaxed(UpPublish) => [Race];
    rejects_a_relaxed_look_at_a_down_stamp: Mutant::ObserveRelaxed(DownPublish) => [Race];
    rejects_a_relaxed_look_at_up_done: Mutant::ObserveRelaxed(UpReuse) => [Race];
    rejects_up_reuse_without_wait: Mutant::SkipWait(UpReuse) => [Race, WrongValue, Deadlock];
    rejects_a_relaxed_look_at_down_done: Mutant::ObserveRelaxed(DownReuse) => [Race];
    rejects_down_reuse_without_wait: Mutant::SkipWait(DownReuse) => [Race, WrongValue, Deadlock];
}

/// Three ranks, of which the first and the last lead, one round of an allreduce, then one to rank 1, which leads nothing.
fn two_leaders_of_three(mutant: Mutant) {
    run_ranks(&world(mutant, 3, 2), |board| {
        let (mut up, mut down) = rings(3, 2);
        reduce(board, &mut up, &mut down, &[0, 2], 1, 0, Takers::All);
        reduce(board, &mut up, &mut down, &[0, 2], 1, 1, Takers::Root(1));
    });
}

model! {
    two_leaders_and_a_follower, Bound::Preemptions(2), two_leaders_of_three;
    rejects_a_relaxed_up_stamp: Mutant::PublishRelaxed(UpPublish) => [Race];
    rejects_a_relaxed_look_at_an_up_stamp: Mutant::ObserveRelaxed(UpPublish) => [Race];
    rejects_a_relaxed_down_stamp: Mutant::PublishRelaxed(DownPublish) => [Race];
    rejects_a_relaxed_look_at_a_down_stamp: Mutant::ObserveRelaxed(DownPublish) => [Race];
    rejects_an_up_stamp_not_waited_for: Mutant::SkipWait(UpPublish) => [Race, WrongValue];
    rejects_a_down_stamp_not_waited_for: Mutant::SkipWait(DownPublish) => [Race, WrongValue];
}
