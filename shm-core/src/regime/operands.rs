//! What a call loads, wherever it lies, and folds of it.

use super::cut::whole_elements;
use super::fold::{Piece, fold_and_copy};
use crate::abreast;
use crate::ask::{BEHIND_A_WRITER, BESIDE_A_WRITER, FAR_AHEAD_FROM, FOUND, FRESH};
use crate::board::SharedBoard;
use crate::counters::add;
use crate::error::Result;
use crate::operator::{Fold, Hint, Loads};
use crate::pace::Way;
use crate::payload::{Manner, copy_out};
use crate::segment::layout::{LINE, round_up};

/// Bytes of payload that a call is about to load.
#[derive(Clone, Copy, Debug)]
pub(super) enum Input {
    /// In the own buffer.
    Own(*const u8),
    /// In memory that another rank stores to, and that this one has mapped.
    Mapped(*const u8),
    /// In another rank's private memory.
    Remote { rank: usize, address: u64 },
}

impl Input {
    /// Copies `len` bytes of it to `to`.
    ///
    /// # Safety
    /// They are there, initialised, and nobody writes them meanwhile; as many may be written at `to`, which does not
    /// overlap.
    pub unsafe fn copy(self, manner: Manner, board: &SharedBoard, to: *mut u8, len: usize) -> Result<()> {
        match self {
            // SAFETY: by contract.
            Input::Own(from) | Input::Mapped(from) => unsafe { copy_out(from, to, len, manner) },
            // SAFETY: by contract.
            Input::Remote { rank, address } => unsafe { board.read_private(rank, address, to, len) }?,
        }
        add(&board.tally.loaded, len);
        add(&board.tally.stored, len);
        Ok(())
    }
}

/// Bytes of private memory into which the pieces of all remote operands of a fold are read: they should stay in a
/// core's cache.
const LANDING: usize = 256 * 1024;

/// What a fold works with, kept between calls to spare allocations.
#[derive(Default)]
pub(super) struct Operands {
    pub inputs: Vec<Input>,
    pub results: Vec<*mut u8>,
    here: Vec<*const u8>,
    landing: Vec<Aligned>,
    piece: Box<Piece>,
}

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Aligned([u8; LINE]);

impl Operands {
    /// Folds `len` bytes of all inputs (of a message of `bytes` bytes), in their order, to all results, of which the
    /// last one goes that way; the others go through the caches.
    ///
    /// # Safety
    /// As [`Fold::apply_to`] for the inputs that are here; those that are not are initialised, and nobody writes them
    /// meanwhile.
    pub unsafe fn fold(
        &mut self,
        board: &SharedBoard,
        fold: &Fold<'_>,
        (len, bytes): (usize, usize),
        way: Way,
    ) -> Result<()> {
        let Self { inputs, results, here, landing, piece: scratch } = self;
        let there = inputs.iter().filter(|input| matches!(input, Input::Remote { .. })).count();
        let hint = match inputs[..] {
            [Input::Mapped(_), Input::Own(_)] => hint_of(0, BESIDE_A_WRITER, (len, bytes)),
            [Input::Own(_), Input::Mapped(_)] => hint_of(1, BESIDE_A_WRITER, (len, bytes)),
            _ => None,
        };
        let piece = match there {
            0 => len,
            there => whole_elements(LANDING / there, fold.element),
        };
        let row = round_up(piece.min(len), LINE);
        if landing.len() * LINE < there * row {
            landing.resize(there * row / LINE, Aligned([0; LINE]));
        }
        add(&board.tally.loaded, inputs.len() * len);
        add(&board.tally.stored, results.len() * len);
        let mut at = 0;
        loop {
            let part = piece.min(len - at);
            here.clear();
            let mut place = landing.as_mut_ptr().cast::<u8>();
            for &input in inputs.iter() {
                here.push(match input {
                    Input::Own(from) | Input::Mapped(from) => from.wrapping_add(at),
                    Input::Remote { rank, address } => {
                        // SAFETY: by contract `len` bytes are there; the row has room for the part.
                        unsafe { board.read_private(rank, address + at as u64, place, part) }?;
                        let operand = place.cast_const();
                        place = place.wrapping_add(row);
                        operand
                    }
                });
            }
            match (&mut results[..], way) {
                // SAFETY: by contract; rows are aligned to lines.
                ([result], Way::Cached) if hint.is_none() => unsafe { fold.apply(result.wrapping_add(at), here, part) },
                (results, way) => {
                    results.iter_mut().for_each(|result| *result = result.wrapping_add(at));
                    match way {
                        // SAFETY: the same.
                        Way::Cached => unsafe { fold.apply_to(results, here, hint, part) },
                        // SAFETY: the same.
                        way => unsafe { fold_and_copy(fold, here, results, (part, way), scratch) },
                    }
                    results.iter_mut().for_each(|result| *result = result.wrapping_sub(at));
                }
            }
            at += part;
            if at >= len {
                return Ok(());
            }
        }
    }
}

