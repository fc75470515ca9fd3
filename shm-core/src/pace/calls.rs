//! In which way two ranks copy what takes a whole call to judge: who decides measures what calls cost from one end to
//! the other. So what serves one side of a copy and holds up the other does not seem to gain.

use super::class::{Class, Trial};
use super::{Way, cost, is_rare_sample, possible, ticks_behind_loads};
use crate::select::tuning::{STREAM_BOTH_BY_STRING, STREAM_BY_STRING};

/// How ways are tried: calls, not slices; there is no ring that they would have to come round in. What a whole call
/// costs is much the same each time.
const TRIAL: Trial = Trial {
    first: 128,
    period: 2048,
    slices: 16,
    in_order: true,
    ahead: 0,
    overlaps: false,
    agrees: false,
    weights: [32, 48, 33, 33],
};

/// Messages of fewer bytes are copied by loops.
const LEAST: usize = 16 * 1024;

/// Classes of messages, by the power of two, from [`LEAST`] on; the last takes all longer ones.
const CLASSES: usize = 11;

/// What a rank knows of the calls of one kind.
pub(crate) struct Calls {
    /// The ways that there are.
    ways: &'static [Way],
    classes: Box<[Class; CLASSES]>,
    stream: u32,
}

impl Calls {
    /// Of halves that two ranks copy where no cell lies between them: to the other's buffer, and from it, by loops; to
    /// it by the string instruction; and from it, too. One of the two decides, and tells the other one.
    pub const HALVES: &[Way] = &[Way::Cached, Way::ByString, Way::BothByString];

    /// Of results that lie in the own cells, where the other rank has stored them: copied out by loops, or by the
    /// string instruction. Each rank decides for itself, and as a rule tries the same at the same calls as the
    /// other one.
    pub const BACK: &[Way] = &[Way::Cached, Way::BothByString];

    /// Nothing is known; `stream` is the table's word.
    pub fn new(ways: &'static [Way], stream: u32) -> Self {
        Self { ways, classes: Box::new([Class::new(ways, TRIAL); CLASSES]), stream: possible(stream) }
    }

    /// Goes by another word of the table from now on.
    pub fn go_by(&mut self, stream: u32) {
        self.stream = possible(stream);
    }

    /// The class of messages of `bytes` bytes, whose way has to be found.
    fn class(&mut self, bytes: usize) -> Option<&mut Class> {
        let at = (bytes / LEAST).checked_ilog2().filter(|_| self.stream == 0)?;
        Some(&mut self.classes[(at as usize).min(CLASSES - 1)])
    }

    /// The way of the next call, of a message of `bytes` bytes.
    #[inline]
    pub fn next(&mut self, bytes: usize) -> Way {
        let forced = match self.stream {
            STREAM_BY_STRING => Way::ByString,
            STREAM_BOTH_BY_STRING => Way::BothByString,
            _ => Way::Cached,
        };
        let ways = self.ways;
        match self.class(bytes) {
            Some(class) => class.next(),
            None if ways.contains(&forced) => forced,
            None => Way::Cached,
        }
    }

    /// Whether the call of this position, of a message of `bytes` bytes, is one of those that are measured.
    #[inline]
    pub fn measures(&mut self, position: u64, bytes: usize) -> bool {
        self.class(bytes).is_some_and(|class| class.compares() || is_rare_sample(position))
    }

    /// Takes what the call of this position has cost, which has just ended, since `begun`, in ticks.
    #[inline]
    pub fn learn(&mut self, position: u64, bytes: usize, way: Way, begun: u64) {
        if self.measures(position, bytes) {
            let figure = cost(ticks_behind_loads().wrapping_sub(begun), bytes);
            self.class(bytes).into_iter().for_each(|class| Self::note(class, way, figure));
        }
    }

    fn note(class: &mut Class, way: Way, figure: u64) {
        class.learn_write(way, figure);
        // There is no other part.
        class.learn_read(way, 1);
    }
}

#[cfg(test)]
#[cfg(target_arch = "x86_64")]
mod tests {
    use super::*;

    /// Messages of each length find their own way, and short ones are not asked for any.
    #[test]
    fn each_length_finds_its_way() {
        let mut calls = Calls::new(Calls::HALVES, 0);
        let costs = |bytes: usize| match bytes {
            0x8000 => [100, 50, 100],
            0x10_0000 => [100, 90, 40],
            _ => [100, 98, 97],
        };
        for _ in 0..3000 {
            for bytes in [LEAST - 1, 0x8000, 0x10_0000, usize::MAX] {
                let way = calls.next(bytes);
                let of = Calls::HALVES.iter().position(|&known| known == way).unwrap();
                assert!(bytes >= LEAST || way == Way::Cached);
                if let Some(class) = calls.class(bytes) {
                    Calls::note(class, way, costs(bytes)[of]);
                }
            }
        }
        let found = [LEAST - 1, 0x8000, 0x10_0000, usize::MAX].map(|bytes| calls.next(bytes));
        assert_eq!(found, [Way::Cached, Way::ByString, Way::BothByString, Way::Cached]);
        for (stream, way) in [(1, Way::Cached), (2, Way::Cached), (3, Way::ByString), (4, Way::BothByString)] {
            calls.go_by(stream);
            assert_eq!(calls.next(1 << 20), way, "{stream}");
        }
        // A word that means nothing to a call is no word.
        let mut calls = Calls::new(Calls::BACK, STREAM_BY_STRING);
        assert_eq!(calls.next(1 << 20), Way::Cached);
        calls.go_by(STREAM_BOTH_BY_STRING);
        assert_eq!(calls.next(1 << 20), Way::BothByString);
    }
}
