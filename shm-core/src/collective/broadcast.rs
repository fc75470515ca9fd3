//! Broadcast (MPI 4.1, section 6.4).

use super::tag_of;
use crate::communicator::Communicator;
use crate::element::{Element, type_number};
use crate::error::{Error, Result};
use crate::select::{Collective, Regime, Vector};

impl Communicator {
    /// The root's buffer becomes everybody's.
    pub(crate) fn broadcast_from<T: Element>(&self, root: usize, buffer: &mut [T]) -> Result<()> {
        if root >= self.size() {
            return self.refuse(Error::Root {
                rank: self.rank(),
                size: self.size(),
                root,
                why: "it is no rank of this communicator",
            });
        }
        let bytes = size_of_val(buffer);
        self.trace(Collective::Broadcast, bytes, [std::ptr::null(), buffer.as_ptr().cast()]);
        let mut engine = self.enter()?;
        let tag = engine.board.chained(tag_of(Collective::Broadcast, root, type_number::<T>(), 0, buffer.len()));
        let choice = self.selection.choose(Collective::Broadcast, Vector::of_bytes(bytes))?;
        engine.board.begin(tag)?;
        if self.size() == 1 {
            return Ok(());
        }
        let buffer = buffer.as_mut_ptr().cast::<u8>();
        match choice.regime {
            Regime::Line => engine.line_broadcast(&choice, root, buffer, bytes, tag),
            Regime::Cells | Regime::Shares => engine.cells_broadcast(&choice, root, buffer, bytes, tag),
        }
    }
}
