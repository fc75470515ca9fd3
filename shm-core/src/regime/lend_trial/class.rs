//! What trials know of messages of one class.

use super::{Next, Passage};

const PASSAGES: usize = Passage::ALL.len();

/// Calls before the first trial: in the first one the system finds memory for the cells.
pub(super) const FIRST: u32 = 1;

/// Calls by each passage in a trial, of which the quickest counts: the other rank may have been late for one.
pub(super) const TRIES: u32 = 3;

/// Calls by a passage after which it may be given up. The first one by what was not taken for long says little: memory
/// of cells may have to be found.
const ENOUGH: u32 = 2;

/// Calls of a whole trial, at most.
pub(super) const TRIAL: u32 = PASSAGES as u32 * TRIES;

/// Calls from one trial to the next, at first and after one that was close.
pub(super) const PERIOD: u32 = 96;

/// The same at most: each time that nothing else was close to the passage that is taken, four times as many calls go
/// by.
pub(super) const LONGEST: u32 = 1536;

/// Calls in a row by the taker alone, each half as long again as the quickest, which show that something has changed:
/// a message that comes to be written anew makes them twice as dear as any other. And calls from one trial to the next
/// at least, whatever these show.
pub(super) const SLOW: u32 = 4;
pub(super) const LEAST_PERIOD: u32 = 32;

/// What is known of messages of one class.
pub(super) struct Class {
    better: Passage,
    /// The one to take where no other is clearly better.
    usual: Passage,
    /// The least that each has cost in the trial that is running.
    least: [u64; PASSAGES],
    /// Calls from the last trial to the next.
    period: u32,
    /// Calls until the next trial; 0 in one.
    left: u32,
    /// Passages that the trial is through with, and calls of it by the one that comes next.
    through: usize,
    tried: u32,
    /// Whether the ways into cells were known in all of the trial.
    settled: bool,
    /// Of calls between trials: what the quickest has cost, and those in a row that were slow.
    quickest: u64,
    slow: u32,
    /// Figures that came, of each passage.
    #[cfg(test)]
    pub learnt: [u32; PASSAGES],
}

impl Class {
    pub fn new(usual: Passage) -> Self {
        Self {
            better: usual,
            usual,
            least: [u64::MAX; PASSAGES],
            period: PERIOD,
            left: FIRST,
            through: 0,
            tried: 0,
            settled: true,
            quickest: u64::MAX,
            slow: 0,
            #[cfg(test)]
            learnt: [0; PASSAGES],
        }
    }

    /// The next call, where the ways into cells are `settled`.
    pub fn next(&mut self, settled: bool) -> Next {
        let is_running = self.through > 0 || self.tried > 0;
        // Where nothing goes through cells, no ways are found by waiting.
        let begins = is_running || settled || self.better != Passage::Cells;
        if self.left > 0 || !begins {
            self.left = self.left.saturating_sub(1);
            return Next { passage: self.better, timed: false };
        }
        self.settled = settled && (!is_running || self.settled);
        self.tried += 1;
        Next { passage: self.in_turn(self.through), timed: true }
    }

    /// The passages in the order in which a trial takes them: the one that is taken as a rule comes first.
    fn in_turn(&self, at: usize) -> Passage {
        match at {
            0 => self.better,
            at => Passage::ALL.into_iter().filter(|&passage| passage != self.better).nth(at - 1).unwrap(),
        }
    }

    /// What a call of the trial has cost, if that is known.
    pub fn learn(&mut self, passage: Passage, figure: Option<u64>) {
        if let Some(figure) = figure {
            let least = &mut self.least[passage as usize];
            *least = figure.min(*least);
            #[cfg(test)]
            {
                self.learnt[passage as usize] += 1;
            }
        }
        let (known, tried) = (self.least[self.better as usize], self.least[passage as usize]);
        let is_lost = self.tried >= ENOUGH && tried != u64::MAX && tried > known.saturating_add(known / 2);
        if self.tried == TRIES || is_lost {
            (self.through, self.tried) = (self.through + 1, 0);
        }
        if self.through == PASSAGES {
            self.decide();
        }
    }

    /// What a call between trials has cost: where calls have come to be slow the next trial begins.
    pub fn watch(&mut self, figure: u64) {
        self.quickest = self.quickest.min(figure);
        self.slow = if figure > self.quickest + self.quickest / 2 { self.slow + 1 } else { 0 };
        if self.slow >= SLOW && self.period - self.left >= LEAST_PERIOD {
            (self.left, self.period) = (0, PERIOD);
        }
    }

    /// Ends a trial.
    fn decide(&mut self) {
        let before = self.better;
        if !self.least.contains(&u64::MAX) {
            let cost = |passage: Passage| self.least[passage as usize];
            let cheapest = Passage::ALL.into_iter().min_by_key(|&passage| cost(passage)).unwrap_or(self.usual);
            self.better = if is_clearly_less(cost(cheapest), cost(self.usual)) { cheapest } else { self.usual };
        }
        let taken = self.least[self.better as usize];
        let others = Passage::ALL.into_iter().filter(|&passage| passage != self.better);
        let is_clear = others.map(|passage| self.least[passage as usize]).all(|other| is_clearly_less(taken, other));
        self.period = match before == self.better && is_clear {
            true if self.settled => (4 * self.period).min(LONGEST),
            true => self.period,
            false => PERIOD,
        };
        (self.least, self.through, self.left) = ([u64::MAX; PASSAGES], 0, self.period - TRIAL);
        (self.quickest, self.slow) = (u64::MAX, 0);
    }
}

/// Whether a cost is so much less than another one that it matters.
fn is_clearly_less(cost: u64, than: u64) -> bool {
    cost.saturating_add(cost / 8) < than
}
