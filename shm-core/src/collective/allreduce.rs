//! Allreduce (MPI 4.1, section 6.9.6).

use super::{OWN_VIEW, SHARED, reduction_tag, same_length, tag_of_call};
use crate::communicator::Communicator;
use crate::convert::{Use, end_all};
use crate::element::Element;
use crate::error::Result;
use crate::operator::{Fold, Operator};
use crate::regime::{COPIED, Engine, Reduction};
use crate::select::{Collective, Regime};
use crate::shared_result::{Bytes, SharedResult, Viewer};

impl Communicator {
    /// Combines everybody's `send`, element by element, in everybody's `recv` (MPI_Allreduce; MPI 4.1, section 6.9.6).
    ///
    /// Collective: all ranks must give the same count, element type and operator. Short vectors are exchanged in lines,
    /// by few ranks longer ones in cells, and combined by every rank in rank order; others are reduced to rank 0 and
    /// released by trees of cells; long ones are divided among leaders, each of which folds its share in rank order.
    /// All ranks get the same bits.
    ///
    /// Buffers in shared memory that are long enough ([`alloc`](Communicator::alloc)) are used where they lie, each by
    /// itself, whatever the others are: a contribution is combined there, a result is stored there; as far as trials do
    /// not find that cells serve their callers better. (Contributions of up to 16 KiB that everybody reads are copied,
    /// if the rank's result is private.)
    ///
    /// # Cost
    /// For n bytes on p ranks: p(p+3)n bytes loaded and stored (lines, and exchange through cells), in lines with one
    /// line transfer on the critical path; (5p-2)n with p leaders (shares); (5p-1)n over trees (cells). 2pn by shares
    /// with p leaders, or by an exchange, when all buffers are used where they lie.
    ///
    /// # Errors
    /// [`Length`](crate::Error::Length), [`Tuning`](crate::Error::Tuning) (an element that is larger than a cell):
    /// refused, nothing was written; ranks that made the call in order get [`Refused`](crate::Error::Refused).
    /// [`RankFailed`](crate::Error::RankFailed), [`Mismatch`](crate::Error::Mismatch),
    /// [`Refused`](crate::Error::Refused): `recv` holds no meaning, and the communicator cannot be used further. The
    /// same after all others but [`Busy`](crate::Error::Busy): [`Error`](crate::Error).
    ///
    /// ```
    /// use shm_core::{Communicator, operator::Sum};
    /// let sums = Communicator::threads(4, |comm| {
    ///     let mut sum = [0.0];
    ///     comm.all_reduce_into(&[comm.rank() as f64], &mut sum, Sum).unwrap();
    ///     sum[0]
    /// }).unwrap();
    /// assert_eq!(sums, [6.0; 4]);
    /// ```
    ///
    /// # References
    /// Lines: after the low-latency protocols that carry data and flag together. Cells: Jain et al., SC18. Shares:
    /// Bayatpour et al., SC17, without its barriers, folding in one pass.
    #[inline]
    pub fn all_reduce_into<T: Element, O: Operator<T>>(&self, send: &[T], recv: &mut [T], operator: O) -> Result<()> {
        if let Err(error) = same_length(self.rank(), send, recv) {
            return self.refuse(error);
        }
        self.check_groups(send.len(), &operator)?;
        self.allreduce(send.as_ptr().cast(), recv.as_mut_ptr().cast(), size_of_val(send), Fold::new(&operator))
    }

    /// [`all_reduce_into`](Communicator::all_reduce_into) with one buffer for contribution and result (MPI_IN_PLACE).
    ///
    /// # Errors
    /// As there; after a failure, `buffer` holds no meaning.
    #[inline]
    pub fn all_reduce_in_place<T: Element, O: Operator<T>>(&self, buffer: &mut [T], operator: O) -> Result<()> {
        self.check_groups(buffer.len(), &operator)?;
        let bytes = size_of_val(buffer);
        let buffer = buffer.as_mut_ptr().cast::<u8>();
        self.allreduce(buffer, buffer, bytes, Fold::new(&operator))
    }

    #[inline]
    pub(super) fn allreduce(&self, send: *const u8, recv: *mut u8, bytes: usize, fold: Fold<'_>) -> Result<()> {
        let count = fold.count(bytes);
        let reduced = self.allreduce_bytes(send, recv, bytes, fold, count);
        reduced.map_err(|error| error.noticed_in(format_args!("an allreduce of {count} elements")))
    }

