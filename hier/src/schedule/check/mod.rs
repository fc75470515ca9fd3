//! Symbolic execution of the programs of all ranks.

mod execution;
mod flaw;
mod matching;
mod operands;
mod shape;

pub use flaw::Flaw;

use std::rc::Rc;

use smallvec::SmallVec;

use super::{Combine, Goal, Program, Receive, Span};
use execution::Contents;
use matching::Matching;
use operands::{Operands, Ranks};

/// Whether these programs achieve the goal, whatever the operands are and however fast the ranks run.
///
/// `programs` are those of all ranks, in the order of ranks. They are executed with sets of operands for values, in the
/// strictest way: a send ends only when its receive has been started. Checked is that
///
/// * peers and spans exist, and nothing is replaced that is sent, or received otherwise, in the same round;
/// * each send meets one receive, the k-th between two ranks the k-th, with the same span;
/// * no rank waits for ever;
/// * nothing is sent or combined that is not there, and no operand is combined with itself;
/// * `ordered`: operands are combined with their neighbours in rank order only, and on the right side;
/// * where the goal wants a result, it has every operand that belongs to it.
///
/// # Cost
///
/// For each of N ranks and each of S segments a set of N bits, shared where it is the same: at most N²S/8 bytes. Time
/// for all messages, N/64 words for each segment in them.
///
/// # Errors
///
/// The first [`Flaw`] found.
pub fn check(programs: &[Program], goal: Goal, ordered: bool) -> Result<(), Flaw> {
    shape::check(programs, goal)?;
    let matching = Matching::of(programs)?;
    if goal == Goal::Barrier {
        let mut entered = Entered::new(programs.len() as u32);
        execution::run(programs, &matching, &mut entered)?;
        return entered.finish();
    }
    let mut vectors = Vectors::new(programs, goal, ordered);
    execution::run(programs, &matching, &mut vectors)?;
    vectors.finish(goal)
}

/// For each rank and segment the operands that are there.
struct Vectors {
    ranks: u32,
    segments: u32,
    ordered: bool,
    held: Vec<Vec<Option<Rc<Operands>>>>,
}

impl Vectors {
    fn new(programs: &[Program], goal: Goal, ordered: bool) -> Vectors {
        let ranks = programs.len() as u32;
        let segments = programs.first().map_or(0, |program| program.segments);
        let start = |rank: u32| {
            let own = Operands::of(ranks, rank);
            let starts_with = |segment| match goal {
                Goal::Broadcast { root } => root == rank,
                Goal::Allgather => segment == rank,
                _ => true,
            };
            (0..segments).map(|segment| starts_with(segment).then(|| own.clone())).collect()
        };
        Vectors { ranks, segments, ordered, held: (0..ranks).map(start).collect() }
    }

    fn combine(
        &self,
        (rank, round, segment): (u32, usize, u32),
        receive: &Receive,
        arrived: &Rc<Operands>,
        own: &Operands,
    ) -> Result<Rc<Operands>, Flaw> {
        if let Some(twice) = arrived.set.first_common(&own.set) {
            return Err(Flaw::Twice { rank, round, segment, from: receive.from, twice });
        }
        let (left, right) = match receive.combine {
            Combine::Replace => return Ok(arrived.clone()),
            Combine::Left => (&**arrived, own),
            Combine::Right => (own, &**arrived),
        };
        if self.ordered && !left.are_followed_by(right) {
            return Err(Flaw::OutOfOrder { rank, round, segment, left: left.ends, right: right.ends });
        }
        Ok(left.then(right))
    }

    fn finish(&self, goal: Goal) -> Result<(), Flaw> {
        let everybody = Ranks::all(self.ranks);
        let nobody = Ranks::none(self.ranks);
        // Who may be wanted alone: the root, or the one whom a segment belongs to.
        let alone: Vec<Ranks> = match goal {
            Goal::Broadcast { root } => vec![Ranks::one(self.ranks, root)],
            Goal::Allgather => (0..self.segments).map(|segment| Ranks::one(self.ranks, segment)).collect(),
            _ => Vec::new(),
        };
        for rank in 0..self.ranks {
            for segment in 0..self.segments {
                let wanted = match goal {
                    Goal::Allreduce => &everybody,
                    Goal::Reduce { root } if rank == root => &everybody,
                    Goal::ReduceScatter if rank == segment => &everybody,
                    Goal::Broadcast { .. } => &alone[0],
                    Goal::Allgather => &alone[segment as usize],
                    Goal::Reduce { .. } | Goal::ReduceScatter | Goal::Barrier => continue,
                };
                let held = self.held[rank as usize][segment as usize].as_ref().map_or(&nobody, |held| &held.set);
                // It cannot have others: nobody has operands that the goal leaves out.
                if let Some(operand) = wanted.first_beyond(held) {
                    return Err(Flaw::Missing { rank, segment, operand });
                }
            }
        }
        Ok(())
    }
}

impl Contents for Vectors {
    /// Most messages have one segment.
    type Parcel = SmallVec<[Rc<Operands>; 1]>;

    fn pack(&self, rank: u32, round: usize, span: Span) -> Result<Self::Parcel, Flaw> {
        let missing = |segment| Flaw::Undefined { rank, round, segment, doing: "sent" };
        let held = &self.held[rank as usize];
        span.segments(self.segments)
            .map(|segment| held[segment as usize].clone().ok_or_else(|| missing(segment)))
            .collect()
    }

    fn unpack(&mut self, rank: u32, round: usize, receive: &Receive, parcel: Self::Parcel) -> Result<(), Flaw> {
        for (segment, arrived) in receive.span.segments(self.segments).zip(parcel) {
            let own = self.held[rank as usize][segment as usize].as_ref();
            let result = match (receive.combine, own) {
                (Combine::Replace, _) => arrived,
                (_, Some(own)) => self.combine((rank, round, segment), receive, &arrived, own)?,
                (_, None) => return Err(Flaw::Undefined { rank, round, segment, doing: "combined with" }),
            };
            self.held[rank as usize][segment as usize] = Some(result);
        }
        Ok(())
    }
}

/// For each rank of a barrier the ranks of which it knows that they have entered.
struct Entered(Vec<Ranks>);

impl Entered {
    fn new(ranks: u32) -> Entered {
        Entered((0..ranks).map(|rank| Ranks::one(ranks, rank)).collect())
    }

    fn finish(&self) -> Result<(), Flaw> {
        let everybody = Ranks::all(self.0.len() as u32);
        for (rank, known) in self.0.iter().enumerate() {
            if let Some(unheard) = everybody.first_beyond(known) {
                return Err(Flaw::LeavesEarly { rank: rank as u32, unheard });
            }
        }
        Ok(())
    }
}

impl Contents for Entered {
    type Parcel = Ranks;

    fn pack(&self, rank: u32, _: usize, _: Span) -> Result<Ranks, Flaw> {
        Ok(self.0[rank as usize].clone())
    }

    fn unpack(&mut self, rank: u32, _: usize, _: &Receive, known: Ranks) -> Result<(), Flaw> {
        self.0[rank as usize].join(&known);
        Ok(())
    }
}
