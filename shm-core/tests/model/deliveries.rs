//! Calls in which some ranks publish slices and some read them, each by its part.

use shm_core::Result;
use shm_core::protocol::delivery::{Delivery, Sources, deliver};
use shm_core::protocol::{Board, Location, Place, Readers, RingName};

use super::calls::TAG;
use super::rank::Rank;
use super::world::{ModelBoard, SEND, expect_value, word_of};

/// Who publishes for whom.
#[derive(Clone, Copy, Debug)]
pub enum Parts {
    /// Everybody for everybody.
    All,
    /// The root for all others.
    From(usize),
    /// All others for the root.
    To(usize),
    /// Each rank for all higher ones.
    Upwards,
}

impl Parts {
    fn of(self, rank: usize, size: usize) -> (Option<Readers>, Sources) {
        match self {
            Parts::All => (Some(Readers::All), Sources::Others),
            Parts::From(root) if rank == root => (Some(Readers::All), Sources::Nobody),
            Parts::From(root) => (None, Sources::One(root)),
            Parts::To(root) if rank == root => (None, Sources::Others),
            Parts::To(root) => (Some(Readers::One(root)), Sources::Nobody),
            Parts::Upwards => {
                let above: Vec<usize> = (rank + 1..size).collect();
                ((!above.is_empty()).then(|| Readers::These(above.into())), Sources::Below)
            }
        }
    }
}

impl Rank {
    /// Words are published and read, one a slice.
    pub fn deliver(&mut self, name: RingName, parts: Parts, slices: u64) {
        self.deliver_some(name, parts, slices, &[], &[]);
    }

    /// The same, where these ranks take the first slice only, and these lend what they publish.
    pub fn deliver_some(&mut self, name: RingName, parts: Parts, slices: u64, short: &[usize], lends: &[usize]) {
        let (board, ring) = self.ring(name);
        let (me, first) = (board.rank(), ring.next_position());
        let lent = lends.contains(&me);
        if !lends.is_empty() {
            board.rewrite((0..slices).map(|slice| word_of(me, first + slice)));
        }
        let location = Location::whole_at(if lent { SEND } else { Place::Cell }, slices as usize);
        let told = vec![Location::CELL; board.size()];
        let short = short.contains(&me);
        let mut work = Words { board, name, first, slices, location, told, noted: Vec::new(), short };
        let (readers, sources) = parts.of(me, board.size());
        deliver(board, ring, (readers.as_ref(), sources), slices, TAG, &mut work).unwrap();
        if !lends.is_empty() {
            board.rewrite(std::iter::empty());
        }
    }
}

/// The words of one call.
struct Words<'a> {
    board: &'a ModelBoard,
    name: RingName,
    first: u64,
    slices: u64,
    location: Location,
    /// What each rank said of its payload.
    told: Vec<Location>,
    /// Whose slots hold a word of the slice.
    noted: Vec<usize>,
    /// Whether only the first slice is wanted.
    short: bool,
}

impl Delivery for Words<'_> {
    fn location(&self) -> Location {
        self.location
    }

    fn has(&self, rank: usize) -> bool {
        self.told[rank].whole
    }

    fn takes(&self, _: u64, _: usize) -> bool {
        !self.short
    }

    fn write(&mut self, slice: u64, slot: usize) {
        self.board.fill(self.name, slot, word_of(self.board.rank(), self.first + slice));
    }

    fn read(&mut self, _: u64, rank: usize, _: usize, location: Location) -> Result<()> {
        assert!(location.agrees(self.slices as usize));
        self.told[rank] = location;
        if !location.is_lent() {
            self.noted.push(rank);
        }
        Ok(())
    }

    /// Read when all have come, as a fold reads them.
    fn complete(&mut self, slice: u64, slot: usize) -> Result<()> {
        for rank in self.noted.drain(..) {
            expect_value(self.board.read(self.name, rank, slot), word_of(rank, self.first + slice));
        }
        if self.short && slice > 0 {
            return Ok(());
        }
        for (rank, told) in self.told.iter().enumerate().filter(|(_, told)| told.is_lent()) {
            let found = self.board.read_at(self.name, rank, slot, told.place, slice as usize);
            expect_value(found, word_of(rank, self.first + slice));
        }
        Ok(())
    }
}
