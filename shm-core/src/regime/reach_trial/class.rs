//! What trials know of messages of one class.

use super::{Next, Transfer};

const TRANSFERS: usize = Transfer::ALL.len();

/// Calls before the first trial: in the first one the system finds memory for the cells.
pub(super) const FIRST: u32 = 1;

/// Calls by each transfer in a trial, of which the quickest counts: the other rank may have been late for one.
pub(super) const TRIES: u32 = 3;

/// Calls by a transfer after which it may be given up. The first one by what was not taken for long says little: memory
/// of cells may have to be found.
const ENOUGH: u32 = 2;

/// Calls of a whole trial, at most.
pub(super) const TRIAL: u32 = TRANSFERS as u32 * TRIES;

/// Calls from one trial to the next, at first and after one that was close.
pub(super) const PERIOD: u32 = 96;

/// The same at most: each time that nothing else was close to the transfer that is taken, four times as many calls go
/// by.
pub(super) const LONGEST: u32 = 1536;

/// A call between trials that takes three quarters more than the quickest counts so much, until one that does not takes
/// 1 off; at [`GIVEN_UP`] the transfer is given up. What the taker moves alone costs twice as much as through cells
/// where the message was written anew, and a fifth less where it was not: one call in six makes up for that.
const SLOW: u32 = 5;
pub(super) const GIVEN_UP: u32 = 4 * SLOW;

/// What is known of messages of one class.
pub(super) struct Class {
    better: Transfer,
    /// The one to take where no other is clearly better.
    usual: Transfer,
    /// The least that each has cost in the trial that is running, and the second least of what the taker moved alone.
    least: [u64; TRANSFERS],
    second: u64,
    /// Calls from the last trial to the next.
    period: u32,
    /// Calls until the next trial; 0 in one.
    left: u32,
    /// Transfers that the trial is through with, and calls of it by the one that comes next.
    through: usize,
    tried: u32,
    /// Whether the ways into cells were known in all of the trial.
    settled: bool,
    /// Of calls between trials: what the quickest has cost, and how much the slow ones count.
    quickest: u64,
    slow: u32,
    /// Calls to the next trial once a transfer is given up.
    distrust: u32,
    /// Figures that came, of each transfer.
    #[cfg(test)]
    pub learnt: [u32; TRANSFERS],
}

impl Class {
    pub fn new(usual: Transfer) -> Self {
        Self {
            better: usual,
            usual,
            least: [u64::MAX; TRANSFERS],
            second: u64::MAX,
            period: PERIOD,
            left: FIRST,
            through: 0,
            tried: 0,
            settled: true,
            quickest: u64::MAX,
            slow: 0,
            distrust: PERIOD,
            #[cfg(test)]
            learnt: [0; TRANSFERS],
        }
    }

    /// The next call, where the ways into cells are `settled`.
    pub fn next(&mut self, settled: bool) -> Next {
        let is_running = self.through > 0 || self.tried > 0;
        // Where nothing goes through cells, no ways are found by waiting.
        let begins = is_running || settled || self.better != Transfer::Cells;
        if self.left > 0 || !begins {
            self.left = self.left.saturating_sub(1);
            return Next { transfer: self.better, timed: false };
        }
        self.settled = settled && (!is_running || self.settled);
        self.tried += 1;
        Next { transfer: self.in_turn(self.through), timed: true }
    }

    /// The transfers in the order in which a trial takes them: the one that is taken as a rule comes first.
    fn in_turn(&self, at: usize) -> Transfer {
        match at {
            0 => self.better,
            at => Transfer::ALL.into_iter().filter(|&transfer| transfer != self.better).nth(at - 1).unwrap(),
        }
    }

    /// What a call of the trial has cost, if that is known.
    pub fn learn(&mut self, transfer: Transfer, figure: Option<u64>) {
        if let Some(figure) = figure {
            let least = &mut self.least[transfer as usize];
            if transfer == Transfer::ByTaker {
                self.second = self.second.min(figure.max(*least));
            }
            *least = figure.min(*least);
            #[cfg(test)]
            {
                self.learnt[transfer as usize] += 1;
            }
        }
        let (known, tried) = (self.least[self.better as usize], self.least[transfer as usize]);
        let is_lost = self.tried >= ENOUGH && tried != u64::MAX && tried > known.saturating_add(known / 2);
        if self.tried == TRIES || is_lost {
            (self.through, self.tried) = (self.through + 1, 0);
        }
        if self.through == TRANSFERS {
            self.decide();
        }
    }

    /// What a call between trials has cost: where too many have come to be slow the usual transfer is taken again. Each
    /// time that this comes to pass the next trial is longer in coming.
    pub fn watch(&mut self, figure: u64) {
        self.quickest = self.quickest.min(figure);
        let is_slow = figure > self.quickest + self.quickest / 4 * 3;
        self.slow = if is_slow { self.slow + SLOW } else { self.slow.saturating_sub(1) };
        if self.slow >= GIVEN_UP {
            (self.better, self.left, self.period) = (self.usual, self.distrust, PERIOD);
            self.distrust = (4 * self.distrust).min(LONGEST);
            (self.quickest, self.slow) = (u64::MAX, 0);
        }
    }

    /// Ends a trial.
    fn decide(&mut self) {
        let before = self.better;
        if before == Transfer::ByTaker {
            // From one trial to the next it was not given up.
            self.distrust = PERIOD;
        }
        // One message that had not changed among others that had says nothing.
        let cost = |transfer: Transfer| match transfer {
            Transfer::ByTaker => self.second,
            other => self.least[other as usize],
        };
        if Transfer::ALL.into_iter().all(|transfer| cost(transfer) != u64::MAX) {
            let cheapest = Transfer::ALL.into_iter().min_by_key(|&transfer| cost(transfer)).unwrap_or(self.usual);
            self.better = if is_clearly_less(cost(cheapest), cost(self.usual)) { cheapest } else { self.usual };
        }
        let mut others = Transfer::ALL.into_iter().filter(|&transfer| transfer != self.better);
        let is_clear = others.all(|other| is_clearly_less(cost(self.better), cost(other)));
        self.period = match before == self.better && is_clear {
            true if self.settled => (4 * self.period).min(LONGEST),
            true => self.period,
            false => PERIOD,
        };
        (self.least, self.through, self.left) = ([u64::MAX; TRANSFERS], 0, self.period - TRIAL);
        (self.second, self.quickest, self.slow) = (u64::MAX, u64::MAX, 0);
    }
}

/// Whether a cost is so much less than another one that it matters.
fn is_clearly_less(cost: u64, than: u64) -> bool {
    cost.saturating_add(cost / 8) < than
}
