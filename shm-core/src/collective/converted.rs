//! Private buffers of calls, as the regimes are to see them: their pages may lie in the heap
//! ([`Conversions`](crate::convert::Conversions)).

use crate::communicator::Communicator;
use crate::convert::{Converted, Use};
use crate::regime::Reduction;
use crate::select::{Choice, Collective, Regime};

impl Communicator {
    /// From how many bytes on a call that is carried out so uses buffers in the heap where they lie.
    #[inline]
    pub(crate) fn direct_from(&self, what: Collective, choice: &Choice) -> u64 {
        if choice.regime == Regime::Line { u64::MAX } else { self.selection.direct_from(what) }
    }

    /// What a call that uses buffers in the heap from `direct` bytes on is to see in the place of a buffer of `bytes`
    /// bytes, and what is to be kept until it has ended.
    ///
    /// # Safety
    /// The buffer is the call's to use so until what is returned is dropped.
    #[inline]
    pub(crate) unsafe fn convert_buffer(
        &self,
        direct: u64,
        buffer: *mut u8,
        bytes: usize,
        usage: Use,
    ) -> (*mut u8, Option<Converted>) {
        let (least, after) = self.convert;
        if (bytes as u64) < least.max(direct) || self.size() == 1 {
            return (buffer, None);
        }
        // SAFETY: by contract.
        let kept = unsafe { self.seat().conversions().buffer_of_call(buffer, bytes, usage, after) };
        (kept.pointer(), Some(kept))
    }

    /// The same for a contribution and the place of the result, which may be one; null where this rank has none.
    ///
    /// # Safety
    /// As there: what is at `send` is read, what is at `recv` written.
    #[inline]
    pub(crate) unsafe fn convert_operands(&self, direct: u64, reduction: &mut Reduction<'_>) -> [Option<Converted>; 2] {
        let bytes = reduction.bytes;
        let in_place = reduction.send == reduction.recv.cast_const();
        let usage = if in_place { Use::Both } else { Use::Reads };
        // SAFETY: by contract; it is not written unless it is the place of the result too.
        let (send, kept) = unsafe { self.convert_buffer(direct, reduction.send.cast_mut(), bytes, usage) };
        reduction.send = send;
        if in_place {
            reduction.recv = send;
            return [kept, None];
        }
        // SAFETY: by contract.
        let (recv, result) = unsafe { self.convert_buffer(direct, reduction.recv, bytes, Use::Writes) };
        reduction.recv = recv;
        [kept, result]
    }
}
