//! The board of the model: what the segment is to the real ranks.

use std::sync::{Arc, Mutex as Untracked};

use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread::Thread;

use shm_core::Result;
use shm_core::protocol::{Board, Edge, RingName, Until, Word};

use super::mutant::Mutant;
use super::watched::Watched;

/// A flag word, and who waits for it.
///
/// Waiting must end under loom, which explores every number of turns of a spinning loop. So a rank whose first, bare look
/// fails puts itself on the word's list, looks for the last time, and parks until the word's writer finds it on the list.
/// Parking orders more than the real wait does: whatever the writer did comes before what the woken rank does. That must not
/// hide a weak ordering, and does not, because a wait that succeeds at its bare look has the word's own ordering and nothing
/// else, and loom tries that for every wait: it lets the reader come as late as it likes.
///
/// The list is no part of the model. Threads of a model switch only at loom's operations, so that a store and the look at
/// the list are one step, and the list is never contended.
pub struct ModelWord {
    value: AtomicU64,
    waiting: Untracked<Vec<Thread>>,
    mutant: Mutant,
}

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

    /// Takes the own name off the list; if it is gone, there is a wake-up to come, which must not be left to another wait.
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

/// The size of one ring in a world.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shape {
    /// The most slots that a rank's ring is ever cut into.
    pub slots: usize,
    /// Units of payload that a rank's slots share: what is raced for. The smallest slot has one.
    pub units: usize,
}

impl Shape {
    /// `slots` slots of one unit each.
    pub fn of(slots: usize) -> Self {
        Self { slots, units: slots }
    }
}

/// One rank's part of one ring.
struct Area {
    stamps: Vec<ModelWord>,
    done: ModelWord,
    units: Vec<Watched>,
}

/// All words and all payload of one communicator.
pub struct World {
    size: usize,
    /// By ring, by rank.
    areas: [Vec<Area>; 3],
    mutant: Mutant,
}

impl World {
    /// A world of `size` ranks. Rings that have no slots have no words.
    pub fn new(mutant: Mutant, size: usize, line: Shape, up: Shape, down: Shape) -> Arc<Self> {
        let areas = [line, up, down].map(|shape| {
            let ranks = if shape.slots == 0 { 0 } else { size };
            let area = |_| Area {
                stamps: (0..shape.slots).map(|_| ModelWord::new(mutant)).collect(),
                done: ModelWord::new(mutant),
                units: (0..shape.units).map(|_| Watched::new(0)).collect(),
            };
            (0..ranks).map(area).collect()
        });
        Arc::new(Self { size, areas, mutant })
    }

    /// A world whose ranks use lines only.
    pub fn of_lines(mutant: Mutant, size: usize, slots: usize) -> Arc<Self> {
        Self::new(mutant, size, Shape::of(slots), Shape::default(), Shape::default())
    }

    /// A world whose ranks use cells only.
    pub fn of_cells(mutant: Mutant, size: usize, up_slots: usize, down_slots: usize) -> Arc<Self> {
        Self::new(mutant, size, Shape::default(), Shape::of(up_slots), Shape::of(down_slots))
    }
}

/// The world as one rank sees it.
pub struct ModelBoard {
    world: Arc<World>,
    rank: usize,
}

impl ModelBoard {
    /// Fills an own slot of one unit.
    pub fn fill(&self, ring: RingName, slot: usize, value: u64) {
        self.fill_cut(ring, slot, 1, value);
    }

    /// Fills an own slot of a ring that is cut into slots of `cut` units.
    pub fn fill_cut(&self, ring: RingName, slot: usize, cut: usize, value: u64) {
        for unit in &self.area(ring, self.rank).units[slot * cut..(slot + 1) * cut] {
            unit.write(value);
        }
    }

    /// Reads a slot of one unit.
    pub fn read(&self, ring: RingName, from: usize, slot: usize) -> u64 {
        self.read_cut(ring, from, slot, 1)
    }

    /// Reads a slot of a ring that is cut into slots of `cut` units.
    pub fn read_cut(&self, ring: RingName, from: usize, slot: usize, cut: usize) -> u64 {
        let units = &self.area(ring, from).units[slot * cut..(slot + 1) * cut];
        let mut values = units.iter().map(Watched::read);
        let first = values.next().expect("a slot has a unit");
        assert!(values.all(|value| value == first), "wrong value: a slot that was half overwritten");
        first
    }

    /// What is broken.
    pub fn mutant(&self) -> Mutant {
        self.world.mutant
    }

    fn area(&self, ring: RingName, rank: usize) -> &Area {
        &self.world.areas[ring as usize][rank]
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

    fn publish(&self, word: &ModelWord, value: u64, edge: Edge) {
        word.publish(value, edge);
        word.wake();
    }

    fn wait_slowly(&self, _: usize, word: &ModelWord, until: Until, edge: Edge) -> Result<u64> {
        Ok(word.wait_parked(until, edge))
    }

    fn wait(&self, writer: usize, word: &ModelWord, until: Until, edge: Edge) -> Result<u64> {
        if self.world.mutant == Mutant::SkipWait(edge) {
            return Ok(match until {
                Until::Stamped(stamp) => stamp.0,
                Until::Reached(position) => position,
            });
        }
        // A look that fails has no effect but that the rank goes on waiting: to find an old stamp after the new one was
        // stored is no different from having looked earlier. Three ranks leave no time to explore both. An old `done` word
        // may be new enough, and what it orders is less: that is always explored.
        let value = match until {
            Until::Stamped(_) if self.world.size > 2 => word.observe_last(edge),
            _ => word.observe(edge),
        };
        if until.holds(value) {
            return Ok(value);
        }
        self.wait_slowly(writer, word, until, edge)
    }
}

/// Runs `body` as every rank of the world, each a thread of the model.
pub fn run_ranks(world: &Arc<World>, body: fn(&ModelBoard)) {
    let board = |rank| ModelBoard { world: Arc::clone(world), rank };
    let others: Vec<_> = (1..world.size)
        .map(|rank| {
            let board = board(rank);
            loom::thread::spawn(move || body(&board))
        })
        .collect();
    body(&board(0));
    for other in others {
        other.join().unwrap();
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
