//! Gathers, scatters and their all-to-all forms: blocks that are copied, by lines or through up cells.
//!
//! What a rank sends it copies once to its slots, and each reader copies its part out, straight to its place: 4n bytes
//! loaded and stored for a block of n bytes that one rank reads, 2n and 2n a reader for one that several read. Where
//! the sender's buffer lies where others can reach it, and they know the place of their block in it, it is copied from
//! there: 2n a reader.
//!
//! Where ranks share cores the long blocks of a root are moved once in private memory as well
//! ([`route`](super::route)).

use super::Engine;
use super::blocks::{BlockCut, Medium, Outgoing, Sending};
use super::exchange::crossing_positions;
use super::lend::{Lending, Source};
use super::operands::Input;
use super::route::{Carriage, EXCHANGED_L2, Landing, OwnBlock, Route};
use crate::board::SharedBoard;
use crate::counters::add;
use crate::error::Result;
use crate::pace::{Way, reading};
use crate::payload::{Manner, copy_in, copy_out};
use crate::protocol::delivery::{Delivery, Origin, Sources, deliver};
use crate::protocol::{Board, Location, Place, Readers, following, mutual, offer, opening};
use crate::select::BlockChoice;

impl Engine {
    /// Moves blocks. The call is begun here.
    pub fn deliver_blocks(&mut self, choice: &BlockChoice, route: Route<'_>, tag: u32) -> Result<()> {
        if choice.lines {
            self.board.may_begin()?;
            return self.deliver_by(choice, route, tag, (Some(tag), false));
        }
        self.board.begin_at_home(tag)?;
        self.deliver_by(choice, route, tag, (None, false))
    }

    /// The same in a call that has begun, in which ranks have told each other how long their blocks are.
    pub fn deliver_noted(&mut self, choice: &BlockChoice, route: Route<'_>, tag: u32) -> Result<()> {
        self.deliver_by(choice, route, tag, (None, true))
    }

    /// The same; `note` is the tag of a call that has yet to be noted, which is done once this rank has published, and
    /// `told` says whether ranks have told each other lengths: then nobody lends rows.
    fn deliver_by(
        &mut self,
        choice: &BlockChoice,
        route: Route<'_>,
        tag: u32,
        (note, told): (Option<u32>, bool),
    ) -> Result<()> {
        let cut = BlockCut::new(choice, route.longest);
        let medium = Medium::new(choice, route.longest);
        if !choice.lines {
            self.cut_up_cells(choice.cell, choice.slots, true)?;
        }
        let Self { board, lines, up, down, sources, up_pace, thresholds, .. } = self;
        let board = &*board;
        let size = board.size();
        if size == 1 {
            note.inspect(|&tag| board.note(tag));
            copy_own(board, route.own);
            return Ok(());
        }
        let ring = if choice.lines { lines } else { &mut *up };
        let in_place = matches!(route.send, Sending::Rows(from, _) if std::ptr::eq(from, route.recv));
        let all_for_all = route.waits_for_all();
        let carriage = if thresholds.opens_blocks && !choice.lines {
            // Without reaching all would offer only where all lie in the heap, and those are lent in any case.
            let reads_well = board.seat().mapping().header().l2 >= EXCHANGED_L2 && board.seat().reach().is_wanted();
            route.carriage(size, (&cut, choice.slots), reads_well && !told)
        } else {
            Carriage::Delivery
        };
        let is_delivery = matches!(carriage, Carriage::Delivery);
        // Who reads or writes takes part in finding out whether that is possible.
        let reaches = !is_delivery && board.can_reach();
        let location = match carriage {
            _ if choice.lines => Location::CELL,
            Carriage::Offer(_) => route.lent(board, thresholds, reaches),
            Carriage::Opening(opening::Part::Root) => route.opened(board, thresholds, reaches),
            _ => route.lent(board, thresholds, false),
        };
        let offered = match carriage {
            Carriage::Exchange => route.lent(board, thresholds, reaches),
            _ => location,
        };
        sources.clear();
        sources.resize(if choice.lines { 0 } else { size }, Source::Cell);
        let reader = match &route.readers {
            Some(Readers::One(reader)) => *reader,
            _ => (board.rank() + 1) % size,
        };
        let slices = cut.count();
        let positions = if is_delivery { slices } else { following::positions(slices) };
        let first = ring.next_position() + positions - slices;
        let blocks = if route.rows || matches!(route.sources, Sources::Others) { size * size } else { size };
        let way = if in_place { Way::Cached } else { thresholds.way_of_results(2 * blocks * route.longest) };
        let crosses = size == 2 && !choice.lines && all_for_all && route.even && route.longest > 0;
        let mut work = Copying {
            out: Outgoing { board, medium, cut, send: route.send, pace: up_pace, reader, first, crosses },
            positions: if crosses { crossing_positions(slices, ring.slots()) } else { 0 },
            location,
            offered,
            rows: route.rows,
            in_place,
            way,
            recv: route.recv,
            landing: route.blocks,
            own: route.own,
            note,
            sources,
            size,
        };
        let parts = (route.readers.as_ref(), route.sources);
        if choice.lines {
            return deliver(board, ring, parts, 1, tag, &mut work);
        }
        let lending = Lending::begin(board, (ring, positions), (down, 0));
        lending.end(match carriage {
            Carriage::Delivery => deliver(board, ring, parts, slices, tag, &mut work),
            Carriage::Offer(part) => offer::hand_out(board, ring, part, slices, tag, &mut work),
            Carriage::Opening(part) => opening::bring(board, ring, part, slices, tag, &mut work),
            Carriage::Exchange => mutual::hand_out_all(board, ring, slices, tag, &mut work),
        })
    }
}

