//! Everybody publishes a line (or a few), everybody reads everybody's.
//!
//! One line transfer deep: the least that two ranks can do, and for a few ranks the fastest, since the
//! loads of the other lines overlap. p(p-1) line transfers in all.

use super::board::{Board, Moment, RingName, Stamp};
use super::location::Location;
use super::ring::{Readers, Ring};
use crate::error::Result;

/// What is done with the payload of an exchange while the protocol holds the slots.
pub trait Pieces {
    /// Fills the own slot of a piece.
    fn write(&mut self, piece: usize, slot: usize);
    /// Called once all own pieces are published, and before this rank waits: for what nobody waits for.
    fn meanwhile(&mut self) {}
    /// Reads (or notes) another rank's slot of a piece: called for each in rank order. The slot stays as it is until
    /// after [`complete`](Pieces::complete).
    fn read(&mut self, piece: usize, rank: usize, slot: usize);
    /// All of a piece have been read.
    fn complete(&mut self, piece: usize);
}

/// Publishes the own slot and reads every other rank's, in rank order.
///
/// `write(slot)` fills the own slot; `read(rank, slot)` is called for each other rank in rank order, while
/// that rank's slot is held. Takes one position of `ring`, which is that of the lines.
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
    exchange_then(board, ring, tag, write, |_| None, read, || ())
}

/// [`exchange`], with `meanwhile(slot)` called between publishing and waiting, for what nobody waits for, and
/// `complete()` when all have been read and all slots are still held. `slot` is the own slot that comes next, if it is
/// free (`Ring::prepare`). What `meanwhile` returns says from when on others may be looked at, if it makes a
/// difference.
///
/// # Errors
/// When a rank has failed or made another call.
#[inline]
pub fn exchange_then<B: Board>(
    board: &B,
    ring: &mut Ring,
    tag: u32,
    write: impl FnOnce(usize),
    meanwhile: impl FnOnce(Option<usize>) -> Option<Moment>,
    read: impl FnMut(usize, usize),
    complete: impl FnOnce(),
) -> Result<()> {
    let first = ring.take(1);
    let slot = ring.claim(board, first)?;
    let stamp = Stamp::new(first, tag);
    write(slot);
    ring.publish_in(board, RingName::Line, slot, first, stamp, &Readers::All);
    let moment = meanwhile(ring.prepare());
    expect_all(board, ring, (slot, moment), stamp, read)?;
    complete();
    ring.prove(first - 1);
    ring.finish(board, first);
    Ok(())
}

/// Reads every other rank's slot, in rank order, each as soon as it has this stamp, and none before the moment.
#[inline(always)]
fn expect_all<B: Board>(
    board: &B,
    ring: &Ring,
    (slot, moment): (usize, Option<Moment>),
    stamp: Stamp,
    mut read: impl FnMut(usize, usize),
) -> Result<()> {
    let me = board.rank();
    for rank in 0..board.size() {
        if rank != me {
            ring.expect_in(board, RingName::Line, rank, (slot, moment), stamp)?;
            // A core loads ahead of time: what is read waits as well.
            read(rank, slot + moment.map_or(0, Moment::zero));
        }
    }
    Ok(())
}

/// [`exchange`] of a message of several pieces, a slot each: everybody publishes all its pieces before it reads any, so
/// that the message takes one turn of everybody, not one for each piece.
///
/// The ring is that of the lines. There must not be more pieces than half its slots: then a rank that publishes its
/// pieces of one exchange overwrites none of the last, which others may still be reading.
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
    pieces.meanwhile();
    for piece in 0..count {
        let position = first + piece as u64;
        let (slot, stamp) = (ring.slot(position), Stamp::new(position, tag));
        expect_all(board, ring, (slot, None), stamp, |rank, slot| pieces.read(piece, rank, slot))?;
        pieces.complete(piece);
    }
    ring.prove(first - 1);
    ring.finish(board, first + count as u64 - 1);
    Ok(())
}

/// What is done with the payload of [`exchange_slices`] while the protocol holds the slots.
pub trait Slices {
    /// Where the own contribution lies: in cells, or whole in a buffer that is lent.
    fn location(&self) -> Location {
        Location::CELL
    }

    /// Whether `rank` lent its contribution whole, so that it is not waited for again.
    fn has(&self, _rank: usize) -> bool {
        false
    }

    /// Notes where the contribution of `rank` lies.
    fn note(&mut self, _rank: usize, _location: Location) {}

    /// Positions that the call takes at least, the same on all ranks: those that it has no use for are passed over, and
    /// with them their slots. So it can be said how soon the memory of a slot comes round again.
    fn positions(&self) -> u64 {
        0
    }

    /// Whether cells change hands between two ranks from turn to turn of the ring: the same on both.
    fn crosses(&self) -> bool {
        false
    }

    /// Fills the own slot of a slice, or that of the other rank where they are crossed.
    fn write(&mut self, slice: u64, slot: usize, crossed: bool);

