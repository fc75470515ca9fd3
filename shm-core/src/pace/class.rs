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
mod tests;
