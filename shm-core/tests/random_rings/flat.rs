//! The flat calls, and an exchange of slices, through the rings of random calls.

use std::cell::Cell;

use shm_core::Result;
use shm_core::protocol::exchange::{LEAST_SLICE_SLOTS, Slices, exchange_slices};
use shm_core::protocol::flat::{Contributions, collect, hand_out};
use shm_core::protocol::{Location, RingName};

use super::{BYTES, Engine, HeapBoard, RECEIVE, SEND, sum_of, word_of};

/// The part that an exchange of slices plays in words.
const PART: u64 = 6;

impl Engine {
    pub fn hand_out(&mut self, name: RingName, tag: u32, root: usize) {
        let (board, ring) = self.ring(name);
        let word = word_of(root, ring.next_position(), 5);
        let read = Cell::new(0);
        let write = |slot| board.fill(name, slot, word);
        hand_out(
            board,
            ring,
            root,
            tag,
            write,
            || board.delay(),
            |slot, _| {
                board.expect(board.read(name, root, slot), word, "what is handed out");
                read.set(read.get() + 1);
                Ok(())
            },
        )
        .unwrap();
        assert_eq!(read.get(), usize::from(board.rank != root));
    }

    pub fn collect(&mut self, name: RingName, tag: u32, root: usize) {
        let (board, ring) = self.ring(name);
        let mut work = Collected { board, name, position: ring.next_position(), noted: Vec::new(), complete: false };
        collect(board, ring, root, tag, &mut work).unwrap();
        assert_eq!(work.complete, board.rank == root);
    }

    /// `spare` positions are passed over; who `lends` does so whole, and may want the result in its buffer too.
    pub fn exchange_slices(&mut self, tag: u32, slices: u64, spare: u64, (lends, wants): (bool, bool)) {
        let Self { board, up, .. } = self;
        assert!(up.slots() >= LEAST_SLICE_SLOTS);
        let first = up.next_position();
        board.rewrite((0..slices).map(|slice| word_of(board.rank, first + slice, PART)));
        let location = match lends {
            true => Location::whole_at(SEND, BYTES).wanting(wants.then_some(1), BYTES),
            false => Location::CELL,
        };
        let told = vec![Location::CELL; board.size];
        let mut work = Exchanged { board, first, slices, spare, location, told, combined: 0 };
        exchange_slices(board, up, slices, tag, &mut work).unwrap();
        assert_eq!(work.combined, slices, "seed {}, rank {}", board.seed, board.rank);
        if work.divides() {
            for slice in 0..slices {
                let found = board.read_at(RingName::Up, board.rank, 0, RECEIVE, slice as usize);
                board.expect(found, sum_of(board.size, first + slice, PART), "result that others stored");
            }
        }
        board.rewrite(std::iter::empty());
    }
}

struct Collected<'a> {
    board: &'a HeapBoard,
    name: RingName,
    position: u64,
    noted: Vec<(usize, usize)>,
    complete: bool,
}

impl Contributions for Collected<'_> {
    fn write(&mut self, slot: usize) {
        self.board.fill(self.name, slot, word_of(self.board.rank, self.position, 5));
    }

    fn meanwhile(&mut self) {
        self.board.delay();
    }

    fn read(&mut self, rank: usize, slot: usize, _: Location) -> Result<()> {
        self.noted.push((rank, slot));
        Ok(())
    }

    fn complete(&mut self) -> Result<()> {
        for &(rank, slot) in &self.noted {
            let found = self.board.read(self.name, rank, slot);
            self.board.expect(found, word_of(rank, self.position, 5), "what is collected");
        }
        assert_eq!(self.noted.len() + 1, self.board.size);
        self.complete = true;
        Ok(())
    }
}

struct Exchanged<'a> {
    board: &'a HeapBoard,
    first: u64,
    slices: u64,
    spare: u64,
    location: Location,
    told: Vec<Location>,
    combined: u64,
}

impl Exchanged<'_> {
    fn read(&self, rank: usize, slot: usize, crossed: bool, slice: u64) -> u64 {
        let location = if rank == self.board.rank { self.location } else { self.told[rank] };
        let holder = if crossed && !location.is_lent() { 1 - rank } else { rank };
        self.board.read_at(RingName::Up, holder, slot, location.place, slice as usize)
    }
}

impl Slices for Exchanged<'_> {
    fn location(&self) -> Location {
        self.location
    }

    fn has(&self, rank: usize) -> bool {
        self.told[rank].whole
    }

    fn note(&mut self, rank: usize, location: Location) {
        self.told[rank] = location;
    }

    fn positions(&self) -> u64 {
        self.slices + 1 + self.spare
    }

    fn crosses(&self) -> bool {
        true
    }

    fn write(&mut self, slice: u64, slot: usize, crossed: bool) {
        let me = self.board.rank;
        self.board.fill_of(
            RingName::Up,
            if crossed { 1 - me } else { me },
            slot,
            word_of(me, self.first + slice, PART),
        );
    }

    fn combine(&mut self, slice: u64, slot: usize, crossed: bool) -> Result<()> {
        for rank in 0..self.board.size {
            self.board.expect(self.read(rank, slot, crossed, slice), word_of(rank, self.first + slice, PART), "slice");
        }
        self.combined += 1;
        Ok(())
    }

    fn divides(&self) -> bool {
        let (me, size) = (self.board.rank, self.board.size);
        (0..size).all(|rank| if rank == me { self.location } else { self.told[rank] }.result.is_some())
    }

    fn combine_share(&mut self) -> Result<()> {
        let (me, size) = (self.board.rank, self.board.size);
        for slice in (0..self.slices).filter(|slice| *slice as usize % size == me) {
            let sum = (0..size).map(|rank| self.read(rank, 0, false, slice)).sum();
            (0..size).for_each(|rank| self.board.store(rank, RECEIVE, slice as usize, sum));
        }
        self.combined = self.slices;
        Ok(())
    }
}
