//! Which send meets which receive.

use super::Flaw;
use crate::schedule::{Program, Span};

/// A send or a receive, seen from its program.
#[derive(Debug, Clone, Copy)]
struct End {
    from: u32,
    to: u32,
    /// The round, in the program it stands in.
    round: usize,
    /// Its number among all ends of its direction.
    id: usize,
    span: Span,
}

/// All sends and receives in pairs. Both are numbered through: rank after rank, round after round, in the order of the
/// lists.
pub(super) struct Matching {
    /// For each send its pair.
    pub(super) pair_of_send: Vec<usize>,
    /// For each receive its pair.
    pub(super) pair_of_receive: Vec<usize>,
}

impl Matching {
    /// Pairs the k-th send from one rank to another with the k-th receive there.
    pub(super) fn of(programs: &[Program]) -> Result<Matching, Flaw> {
        let (mut sends, mut receives) = (Vec::new(), Vec::new());
        for program in programs {
            for (number, round) in program.rounds.iter().enumerate() {
                sends.extend(round.sends.iter().map(|send| (program.rank, send.to, number, send.span)));
                receives.extend(round.receives.iter().map(|r| (r.from, program.rank, number, r.span)));
            }
        }
        let (sends, receives) = (sorted(sends), sorted(receives));
        let mut matching = Matching { pair_of_send: vec![0; sends.len()], pair_of_receive: vec![0; receives.len()] };
        for pair in 0..sends.len().max(receives.len()) {
            let (send, receive) = (sends.get(pair), receives.get(pair));
            let ends = |end: &&End| (end.from, end.to);
            match (send, receive) {
                (Some(send), Some(receive)) if ends(&send) == ends(&receive) => {
                    if send.span != receive.span {
                        return Err(Flaw::SpansDiffer {
                            from: send.from,
                            sent: send.round,
                            send: send.span,
                            to: send.to,
                            received: receive.round,
                            receive: receive.span,
                        });
                    }
                    matching.pair_of_send[send.id] = pair;
                    matching.pair_of_receive[receive.id] = pair;
                }
                // The one that comes first in the order has no counterpart.
                (Some(send), other) if other.is_none_or(|receive| ends(&send) < ends(&receive)) => {
                    let number = number(&sends, pair);
                    return Err(Flaw::Unreceived { from: send.from, round: send.round, to: send.to, number });
                }
                (_, Some(receive)) => {
                    let number = number(&receives, pair);
                    return Err(Flaw::Unsent { to: receive.to, round: receive.round, from: receive.from, number });
                }
                // The second arm takes every send that the first and the third leave.
                (_, None) => {}
            }
        }
        Ok(matching)
    }
}

/// By sender and receiver, and then as they stand in the program.
fn sorted(ends: Vec<(u32, u32, usize, Span)>) -> Vec<End> {
    let numbered = ends.into_iter().enumerate();
    let mut ends: Vec<End> = numbered.map(|(id, (from, to, round, span))| End { from, to, round, id, span }).collect();
    ends.sort_by_key(|end| (end.from, end.to));
    ends
}

/// Which of the messages between its two ranks this one is.
fn number(ends: &[End], at: usize) -> usize {
    let of = |end: &End| (end.from, end.to);
    ends[..at].iter().rev().take_while(|end| of(end) == of(&ends[at])).count()
}