    /// Combines everybody's part of a slice; those in cells lie in slot `slot` of their ranks, or, crossed, that of the
    /// other one in the own cell.
    ///
    /// # Errors
    /// When payload cannot be reached.
    fn combine(&mut self, slice: u64, slot: usize, crossed: bool) -> Result<()>;

    /// Whether all ranks lent their contributions and said where they want the result, so that each may combine a share
    /// for all. Asked once everybody's first slice was noted; all ranks have noted the same.
    fn divides(&self) -> bool {
        false
    }

    /// Combines everybody's part of the own share, to where all ranks want the result.
    ///
    /// # Errors
    /// When payload cannot be reached.
    fn combine_share(&mut self) -> Result<()> {
        Ok(())
    }
}

/// The least number of slots for [`exchange_slices`].
pub const LEAST_SLICE_SLOTS: usize = 2;

/// [`exchange`] of a message of any number of slices, a slot each. Everybody publishes a slice before it reads those of
/// the slice before. Takes `slices + 1` positions, or more if the work says so.
///
/// Where all ranks lend what they contribute and want the result in memory that all share, each combines a share of the
/// vector for all, and says so at the last position; otherwise nobody publishes there.
///
/// A rank publishes its slice `s` when it has read all of slice `s - 2`: who acquires that stamp knows it. So with four
/// slots no `done` word is waited for, but those of earlier calls, and of ranks that lent their contribution and
/// publish no more.
///
/// Two ranks may write each where it read the other's payload in the turn of the ring before ([`Ring::cross`]).
///
/// # Errors
/// When a rank has failed or made another call, or payload cannot be reached.
pub fn exchange_slices<B: Board>(
    board: &B,
    ring: &mut Ring,
    slices: u64,
    tag: u32,
    work: &mut impl Slices,
) -> Result<()> {
    debug_assert!(ring.slots() >= LEAST_SLICE_SLOTS);
    if slices == 1 && board.size() == 2 && work.crosses() && !work.location().is_lent() {
        return exchange_one(board, ring, tag, work);
    }
    let first = ring.take(work.positions().max(slices + 1));
    let (last, stored) = (first + slices - 1, ring.next_position() - 1);
    let me = board.rank();
    let location = work.location();
    let crosses = board.size() == 2 && work.crosses();
    for turn in 0..=slices {
        let crossed = crosses && turn < slices && ring.cross(first + turn);
        if turn < slices && !(location.whole && turn > 0) {
            let position = first + turn;
            let slot = ring.claim(board, position)?;
            if !location.is_lent() {
                work.write(turn, slot, crossed);
            }
            let until = if location.whole { last } else { position };
            ring.publish_at(board, position, until, tag, &Readers::All, location);
        }
        if let Some(slice) = turn.checked_sub(1) {
            let position = first + slice;
            for rank in (0..board.size()).filter(|&rank| rank != me) {
                if !work.has(rank) {
                    let (_, location) = ring.expect_at(board, rank, position, tag)?;
                    work.note(rank, location);
                    ring.know(rank, if slice == 0 { position - 1 } else { position - 2 });
                }
            }
            if slice == 0 && work.divides() {
                work.combine_share()?;
                // Before the claim, which may wait for the others' word: the slot may be that of the first slice.
                ring.finish(board, last);
                ring.claim(board, stored)?;
                ring.publish(board, stored, tag, &Readers::All);
                for rank in (0..board.size()).filter(|&rank| rank != me) {
                    ring.expect(board, rank, stored, tag)?;
                    ring.know(rank, last);
                }
                ring.finish(board, stored);
                return Ok(());
            }
            let slot = ring.slot(position);
            work.combine(slice, slot, crosses && ring.is_crossed(slot))?;
            // Who lent waits for the last word alone, which follows.
            if !(0..board.size()).all(|rank| rank == me || work.has(rank)) {
                ring.finish(board, position);
            }
        }
    }
    ring.finish(board, stored);
    if location.is_lent() { ring.settle(board, first) } else { Ok(()) }
}

/// [`exchange_slices`] of one slice between two ranks that may write each in the other's cell, where this one lends
/// nothing: the same slots, stamps and positions without its loops, so that each rank decides for itself. Nothing
/// divides such a call.
///
/// # Errors
/// As there.
#[inline]
fn exchange_one<B: Board>(board: &B, ring: &mut Ring, tag: u32, work: &mut impl Slices) -> Result<()> {
    debug_assert!(board.size() == 2 && work.crosses() && !work.location().is_lent());
    let (first, other) = (ring.take(work.positions().max(2)), 1 - board.rank());
    let crossed = ring.cross(first);
    let slot = ring.claim(board, first)?;
    work.write(0, slot, crossed);
    ring.publish(board, first, tag, &Readers::All);
    let (slot, location) = ring.expect_at(board, other, first, tag)?;
    // It has read all that was published before.
    ring.prove(first - 1);
    work.note(other, location);
    work.combine(0, slot, crossed)?;
    ring.finish(board, ring.next_position() - 1);
    Ok(())
}
