//! Programs that are damaged in random ways: `check` must see it.
//!
//! Two kinds of harm. Some make any schedule wrong, so that `check` must refuse it, and say where. Others may by chance
//! do no harm; there the plain executor judges, and `check` must refuse all that it refuses.

mod schedule_naive;

use hier::schedule::{Algorithm, Combine, Flaw, Goal, Program, Receive, Round, Schedule, Send, Span, check};
use proptest::prelude::*;

/// What a schedule is made of: algorithm, goal, number of ranks. All have messages in them.
fn schedules() -> impl Strategy<Value = (Algorithm, Goal, u32)> {
    (0..Algorithm::ALL.len(), 2..24_u32, 0..6_usize, any::<u32>()).prop_filter_map(
        "not served",
        |(algorithm, ranks, goal, root)| {
            let (algorithm, root) = (Algorithm::ALL[algorithm], root % ranks);
            let goal = [
                Goal::Allreduce,
                Goal::Reduce { root },
                Goal::Broadcast { root },
                Goal::ReduceScatter,
                Goal::Allgather,
                Goal::Barrier,
            ][goal];
            algorithm.pattern(goal, ranks).ok().map(|_| (algorithm, goal, ranks))
        },
    )
}

/// Where the sends or receives of a schedule stand: (rank, round, place in the list).
fn places(programs: &[Program], of: impl Fn(&Round) -> usize) -> Vec<(usize, usize, usize)> {
    let of_program = |(rank, program): (usize, &Program)| {
        let rounds = program.rounds.iter().enumerate();
        rounds.flat_map(|(round, r)| (0..of(r)).map(move |i| (rank, round, i))).collect::<Vec<_>>()
    };
    programs.iter().enumerate().flat_map(of_program).collect()
}

fn pick<T: Copy>(list: &[T], seed: usize) -> T {
    list[seed % list.len()]
}

/// Harm that nothing makes good. `None` where the schedule has no place for it.
#[derive(Debug, Clone, Copy)]
enum Fatal {
    DropReceive,
    DropSend,
    DropRound,
    OtherSpan,
    OtherSender,
    OtherReceiver,
    SendTwice,
    KeepOwn,
    LoseOwn,
    TurnOrder,
    Misplace,
}

const FATAL: [Fatal; 11] = [
    Fatal::DropReceive,
    Fatal::DropSend,
    Fatal::DropRound,
    Fatal::OtherSpan,
    Fatal::OtherSender,
    Fatal::OtherReceiver,
    Fatal::SendTwice,
    Fatal::KeepOwn,
    Fatal::LoseOwn,
    Fatal::TurnOrder,
    Fatal::Misplace,
];

