//! Gather and release steps through the rings of random calls.

use shm_core::protocol::step::{self, Gathers, Passage, Releases, Span};
use shm_core::protocol::{Location, Place, Ring, RingName};
use shm_core::{Links, Result};

use super::{BYTES, Engine, HeapBoard, RECEIVE, SEND, sum_of, word_of};

impl Engine {
    pub fn gather(&mut self, name: RingName, tag: u32, links: &Links, slices: u64, lends: bool) {
        let (board, ring) = self.ring(name);
        let mut rising = Rising::new(board, name, ring, links, lends && name != RingName::Line, 0, slices);
        let span = Span::take(ring, slices);
        step::gather_all(board, ring, links, span, tag, &mut rising).unwrap();
        board.rewrite(std::iter::empty());
    }

    pub fn release(&mut self, name: RingName, tag: u32, links: &Links, root: usize, slices: u64, lends: bool) {
        let (board, ring) = self.ring(name);
        let first = ring.next_position();
        let lends = lends && name != RingName::Line && !links.children().is_empty();
        let words: Vec<u64> = (0..slices).map(|slice| word_of(root, first + slice, 1)).collect();
        board.rewrite(std::iter::empty());
        let mut location = Location::CELL;
        if lends {
            location = Location { whole: links.is_root(), ..Location::slice_at(RECEIVE, BYTES) };
        }
        if links.is_root() {
            for (slice, &word) in words.iter().enumerate() {
                board.store(board.rank, RECEIVE, slice, word);
            }
        }
        let mut falling =
            Falling { board, name, words: &|slice| words[slice as usize], location, parent: Location::CELL };
        let span = Span::take(ring, slices);
        step::release_all(board, ring, links, span, tag, &mut falling).unwrap();
        board.rewrite(std::iter::empty());
    }

    pub fn pipeline(&mut self, tag: u32, gather: &Links, release: &Links, slices: u64, lends: (bool, bool)) {
        let Self { board, up, down, .. } = self;
        let first = up.next_position();
        let mut rising = Rising::new(board, RingName::Up, up, gather, lends.0, 0, slices);
        let words = |slice| sum_of(board.size, first + slice, 0);
        let lends = lends.1 && !release.children().is_empty();
        let location = if lends { Location::slice_at(RECEIVE, BYTES) } else { Location::CELL };
        let mut falling = Falling { board, name: RingName::Down, words: &words, location, parent: Location::CELL };
        step::gather_release(board, (up, gather), (down, release), slices, tag, (&mut rising, &mut falling)).unwrap();
        board.rewrite(std::iter::empty());
    }
}

/// The payload of gather steps: the sum of all ranks' words.
pub struct Rising<'a> {
    pub board: &'a HeapBoard,
    pub name: RingName,
    pub links: &'a Links,
    pub first: u64,
    pub slots: u64,
    pub part: u64,
    pub location: Location,
    /// What each child said.
    pub told: Vec<Location>,
    /// Whose cell is handed on, of the slice that was summed last, if one is.
    pub handed_on: Option<usize>,
    /// Lines say nothing but that they are there.
    pub relays: bool,
}

impl<'a> Rising<'a> {
    pub fn new(
        board: &'a HeapBoard,
        name: RingName,
        ring: &Ring,
        links: &'a Links,
        lends: bool,
        part: u64,
        slices: u64,
    ) -> Self {
        let (first, slots) = (ring.next_position(), ring.slots() as u64);
        let lends = lends && !links.is_root() && links.children().is_empty();
        let location = if lends { Location::whole_at(SEND, BYTES) } else { Location::CELL };
        board.rewrite((0..slices).map(|slice| word_of(board.rank, first + slice, part)));
        Self {
            board,
            name,
            links,
            first,
            slots,
            part,
            location,
            told: vec![Location::CELL; board.size],
            handed_on: None,
            relays: name != RingName::Line && links.has_relay(),
        }
    }
}

impl Gathers for Rising<'_> {
    fn location(&self) -> Location {
        self.location
    }

    fn relays(&self) -> bool {
        self.relays
    }

    fn folded(&self) -> Location {
        self.handed_on.map_or(Location::CELL, Location::cell_of)
    }

    fn has(&self, child: usize) -> bool {
        self.told[child].whole
    }

    fn note(&mut self, child: usize, location: Location) {
        self.told[child] = location;
    }

    fn fold(&mut self, slice: u64, own: Option<usize>) -> Result<()> {
        let Self { board, name, part, .. } = *self;
        let position = self.first + slice;
        let slot = (position % self.slots) as usize;
        let word = |&child: &usize| board.read_at(name, child, slot, self.told[child].place, slice as usize);
        let (mut sum, mut cell) = (word_of(board.rank, position, part), None);
        if self.relays {
            let (behind, others) = self.links.relay();
            let nearest = behind.iter().position(|&rank| !self.told[rank].is_lent());
            let seen = &behind[..nearest.map_or(behind.len(), |at| at + 1)];
            sum += seen.iter().chain(others).map(word).sum::<u64>();
            cell = nearest.map(|at| match self.told[behind[at]].place {
                Place::CellOf(rank) => rank,
                _ => behind[at],
            });
        } else {
            sum += self.links.children().iter().map(word).sum::<u64>();
        }
        self.handed_on = cell.filter(|_| self.links.children().is_empty());
        match own {
            Some(own) => board.fill_of(name, self.handed_on.unwrap_or(board.rank), own, sum),
            None => board.expect(sum, sum_of(board.size, position, part), "gather"),
        }
        Ok(())
    }
}

/// The payload of release steps: a known word a slice.
pub struct Falling<'a> {
    pub board: &'a HeapBoard,
    pub name: RingName,
    pub words: &'a dyn Fn(u64) -> u64,
    pub location: Location,
    /// What the parent said.
    pub parent: Location,
}

impl Releases for Falling<'_> {
    fn location(&self) -> Location {
        self.location
    }

    fn has(&self) -> bool {
        self.parent.whole
    }

    fn note(&mut self, location: Location) {
        self.parent = location;
    }

    fn pass(&mut self, slice: u64, passage: Passage) -> Result<()> {
        let (board, word) = (self.board, (self.words)(slice));
        if let Some(from) = passage.from {
            let found = board.read_at(self.name, from, passage.slot, self.parent.place, slice as usize);
            board.expect(found, word, "release");
        }
        if self.location.is_lent() {
            board.store(board.rank, RECEIVE, slice as usize, word);
        }
        if passage.forward {
            board.fill(self.name, passage.slot, word);
        }
        Ok(())
    }
}
