//! The release step and the gather step over a tree, and the pipeline of both (Jain et al., SC18).
//!
//! Both work on one position, that is on one slice of a message. A gather step goes from the leaves to the
//! root: a rank waits for its children's slots, combines them with its own part, and publishes its own slot to
//! its parent. A release step goes from the root to the leaves: a rank waits for its parent's slot, takes it,
//! and publishes a slot of its own if it has children. A parent writes one stamp, which all children poll.
//!
//! A leaf of a gather step, or the root of a release step, whose buffer others can reach may lend it whole: it
//! publishes once, for all slices of the call, and copies nothing. A rank that passes a message on may lend the buffer
//! in which it puts it, slice by slice. What was lent is the caller's again when [`Ring::settle`] has returned.
//!
//! Where ranks share a core, a tree may have relays of them ([`Links::in_relay`]): in a gather step the last one fills a
//! cell, each other one adds to it what it has and says where it lies, and the head takes it out. Such a cell, and what
//! somebody in the relay lends, is its owner's again when the head says that it has read that position: it has acquired
//! what the rank before published, which had acquired the one before that, and so on.
//!
//! What differs from the paper: the flag of a slot is its stamp, so that readiness is per slice and the tree may change
//! from call to call; reuse is proven by the very readers of the slot (see [`ring`](super::ring)), so that pipelines of
//! different trees may follow one another; and payload may stay where it lies.

use super::board::{Board, Stamp};
use super::location::Location;
use super::ring::{Readers, Ring};
use crate::error::Result;
use crate::links::Links;

/// The payload of the gather steps of one call.
pub trait Gathers {
    /// Where the own contribution lies: the cell, or, on a leaf, a buffer that it lends whole.
    fn location(&self) -> Location {
        Location::CELL
    }

    /// Whether what the ranks of this one's [relay](Links::in_relay) have is summed up in one cell: the same on all of them.
    fn relays(&self) -> bool {
        false
    }

    /// Where the slice lies that was [folded](Gathers::fold) last: in the own cell, or, in a relay, in one of a rank
    /// behind this one.
    fn folded(&self) -> Location {
        Location::CELL
    }

    /// Whether `child` (or a rank behind this one in a relay) lent its contribution to all slices, so that it is not
    /// waited for again.
    fn has(&self, _child: usize) -> bool {
        false
    }

    /// Notes where the contribution of `child` lies.
    fn note(&mut self, _child: usize, _location: Location) {}

    /// Combines the children's payload of `slice` with the own part, into slot `own` or, at the root, to where the
    /// result belongs. Those of the children whose payload lies in cells have it in their slot of the slice's position.
    /// In a relay those behind this rank count as well, as far as the nearest one that lends nothing: its cell has all
    /// that is further behind, and is where a rank that is not the head adds what it has.
    ///
    /// # Errors
    /// When payload cannot be reached.
    fn fold(&mut self, slice: u64, own: Option<usize>) -> Result<()>;
}

/// The payload of the release steps of one call.
pub trait Releases {
    /// Where the own children find the message: in the cell, or in a buffer of this rank, which the root may lend
    /// whole.
    fn location(&self) -> Location {
        Location::CELL
    }

    /// Whether the parent lent the whole message, so that it is not waited for again.
    fn has(&self) -> bool {
        false
    }

    /// Notes where the parent's payload lies.
    fn note(&mut self, _location: Location) {}

    /// Takes a slice from the parent, and fills the own slot for the children.
    ///
    /// # Errors
    /// When payload cannot be reached.
    fn pass(&mut self, slice: u64, passage: Passage) -> Result<()>;
}

/// Payload that goes through cells alone: a closure of slice and slot, or of slice and passage.
#[derive(Debug)]
pub struct InCells<F>(pub F);

impl<F: FnMut(u64, Option<usize>)> Gathers for InCells<F> {
    #[inline]
    fn fold(&mut self, slice: u64, own: Option<usize>) -> Result<()> {
        (self.0)(slice, own);
        Ok(())
    }
}

impl<F: FnMut(u64, Passage)> Releases for InCells<F> {
    #[inline]
    fn pass(&mut self, slice: u64, passage: Passage) -> Result<()> {
        (self.0)(slice, passage);
        Ok(())
    }
}

/// The positions of one call in a ring, a slice each.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    first: u64,
    slices: u64,
}

