//! Slices that find their size while the program runs (Bayatpour et al., SALaR, CLUSTER 2018): small at first, twice as large
//! from call to call until a call takes longer, then half of that, and so from there on.
//!
//! Each size class of messages (a power of two of bytes) has a size of its own. What a call took is the longest time of any
//! rank, on which all agree before the next: so all choose alike.

/// The size at which slices begin: enough, and so many bytes for each node.
const SMALLEST: usize = 32 << 10;
const SMALLEST_EACH: usize = 4 << 10;
/// Calls that are timed at each size; the shortest counts, so that one late rank does not end the search.
const CALLS: u32 = 2;
/// A size is better when it saves this part of the time.
const GAIN: f64 = 0.02;

/// The search for one size class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Search {
    slice: usize,
    /// The longest time of any rank, in the best call of each size, microseconds; infinite before the first.
    best: f64,
    here: f64,
    calls: u32,
    frozen: bool,
}

impl Search {
    /// The search on `nodes` nodes.
    pub fn new(nodes: usize) -> Self {
        Self {
            slice: SMALLEST.max((nodes * SMALLEST_EACH).next_power_of_two()),
            best: f64::INFINITY,
            here: f64::INFINITY,
            calls: 0,
            frozen: false,
        }
    }

    /// Bytes of a slice in the next call.
    pub fn slice(&self) -> usize {
        self.slice
    }

    /// Whether the search is over.
    pub fn is_frozen(&self) -> bool {
        self.frozen
    }

    /// Takes note of a call on `bytes` bytes that took so long.
    pub fn note(&mut self, bytes: usize, microseconds: f64) {
        if self.frozen {
            return;
        }
        self.here = self.here.min(microseconds);
        self.calls += 1;
        if self.calls < CALLS {
            return;
        }
        if self.here > self.best * (1.0 - GAIN) {
            self.slice /= 2;
            self.frozen = true;
        } else if self.slice >= bytes {
            self.frozen = true;
        } else {
            self.best = self.here;
            self.slice *= 2;
        }
        self.here = f64::INFINITY;
        self.calls = 0;
    }
}

/// The size class of a message.
pub(super) fn class(bytes: usize) -> u32 {
    bytes.max(1).ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches with calls that take `time(slice)`, and returns the size it ends with and the calls that it took.
    fn search(bytes: usize, time: impl Fn(usize) -> f64) -> (usize, usize) {
        let mut search = Search::new(8);
        for calls in 0..100 {
            if search.is_frozen() {
                return (search.slice(), calls);
            }
            search.note(bytes, time(search.slice()));
        }
        panic!("no end");
    }

    #[test]
    fn finds_the_valley() {
        let valley = |at: usize| move |slice: usize| 100.0 + (slice as f64 / at as f64).ln().abs() * 10.0;
        for at in [64 << 10, 256 << 10, 1 << 20] {
            assert_eq!(search(16 << 20, valley(at)).0, at);
        }
    }

    #[test]
    fn grows_to_the_message_where_larger_is_always_better_and_stays_small_where_it_never_is() {
        assert_eq!(search(1 << 20, |slice| 1e9 / slice as f64).0, 1 << 20);
        let (slice, calls) = search(1 << 20, |slice| slice as f64);
        assert_eq!((slice, calls), (SMALLEST, 4));
    }

    #[test]
    fn classes_are_powers_of_two() {
        assert_eq!([class(0), class(1), class(1023), class(1024), class(1025)], [0, 0, 9, 10, 10]);
    }
}
