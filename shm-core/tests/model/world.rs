//! The board of the model: what the segment is to the real ranks.

use std::cell::Cell;
use std::sync::{Arc, Mutex as Untracked};

use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread::Thread;

use shm_core::Result;
use shm_core::protocol::{Board, Edge, Location, Place, RingName, Stamp, Until, Word};

use super::mutant::Mutant;
use super::rank::Rank;
use super::watched::Watched;

/// A flag word, and who waits for it.
///
/// Waiting must end under loom, which explores every number of turns of a spinning loop. So a rank whose first, bare
/// look fails puts itself on the word's list, looks for the last time, and parks until the word's writer finds it on
/// the list. Parking orders more than the real wait does: whatever the writer did comes before what the woken rank
/// does. That must not hide a weak ordering, and does not, because a wait that succeeds at its bare look has the word's
/// own ordering and nothing else, and loom tries that for every wait: it lets the reader come as late as it likes.
///
/// The list is no part of the model. Threads of a model switch only at loom's operations, so that a store and the look
/// at the list are one step, and the list is never contended.
pub struct ModelWord {
    value: AtomicU64,
    waiting: Untracked<Vec<Thread>>,
    mutant: Mutant,
}

/// The buffer with what a rank contributes.
pub const SEND: Place = Place::Heap(0);

/// The buffer with what a rank gets.
pub const RECEIVE: Place = Place::Heap(1);

/// No word ever holds it.
const NEVER: u64 = u64::MAX;

impl ModelWord {
    fn new(mutant: Mutant) -> Self {
        Self { value: AtomicU64::new(0), waiting: Untracked::default(), mutant }
    }

    /// The last value that was stored. Stores become visible in time; who waits long enough sees the last one. A
    /// compare-and-exchange that fails is loom's way to say so, and stores nothing.
    fn observe_last(&self, edge: Edge) -> u64 {
        let ordering = self.far_end(edge);
        self.value.compare_exchange(NEVER, NEVER, ordering, ordering).expect_err("no word holds it")
    }

    fn far_end(&self, edge: Edge) -> Ordering {
        if self.mutant == Mutant::ObserveRelaxed(edge) { Ordering::Relaxed } else { Ordering::Acquire }
    }

    fn wait_parked(&self, until: Until, edge: Edge) -> u64 {
        loop {
            self.waiting.lock().unwrap().push(loom::thread::current());
            let value = self.observe_last(edge);
            if until.holds(value) {
                self.leave();
                return value;
            }
            assert!(!until.mismatches(value), "mismatch: {until:?} found {value:#x}");
            loom::thread::park();
        }
    }

    /// Takes the own name off the list; if it is gone, there is a wake-up to come, which must not be left to another
    /// wait.
    fn leave(&self) {
        let me = loom::thread::current().id();
        let place = self.waiting.lock().unwrap().iter().position(|thread| thread.id() == me);
        match place {
            Some(place) => drop(self.waiting.lock().unwrap().swap_remove(place)),
            None => loom::thread::park(),
        }
    }

    fn wake(&self) {
        for thread in std::mem::take(&mut *self.waiting.lock().unwrap()) {
            thread.unpark();
        }
    }
}

impl Word for ModelWord {
    fn publish(&self, value: u64, edge: Edge) {
        let ordering = if self.mutant == Mutant::PublishRelaxed(edge) { Ordering::Relaxed } else { Ordering::Release };
        self.value.store(value, ordering);
    }

    fn observe(&self, edge: Edge) -> u64 {
        self.value.load(self.far_end(edge))
    }
}

/// One rank's part of one ring.
struct Area {
    stamps: Vec<ModelWord>,
    done: ModelWord,
    units: Vec<Watched>,
    /// The words beside the stamps: watched as payload is.
    locations: Vec<[Watched; 3]>,
    /// The last positions at which what slots offered was claimed.
    claimed: Vec<AtomicU64>,
}

/// All words and all payload of one communicator.
pub struct World {
    size: usize,
    /// By ring, by rank.
    areas: [Vec<Area>; 3],
    /// Each rank's own buffers, which the others can reach: what it contributes, and what it gets.
    buffers: Vec<[Vec<Watched>; 2]>,
    mutant: Mutant,
}

impl World {
    /// A world of `size` ranks, whose rings have no slots and no words yet.
    pub fn new(mutant: Mutant, size: usize) -> Self {
        Self { size, areas: [const { Vec::new() }; 3], buffers: Vec::new(), mutant }
    }

    /// With so many lines a rank.
    pub fn line(self, slots: usize) -> Self {
        self.with(RingName::Line, slots)
    }

