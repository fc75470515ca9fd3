//! Every algorithm, every goal, 1 to 300 ranks: the schedules are right, and cost what the formulas say.

use hier::schedule::{Algorithm, Error, Goal, Order, Schedule, check};

const MOST: u32 = 300;

/// All roots where there are few ranks; else the first, the last and one in between, another one for each number.
fn roots(ranks: u32) -> Vec<u32> {
    if ranks <= 33 {
        return (0..ranks).collect();
    }
    let scattered = 1 + ranks * 2_654_435 / 7 % (ranks - 2);
    vec![0, ranks - 1, scattered]
}

fn goals(ranks: u32) -> Vec<Goal> {
    let mut goals = vec![Goal::Allreduce, Goal::ReduceScatter, Goal::Allgather, Goal::Barrier];
    for root in roots(ranks) {
        goals.extend([Goal::Reduce { root }, Goal::Broadcast { root }]);
    }
    goals
}

/// What the module's page promises, written down once more.
fn serves(algorithm: Algorithm, goal: Goal, ranks: u32) -> bool {
    match goal {
        Goal::Allreduce => !matches!(algorithm, Algorithm::ScatterRing { .. } | Algorithm::Dissemination),
        Goal::Reduce { .. } => matches!(algorithm, Algorithm::Binomial | Algorithm::HalvingDoubling { .. }),
        Goal::Broadcast { .. } => matches!(algorithm, Algorithm::Binomial | Algorithm::ScatterRing { .. }),
        Goal::ReduceScatter | Goal::Allgather => match algorithm {
            Algorithm::HalvingDoubling { order: Order::Farthest } => ranks.is_power_of_two(),
            _ => matches!(algorithm, Algorithm::Ring | Algorithm::Circulant),
        },
        Goal::Barrier => algorithm == Algorithm::Dissemination,
    }
}

/// Right, as cheap as the formula says, and in step: what is sent in a round is received in the same round.
fn examine(algorithm: Algorithm, goal: Goal, ranks: u32) {
    let what = format!("{algorithm}, {goal}, {ranks} ranks");
    let schedule = Schedule::new(algorithm, goal, ranks).unwrap();
    if let Err(flaw) = check(&schedule.programs, goal, algorithm.is_ordered(goal)) {
        panic!("{what}: {flaw}");
    }

    let formula = algorithm.pattern(goal, ranks).unwrap().formula();
    let segments = schedule.programs[0].segments;
    // As many elements as segments, times 5: all segments are equally long.
    let elements = 5 * segments as usize;
    let total = schedule.total(elements);
    assert!(schedule.programs.iter().all(|program| program.rounds.len() == formula.rounds as usize), "{what}");
    assert!(total.rounds <= formula.rounds, "{what}");
    assert_eq!((total.sent.messages, total.sent.segments), (formula.messages, formula.segments), "{what}");
    assert_eq!(total.sent.elements, 5 * formula.segments, "{what}");
    assert_eq!(total.sent, total.received, "{what}");
    let busiest = schedule.programs.iter().map(|program| program.count(elements).sent.segments).max().unwrap();
    assert_eq!(busiest, formula.busiest, "{what}");

    for round in 0..formula.rounds as usize {
        let rounds = || schedule.programs.iter().map(|program| (program.rank, &program.rounds[round]));
        let mut sent: Vec<_> = rounds().flat_map(|(rank, r)| r.sends.iter().map(move |s| (rank, s.to))).collect();
        let mut received: Vec<_> =
            rounds().flat_map(|(rank, r)| r.receives.iter().map(move |r| (r.from, rank))).collect();
        sent.sort_unstable();
        received.sort_unstable();
        assert_eq!(sent, received, "{what}, round {round}");
        assert!(!sent.is_empty(), "{what}, round {round}: nobody has anything to do");
    }
}

