//! The payload of a rank's calls: closures and traits of the protocols, in which bytes are charged, not moved.
//!
//! Of two ranks each fills the cell that it has read, where cells change hands ([`Slices::crosses`]) or results go back
//! ([`Work::gives_back`]): it loads such a cell to have its lines for itself, and stores to them as to its own.

use shm_core::protocol::exchange::{Pieces, Slices};
use shm_core::protocol::shares::Work;
use shm_core::protocol::step::Passage;
use shm_core::protocol::{Board, Location, Place, RingName};
use shm_core::segment::layout::LINE;
use shm_core::{Division, Links, Result};

use super::engine::Seat;
use super::memory::Level;

/// Lines of a slot's payload beyond the one that the stamp lies in.
pub(super) fn lines_beside(bytes: usize) -> usize {
    (bytes + 8).div_ceil(LINE).max(1) - 1
}

/// A fold of operands that lie in lines which are there already, and of the own one.
pub(super) fn fold_lines(seat: &Seat<'_>, operands: usize, len: usize, level: Level) {
    seat.compute(|costs| costs.operation + costs.operand * operands as u64);
    seat.private((operands - 1) * len, Level::Own);
    seat.private(2 * len, level);
}

/// Takes a slice out of the parent's cell, and fills the own one for the children.
pub(super) fn pass(seat: &Seat<'_>, level: Level, passage: Passage, len: usize) {
    if let Some(from) = passage.from {
        seat.compute(|costs| costs.operation);
        seat.read(RingName::Down, from, passage.slot, len);
        seat.private(len, level);
    }
    if passage.forward {
        seat.compute(|costs| costs.operation);
        seat.private(len, level);
        seat.write(RingName::Down, seat.rank(), passage.slot, len);
    }
}

/// Combines a slice of the own contribution with the children's cells.
pub(super) fn combine(seat: &Seat<'_>, level: Level, links: &Links, slot: usize, own: Option<usize>, len: usize) {
    let children = links.children();
    seat.compute(|costs| costs.operation + costs.operand * (children.len() as u64 + 1));
    children.iter().for_each(|&child| seat.read(RingName::Up, child, slot, len));
    seat.private(len, level);
    match own {
        Some(own) => seat.write(RingName::Up, seat.rank(), own, len),
        None => seat.private(len, level),
    }
}

/// The payload of pieces that are exchanged.
pub(super) struct Group<'a, 'y> {
    pub seat: &'a Seat<'y>,
    pub level: Level,
    pub pieces: &'a [usize],
}

impl Pieces for Group<'_, '_> {
    fn write(&mut self, piece: usize, _: usize) {
        self.seat.private(self.pieces[piece], Level::Own);
        self.seat.fill_beside(lines_beside(self.pieces[piece]));
    }

    fn read(&mut self, piece: usize, rank: usize, _: usize) {
        let lines = lines_beside(self.pieces[piece]);
        if lines > 0 {
            self.seat.read_beside(rank, lines);
        }
    }

    fn complete(&mut self, piece: usize) {
        fold_lines(self.seat, self.seat.size(), self.pieces[piece], self.level);
    }
}

/// The payload of an exchange through cells.
pub(super) struct Exchanging<'a, 'y> {
    pub seat: &'a Seat<'y>,
    pub level: Level,
    pub slices: Vec<usize>,
    /// Those that the call takes of the ring.
    pub positions: u64,
}

impl Exchanging<'_, '_> {
    /// Whose cell a rank of two has filled.
    fn cell_of(&self, rank: usize, crossed: bool) -> usize {
        if crossed { 1 - rank } else { rank }
    }
}

impl Slices for Exchanging<'_, '_> {
    fn positions(&self) -> u64 {
        self.positions
    }

    fn crosses(&self) -> bool {
        true
    }

    fn write(&mut self, slice: u64, slot: usize, crossed: bool) {
        let len = self.slices[slice as usize];
        self.seat.compute(|costs| costs.operation);
        self.seat.private(len, self.level);
        self.seat.write(RingName::Up, self.cell_of(self.seat.rank(), crossed), slot, len);
    }

    fn combine(&mut self, slice: u64, slot: usize, crossed: bool) -> Result<()> {
        let (seat, len) = (self.seat, self.slices[slice as usize]);
        seat.compute(|costs| costs.operation + costs.operand * seat.size() as u64);
        match seat.size() {
            // It is this rank that fills the cell next.
            2 => seat.take(RingName::Up, self.cell_of(1 - seat.rank(), crossed), slot, len),
            size => {
                let others = (0..size).filter(|&from| from != seat.rank());
                others.for_each(|from| seat.read(RingName::Up, from, slot, len));
            }
        }
        // The own contribution was just read.
        seat.private(len, Level::Own);
        seat.private(len, self.level);
        Ok(())
    }
}

/// The payload of a reduction through shares.
pub(super) struct Slicing<'a, 'y> {
    pub seat: &'a Seat<'y>,
    pub level: Level,
    pub leaders: &'a [usize],
    pub division: Division,
    /// Whether this rank takes results.
    pub keeps: bool,
}

impl Work for Slicing<'_, '_> {
    fn gives_back(&self) -> bool {
        true
    }

    fn contribute(&mut self, round: u64, leader: usize, slot: usize) {
        let (_, len) = self.division.range(leader, round);
        self.seat.compute(|costs| costs.operation);
        self.seat.private(len, self.level);
        self.seat.write(RingName::Up, self.seat.rank(), slot, len);
    }

    fn fold(&mut self, round: u64, leader: usize, up: usize, down: Option<usize>) -> Result<()> {
        let (_, len) = self.division.range(leader, round);
        let (seat, size) = (self.seat, self.seat.size());
        seat.compute(|costs| costs.operation + costs.operand * size as u64);
        let others = (0..size).filter(|&from| from != seat.rank());
        others.for_each(|from| seat.read(RingName::Up, from, up, len));
        seat.private(len, self.level);
        if self.keeps {
            seat.private(len, self.level);
        }
        if let Some(down) = down {
            // Who keeps the result copies it from there.
            seat.private(if self.keeps { len } else { 0 }, Level::Own);
            seat.write(RingName::Down, seat.rank(), down, len);
        }
        Ok(())
    }

    fn fold_back(&mut self, round: u64, leader: usize, up: usize) -> Result<()> {
        let (_, len) = self.division.range(leader, round);
        let (seat, other) = (self.seat, 1 - self.seat.rank());
        seat.compute(|costs| costs.operation + costs.operand * 2);
        seat.take(RingName::Up, other, up, len);
        seat.private(len, self.level);
        if self.keeps {
            seat.private(len, self.level);
        }
        seat.write(RingName::Up, other, up, len);
        Ok(())
    }

    fn take(&mut self, round: u64, leader: usize, slot: usize, location: Location) -> Result<()> {
        let (_, len) = self.division.range(leader, round);
        let seat = self.seat;
        seat.compute(|costs| costs.operation);
        match location.place {
            // Which is filled with the next contribution.
            Place::Back => seat.take(RingName::Up, seat.rank(), slot, len),
            _ => seat.read(RingName::Down, self.leaders[leader], slot, len),
        }
        seat.private(len, self.level);
        Ok(())
    }
}
