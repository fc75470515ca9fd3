//! Reduce (MPI 4.1, section 6.9.1).

use super::reduction_tag;
use crate::communicator::Communicator;
use crate::convert::end_all;
use crate::error::{Error, Result};
use crate::operator::Fold;
use crate::regime::Reduction;
use crate::select::{Collective, Regime};

impl Communicator {
    /// Combines `bytes` bytes of everybody's `send` in the root's `recv` (null elsewhere).
    pub(crate) fn reduce_to(
        &self,
        root: usize,
        send: *const u8,
        recv: *mut u8,
        bytes: usize,
        fold: Fold<'_>,
    ) -> Result<()> {
        let refuse = |why| self.refuse(Error::Root { rank: self.rank(), size: self.size(), root, why });
        if root >= self.size() {
            return refuse("it is no rank of this communicator");
        }
        if (root == self.rank()) == recv.is_null() {
            return refuse(if recv.is_null() {
                "the root itself calls reduce_into_root, or reduce_into_root_in_place"
            } else {
                "ranks other than the root call reduce_into"
            });
        }
        let count = fold.count(bytes);
        let reduced = self.reduce_bytes(root, send, recv, (bytes, count), fold);
        reduced.map_err(|error| error.noticed_in(format_args!("a reduction of {count} elements to rank {root}")))
    }

    #[inline]
    fn reduce_bytes(
        &self,
        root: usize,
        send: *const u8,
        recv: *mut u8,
        (bytes, count): (usize, usize),
        fold: Fold<'_>,
    ) -> Result<()> {
        if self.fits_a_slot(Collective::Reduce, bytes) && fold.vector(bytes).fits_lines() {
            let mut engine = self.enter()?;
            let tag = engine.board.chained(reduction_tag(Collective::Reduce, root, &fold, count));
            return self.stopping_at_panic(|| engine.slot_reduce(root, Reduction { send, recv, bytes, fold }, tag));
        }
        let given = if root == self.rank() { std::ptr::null() } else { send };
        if let Some(single) = self.single(Collective::Reduce, bytes, given) {
            let mut engine = self.enter()?;
            let tag = engine.board.chained(reduction_tag(Collective::Reduce, root, &fold, count));
            let reduction = Reduction { send, recv, bytes, fold };
            return self.stopping_at_panic(|| engine.single_reduce(single, root, reduction, tag));
        }
        let choice = match self.choose(Collective::Reduce, fold.vector(bytes)) {
            Ok(choice) => choice,
            Err(error) => return self.refuse(error),
        };
        let mut reduction = Reduction { send, recv, bytes, fold };
        // SAFETY: the slices are the call's until it returns.
        let kept = unsafe { self.convert_operands(self.direct_from(Collective::Reduce, &choice), &mut reduction) };
        self.trace(Collective::Reduce, bytes, [reduction.send, reduction.recv]);
        let mut engine = self.enter()?;
        let tag = engine.board.chained(reduction_tag(Collective::Reduce, root, &reduction.fold, count));
        engine.board.begin_at_home(tag)?;
        let result = self.stopping_at_panic(|| match choice.regime {
            Regime::Line => engine.line_reduce(&choice, root, reduction, tag),
            Regime::Cells | Regime::Exchange => engine.cells_reduce(&choice, root, reduction, tag),
            Regime::Shares => engine.shares_reduce(&choice, root, reduction, tag),
        });
        end_all(kept, result)
    }
}
