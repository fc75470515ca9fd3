//! Scan and exclusive scan (MPI 4.1, section 6.11).

use super::{SCAN, same_length, tag_of_call};
use crate::communicator::Communicator;
use crate::element::Element;
use crate::error::Result;
use crate::operator::{Fold, Operator};
use crate::regime::Reduction;
use crate::regime::blocks::Sending;
use crate::regime::folded::{Folding, Operand};

impl Communicator {
    /// Combines the `send`s of ranks 0 to this one, element by element, in `recv` (MPI_Scan; MPI 4.1, section 6.11.1).
    ///
    /// Collective: all ranks must give the same count, element type and operator. Contributions are combined in rank
    /// order, whatever the operator. Low ranks may return before high ones have called. Short vectors go in lines,
    /// others through cells, to all higher ranks; beyond one slice, and two ranks, along a chain of ranks, of which
    /// each folds its vector onto the prefix of the one before.
    ///
    /// What lies in shared memory ([`alloc`](Communicator::alloc)) is combined where it lies, but for chains and in
    /// place.
    ///
    /// # Cost
    /// One line transfer deep (lines). Bytes loaded and stored for n bytes on p ranks: (p(p+1)/2 + 3p - 2)n where all
    /// higher ranks read; along a chain (4p-1)n.
    ///
    /// # Errors
    /// [`Length`](crate::Error::Length), [`Tuning`](crate::Error::Tuning): refused, nothing was written.
    /// [`RankFailed`](crate::Error::RankFailed), [`Mismatch`](crate::Error::Mismatch),
    /// [`Refused`](crate::Error::Refused): `recv` holds no meaning, and the communicator cannot be used further.
    ///
    /// ```
    /// use shm_core::{Communicator, operator::Sum};
    /// let sums = Communicator::threads(4, |comm| {
    ///     let mut sum = [0];
    ///     comm.scan_into(&[comm.rank() + 1], &mut sum, Sum).unwrap();
    ///     sum[0]
    /// }).unwrap();
    /// assert_eq!(sums, [1, 3, 6, 10]);
    /// ```
    pub fn scan_into<T: Element, O: Operator<T>>(&self, send: &[T], recv: &mut [T], operator: O) -> Result<()> {
        self.or_refuse(same_length(self.rank(), send, recv))?;
        self.check_groups(send.len(), &operator)?;
        self.scan_by(
            Operand::Inclusive,
            send.as_ptr().cast(),
            recv.as_mut_ptr().cast(),
            size_of_val(send),
            Fold::new(&operator),
        )
    }

    /// [`scan_into`](Communicator::scan_into) with one buffer for contribution and result (MPI_IN_PLACE).
    ///
    /// # Errors
    /// As there.
    pub fn scan_in_place<T: Element, O: Operator<T>>(&self, buffer: &mut [T], operator: O) -> Result<()> {
        self.check_groups(buffer.len(), &operator)?;
        let bytes = size_of_val(buffer);
        let buffer = buffer.as_mut_ptr().cast::<u8>();
        self.scan_by(Operand::Inclusive, buffer, buffer, bytes, Fold::new(&operator))
    }

    /// Combines the `send`s of all ranks below this one in `recv`, which stays as it was on rank 0 (MPI_Exscan; MPI
    /// 4.1, section 6.11.2). Otherwise as [`scan_into`](Communicator::scan_into).
    ///
    /// # Errors
    /// As there.
    ///
    /// ```
    /// use shm_core::{Communicator, operator::Sum};
    /// let sums = Communicator::threads(4, |comm| {
    ///     let mut sum = [0];
    ///     comm.exclusive_scan_into(&[comm.rank() + 1], &mut sum, Sum).unwrap();
    ///     sum[0]
    /// }).unwrap();
    /// assert_eq!(sums, [0, 1, 3, 6]);
    /// ```
    pub fn exclusive_scan_into<T: Element, O: Operator<T>>(
        &self,
        send: &[T],
        recv: &mut [T],
        operator: O,
    ) -> Result<()> {
        self.or_refuse(same_length(self.rank(), send, recv))?;
        self.check_groups(send.len(), &operator)?;
        self.scan_by(
            Operand::Exclusive,
            send.as_ptr().cast(),
            recv.as_mut_ptr().cast(),
            size_of_val(send),
            Fold::new(&operator),
        )
    }

    /// [`exclusive_scan_into`](Communicator::exclusive_scan_into) with one buffer for contribution and result
    /// (MPI_IN_PLACE); rank 0 keeps its contribution.
    ///
    /// # Errors
    /// As there.
    pub fn exclusive_scan_in_place<T: Element, O: Operator<T>>(&self, buffer: &mut [T], operator: O) -> Result<()> {
        self.check_groups(buffer.len(), &operator)?;
        let bytes = size_of_val(buffer);
        let buffer = buffer.as_mut_ptr().cast::<u8>();
        self.scan_by(Operand::Exclusive, buffer, buffer, bytes, Fold::new(&operator))
    }

    fn scan_by(&self, what: Operand, send: *const u8, recv: *mut u8, bytes: usize, fold: Fold<'_>) -> Result<()> {
        let count = fold.count(bytes);
        let exclusive = what == Operand::Exclusive;
        if fold.vector(bytes).fits_lines() && self.selection.fits_a_slot(1, bytes) {
            let mut engine = self.enter()?;
            let tag = engine.board.chained(tag_of_call(SCAN[usize::from(exclusive)], 0, fold.kind, fold.code, count));
            return self.stopping_at_panic(|| engine.slot_scan(Reduction { send, recv, bytes, fold }, exclusive, tag));
        }
        let choice = self.or_refuse(self.selection.choose_blocks(1, false, fold.vector(bytes)))?;
        let call = Folding {
            what,
            send: Sending::Same(send, bytes),
            own: send,
            recv,
            bytes,
            fold,
            place: (0, bytes),
            in_place: std::ptr::eq(send, recv),
            longest: bytes,
        };
        let mut engine = self.enter()?;
        let tag = engine.board.chained(tag_of_call(SCAN[usize::from(exclusive)], 0, fold.kind, fold.code, count));
        self.stopping_at_panic(|| engine.fold_blocks(&choice, call, tag))
    }
}
