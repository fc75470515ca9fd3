//! Stages: in which order a node reduces the segments of a vector, and in which it hands them out, while a schedule is
//! under way.
//!
//! A schedule does not need the whole vector at once. A ring begins with one segment, and comes to the next a round
//! later; and each segment is complete some rounds before the last. So a node reduces first what leaves first, and
//! hands out what is complete, while the network is busy with the rest: of what the node does only the first and the
//! last stage are waited for. No message is cut for it, and the order of additions is as without.

use crate::schedule::{Combine, Program};

/// A stage has at least so many bytes, but for the last, and a vector that has not room for four such is one: less
/// costs the node more than it hides.
const SHORTEST: usize = 32 << 10;
const FEWEST: usize = 4;

/// Points in the course of a program at which it needs, or has done with, a segment: before the messages of a round
/// begin, and before what has arrived in it is combined.
fn beginning(round: usize) -> usize {
    2 * round
}

fn combining(round: usize) -> usize {
    2 * round + 1
}

/// Some segments, and a point in the course of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stage {
    /// Ascending.
    pub segments: Vec<usize>,
    /// Of a stage that a node reduces, the point to which the program may not come before. Of one that it hands out,
    /// how many rounds have to end before; for the last one, all.
    pub point: usize,
}

/// The stages of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stages {
    /// In the order in which the node reduces them, by the points that [`Gate`] knows.
    pub reduce: Vec<Stage>,
    /// In the order in which the node hands them out, by rounds that have ended.
    pub hand_out: Vec<Stage>,
}

/// How far a program may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gate(usize);

impl Gate {
    /// To its end.
    pub const OPEN: Self = Self(usize::MAX);

    /// Up to a point, and not beyond it.
    pub fn before(point: usize) -> Self {
        Self(point)
    }

    /// Whether the messages of a round may begin.
    pub fn lets_begin(self, round: usize) -> bool {
        beginning(round) < self.0
    }

    /// Whether what has arrived in a round may be combined.
    pub fn lets_combine(self, round: usize) -> bool {
        combining(round) < self.0
    }
}

impl Stages {
    /// All at once.
    pub fn one(segments: usize) -> Self {
        let all = || vec![Stage { segments: (0..segments).collect(), point: 0 }];
        Self { reduce: all(), hand_out: all() }
    }

    /// Those of a program on segments of about `bytes` bytes each.
    pub fn of(program: &Program, bytes: usize) -> Self {
        let segments = program.segments as usize;
        if segments.saturating_mul(bytes) < FEWEST * SHORTEST {
            return Self::one(segments);
        }
        let mut needed = vec![usize::MAX; segments];
        let mut complete = vec![0; segments];
        for (round, messages) in program.rounds.iter().enumerate() {
            let sent = messages.sends.iter().map(|send| (send.span, beginning(round)));
            let received = messages.receives.iter().map(|receive| match receive.combine {
                // It may come as soon as it is asked for.
                Combine::Replace => (receive.span, beginning(round)),
                Combine::Left | Combine::Right => (receive.span, combining(round)),
            });
            for (span, point) in sent.chain(received) {
                for segment in span.segments(program.segments) {
                    needed[segment as usize] = needed[segment as usize].min(point);
                }
            }
            for receive in &messages.receives {
                for segment in receive.span.segments(program.segments) {
                    complete[segment as usize] = round + 1;
                }
            }
        }
        Self { reduce: parted(&needed, bytes, First), hand_out: parted(&complete, bytes, Last) }
    }
}

/// Which point of its segments is that of a stage.
#[derive(Clone, Copy, PartialEq)]
enum Which {
    First,
    Last,
}
use Which::{First, Last};