/// [`Operands::fold`] of two operands that are here, to so many results, of which `near` lies in memory that the other
/// rank has stored to, and goes on to something else as a rule, through the caches: nothing is looked up, and nothing
/// kept.
///
/// # Safety
/// As [`Fold::apply_to`].
#[inline]
pub(super) unsafe fn fold_two<const RESULTS: usize>(
    board: &SharedBoard,
    fold: &Fold<'_>,
    results: [*mut u8; RESULTS],
    operands: [*const u8; 2],
    near: usize,
    (len, bytes): (usize, usize),
) {
    add(&board.tally.loaded, operands.len() * len);
    add(&board.tally.stored, results.len() * len);
    let ahead = if len >= FAR_AHEAD_FROM { BEHIND_A_WRITER } else { BESIDE_A_WRITER };
    // SAFETY: by contract.
    unsafe { fold.apply_to(&results, &operands, hint_of(near, ahead, (len, bytes)), len) };
}

/// Bytes of a message from which an operand is loaded [abreast], where that serves: of 64 and 128 KiB allreduces took 2
/// and 13 percent longer so, of 256 KiB 15 less (Intel Xeon, L2 2 MiB).
const ABREAST_FROM: usize = 192 * 1024;

/// This operand, if `len` bytes of it, of a message of `bytes` bytes, are better loaded otherwise than line by line:
/// four runs [abreast], or asking so far ahead.
fn hint_of(operand: usize, ahead: usize, (len, bytes): (usize, usize)) -> Option<Hint> {
    if bytes >= ABREAST_FROM && abreast::serves(len) {
        return Some(Hint { operand, loads: Loads::Abreast });
    }
    (len > FOUND && bytes <= FRESH).then_some(Hint { operand, loads: Loads::Asking(ahead) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What unit tests find on every machine: runs abreast serve.
    #[test]
    fn an_operand_is_asked_for_or_goes_abreast() {
        let abreast = Some(Loads::Abreast);
        let (asking, short) = (Some(Loads::Asking(BESIDE_A_WRITER)), 16 * 1024 - 1);
        for (len, bytes, wanted) in [
            (FOUND, FOUND, None),
            (FOUND + 1, FOUND + 1, asking),
            (FOUND + 1, ABREAST_FROM - 1, asking),
            (FOUND + 1, ABREAST_FROM, abreast),
            (short, ABREAST_FROM, None),
            (short + 1, ABREAST_FROM, abreast),
            (short, FRESH + 1, None),
            (short + 1, FRESH + 1, abreast),
        ] {
            let hint = hint_of(1, BESIDE_A_WRITER, (len, bytes));
            assert_eq!(hint.map(|hint| (hint.operand, hint.loads)), wanted.map(|loads| (1, loads)), "{len} of {bytes}");
        }
    }
}
