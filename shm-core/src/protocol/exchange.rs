//! Everybody publishes a line, everybody reads everybody's.
//!
//! One line transfer deep: the least that two ranks can do, and for a few ranks the fastest, since the
//! loads of the other lines overlap. p(p-1) line transfers in all.

use super::board::Board;
use super::ring::{Readers, Ring};
use crate::error::Result;

/// Publishes the own slot and reads every other rank's, in rank order.
///
/// `write(slot)` fills the own slot; `read(rank, slot)` is called for each other rank in rank order, while
/// that rank's slot is held. Takes one position.
///
/// Having acquired everybody's stamp of this position, a rank knows that everybody has finished its reads
/// at all earlier positions (program order on their side): so an exchange pays for no `done` word.
///
/// # Errors
/// When a rank has failed or made another call.
#[inline]
pub fn exchange<B: Board>(
    board: &B,
    ring: &mut Ring,
    tag: u32,
    write: impl FnOnce(usize),
    mut read: impl FnMut(usize, usize),
) -> Result<()> {
    let position = ring.take(1);
    let slot = ring.claim(board, position)?;
    write(slot);
    ring.publish(board, position, tag, Readers::All);
    let me = board.rank();
    for rank in 0..me {
        let slot = ring.expect(board, rank, position, tag)?;
        read(rank, slot);
    }
    for rank in me + 1..board.size() {
        let slot = ring.expect(board, rank, position, tag)?;
        read(rank, slot);
    }
    ring.prove(position - 1);
    ring.finish(board, position);
    Ok(())
}
