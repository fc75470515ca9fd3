//! The release step and the gather step over a tree, and the pipeline of both (Jain et al., SC18).
//!
//! Both work on one position, that is on one slice of a message. A gather step goes from the leaves to the
//! root: a rank waits for its children's cells, combines them with its own part, and publishes its own cell to
//! its parent. A release step goes from the root to the leaves: a rank waits for its parent's cell, takes it,
//! and publishes a cell of its own if it has children. A parent writes one stamp, which all children poll.
//!
//! What differs from the paper: the flag of a slot is its stamp, so that readiness is per slice and the
//! tree may change from call to call; and reuse is proven by the very readers of the slot (see
//! [`ring`](super::ring)), so that pipelines of different trees may follow one another.

use super::board::Board;
use super::ring::{Readers, Ring};
use crate::error::Result;
use crate::links::Links;

/// One slice of a gather step.
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
    fold: impl FnOnce(Option<usize>),
) -> Result<()> {
    let own = match links.parent() {
        Some(_) => Some(ring.claim(board, position)?),
        None => None,
    };
    for &child in links.children() {
        ring.expect(board, child, position, tag)?;
    }
    fold(own);
    if let Some(parent) = links.parent() {
        ring.publish(board, position, tag, Readers::One(parent));
    }
    ring.finish(board, position);
    Ok(())
}

/// Where a rank takes the payload of a release step from, and whether it passes it on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// The rank whose slot holds the payload; none at the root, which has it in its own buffer.
    pub from: Option<usize>,
    /// Whether the own slot must be filled for children.
    pub forward: bool,
    /// The slot, the same number on all ranks.
    pub slot: usize,
}

/// One slice of a release step.
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
    pass: impl FnOnce(Passage),
) -> Result<()> {
    let forward = !links.children().is_empty();
    let mut slot = ring.slot(position);
    if forward {
        slot = ring.claim(board, position)?;
    }
    if let Some(parent) = links.parent() {
        slot = ring.expect(board, parent, position, tag)?;
    }
    pass(Passage { from: links.parent(), forward, slot });
    if forward {
        ring.publish(board, position, tag, links.readers());
    }
    ring.finish(board, position);
    Ok(())
}

/// Gather and release of `slices` slices in one pipeline: an allreduce.
///
/// `fold(slice, own)` as in [`gather`], `pass(slice, passage)` as in [`release`]; both trees have the same root. The
/// root releases a slice as soon as it has it; the others go on contributing until they are `lag` slices ahead
/// of what they take. `lag` must not exceed the slots of either ring: no rank then waits for a slice that hangs
/// on one that it has yet to contribute.
///
/// # Errors
/// When a rank has failed or made another call.
#[allow(clippy::too_many_arguments)]
pub fn gather_release<B: Board>(
    board: &B,
    (up, up_links): (&mut Ring, &Links),
    (down, down_links): (&mut Ring, &Links),
    slices: u64,
    tag: u32,
    mut fold: impl FnMut(u64, Option<usize>),
    mut pass: impl FnMut(u64, Passage),
) -> Result<()> {
    let first_up = up.take(slices);
    let first_down = down.take(slices);
    let lag = if up_links.is_root() { 0 } else { (up.slots().min(down.slots()) as u64).min(slices) };
    for turn in 0..slices + lag {
        if turn < slices {
            gather(board, up, up_links, first_up + turn, tag, |own| fold(turn, own))?;
        }
        if turn >= lag {
            let slice = turn - lag;
            release(board, down, down_links, first_down + slice, tag, |passage| pass(slice, passage))?;
        }
    }
    Ok(())
}