pub(super) fn copy_own(board: &SharedBoard, own: OwnBlock) {
    if let Some((from, to, bytes)) = own {
        // SAFETY: the caller has so many bytes at both places, in buffers that do not overlap.
        unsafe { copy_out(from, to, bytes, Manner::Own) };
        add(&board.tally.loaded, bytes);
        add(&board.tally.stored, bytes);
    }
}

/// The payload of one call.
struct Copying<'a> {
    out: Outgoing<'a>,
    /// The least number of positions.
    positions: u64,
    location: Location,
    /// The same for those who may decline it.
    offered: Location,
    rows: bool,
    /// Whether what comes takes the place of what is sent.
    in_place: bool,
    /// How blocks are stored in their places.
    way: Way,
    recv: *mut u8,
    landing: Landing<'a>,
    own: OwnBlock,
    /// The tag by which the call is to be noted, if it is not yet.
    note: Option<u32>,
    /// Where each source's payload lies; none by lines, which lend nothing.
    sources: &'a mut [Source],
    size: usize,
}

impl Copying<'_> {
    /// What `rank` has lent there, and where in it the block for this rank begins.
    fn find(&self, rank: usize, location: Location) -> Result<(Source, usize)> {
        let (board, (_, bytes)) = (self.out.board, self.landing.of(rank));
        // In its row of equal blocks this rank's lies behind those of the lower ranks.
        let (at, all) = if self.rows { (board.rank() * bytes, self.size * bytes) } else { (0, bytes) };
        Ok((Source::find(board, rank, location, all, 1)?, at))
    }

    /// Copies the block for this rank out of what `rank` has lent to `to`, its place in the caller's buffer.
    fn copy_whole(&self, rank: usize, (source, at): (Source, usize), to: *mut u8, bytes: usize) -> Result<()> {
        let input = source.input(rank, std::ptr::null(), at);
        // SAFETY: the rank has lent so many bytes, which do not change before this one says so; the block's place is
        // no other rank's.
        unsafe { input.copy(Manner::of(self.way, bytes), self.out.board, to, bytes) }
    }
}

