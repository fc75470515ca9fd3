//! A root that offers what it hands out: who can reach it takes its part there, who cannot gets it through cells.
//!
//! Whether a rank reaches another one's private memory is found when it tries, and may change from one call to the
//! next: a rank gives up rights, the root's first thread ends, a page is not there for others. So the root says at the
//! call's first position where all of it lies, or that it lies in cells; and a position for each slice stands behind
//! that one. A reader that has taken its part stores `done` of the call's last position. One that has not stores `done`
//! of the first, and then reads slices as of a root that has offered nothing. The root may not leave before all have
//! taken or declined: its buffer is its caller's. So it waits for `done` of the first position, finds in the very words
//! who wants slices, and publishes them for those alone; if all have taken their parts it publishes nothing more.

use super::board::Board;
use super::delivery::Delivery;
use super::following::{follow, positions};
use super::ring::{Readers, Ring};
use crate::error::Result;

/// What a rank is in such a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// It hands out.
    Root,
    /// It gets what this rank hands out.
    Reader(usize),
}

/// Hands out the root's parts to all other ranks: whole, where [`location`](Delivery::location) says that they lie, or
/// in so many slices, 1 at least and the same number on all ranks.
///
/// # Errors
/// When a rank has failed or made another call.
pub fn hand_out<B: Board>(
    board: &B,
    ring: &mut Ring,
    part: Part,
    slices: u64,
    tag: u32,
    work: &mut impl Delivery,
) -> Result<()> {
    let offer = ring.take(positions(slices));
    let end = offer + slices;
    let Part::Reader(root) = part else {
        ring.claim(board, offer)?;
        let location = work.location();
        ring.publish_at(board, offer, offer, tag, &Readers::All, location);
        work.meanwhile();
        ring.finish(board, end);
        let mut readers = Readers::All;
        if location.is_lent() {
            ring.settle(board, offer)?;
            let left = ring.behind(board, end);
            if left.is_empty() {
                return Ok(());
            }
            readers = Readers::These(left.into());
        }
        return follow(board, ring, (Some(&readers), None), (offer + 1, slices), tag, work);
    };
    work.meanwhile();
    let (_, location) = ring.expect_at(board, root, offer, tag)?;
    ring.know(root, offer - 1);
    if location.is_lent() && work.take(root, location)? {
        ring.finish(board, end);
        return Ok(());
    }
    ring.finish(board, offer);
    follow(board, ring, (None, Some(&[root])), (offer + 1, slices), tag, work)
}
