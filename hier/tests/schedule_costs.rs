//! The figures of the papers, and what parts of uneven length cost.

use hier::schedule::{Algorithm, Exchanges, Goal, Order, Pattern, Schedule};

fn pattern(algorithm: Algorithm, goal: Goal, ranks: u32) -> Pattern {
    algorithm.pattern(goal, ranks).unwrap()
}

/// Patarasuk and Yuan: 2(N-1) rounds, and 2(N-1)/N of the vector a rank, which is the least there can be.
#[test]
fn a_ring_is_optimal() {
    for ranks in 1..=64 {
        let ring = pattern(Algorithm::Ring, Goal::Allreduce, ranks);
        assert_eq!(ring.rounds(), 2 * (ranks - 1));
        let elements = 12 * ranks as usize;
        for rank in 0..ranks {
            let count = ring.count(rank, elements);
            assert_eq!(count.sent.elements * u64::from(ranks), 2 * u64::from(ranks - 1) * elements as u64);
            assert_eq!(count.sent, count.received);
        }
        // Together they send every element 2(N-1) times, however it is parted.
        for elements in [0, 1, 7, 100, 1001] {
            let total = ring.total(elements);
            assert_eq!(total.sent.elements, 2 * u64::from(ranks - 1) * elements as u64);
        }
    }
}

/// Patarasuk and Yuan's first iteration: rank i sends segment i - 1; and at the end of the first half it has segment i.
#[test]
fn the_order_of_segments_in_a_ring() {
    let ring = pattern(Algorithm::Ring, Goal::Allreduce, 5);
    for rank in 0..5 {
        assert_eq!(ring.round(rank, 0).sends[0].span.first, (rank + 4) % 5);
        assert_eq!(ring.round(rank, 3).receives[0].span.first, rank);
        assert_eq!(ring.round(rank, 4).sends[0].span.first, rank);
    }
}

/// Zhou et al.: transfers of the ring allgather after the scatter, native and saving.
#[test]
fn transfers_of_the_scatter_ring_broadcast() {
    let figures = [
        (8, 56, 44),
        (9, 72, 59),
        (10, 90, 75),
        (16, 240, 208),
        (17, 272, 239),
        (33, 1056, 975),
        (64, 4032, 3840),
        (65, 4160, 3967),
        (129, 16512, 16063),
        (256, 65280, 64256),
    ];
    for (ranks, native, saving) in figures {
        for (saves, transfers) in [(false, native), (true, saving)] {
            for root in [0, ranks / 3, ranks - 1] {
                let all = pattern(Algorithm::ScatterRing { saving: saves }, Goal::Broadcast { root }, ranks).total(0);
                // The scatter is one message for everybody but the root.
                assert_eq!(all.sent.messages - u64::from(ranks - 1), transfers, "{ranks} ranks, saving: {saves}");
            }
        }
    }
}

/// Träff: ceil(log2 N) rounds and N-1 blocks in each half.
#[test]
fn a_circulant_allreduce_is_optimal_in_rounds_and_blocks() {
    for ranks in 1..=130_u32 {
        let circulant = pattern(Algorithm::Circulant, Goal::Allreduce, ranks);
        assert_eq!(circulant.rounds(), 2 * (0..).find(|&l| 1 << l >= ranks).unwrap());
        for rank in 0..ranks {
            assert_eq!(circulant.count(rank, 0).sent.segments, 2 * u64::from(ranks - 1));
        }
    }
}

#[test]
fn recursive_doubling_and_halving_of_powers_of_two() {
    for log in 0..=8_u32 {
        let ranks = 1 << log;
        let elements = 3 * ranks as usize;
        let doubling = pattern(Algorithm::RecursiveDoubling, Goal::Allreduce, ranks);
        assert_eq!(doubling.rounds(), log);
        for rank in 0..ranks {
            assert_eq!(doubling.count(rank, elements).sent.elements, u64::from(log) * elements as u64);
        }
        for order in [Order::Nearest, Order::Farthest] {
            let halving = pattern(Algorithm::HalvingDoubling { order }, Goal::Allreduce, ranks);
            assert_eq!(halving.rounds(), 2 * log);
            for rank in 0..ranks {
                assert_eq!(halving.count(rank, elements).sent.elements, 6 * u64::from(ranks - 1));
            }
        }
    }
}

/// An exchange of what is left saves a round; the first costs no byte, the second 2/N of the vector, the third 8/N.
#[test]
fn exchanges_save_rounds() {
    for log in 3..=8_u32 {
        let ranks = 1 << log;
        let elements = 3 * ranks as usize;
        for (exchanges, more) in Exchanges::ALL.into_iter().zip([0, 6, 30]) {
            let hybrid = pattern(Algorithm::HalvingExchange { exchanges }, Goal::Allreduce, ranks);
            assert_eq!(hybrid.rounds(), 2 * log - exchanges.number());
            for rank in 0..ranks {
                assert_eq!(hybrid.count(rank, elements).sent.elements, 6 * u64::from(ranks - 1) + more);
            }
        }
    }
}

/// Nearest first, half of the vector goes to the neighbour; farthest first, half way round.
#[test]
fn how_far_the_bytes_of_halving_go() {
    let distances = |order| {
        let halving = pattern(Algorithm::HalvingDoubling { order }, Goal::Allreduce, 8);
        let far = |(from, to, bytes): (usize, usize, u64)| (from.abs_diff(to), bytes);
        (0..3).map(|round| halving.flows(round, 8, 4).map(far).max().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(distances(Order::Nearest), [(1, 16), (2, 8), (4, 4)]);
    assert_eq!(distances(Order::Farthest), [(4, 16), (2, 8), (1, 4)]);
}

/// Flows, counts and the programs themselves agree, for lengths that do not divide.
#[test]
fn flows_are_what_is_counted() {
    for algorithm in Algorithm::ALL {
        for goal in [Goal::Allreduce, Goal::Reduce { root: 3 }, Goal::Broadcast { root: 5 }, Goal::Barrier] {
            let Ok(pattern) = algorithm.pattern(goal, 7) else { continue };
            let schedule = Schedule::new(algorithm, goal, 7).unwrap();
            for elements in [0, 1, 6, 7, 100] {
                let mut bytes = 0;
                let mut messages = 0;
                for round in 0..pattern.rounds() {
                    let flows: Vec<_> = pattern.flows(round, elements, 8).collect();
                    assert_eq!(flows, schedule.flows(round as usize, elements, 8).collect::<Vec<_>>());
                    bytes += flows.iter().map(|flow| flow.2).sum::<u64>();
                    messages += flows.len() as u64;
                }
                let total = pattern.total(elements);
                assert_eq!(total, schedule.total(elements));
                assert_eq!((messages, bytes), (total.sent.messages, 8 * total.sent.elements), "{algorithm}, {goal}");
            }
        }
    }
}