impl Span {
    /// Takes the next `slices` positions of a ring.
    pub fn take(ring: &mut Ring, slices: u64) -> Self {
        Self { first: ring.take(slices), slices }
    }

    /// The first position.
    #[must_use]
    pub fn first(self) -> u64 {
        self.first
    }

    /// The last position.
    #[must_use]
    pub fn last(self) -> u64 {
        self.first + self.slices - 1
    }

    /// Says that this rank is done with a slice. Where it reads no slot of the slices behind, because it has all that
    /// it reads, or reads nothing, it says so with the last one only: nobody waits for it before.
    #[inline]
    fn finish<B: Board>(self, board: &B, ring: &Ring, slice: u64, has_all: bool) {
        if !has_all || slice + 1 == self.slices {
            ring.finish(board, self.first + slice);
        }
    }
}

/// One slice of a gather step, through cells.
///
/// `fold(own)` is called once all children's slots of `position` are published and, on a rank with a parent,
/// the own slot may be filled: it combines the children's payload (their slot has the same number) with the own
/// part, into slot `own` or, at the root, to where the result belongs.
///
/// # Errors
/// When a rank has failed or made another call.
#[inline]
pub fn gather<B: Board>(
    board: &B,
    ring: &mut Ring,
    links: &Links,
    position: u64,
    tag: u32,
    mut fold: impl FnMut(Option<usize>),
) -> Result<()> {
    gather_slice(board, ring, links, (Span { first: position, slices: 1 }, 0), tag, &mut InCells(|_, own| fold(own)))
}

/// Slice `slice` of a gather step of several.
///
/// # Errors
/// When a rank has failed or made another call, or payload cannot be reached.
#[inline]
pub fn gather_slice<B: Board>(
    board: &B,
    ring: &mut Ring,
    links: &Links,
    (span, slice): (Span, u64),
    tag: u32,
    work: &mut impl Gathers,
) -> Result<()> {
    let position = span.first + slice;
    let (location, relays) = (work.location(), work.relays());
    if let (true, Some(parent)) = (location.whole, links.parent()) {
        if slice == 0 {
            ring.claim(board, position)?;
            ring.publish_at(board, position, span.last(), tag, &Readers::One(parent), location);
        }
    } else {
        let own = match links.parent() {
            Some(_) => Some(ring.claim(board, position)?),
            None => None,
        };
        let (slot, stamp) = (ring.slot(position), Stamp::new(position, tag));
        let mut expect = |child: usize| {
            let mut has = work.has(child);
            if !has {
                work.note(child, ring.expect_stamped(board, child, slot, stamp)?);
                has = work.has(child);
            }
            Ok::<bool, crate::Error>(has)
        };
        let children = match relays {
            false => links.children(),
            true => {
                let (behind, others) = links.relay();
                for &rank in behind {
                    if !expect(rank)? {
                        break;
                    }
                }
                others
            }
        };
        for &child in children {
            expect(child)?;
        }
        work.fold(slice, own)?;
        if slice + 1 < span.slices && !children.is_empty() && board.looks_ahead() {
            for &child in children.iter().filter(|&&child| !work.has(child)) {
                ring.look_ahead(board, child, position + 1);
            }
        }
        if let Some(parent) = links.parent() {
            ring.publish_at(board, position, position, tag, &Readers::One(parent), work.folded());
        }
    }
    span.finish(board, ring, slice, links.children().iter().all(|&child| work.has(child)));
    Ok(())
}

/// Where a rank takes the payload of a release step from, and whether it passes it on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// The rank whose slot holds the payload, or says where it lies; none at the root, which has it in its own buffer.
    pub from: Option<usize>,
    /// Whether the own cell must be filled for children.
    pub forward: bool,
    /// The slot, the same number on all ranks.
    pub slot: usize,
}

/// One slice of a release step, through cells.
///
/// `pass(passage)` is called once the parent's slot is published and, on a rank with children, the own slot may
/// be filled.
///
/// # Errors
/// When a rank has failed or made another call.
#[inline]
pub fn release<B: Board>(
    board: &B,
    ring: &mut Ring,
    links: &Links,
    position: u64,
    tag: u32,
    mut pass: impl FnMut(Passage),
) -> Result<()> {
    let span = Span { first: position, slices: 1 };
    release_slice(board, ring, links, (span, 0), tag, &mut InCells(|_, passage| pass(passage)))
}

