//! MPI_Reduce_scatter and MPI_Reduce_scatter_block (MPI 4.1, section 6.10), on one node.
//!
//! The counts of all parts are known to all ranks, and decide with the type and the operator.

use std::ffi::c_int;

use super::Call;
use super::forms::{Width, forms};
use super::reduction::{Arguments, Goal, Lengths, Parts, refuses_one_buffer};
use crate::abi::{self, Word};
use crate::communicators::Group;
use crate::stats::Reason;
use crate::types;
use crate::what::What;
use crate::{life, verify};

forms! {
    /// MPI_Reduce_scatter.
    reduce_scatter reduce_scatter_c(send, recv, counts, datatype, op, comm) |width, next| {
        let scattering = Scattering { send, recv, counts: Counts::Array(width, counts), datatype, op };
        run(What::ReduceScatter, &scattering, comm, || next(send, recv, counts, datatype, op, comm))
    };
    /// MPI_Reduce_scatter_block.
    reduce_scatter_block reduce_scatter_block_c(send, recv, count, datatype, op, comm) |width, next| {
        let scattering = Scattering { send, recv, counts: Counts::Even(width.count(count)), datatype, op };
        run(What::ReduceScatterBlock, &scattering, comm, || next(send, recv, count, datatype, op, comm))
    };
}

/// How many elements the parts have.
enum Counts {
    Even(isize),
    Array(Width, Word),
}

/// What a call passes.
struct Scattering {
    send: Word,
    recv: Word,
    counts: Counts,
    datatype: Word,
    op: Word,
}

impl Scattering {
    /// The bytes by which a call is decided: of equal parts those of one, of others all together, as of blocks that are
    /// moved.
    fn glance(&self, group: &Group) -> Option<usize> {
        let count = match self.counts {
            Counts::Even(count) => usize::try_from(count).ok()?,
            // SAFETY: by MPI's contract there is a count for each rank.
            Counts::Array(width, array) => unsafe { width.sum(array, group.ranks) }?,
        };
        types::bytes(count, self.datatype)
    }

    /// The parts; nothing, if a count is wrong.
    fn parts(&self, group: &Group) -> Option<Parts> {
        let lengths = match self.counts {
            Counts::Even(count) => Lengths::Even(usize::try_from(count).ok()?),
            Counts::Array(_, 0) => return None,
            Counts::Array(width, array) => {
                // SAFETY: by MPI's contract there is a count for each rank.
                let read = |rank: usize| usize::try_from(unsafe { width.read(array, rank) }).ok();
                Lengths::Uneven((0..group.ranks).map(read).collect::<Option<_>>()?)
            }
        };
        Parts::new(lengths, group.ranks, group.rank)
    }

    fn arguments<'a>(&self, parts: &'a Parts) -> Arguments<'a> {
        let count = parts.total as isize;
        let Self { send, recv, datatype, op, .. } = *self;
        Arguments { send, recv, count, datatype, op, goal: Goal::Parts(parts) }
    }
}

fn run(what: What, scattering: &Scattering, comm: Word, hand_on: impl FnOnce() -> c_int) -> c_int {
    Call { what, comm }.run(
        |group| scattering.glance(group),
        |group| {
            let parts = scattering.parts(group).ok_or((Reason::Argument, 0))?;
            let (plan, total) = scattering.arguments(&parts).plan()?;
            // As at a glance.
            let bytes = if what == What::ReduceScatterBlock { total / group.ranks } else { total };
            let Scattering { send, recv, .. } = *scattering;
            let is_one = send == recv && refuses_one_buffer();
            if send == 0 || (recv == 0 && parts.own > 0) || abi::is_in_place(recv) || is_one {
                return Err((Reason::Argument, bytes));
            }
            Ok(((plan, parts), bytes))
        },
        |ours, (plan, parts)| {
            let arguments = scattering.arguments(&parts);
            if life::settings().verify {
                return verify::reduction(&arguments, &plan, comm, ours.rank(), || arguments.carry_out(ours, &plan));
            }
            arguments.carry_out(ours, &plan)
        },
        hand_on,
    )
}