    /// With so many up cells a rank.
    pub fn up(self, slots: usize) -> Self {
        self.with(RingName::Up, slots)
    }

    /// With so many down cells a rank.
    pub fn down(self, slots: usize) -> Self {
        self.with(RingName::Down, slots)
    }

    /// With two buffers a rank, of so many units each, that others can reach.
    pub fn buffers(mut self, units: usize) -> Self {
        let buffer = || (0..units).map(|_| Watched::new(0)).collect();
        self.buffers = (0..self.size).map(|_| [buffer(), buffer()]).collect();
        self
    }

    /// A ring of at most `slots` slots, of a unit of payload each. Cut into fewer, each has more units.
    fn with(mut self, ring: RingName, slots: usize) -> Self {
        let mutant = self.mutant;
        let area = |_| Area {
            stamps: (0..slots).map(|_| ModelWord::new(mutant)).collect(),
            done: ModelWord::new(mutant),
            units: (0..slots).map(|_| Watched::new(0)).collect(),
            locations: (0..slots).map(|_| [const { 0 }; 3].map(Watched::new)).collect(),
            claimed: (0..slots).map(|_| AtomicU64::new(0)).collect(),
        };
        self.areas[ring as usize] = (0..self.size).map(area).collect();
        self
    }

    /// The most slots that a ring is ever cut into.
    pub fn slots(&self, ring: RingName) -> usize {
        self.areas[ring as usize].first().map_or(0, |area| area.stamps.len())
    }

    /// Runs `body` as every rank of the world, each a thread of the model.
    pub fn run(self, body: fn(&mut Rank)) {
        let world = Arc::new(self);
        let others: Vec<_> = (1..world.size)
            .map(|rank| {
                let world = Arc::clone(&world);
                loom::thread::spawn(move || body(&mut Rank::new(world, rank)))
            })
            .collect();
        body(&mut Rank::new(world, 0));
        for other in others {
            other.join().unwrap();
        }
    }
}

/// The world as one rank sees it.
pub struct ModelBoard {
    world: Arc<World>,
    rank: usize,
    /// Units of payload a slot, by ring.
    cuts: [Cell<usize>; 3],
}

impl ModelBoard {
    /// How `rank` sees a world in which all slots have one unit.
    pub fn new(world: Arc<World>, rank: usize) -> Self {
        Self { world, rank, cuts: [const { Cell::new(1) }; 3] }
    }

    /// From here on a ring is cut into so many slots.
    pub fn cut(&self, ring: RingName, slots: usize) {
        self.cuts[ring as usize].set(self.world.slots(ring) / slots);
    }

    /// Fills an own slot.
    pub fn fill(&self, ring: RingName, slot: usize, value: u64) {
        self.fill_of(ring, self.rank, slot, value);
    }

    /// Fills the cell of a slot of `rank`, which this rank holds.
    pub fn fill_of(&self, ring: RingName, rank: usize, slot: usize, value: u64) {
        for unit in self.units(ring, rank, slot) {
            unit.write(value);
        }
    }

    /// Reads a slot.
    pub fn read(&self, ring: RingName, from: usize, slot: usize) -> u64 {
        let mut values = self.units(ring, from, slot).iter().map(Watched::read);
        let first = values.next().expect("a slot has a unit");
        assert!(values.all(|value| value == first), "wrong value: a slot that was half overwritten");
        first
    }

    /// A rank's buffer of this place.
    pub fn buffer(&self, rank: usize, place: Place) -> &[Watched] {
        match place {
            Place::Heap(which) => &self.world.buffers[rank][which as usize],
            _ => panic!("{place:?} of rank {rank} is no buffer"),
        }
    }

    /// Reads payload: a slot, or a unit of the buffer that it names.
    pub fn read_at(&self, ring: RingName, from: usize, slot: usize, place: Place, unit: usize) -> u64 {
        match place {
            Place::Cell => self.read(ring, from, slot),
            Place::CellOf(rank) => self.read(ring, rank, slot),
            place => self.buffer(from, place)[unit].read(),
        }
    }

    /// Writes both own buffers, as their owner does between calls: the first units of what it contributes as given.
    pub fn rewrite(&self, sends: impl Iterator<Item = u64>) {
        for place in [SEND, RECEIVE] {
            self.buffer(self.rank, place).iter().for_each(|unit| unit.write(0));
        }
        for (unit, value) in self.buffer(self.rank, SEND).iter().zip(sends) {
            unit.write(value);
        }
    }

