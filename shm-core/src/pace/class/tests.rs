use super::super::{CLASSES, TRIAL, is_rare_sample, is_sample, trial};
use super::*;

const PERIOD: u32 = TRIAL.period;

const TWO: &[Way] = &[Way::Cached, Way::Streamed];
const ALL: &[Way] = &[Way::Cached, Way::Streamed, Way::ByString, Way::BothByString];

/// Fills so many slices, from this one on, of which each way costs its writer and its reader what stands there;
/// says how many went each way, and how many of the last `late`.
fn fill(
    class: &mut Class,
    from: u64,
    (slices, late): (u64, u64),
    costs: [u64; Way::COUNT],
) -> ([u64; Way::COUNT], [u64; Way::COUNT]) {
    let (mut all, mut last) = ([0; Way::COUNT], [0; Way::COUNT]);
    for slice in from..from + slices {
        let way = class.next();
        all[way as usize] += 1;
        last[way as usize] += u64::from(slice >= from + slices - late);
        if is_rare_sample(slice) || class.compares() && is_sample(slice) {
            // Now and then a rank loses its core in the middle.
            let figure = costs[way as usize] * if slice % 29 == 0 { 1000 } else { 1 };
            class.learn_write(way, figure);
            class.learn_read(way, figure);
        }
    }
    (all, last)
}

#[test]
fn the_cheapest_way_is_found_and_found_again_when_it_changes() {
    let cases: &[([u64; Way::COUNT], Way)] = &[
        ([100, 300, 100, 100], Way::Cached),
        ([900, 250, 880, 400], Way::Streamed),
        ([120, 250, 250, 130], Way::Cached),
        // Where there is next to nothing between them, it is the caches, and the loops.
        ([120, 115, 118, 117], Way::Cached),
        ([120, 115, 90, 88], Way::ByString),
        ([120, 300, 100, 60], Way::BothByString),
        ([400, 180, 300, 310], Way::Streamed),
    ];
    // Trials of long slices have half as many samples: enough for what is clearly cheaper.
    let clear = [cases[1], ([100, 300, 150, 150], Way::Cached), cases[5], cases[6]];
    for (trial, cases) in [(TRIAL, cases), (trial(CLASSES - 3), &clear), (trial(CLASSES - 1), &clear)] {
        let mut class = Class::new(ALL, trial);
        for &(costs, best) in cases {
            let (_, late) = fill(&mut class, 0, (600_000, 300_000), costs);
            assert_eq!(class.better, best, "{costs:?}");
            // A patient trial may be among them, which takes an eighth of a period; others have next to none.
            assert!(late[best as usize] > 280_000, "{costs:?}: {late:?}");
            let others = ALL.iter().filter(|&&way| way != best && way != Way::BothByString);
            assert!(others.map(|&way| late[way as usize]).sum::<u64>() < 5_000, "{costs:?}: {late:?}");
            assert!(late.iter().all(|&slices| slices > 10), "all are tried: {costs:?}: {late:?}");
        }
    }
}

/// Thirty-one slices in 32 are not timed: what becomes worse is noticed long before the next trial would be due.
#[test]
fn a_way_that_has_become_worse_is_left_soon() {
    for (agrees, soon) in [(true, 600), (false, u64::from(PERIOD) / 16)] {
        let mut class = Class::new(TWO, Trial { agrees, ..TRIAL });
        fill(&mut class, 0, (10_000, 0), [100, 300, 0, 0]);
        assert_eq!(class.better, Way::Cached);
        fill(&mut class, 10_000, (soon, 0), [900, 300, 0, 0]);
        assert_eq!(class.better, Way::Streamed);
    }
}

/// Where some figures are low and some high, whichever way is taken, trials stay few.
#[test]
fn figures_of_two_kinds_keep_nothing_on_trial() {
    let mut class = Class::new(TWO, Trial { agrees: true, ..TRIAL });
    let slices = 20 * u64::from(PERIOD);
    let mut tried = 0;
    for slice in 0..slices {
        let way = class.next();
        tried += u64::from(class.compares());
        if is_rare_sample(slice) || class.compares() && is_sample(slice) {
            let figure = if slice / 1000 % 3 == 0 { 400 } else { 100 };
            class.learn_write(way, figure);
            class.learn_read(way, figure);
        }
    }
    assert!(tried < slices / 100, "{tried} of {slices}");
}

/// A way that is far worse is given up before its time.
#[test]
fn a_trial_that_is_lost_ends_early() {
    let mut class = Class::new(ALL, TRIAL);
    let (all, _) = fill(&mut class, 0, (u64::from(PERIOD) * 4, 0), [100, 900, 90, 900]);
    for way in [Way::Streamed, Way::BothByString] {
        assert!((8..u64::from(TRIAL.slices) * 3).contains(&all[way as usize]), "{way:?}: {all:?}");
    }
    assert!(all[Way::ByString as usize] > u64::from(PERIOD) * 3, "{all:?}");
}