/// Segments in the order of their points, in stages that are long enough; those of one point stay together.
fn parted(points: &[usize], bytes: usize, which: Which) -> Vec<Stage> {
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by_key(|&segment| points[segment]);
    let mut stages: Vec<Stage> = Vec::new();
    let mut last = None;
    for segment in order {
        let point = points[segment];
        match stages.last_mut().filter(|stage| last == Some(point) || stage.segments.len() * bytes < SHORTEST) {
            Some(stage) => {
                stage.segments.push(segment);
                stage.point = if which == First { stage.point } else { point };
            }
            None => stages.push(Stage { segments: vec![segment], point }),
        }
        last = Some(point);
    }
    stages.iter_mut().for_each(|stage| stage.segments.sort_unstable());
    stages
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{Algorithm, Goal};

    fn program(algorithm: Algorithm, ranks: u32, rank: u32) -> Program {
        algorithm.program(Goal::Allreduce, ranks, rank).unwrap()
    }

    #[test]
    fn a_ring_begins_with_what_leaves_first() {
        let stages = Stages::of(&program(Algorithm::Ring, 4, 1), SHORTEST);
        let list =
            |stages: &[Stage]| stages.iter().map(|stage| (stage.segments.clone(), stage.point)).collect::<Vec<_>>();
        // Rank 1 sends segment 0, then 3, 2; it has segment 1 complete after three rounds, and then 0, 3, 2 arrive.
        assert_eq!(list(&stages.reduce), [(vec![0], 0), (vec![3], 1), (vec![2], 3), (vec![1], 5)]);
        assert_eq!(list(&stages.hand_out), [(vec![1], 3), (vec![0], 4), (vec![3], 5), (vec![2], 6)]);
        // Of short segments, several make a stage.
        let stages = Stages::of(&program(Algorithm::Ring, 8, 1), SHORTEST / 2);
        assert_eq!(list(&stages.reduce), [(vec![0, 7], 0), (vec![5, 6], 3), (vec![3, 4], 7), (vec![1, 2], 11)]);
        assert_eq!(list(&stages.hand_out), [(vec![0, 1], 8), (vec![6, 7], 10), (vec![4, 5], 12), (vec![2, 3], 14)]);
        assert_eq!(Stages::of(&program(Algorithm::Ring, 4, 1), SHORTEST / 2), Stages::one(4));
        assert_eq!(Stages::of(&program(Algorithm::RecursiveDoubling, 4, 1), 1 << 20).reduce.len(), 1);
    }

    /// Executes the gates: what a program touches was reduced, and what is handed out is not changed any more.
    #[test]
    fn nothing_is_touched_before_it_is_there_or_changed_when_it_has_gone() {
        for algorithm in Algorithm::ALL.into_iter().filter(|one| one.pattern(Goal::Allreduce, 2).is_ok()) {
            for (ranks, bytes) in (2..=20).flat_map(|ranks| [1, 9000, SHORTEST].map(|bytes| (ranks, bytes))) {
                for program in (0..ranks).map(|rank| program(algorithm, ranks, rank)) {
                    let stages = Stages::of(&program, bytes);
                    for list in [&stages.reduce, &stages.hand_out] {
                        let mut all: Vec<usize> = list.iter().flat_map(|stage| stage.segments.clone()).collect();
                        all.sort_unstable();
                        assert!(all.into_iter().eq(0..program.segments as usize));
                    }
                    for (k, stage) in stages.reduce.iter().enumerate() {
                        let gate = Gate::before(stage.point);
                        for (round, messages) in program.rounds.iter().enumerate().filter(|_| k > 0) {
                            let later = |span: crate::schedule::Span| {
                                let mut later = stages.reduce[k..].iter().flat_map(|stage| &stage.segments);
                                later.any(|&late| span.segments(program.segments).any(|one| one as usize == late))
                            };
                            let begins = messages.sends.iter().any(|send| later(send.span));
                            let combines = messages.receives.iter().any(|receive| later(receive.span));
                            let replaces = messages
                                .receives
                                .iter()
                                .any(|receive| receive.combine == Combine::Replace && later(receive.span));
                            assert!(!(begins || replaces) || !gate.lets_begin(round), "{algorithm} {ranks} {round}");
                            assert!(!combines || !gate.lets_combine(round), "{algorithm} {ranks} {round}");
                        }
                    }
                    // The last stage waits for all rounds.
                    for stage in stages.hand_out.split_last().map_or(&[][..], |(_, others)| others) {
                        let after = program.rounds.iter().skip(stage.point);
                        let mut received = after.flat_map(|round| &round.receives);
                        assert!(!received.any(|receive| {
                            let mut span = receive.span.segments(program.segments);
                            span.any(|segment| stage.segments.contains(&(segment as usize)))
                        }));
                    }
                }
            }
        }
    }
}
