use super::class::{FIRST, LONGEST, PERIOD, TRIAL, TRIES};
use super::*;
use crate::job::{Job, JobSpec};

/// Trials, and what is told to them: the position of the last call, and what its taker has left.
struct Calls {
    trial: ReachTrial,
    position: u64,
    figure: u64,
    settled: bool,
}

impl Calls {
    fn new(keeps: impl Fn(usize) -> bool) -> Self {
        Self { trial: ReachTrial::new(keeps), position: 0, figure: 0, settled: true }
    }

    /// How many of so many calls went by each transfer, of which each costs so much, and how many are timed.
    fn make(&mut self, bytes: usize, calls: u32, cost: impl Fn(u32, Transfer) -> u64) -> ([u32; 3], u32) {
        let (mut went, mut timed) = ([0; 3], 0);
        for call in 0..calls {
            self.position += 3;
            let next = self.trial.next(bytes, self.position, || self.figure, self.settled);
            self.figure = pace::pack(self.position, cost(call, next.transfer));
            went[next.transfer as usize] += 1;
            timed += u32::from(next.timed);
        }
        (went, timed)
    }
}

fn nothing_known() -> Calls {
    Calls::new(|_| true)
}

/// What calls cost: by cells, by both, by the taker.
fn take(costs: [u64; 3]) -> impl Fn(u32, Transfer) -> u64 {
    move |_, transfer| costs[transfer as usize]
}

fn all_by(transfer: Transfer, calls: u32) -> [u32; 3] {
    Transfer::ALL.map(|other| if other == transfer { calls } else { 0 })
}

#[test]
fn the_quickest_transfer_is_found_and_found_again() {
    let mut calls = nothing_known();
    assert_eq!(calls.make(LEAST, FIRST, take([0; 3])), (all_by(Transfer::Cells, FIRST), 0));
    for (costs, found) in [
        ([900, 700, 620], Transfer::ByTaker),
        ([900, 620, 700], Transfer::ByBoth),
        ([620, 900, 700], Transfer::Cells),
        ([900, 700, 620], Transfer::ByTaker),
        ([620, 700, 900], Transfer::Cells),
    ] {
        assert_eq!(calls.make(LEAST, TRIAL, take(costs)), ([TRIES; 3], TRIAL), "{costs:?}");
        assert_eq!(calls.make(LEAST, PERIOD - TRIAL, take([0; 3])), (all_by(found, PERIOD - TRIAL), 0), "{costs:?}");
    }
}

/// Cells are not judged by ways that are being tried; where nothing goes through cells they have to be.
#[test]
fn a_trial_waits_until_the_ways_into_cells_are_known() {
    for (usually_lent, timed) in [(false, 0), (true, TRIAL)] {
        let mut calls = Calls::new(|_| !usually_lent);
        calls.settled = false;
        assert_eq!(calls.make(LEAST, FIRST + TRIAL, take([500; 3])).1, timed);
    }
    let mut calls = nothing_known();
    calls.settled = false;
    assert_eq!(calls.make(LEAST, FIRST + 40, take([900, 500, 500])).1, 0);
    calls.settled = true;
    assert_eq!(calls.make(LEAST, 1, take([400, 500, 500])).1, 1);
    // One that runs goes on.
    calls.settled = false;
    assert_eq!(calls.make(LEAST, TRIAL - 1, take([400, 500, 500])), ([TRIES - 1, TRIES, TRIES], TRIAL - 1));
    assert_eq!(calls.make(LEAST, 20, take([400, 500, 500])), (all_by(Transfer::Cells, 20), 0));
}

#[test]
fn what_is_lent_has_to_be_quicker_by_some() {
    for (cells, lent, found) in [(500, 460, 0), (500, 440, 20), (500, 501, 0)] {
        for (at, costs) in [(1, [cells, lent, 600]), (2, [cells, 600, lent])] {
            let mut calls = nothing_known();
            calls.make(LEAST, FIRST + TRIAL, take(costs));
            assert_eq!(calls.make(LEAST, 20, take(costs)).0[at], found, "{costs:?}");
        }
    }
}

