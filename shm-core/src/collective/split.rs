//! New communicators (MPI 4.1, section 7.4.2): split and duplicate.

use std::sync::Arc;

use crate::communicator::Communicator;
use crate::error::{Error, Result};
use crate::operator::{BitOr, Fold};
use crate::segment::memory_file::MEMORY_ADVICE;

/// What stands for the element's type in tags: numbers that are no type's.
const WISHES: u64 = 1;
const GRANTS: u64 = 2;

/// What the leader of a new group tells its members.
#[derive(Clone, Copy, Debug, Default, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Grant {
    /// Where the block lies, plus one; 0 when it could not be had.
    offset: u64,
    /// When it could not: what was needed, free and there in all, or what was needed and twice nothing when the system
    /// had no memory to back it.
    shortage: [u64; 3],
}

/// Of the rank of the job that was to take a block.
fn shortage(rank: usize, bytes: u64) -> Error {
    let cause = "the system has no memory to back it".to_owned();
    Error::Memory { rank: Some(rank), what: "a communicator's block", bytes, cause, advice: MEMORY_ADVICE }
}

/// What each rank says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Wish {
    takes_part: u64,
    color: u64,
    key: i64,
}

impl Communicator {
    /// Divides the group: ranks of one `color` form a new communicator, ordered by `key`, then by rank. A rank without
    /// a color takes part in the call and gets none (MPI_Comm_split; MPI 4.1, section 7.4.2).
    ///
    /// Collective. The new communicator takes a block of the segment's arena, and gives it back when its last handle is
    /// dropped. Dropping is not collective: it waits for nobody, and calls of others that are due then return
    /// [`Dropped`](Error::Dropped).
    ///
    /// # Errors
    /// [`ArenaExhausted`](Error::ArenaExhausted) or [`Memory`](Error::Memory) on all ranks alike when one group's block
    /// cannot be had: nothing is kept. Others as for an allreduce.
    pub fn split(&self, color: Option<u32>, key: i64) -> Result<Option<Self>> {
        let wish = Wish { takes_part: u64::from(color.is_some()), color: u64::from(color.unwrap_or(0)), key };
        let wishes = self.collect(wish, WISHES)?;
        self.enter()?.board.uncount_last();
        let group = |color: u64| {
            let mut members: Vec<usize> =
                (0..self.size()).filter(|&rank| wishes[rank].takes_part == 1 && wishes[rank].color == color).collect();
            members.sort_by_key(|&rank| (wishes[rank].key, rank));
            members
        };
        let members = group(wish.color);
        let leads = color.is_some() && members.first() == Some(&self.rank());
        let grant = if leads { self.take_block_for(members.len()) } else { Grant::default() };
        // Should this fail, others may have joined the block already: it stays taken, with the communicator that
        // failed.
        let grants = self.collect(grant, GRANTS)?;
        for leader in (0..self.size()).filter(|&rank| wishes[rank].takes_part == 1) {
            let members_there = group(wishes[leader].color);
            if members_there[0] == leader && grants[leader].offset == 0 {
                self.return_grant(&grant, members.len());
                return Err(match grants[leader].shortage {
                    [bytes, 0, 0] => shortage(self.enter()?.board.members()[leader], bytes),
                    [needed, free, arena] => Error::ArenaExhausted { needed, free, arena },
                });
            }
        }
        if color.is_none() {
            return Ok(None);
        }
        let rank = members.iter().position(|&member| member == self.rank()).expect("a rank is in its own group");
        let offset = grants[members[0]].offset - 1;
        let (plan, world) = {
            let mut engine = self.enter()?;
            let world = members.iter().map(|&member| engine.board.members()[member]).collect();
            (engine.trees().plan().restrict(&members), world)
        };
        // G1: after the grant was read. SAFETY: the group's leader opened this block for these members before it
        // published the grant; each joins once.
        Ok(Some(unsafe { Self::join(Arc::clone(self.seat()), offset, rank, world, plan) }))
    }

    /// A communicator of the same ranks in the same order, whose calls are independent of this one's (MPI_Comm_dup; MPI
    /// 4.1, section 7.4.2). Collective.
    ///
    /// # Errors
    /// As [`split`](Communicator::split).
    pub fn duplicate(&self) -> Result<Self> {
        Ok(self.split(Some(0), 0)?.expect("every rank has a color"))
    }

    fn take_block_for(&self, size: usize) -> Grant {
        let layout = self.seat().mapping().header().select(size).block_layout();
        let mapping = self.seat().mapping();
        match mapping.take_block(self.seat().rank(), &layout) {
            Ok(offset) => {
                // G1: before the grant is published.
                // SAFETY: the block was just taken with this layout.
                unsafe { Self::open_block(mapping, offset, &layout, size) };
                Grant { offset: offset + 1, shortage: [0; 3] }
            }
            Err(Error::ArenaExhausted { needed, free, arena }) => Grant { offset: 0, shortage: [needed, free, arena] },
            Err(_) => Grant { offset: 0, shortage: [layout.total() as u64, 0, 0] },
        }
    }

    fn return_grant(&self, grant: &Grant, size: usize) {
        if let Some(offset) = grant.offset.checked_sub(1) {
            let layout = self.seat().mapping().header().select(size).block_layout();
            self.seat().mapping().give_block_back(self.seat().rank(), offset, layout.total());
        }
    }

    /// Everybody's `item`, by rank. No other call has elements of this kind: what comes in is what ranks have said
    /// here.
    fn collect<T: bytemuck::Pod + Default>(&self, item: T, kind: u64) -> Result<Vec<T>> {
        let mut table = vec![T::default(); self.size()];
        table[self.rank()] = item;
        // Each place is filled by one rank and zero elsewhere: bitwise OR joins them.
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut table);
        let (buffer, length) = (bytes.as_mut_ptr(), bytes.len());
        let mut fold = Fold::new::<u8, _>(&BitOr);
        fold.kind = kind;
        self.allreduce(buffer, buffer, length, fold)?;
        Ok(table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An allreduce of as many bytes is another call, whatever they say.
    #[test]
    fn nobody_else_tells_where_a_block_lies() {
        Communicator::threads(2, |comm| {
            let failed = match comm.rank() {
                0 => comm.duplicate().map(|_| ()),
                _ => comm.all_reduce_in_place(&mut [0xff_u8; 2 * size_of::<Wish>()], BitOr),
            };
            assert!(matches!(failed, Err(Error::Mismatch { .. })), "{failed:?}");
        })
        .unwrap();
    }
}
