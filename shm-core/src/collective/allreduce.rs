//! Allreduce (MPI 4.1, section 6.9.6).

use super::{reduction_tag, same_length};
use crate::communicator::Communicator;
use crate::element::Element;
use crate::error::Result;
use crate::operator::{Fold, Operator};
use crate::regime::Reduction;
use crate::select::{Collective, Regime};

impl Communicator {
    /// Combines everybody's `send`, element by element, in everybody's `recv`.
    ///
    /// Collective: all ranks must give the same count, element type and operator. Short vectors are exchanged in lines and
    /// combined by every rank in rank order; longer ones are reduced to rank 0 and released by trees of cells; long ones
    /// are divided among leaders, each of which folds its share in rank order. All ranks get the same bits.
    ///
    /// # Cost
    /// For n bytes on p ranks: one line transfer on the critical path, (3p + p(p-1))n bytes loaded and stored (lines); (5p-1)n bytes
    /// with p leaders or over trees (shares, cells).
    ///
    /// # Errors
    /// [`Length`](crate::Error::Length), [`Tuning`](crate::Error::Tuning): refused, nothing was written; ranks that made
    /// the call in order get [`Refused`](crate::Error::Refused).
    /// [`RankFailed`](crate::Error::RankFailed), [`Mismatch`](crate::Error::Mismatch): `recv` holds no meaning,
    /// and the communicator cannot be used further.
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
    /// Lines: after the low-latency protocols that carry data and flag together. Cells: Jain et al., SC18. Shares: Bayatpour
    /// et al., SC17, without its barriers, folding in one pass.
    #[inline]
    pub fn all_reduce_into<T: Element, O: Operator<T>>(&self, send: &[T], recv: &mut [T], operator: O) -> Result<()> {
        if let Err(error) = same_length(self.rank(), send, recv) {
            return self.refuse(error);
        }
        self.allreduce(send.as_ptr().cast(), recv.as_mut_ptr().cast(), size_of_val(send), Fold::new(&operator))
    }

    /// [`all_reduce_into`](Communicator::all_reduce_into) with one buffer for contribution and result (MPI_IN_PLACE).
    ///
    /// # Errors
    /// As there; after a failure, `buffer` holds no meaning.
    #[inline]
    pub fn all_reduce_in_place<T: Element, O: Operator<T>>(&self, buffer: &mut [T], operator: O) -> Result<()> {
        let bytes = size_of_val(buffer);
        let buffer = buffer.as_mut_ptr().cast::<u8>();
        self.allreduce(buffer, buffer, bytes, Fold::new(&operator))
    }

    #[inline]
    fn allreduce(&self, send: *const u8, recv: *mut u8, bytes: usize, fold: Fold<'_>) -> Result<()> {
        let count = bytes.checked_div(fold.element).unwrap_or(0);
        if self.fits_a_slot(Collective::Allreduce, bytes) && fold.vector(bytes).fits_lines() {
            let mut engine = self.enter()?;
            let tag = engine.board.chained(reduction_tag(Collective::Allreduce, 0, &fold, count));
            return self.stopping_at_panic(|| engine.slot_allreduce(Reduction { send, recv, bytes, fold }, tag));
        }
        let choice = match self.selection.choose(Collective::Allreduce, fold.vector(bytes)) {
            Ok(choice) => choice,
            Err(error) => return self.refuse(error),
        };
        self.trace(Collective::Allreduce, bytes);
        let mut engine = self.enter()?;
        let tag = engine.board.chained(reduction_tag(Collective::Allreduce, 0, &fold, count));
        engine.board.begin(tag)?;
        let reduction = Reduction { send, recv, bytes, fold };
        self.stopping_at_panic(|| match choice.regime {
            Regime::Line => engine.line_allreduce(&choice, reduction, tag),
            Regime::Cells => engine.cells_allreduce(&choice, reduction, tag),
            Regime::Shares => engine.shares_allreduce(&choice, reduction, tag),
        })
    }
}
