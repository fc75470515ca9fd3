//! Regime 2: release and gather steps over trees, a message cut into slices that fill a cell each.
//!
//! The k-ary fold reads each contribution once and stores the result once, straight to the parent's cell or, at
//! the root, to the user's buffer: (3p-1)n bytes loaded and stored for a reduction of n bytes on p ranks, whatever the
//! tree, 2pn for a flat broadcast, (5p-1)n for both.

use super::lend::{Input, Lending, Operands, Source};
use super::{Engine, Reduction};
use crate::board::SharedBoard;
use crate::counters::add;
use crate::error::{Error, Result};
use crate::links::Links;
use crate::pace::{Pace, Way, reading};
use crate::payload::copy_in;
use crate::plan::Step;
use crate::protocol::joint::Places;
use crate::protocol::step::{self, Gathers, Passage, Releases, Span};
use crate::protocol::{Board, Location, Place, RingName};
use crate::select::{Choice, Collective};

/// How a message is cut: whole elements, as many as fit a cell. An empty message is one empty slice.
#[derive(Clone, Copy)]
pub(super) struct Slices {
    bytes: usize,
    slice: usize,
}

impl Slices {
    pub fn new(bytes: usize, cell: usize, element: usize) -> Self {
        let element = element.max(1);
        Self { bytes, slice: (cell / element).max(1) * element }
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn count(&self) -> u64 {
        self.bytes.div_ceil(self.slice).max(1) as u64
    }

    /// Offset and length.
    pub fn range(&self, slice: u64) -> (usize, usize) {
        let at = slice as usize * self.slice;
        (at, self.slice.min(self.bytes - at))
    }
}

impl Engine {
    /// A broadcast down the tree of the root.
    pub fn cells_broadcast(
        &mut self,
        choice: &Choice,
        root: usize,
        buffer: *mut u8,
        bytes: usize,
        tag: u32,
    ) -> Result<()> {
        let slices = Slices::new(bytes, choice.down_cell, 1);
        let (is_root, jointly) = (self.board.rank() == root, self.tries_jointly(slices));
        let passes_on = is_root || !self.is_flat(choice, Step::Release, bytes, root);
        self.cut_cells(choice, if passes_on { &[RingName::Down] } else { &[] })?;
        let place = match passes_on {
            true => self.thresholds.place(&self.board, Collective::Broadcast, buffer, bytes),
            // A leaf lends nothing.
            false => Place::Cell,
        };
        if bytes <= choice.down_cell && place == Place::Cell && self.is_flat(choice, Step::Release, bytes, root) {
            return self.cell_broadcast(choice, root, buffer, bytes, tag);
        }
        let places = match jointly {
            false => None,
            true => match self.broadcast_jointly(root, (buffer, slices, place), tag)? {
                None => return Ok(()),
                places => places,
            },
        };
        let Self { board, up, down, down_pace, trees, .. } = self;
        let links = trees.find(board, choice, Step::Release, bytes, root);
        let links = trees.at(links);
        let span = places.map_or_else(|| Span::take(down, slices.count()), Places::payload);
        // What the root has is there at once; who passes it on has it slice by slice.
        let location = match is_root {
            true => Location::whole_at(place, bytes),
            false => Location::slice_at(place, bytes),
        };
        let lending = Lending::begin(board, (up, 0), (down, 0));
        let way = self.thresholds.way_of_results(board.size() * bytes);
        let ring = (span.first(), down_pace, way);
        let mut passing = Passing::new(board, choice.down_cell, ring, buffer, slices, links, location);
        let released = step::release_all(board, down, links, span, tag, &mut passing);
        places.inspect(|places| places.forgo(board, up));
        lending.end(released)
    }