    /// What is broken.
    pub fn mutant(&self) -> Mutant {
        self.world.mutant
    }

    fn units(&self, ring: RingName, rank: usize, slot: usize) -> &[Watched] {
        let cut = self.cuts[ring as usize].get();
        &self.area(ring, rank).units[slot * cut..(slot + 1) * cut]
    }

    fn area(&self, ring: RingName, rank: usize) -> &Area {
        &self.world.areas[ring as usize][rank]
    }

    /// What the end of a wait for a stamp brings with it in a world that is broken so: the word that the slot was read.
    fn finish_early(&self, until: Until, edge: Edge) {
        const POSITION: u64 = Stamp::new(1, 0).0 - Stamp::new(0, 0).0;
        if let (Mutant::DoneTooEarly(ring), Until::Stamped(stamp)) = (self.world.mutant, until)
            && edge == ring.publish_edge()
        {
            self.publish(self.done(ring, self.rank), stamp.0 / POSITION, ring.reuse_edge());
        }
    }

    /// What ends a wait at once in a world that is broken so: the value that was waited for, though it is not there.
    fn not_waited_for(&self, writer: usize, until: Until, edge: Edge) -> Option<u64> {
        match (self.world.mutant, until) {
            (Mutant::SkipWait(skipped), Until::Stamped(stamp)) if skipped == edge => Some(stamp.0),
            (Mutant::SkipWait(skipped), Until::Reached(position)) if skipped == edge => Some(position),
            (Mutant::ReaderForgotten(reader), Until::Reached(position)) if reader == writer => Some(position),
            _ => None,
        }
    }
}

impl Board for ModelBoard {
    type Word = ModelWord;

    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.world.size
    }

    fn stamp(&self, ring: RingName, rank: usize, slot: usize) -> &ModelWord {
        &self.area(ring, rank).stamps[slot]
    }

    fn done(&self, ring: RingName, rank: usize) -> &ModelWord {
        let shown = match self.world.mutant {
            Mutant::OthersProgress { of, shown } if of == rank && of != self.rank => shown,
            _ => rank,
        };
        &self.area(ring, shown).done
    }

    fn locate(&self, ring: RingName, slot: usize, location: Location) {
        let words = &self.area(ring, self.rank).locations[slot];
        let [place, result, bytes] = location.words();
        words[0].write(place);
        if place != 0 {
            words[1].write(result);
            words[2].write(bytes);
        }
    }

    fn location(&self, ring: RingName, rank: usize, slot: usize) -> Location {
        let words = &self.area(ring, rank).locations[slot];
        match words[0].read() {
            0 => Location::CELL,
            place => Location::of_words([place, words[1].read(), words[2].read()]),
        }
    }

    fn claims(&self, ring: RingName, rank: usize, slot: usize, position: u64) -> bool {
        let first = self.area(ring, rank).claimed[slot].fetch_max(position, Ordering::Relaxed) < position;
        match self.world.mutant {
            Mutant::ClaimedTwice => true,
            Mutant::ClaimedByNobody => false,
            _ => first,
        }
    }

    fn publish(&self, word: &ModelWord, value: u64, edge: Edge) {
        if let Mutant::DoneMissing(ring) = self.world.mutant
            && edge == ring.reuse_edge()
        {
            return;
        }
        word.publish(value, edge);
        word.wake();
    }

    fn wait_slowly(&self, _: usize, word: &ModelWord, until: Until, edge: Edge) -> Result<u64> {
        Ok(word.wait_parked(until, edge))
    }

    fn wait(&self, writer: usize, word: &ModelWord, until: Until, edge: Edge) -> Result<u64> {
        if let Some(value) = self.not_waited_for(writer, until, edge) {
            return Ok(value);
        }
        // A look that fails has no effect but that the rank goes on waiting: to find an old stamp after the new one was
        // stored is no different from having looked earlier. Three ranks leave no time to explore both. An old `done`
        // word may be new enough, and what it orders is less: that is always explored.
        let value = match until {
            Until::Stamped(_) if self.world.size > 2 => word.observe_last(edge),
            _ => word.observe(edge),
        };
        let value = if until.holds(value) { value } else { self.wait_slowly(writer, word, until, edge)? };
        self.finish_early(until, edge);
        Ok(value)
    }
}

/// What `rank` has to say at `position`: never the same value twice, and never zero.
pub fn word_of(rank: usize, position: u64) -> u64 {
    100 * position + rank as u64 + 1
}

/// Asserts that a slot holds what was to be read.
pub fn expect_value(found: u64, expected: u64) {
    assert_eq!(found, expected, "wrong value");
}
