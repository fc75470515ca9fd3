//! The collectives that move blocks, one of each rank, on one node: allgather, alltoall, gather and scatter (MPI 4.1,
//! sections 6.5 to 6.8), with equal counts and with others.
//!
//! A block is the bytes of its signature, which agree wherever it is described. Everyday calls are carried out as they
//! stand (`plain`), others by a plan (`planned`); data of a type that do not simply follow one another are packed by
//! whose they are (`layout`). Where all ranks know the lengths of all blocks, calls of no bytes are handed on; in a
//! gatherv, scatterv or alltoallv each rank knows its own, so that all calls are carried out.

use std::ffi::c_int;

use hier::across::Error;

use super::Call;
use super::forms::Width;
use super::plain::{Everyday, Places};
use super::planned::Plan;
use crate::abi::{self, Word};
use crate::communicators::Group;
use crate::what::What;
use crate::{life, types, verify};

/// One block, as a caller describes it.
#[derive(Clone, Copy)]
pub struct One {
    pub at: Word,
    pub count: isize,
    pub datatype: Word,
}

/// A block for each rank, as a caller describes them.
#[derive(Clone, Copy)]
pub struct Many {
    pub at: Word,
    pub counts: Counts,
    pub datatype: Word,
}

/// How many elements the blocks have, and where they begin.
#[derive(Clone, Copy)]
pub enum Counts {
    /// So many each, one block behind the other.
    Even(isize),
    /// An array of counts, and one of displacements in elements.
    Arrays(Width, Word, Word),
}

/// What a call passes.
#[derive(Clone, Copy)]
pub enum Arguments {
    Allgather(One, Many),
    Alltoall(Many, Many),
    Gather(One, Many, isize),
    /// Blocks at the root, a rank's own, the root.
    Scatter(Many, One, isize),
}

impl One {
    /// Its bytes, where its type is predefined.
    #[inline]
    pub fn glance(&self) -> Option<usize> {
        types::bytes(usize::try_from(self.count).ok()?, self.datatype)
    }
}

impl Many {
    /// The bytes of one block, or of all where they differ, if their type is predefined.
    #[inline]
    pub fn glance(&self, ranks: usize) -> Option<usize> {
        let count = match self.counts {
            Counts::Even(count) => usize::try_from(count).ok()?,
            // SAFETY: by MPI's contract there is a count for each rank.
            Counts::Arrays(width, counts, _) => unsafe { width.sum(counts, ranks) }?,
        };
        types::bytes(count, self.datatype)
    }
}

impl Arguments {
    /// The bytes that decide who carries the call out, where types are predefined. They are those of the plan.
    #[inline]
    fn glance(&self, group: &Group) -> Option<usize> {
        match self {
            Self::Allgather(_, recv) => recv.glance(group.ranks),
            Self::Alltoall(_, recv) if matches!(recv.counts, Counts::Even(_)) => recv.glance(group.ranks),
            Self::Gather(own, all, _) | Self::Scatter(all, own, _) if matches!(all.counts, Counts::Even(_)) => {
                if abi::is_in_place(own.at) {
                    all.glance(group.ranks)
                } else {
                    own.glance()
                }
            }
            // No rank knows all lengths: they do not count.
            _ => Some(0),
        }
    }
}

/// How a call is carried out: as it stands, or by a plan.
enum Way<'a> {
    Plainly(Everyday<'a>),
    ByPlan(Box<Plan>),
}

/// Carries out a call, or hands it on: `hand_on` with another place than the result's, for the library's own answer.
#[inline]
pub fn run(what: What, arguments: &Arguments, comm: Word, hand_on: impl Fn(isize) -> c_int) -> c_int {
    let mut places = [const { Places::new() }; 2];
    let places = &mut places;
    Call { what, comm }.run(
        |group| arguments.glance(group),
        move |group| {
            let places = places;
            if !life::settings().verify
                && let Some((call, bytes)) = arguments.everyday(group, places)
            {
                return Ok((Way::Plainly(call), bytes));
            }
            arguments.plan(group).map(|(plan, bytes)| (Way::ByPlan(Box::new(plan)), bytes))
        },
        |ours, way| {
            let node = ours.single_node().ok_or(Error::Broken { rank: ours.rank() })?;
            let plan = match way {
                Way::ByPlan(plan) => plan,
                Way::Plainly(call) => return call.carry_out(node),
            };
            if life::settings().verify {
                let both = (arguments, &*plan);
                return verify::blocks(what, both, comm, node, &hand_on, || arguments.carry_out(node, &plan));
            }
            arguments.carry_out(node, &plan)
        },
        || hand_on(0),
    )
}