    /// A reduction up the tree of the root.
    pub fn cells_reduce(&mut self, choice: &Choice, root: usize, reduction: Reduction<'_>, tag: u32) -> Result<()> {
        let Reduction { send, bytes, fold, .. } = reduction;
        let slices = Slices::new(bytes, choice.up_cell, fold.element);
        let (is_root, jointly) = (self.board.rank() == root, self.tries_jointly(slices));
        self.cut_cells(choice, if is_root { &[] } else { &[RingName::Up] })?;
        // The root lends nothing.
        let place = match is_root {
            true => Place::Cell,
            false => self.thresholds.place(&self.board, Collective::Reduce, send, bytes),
        };
        if bytes <= choice.up_cell && place == Place::Cell && self.is_flat(choice, Step::Gather, bytes, root) {
            return self.cell_reduce(choice, root, reduction, tag);
        }
        let places = match jointly {
            false => None,
            true => match self.reduce_jointly(root, (reduction, slices, place), tag)? {
                None => return Ok(()),
                places => places,
            },
        };
        let Self { board, up, down, operands, sources, up_pace, trees, .. } = self;
        let links = trees.find(board, choice, Step::Gather, bytes, root);
        let links = trees.at(links);
        let span = places.map_or_else(|| Span::take(up, slices.count()), Places::payload);
        let lending = Lending::begin(board, (up, 0), (down, 0));
        let ring = (span.first(), up.slots() as u64);
        let mut combining = Combining::new(
            board,
            choice.up_cell,
            ring,
            reduction,
            slices,
            (links, place),
            (operands, sources, up_pace, self.thresholds.way_of_results(board.size() * bytes)),
        );
        let gathered = step::gather_all(board, up, links, span, tag, &mut combining);
        places.inspect(|places| places.forgo(board, down));
        lending.end(gathered)
    }

    /// A reduction to rank 0 and a broadcast from there, in one pipeline.
    pub fn cells_allreduce(&mut self, choice: &Choice, reduction: Reduction<'_>, tag: u32) -> Result<()> {
        self.cut_cells(choice, &[RingName::Up, RingName::Down])?;
        // Both ways in the same slices, so that a slice can turn around at the root.
        let slices = Slices::new(reduction.bytes, choice.up_cell.min(choice.down_cell), reduction.fold.element);
        let Self { board, up, down, operands, sources, up_pace, down_pace, thresholds, trees, .. } = self;
        let gather = trees.find(board, choice, Step::Gather, reduction.bytes, 0);
        let release = trees.find(board, choice, Step::Release, reduction.bytes, 0);
        let (gather, release) = (trees.at(gather), trees.at(release));
        let place = |buffer| thresholds.place(board, Collective::Allreduce, buffer, reduction.bytes);
        let (sent, received) = (place(reduction.send), Location::slice_at(place(reduction.recv), reduction.bytes));
        let ring = (up.next_position(), up.slots() as u64);
        let way = thresholds.way_of_results(board.size() * reduction.bytes);
        let mut combining = Combining::new(
            board,
            choice.up_cell,
            ring,
            reduction,
            slices,
            (gather, sent),
            (operands, sources, up_pace, way),
        );
        let down_ring = (down.next_position(), down_pace, way);
        let mut passing = Passing::new(board, choice.down_cell, down_ring, reduction.recv, slices, release, received);
        let lending = Lending::begin(board, (up, slices.count()), (down, slices.count()));
        lending.end(step::gather_release(
            board,
            (up, gather),
            (down, release),
            slices.count(),
            tag,
            (&mut combining, &mut passing),
        ))
    }
}

/// Children of a rank in rank order, and where it stands among them.
struct RankOrder {
    children: Vec<usize>,
    own: usize,
}

impl RankOrder {
    fn new(rank: usize, links: &Links) -> Self {
        let mut children = links.children().to_vec();
        children.sort_unstable();
        let own = children.iter().filter(|&&child| child < rank).count();
        Self { children, own }
    }
}

/// The payload of a reduction: slices of the own contribution are combined with the children's, in rank order.
struct Combining<'a> {
    board: &'a SharedBoard,
    order: RankOrder,
    parent: Option<usize>,
    cell: usize,
    /// The first position, and the slots of the ring.
    ring: (u64, u64),
    pace: &'a mut Pace,
    /// How the root stores the result.
    way: Way,
    reduction: Reduction<'a>,
    slices: Slices,
    operands: &'a mut Operands,
    /// Where each child's contribution lies, in the order of the children.
    sources: &'a mut Vec<Source>,
    location: Location,
    /// What was wrong with a place that a child told.
    trouble: Option<Error>,
}

