//! What is known of the ways to fill cells with slices of one size, and which of them is tried when.

use super::Way;
use super::cost::Cost;

/// How ways are tried.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trial {
    /// Slices from the first trial to the second, and then twice as many each time: what a job does at first is not
    /// what it goes on with; ..
    pub first: u32,
    /// .. but no more than these.
    pub period: u32,
    /// Slices for which each way is tried.
    pub slices: u32,
    /// Whether they are tried in their order, and not the better one first: so that two ranks who try them at the same
    /// calls try the same ones, whichever is the better one to each.
    pub in_order: bool,
    /// The most slices for which [`Way::BothByString`] is taken before it counts, but for patient trials; the least is
    /// a quarter of it.
    pub ahead: u32,
    /// Whether a slice may be filled while another is read.
    pub overlaps: bool,
    /// Whether several far higher figures in a row are the cost.
    pub agrees: bool,
    /// What the cost of each way counts for when they are compared.
    pub weights: [u64; Way::COUNT],
}

/// Samples after which a way may be given up before its time, because it is far worse.
const ENOUGH: u32 = 2;

/// How many times as dear as the best way that of which [`Trial::ahead`] speaks may be before it counts. Where it stayed
/// more than four times as dear, ten calls of 4 MiB of the first fifty took 2.4 ms each and not 0.5 (Zen 3, far apart).
/// One that is that dear at first is given up, whatever it would become.
const FAR: u64 = 3;

/// How many times the slices of a way go by behind a hastened trial that found nothing new, before the next such one.
const ONCE: u32 = 8;

/// Of the trials that come when they are due, and as far apart as they get, the first and then one of so many is
/// patient: it gives [`Way::BothByString`] an eighth of what lies between them. Near each other two cores copy so in
/// two states (AMD EPYC, Zen 5): at first 4 KiB cost the writer 400 ticks in about every second program, later 130,
/// which makes it the best way; to come to that took 5,000 to 100,000 slices.
const PATIENT: u32 = 8;

/// How far a trial has come.
#[derive(Clone, Copy, Debug, Default)]
struct Tried {
    /// Ways that have had their turn.
    ways: usize,
    /// Slices of the one that is tried.
    slices: u32,
    /// Samples of it that count, of its writer and of its reader.
    samples: u32,
    reads: u32,
}

/// What is known of slices of one class.
///
/// In a trial as many slices are filled the way that has been the better one, and then in each of the others in turn;
/// all are judged by what they cost in these.
#[derive(Clone, Copy)]
pub(super) struct Class {
    /// The ways that may be taken.
    ways: &'static [Way],
    trial: Trial,
    costs: [Cost; Way::COUNT],
    /// The best way so far.
    better: Way,
    /// What that cost when it was found to be the best; 0 before.
    decided: u64,
    /// Slices since then, and from then to the next trial.
    turn: u32,
    period: u32,
    /// Whether the next trial begins before it is due, and whether the last one did.
    hastened: bool,
    was_hastened: bool,
    /// Slices from a trial to the next one before it is due: each time that such a one finds nothing new, twice as
    /// many, so that figures of two kinds do not keep ways on trial.
    least: u32,
    /// Trials so far that might have been patient.
    late_trials: u32,
    /// Slices for which [`Way::BothByString`] is taken before it counts, in this trial, and in the one that it won
    /// last: as many are not judged after later ones.
    ahead: u32,
    settled: u32,
    tried: Tried,
}

impl Class {
    /// Ordinary stores; a trial is due at once.
    pub fn new(ways: &'static [Way], trial: Trial) -> Self {
        debug_assert_eq!(ways[0], Way::Cached);
        Self {
            ways,
            trial,
            costs: Default::default(),
            better: Way::Cached,
            decided: 0,
            turn: trial.first,
            period: trial.first,
            hastened: false,
            was_hastened: false,
            least: 0,
            late_trials: 0,
            ahead: 0,
            settled: 0,
            tried: Tried::default(),
        }
    }

    /// The way of the next slice.
    #[inline]
    pub fn next(&mut self) -> Way {
        self.turn += 1;
        if self.turn <= self.period { self.better } else { self.trial() }
    }

    /// The same in a trial.
    #[cold]
    fn trial(&mut self) -> Way {
        if self.turn == self.period + 1 {
            self.begin_trial();
        }
        self.tried.slices += 1;
        let ahead = self.ahead();
        if ahead > 0 && self.tried.slices == ahead + 1 {
            self.tried = Tried { samples: 0, reads: 0, ..self.tried };
            self.costs[Way::BothByString as usize] = Cost::default();
        }
        if self.tried.slices > ahead + self.trial.slices || self.is_lost() {
            self.tried = Tried { ways: self.tried.ways + 1, slices: 1, ..Tried::default() };
            match self.on_trial() {
                Some(next) => self.costs[next as usize] = Cost::default(),
                None => self.decide(),
            }
        }
        self.on_trial().unwrap_or(self.better)
    }

