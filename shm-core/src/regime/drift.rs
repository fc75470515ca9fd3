//! Whether calls have come to take otherwise than when it was last found how they go best: then that is worth finding
//! again, before it is due.
//!
//! What is quicker hangs on the machine, which in virtual ones changes many times a minute (how far apart the cores
//! are), and on what the program does between calls; either shows in the time from one call to the next. A program that
//! only does something else now and then would be tried for nothing: each time that nothing new is found so, as many
//! calls again go by before the next.

use crate::pace::span;

/// Calls in a row, all of which took half as long again as usual, or none of which took two thirds of it.
const STRANGE: u32 = 4;

/// Calls behind a trial before the next one is hastened, at first and at most.
const LEAST: u64 = 32;
const MOST: u64 = 512;

/// What is known of the calls of one class.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drift {
    /// What a call took when it was found how they go; 0 if nobody knows.
    usual: u64,
    begun: u64,
    /// Calls since, those in a row that took longer, and those that took less.
    calls: u64,
    longer: u32,
    shorter: u32,
    /// Calls that have to go by.
    least: u64,
    /// Whether that has been done since it was found.
    has_shown: bool,
}

impl Default for Drift {
    fn default() -> Self {
        Self { usual: 0, begun: 0, calls: 0, longer: 0, shorter: 0, least: LEAST, has_shown: false }
    }
}

impl Drift {
    /// It was found how calls go, of which each takes so long then; whether that `is_new`.
    pub fn found(&mut self, usual: u64, is_new: bool) {
        let least = match self.has_shown {
            _ if is_new => (self.least / 2).max(LEAST),
            true => (2 * self.least).min(MOST),
            false => self.least,
        };
        *self = Self { usual, least, ..Self::default() };
    }

    /// Calls of another kind come between.
    pub fn interrupt(&mut self) {
        (self.calls, self.longer, self.shorter) = (0, 0, 0);
    }

    /// Whether it should be found again, by a call that begins `now`, as it goes usually.
    pub fn shows(&mut self, now: u64) -> bool {
        let took = span(self.begun, now);
        self.begun = now;
        self.calls += 1;
        // The first has no call of its kind before it.
        if self.usual == 0 || self.calls == 1 {
            return false;
        }
        self.longer = if took > self.usual + self.usual / 2 { self.longer + 1 } else { 0 };
        self.shorter = if took < self.usual / 3 * 2 { self.shorter + 1 } else { 0 };
        let shows = self.calls >= self.least && self.longer.max(self.shorter) >= STRANGE;
        self.has_shown |= shows;
        shows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls that take so long, until one shows that it should be found again; how many they were.
    fn until(drift: &mut Drift, now: &mut u64, most: u64, took: impl Fn(u64) -> u64) -> Option<u64> {
        (1..=most).find(|&call| {
            *now += took(call);
            drift.shows(*now)
        })
    }

    #[test]
    fn a_change_shows_and_nothing_else() {
        let (mut drift, mut now) = (Drift::default(), 0);
        assert_eq!(until(&mut drift, &mut now, 1000, |_| 100), None, "nothing is known");
        drift.found(100, true);
        // A little more, a little less, and one that is held up three times in a row.
        assert_eq!(until(&mut drift, &mut now, 1002, |call| [100, 149, 67, 900, 900, 900][call as usize % 6]), None);
        assert_eq!(until(&mut drift, &mut now, 1000, |_| 151), Some(u64::from(STRANGE)));
        for took in [300, 60] {
            drift.found(100, true);
            assert_eq!(until(&mut drift, &mut now, 1000, |_| took), Some(LEAST));
        }
    }

    #[test]
    fn a_clock_that_goes_back_is_no_change() {
        let (mut drift, mut now) = (Drift::default(), 1 << 50);
        drift.found(100, true);
        assert_eq!(until(&mut drift, &mut now, 1000, |_| 100), None);
        now -= 5000;
        assert_eq!(until(&mut drift, &mut now, 1000, |_| 100), None);
    }

    #[test]
    fn what_finds_nothing_new_comes_ever_more_rarely() {
        let (mut drift, mut now) = (Drift::default(), 0);
        drift.found(100, true);
        for least in [32, 64, 128, 256, MOST, MOST] {
            // Those that were due say nothing of it.
            drift.found(100, false);
            assert_eq!(until(&mut drift, &mut now, 1000, |_| 300), Some(least));
            drift.found(100, false);
        }
        for least in [256, 128, 64, 32, LEAST] {
            drift.found(100, true);
            assert_eq!(until(&mut drift, &mut now, 1000, |_| 300), Some(least));
        }
    }
}
