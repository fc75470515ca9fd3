//! Regime 2: release and gather steps over trees, a message cut into slices that fill a cell each.
//!
//! The k-ary fold reads each contribution once and stores the result once, straight to the parent's cell or, at
//! the root, to the user's buffer: (3p-1)n bytes loaded and stored for a reduction of n bytes on p ranks, whatever the
//! tree, 2pn for a flat broadcast, (5p-1)n for both.

use super::combining::Combining;
use super::cut::{Cut, uncut};
use super::lend::Lending;
use super::passing::Passing;
use super::reach_trial::Transfer;
use super::{Engine, Reduction};
use crate::error::Result;
use crate::pace::ticks;
use crate::plan::Step;
use crate::protocol::joint::{Outcome, Places};
use crate::protocol::step::{self, Span};
use crate::protocol::{Board, Location, Place, RingName};
use crate::select::{Choice, Collective};

impl Engine {
    /// A broadcast of `element`-byte elements down the tree of the root.
    pub fn cells_broadcast(
        &mut self,
        choice: &Choice,
        root: usize,
        message: (*mut u8, usize, usize),
        tag: u32,
    ) -> Result<()> {
        let (_, bytes, element) = message;
        let cell = choice.down_cell;
        let slices = Cut::rooted(self.board.size(), bytes, cell, uncut(element, cell));
        let first = self.down.next_position();
        let done = self.broadcast_down(choice, root, (message.0, slices), tag);
        self.settle_if_tried((RingName::Down, Some(slices)), first, done)
    }

    fn broadcast_down(
        &mut self,
        choice: &Choice,
        root: usize,
        (buffer, slices): (*mut u8, Cut),
        tag: u32,
    ) -> Result<()> {
        let bytes = slices.bytes();
        let is_root = self.board.rank() == root;
        let passes_on = is_root || !self.is_flat(choice, Step::Release, bytes, root);
        self.cut_down_cells(choice.down_cell, choice.down_slots, passes_on)?;
        let thresholds = match is_root {
            true => {
                let buffers = ([buffer.cast_const(), std::ptr::null()], bytes);
                self.thresholds_of_call(Collective::Broadcast, buffers, Some((RingName::Down, Some(slices))))
            }
            false => self.thresholds,
        };
        let mut place = match passes_on {
            true => thresholds.place(&self.board, Collective::Broadcast, buffer, bytes),
            // A leaf lends nothing here.
            false => Place::Cell,
        };
        let jointly = self.tries_jointly(&self.down, is_root, (slices, place), tag)?;
        if jointly {
            // For the taker's answer; who takes the short way does nothing jointly.
            self.cut_up_cells(choice.up_cell, choice.up_slots, false)?;
        }
        let tries = jointly && place == Place::Cell && self.tries_to_reach(bytes);
        // What lies in the heap has trials of its own.
        let lends = tries && is_root && self.board.in_heap(buffer, bytes).is_none();
        let (transfer, mut timed) = match lends {
            true => self.transfer((bytes, slices.range(1).1), self.down.next_position() + slices.count() - 1),
            false => (Transfer::Cells, None),
        };
        if transfer != Transfer::Cells {
            place = Place::private(buffer);
        }
        let short = bytes <= choice.down_cell && place == Place::Cell && !jointly;
        if short && self.is_flat(choice, Step::Release, bytes, root) {
            return self.cell_broadcast(choice.down_cell, root, buffer, bytes, tag);
        }
        let places = match jointly {
            false => None,
            true => match self.broadcast_jointly(root, (buffer, slices, place), (tag, tries), transfer)? {
                (Outcome::Done, _) => {
                    if let Some(timed) = timed {
                        self.await_reach_figure(timed);
                    }
                    return Ok(());
                }
                (Outcome::NotLent, places) => Some(places),
                (Outcome::Declined, _) => {
                    (place, timed) = (Place::Cell, None);
                    None
                }
            },
        };
        let tries = tries && places.is_some();
        let begun = if tries { ticks() } else { 0 };
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
        let mut released = step::release_all(board, down, links, span, tag, &mut passing);
        places.inspect(|places| places.forgo(board, up));
        if timed.is_some() {
            released = released.and_then(|()| down.settle(board, span.first()));
        }
        lending.end(released)?;
        if let Some(timed) = timed {
            self.await_reach_figure(timed);
        }
        if tries && !is_root {
            // SAFETY: the message lies in this call's buffer, whole.
            unsafe { self.leave_reach_figure((buffer, bytes), (span.last(), begun), false) };
        }
        Ok(())
    }