    #[inline]
    fn allreduce_bytes(
        &self,
        send: *const u8,
        recv: *mut u8,
        bytes: usize,
        fold: Fold<'_>,
        count: usize,
    ) -> Result<()> {
        if self.fits_a_slot(Collective::Allreduce, bytes) && fold.vector(bytes).fits_lines() {
            let mut engine = self.enter()?;
            let tag = engine.board.chained(reduction_tag(Collective::Allreduce, 0, &fold, count));
            return self.stopping_at_panic(|| engine.slot_allreduce(Reduction { send, recv, bytes, fold }, tag));
        }
        if let Some(single) = self.single(Collective::Allreduce, bytes, send) {
            let mut engine = self.enter()?;
            let tag = engine.board.chained(reduction_tag(Collective::Allreduce, 0, &fold, count));
            let reduction = Reduction { send, recv, bytes, fold };
            return self.stopping_at_panic(|| engine.single_allreduce(single, reduction, tag));
        }
        let choice = match self.choose(Collective::Allreduce, fold.vector(bytes)) {
            Ok(choice) => choice,
            Err(error) => return self.refuse(error),
        };
        let mut reduction = Reduction { send, recv, bytes, fold };
        // SAFETY: the slices are the call's until it returns.
        let kept = unsafe { self.convert_operands(self.direct_from(Collective::Allreduce, &choice), &mut reduction) };
        self.trace(Collective::Allreduce, bytes, [reduction.send, reduction.recv]);
        let mut engine = self.enter()?;
        let tag = engine.board.chained(reduction_tag(Collective::Allreduce, 0, &reduction.fold, count));
        engine.board.begin_at_home(tag)?;
        let result = self.stopping_at_panic(|| engine.allreduce(&choice, reduction, tag));
        end_all(kept, result)
    }

    /// Combines everybody's `send` in one result, which all ranks look at where it lies: nobody copies it, as a rule.
    ///
    /// Collective: all ranks must give the same count, element type and operator. Every rank folds its share of the
    /// vector, in rank order, to memory of the job's heap that rank 0 provides. Several results may be held at once;
    /// the memory of one is used again when all ranks have dropped their views of it.
    ///
    /// A vector that fits a slot of lines, and one of up to 16 KiB of which everybody reads everybody's, each rank
    /// folds for itself, to memory of its own: to agree on a place would cost more than to copy it. So does each where
    /// an element is too large for all ranks to fold shares of the vector, but not for an allreduce. Of two ranks each
    /// may have results of less than 2 MiB for itself, too: where trials (26 calls in 2048, from 1 MiB on 14 in 512)
    /// find that this saves the program a fifth of the time from one call to the next (an eighth), as it can if all of
    /// the result is loaded at once. So nobody may count on the same address, or the same memory, on all ranks.
    ///
    /// # Cost
    /// For n bytes on p ranks whose `send` is used where it lies ([`alloc`](Communicator::alloc)): (p+1)n bytes loaded
    /// and stored; 2(p-1)n more for private ones. A result takes n bytes of the heap, and 128 for each rank and 128
    /// more, rounded up to 2 MiB; rank 0 keeps the memory of four. One that each rank has for itself costs what it
    /// costs with [`all_reduce_into`](Communicator::all_reduce_into), and takes nothing of the heap.
    ///
    /// # Errors
    /// [`HeapExhausted`](crate::Error::HeapExhausted) on rank 0, or [`Memory`](crate::Error::Memory) on a rank that has
    /// none for the result, and [`Refused`](crate::Error::Refused) on the others. All others as for
    /// [`all_reduce_into`](Communicator::all_reduce_into).
    ///
    /// ```
    /// use shm_core::{Communicator, operator::Sum};
    /// Communicator::threads(3, |comm| {
    ///     let mut mine = comm.alloc::<f64>(1000)?;
    ///     mine.fill(comm.rank() as f64);
    ///     let sum = comm.all_reduce_shared(&mine, Sum)?;
    ///     assert!(sum.iter().all(|&x| x == 3.0));
    ///     Ok::<_, shm_core::Error>(())
    /// })?.into_iter().collect::<Result<Vec<_>, _>>()?;
    /// # Ok::<_, shm_core::Error>(())
    /// ```
    #[inline]
    pub fn all_reduce_shared<T: Element, O: Operator<T>>(&self, send: &[T], operator: O) -> Result<SharedResult<T>> {
        self.check_groups(send.len(), &operator)?;
        let contribution = (send.as_ptr().cast(), size_of_val(send), send.len());
        let bytes = self.allreduce_shared(contribution, Fold::new(&operator))?;
        // SAFETY: an allreduce that ends well has stored the whole result, of as many elements as each contribution.
        Ok(unsafe { SharedResult::of(bytes, send.len()) })
    }

