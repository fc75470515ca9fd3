//! Reduce-scatter (MPI 4.1, section 6.10).

use super::REDUCE_SCATTER;
use super::blocks::{Known, Name};
use crate::communicator::Communicator;
use crate::element::Element;
use crate::error::Result;
use crate::operator::{Fold, Operator};
use crate::regime::Reduction;
use crate::regime::blocks::{Blocks, Sending};
use crate::regime::folded::{Folding, Operand};
use crate::select::Collective;
use crate::shared_result::Bytes;

impl Communicator {
    /// Combines everybody's `send`, and gives each rank its block of the result in `recv` (MPI_Reduce_scatter_block;
    /// MPI 4.1, section 6.10.1). `send` has a block for each rank, as long as `recv`.
    ///
    /// Collective: all ranks must give the same count, element type and operator. Everybody publishes rows, a part for
    /// each other rank, and combines its parts of everybody's, in rank order. What lies in shared memory, and is long
    /// enough ([`alloc`](Communicator::alloc)), is combined where it lies.
    ///
    /// # Cost
    /// Where the blocks of all other ranks fit in 1,144 bytes (504 on 3, 4 and more than 16 ranks that share cores)
    /// they go in one slot of lines: one line transfer deep. p(3p-1)n bytes loaded and stored for blocks of n bytes on
    /// p ranks; p(p+1)n where all `send`s are combined where they lie. Elements that are too large for parts of cells take
    /// an allreduce of the whole vector, and memory for it.
    ///
    /// # Errors
    /// [`Blocks`](crate::Error::Blocks), [`Tuning`](crate::Error::Tuning): refused, nothing was written.
    /// [`RankFailed`](crate::Error::RankFailed), [`Mismatch`](crate::Error::Mismatch),
    /// [`Refused`](crate::Error::Refused): `recv` holds no meaning, and the communicator cannot be used further.
    ///
    /// ```
    /// use shm_core::{Communicator, operator::Sum};
    /// let sums = Communicator::threads(2, |comm| {
    ///     let mut sum = [0; 2];
    ///     comm.reduce_scatter_block_into(&[1, 2, 3, 4], &mut sum, Sum).unwrap();
    ///     sum
    /// }).unwrap();
    /// assert_eq!(sums, [[2, 4], [6, 8]]);
    /// ```
    pub fn reduce_scatter_block_into<T: Element, O: Operator<T>>(
        &self,
        send: &[T],
        recv: &mut [T],
        operator: O,
    ) -> Result<()> {
        self.check_blocks("send buffer of a reduce-scatter", send.len(), recv.len())?;
        self.check_groups(recv.len(), &operator)?;
        let blocks = Blocks::Even(size_of_val(recv));
        self.reduce_scatter_by(Known::Even(recv.len()), send, recv, blocks, &Fold::new(&operator))
    }

    /// Combines everybody's `send`, and gives each rank its block of the result in `recv` (MPI_Reduce_scatter; MPI 4.1,
    /// section 6.10.2). Block `r`, of `counts[r]` elements, follows block `r - 1` in `send`; `recv` is as long as the
    /// own one.
    ///
    /// Collective: all ranks must give the same counts, element type and operator.
    ///
    /// # Cost
    /// As of [`reduce_scatter_block_into`](Communicator::reduce_scatter_block_into), with the longest block for n where
    /// that decides between lines and cells.
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn reduce_scatter_into<T: Element, O: Operator<T>>(
        &self,
        send: &[T],
        recv: &mut [T],
        counts: &[usize],
        operator: O,
    ) -> Result<()> {
        counts.iter().try_for_each(|&count| self.check_groups(count, &operator))?;
        self.reduce_scatter_uneven(send, recv, counts, &Fold::new(&operator))
    }

    fn reduce_scatter_uneven<T: Element>(
        &self,
        send: &[T],
        recv: &mut [T],
        counts: &[usize],
        fold: &Fold<'_>,
    ) -> Result<()> {
        self.check_count("counts of a reduce-scatter", counts.len(), self.size(), "; give one for each rank")?;
        let mut end = 0_usize;
        let mut displs = Vec::with_capacity(counts.len());
        for &count in counts {
            displs.push(end);
            end = end.saturating_add(count);
        }
        self.check_count("send buffer of a reduce-scatter", send.len(), end, " by the counts")?;
        self.check_count("receive buffer of a reduce-scatter", recv.len(), counts[self.rank()], " by the own count")?;
        let blocks = Blocks::Uneven { counts, displs: &displs, unit: size_of::<T>() };
        self.reduce_scatter_by(Known::of(&blocks, self.size()), send, recv, blocks, fold)
    }