fn harm(schedule: &mut Schedule, ordered: bool, fatal: Fatal, seed: usize) -> Option<()> {
    let goal = schedule.goal;
    let programs = &mut schedule.programs;
    let ranks = programs.len() as u32;
    let (rank, round, i) = pick(&places(programs, |round| round.receives.len()), seed);
    let (from, from_round, j) = pick(&places(programs, |round| round.sends.len()), seed);
    let combining: Vec<_> = places(programs, |round| round.receives.len())
        .into_iter()
        .filter(|&(rank, round, i)| programs[rank].rounds[round].receives[i].combine != Combine::Replace)
        .collect();
    match fatal {
        Fatal::DropReceive => drop(programs[rank].rounds[round].receives.remove(i)),
        Fatal::DropSend => drop(programs[from].rounds[from_round].sends.remove(j)),
        Fatal::DropRound => drop(programs[rank].rounds.remove(round)),
        Fatal::OtherSpan => {
            let segments = programs[0].segments;
            let span = &mut programs[rank].rounds[round].receives[i].span;
            *span = match span.count {
                0 => Span { first: 0, count: 1 },
                count if count < segments => Span { first: (span.first + 1) % segments, count },
                count => Span { first: span.first, count: count - 1 },
            };
        }
        Fatal::OtherSender => {
            let from = &mut programs[rank].rounds[round].receives[i].from;
            *from = (*from + 1) % ranks;
        }
        Fatal::OtherReceiver => {
            let to = &mut programs[from].rounds[from_round].sends[j].to;
            *to = (*to + 1 + seed as u32 % (ranks - 1)) % ranks;
        }
        // The same message once more, in a round of its own behind the first, on both sides.
        Fatal::SendTwice => {
            let (rank, round, i) = pick(combining.get(..).filter(|list| !list.is_empty())?, seed);
            let again = programs[rank].rounds[round].receives[i];
            let send = Send { to: rank as u32, span: again.span };
            let sender = &mut programs[again.from as usize].rounds;
            sender.insert(round + 1, Round { sends: vec![send], receives: vec![] });
            programs[rank].rounds.insert(round + 1, Round { sends: vec![], receives: vec![again] });
        }
        // A result is combined with what it is to replace.
        Fatal::KeepOwn => {
            let replacing: Vec<_> = places(programs, |round| round.receives.len())
                .into_iter()
                .filter(|place| !combining.contains(place))
                .collect();
            if replacing.is_empty() || goal == Goal::Barrier {
                return None;
            }
            let (rank, round, i) = pick(&replacing, seed);
            programs[rank].rounds[round].receives[i].combine = pick(&[Combine::Left, Combine::Right], seed / 7);
        }
        // What is there is replaced, not combined.
        Fatal::LoseOwn => {
            let (rank, round, i) = pick(combining.get(..).filter(|list| !list.is_empty())?, seed);
            programs[rank].rounds[round].receives[i].combine = Combine::Replace;
        }
        Fatal::TurnOrder => {
            let (rank, round, i) = pick(combining.get(..).filter(|list| ordered && !list.is_empty())?, seed);
            let combine = &mut programs[rank].rounds[round].receives[i].combine;
            *combine = if *combine == Combine::Left { Combine::Right } else { Combine::Left };
        }
        Fatal::Misplace => programs.swap(rank, (rank + 1) % ranks as usize),
    }
    Some(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn fatal_harm_is_seen((algorithm, goal, ranks) in schedules(), fatal in 0..FATAL.len(), seed in any::<usize>()) {
        let ordered = algorithm.is_ordered(goal);
        let schedule = Schedule::new(algorithm, goal, ranks).unwrap();
        let mut harmed = schedule.clone();
        if harm(&mut harmed, ordered, FATAL[fatal], seed).is_some() {
            prop_assert!(harmed != schedule, "{:?} changes nothing", FATAL[fatal]);
            let seen = check(&harmed.programs, goal, ordered);
            prop_assert!(seen.is_err(), "{:?} was not seen:\n{}", FATAL[fatal], harmed);
        }
    }

    /// Any number of small changes, on one side or on both.
    #[test]
    fn whatever_the_executor_refuses_is_refused(
        (algorithm, goal, ranks) in schedules(),
        changes in prop::collection::vec((0..6_u8, any::<usize>(), any::<usize>()), 1..4),
    ) {
        let mut changed = Schedule::new(algorithm, goal, ranks).unwrap();
        for (kind, seed, more) in changes {
            change(&mut changed.programs, kind, seed, more);
        }
        let ordered = algorithm.is_ordered(goal);
        if check(&changed.programs, goal, ordered).is_ok() {
            let plain = schedule_naive::execute(&changed.programs, goal, ordered);
            prop_assert!(plain.is_ok(), "it passes, but {:?}:\n{}", plain, changed);
        }
    }
}

/// Every kind of fatal harm finds schedules to do it to.
#[test]
fn no_harm_is_idle() {
    for fatal in FATAL {
        let mut done = 0;
        for algorithm in Algorithm::ALL {
            for goal in [Goal::Allreduce, Goal::Reduce { root: 3 }, Goal::Broadcast { root: 5 }, Goal::Barrier] {
                for seed in 0..20 {
                    let Ok(mut schedule) = Schedule::new(algorithm, goal, 7) else { continue };
                    let ordered = algorithm.is_ordered(goal);
                    if harm(&mut schedule, ordered, fatal, seed * 77_777).is_some() {
                        let seen = check(&schedule.programs, goal, ordered);
                        assert!(seen.is_err(), "{fatal:?} of {algorithm}, {goal}:\n{schedule}");
                        done += 1;
                    }
                }
            }
        }
        assert!(done >= 60, "{fatal:?} was done {done} times");
    }
}

/// A change that leaves sends and receives in pairs more often than not.
fn change(programs: &mut [Program], kind: u8, seed: usize, more: usize) {
    let (ranks, segments) = (programs.len() as u32, programs[0].segments);
    let receives = places(programs, |round| round.receives.len());
    if receives.is_empty() {
        return;
    }
    let (rank, round, i) = pick(&receives, seed);
    let Receive { from, span, .. } = programs[rank].rounds[round].receives[i];
    let sender = programs[from as usize].rounds.get_mut(round);
    let send = sender.and_then(|r| r.sends.iter_mut().find(|send| send.to as usize == rank && send.span == span));
    match kind {
        // Another span on both sides.
        0 => {
            let other = Span { first: more as u32 % segments, count: span.count };
            if let Some(send) = send {
                send.span = other;
            }
            programs[rank].rounds[round].receives[i].span = other;
        }
        // The message is left out on both sides.
        1 => {
            if let Some(send) = send.map(|send| *send) {
                programs[from as usize].rounds[round].sends.retain(|other| *other != send);
                programs[rank].rounds[round].receives.remove(i);
            }
        }
        // Another sender.
        2 => {
            let other = more as u32 % ranks;
            let send = send.map(|send| *send).filter(|_| other as usize != rank);
            if let Some(send) = send.filter(|_| round < programs[other as usize].rounds.len()) {
                programs[from as usize].rounds[round].sends.retain(|s| *s != send);
                programs[other as usize].rounds[round].sends.push(send);
                programs[rank].rounds[round].receives[i].from = other;
            }
        }
        // Another way to combine.
        3 => {
            let ways = [Combine::Replace, Combine::Left, Combine::Right];
            programs[rank].rounds[round].receives[i].combine = pick(&ways, more);
        }
        // Two rounds of one rank, or of all, change places.
        4 => {
            let other = more % programs[rank].rounds.len();
            let one_rank = more.is_multiple_of(3);
            for (i, program) in programs.iter_mut().enumerate() {
                if (i == rank || !one_rank) && round.max(other) < program.rounds.len() {
                    program.rounds.swap(round, other);
                }
            }
        }
        // An empty round.
        _ => programs[rank].rounds.insert(more % (round + 1), Round::default()),
    }
}

/// What is said of harms done by hand.
#[test]
fn flaws_name_rank_round_and_segment() {
    let ring = || Schedule::new(Algorithm::Ring, Goal::Allreduce, 4).unwrap().programs;
    let said = |programs: &[Program]| check(programs, Goal::Allreduce, false).unwrap_err().to_string();

    let mut programs = ring();
    programs[2].rounds[1].receives.clear();
    assert_eq!(
        said(&programs),
        "rank 1 sends to rank 2 in round 1 a span that starts with segment 3 and has 1, where rank 2 expects in round 2 \
         one that starts with segment 2 and has 1"
    );

    let mut programs = ring();
    programs[2].rounds[5].receives.clear();
    assert_eq!(said(&programs), "rank 1, round 5: message 5 to rank 2 is never received");

    let mut programs = ring();
    programs[2].rounds[3].receives[0].combine = Combine::Left;
    assert_eq!(
        said(&programs),
        "rank 2, round 3, segment 1: what arrives from rank 1 and what is there both have rank 2's operand"
    );

    let mut programs = ring();
    programs[3].rounds[2].receives[0].combine = Combine::Replace;
    assert_eq!(said(&programs), "rank 0 after its last round, segment 3: misses the operand of rank 3");

    let mut programs = ring();
    programs[0].rounds[0].sends[0].to = 0;
    assert_eq!(said(&programs), "rank 0, round 0: a message to rank 0; peers are the other ranks below 4");

    let mut programs = ring();
    let first = programs[1].rounds[4].sends[0].span;
    programs[1].rounds[4].receives[0].span = first;
    assert_eq!(
        said(&programs),
        format!("rank 1, round 4, segment {}: replaced by what rank 0 sends, while it is sent to rank 2", first.first)
    );

    let mut programs = ring();
    programs[3].rounds[5].sends.clear();
    assert_eq!(said(&programs), "rank 0, round 5: message 5 from rank 3 is never sent");

    let mut programs = ring();
    programs[3].rounds[5].sends[0].span = Span { first: 4, count: 1 };
    assert_eq!(said(&programs), "rank 3, round 5: 1 segments from 4 on, but the vector has 4");

    let mut programs = ring();
    let again = Receive { from: 2, ..programs[1].rounds[3].receives[0] };
    programs[1].rounds[3].receives.push(again);
    assert_eq!(
        said(&programs),
        "rank 1, round 3, segment 0: replaced by what rank 0 sends, while it is received from rank 2 too"
    );

    let mut programs = ring();
    programs[1].segments = 5;
    assert_eq!(
        said(&programs),
        "the program at place 1 of 4 is of rank 1 of 4 with 5 segments; it should be of rank 1 of 4 with 4 segments"
    );

    // Backwards, a broadcast starts with ranks that have nothing.
    let mut programs = Schedule::new(Algorithm::Binomial, Goal::Broadcast { root: 0 }, 4).unwrap().programs;
    programs.iter_mut().for_each(|program| program.rounds.reverse());
    let flaw = check(&programs, Goal::Broadcast { root: 0 }, true).unwrap_err();
    assert_eq!(flaw.to_string(), "rank 2, round 0, segment 0: sent before anything is there");
    programs = Schedule::new(Algorithm::Binomial, Goal::Broadcast { root: 0 }, 4).unwrap().programs;
    programs[3].rounds[1].receives[0].combine = Combine::Left;
    let flaw = check(&programs, Goal::Broadcast { root: 0 }, true).unwrap_err();
    assert_eq!(flaw.to_string(), "rank 3, round 1, segment 0: combined with before anything is there");

    let mut programs = Schedule::new(Algorithm::Dissemination, Goal::Barrier, 5).unwrap().programs;
    programs.iter_mut().for_each(|program| drop(program.rounds.pop()));
    let flaw = check(&programs, Goal::Barrier, true).unwrap_err();
    assert_eq!(flaw.to_string(), "rank 0 after its last round: it may leave the barrier before rank 1 has entered it");

    assert!(matches!(
        check(&Schedule::new(Algorithm::Ring, Goal::Allreduce, 4).unwrap().programs, Goal::Allreduce, true),
        Err(Flaw::OutOfOrder { .. })
    ));
}

/// A ring in which everybody first sends, and receives when that has ended: right as long as somebody keeps messages
/// meanwhile, and stuck where nobody does.
#[test]
fn a_ring_that_sends_first_is_stuck() {
    let mut schedule = Schedule::new(Algorithm::Ring, Goal::Allreduce, 5).unwrap();
    for program in &mut schedule.programs {
        let rounds = std::mem::take(&mut program.rounds);
        program.rounds = rounds
            .into_iter()
            .flat_map(|Round { sends, receives }| {
                [Round { sends, receives: vec![] }, Round { sends: vec![], receives }]
            })
            .collect();
    }
    assert_eq!(schedule_naive::execute(&schedule.programs, Goal::Allreduce, false), Ok(()));
    let flaw = check(&schedule.programs, Goal::Allreduce, false).unwrap_err();
    assert_eq!(flaw, Flaw::Deadlock { rank: 0, round: 0, peer: 1, peers_round: 0 });
}