    fn begin_trial(&mut self) {
        self.tried = Tried::default();
        self.costs = Default::default();
        self.ahead = self.usually_ahead();
        self.was_hastened = std::mem::take(&mut self.hastened);
        let is_due = !self.was_hastened;
        if is_due && self.period == self.trial.period && self.ahead > 0 && self.better != Way::BothByString {
            if self.late_trials.is_multiple_of(PATIENT) {
                self.ahead = self.period / 8;
            }
            self.late_trials = self.late_trials.wrapping_add(1);
        }
    }

    /// What [`Way::BothByString`] gets as a rule: a sixteenth of what lies between trials, within bounds.
    fn usually_ahead(&self) -> u32 {
        (self.period / 16).clamp(self.trial.ahead / 4, self.trial.ahead)
    }

    /// Slices of the way that is tried before it counts: of what is not the better way already.
    fn ahead(&self) -> u32 {
        if self.tried.ways > 0 && self.on_trial() == Some(Way::BothByString) { self.ahead } else { 0 }
    }

    /// The way that is tried: first the better one, then the others in their order, if not all are in their order.
    fn on_trial(&self) -> Option<Way> {
        if self.trial.in_order {
            return self.ways.get(self.tried.ways).copied();
        }
        let others = self.ways.iter().copied().filter(|&way| way != self.better);
        std::iter::once(self.better).chain(others).nth(self.tried.ways)
    }

    fn decide(&mut self) {
        self.turn = 0;
        let Trial { overlaps, weights, period, .. } = self.trial;
        let cost = |&way: &Way| Some((weights[way as usize] * self.costs[way as usize].total(overlaps)?, way));
        // Without a figure of the better one there is nothing to compare with.
        let best = cost(&self.better).and_then(|_| self.ways.iter().filter_map(cost).min_by_key(|&(cost, _)| cost));
        // What a job does at first is not what it goes on with; but where nothing was learnt, nothing may be to learn.
        if self.decided != 0 || best.is_none() {
            self.period = (2 * self.period).min(period);
        }
        let is_new = best.is_some_and(|(_, best)| best != self.better);
        if self.was_hastened {
            self.least = if is_new { 0 } else { (2 * self.least).clamp(ONCE * self.trial.slices, self.trial.period) };
        }
        if let Some((_, best)) = best {
            if best == Way::BothByString && is_new {
                self.settled = self.ahead;
            }
            self.better = best;
            self.decided = self.costs[best as usize].total(overlaps).expect("it was compared");
        }
    }

    /// Whether the way that is tried has shown to be far worse than the best one of this trial so far; and worse still
    /// while it does not count yet. What has been the better one is tried to the end.
    fn is_lost(&self) -> bool {
        let Tried { ways, slices, samples, reads } = self.tried;
        let may_be = |&way: &Way| ways > 0 && samples >= ENOUGH && way != self.better;
        let Some(way) = self.on_trial().filter(may_be) else { return false };
        let tried = &self.costs[way as usize];
        let slower = tried.writes().max(if reads >= ENOUGH { tried.read.cost } else { 0 });
        let times = if slices > self.ahead() { 2 } else { FAR };
        let others = self.ways.iter().filter(|&&other| other != way);
        let best = others.filter_map(|&other| self.costs[other as usize].total(self.trial.overlaps)).min();
        best.is_some_and(|best| slower > times * best)
    }

    /// Whether ways are being compared.
    pub fn compares(&self) -> bool {
        self.turn > self.period
    }

    /// Whether this way is the one that is tried.
    fn tries(&self, way: Way) -> bool {
        self.compares() && self.on_trial() == Some(way)
    }

    /// Whether slices of this way cost more than they will: after the trial of others, as before it counted itself.
    fn settles(&self, way: Way) -> bool {
        way == Way::BothByString && !self.compares() && self.turn <= self.settled.max(self.usually_ahead())
    }

    /// Takes what it cost to fill a slice.
    pub fn learn_write(&mut self, way: Way, figure: u64) {
        if self.settles(way) {
            return;
        }
        self.costs[way as usize].write.learn(figure, self.trial.agrees);
        self.tried.samples += u32::from(self.tries(way));
        self.look_again(way);
    }

    /// Takes what it cost to read one.
    pub fn learn_read(&mut self, way: Way, figure: u64) {
        if !self.settles(way) {
            self.costs[way as usize].read.learn(figure, self.trial.agrees);
            self.tried.reads += u32::from(self.tries(way));
            self.look_again(way);
        }
    }

    /// Takes what it cost to take the lines of one that ordinary stores fill.
    pub fn learn_take(&mut self, figure: u64) {
        self.costs[Way::Cached as usize].take.learn(figure, self.trial.agrees);
    }

    /// Has a trial begin at once if this is the better way, and has become a worse one than it was.
    fn look_again(&mut self, way: Way) {
        let total = self.costs[self.better as usize].total(self.trial.overlaps);
        if way == self.better
            && self.decided != 0
            && !self.compares()
            && self.turn >= self.least
            && total.is_some_and(|total| total > 2 * self.decided)
        {
            self.hastened = self.turn < self.period;
            self.turn = self.period;
        }
    }
}

#[cfg(test)]
mod tests {
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
}
