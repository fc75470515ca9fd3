use super::*;

/// The way after `trials` trials of messages of a kind in which a call takes so many ticks: behind, soon, later,
/// last.
fn learnt(found: &Trials, kind: usize, trials: u32, times: [u64; 4]) -> Look {
    let mut now = found.begun.get();
    let mut over = 0;
    while over < trials {
        if found.left.get() == 0 {
            over += u32::from(found.next.get() == Stage::End(Look::TRIED.len() - 1, PARTS - 1));
            found.step(now, kind, || 100);
        } else {
            found.left.set(found.left.get() - 1);
        }
        now += times[found.way.get() as usize];
    }
    found.way.get()
}

#[test]
fn the_quickest_way_is_found_and_found_again() {
    let found = Trials::default();
    for (times, way) in [
        ([572, 560, 338, 350], Look::Later),
        ([286, 300, 338, 290], Look::Behind),
        ([54, 46, 54, 90], Look::Soon),
        ([300, 299, 298, 297], Look::Behind),
        ([572, 400, 395, 290], Look::Last),
        ([572, 400, 395, 560], Look::Soon),
        ([94, 99, 99, 60], Look::Behind),
    ] {
        assert_eq!(learnt(&found, 1, 3, times), way, "{times:?}");
    }
    assert_eq!(
        learnt(&Trials::default(), 0, 2, [90, 80, 70, 1]),
        Look::Later,
        "of short messages the last way is not tried"
    );
}

#[test]
fn one_trial_says_nothing() {
    let found = Trials::default();
    let learnt = |[behind, soon, later]: [u64; 3]| learnt(&found, 0, 1, [behind, soon, later, 1]);
    assert_eq!(learnt([90_000, 300, 290]), Look::Behind, "it lost its core");
    assert_eq!(learnt([290, 310, 310]), Look::Behind);
    assert_eq!(learnt([600, 590, 300]), Look::Behind);
    assert_eq!(learnt([600, 590, 300]), Look::Later);
    assert_eq!(learnt([600, 300, 590]), Look::Later);
    assert_eq!(learnt([300, 590, 600]), Look::Behind, "nothing is lost by it");
}

#[test]
fn kinds_of_messages_learn_apart() {
    let approach = Approach::new(0);
    for _ in 0..PERIOD {
        approach.moment(SHORT, 7);
    }
    assert_eq!(approach.trials[1].next.get(), Stage::Trial);
    approach.moment(SHORT + 1, 7);
    assert_ne!(approach.trials[1].next.get(), Stage::Trial);
}

#[test]
fn a_moment_is_zero() {
    for seen in [0, 1, 2, 7, u64::MAX, 1 << 63, 0x5555_5555_5555_5555] {
        assert_eq!((after::<0>(seen).zero(), after::<BEHIND>(seen).zero(), after::<HELD_BACK>(seen).zero()), (0, 0, 0));
    }
}

#[test]
fn each_multiplication_takes_what_the_one_before_has_left() {
    for seen in [0, 2, 3, 7, 0x5555_5555_5555_5555, u64::MAX] {
        let expected = |times| (0..times).fold(seen as usize, |value, _| value.wrapping_mul(value));
        assert_eq!(squared::<0, -1>(seen), expected(0));
        assert_eq!(squared::<1, -1>(seen), expected(1));
        assert_eq!(squared::<BEHIND, -1>(seen), expected(BEHIND));
        assert_eq!(squared::<HELD_BACK, -1>(seen), expected(HELD_BACK));
    }
}

/// At which exchanges a rank is held back when it misses these.
fn held_back(rank: usize, missed: &[u32]) -> Vec<u32> {
    let approach = Approach::new(rank);
    let is_held_back = |exchange: &u32| {
        approach.moment(0, 7);
        let is_held_back = approach.is_held_back();
        if missed.contains(exchange) {
            approach.miss();
        }
        is_held_back
    };
    (0..10).filter(is_held_back).collect()
}

#[test]
fn of_ranks_that_miss_in_turns_rank_0_is_held_back() {
    assert_eq!(held_back(0, &[1, 3, 7, 8]), [5]);
    assert_eq!(held_back(0, &[1, 3, 5]), [5, 7]);
    assert_eq!(held_back(0, &[1, 4, 7, 8]), []);
    assert_eq!(held_back(1, &[1, 3, 5]), []);
}

/// All that a trial costs are some calls of many.
#[test]
fn trials_are_few() {
    const { assert!(3 * (FIRST + PARTS as u32 * COUNTED) < PERIOD / 12) };
    const { assert!(4 * (FIRST + PARTS as u32 * COUNTED) < PERIOD / 9) };
}
