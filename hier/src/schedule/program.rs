//! What one rank does: rounds of sends and receives.

/// Segments `first, first + 1, ..`, modulo the number of segments of the program; `count` of them.
///
/// `first` is below the number of segments, `count` at most that number. A span of no segments is a message without
/// payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Span {
    /// The first segment.
    pub first: u32,
    /// How many segments.
    pub count: u32,
}

impl Span {
    /// No segment: the span of a message that only says that it was sent.
    pub const EMPTY: Span = Span { first: 0, count: 0 };

    /// One segment.
    pub fn one(segment: u32) -> Span {
        Span { first: segment, count: 1 }
    }

    /// The whole vector.
    pub fn all(segments: u32) -> Span {
        Span { first: 0, count: segments }
    }

    /// The segments, one by one, in the order of the span.
    pub fn segments(self, segments: u32) -> impl Iterator<Item = u32> {
        let before_end = segments.saturating_sub(self.first).min(self.count);
        (self.first..self.first + before_end).chain(0..self.count - before_end)
    }

    /// Whether two spans of one vector have a segment in common.
    pub fn overlaps(self, other: Span, segments: u32) -> bool {
        if self.count == 0 || other.count == 0 || segments == 0 {
            return false;
        }
        // How far the one starts behind the other, going round.
        let behind = |a: u32, b: u32| (u64::from(b) + u64::from(segments) - u64::from(a)) % u64::from(segments);
        behind(self.first, other.first) < u64::from(self.count)
            || behind(other.first, self.first) < u64::from(other.count)
    }
}

/// What is done with what arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Combine {
    /// It takes the place of what is there.
    Replace,
    /// The result is `arrived op own`: what arrives stands left of what is there.
    Left,
    /// The result is `own op arrived`: what arrives stands right of what is there.
    Right,
}

/// A message that leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Send {
    /// The rank that receives it.
    pub to: u32,
    /// What it carries.
    pub span: Span,
}

/// A message that arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Receive {
    /// The rank that sends it.
    pub from: u32,
    /// What it carries, and where it goes: the same span as the sender's.
    pub span: Span,
    /// What is done with it.
    pub combine: Combine,
}

/// Sends and receives that run at the same time; the round ends when all of them have ended.
///
/// All sends read the vector as it was before any receive of the round is applied. A receive that replaces never
/// overlaps a send of its round, so it may go straight to its place; one that combines may overlap, and then waits
/// elsewhere until the send has ended. Receives are applied in the order of the list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Round {
    /// What leaves.
    pub sends: Vec<Send>,
    /// What arrives.
    pub receives: Vec<Receive>,
}

impl Round {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.sends.is_empty() && self.receives.is_empty()
    }

    /// A round with one message that leaves.
    pub(super) fn send(to: u32, span: Span) -> Round {
        Round { sends: vec![Send { to, span }], receives: Vec::new() }
    }

    /// A round with one message that arrives.
    pub(super) fn receive(from: u32, span: Span, combine: Combine) -> Round {
        Round { sends: Vec::new(), receives: vec![Receive { from, span, combine }] }
    }

    /// A round with a message each way.
    pub(super) fn both(send: Send, receive: Receive) -> Round {
        Round { sends: vec![send], receives: vec![receive] }
    }
}

/// What one rank does.
///
/// All programs of a schedule have the same `ranks`, the same `segments` and, as [`Pattern`](super::Pattern) makes
/// them, equally many rounds; a message that is sent in round k is received in round k. Rounds in which the rank has
/// nothing to do are empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The rank whose program it is.
    pub rank: u32,
    /// How many ranks take part.
    pub ranks: u32,
    /// Into how many segments the vector is parted; at least 1.
    pub segments: u32,
    /// What it does, round after round.
    pub rounds: Vec<Round>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_go_round() {
        let segments = |first, count| Span { first, count }.segments(5).collect::<Vec<_>>();
        assert_eq!(segments(1, 3), [1, 2, 3]);
        assert_eq!(segments(3, 4), [3, 4, 0, 1]);
        assert_eq!(segments(4, 5), [4, 0, 1, 2, 3]);
        assert_eq!(segments(4, 0), [] as [u32; 0]);
    }

    #[test]
    fn overlaps_agree_with_the_segments_themselves() {
        for size in 1..=7 {
            let spans = || (0..size).flat_map(|first| (0..=size).map(move |count| Span { first, count }));
            for a in spans() {
                for b in spans() {
                    let common = a.segments(size).any(|segment| b.segments(size).any(|other| other == segment));
                    assert_eq!(a.overlaps(b, size), common, "{a:?} and {b:?} of {size}");
                }
            }
        }
    }
}
