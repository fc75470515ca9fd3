//! Slices that find their size while the program runs (Bayatpour et al., SALaR, CLUSTER 2018): small at first, twice as large
//! from call to call until a call takes longer, then half of that, and so from there on. What differs: of sizes that are as
//! fast as each other the largest stays, since it takes the fewest messages, and so the least processor time; and
//! before all that, whole messages are timed: slices that are no faster than none are given up.
//!
//! Each size class of messages (a power of two of bytes) has a size of its own. What a call took is the longest time of any
//! rank, on which all agree before the next: so all choose alike.

/// The size at which slices begin: enough, and so many bytes for each message of a ring, of which a slice makes one for each
/// node and leader: shorter ones cost more time of the processor than of the link.
const SMALLEST: usize = 64 << 10;
const SMALLEST_EACH: usize = 8 << 10;
/// Calls that are timed at each size; the shortest counts, so that one late rank does not end the search.
const CALLS: u32 = 2;
/// A size is slower when it takes this part of the time more; slices are faster than whole messages by as much.
const LOSS: f64 = 0.02;
/// No slices.
const WHOLE: usize = usize::MAX;

/// The search for one size class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Search {
    /// Where slices begin.
    smallest: usize,
    /// The slice of the next call.
    slice: usize,
    /// The longest time of any rank in the best call, microseconds, of whole messages and of the slices so far.
    whole: f64,
    best: f64,
    here: f64,
    calls: u32,
    frozen: bool,
}

impl Search {
    /// The search on `nodes` nodes of `leaders` leaders each.
    pub fn new(nodes: usize, leaders: usize) -> Self {
        let smallest = SMALLEST.max((nodes * leaders * SMALLEST_EACH).next_power_of_two());
        let never = f64::INFINITY;
        Self { smallest, slice: WHOLE, whole: never, best: never, here: never, calls: 0, frozen: false }
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
        let here = std::mem::replace(&mut self.here, f64::INFINITY);
        self.calls = 0;
        if self.slice == WHOLE {
            self.whole = here;
            self.slice = self.smallest;
            self.frozen = self.slice >= bytes;
        } else if here > self.best * (1.0 + LOSS) {
            self.end(self.slice / 2);
        } else {
            self.best = self.best.min(here);
            let larger = self.slice * 2;
            if larger >= bytes { self.end(self.slice) } else { self.slice = larger }
        }
    }

    fn end(&mut self, slice: usize) {
        self.slice = if self.best * (1.0 + LOSS) < self.whole { slice } else { WHOLE };
        self.frozen = true;
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
        let mut search = Search::new(8, 2);
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
        let valley = |at: usize| move |slice: usize| 100.0 + (slice.min(16 << 20) as f64 / at as f64).ln().abs() * 10.0;
        for at in [128 << 10, 512 << 10, 2 << 20] {
            assert_eq!(search(16 << 20, valley(at)).0, at);
        }
    }

    #[test]
    fn whole_messages_stay_whole_where_slices_are_slower() {
        assert_eq!(search(1 << 20, |slice| 1e9 / slice.min(1 << 20) as f64).0, WHOLE);
        assert_eq!(search(100, |_| 1.0), (SMALLEST.max(128 << 10), 2));
        let (slice, calls) = search(1 << 20, |slice| slice.min(1 << 20) as f64);
        assert_eq!((slice, calls), (128 << 10, 6));
    }

    #[test]
    fn of_sizes_that_are_as_fast_the_largest_stays() {
        let flat_up_to = |most: usize| move |slice: usize| if slice <= most { 100.0 } else { 110.0 };
        for most in [128 << 10, 512 << 10, 4 << 20] {
            assert_eq!(search(16 << 20, flat_up_to(most)).0, most);
        }
        assert_eq!(search(16 << 20, |_| 100.0).0, WHOLE);
    }

    #[test]
    fn slices_are_not_small_among_many_leaders() {
        assert_eq!(Search::new(2, 1).smallest, 64 << 10);
        assert_eq!(Search::new(32, 4).smallest, 1 << 20);
    }

    #[test]
    fn classes_are_powers_of_two() {
        assert_eq!([class(0), class(1), class(1023), class(1024), class(1025)], [0, 0, 9, 10, 10]);
    }
}