    /// What is the same for all types and operators: the bytes of a result of so many bytes and elements.
    fn allreduce_shared(&self, send: (*const u8, usize, usize), fold: Fold<'_>) -> Result<Bytes> {
        let (from, bytes, count) = send;
        if bytes > 0 && self.fits_a_slot(Collective::Allreduce, bytes) && fold.vector(bytes).fits_lines() {
            let reduce = |engine: &mut Engine, reduction: Reduction<'_>, tag| engine.slot_allreduce(reduction, tag);
            return self.own_result(SHARED, send, fold, reduce);
        }
        if (1..=COPIED).contains(&bytes) {
            if let Some(single) = self.single_of_copied(Collective::Allreduce, bytes) {
                let reduce = |engine: &mut Engine, reduction: Reduction<'_>, tag| {
                    engine.single_allreduce(single, reduction, tag)
                };
                return self.own_result(SHARED, send, fold, reduce);
            }
            let choice = self.or_refuse(self.choose(Collective::Allreduce, fold.vector(bytes)))?;
            if choice.regime == Regime::Exchange {
                return self.own_result(SHARED, send, fold, |engine, reduction, tag| {
                    engine.board.begin_at_home(tag)?;
                    engine.exchange_allreduce(&choice, reduction, tag)
                });
            }
        }
        let (shares, own) = (
            self.selection.choose_shares(0, fold.vector(bytes)),
            self.choose(Collective::Allreduce, fold.vector(bytes)),
        );
        // An element that fits no share's slice may fit a cell.
        if let (Err(_), Ok(own)) = (&shares, &own) {
            return self.own_result(SHARED, send, fold, |engine, reduction, tag| {
                engine.board.begin_at_home(tag)?;
                engine.allreduce(own, reduction, tag)
            });
        }
        let choice = self.or_refuse(shares)?;
        // What cannot be carried out either way has one result.
        if let Ok(own) = own
            && self.enter()?.begin_view(bytes)
        {
            return self.own_result(OWN_VIEW, send, fold, |engine, reduction, tag| {
                engine.board.begin_at_home(tag)?;
                engine.copying(Collective::Allreduce, |engine| engine.allreduce(&own, reduction, tag))
            });
        }
        let mut engine = self.enter()?;
        let mut recv = std::ptr::null_mut();
        if self.rank() == 0 && bytes > 0 {
            recv = match engine.shared.take(self.seat(), bytes, self.size()) {
                Ok(recv) => recv,
                Err(error) => {
                    drop(engine);
                    return self.refuse(error);
                }
            };
        }
        let tag = engine.board.chained(tag_of_call(SHARED, 0, fold.kind, fold.code, count));
        if let Err(error) = engine.board.begin_at_home(tag) {
            if !recv.is_null() {
                // Nobody was told of it.
                engine.shared.abandon(self.seat(), recv, self.size());
            }
            return Err(error);
        }
        // SAFETY: the slice is the call's until it returns.
        let (from, _lent) = unsafe {
            self.convert_buffer(self.direct_from(Collective::Allreduce, &choice), from.cast_mut(), bytes, Use::Reads)
        };
        let reduction = Reduction { send: from, recv, bytes, fold };
        let at = self.stopping_at_panic(|| engine.shares_allreduce_shared(&choice, reduction, tag))?;
        let viewer = Viewer { seat: self.seat(), rank: self.rank(), size: self.size() };
        // SAFETY: all leaders have stored their shares there, and rank 0 has given it out for a view of each rank.
        Ok(unsafe { Bytes::in_heap(viewer, at, bytes, fold.align) })
    }

    /// A result that each rank has for itself, by the allreduce `reduce`, in a call of this number.
    #[inline]
    fn own_result<'a>(
        &self,
        call: u64,
        (send, bytes, count): (*const u8, usize, usize),
        fold: Fold<'a>,
        reduce: impl FnOnce(&mut Engine, Reduction<'a>, u32) -> Result<()>,
    ) -> Result<Bytes> {
        let own = self.or_refuse(Bytes::own(self.seat().rank(), bytes, fold.align))?;
        let mut engine = self.enter()?;
        let tag = engine.board.chained(tag_of_call(call, 0, fold.kind, fold.code, count));
        let reduction = Reduction { send, recv: own.as_ptr(), bytes, fold };
        self.stopping_at_panic(|| reduce(&mut engine, reduction, tag))?;
        Ok(own)
    }
}
