//! Which turn each call is, and what is found.

use super::cost::OUTLIER;
use super::*;

const FIRST: u64 = PLAN.periods[0];
const COUNTED: u64 = PLAN.counted;

/// Of some calls.
fn trials(before: Course) -> Trials {
    Trials::new(before, (0, 0), false)
}

/// Makes so many calls, each of which costs what `cost` says, by a rank that goes by what is found; says which way
/// they went.
fn make(trials: &mut Trials, calls: u64, cost: impl Fn(u64, Course) -> u64) -> Vec<(Turn, Course)> {
    let (mut better, mut now, mut turns) = (Course::Lent, 0, Turns::default());
    let call = |call| {
        let turn = trials.next(&mut turns, || now, || false);
        let course = match turn {
            Turn::Settled => better,
            Turn::Tried(course) | Turn::Last(course) => course,
            Turn::Ended => {
                better = trials.cheaper().unwrap_or(better);
                better
            }
        };
        now += cost(call, course);
        (turn, course)
    };
    (0..calls).map(call).collect()
}

#[test]
fn trials_are_few_and_in_order() {
    for (before, fills_all) in [(Course::Lent, false), (Course::Cells, false), (Course::Lent, true)] {
        let mut trials = Trials::new(before, (0, 0), fills_all);
        let turns = make(&mut trials, 8000, |_, _| 100);
        let mut at = 0;
        for period in [0, 1, 2, 3, 3].map(|at| PLAN.periods[at]) {
            let begin = at + period as usize;
            assert!(turns[at..begin].iter().all(|(turn, _)| *turn == Turn::Settled), "{at}");
            at = begin;
            for course in [before, before.other()] {
                let length = COUNTED + if fills_all && course == Course::Cells { AT_MOST } else { BEFORE };
                for _ in 0..length - 1 {
                    assert_eq!(turns[at].0, Turn::Tried(course), "{at}");
                    at += 1;
                }
                let last = if course == before { Turn::Tried(course) } else { Turn::Last(course) };
                assert_eq!(turns[at].0, last, "{at}");
                at += 1;
            }
            assert_eq!(turns[at].0, Turn::Ended, "{at}");
            at += 1;
        }
    }
}

/// While ways are compared calls through cells do not count; where that takes too long, or comes in between, nothing
/// is found, and the next trial comes soon.
#[test]
fn cells_count_once_their_ways_are_known() {
    for known_after in [0, 5, AT_MOST - 1, AT_MOST, u64::MAX] {
        let mut trials = Trials::new(Course::Lent, (0, CLASSES - 1), true);
        let (mut cells, mut now, mut turns) = (0, 0, Turns::default());
        let ended = (0..LONG_PLAN.periods[0] + 2 * (AT_MOST + BEFORE + LONG_PLAN.counted)).find(|_| {
            let compares = cells <= known_after && cells > 0;
            let turn = trials.next(&mut turns, || now, || compares);
            let is_cells = matches!(turn, Turn::Tried(Course::Cells) | Turn::Last(Course::Cells));
            cells += u64::from(is_cells);
            // Dear while ways are compared, and then cheaper by half.
            now += if !is_cells {
                1000
            } else if compares {
                5000
            } else {
                500
            };
            turn == Turn::Ended
        });
        assert!(ended.is_some() && !turns.are_taken(), "{known_after}");
        let is_found = known_after < AT_MOST;
        assert_eq!(trials.cheaper(), is_found.then_some(Course::Cells), "{known_after}");
        assert_eq!((trials.ended, trials.spoilt), if is_found { (1, 0) } else { (0, 1) });
        assert_eq!(trials.due, LONG_PLAN.periods[1]);
    }
}

#[test]
fn a_trial_that_is_spoilt_ends_and_decides_nothing() {
    let mut trials = Trials::new(Course::Lent, (0, CLASSES - 1), false);
    let (mut turns, mut now, periods) = (Turns::default(), 0, LONG_PLAN.periods);
    for spoilt in 1..=5 {
        let mut calls = 0;
        while trials.next(&mut turns, || now, || false) != Turn::Ended {
            now += 100;
            calls += 1;
            // The third that counts.
            if calls == periods[(spoilt - 1).min(3)] + 2 * BEFORE + LONG_PLAN.counted + 3 {
                trials.spoil();
            }
        }
        assert_eq!(calls, periods[(spoilt - 1).min(3)] + 2 * BEFORE + LONG_PLAN.counted + 3);
        assert_eq!((trials.cheaper(), trials.ended, trials.spoilt), (None, 0, spoilt));
    }
}