    fn reduce_scatter_by<T: Element>(
        &self,
        known: Known,
        send: &[T],
        recv: &mut [T],
        blocks: Blocks<'_>,
        fold: &Fold<'_>,
    ) -> Result<()> {
        let size = self.size();
        let longest = blocks.longest(size);
        let name = Name::of::<T>(REDUCE_SCATTER, 0);
        if fold.vector(longest).fits_lines() && self.goes_in_slots(size - 1, longest) {
            let (send, recv, bytes) = (send.as_ptr().cast(), recv.as_mut_ptr().cast(), size_of_val(recv));
            let mut engine = self.enter()?;
            let tag = engine.board.chained(name.tag_with(known, fold.code));
            let reduction = Reduction { send, recv, bytes, fold: *fold };
            return self.stopping_at_panic(|| engine.slot_reduce_scatter(reduction, blocks, longest, tag));
        }
        let own = blocks.of(self.rank());
        let Ok(choice) = self.selection.choose_blocks((size - 1).max(1), true, fold.vector(longest)) else {
            return self.reduce_scatter_whole((name, known), send, recv, own.start, fold);
        };
        let send_at: *const u8 = send.as_ptr().cast();
        let call = Folding {
            what: Operand::Rows,
            send: Sending::Rows(send_at, blocks),
            own: send_at.wrapping_add(own.start),
            recv: recv.as_mut_ptr().cast(),
            bytes: own.len(),
            fold: *fold,
            place: (own.start, size_of_val(send)),
            in_place: false,
            longest,
        };
        let mut engine = self.enter()?;
        let tag = engine.board.chained(name.tag_with(known, fold.code));
        self.stopping_at_panic(|| engine.fold_blocks(&choice, call, tag))
    }

    /// By an allreduce, which takes larger elements than a part of a cell holds, to memory of this rank's own. Its
    /// block, from byte `start` on, is copied from there.
    #[cold]
    fn reduce_scatter_whole<T: Element>(
        &self,
        (name, known): (Name, Known),
        send: &[T],
        recv: &mut [T],
        start: usize,
        fold: &Fold<'_>,
    ) -> Result<()> {
        let (bytes, block) = (size_of_val(send), size_of_val(recv));
        let choice = self.or_refuse(self.choose(Collective::Allreduce, fold.vector(bytes)))?;
        let whole = self.or_refuse(Bytes::own(self.rank(), bytes, fold.align))?;
        let mut engine = self.enter()?;
        let tag = engine.board.chained(name.tag_with(known, fold.code));
        engine.board.begin_at_home(tag)?;
        let reduction = Reduction { send: send.as_ptr().cast(), recv: whole.as_ptr(), bytes, fold: *fold };
        self.stopping_at_panic(|| engine.allreduce(&choice, reduction, tag))?;
        // SAFETY: the allreduce has stored all of the vector, in which the own block lies by the counts that were checked
        // against the lengths of `send` and `recv`.
        unsafe { std::ptr::copy_nonoverlapping(whole.as_ptr().wrapping_add(start), recv.as_mut_ptr().cast(), block) };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::operator::User;
    use crate::{Communicator, Error};

    /// Elements of which no row of parts fits a cell of so many ranks.
    #[test]
    fn elements_that_fit_no_part_of_a_cell_are_reduced() {
        type Long = [u32; 15_000];
        let after = User::ordered(|left: &mut [Long], right: &[Long]| {
            for (left, right) in left.iter_mut().zip(right) {
                left.iter_mut().zip(right).for_each(|(left, right)| *left = left.wrapping_mul(3).wrapping_add(*right));
            }
        });
        let size = 9;
        let value = |rank: usize, block: usize| (rank * 10 + block) as u32;
        let wanted = |block| (0..size).map(|rank| value(rank, block)).reduce(|a, b| a.wrapping_mul(3).wrapping_add(b));
        Communicator::threads(size, |comm| {
            let mut one: Vec<Long> = vec![[0; 15_000]];
            let send: Vec<Long> = (0..size).map(|block| [value(comm.rank(), block); 15_000]).collect();
            comm.reduce_scatter_block_into(&send, &mut one, after).unwrap();
            assert!(one[0].iter().all(|&found| Some(found) == wanted(comm.rank())));
            // Blocks of 0, 1 and 2 elements, of one value each.
            let counts: Vec<usize> = (0..size).map(|block| block % 3).collect();
            let send: Vec<Long> =
                (0..size).flat_map(|block| vec![[value(comm.rank(), block); 15_000]; counts[block]]).collect();
            let mut some: Vec<Long> = vec![[0; 15_000]; counts[comm.rank()]];
            comm.reduce_scatter_into(&send, &mut some, &counts, after).unwrap();
            assert!(some.iter().flatten().all(|&found| Some(found) == wanted(comm.rank())));
            // What nothing can carry out all ranks are refused alike.
            let none: User<_> = User::commutative(|_: &mut [[u8; 3 << 20]], _: &[_]| ());
            let send = vec![0_u8; size * (3 << 20)];
            let (send, _) = send.as_chunks::<{ 3 << 20 }>();
            let mut recv = vec![0_u8; 3 << 20];
            let (recv, _) = recv.as_chunks_mut::<{ 3 << 20 }>();
            let error = comm.reduce_scatter_block_into(send, recv, none);
            assert!(matches!(error, Err(Error::Tuning { .. })), "{error:?}");
            comm.barrier().unwrap();
        })
        .unwrap();
    }
}
