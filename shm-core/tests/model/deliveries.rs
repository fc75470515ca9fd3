//! Calls in which some ranks publish slices and some read them, each by its part.

use shm_core::Result;
use shm_core::protocol::delivery::{Delivery, Origin, Sources, deliver};
use shm_core::protocol::{Board, Edge, Location, Place, Readers, RingName, Word};
use shm_core::protocol::{mutual, offer, opening};

use super::calls::TAG;
use super::rank::Rank;
use super::world::{ModelBoard, RECEIVE, SEND, expect_value, word_of};

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

    /// All for all, of two ranks whose up cells change hands, taking so many positions, of which these lend; returns
    /// how many cells this one filled that are the other's.
    pub fn deliver_crossing(&mut self, slices: u64, positions: u64, lends: &[usize]) -> u64 {
        self.deliver_words(RingName::Up, Parts::All, (slices, Some(positions)), &[], lends)
    }

    /// The same, where these ranks take the first slice only, and these lend what they publish.
    pub fn deliver_some(&mut self, name: RingName, parts: Parts, slices: u64, short: &[usize], lends: &[usize]) {
        self.deliver_words(name, parts, (slices, None), short, lends);
    }

    /// From a root, which offers what it hands out, or (`lends`) does not; these ranks do not reach it, and `short`
    /// takes the first slice alone.
    pub fn offer(&mut self, root: usize, slices: u64, lends: bool, decline: &[usize], short: &[usize]) {
        let Self { board, up, .. } = self;
        let (me, first) = (board.rank(), up.next_position() + 1);
        board.rewrite((0..slices).map(|slice| word_of(me, first + slice)));
        let location = Location::whole_at(if lends { SEND } else { Place::Cell }, slices as usize);
        let told = vec![Location::CELL; board.size()];
        let (short, declines, noted) = (short.contains(&me), decline.contains(&me), Vec::new());
        let (name, crossing, crossed, taken) = (RingName::Up, None, 0, 0);
        let mut work =
            Words { board, name, first, slices, location, told, noted, short, crossing, crossed, declines, taken };
        let part = if me == root { offer::Part::Root } else { offer::Part::Reader(root) };
        offer::hand_out(board, up, part, slices, TAG, &mut work).unwrap();
        let wanted = if me == root {
            0
        } else if short {
            1
        } else {
            slices
        };
        assert_eq!(work.taken, wanted, "wrong value: slices that were taken");
        board.rewrite(std::iter::empty());
    }

    /// To a root, which opens its buffer, or does not (`opens`); these ranks do not reach it, and these lend their part
    /// where they have not put it.
    pub fn open(&mut self, root: usize, slices: u64, opens: bool, decline: &[usize], lends: &[usize]) {
        let Self { board, up, .. } = self;
        let (me, size, first) = (board.rank(), board.size(), up.next_position() + 1);
        board.rewrite((0..slices).map(|slice| word_of(me, first + slice)));
        let (is_root, declines) = (me == root, decline.contains(&me));
        let place = match is_root {
            true if opens => RECEIVE,
            false if lends.contains(&me) => SEND,
            _ => Place::Cell,
        };
        let location = Location::whole_at(place, slices as usize);
        let told = vec![Location::CELL; size];
        let (short, noted, name, crossing, crossed, taken) = (false, Vec::new(), RingName::Up, None, 0, 0);
        let mut work =
            Words { board, name, first, slices, location, told, noted, short, crossing, crossed, declines, taken };
        let part = if is_root { opening::Part::Root } else { opening::Part::Sender(root) };
        opening::bring(board, up, part, slices, TAG, &mut work).unwrap();
        let is_put = |rank| opens && !decline.contains(&rank);
        for rank in (0..size).filter(|&rank| is_root && rank != root && is_put(rank)) {
            for slice in 0..slices {
                let found = board.buffer(root, RECEIVE)[(rank as u64 * slices + slice) as usize].read();
                expect_value(found, word_of(rank, first + slice));
            }
        }
        board.rewrite(std::iter::empty());
    }

    /// All for all, of which these offer what they hand out; these reach nobody, and `short` takes the first slice
    /// alone.
    pub fn offer_all(&mut self, slices: u64, lends: &[usize], decline: &[usize], short: &[usize]) {
        let Self { board, up, .. } = self;
        let (me, others, first) = (board.rank(), board.size() as u64 - 1, up.next_position() + 1);
        board.rewrite((0..slices).map(|slice| word_of(me, first + slice)));
        let place = if lends.contains(&me) { SEND } else { Place::Cell };
        let location = Location::whole_at(place, slices as usize);
        let told = vec![Location::CELL; board.size()];
        let (short, declines, noted) = (short.contains(&me), decline.contains(&me), Vec::new());
        let (name, crossing, crossed, taken) = (RingName::Up, None, 0, 0);
        let mut work =
            Words { board, name, first, slices, location, told, noted, short, crossing, crossed, declines, taken };
        mutual::hand_out_all(board, up, slices, TAG, &mut work).unwrap();
        let wanted = others * if short { 1 } else { slices };
        assert_eq!(work.taken, wanted, "wrong value: slices that were taken");
        board.rewrite(std::iter::empty());
    }

    fn deliver_words(
        &mut self,
        name: RingName,
        parts: Parts,
        (slices, crossing): (u64, Option<u64>),
        short: &[usize],
        lends: &[usize],
    ) -> u64 {
        let (board, ring) = self.ring(name);
        let (me, first) = (board.rank(), ring.next_position());
        let lent = lends.contains(&me);
        if !lends.is_empty() {
            board.rewrite((0..slices).map(|slice| word_of(me, first + slice)));
        }
        let location = Location::whole_at(if lent { SEND } else { Place::Cell }, slices as usize);
        let told = vec![Location::CELL; board.size()];
        let (short, declines, noted) = (short.contains(&me), false, Vec::new());
        let (crossed, taken) = (0, 0);
        let mut work =
            Words { board, name, first, slices, location, told, noted, short, crossing, crossed, declines, taken };
        let (readers, sources) = parts.of(me, board.size());
        deliver(board, ring, (readers.as_ref(), sources), slices, TAG, &mut work).unwrap();
        let crossed = work.crossed;
        if !lends.is_empty() {
            board.rewrite(std::iter::empty());
        }
        crossed
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
    noted: Vec<(usize, bool)>,
    /// Whether only the first slice is wanted.
    short: bool,
    /// The positions of a call in which cells change hands, and how many have.
    crossing: Option<u64>,
    crossed: u64,
    /// Whether this rank does not reach what is offered or opened, and how many slices it has got.
    declines: bool,
    taken: u64,
}