/// The cheaper one is found, and a call that was held up changes nothing.
#[test]
fn the_cheaper_course_is_found() {
    for (class, costs, found) in [
        (0, [500, 1000], Course::Cells),
        (0, [1000, 500], Course::Lent),
        // Where there is little between them nothing is copied.
        (0, [820, 1000], Course::Lent),
        (0, [780, 1000], Course::Cells),
        (CLASSES - 1, [890, 1000], Course::Lent),
        (CLASSES - 1, [860, 1000], Course::Cells),
    ] {
        let Plan { periods, counted, .. } = Plan::of(class);
        for held_up in [0, periods[0] + 1, periods[0] + 5, periods[0] + BEFORE + counted + 4] {
            let cost = |call, course| costs[course as usize] + u64::from(call == held_up) * 90_000;
            let mut trials = Trials::new(Course::Lent, (0, class), false);
            let calls = make(&mut trials, periods[0] + 2 * (BEFORE + counted) + 4, cost);
            assert_eq!(calls.last().unwrap(), &(Turn::Settled, found), "{costs:?}, {held_up}");
        }
    }
}

/// What costs most until all cells were filled once is judged afterwards.
#[test]
fn cells_get_a_turn_of_their_ring() {
    let mut trials = Trials::new(Course::Lent, (0, 1), true);
    let first = (trials.due + BEFORE + COUNTED) as usize;
    let cost = |call: u64, course| match course {
        Course::Cells if (call as usize) < first + AT_MOST as usize => 2000,
        Course::Cells => 500,
        Course::Lent => 1000,
    };
    let calls = make(&mut trials, first as u64 + 100, cost);
    assert_eq!(calls.last().unwrap(), &(Turn::Settled, Course::Cells));
}

/// Where calls that are cheap take turns with dear ones, what lies behind these counts as much as it costs.
#[test]
fn calls_may_differ_in_turn() {
    for turn in 1..=4 {
        for dear in [900, 1500, 2500] {
            let cost = |call: u64, course| match (call.is_multiple_of(turn), course) {
                (false, _) => 400,
                (true, Course::Cells) => 700,
                (true, Course::Lent) => dear,
            };
            let calls = make(&mut trials(Course::Lent), FIRST + 2 * (BEFORE + COUNTED) + 9, cost);
            let [cells, lent] = [700, dear].map(|cost| cost + 400 * (turn - 1));
            // As far as no call is out of all proportion.
            let gains = cells < lent - lent / PLAN.margin && dear < OUTLIER * 400;
            assert!(calls.last().unwrap().1 == Course::Cells || !gains, "every {turn}, {dear}");
        }
    }
}

/// Of all calls of a loop one alone is on trial, and all have their turn; one whose calls are made no more holds up
/// nobody for long.
#[test]
fn trials_take_turns() {
    let of = |kind| (0..7).map(move |class| Trials::new(Course::Lent, (kind, class), kind % 2 == 0));
    let mut all: Vec<Trials> = (0..4).flat_map(of).collect();
    let mut turns = Turns::default();
    // One begins, and is left.
    for _ in 0..FIRST + 3 {
        all[5].next(&mut turns, || 0, || false);
    }
    assert!(turns.are_taken());
    all.remove(5);
    for round in 0..9000 {
        let tried = all.iter_mut().map(|trials| trials.next(&mut turns, || 0, || false));
        let tried = tried.filter(|turn| matches!(turn, Turn::Tried(_) | Turn::Last(_)));
        assert!(tried.count() <= 1, "round {round}");
    }
    assert!(all.iter().all(|trials| trials.ended >= 2), "{all:?}");
}

