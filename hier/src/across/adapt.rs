//! Slices that find their size while the program runs (Bayatpour et al., SALaR, CLUSTER 2018): small at first, twice as
//! large from call to call until a call takes longer, then half of that, and so from there on. What differs: of sizes
//! that are as fast as each other the largest stays, since it takes the fewest messages, and so the least processor
//! time; and before all that and after it, whole messages are timed: slices that are not clearly faster than none are
//! given up.
//!
//! Each size class of messages (a power of two of bytes) has a size of its own. What a call took is the longest time of
//! any rank, on which all agree before the next: so all choose alike.

/// The size at which slices begin: enough, and so many bytes for each message of a ring, of which a slice makes one for
/// each node and leader: shorter ones cost more time of the processor than of the link.
const SMALLEST: usize = 64 << 10;
const SMALLEST_EACH: usize = 8 << 10;
/// Calls that are timed at each size; the shortest counts, so that one late rank does not end the search.
const CALLS: u32 = 2;
/// A size is slower when it takes this part of the time more.
const LOSS: f64 = 0.02;
/// Slices are faster than whole messages when these take this part of the time more: a message that goes whole overlaps
/// with itself, and takes fewer messages.
const GAIN: f64 = 0.05;
/// No slices.
const WHOLE: usize = usize::MAX;

/// What is being timed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    /// Nothing: the first call finds connections and memory new.
    First,
    /// Whole messages.
    Whole,
    /// Slices, which grow.
    Slices,
    /// Whole messages again, beside the best slices.
    Again,
    /// The search is over.
    Over,
}

/// The search for one size class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Search {
    /// Where slices begin.
    smallest: usize,
    stage: Stage,
    /// The slices that are timed, and at last the best of them.
    slice: usize,
    /// The longest time of any rank in the best call, microseconds: of whole messages, of the slices so far, of what is
    /// being timed.
    whole: f64,
    best: f64,
    here: f64,
    calls: u32,
}

impl Search {
    /// The search on `nodes` nodes of `leaders` leaders each.
    pub fn new(nodes: usize, leaders: usize) -> Self {
        let smallest = SMALLEST.max((nodes * leaders * SMALLEST_EACH).next_power_of_two());
        let never = f64::INFINITY;
        Self { smallest, stage: Stage::First, slice: smallest, whole: never, best: never, here: never, calls: 0 }
    }

    /// Bytes of a slice in the next call.
    pub fn slice(&self) -> usize {
        match self.stage {
            Stage::First | Stage::Whole | Stage::Again => WHOLE,
            Stage::Slices | Stage::Over => self.slice,
        }
    }

    /// Whether the search is over.
    pub fn is_frozen(&self) -> bool {
        self.stage == Stage::Over
    }

    /// Takes note of a call on `bytes` bytes that took so long.
    pub fn note(&mut self, bytes: usize, microseconds: f64) {
        match self.stage {
            Stage::Over => return,
            Stage::First if self.smallest >= bytes => return self.end(WHOLE),
            Stage::First => return self.stage = Stage::Whole,
            _ => {}
        }
        self.here = self.here.min(microseconds);
        self.calls += 1;
        if self.calls < CALLS {
            return;
        }
        let here = std::mem::replace(&mut self.here, f64::INFINITY);
        self.calls = 0;
        match self.stage {
            Stage::Whole => (self.whole, self.stage) = (here, Stage::Slices),
            Stage::Slices if here > self.best * (1.0 + LOSS) => self.compare(self.slice / 2),
            Stage::Slices => {
                self.best = self.best.min(here);
                let larger = self.slice * 2;
                if larger >= bytes { self.compare(self.slice) } else { self.slice = larger }
            }
            _ => {
                self.whole = self.whole.min(here);
                self.end(if self.gains() { self.slice } else { WHOLE });
            }
        }
    }

    /// Times whole messages again, if slices seem to be faster.
    fn compare(&mut self, slice: usize) {
        self.slice = slice;
        if self.gains() { self.stage = Stage::Again } else { self.end(WHOLE) }
    }

    fn gains(&self) -> bool {
        self.best * (1.0 + GAIN) < self.whole
    }

    fn end(&mut self, slice: usize) {
        (self.slice, self.stage) = (slice, Stage::Over);
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
        assert_eq!(search(100, |_| 1.0), (WHOLE, 1));
        let (slice, calls) = search(1 << 20, |slice| slice.min(1 << 20) as f64);
        // Whole messages five times, two sizes of slices.
        assert_eq!((slice, calls), (128 << 10, 9));
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
    fn whole_messages_are_not_given_up_for_a_slow_beginning_or_a_small_gain() {
        let slow_at_first = |calls_that_are_slow: usize, gain: f64| {
            let mut search = Search::new(8, 2);
            for call in 0..100 {
                let slow = if call < calls_that_are_slow { 2.0 } else { 1.0 };
                let whole = search.slice() == WHOLE;
                search.note(256 << 10, if whole { 100.0 * slow } else { 100.0 / gain });
                if search.is_frozen() {
                    break;
                }
            }
            search.slice()
        };
        for (slow, gain, expected) in
            [(0, 1.04, WHOLE), (3, 1.0, WHOLE), (3, 1.04, WHOLE), (0, 1.06, 128 << 10), (3, 1.5, 128 << 10)]
        {
            assert_eq!(slow_at_first(slow, gain), expected, "{slow} slow calls, gain {gain}");
        }
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