#[test]
fn a_rank_that_is_late_once_says_nothing() {
    let mut calls = nothing_known();
    let late = |call: u32, transfer| if call % TRIES == 1 { 90_000 } else { take([900, 500, 600])(call, transfer) };
    calls.make(LEAST, FIRST + TRIAL, late);
    assert_eq!(calls.make(LEAST, 20, late).0, all_by(Transfer::ByBoth, 20));
}

#[test]
fn what_is_far_slower_is_tried_twice_and_ever_more_rarely() {
    let mut calls = nothing_known();
    calls.make(LEAST, FIRST, take([0; 3]));
    for period in [4, 16, 16].map(|times| times * PERIOD) {
        let costs = take([500, 800, 2000]);
        assert_eq!(calls.make(LEAST, TRIES + 4, &costs), ([TRIES, 2, 2], TRIES + 4));
        let left = period - TRIAL;
        assert_eq!(calls.make(LEAST, left, &costs), (all_by(Transfer::Cells, left), 0), "{period}");
    }
    // What is slower, but not far, is tried as often as the transfer that is taken, and as rarely as what is.
    assert_eq!(calls.make(LEAST, TRIAL, take([500, 600, 700])).0, [TRIES; 3]);
    assert_eq!(calls.make(LEAST, LONGEST - TRIAL, take([0; 3])).1, 0);
    // Once it is close, or another one is better, trials are as many as at first.
    for (costs, found) in [([500, 500, 800], Transfer::Cells), ([500, 800, 400], Transfer::ByTaker)] {
        // One of the two others is given up after two calls.
        assert_eq!(calls.make(LEAST, TRIAL - 1, take(costs)).1, TRIAL - 1);
        assert_eq!(calls.make(LEAST, PERIOD - TRIAL, take([0; 3])), (all_by(found, PERIOD - TRIAL), 0));
    }
}

const UNCHANGED: [u64; 3] = [193, 258, 157];
const ANEW: [u64; 3] = [191, 267, 380];

/// Costs of messages of which so many of so many are written anew, the last ones of each turn.
fn mixed(anew: u32, of: u32) -> impl Fn(u32, Transfer) -> u64 {
    move |call, transfer| if call % of >= of - anew { ANEW } else { UNCHANGED }[transfer as usize]
}

/// What the taker moves alone is watched between trials; what goes otherwise leaves no figures.
#[test]
fn what_the_taker_moves_is_given_up_when_messages_come_to_be_written_anew() {
    let mut calls = nothing_known();
    calls.make(LEAST, FIRST + TRIAL, take(UNCHANGED));
    // As long as nothing changes trials become rarer; one call in eight changes nothing.
    for period in [1, 4, 16].map(|times| times * PERIOD) {
        let left = period - TRIAL;
        assert_eq!(calls.make(LEAST, left, mixed(1, 8)), (all_by(Transfer::ByTaker, left), 0));
        assert_eq!(calls.make(LEAST, TRIAL - 1, take(UNCHANGED)).1, TRIAL - 1, "{period}");
    }
    assert_eq!(calls.make(LEAST, 40, take(UNCHANGED)).0, all_by(Transfer::ByTaker, 40));
    assert_eq!(calls.make(LEAST, 4, take(ANEW)).0, all_by(Transfer::ByTaker, 4));
    assert_eq!(calls.make(LEAST, PERIOD, take(ANEW)), (all_by(Transfer::Cells, PERIOD), 0));
    // Each time the next trial is longer in coming.
    for distrust in [4, 16, 16].map(|times| times * PERIOD) {
        assert_eq!(calls.make(LEAST, TRIAL, take(UNCHANGED)).1, TRIAL);
        assert_eq!(calls.make(LEAST, 10, take(UNCHANGED)).0, all_by(Transfer::ByTaker, 10));
        assert_eq!(calls.make(LEAST, 4, take(ANEW)).0, all_by(Transfer::ByTaker, 4));
        assert_eq!(calls.make(LEAST, distrust, take(UNCHANGED)), (all_by(Transfer::Cells, distrust), 0));
    }
}

