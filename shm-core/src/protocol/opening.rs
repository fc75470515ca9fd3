//! A root that opens the buffer in which it gathers: who can reach it puts its part there, who cannot sends it through
//! cells. What an [offer](super::offer) is to parts that are handed out.
//!
//! Whether a rank reaches another one's private memory is found when it tries, and may change from one call to the
//! next. So the root says at the call's first position where its buffer lies, or that it opens none; and a position for
//! each slice stands behind that one. A sender tries to put its part there, and publishes at the first position too:
//! that its part is in its place, or where it lends it, or that slices follow. The root, which waits for all anyway,
//! then reads slices of those alone that have said so. What a sender has put before it found that it cannot put all
//! comes again, through cells.
//!
//! A sender stores `done` of the call's last position once it touches the root's buffer no more: not before, since by
//! that a root that leaves the call by an error knows that nobody does.

use super::board::Board;
use super::delivery::{Delivery, Origin, Sources};
use super::following::{follow, positions};
use super::location::Location;
use super::ring::{Readers, Ring};
use crate::error::Result;

/// What a rank is in such a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// It gathers.
    Root,
    /// It sends to this rank.
    Sender(usize),
}

/// Brings the parts of all other ranks to the root: to where its [`location`](Delivery::location) says that they
/// belong, or in so many slices, 1 at least and the same number on all ranks. A sender's location says where it lends
/// its part, if it does.
///
/// # Errors
/// When a rank has failed or made another call, or a part that is lent cannot be reached.
pub fn bring<B: Board>(
    board: &B,
    ring: &mut Ring,
    part: Part,
    slices: u64,
    tag: u32,
    work: &mut impl Delivery,
) -> Result<()> {
    let opening = ring.take(positions(slices));
    match part {
        Part::Root => gather(board, ring, (opening, slices), tag, work),
        Part::Sender(root) => send(board, ring, root, (opening, slices), tag, work),
    }
}

fn gather<B: Board>(
    board: &B,
    ring: &mut Ring,
    (opening, slices): (u64, u64),
    tag: u32,
    work: &mut impl Delivery,
) -> Result<()> {
    ring.claim(board, opening)?;
    ring.publish_at(board, opening, opening, tag, &Readers::All, work.location());
    work.meanwhile();
    let (mut all_is_put, mut left) = (true, Vec::new());
    for rank in Sources::Others.ranks(board.rank(), board.size()) {
        let (slot, location) = ring.expect_at(board, rank, opening, tag)?;
        if location == Location::PUT {
            continue;
        }
        all_is_put = false;
        if location.is_lent() {
            work.read(0, rank, Origin { slot, crossed: false, location })?;
        } else {
            left.push(rank);
        }
    }
    // Each has published behind its look at what this rank said.
    ring.prove(opening);
    if all_is_put {
        ring.finish(board, opening + slices);
        return Ok(());
    }
    ring.finish(board, opening);
    follow(board, ring, (None, Some(&left)), (opening + 1, slices), tag, work)
}

fn send<B: Board>(
    board: &B,
    ring: &mut Ring,
    root: usize,
    (opening, slices): (u64, u64),
    tag: u32,
    work: &mut impl Delivery,
) -> Result<()> {
    work.meanwhile();
    let (_, opened) = ring.expect_at(board, root, opening, tag)?;
    ring.know(root, opening - 1);
    let is_put = opened.is_lent() && work.put(root, opened)?;
    let location = if is_put { Location::PUT } else { work.location() };
    ring.claim(board, opening)?;
    let (readers, end) = (Readers::One(root), opening + slices);
    let until = if location.is_lent() { end } else { opening };
    ring.publish_at(board, opening, until, tag, &readers, location);
    ring.finish(board, end);
    if is_put {
        return Ok(());
    }
    if location.is_lent() {
        return ring.settle(board, opening);
    }
    follow(board, ring, (Some(&readers), None), (opening + 1, slices), tag, work)
}
