//! What the calls that move blocks have in common: their tags, their checks, and the counts that only some ranks know.

use std::ops::Range;

use crate::communicator::Communicator;
use crate::convert::{Converted, Use};
use crate::element::{Element, type_number};
use crate::error::{Error, Result};
use crate::regime::Engine;
use crate::regime::blocks::{Blocks, Sending};
use crate::regime::cut::{uncut, whole_elements};
use crate::regime::route::Route;
use crate::select::{BlockChoice, Vector};

use super::tag_of_call;

/// Which call it is, for the check that all ranks make the same: its numbers for equal blocks and for others, its root,
/// what its elements are, of so many bytes each.
#[derive(Clone, Copy)]
pub(crate) struct Name {
    pub numbers: [u64; 2],
    pub root: usize,
    pub kind: u64,
    pub element: usize,
}

/// What ranks know of each other's blocks.
#[derive(Clone, Copy)]
pub(crate) enum Known {
    /// All have so many elements.
    Even(usize),
    /// Everybody knows everybody's length: a number made of all.
    All(usize),
    /// Each rank knows the blocks that it sends and gets.
    Own,
}

impl Known {
    /// What all ranks know of blocks that all of them were told.
    pub fn of(blocks: &Blocks<'_>, size: usize) -> Self {
        let mix = |known: usize, rank| (known ^ blocks.len(rank)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        Known::All((0..size).fold(size, mix))
    }
}

impl Name {
    /// A call on elements of this type.
    pub fn of<T: Element>(numbers: [u64; 2], root: usize) -> Self {
        Self { numbers, root, kind: type_number::<T>(), element: size_of::<T>() }
    }

    pub fn tag(&self, known: Known) -> u32 {
        self.tag_with(known, 0)
    }

    /// The tag of a call with an operator of this code.
    pub fn tag_with(&self, known: Known, code: u8) -> u32 {
        let (number, count) = match known {
            Known::Even(count) => (self.numbers[0], count),
            Known::All(count) => (self.numbers[1], count),
            Known::Own => (self.numbers[1], 0),
        };
        tag_of_call(number, self.root, self.kind, code, count)
    }
}

/// Which counts a rank tells the others, and which it expects to hear.
pub(crate) struct Counted<'a> {
    /// What this rank tells: equally many counts on all ranks.
    pub tells: &'a [u64],
    /// The count that a rank should have told at a place, in bytes; nothing where this rank does not know.
    pub expects: &'a dyn Fn(usize, usize) -> Option<usize>,
}

impl Communicator {
    /// Moves blocks of which `parts` lie in a slot.
    pub(crate) fn move_blocks(
        &self,
        name: Name,
        known: Known,
        parts: usize,
        counted: Option<Counted<'_>>,
        mut route: Route<'_>,
    ) -> Result<()> {
        let Some(counted) = counted else {
            let choice = match self.choose_for(name, &route, parts) {
                Ok(choice) => choice,
                Err(error) => return self.refuse(error),
            };
            // SAFETY: the slices are the call's until it returns.
            let _kept = unsafe { self.convert_sent(&mut route) };
            let mut engine = self.enter()?;
            let tag = engine.board.chained(name.tag(known));
            return engine.deliver_blocks(&choice, route, tag);
        };
        let mut engine = self.enter()?;
        let tag = engine.board.chained(name.tag(known));
        engine.board.begin_at_home(tag)?;
        let found = tell(&mut engine, tag, &counted);
        route.longest = found.inspect_err(|_| engine.board.unnote())?;
        self.move_noted(&mut engine, (name, tag), parts, route)
    }

    /// Moves blocks in a call that has begun, all of which have their length from what was told.
    pub(crate) fn move_noted(
        &self,
        engine: &mut Engine,
        (name, tag): (Name, u32),
        parts: usize,
        mut route: Route<'_>,
    ) -> Result<()> {
        let choice = self.choose_for(name, &route, parts).inspect_err(|_| engine.board.unnote())?;
        // SAFETY: the slices are the call's until it returns.
        let _kept = unsafe { self.convert_sent(&mut route) };
        engine.deliver_noted(&choice, route, tag)
    }

    /// [`lend`](Communicator::lend) for what others may read where it lies.
    ///
    /// # Safety
    /// As there.
    unsafe fn convert_sent(&self, route: &mut Route<'_>) -> Option<Converted> {
        let direct = self.selection.block_from(route.waits_for_all());
        let (buffer, bytes) = match &mut route.send {
            Sending::Same(buffer, bytes) if route.lends => (buffer, *bytes),
            Sending::Rows(buffer, blocks) if route.lends => (buffer, self.size() * blocks.len(0)),
            _ => return None,
        };
        // SAFETY: by contract.
        let (place, kept) = unsafe { self.convert_buffer(direct, buffer.cast_mut(), bytes, Use::Reads) };
        *buffer = place;
        kept
    }