/// As often by the time that they take, and shorter.
#[test]
fn trials_of_long_messages_come_early() {
    for (class, first, length) in [(class_of(LONG) - 1, 64, 26), (class_of(LONG), 8, 14), (CLASSES - 1, 8, 14)] {
        let turns = make(&mut Trials::new(Course::Lent, (0, class), false), 64 + 26, |_, _| 100);
        let tried: Vec<_> = (0..turns.len()).filter(|&at| turns[at].0 != Turn::Settled).collect();
        assert_eq!(tried[..length], (first..first + length).collect::<Vec<_>>(), "{class}");
    }
    let cost = |_, course| [500, 1000][course as usize];
    let calls = make(&mut Trials::new(Course::Lent, (0, CLASSES - 1), false), 8 + 14 + 20, cost);
    assert_eq!(calls.last().unwrap(), &(Turn::Settled, Course::Cells));
}

/// Who runs ahead pays for what the other one has yet to do; not for what was left before the first call that counts.
#[test]
fn what_is_left_behind_counts() {
    let found = |rest, lent| {
        let (mut trials, mut turns, mut now) = (Trials::new(Course::Lent, (0, 1), true), Turns::default(), 0);
        let mut rests = Vec::new();
        loop {
            match trials.next(&mut turns, || now, || false) {
                Turn::Ended => break,
                Turn::Tried(Course::Cells) | Turn::Last(Course::Cells) if trials.rests() => {
                    let rest = if rests.is_empty() { 90_000 } else { rest };
                    trials.rested(rest);
                    rests.push(trials.calls);
                    now += 500 + rest;
                }
                Turn::Tried(Course::Cells) | Turn::Last(Course::Cells) => now += 500,
                _ => now += lent,
            }
        }
        assert_eq!(trials.costs[Course::Cells as usize].most, 500);
        assert!(rests.len() == 2 && rests[1] == rests[0] + COUNTED, "{rests:?}");
        trials.cheaper().unwrap()
    };
    for (rest, lent, better) in [
        (0, 1000, Course::Cells),
        (1000, 1000, Course::Cells),
        (6000, 1000, Course::Lent),
        // Most of what all wait for may be done by others, whatever the own part is.
        (12 * 9_500, 10_000, Course::Lent),
        (12 * 9_500, 100_000, Course::Cells),
    ] {
        assert_eq!(found(rest, lent), better, "{rest}, {lent}");
    }
}

#[test]
fn what_is_far_dearer_is_lost() {
    for (cost, lost) in [(1600, true), (1400, false)] {
        let mut trials = trials(Course::Lent);
        let cost = |_, course| if course == Course::Cells { cost } else { 1000 };
        make(&mut trials, FIRST + 2 * BEFORE + COUNTED + 4, cost);
        assert!(!trials.is_lost(Course::Lent) && trials.is_lost(Course::Cells) == lost, "{lost}");
    }
}

#[test]
fn classes_rise_by_powers_of_two() {
    let of = [1, LEAST, 2 * LEAST - 1, 2 * LEAST, LEAST << 3, usize::MAX].map(class_of);
    assert_eq!(of, [0, 0, 0, 1, 3, CLASSES - 1]);
}

/// A core that reads the clock otherwise may set it back, at whatever call, however far: that call counts as one that
/// was held up, and nothing overflows.
#[test]
fn a_clock_that_goes_back_holds_up_one_call() {
    let last = FIRST + 2 * (BEFORE + COUNTED) + 1;
    for back_at in FIRST + 1..=last {
        for back in [1 << 10, 1 << 20, 1 << 41, 1 << 49] {
            let (mut trials, mut turns, mut now) = (trials(Course::Lent), Turns::default(), 1 << 50);
            for call in 1..=last {
                if call == back_at {
                    now -= back;
                }
                now += match trials.next(&mut turns, || now, || false) {
                    Turn::Tried(Course::Cells) | Turn::Last(Course::Cells) => 100,
                    _ => 50,
                };
            }
            assert_eq!(trials.ended(), 1);
            let costs = [Course::Cells, Course::Lent].map(|course| trials.average(course));
            assert_eq!(costs, [Some(100), Some(50)], "{back} back at {back_at}");
        }
    }
}
