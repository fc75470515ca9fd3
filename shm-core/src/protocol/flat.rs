//! One slot between a root and all others, flat: the shortest broadcast and the shortest reduction there are.
//!
//! They are the release step and the gather step of one slice over the flat tree ([`step`](super::step)), with no tree
//! to look at: a rank may go through either, whatever the others do. The writers run ahead of the readers as far as the
//! slots go: nothing is waited for on their side but the readers of a slot's last use. A root that has acquired
//! everybody's stamp knows, as in an exchange, that all are past the earlier positions; the others know it of the root.

use super::board::{Board, RingName, Stamp};
use super::location::Location;
use super::ring::{Readers, Ring};
use crate::error::Result;

/// How many positions ahead a reader asks for a line. A writer that is ahead is so by as many slots as there are, as a
/// rule; one that is not makes that line its own again before it comes to it.
const AHEAD: u64 = 4;

/// Asks for a line of `from` behind that of `position`, between two ranks, where this one finds what it reads and need
/// not wait for it: each of its calls takes as long as it takes to fetch a line otherwise. Calls back to back (Zen 3,
/// runs without and with it, medians): broadcasts of 8 bytes 75 and 54 ns where cores are near each other, 261 and 155
/// far apart, reductions of 64 bytes 134 and 108, 389 and 243. Calls that are begun together are as quick as before: of
/// 8 bytes 155 and 147, 166 and 173.
#[inline]
fn ask_ahead<B: Board>(board: &B, ring: &Ring, from: usize, position: u64) {
    if board.size() == 2 && ring.name() == RingName::Line && board.looks_ahead() {
        ring.look_ahead(board, from, position + AHEAD);
    }
}

/// The root publishes a slot that all others read. Takes one position.
///
/// `write(slot)` fills the root's slot; `meanwhile()` is called once the root has published, and before the others
/// wait, for what nobody waits for; `read(slot, location)` is called on the others while the root's slot is held.
///
/// # Errors
/// When a rank has failed or made another call, or what `read` returns.
#[inline]
pub fn hand_out<B: Board>(
    board: &B,
    ring: &mut Ring,
    root: usize,
    tag: u32,
    write: impl FnOnce(usize),
    meanwhile: impl FnOnce(),
    read: impl FnOnce(usize, Location) -> Result<()>,
) -> Result<()> {
    let position = ring.take(1);
    if board.rank() == root {
        let slot = ring.claim(board, position)?;
        write(slot);
        ring.publish(board, position, tag, &Readers::All);
        ring.prepare();
        meanwhile();
    } else {
        meanwhile();
        let (slot, location) = ring.expect_at(board, root, position, tag)?;
        ask_ahead(board, ring, root, position);
        read(slot, location)?;
        ring.know(root, position - 1);
    }
    ring.finish(board, position);
    Ok(())
}

/// What is done with the payload of [`collect`] while the protocol holds the slots.
pub trait Contributions {
    /// Fills the own slot, on ranks other than the root.
    fn write(&mut self, slot: usize);
    /// Called once the own slot is published, or, at the root, before it waits: for what nobody waits for.
    fn meanwhile(&mut self);
    /// On the root, of each other rank in rank order: its contribution is there. The slot stays as it is until after
    /// [`complete`](Contributions::complete).
    ///
    /// # Errors
    /// When it cannot be reached.
    fn read(&mut self, rank: usize, slot: usize, location: Location) -> Result<()>;
    /// On the root: all are there.
    ///
    /// # Errors
    /// When one cannot be reached.
    fn complete(&mut self) -> Result<()>;
}

/// All others publish a slot that the root reads. Takes one position.
///
/// # Errors
/// When a rank has failed or made another call, or payload cannot be reached.
#[inline]
pub fn collect<B: Board>(
    board: &B,
    ring: &mut Ring,
    root: usize,
    tag: u32,
    contributions: &mut impl Contributions,
) -> Result<()> {
    let position = ring.take(1);
    if board.rank() == root {
        contributions.meanwhile();
        let (slot, stamp) = (ring.slot(position), Stamp::new(position, tag));
        for rank in (0..board.size()).filter(|&rank| rank != root) {
            let location = ring.expect_stamped(board, rank, slot, stamp)?;
            contributions.read(rank, slot, location)?;
        }
        ask_ahead(board, ring, usize::from(root == 0), position);
        contributions.complete()?;
        ring.prove(position - 1);
    } else {
        let slot = ring.claim(board, position)?;
        contributions.write(slot);
        ring.publish(board, position, tag, &Readers::One(root));
        ring.prepare();
        contributions.meanwhile();
    }
    ring.finish(board, position);
    Ok(())
}