impl<'a> Combining<'a> {
    fn new(
        board: &'a SharedBoard,
        cell: usize,
        ring: (u64, u64),
        reduction: Reduction<'a>,
        slices: Slices,
        (links, place): (&Links, Place),
        (operands, sources, pace, way): (&'a mut Operands, &'a mut Vec<Source>, &'a mut Pace, Way),
    ) -> Self {
        // In place it lies in the caches already.
        let way = if reduction.send == reduction.recv { Way::Cached } else { way };
        let order = RankOrder::new(board.rank(), links);
        sources.clear();
        sources.resize(order.children.len(), Source::Cell);
        // A leaf lends its buffer; who combines has nothing to lend but the cell with what it combined.
        let location = match place {
            _ if links.is_root() || !order.children.is_empty() => Location::CELL,
            place => Location::whole_at(place, reduction.bytes),
        };
        let parent = links.parent();
        Self {
            board,
            order,
            parent,
            cell,
            ring,
            pace,
            way,
            reduction,
            slices,
            operands,
            sources,
            location,
            trouble: None,
        }
    }

    fn index(&self, child: usize) -> usize {
        self.order.children.binary_search(&child).expect("a child is among the children")
    }
}

impl Gathers for Combining<'_> {
    fn location(&self) -> Location {
        self.location
    }

    fn has(&self, child: usize) -> bool {
        self.sources[self.index(child)].is_lent()
    }

    fn note(&mut self, child: usize, location: Location) {
        match Source::find(self.board, child, location, self.reduction.bytes, self.reduction.fold.align) {
            Ok(source) => {
                let child = self.index(child);
                self.sources[child] = source;
            }
            Err(error) => self.trouble = Some(error),
        }
    }

    fn fold(&mut self, slice: u64, own: Option<usize>) -> Result<()> {
        if let Some(error) = self.trouble.take() {
            return Err(error);
        }
        let (at, len) = self.slices.range(slice);
        let slot = ((self.ring.0 + slice) % self.ring.1) as usize;
        let Operands { inputs, results, .. } = &mut *self.operands;
        inputs.clear();
        inputs.extend(
            self.order.children.iter().zip(self.sources.iter()).map(|(&child, source)| {
                source.input(child, self.board.up_cell(child, slot, self.cell).cast_const(), at)
            }),
        );
        inputs.insert(self.order.own, Input::Here(self.reduction.send.wrapping_add(at)));
        results.clear();
        results.push(match own {
            Some(own) => self.board.up_cell(self.board.rank(), own, self.cell),
            None => self.reduction.recv.wrapping_add(at),
        });
        let (board, fold, position) = (self.board, self.reduction.fold, self.ring.0 + slice);
        let in_cells = !self.sources.is_empty() && !self.sources.iter().any(|source| source.is_lent());
        let (operands, pace, parent, way) = (&mut *self.operands, &mut *self.pace, self.parent, self.way);
        let mut folded = Ok(());
        if let (Some(own), Some(parent), true) = (own, parent, self.order.children.is_empty()) {
            let (send, cell) = (self.reduction.send.wrapping_add(at), board.up_cell(board.rank(), own, self.cell));
            pace.writing(board, position, parent, len, |way| {
                // SAFETY: the own slot is claimed, and has room for a slice; `at + len` bytes of the caller's buffer are there.
                unsafe { copy_in(send, cell, len, way) };
            });
            add(&board.tally.loaded, len);
            add(&board.tally.stored, len);
            return folded;
        }
        // SAFETY: the protocol calls this while the children's slots are published (so `len` bytes of their payload are written and
        // will not change) and the own slot is claimed; `at + len` bytes of the caller's buffers are there; slices are whole
        // elements and cells are aligned to lines. The result is no operand, unless the caller works in place; a cell never is.
        let mut fold = |way| folded = unsafe { operands.fold(board, &fold, len, way) };
        let combine = || match (own, parent) {
            (Some(_), Some(parent)) => pace.writing(board, position, parent, len, fold),
            _ => fold(way),
        };
        match in_cells {
            true => reading(board, RingName::Up, position, len, combine),
            false => combine(),
        }
        folded
    }
}

