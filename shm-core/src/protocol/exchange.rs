//! Everybody publishes a line (or a few), everybody reads everybody's.
//!
//! One line transfer deep: the least that two ranks can do, and for a few ranks the fastest, since the
//! loads of the other lines overlap. p(p-1) line transfers in all.

use super::board::{Board, Stamp};
use super::ring::{Readers, Ring};
use crate::error::Result;

/// What is done with the payload of an exchange while the protocol holds the slots.
pub trait Pieces {
    /// Fills the own slot of a piece.
    fn write(&mut self, piece: usize, slot: usize);
    /// Reads (or notes) another rank's slot of a piece: called for each in rank order. The slot stays as it is until
    /// after [`complete`](Pieces::complete).
    fn read(&mut self, piece: usize, rank: usize, slot: usize);
    /// All of a piece have been read.
    fn complete(&mut self, piece: usize);
}

/// Publishes the own slot and reads every other rank's, in rank order.
///
/// `write(slot)` fills the own slot; `read(rank, slot)` is called for each other rank in rank order, while
/// that rank's slot is held. Takes one position.
///
/// Having acquired everybody's stamp of this position, a rank knows that everybody has finished its reads
/// at all earlier positions (program order on their side): so an exchange waits for no `done` word.
///
/// # Errors
/// When a rank has failed or made another call.
#[inline]
pub fn exchange<B: Board>(
    board: &B,
    ring: &mut Ring,
    tag: u32,
    write: impl FnOnce(usize),
    read: impl FnMut(usize, usize),
) -> Result<()> {
    exchange_then(board, ring, tag, write, || (), read, || ())
}

/// [`exchange`], with `meanwhile()` called between publishing and waiting, for what nobody waits for, and `complete()` when
/// all have been read and all slots are still held.
///
/// # Errors
/// When a rank has failed or made another call.
#[inline]
pub fn exchange_then<B: Board>(
    board: &B,
    ring: &mut Ring,
    tag: u32,
    write: impl FnOnce(usize),
    meanwhile: impl FnOnce(),
    read: impl FnMut(usize, usize),
    complete: impl FnOnce(),
) -> Result<()> {
    let first = ring.take(1);
    let slot = ring.claim(board, first)?;
    let stamp = Stamp::new(first, tag);
    write(slot);
    ring.publish_in(board, slot, first, stamp, &Readers::All);
    meanwhile();
    expect_all(board, ring, slot, stamp, read)?;
    complete();
    ring.prove(first - 1);
    ring.finish(board, first);
    Ok(())
}

/// Reads every other rank's slot, in rank order, each as soon as it has this stamp.
#[inline(always)]
pub(super) fn expect_all<B: Board>(
    board: &B,
    ring: &Ring,
    slot: usize,
    stamp: Stamp,
    mut read: impl FnMut(usize, usize),
) -> Result<()> {
    let me = board.rank();
    for rank in 0..board.size() {
        if rank != me {
            ring.expect_in(board, rank, slot, stamp)?;
            read(rank, slot);
        }
    }
    Ok(())
}

/// [`exchange`] of a message of several pieces, a slot each: everybody publishes all its pieces before it reads any, so
/// that the message takes one turn of everybody, not one for each piece.
///
/// There must not be more pieces than half the ring's slots: then a rank that publishes its pieces of one exchange
/// overwrites none of the last, which others may still be reading.
///
/// # Errors
/// When a rank has failed or made another call.
#[inline]
pub fn exchange_pieces<B: Board>(
    board: &B,
    ring: &mut Ring,
    tag: u32,
    count: usize,
    pieces: &mut impl Pieces,
) -> Result<()> {
    debug_assert!(2 * count <= ring.slots());
    let first = ring.take(count as u64);
    for piece in 0..count {
        let position = first + piece as u64;
        let slot = ring.claim(board, position)?;
        pieces.write(piece, slot);
        ring.publish(board, position, tag, &Readers::All);
    }
    for piece in 0..count {
        let position = first + piece as u64;
        let (slot, stamp) = (ring.slot(position), Stamp::new(position, tag));
        expect_all(board, ring, slot, stamp, |rank, slot| pieces.read(piece, rank, slot))?;
        pieces.complete(piece);
    }
    ring.prove(first - 1);
    ring.finish(board, first + count as u64 - 1);
    Ok(())
}
