//! Deliveries through the rings of random calls.

use shm_core::Result;
use shm_core::protocol::delivery::{Delivery, Origin, Sources, deliver};
use shm_core::protocol::{Board, Edge, Location, Place, Readers, RingName, Word};
use shm_core::protocol::{mutual, offer, opening};

use super::{BYTES, Engine, HeapBoard, RECEIVE, SEND, word_of};

/// Who publishes for whom in a delivery.
#[derive(Clone, Copy, PartialEq)]
pub enum DeliveryParts {
    All,
    From(usize),
    To(usize),
    Upwards,
}

impl Engine {
    /// Slices from those who publish to those who read; this rank lends what it publishes, or takes no more than the
    /// first slice.
    pub fn deliver(
        &mut self,
        name: RingName,
        tag: u32,
        parts: DeliveryParts,
        slices: u64,
        (lends, short): (bool, bool),
    ) {
        let (board, ring) = self.ring(name);
        let (me, size, first) = (board.rank, board.size, ring.next_position());
        let (readers, sources) = match parts {
            DeliveryParts::All => (Some(Readers::All), Sources::Others),
            DeliveryParts::From(root) if me == root => (Some(Readers::All), Sources::Nobody),
            DeliveryParts::From(root) => (None, Sources::One(root)),
            DeliveryParts::To(root) if me == root => (None, Sources::Others),
            DeliveryParts::To(root) => (Some(Readers::One(root)), Sources::Nobody),
            DeliveryParts::Upwards => {
                let above: Vec<usize> = (me + 1..size).collect();
                ((!above.is_empty()).then(|| Readers::These(above.into())), Sources::Below)
            }
        };
        let lends = lends && name != RingName::Line && readers.is_some();
        // The same on all ranks, as are the slices that they take.
        let crosses = parts == DeliveryParts::All && name != RingName::Line && slices.is_multiple_of(2);
        let short = short && !crosses;
        board.rewrite((0..slices).map(|slice| word_of(me, first + slice, 5)));
        let location = if lends { Location::whole_at(SEND, BYTES) } else { Location::CELL };
        let told = vec![Location::CELL; size];
        let (noted, reaches, taken) = (Vec::new(), true, 0);
        let mut work = Delivered { board, name, first, slices, location, told, noted, short, crosses, reaches, taken };
        deliver(board, ring, (readers.as_ref(), sources), slices, tag, &mut work).unwrap();
        let expected = sources.ranks(me, size).count() as u64 * if short { 1 } else { slices };
        assert_eq!(work.taken, expected, "seed {}, rank {me}: slices that were taken", board.seed);
        board.rewrite(std::iter::empty());
    }
}

impl Engine {
    /// Slices from a root, which offers them where they lie, or does not; this rank takes them there if it `reaches`
    /// them, or takes no more than the first slice.
    pub fn offer(&mut self, name: RingName, tag: u32, root: usize, slices: u64, [lends, reaches, short]: [bool; 3]) {
        let (board, ring) = self.ring(name);
        let (me, size, first) = (board.rank, board.size, ring.next_position() + 1);
        let lends = lends && name != RingName::Line && me == root;
        board.rewrite((0..slices).map(|slice| word_of(me, first + slice, 5)));
        let location = if lends { Location::whole_at(SEND, BYTES) } else { Location::CELL };
        let told = vec![Location::CELL; size];
        let (noted, crosses, taken) = (Vec::new(), false, 0);
        let mut work = Delivered { board, name, first, slices, location, told, noted, short, crosses, reaches, taken };
        let part = if me == root { offer::Part::Root } else { offer::Part::Reader(root) };
        offer::hand_out(board, ring, part, slices, tag, &mut work).unwrap();
        let expected = if me == root {
            0
        } else if short {
            1
        } else {
            slices
        };
        assert_eq!(work.taken, expected, "seed {}, rank {me}: slices that were taken", board.seed);
        board.rewrite(std::iter::empty());
    }
}

impl Engine {
    /// Slices to a root, which opens its buffer (`lends`), or does not; this rank puts its own there if it `reaches`
    /// it, and where it has not it lends them, if it `lends`, or sends them.
    pub fn open(&mut self, tag: u32, root: usize, slices: u64, [lends, reaches, _]: [bool; 3]) {
        let name = RingName::Up;
        let (board, ring) = self.ring(name);
        let (me, size, first) = (board.rank, board.size, ring.next_position() + 1);
        let is_root = me == root;
        board.rewrite((0..slices).map(|slice| word_of(me, first + slice, 5)));
        let place = match lends {
            true if is_root => RECEIVE,
            true => SEND,
            false => Place::Cell,
        };
        let location = Location::whole_at(place, BYTES);
        // Until something is read of them.
        let told = vec![Location::PUT; size];
        let (noted, short, crosses, taken) = (Vec::new(), false, false, 0);
        let mut work = Delivered { board, name, first, slices, location, told, noted, short, crosses, reaches, taken };
        let part = if is_root { opening::Part::Root } else { opening::Part::Sender(root) };
        opening::bring(board, ring, part, slices, tag, &mut work).unwrap();
        let Delivered { told, taken, .. } = work;
        if is_root {
            let others = || (0..size).filter(|&rank| rank != root);
            let put = others().filter(|&rank| told[rank] == Location::PUT);
            for (rank, slice) in put.clone().flat_map(|rank| (0..slices).map(move |slice| (rank, slice))) {
                let found = board.read_at(name, root, 0, RECEIVE, rank * slices as usize + slice as usize);
                board.expect(found, word_of(rank, first + slice, 5), "opening");
            }
            let expected = (others().count() - put.count()) as u64 * slices;
            assert_eq!(taken, expected, "seed {}, rank {me}: slices that were taken", board.seed);
        }
        board.rewrite(std::iter::empty());
    }
}