/// Messages of which some are unchanged cost little more than through cells, which would be best.
#[test]
fn messages_that_are_unchanged_now_and_then_go_through_cells() {
    for (anew, of) in [(1, 2), (1, 4), (3, 8), (4, 16), (7, 8)] {
        let mut calls = nothing_known();
        let (went, timed) = calls.make(LEAST, 20_000, mixed(anew, of));
        assert!(went[Transfer::ByTaker as usize] < 1500 && timed < 1000, "{anew} of {of}: {went:?}, {timed}");
    }
}

#[test]
fn lengths_learn_apart() {
    let mut calls = nothing_known();
    for bytes in [LEAST, LEAST << 6] {
        assert_eq!(calls.make(bytes, FIRST + TRIAL, take([900, 500, 600])).1, TRIAL);
    }
    for (bytes, lent) in
        [(LEAST, 4), (2 * LEAST - 1, 4), (2 * LEAST, 0), (LEAST << 5, 0), (LEAST << 8, 4), (usize::MAX, 4)]
    {
        assert_eq!(calls.make(bytes, 4, take([0; 3])).0[Transfer::ByBoth as usize], lent, "{bytes}");
    }
}

#[test]
fn what_the_caches_do_not_keep_is_lent_at_first() {
    let mut calls = Calls::new(|bytes| bytes < 4 << 20);
    for (bytes, usual) in [(2 << 20, Transfer::Cells), (4 << 20, Transfer::ByBoth), (64 << 20, Transfer::ByBoth)] {
        assert_eq!(calls.make(bytes, FIRST, take([0; 3])), (all_by(usual, FIRST), 0), "{bytes}");
        for (cells, found) in [(500, usual), (450, usual), (440, Transfer::Cells)] {
            assert_eq!(calls.make(bytes, TRIAL, take([cells, 500, 500])), ([TRIES; 3], TRIAL));
            let left = PERIOD - TRIAL;
            assert_eq!(calls.make(bytes, left, take([0; 3])), (all_by(found, left), 0), "{bytes}, {cells}");
        }
    }
}

/// The figures of all transfers come: the root tells of which calls it wants one, and waits for it. Where it has to
/// find the ways into cells, that comes first.
#[test]
fn takers_leave_figures_of_calls_that_are_timed() {
    for (stream, first) in [("stream=1", None), ("stream=0", Some(0))] {
        let mut spec = JobSpec::new(2).unwrap();
        spec.tuning.force(&format!("broadcast:cells,down_cell=32K,down_cells=2,reach_from=tried,{stream}")).unwrap();
        let ended = Job::create(&spec).unwrap().on_threads(|world| {
            let mut learnt = Vec::new();
            for calls in [FIRST + TRIAL, 20 * PERIOD] {
                for call in 0..calls {
                    let mut all = vec![if world.rank() == 1 { call as u8 } else { !0 }; LEAST];
                    world.process_at_rank(1).broadcast_into(&mut all).unwrap();
                    assert!(all.iter().all(|&x| x == call as u8), "{call}");
                }
                let engine = world.enter().unwrap();
                learnt.push(engine.reach_trial.as_ref().map(|trial| trial.classes[0].learnt));
            }
            learnt
        });
        // Only the root tries.
        assert_eq!(ended[0], [None, None]);
        let [early, late] = [0, 1].map(|at| ended[1][at].unwrap());
        assert!(late.iter().all(|&figures| figures > 0), "{stream}: {late:?}");
        assert!(first.is_none_or(|first| early == [first; 3]), "{stream}: {early:?}");
    }
}

#[test]
fn trials_are_few() {
    const { assert!(TRIAL <= PERIOD / 10) };
}