impl Delivery for Copying<'_> {
    fn location(&self) -> Location {
        self.location
    }

    fn offered(&self) -> Location {
        self.offered
    }

    fn has(&self, rank: usize) -> bool {
        self.sources.get(rank).is_some_and(|source| source.is_lent())
    }

    fn takes(&self, slice: u64, rank: usize) -> bool {
        self.out.cut.range(self.landing.of(rank).1, slice).1 > 0
    }

    fn positions(&self) -> u64 {
        self.positions
    }

    fn crosses(&self) -> bool {
        self.out.crosses
    }

    #[inline]
    fn write(&mut self, slice: u64, slot: usize, crossed: bool) {
        self.out.write(slice, slot, crossed);
    }

    #[inline]
    fn meanwhile(&mut self) {
        self.note.inspect(|&tag| self.out.board.note(tag));
        copy_own(self.out.board, self.own);
    }

    #[inline]
    fn read(&mut self, slice: u64, rank: usize, from: Origin) -> Result<()> {
        let Origin { slot, crossed, location } = from;
        let Outgoing { board, medium, cut, first, crosses, .. } = self.out;
        let (start, bytes) = self.landing.of(rank);
        let me = board.rank();
        if location != Location::CELL {
            let (source, at) = self.find(rank, location)?;
            self.sources[rank] = source;
            let to = self.recv.wrapping_add(start);
            if self.in_place {
                // Its place still holds what is sent: it is taken slice by slice.
                return Ok(());
            }
            return self.copy_whole(rank, (source, at), to, bytes);
        }
        let (at, len) = cut.range(bytes, slice);
        if len == 0 {
            return Ok(());
        }
        let part = if self.rows { Medium::part(rank, me) } else { 0 };
        let to = self.recv.wrapping_add(start + at);
        if crosses {
            let cell = medium.place(board, if crossed { me } else { rank }, slot, part);
            let manner = match self.way {
                Way::Streamed => Manner::Streamed,
                _ => Manner::Keeping,
            };
            // SAFETY: as below, of the own slot where they are crossed.
            return unsafe { Input::Mapped(cell).copy(manner, board, to, len) };
        }
        // SAFETY: the slot is published and holds a slice of the block there, as all ranks agree on its length; its
        // place in the caller's buffer has room for it.
        let load = || unsafe { medium.load(board, (rank, slot, part), to, len, Manner::of(self.way, bytes)) };
        match medium {
            Medium::Cells(..) => reading(board, first + slice, len, load),
            Medium::Lines(_) => load(),
        }
        Ok(())
    }

    fn take(&mut self, rank: usize, location: Location) -> Result<bool> {
        let board = self.out.board;
        // Who exchanges in place offers nothing, and then nobody takes anything.
        debug_assert!(!self.in_place);
        let (source, at) = self.find(rank, location)?;
        let (start, bytes) = self.landing.of(rank);
        let to = self.recv.wrapping_add(start);
        if let Source::Remote(address) = source {
            // SAFETY: as of what is read; where it is not, nobody goes by what lies in the block's place.
            let is_read = unsafe { board.tries_to_read(rank, address + at as u64, to, bytes) };
            if is_read {
                add(&board.tally.loaded, bytes);
                add(&board.tally.stored, bytes);
            }
            return Ok(is_read);
        }
        self.copy_whole(rank, (source, at), to, bytes)?;
        Ok(true)
    }

    fn put(&mut self, root: usize, opened: Location) -> Result<bool> {
        let Outgoing { board, send, .. } = self.out;
        let Sending::Same(from, bytes) = send else { return Ok(false) };
        let at = board.rank() * bytes;
        let is_put = match Source::find(board, root, opened, self.size * bytes, 1)? {
            Source::Mapped(base) => {
                // SAFETY: the root has opened so many bytes; this rank's block of them is its alone to store.
                unsafe { copy_in(from, base.wrapping_add(at), bytes, self.way) };
                true
            }
            // SAFETY: the same; where not all is written the root does not go by what lies there.
            Source::Remote(address) => unsafe { board.tries_to_write(root, from, address + at as u64, bytes) },
            Source::Cell | Source::CellOf(_) => false,
        };
        if is_put {
            add(&board.tally.loaded, bytes);
            add(&board.tally.stored, bytes);
        } else if matches!(self.location.place, Place::Private(_)) {
            // Who does not reach the root may not be reached by it either: it sends cells, as where nothing is lent.
            self.location = Location::CELL;
        }
        Ok(is_put)
    }

    #[inline]
    fn complete(&mut self, slice: u64, _: usize) -> Result<()> {
        if !self.in_place {
            return Ok(());
        }
        let Outgoing { board, cut, .. } = self.out;
        for (rank, source) in self.sources.iter().enumerate().filter(|(_, source)| source.is_lent()) {
            let (start, bytes) = self.landing.of(rank);
            let (at, len) = cut.range(bytes, slice);
            let input = source.input(rank, std::ptr::null(), board.rank() * bytes + at);
            // SAFETY: as above; what this rank sends of these bytes it has published.
            unsafe { input.copy(Manner::of(Way::Cached, bytes), board, self.recv.wrapping_add(start + at), len) }?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