    /// Slices are whole elements, unless these are longer than a part.
    fn choose_for(&self, name: Name, route: &Route<'_>, parts: usize) -> Result<BlockChoice> {
        let bytes = Vector::of_bytes(route.longest);
        let mut choice = self.selection.choose_blocks(parts.max(1), route.waits_for_all(), bytes)?;
        if !choice.lines {
            choice.slice = whole_elements(choice.part, uncut(name.element, choice.part));
        }
        Ok(choice)
    }

    /// Whether blocks of which `parts` lie in a slot, the longest of `bytes` bytes, go in lines, the short way.
    #[inline]
    pub(crate) fn goes_in_slots(&self, parts: usize, bytes: usize) -> bool {
        self.size() > 1 && self.selection.fits_a_slot(parts, bytes)
    }

    /// Refuses a root that is no rank.
    pub(crate) fn check_root(&self, root: usize) -> Result<()> {
        if root < self.size() {
            return Ok(());
        }
        self.refuse(self.wrong_root(root, "it is no rank of this communicator"))
    }

    pub(crate) fn wrong_root(&self, root: usize, why: &'static str) -> Error {
        Error::Root { rank: self.rank(), size: self.size(), root, why }
    }

    /// Refuses a buffer that has not a block for each rank: of `found` elements, where each block has `each`.
    pub(crate) fn check_blocks(&self, what: &'static str, found: usize, each: usize) -> Result<()> {
        self.check_count(
            what,
            found,
            each.saturating_mul(self.size()),
            "; a block for each rank must have its place there",
        )
    }

    /// Refuses a length that is not as it should be.
    pub(crate) fn check_count(
        &self,
        what: &'static str,
        found: usize,
        expected: usize,
        advice: &'static str,
    ) -> Result<()> {
        if found == expected {
            return Ok(());
        }
        self.refuse(Error::Blocks { rank: self.rank(), size: self.size(), what, found, expected, advice })
    }

    /// Refuses blocks of which another one overlaps the own one, which others read where it lies.
    pub(crate) fn check_own_apart(&self, what: &'static str, blocks: &Blocks<'_>) -> Result<()> {
        let Blocks::Uneven { unit, .. } = blocks else { return Ok(()) };
        let own = blocks.of(self.rank());
        let others = (0..self.size()).filter(|&rank| rank != self.rank());
        match others.map(|rank| common(&own, &blocks.of(rank))).max() {
            None | Some(0) => Ok(()),
            Some(most) => {
                let advice = "; others read it while theirs arrive: give displacements that keep it apart";
                self.check_count(what, (own.len() - most) / unit, own.len() / unit, advice)
            }
        }
    }

    /// Refuses blocks of which two overlap, where what is sent is replaced by what arrives.
    pub(crate) fn check_all_apart(&self, what: &'static str, blocks: &Blocks<'_>) -> Result<()> {
        let Blocks::Uneven { unit, .. } = blocks else { return Ok(()) };
        let all = || (0..self.size()).map(|rank| blocks.of(rank)).filter(|block| !block.is_empty());
        // Blocks in the order of ranks are not put in order first.
        if all().zip(all().skip(1)).all(|(one, next)| one.end <= next.start) {
            return Ok(());
        }
        let mut in_order: Vec<_> = all().collect();
        in_order.sort_unstable_by_key(|block| block.start);
        let mut overlaps = in_order.windows(2).map(|pair| (pair[0].len(), common(&pair[0], &pair[1])));
        match overlaps.find(|&(_, common)| common > 0) {
            None => Ok(()),
            Some((len, common)) => {
                let advice =
                    "; what arrives in the other would be sent from it: give displacements that keep all apart";
                self.check_count(what, (len - common) / unit, len / unit, advice)
            }
        }
    }

    /// A result, or the refusal of the call by its error.
    pub(crate) fn or_refuse<T>(&self, result: Result<T>) -> Result<T> {
        result.or_else(|error| self.refuse(error))
    }
}

/// How much two blocks have in common.
fn common(one: &Range<usize>, other: &Range<usize>) -> usize {
    one.end.min(other.end).saturating_sub(one.start.max(other.start))
}

/// Tells the counts, compares what is heard with what is expected, and returns the largest of all.
fn tell(engine: &mut Engine, tag: u32, counted: &Counted<'_>) -> Result<usize> {
    let mut longest = counted.tells.iter().copied().max().unwrap_or(0);
    let mut differs = None;
    engine.exchange_counts(tag, counted.tells, |rank, at, count| {
        longest = longest.max(count);
        if let Some(expected) = (counted.expects)(rank, at).filter(|&expected| expected as u64 != count) {
            differs.get_or_insert((rank, count, expected));
        }
    })?;
    match differs {
        Some((rank, theirs, own)) => Err(engine.board.differs(rank, theirs, own)),
        None => Ok(longest as usize),
    }
}
