//! What one of two ranks folds of a message of one slice: its own contribution and the other's, with nothing listed, as
//! a rule.

use super::Reduction;
use super::lend::Source;
use super::operands::{Input, Operands, fold_two};
use crate::board::SharedBoard;
use crate::error::Result;
use crate::pace::{Way, reading};
use crate::protocol::{Board, Location};

/// Folds `reduction` of this rank and of the other one, whose contribution lies at `location`, or in `cell`, to where
/// this rank wants it. If it went through a cell, and was long enough for `least`, the other one hears what that has
/// cost at `position`.
///
/// # Safety
/// The other's slot is published, so that its payload is written and will not change; `cell` is the slot's. The result
/// is no operand, unless the caller works in place.
#[inline]
pub(super) unsafe fn fold_two_ranks(
    board: &SharedBoard,
    operands: &mut Operands,
    reduction: Reduction<'_>,
    (location, cell): (Location, *const u8),
    (position, least): (u64, usize),
) -> Result<()> {
    let Reduction { send, recv, bytes, fold } = reduction;
    let (me, other) = (board.rank(), 1 - board.rank());
    let source = Source::find(board, other, location, bytes, fold.align)?;
    let there = match source.input(other, cell, 0) {
        Input::Own(near) | Input::Mapped(near) => {
            let both = if me == 0 { [send, near] } else { [near, send] };
            // SAFETY: by contract; `bytes` bytes of the caller's buffers are there.
            let combine = || unsafe { fold_two(board, &fold, [recv], both, other, (bytes, bytes)) };
            match bytes < least || source.is_lent() {
                true => combine(),
                false => reading(board, position, bytes, combine),
            }
            return Ok(());
        }
        there => there,
    };
    let Operands { inputs, results, .. } = &mut *operands;
    inputs.clear();
    inputs.extend(if me == 0 { [Input::Own(send), there] } else { [there, Input::Own(send)] });
    results.clear();
    results.push(recv);
    // SAFETY: the same of what is not here.
    unsafe { operands.fold(board, &fold, (bytes, bytes), Way::Cached) }
}
