//! One slot of lines between a root and all others, flat: the shortest broadcast and the shortest reduction there are.
//!
//! They are the release step and the gather step of one slice over the flat tree ([`step`](super::step)), with no tree to look
//! at. The writers run ahead of the readers as far as the slots go: nothing is waited for on their side but the readers of
//! a slot's last use. A root that has acquired everybody's stamp knows, as in an exchange, that all are past
//! the earlier positions; the others know it of the root.

use super::board::{Board, Stamp};
use super::exchange::expect_all;
use super::ring::{Readers, Ring};
use crate::error::Result;

/// The root publishes a slot that all others read. Takes one position.
///
/// `write(slot)` fills the root's slot; `meanwhile()` is called after the root has published and before the others wait, for
/// what nobody waits for; `read(slot)` is called on the others while the root's slot is held.
///
/// # Errors
/// When a rank has failed or made another call.
#[inline]
pub fn hand_out<B: Board>(
    board: &B,
    ring: &mut Ring,
    root: usize,
    tag: u32,
    write: impl FnOnce(usize),
    meanwhile: impl FnOnce(),
    read: impl FnOnce(usize),
) -> Result<()> {
    let position = ring.take(1);
    let stamp = Stamp::new(position, tag);
    if board.rank() == root {
        let slot = ring.claim(board, position)?;
        write(slot);
        ring.publish_in(board, slot, position, stamp, &Readers::All);
        meanwhile();
    } else {
        meanwhile();
        let slot = ring.slot(position);
        ring.expect_in(board, root, slot, stamp)?;
        read(slot);
        ring.know(root, position - 1);
    }
    ring.finish(board, position);
    Ok(())
}

/// All others publish a slot that the root reads. Takes one position.
///
/// `write(slot)` fills the own slot of the others; `meanwhile()` is called after they have published and before the root waits;
/// `read(rank, slot)` is called on the root for each of the others, in rank order, and `complete()` when all have been read
/// and all slots are still held.
///
/// # Errors
/// When a rank has failed or made another call.
#[inline]
#[expect(clippy::too_many_arguments)]
pub fn collect<B: Board>(
    board: &B,
    ring: &mut Ring,
    root: usize,
    tag: u32,
    write: impl FnOnce(usize),
    meanwhile: impl FnOnce(),
    read: impl FnMut(usize, usize),
    complete: impl FnOnce(),
) -> Result<()> {
    let position = ring.take(1);
    let stamp = Stamp::new(position, tag);
    if board.rank() == root {
        meanwhile();
        let slot = ring.slot(position);
        expect_all(board, ring, slot, stamp, read)?;
        complete();
        ring.prove(position - 1);
    } else {
        let slot = ring.claim(board, position)?;
        write(slot);
        ring.publish_in(board, slot, position, stamp, &Readers::One(root));
        meanwhile();
    }
    ring.finish(board, position);
    Ok(())
}
