//! Broadcast (MPI 4.1, section 6.4).

use super::tag_of;
use crate::communicator::Communicator;
use crate::convert::{Use, end_all};
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
        let (bytes, count) = (size_of_val(buffer), buffer.len());
        let elements = (size_of::<T>(), type_number::<T>(), count);
        let told = self.broadcast_bytes(root, buffer.as_mut_ptr().cast(), bytes, elements);
        told.map_err(|error| error.noticed_in(format_args!("a broadcast of {count} elements from rank {root}")))
    }

    /// The same for `count` elements of `element` bytes each, and of that kind.
    fn broadcast_bytes(
        &self,
        root: usize,
        buffer: *mut u8,
        bytes: usize,
        (element, kind, count): (usize, u64, usize),
    ) -> Result<()> {
        if self.fits_a_slot(Collective::Broadcast, bytes) {
            let mut engine = self.enter()?;
            let tag = engine.board.chained(tag_of(Collective::Broadcast, root, kind, 0, count));
            return engine.slot_broadcast(root, buffer, bytes, tag);
        }
        let given = if root == self.rank() { buffer.cast_const() } else { std::ptr::null() };
        if let Some(single) = self.single(Collective::Broadcast, bytes, given) {
            let mut engine = self.enter()?;
            let tag = engine.board.chained(tag_of(Collective::Broadcast, root, kind, 0, count));
            return engine.single_broadcast(single, root, buffer, bytes, tag);
        }
        let choice = match self.choose(Collective::Broadcast, Vector::of_bytes(bytes)) {
            Ok(choice) => choice,
            Err(error) => return self.refuse(error),
        };
        let usage = if root == self.rank() { Use::Reads } else { Use::Writes };
        // SAFETY: the slice is the call's until it returns.
        let (buffer, kept) =
            unsafe { self.convert_buffer(self.direct_from(Collective::Broadcast, &choice), buffer, bytes, usage) };
        self.trace(Collective::Broadcast, bytes, [std::ptr::null(), buffer.cast_const()]);
        let mut engine = self.enter()?;
        let tag = engine.board.chained(tag_of(Collective::Broadcast, root, kind, 0, count));
        engine.board.begin_at_home(tag)?;
        if self.size() == 1 {
            return Ok(());
        }
        let result = match choice.regime {
            Regime::Line => engine.line_broadcast(&choice, root, (buffer, bytes, element), tag),
            _ => engine.cells_broadcast(&choice, root, (buffer, bytes, element), tag),
        };
        end_all([kept], result)
    }
}