/// Far worse is what is far worse than the best way of the trial, were the one before as bad.
#[test]
fn what_takes_long_is_left_soon_where_a_better_way_was_found() {
    for (both, least, most) in [(250, TRIAL.ahead / 4, TRIAL.ahead), (500, 8, 100)] {
        let mut class = Class::new(ALL, TRIAL);
        let (all, _) = fill(&mut class, 0, (2_000, 0), [300, 100, 300, both]);
        assert_eq!(class.better, Way::Streamed);
        let tried = all[Way::BothByString as usize];
        assert!((u64::from(least)..u64::from(most)).contains(&tried), "{both}: {tried} slices");
    }
}

/// Two figures that are high say nothing against what has been the better way, wherever it stands in the order.
#[test]
fn the_better_way_is_tried_to_the_end() {
    let mut class = Class::new(TWO, Trial { in_order: true, ahead: 0, ..TRIAL });
    fill(&mut class, 0, (2_000, 0), [300, 100, 0, 0]);
    assert_eq!(class.better, Way::Streamed);
    while !class.compares() {
        class.next();
    }
    let mut tried = [0; Way::COUNT];
    while class.compares() {
        let way = class.next();
        tried[way as usize] += 1;
        let figure = if way == Way::Streamed && tried[way as usize] < 20 { 1000 } else { 100 };
        class.learn_write(way, figure);
        class.learn_read(way, figure);
    }
    assert!(tried[Way::Streamed as usize] >= TRIAL.slices, "{tried:?}");
}

/// What is dear until lines are where they will be is not judged before, and no single slice decides.
#[test]
fn a_way_that_needs_some_turns_gets_them() {
    for outlier in [false, true] {
        let mut class = Class::new(ALL, TRIAL);
        let (mut taken, mut counted) = (0, 0);
        for slice in 0..u64::from(PERIOD) {
            let way = class.next();
            taken = if way == Way::BothByString { taken + 1 } else { 0 };
            if is_sample(slice) {
                counted += u32::from(taken > TRIAL.ahead / 4);
                let figure = match way {
                    Way::BothByString if taken < 400 => 400,
                    Way::BothByString if outlier && counted == 1 => 100_000,
                    Way::BothByString => 60,
                    _ => 100,
                };
                class.learn_write(way, figure);
                class.learn_read(way, figure);
            }
        }
        assert_eq!(class.better, Way::BothByString, "{outlier}");
    }
}

/// What comes to its best state late is found by the trials that wait for it, and stays found, though it leaves
/// that state while others are tried.
#[test]
fn a_way_that_needs_many_turns_gets_them_at_last() {
    let mut class = Class::new(ALL, TRIAL);
    let (mut taken, mut late) = (0, 0);
    for slice in 0..u64::from(PERIOD) * 9 {
        let way = class.next();
        taken = if way == Way::BothByString { taken + 1 } else { taken / 2 };
        late += u32::from(way == Way::BothByString && slice >= u64::from(PERIOD) * 4);
        if is_rare_sample(slice) || class.compares() && is_sample(slice) {
            let figure = match way {
                Way::BothByString if taken < 12_000 => 250,
                Way::BothByString => 60,
                _ => 100,
            };
            class.learn_write(way, figure);
            class.learn_read(way, figure);
        }
    }
    assert!(late > PERIOD * 49 / 10, "{late}");
}

/// What may not be taken is not tried.
#[test]
fn a_class_keeps_to_its_ways() {
    let (all, _) = fill(&mut Class::new(TWO, TRIAL), 0, (40_000, 0), [100, 100, 1, 1]);
    assert_eq!(all[2..], [0, 0]);
    let (all, _) = fill(&mut Class::new(&[Way::Cached], TRIAL), 0, (40_000, 0), [100, 1, 1, 1]);
    assert_eq!(all[1..], [0, 0, 0]);
}

/// Stores that are quick because the lines were taken before are judged by what it took to take them.
#[test]
fn what_is_taken_ahead_counts() {
    for (take, better) in [(0, Way::Cached), (100, Way::Cached), (2000, Way::Streamed)] {
        let mut class = Class::new(TWO, TRIAL);
        for slice in 0..40_000 {
            let way = class.next();
            if is_sample(slice) {
                let figure = [100, 300][way as usize];
                class.learn_write(way, figure);
                class.learn_read(way, figure);
                if way == Way::Cached && class.compares() {
                    class.learn_take(take);
                }
            }
        }
        assert_eq!(class.better, better, "{take}");
    }
}