impl Engine {
    /// Slices from all to all, each of whom offers them where they lie, or does not; this rank takes what it `reaches`,
    /// and of those who offer nothing, or where it does not, slices, or no more than the first one.
    pub fn offer_all(&mut self, tag: u32, slices: u64, [lends, reaches, short]: [bool; 3]) {
        let name = RingName::Up;
        let (board, ring) = self.ring(name);
        let (me, size, first) = (board.rank, board.size, ring.next_position() + 1);
        board.rewrite((0..slices).map(|slice| word_of(me, first + slice, 5)));
        let location = if lends { Location::whole_at(SEND, BYTES) } else { Location::CELL };
        let told = vec![Location::CELL; size];
        let (noted, crosses, taken) = (Vec::new(), false, 0);
        let mut work = Delivered { board, name, first, slices, location, told, noted, short, crosses, reaches, taken };
        mutual::hand_out_all(board, ring, slices, tag, &mut work).unwrap();
        let expected = (size as u64 - 1) * if short { 1 } else { slices };
        assert_eq!(work.taken, expected, "seed {}, rank {me}: slices that were taken", board.seed);
        board.rewrite(std::iter::empty());
    }
}

/// The payload of a delivery: a known word a slice.
pub struct Delivered<'a> {
    pub board: &'a HeapBoard,
    pub name: RingName,
    pub first: u64,
    pub slices: u64,
    pub location: Location,
    /// What each rank said.
    pub told: Vec<Location>,
    /// Whose slots hold a word of the slice.
    pub noted: Vec<(usize, bool)>,
    pub short: bool,
    /// Whether cells change hands.
    pub crosses: bool,
    /// Whether what is offered or opened is reached.
    pub reaches: bool,
    pub taken: u64,
}

impl Delivery for Delivered<'_> {
    fn location(&self) -> Location {
        self.location
    }

    fn has(&self, rank: usize) -> bool {
        self.told[rank].whole
    }

    fn takes(&self, _: u64, _: usize) -> bool {
        !self.short
    }

    fn crosses(&self) -> bool {
        self.crosses
    }

    fn write(&mut self, slice: u64, slot: usize, crossed: bool) {
        let me = self.board.rank;
        self.board.fill_of(self.name, if crossed { 1 - me } else { me }, slot, word_of(me, self.first + slice, 5));
    }

    fn meanwhile(&mut self) {
        self.board.delay();
    }

    fn read(&mut self, _: u64, rank: usize, from: Origin) -> Result<()> {
        self.told[rank] = from.location;
        if !from.location.is_lent() {
            self.noted.push((rank, from.crossed));
        }
        Ok(())
    }

    fn take(&mut self, rank: usize, location: Location) -> Result<bool> {
        self.board.delay();
        let wanted = if self.short { 1 } else { self.slices };
        for slice in (0..wanted).filter(|_| self.reaches) {
            let found = self.board.read_at(self.name, rank, 0, location.place, slice as usize);
            self.board.expect(found, word_of(rank, self.first + slice, 5), "offer");
            self.taken += 1;
        }
        Ok(self.reaches)
    }

    fn put(&mut self, root: usize, opened: Location) -> Result<bool> {
        // E1: by that word a root that leaves takes it that nobody stores to its buffer any more.
        let done = self.board.done(self.name, self.board.rank).observe(Edge::UpReuse);
        assert!(done < self.first + self.slices - 1, "seed {}: done before the part is put", self.board.seed);
        // Who does not reach all of it has put the first.
        for slice in 0..if self.reaches { self.slices } else { 1 } {
            self.board.delay();
            let (me, word) = (self.board.rank, word_of(self.board.rank, self.first + slice, 5));
            self.board.store(root, opened.place, me * self.slices as usize + slice as usize, word);
        }
        Ok(self.reaches)
    }

    fn complete(&mut self, slice: u64, slot: usize) -> Result<()> {
        if self.short && slice > 0 {
            return Ok(());
        }
        let lent = (0..self.board.size).filter(|&rank| self.told[rank].is_lent());
        self.noted.extend(lent.map(|rank| (rank, false)));
        for (rank, crossed) in self.noted.drain(..) {
            let holder = if crossed { self.board.rank } else { rank };
            let found = self.board.read_at(self.name, holder, slot, self.told[rank].place, slice as usize);
            self.board.expect(found, word_of(rank, self.first + slice, 5), "delivery");
            self.taken += 1;
        }
        Ok(())
    }
}
