//! Schedules executed with lists of ranks for values, joined end to end: an operator that does not commute, and forgets
//! nothing. The executor here shares nothing with `check`.

mod schedule_naive;

use hier::schedule::{Algorithm, Goal, Schedule, check};

#[test]
fn answers_are_right() {
    let mut seen = 0;
    for ranks in 1..=20 {
        for root in 0..ranks {
            for goal in [
                Goal::Allreduce,
                Goal::Reduce { root },
                Goal::Broadcast { root },
                Goal::ReduceScatter,
                Goal::Allgather,
                Goal::Barrier,
            ] {
                if goal.root().is_none() && root != 0 {
                    continue;
                }
                for algorithm in Algorithm::ALL {
                    let Ok(schedule) = Schedule::new(algorithm, goal, ranks) else { continue };
                    let verdict = schedule_naive::execute(&schedule.programs, goal, algorithm.is_ordered(goal));
                    assert_eq!(verdict, Ok(()), "{algorithm}, {goal}, {ranks} ranks\n{schedule}");
                    seen += 1;
                }
            }
        }
    }
    assert!(seen > 1000, "{seen}");
}

/// What is said not to be in rank order really is not: the promise is as strong as it can be.
#[test]
fn unordered_algorithms_are_unordered() {
    for algorithm in Algorithm::ALL {
        for goal in [Goal::Allreduce, Goal::ReduceScatter, Goal::Reduce { root: 2 }] {
            let Ok(schedule) = Schedule::new(algorithm, goal, 8) else { continue };
            let ordered = algorithm.is_ordered(goal);
            assert_eq!(schedule_naive::execute(&schedule.programs, goal, true).is_ok(), ordered, "{algorithm}, {goal}");
            assert_eq!(check(&schedule.programs, goal, true).is_ok(), ordered, "{algorithm}, {goal}");
        }
    }
}