fn examine_all(sizes: impl Iterator<Item = u32>) {
    for ranks in sizes {
        for goal in goals(ranks) {
            for algorithm in Algorithm::ALL {
                // The programs of a ring are long. Another root gives ranks other names, which small numbers have
                // shown.
                let long = matches!(algorithm, Algorithm::ScatterRing { .. }) && ranks > 33;
                if long && goal.root().is_none_or(|root| root == 0 || root == ranks - 1) {
                    continue;
                }
                if serves(algorithm, goal, ranks) {
                    examine(algorithm, goal, ranks);
                } else {
                    let error = algorithm.pattern(goal, ranks).unwrap_err();
                    assert!(matches!(error, Error::Unserved { .. }), "{algorithm}, {goal}, {ranks}: {error}");
                }
            }
        }
    }
}

// In two parts, for two cores.
#[test]
fn odd_numbers_of_ranks() {
    examine_all((1..=MOST).step_by(2));
}

#[test]
fn even_numbers_of_ranks() {
    examine_all((2..=MOST).step_by(2));
}

/// Whoever asks for a collective gets one, for any number of ranks.
#[test]
fn every_goal_is_served() {
    for ranks in 1..=MOST {
        for goal in goals(ranks) {
            assert!(Algorithm::ALL.into_iter().any(|a| a.pattern(goal, ranks).is_ok()), "{goal} over {ranks}");
            let ordered = Algorithm::ALL.into_iter().find(|a| a.is_ordered(goal) && a.pattern(goal, ranks).is_ok());
            let exempt = goal == Goal::ReduceScatter;
            assert!(ordered.is_some() || exempt, "{goal} over {ranks} for operators that do not commute");
        }
    }
}

/// One program of many ranks takes a moment, and its own rounds are all that it has.
#[test]
fn programs_of_many_ranks() {
    for ranks in [4095, 4096, 4097, 1 << 20] {
        for algorithm in Algorithm::ALL {
            for goal in [Goal::Allreduce, Goal::Broadcast { root: 7 }, Goal::Barrier] {
                let Ok(pattern) = algorithm.pattern(goal, ranks) else { continue };
                let program = pattern.program(ranks / 2 + 1).unwrap();
                assert_eq!(program.rounds.len() as u32, pattern.formula().rounds, "{algorithm}, {goal}, {ranks}");
            }
        }
    }
}

/// Thousands of ranks can be checked where the vector is not parted.
#[test]
fn schedules_of_many_ranks() {
    for ranks in [4095, 4096, 4097] {
        for (algorithm, goal) in [
            (Algorithm::RecursiveDoubling, Goal::Allreduce),
            (Algorithm::Binomial, Goal::Reduce { root: 2718 }),
            (Algorithm::Binomial, Goal::Broadcast { root: 4094 }),
            (Algorithm::Dissemination, Goal::Barrier),
        ] {
            let schedule = Schedule::new(algorithm, goal, ranks).unwrap();
            assert_eq!(check(&schedule.programs, goal, true), Ok(()), "{algorithm}, {goal}, {ranks}");
        }
    }
}

#[test]
fn refusals_say_what_to_do() {
    let refusals = [
        (Algorithm::Ring.program(Goal::Allreduce, 0, 0), "over 0 ranks"),
        (Algorithm::Ring.program(Goal::Allreduce, u32::MAX, 0), "1 to 1048576"),
        (Algorithm::Ring.program(Goal::Allreduce, 4, 4), "rank 4 is not one of the 4 ranks"),
        (Algorithm::Binomial.program(Goal::Reduce { root: 9 }, 9, 0), "root 9 is not one of the 9 ranks"),
        (Algorithm::Ring.program(Goal::Broadcast { root: 0 }, 9, 0), "`binomial` serves reduce and broadcast"),
        (
            Algorithm::HalvingDoubling { order: Order::Farthest }.program(Goal::Allgather, 6, 0),
            "`halving-farthest` makes no allgather over 6 ranks",
        ),
    ];
    for (refusal, why) in refusals {
        let error = refusal.unwrap_err().to_string();
        assert!(error.contains(why), "{why}: {error}");
    }
}
