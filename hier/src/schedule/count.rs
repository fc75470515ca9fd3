//! What programs send and receive, counted.

use std::ops::AddAssign;

use super::{Pattern, Program, Round, Schedule, Span};

/// Messages and what they carry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Volume {
    /// Messages, those without payload included.
    pub messages: u64,
    /// Segments in them.
    pub segments: u64,
    /// Elements in them.
    pub elements: u64,
}

impl Volume {
    fn add(&mut self, span: Span, elements: usize, segments: u32) {
        self.messages += 1;
        self.segments += u64::from(span.count);
        self.elements += span.len(elements, segments) as u64;
    }
}

impl AddAssign for Volume {
    fn add_assign(&mut self, other: Volume) {
        self.messages += other.messages;
        self.segments += other.segments;
        self.elements += other.elements;
    }
}

/// What one rank, or all of them together, do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Rounds in which there is something to do; of several ranks, those of the rank that has most.
    pub rounds: u32,
    /// What leaves.
    pub sent: Volume,
    /// What arrives.
    pub received: Volume,
}

impl Count {
    fn add(&mut self, round: &Round, elements: usize, segments: u32) {
        self.rounds += u32::from(!round.is_empty());
        for send in &round.sends {
            self.sent.add(send.span, elements, segments);
        }
        for receive in &round.receives {
            self.received.add(receive.span, elements, segments);
        }
    }

    fn total(counts: impl Iterator<Item = Count>) -> Count {
        counts.fold(Count::default(), |mut total, count| {
            total.rounds = total.rounds.max(count.rounds);
            total.sent += count.sent;
            total.received += count.received;
            total
        })
    }
}

impl Program {
    /// What the rank does with a vector of `elements` elements.
    pub fn count(&self, elements: usize) -> Count {
        let mut count = Count::default();
        for round in &self.rounds {
            count.add(round, elements, self.segments);
        }
        count
    }
}

impl Pattern {
    /// What `rank` does with a vector of `elements` elements, without making its program.
    pub fn count(&self, rank: u32, elements: usize) -> Count {
        let mut count = Count::default();
        for round in 0..self.rounds() {
            count.add(&self.round(rank, round), elements, self.segments());
        }
        count
    }

    /// What all ranks together do, without making their programs. Time for all their rounds.
    pub fn total(&self, elements: usize) -> Count {
        Count::total((0..self.ranks()).map(|rank| self.count(rank, elements)))
    }

    /// The messages of one round as `(from, to, bytes)`, for a vector of `elements` elements of `size` bytes each: what
    /// the links of a cluster have to carry at the same time. Messages without payload are among them.
    pub fn flows(&self, round: u32, elements: usize, size: usize) -> impl Iterator<Item = (usize, usize, u64)> {
        let pattern = *self;
        (0..self.ranks()).flat_map(move |rank| {
            pattern
                .round(rank, round)
                .sends
                .into_iter()
                .map(move |send| flow(rank, send.to, send.span, pattern.segments(), elements, size))
        })
    }
}

impl Schedule {
    /// What all ranks together do with a vector of `elements` elements.
    pub fn total(&self, elements: usize) -> Count {
        Count::total(self.programs.iter().map(|program| program.count(elements)))
    }

    /// As [`Pattern::flows`]: the messages that the ranks send in their round `round`.
    pub fn flows(
        &self,
        round: usize,
        elements: usize,
        size: usize,
    ) -> impl Iterator<Item = (usize, usize, u64)> + use<'_> {
        self.programs.iter().flat_map(move |program| {
            let sends = program.rounds.get(round).map_or(&[][..], |round| &round.sends);
            sends.iter().map(move |send| flow(program.rank, send.to, send.span, program.segments, elements, size))
        })
    }
}

fn flow(from: u32, to: u32, span: Span, segments: u32, elements: usize, size: usize) -> (usize, usize, u64) {
    (from as usize, to as usize, span.len(elements, segments) as u64 * size as u64)
}