    /// A reduction up the tree of the root.
    pub fn cells_reduce(&mut self, choice: &Choice, root: usize, reduction: Reduction<'_>, tag: u32) -> Result<()> {
        let slices = Cut::rooted(self.board.size(), reduction.bytes, choice.up_cell, reduction.fold.element);
        let first = self.up.next_position();
        let done = self.reduce_up(choice, root, (reduction, slices), tag);
        self.settle_if_tried((RingName::Up, Some(slices)), first, done)
    }

    fn reduce_up(
        &mut self,
        choice: &Choice,
        root: usize,
        (reduction, slices): (Reduction<'_>, Cut),
        tag: u32,
    ) -> Result<()> {
        let Reduction { send, bytes, .. } = reduction;
        let is_root = self.board.rank() == root;
        self.cut_up_cells(choice.up_cell, choice.up_slots, !is_root)?;
        // The root lends nothing here.
        let mut place = match is_root {
            true => Place::Cell,
            false => {
                let buffers = ([send, std::ptr::null()], bytes);
                let thresholds =
                    self.thresholds_of_call(Collective::Reduce, buffers, Some((RingName::Up, Some(slices))));
                thresholds.place(&self.board, Collective::Reduce, send, bytes)
            }
        };
        let jointly = self.tries_jointly(&self.up, !is_root, (slices, place), tag)?;
        if jointly {
            self.cut_down_cells(choice.down_cell, choice.down_slots, false)?;
        }
        let short = bytes <= choice.up_cell && place == Place::Cell && !jointly;
        if short && self.is_flat(choice, Step::Gather, bytes, root) {
            return self.cell_reduce(choice.up_cell, root, reduction, tag);
        }
        let places = match jointly {
            false => None,
            true => match self.reduce_jointly(root, (reduction, slices, place), tag)? {
                (Outcome::Done, _) => return Ok(()),
                (Outcome::NotLent, places) => Some(places),
                (Outcome::Declined, _) => {
                    place = Place::Cell;
                    None
                }
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
            (operands, sources, up_pace, self.thresholds.way_of_results(2 * board.size() * bytes)),
        );
        let gathered = step::gather_all(board, up, links, span, tag, &mut combining);
        places.inspect(|places| places.forgo(board, down));
        lending.end(gathered)
    }

    /// A reduction to rank 0 and a broadcast from there, in one pipeline.
    pub fn cells_allreduce(&mut self, choice: &Choice, reduction: Reduction<'_>, tag: u32) -> Result<()> {
        self.cut_cells(choice)?;
        // Both ways in the same slices, so that a slice can turn around at the root.
        let slices = Cut::new(reduction.bytes, choice.up_cell.min(choice.down_cell), reduction.fold.element);
        let Reduction { send, recv, bytes, .. } = reduction;
        let thresholds = self.thresholds_of_call(Collective::Allreduce, ([send, recv.cast_const()], bytes), None);
        let Self { board, up, down, operands, sources, up_pace, down_pace, trees, .. } = self;
        let gather = trees.find(board, choice, Step::Gather, reduction.bytes, 0);
        let release = trees.find(board, choice, Step::Release, reduction.bytes, 0);
        let (gather, release) = (trees.at(gather), trees.at(release));
        let place = |buffer| thresholds.place(board, Collective::Allreduce, buffer, reduction.bytes);
        let (sent, received) = (place(reduction.send), Location::slice_at(place(reduction.recv), reduction.bytes));
        let ring = (up.next_position(), up.slots() as u64);
        let way = thresholds.way_of_results(2 * board.size() * reduction.bytes);
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
