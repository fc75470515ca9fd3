//! All ranks hand out to all, and offer each other what they hand out: where all do, each takes its parts there; who
//! cannot gets them through cells. [Offers](super::offer) of every rank at once.
//!
//! At the call's first position every rank says where all of its parts lie, or that it offers none, and awaits the
//! words of all others. So all know alike whether all offer. If one does not, a [delivery](super::delivery) follows, as
//! if nobody did. If all do, each takes its part from each other one, and stores `done` of the call's last position;
//! one that finds that it does not reach another stores `done` of the first position, and reads the slices of all. Each
//! waits for `done` of the first position, which it must do anyway, as its buffer was lent, finds in the very words who
//! wants slices, and publishes its own for those alone.
//!
//! Nobody can be past the first position, and not past the call, before all have looked: it waits for slices of each.
//!
//! Who gets its parts in the place of what it sends offers none, so that nobody takes any in its call.

use super::board::Board;
use super::delivery::{Delivery, Sources, deliver};
use super::following::follow;
use super::ring::{Readers, Ring};
use crate::error::Result;

/// Hands out the parts of every rank to every other one: from where it [offers](Delivery::offered) them, or in so many
/// slices, 1 at least and the same number on all ranks. Takes two slots a rank at least.
///
/// # Errors
/// When a rank has failed or made another call, or a part that is lent in a delivery cannot be reached.
pub fn hand_out_all<B: Board>(
    board: &B,
    ring: &mut Ring,
    slices: u64,
    tag: u32,
    work: &mut impl Delivery,
) -> Result<()> {
    let offer = ring.take(1);
    let sources: Vec<usize> = Sources::Others.ranks(board.rank(), board.size()).collect();
    let own = work.offered();
    ring.claim(board, offer)?;
    ring.publish_at(board, offer, offer, tag, &Readers::All, own);
    let mut offered = Vec::with_capacity(board.size());
    for &rank in &sources {
        offered.push(ring.expect_at(board, rank, offer, tag)?.1);
    }
    // Each has published behind all that it read before.
    ring.prove(offer - 1);
    if !own.is_lent() || !offered.iter().all(|location| location.is_lent()) {
        ring.finish(board, offer);
        return deliver(board, ring, (Some(&Readers::All), Sources::Others), slices, tag, work);
    }
    work.meanwhile();
    let end = offer + slices;
    ring.take(slices);
    let mut is_taken = true;
    for (&rank, location) in sources.iter().zip(offered) {
        is_taken = is_taken && work.take(rank, location)?;
    }
    ring.finish(board, if is_taken { end } else { offer });
    ring.settle(board, offer)?;
    let left = ring.behind(board, end);
    let readers = (!left.is_empty()).then(|| Readers::These(left.into()));
    let parts = (readers.as_ref(), (!is_taken).then_some(sources.as_slice()));
    follow(board, ring, parts, (offer + 1, slices), tag, work)
}
