//! Barrier (MPI 4.1, section 6.3).

use super::tag_of;
use crate::communicator::Communicator;
use crate::error::Result;
use crate::select::{Collective, Vector};

impl Communicator {
    /// Waits until every rank has called it (MPI_Barrier; MPI 4.1, section 6.3).
    ///
    /// Collective. Up to 32 ranks everybody publishes a line and reads everybody's; beyond, lines go up and down a
    /// tree.
    ///
    /// # Cost
    /// One line transfer on the critical path (p(p-1) in all); on a tree, two a level.
    ///
    /// # Errors
    /// [`RankFailed`](crate::Error::RankFailed), [`Mismatch`](crate::Error::Mismatch),
    /// [`Refused`](crate::Error::Refused): the communicator cannot be used further.
    /// [`Busy`](crate::Error::Busy): nothing was done.
    ///
    /// ```
    /// shm_core::Communicator::threads(4, |comm| comm.barrier().unwrap()).unwrap();
    /// ```
    #[inline]
    pub fn barrier(&self) -> Result<()> {
        let mut engine = self.enter()?;
        let tag = engine.board.chained(tag_of(Collective::Barrier, 0, 0, 0, 0));
        let met = match self.fits_a_slot(Collective::Barrier, 0) {
            true => engine.slot_barrier(tag),
            false => engine.line_barrier(&self.selection.choose(Collective::Barrier, Vector::of_bytes(0))?, tag),
        };
        met.map_err(|error| error.noticed_in("a barrier"))
    }
}