/// Slice `slice` of a release step of several.
///
/// # Errors
/// When a rank has failed or made another call, or payload cannot be reached.
#[inline]
pub fn release_slice<B: Board>(
    board: &B,
    ring: &mut Ring,
    links: &Links,
    (span, slice): (Span, u64),
    tag: u32,
    work: &mut impl Releases,
) -> Result<()> {
    let position = span.first + slice;
    let location = work.location();
    let has_children = !links.children().is_empty();
    if location.whole && has_children {
        if slice == 0 {
            ring.claim(board, position)?;
            ring.publish_at(board, position, span.last(), tag, links.readers(), location);
        }
    } else {
        if has_children {
            ring.claim(board, position)?;
        }
        if let (Some(parent), false) = (links.parent(), work.has()) {
            let (_, location) = ring.expect_at(board, parent, position, tag)?;
            work.note(location);
        }
        let forward = has_children && !location.is_lent();
        work.pass(slice, Passage { from: links.parent(), forward, slot: ring.slot(position) })?;
        let expects = links.parent().filter(|_| slice + 1 < span.slices && !work.has());
        if let Some(parent) = expects.filter(|_| board.looks_ahead()) {
            ring.look_ahead(board, parent, position + 1);
        }
        if has_children {
            ring.publish_at(board, position, position, tag, links.readers(), location);
        }
    }
    span.finish(board, ring, slice, links.parent().is_none() || work.has());
    Ok(())
}

/// A gather step of `span`, slice by slice: a reduction. What was lent is settled.
///
/// # Errors
/// When a rank has failed or made another call, or payload cannot be reached.
pub fn gather_all<B: Board>(
    board: &B,
    ring: &mut Ring,
    links: &Links,
    span: Span,
    tag: u32,
    work: &mut impl Gathers,
) -> Result<()> {
    for slice in 0..span.slices {
        gather_slice(board, ring, links, (span, slice), tag, work)?;
    }
    if work.location().is_lent() { ring.settle(board, span.first) } else { Ok(()) }
}

/// A release step of `span`, slice by slice: a broadcast. What was lent is settled.
///
/// # Errors
/// When a rank has failed or made another call, or payload cannot be reached.
pub fn release_all<B: Board>(
    board: &B,
    ring: &mut Ring,
    links: &Links,
    span: Span,
    tag: u32,
    work: &mut impl Releases,
) -> Result<()> {
    for slice in 0..span.slices {
        release_slice(board, ring, links, (span, slice), tag, work)?;
    }
    if work.location().is_lent() { ring.settle(board, span.first) } else { Ok(()) }
}

/// Gather and release of `slices` slices in one pipeline: an allreduce. What was lent is settled.
///
/// Both trees have the same root. The root releases a slice as soon as it has it; the others go on contributing until
/// they are `lag` slices ahead of what they take. `lag` must not exceed the slots of either ring: no rank then waits
/// for a slice that hangs on one that it has yet to contribute.
///
/// # Errors
/// When a rank has failed or made another call, or payload cannot be reached.
pub fn gather_release<B: Board>(
    board: &B,
    (up, up_links): (&mut Ring, &Links),
    (down, down_links): (&mut Ring, &Links),
    slices: u64,
    tag: u32,
    (gathers, releases): (&mut impl Gathers, &mut impl Releases),
) -> Result<()> {
    let up_span = Span::take(up, slices);
    let down_span = Span::take(down, slices);
    let lag = if up_links.is_root() { 0 } else { (up.slots().min(down.slots()) as u64).min(slices) };
    for turn in 0..slices + lag {
        if turn < slices {
            gather_slice(board, up, up_links, (up_span, turn), tag, gathers)?;
        }
        if turn >= lag {
            release_slice(board, down, down_links, (down_span, turn - lag), tag, releases)?;
        }
    }
    if gathers.location().is_lent() {
        if let Some(parent) = up_links.parent() {
            // The root released the last slice after it had folded it, and so after all below it had; that was
            // acquired.
            up.know(parent, up_span.last());
        }
        up.settle(board, up_span.first)?;
    }
    if releases.location().is_lent() {
        down.settle(board, down_span.first)?;
    }
    Ok(())
}