/// The payload of a broadcast, or of the way back of an allreduce: each slice is taken from the parent, and put in the own cell
/// for the children, unless they find it in the buffer.
struct Passing<'a> {
    board: &'a SharedBoard,
    cell: usize,
    /// The first position.
    first: u64,
    pace: &'a mut Pace,
    /// How the message is stored in the buffer by who does not pass it on.
    way: Way,
    parent: Option<usize>,
    /// A rank that reads the own cells, if one does.
    reader: Option<usize>,
    buffer: *mut u8,
    slices: Slices,
    /// Nobody is below this rank, so that it may take all there is at once.
    leaf: bool,
    location: Location,
    /// Where the parent has the message, and whether all of it.
    source: Source,
    whole: bool,
    /// Bytes that were taken.
    taken: usize,
    trouble: Option<Error>,
}

impl<'a> Passing<'a> {
    fn new(
        board: &'a SharedBoard,
        cell: usize,
        (first, pace, way): (u64, &'a mut Pace, Way),
        buffer: *mut u8,
        slices: Slices,
        links: &Links,
        location: Location,
    ) -> Self {
        let reader = links.children().last().copied();
        let leaf = reader.is_none();
        let location = if leaf { Location::CELL } else { location };
        Self {
            board,
            cell,
            first,
            pace,
            way: if leaf { way } else { Way::Cached },
            parent: links.parent(),
            reader,
            buffer,
            slices,
            leaf,
            location,
            source: Source::Cell,
            whole: false,
            taken: 0,
            trouble: None,
        }
    }
}

impl Releases for Passing<'_> {
    fn location(&self) -> Location {
        self.location
    }

    fn has(&self) -> bool {
        self.whole
    }

    fn note(&mut self, location: Location) {
        self.whole = location.whole;
        let parent = self.parent.expect("who is told of a place has a parent");
        match Source::find(self.board, parent, location, self.slices.bytes, 1) {
            Ok(source) => self.source = source,
            Err(error) => self.trouble = Some(error),
        }
    }

    fn pass(&mut self, slice: u64, passage: Passage) -> Result<()> {
        if let Some(error) = self.trouble.take() {
            return Err(error);
        }
        let (at, mut len) = self.slices.range(slice);
        let board = self.board;
        if let (Some(from), true) = (passage.from, at >= self.taken) {
            if self.whole && self.leaf {
                len = self.slices.bytes - at;
            }
            let input = self.source.input(from, board.down_cell(from, passage.slot, self.cell), at);
            let (buffer, mut copied) = (self.buffer.wrapping_add(at), Ok(()));
            // SAFETY: the parent's slot is published, and its payload does not change before this rank says so; `buffer` has room
            // for `len` bytes, and is no cell and no other rank's buffer.
            let mut copy = || copied = unsafe { input.copy_by(self.way, board, buffer, len) };
            match self.source.is_lent() {
                true => copy(),
                false => reading(board, RingName::Down, self.first + slice, len, copy),
            }
            copied?;
            self.taken = at + len;
        }
        if let (true, Some(reader)) = (passage.forward, self.reader) {
            let (from, cell) = (self.buffer.wrapping_add(at), board.down_cell(board.rank(), passage.slot, self.cell));
            self.pace.writing(board, self.first + slice, reader, len, |way| {
                // SAFETY: the own slot is claimed, so that nobody reads it; `buffer` holds `len` bytes.
                unsafe { copy_in(from, cell, len, way) };
            });
            add(&board.tally.loaded, len);
            add(&board.tally.stored, len);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_cover_a_message_in_whole_elements() {
        let slices = Slices::new(1000, 64, 24);
        assert_eq!(slices.count(), 21);
        assert_eq!(slices.range(0), (0, 48));
        assert_eq!(slices.range(20), (960, 40));
        assert_eq!(Slices::new(0, 64, 8).count(), 1);
        assert_eq!(Slices::new(0, 64, 8).range(0), (0, 0));
    }
}