impl Delivery for Words<'_> {
    fn location(&self) -> Location {
        self.location
    }

    fn has(&self, rank: usize) -> bool {
        self.told[rank].whole
    }

    fn positions(&self) -> u64 {
        self.crossing.unwrap_or(0)
    }

    fn crosses(&self) -> bool {
        self.crossing.is_some()
    }

    fn takes(&self, _: u64, _: usize) -> bool {
        !self.short
    }

    fn write(&mut self, slice: u64, slot: usize, crossed: bool) {
        let me = self.board.rank();
        self.crossed += u64::from(crossed);
        self.board.fill_of(self.name, if crossed { 1 - me } else { me }, slot, word_of(me, self.first + slice));
    }

    fn read(&mut self, _: u64, rank: usize, from: Origin) -> Result<()> {
        assert!(from.location.agrees(self.slices as usize));
        self.told[rank] = from.location;
        self.taken += 1;
        if !from.location.is_lent() {
            self.noted.push((rank, from.crossed));
        }
        Ok(())
    }

    fn take(&mut self, rank: usize, location: Location) -> Result<bool> {
        assert!(location.agrees(self.slices as usize));
        let wanted = if self.short { 1 } else { self.slices };
        for slice in (0..wanted).filter(|_| !self.declines) {
            let found = self.board.buffer(rank, location.place)[slice as usize].read();
            expect_value(found, word_of(rank, self.first + slice));
            self.taken += 1;
        }
        Ok(!self.declines)
    }

    /// To this rank's place in the root's buffer.
    fn put(&mut self, root: usize, opened: Location) -> Result<bool> {
        assert!(opened.agrees(self.slices as usize));
        let me = self.board.rank();
        // A root that leaves by an error takes it by that word that nobody puts anything any more.
        let done = self.board.done(self.name, me).observe(Edge::UpReuse);
        assert!(done < self.first + self.slices - 1, "wrong value: done before the part is put");
        for slice in (0..self.slices).filter(|_| !self.declines) {
            let place = &self.board.buffer(root, opened.place)[(me as u64 * self.slices + slice) as usize];
            place.write(word_of(me, self.first + slice));
        }
        Ok(!self.declines)
    }

    /// Read when all have come, as a fold reads them.
    fn complete(&mut self, slice: u64, slot: usize) -> Result<()> {
        let me = self.board.rank();
        for (rank, crossed) in self.noted.drain(..) {
            let found = self.board.read(self.name, if crossed { me } else { rank }, slot);
            expect_value(found, word_of(rank, self.first + slice));
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
