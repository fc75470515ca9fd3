//! What the calls of one course have cost in a trial: held up ones count for little.

/// How many times the least that a call has cost it may count for; the least by the other course, if that is more. A
/// rank that lost its core in the middle of one says little.
pub(super) const OUTLIER: u64 = 4;

/// What the calls of one course have cost in a trial.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cost {
    pub calls: u64,
    pub least: u64,
    pub most: u64,
    pub sum: u64,
    /// What the last of them left to be done behind it.
    pub rest: u64,
}

impl Cost {
    /// Counts a call; by the other course one has cost so much at least.
    pub fn add(&mut self, cost: u64, other: u64) {
        self.least = if self.calls == 0 { cost } else { self.least.min(cost) };
        let limit = OUTLIER * self.least.max(other);
        // Those that came before less was seen, too.
        self.sum = self.sum.min(limit * self.calls) + cost.min(limit);
        self.calls += 1;
        self.most = self.most.max(cost).min(limit);
    }

    /// The average of all but the dearest, if there is one, and each call's part of the rest.
    pub fn average(&self, other: u64) -> Option<u64> {
        let average = (self.sum - self.most.min(self.sum)).checked_div(self.calls.saturating_sub(1))?;
        Some(average + self.rest.min(OUTLIER * self.least.max(other) * self.calls) / self.calls)
    }
}
