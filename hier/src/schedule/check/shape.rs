//! What can be seen to be wrong in a program without executing it.

use super::Flaw;
use crate::schedule::{Combine, Goal, Program, Round, Span};

pub(super) fn check(programs: &[Program], goal: Goal) -> Result<(), Flaw> {
    let segments = match goal {
        Goal::ReduceScatter | Goal::Allgather => programs.len() as u32,
        _ => programs.first().map_or(0, |program| program.segments),
    };
    for (place, program) in programs.iter().enumerate() {
        let fits = program.rank as usize == place
            && program.ranks as usize == programs.len()
            && program.segments == segments
            && segments > 0;
        if !fits {
            return Err(Flaw::Misplaced {
                place,
                programs: programs.len(),
                rank: program.rank,
                ranks: program.ranks,
                segments: program.segments,
                wanted: format!("it should be of rank {place} of {} with {} segments", programs.len(), segments.max(1)),
            });
        }
        for (number, round) in program.rounds.iter().enumerate() {
            peers(program, number, round)?;
            overlaps(program, number, round)?;
        }
    }
    Ok(())
}

/// Peers and spans exist.
fn peers(program: &Program, number: usize, round: &Round) -> Result<(), Flaw> {
    let (rank, ranks, segments) = (program.rank, program.ranks, program.segments);
    let sends = round.sends.iter().map(|send| ("to", send.to, send.span));
    let receives = round.receives.iter().map(|receive| ("from", receive.from, receive.span));
    for (direction, peer, Span { first, count }) in sends.chain(receives) {
        if peer >= ranks || peer == rank {
            return Err(Flaw::Peer { rank, round: number, direction, peer, ranks });
        }
        if first >= segments || count > segments {
            return Err(Flaw::SpanOutOfRange { rank, round: number, first, count, segments });
        }
    }
    Ok(())
}

/// Nothing is replaced that the same round sends or receives.
fn overlaps(program: &Program, number: usize, round: &Round) -> Result<(), Flaw> {
    let segments = program.segments;
    for (i, receive) in round.receives.iter().enumerate() {
        let overwritten = |other: Span, meanwhile: String| {
            let segment = receive.span.segments(segments).find(|&s| other.overlaps(Span::one(s), segments));
            Flaw::Overwritten {
                rank: program.rank,
                round: number,
                segment: segment.unwrap_or(receive.span.first),
                from: receive.from,
                meanwhile,
            }
        };
        if receive.combine != Combine::Replace {
            continue;
        }
        if let Some(send) = round.sends.iter().find(|send| send.span.overlaps(receive.span, segments)) {
            return Err(overwritten(send.span, format!("it is sent to rank {}", send.to)));
        }
        let others = round.receives.iter().enumerate().filter(|&(j, _)| j != i);
        if let Some((_, other)) = others.into_iter().find(|(_, other)| other.span.overlaps(receive.span, segments)) {
            return Err(overwritten(other.span, format!("it is received from rank {} too", other.from)));
        }
    }
    Ok(())
}
