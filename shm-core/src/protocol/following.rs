//! Slices that follow a call's first word, behind which each rank knows who publishes slices for whom: what is left of
//! [an offer](super::offer), [an opening](super::opening) or [offers of all](super::mutual) to those who could not
//! reach what these spoke of.

use super::board::Board;
use super::delivery::{Delivery, Origin};
use super::location::Location;
use super::ring::{Readers, Ring};
use crate::error::Result;

/// Positions of a call of so many slices, and a word before them.
#[must_use]
pub const fn positions(slices: u64) -> u64 {
    slices + 1
}

/// Publishes slices at so many positions, from the first one on, for `readers`, and reads those of `sources`: none
/// where there are no readers, or no word of sources. A rank that does both publishes slice `s` before it reads slice
/// `s - 1`, as in a [delivery](super::delivery::deliver), and two such ranks take two slots.
///
/// # Errors
/// When a rank has failed or made another call.
pub(super) fn follow<B: Board>(
    board: &B,
    ring: &mut Ring,
    (readers, sources): (Option<&Readers>, Option<&[usize]>),
    (first, slices): (u64, u64),
    tag: u32,
    work: &mut impl Delivery,
) -> Result<()> {
    for turn in 0..=slices {
        if let (Some(readers), true) = (readers, turn < slices) {
            let position = first + turn;
            let slot = ring.claim(board, position)?;
            work.write(turn, slot, false);
            ring.publish(board, position, tag, readers);
        }
        if let (Some(sources), Some(slice)) = (sources, turn.checked_sub(1)) {
            let position = first + slice;
            for &rank in sources {
                if slice == 0 || work.takes(slice, rank) {
                    let slot = ring.expect(board, rank, position, tag)?;
                    work.read(slice, rank, Origin { slot, crossed: false, location: Location::CELL })?;
                }
            }
            work.complete(slice, ring.slot(position))?;
            ring.finish(board, position);
        }
    }
    Ok(())
}
