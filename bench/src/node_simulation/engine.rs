//! Ranks as coroutines under a virtual clock: one runs at a time, and whatever touches what others see happens in the
//! order of time.
//!
//! Each rank has a clock of its own. Before a rank looks at a word, publishes one or touches a cell, it lets all ranks
//! go first whose clocks are behind its own (equal clocks: the lower rank). So everything shared is touched in the
//! order of virtual time, by one thread, and a run is the same to the last picosecond each time. A rank that waits for
//! a word stops until its writer publishes; when nobody can go on, the waits have no end, and the run ends with
//! [`Stuck`].

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::rc::Rc;

use corosensei::{Coroutine, CoroutineResult, Yielder};
use shm_core::protocol::{Board, Edge, Location, RingName, Until, Word};

use super::figures::Time;
use super::memory::{Level, Memory, Streak, Traffic};

/// Slots a rank in each ring.
#[derive(Clone, Copy, Debug)]
pub struct Slots {
    /// Lines, up cells, down cells.
    pub of: [usize; 3],
}

impl Slots {
    /// Where a ring's words begin for `size` ranks: stamps of all ranks, then one `done` word a rank.
    fn base(self, ring: RingName, size: usize) -> usize {
        self.of[..ring as usize].iter().map(|slots| (slots + 1) * size).sum()
    }

    fn words(self, size: usize) -> usize {
        self.of.iter().map(|slots| (slots + 1) * size).sum()
    }

    fn stamp(self, ring: RingName, rank: usize, slot: usize, size: usize) -> usize {
        self.base(ring, size) + rank * self.of[ring as usize] + slot
    }

    fn done(self, ring: RingName, rank: usize, size: usize) -> usize {
        self.base(ring, size) + self.of[ring as usize] * size + rank
    }
}

/// Who waits for what, in a run that cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// Each waiting rank, the rank that it waits for, and on which edge.
    pub waits: Vec<(usize, usize, Edge)>,
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the simulated ranks wait for each other for ever:")?;
        for (rank, writer, edge) in self.waits.iter().take(8) {
            write!(f, " rank {rank} for {writer} ({edge:?})")?;
        }
        if self.waits.len() > 8 { f.write_str(" ..") } else { Ok(()) }
    }
}

/// A flag word: its number, and its value when nobody asks for the time.
#[derive(Debug)]
pub struct SimWord {
    number: usize,
    value: Cell<u64>,
    /// Of a stamp: where the payload of its slot lies.
    location: Cell<Location>,
}

impl Word for SimWord {
    fn publish(&self, value: u64, _: Edge) {
        self.value.set(value);
    }

    fn observe(&self, _: Edge) -> u64 {
        self.value.get()
    }
}

/// A rank that waits for a word.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    rank: usize,
    writer: usize,
    until: Until,
    edge: Edge,
}

#[derive(Debug)]
struct State {
    clocks: Vec<Time>,
    /// Ranks that can go on, by clock and number.
    ready: BinaryHeap<Reverse<(Time, usize)>>,
    streaks: Vec<Streak>,
    /// Ranks whose last wait was for something that had yet to come: nothing that comes after it was begun before.
    waited: Vec<bool>,
    memory: Memory,
    /// By word.
    waiting: Vec<Vec<Waiting>>,
    /// Ranks that have come to the meeting, and wait there.
    meeting: Vec<usize>,
    stuck: Option<Stuck>,
}

/// The ranks' common world.
#[derive(Debug)]
pub struct World {
    size: usize,
    slots: Slots,
    words: Vec<SimWord>,
    state: RefCell<State>,
}

/// A rank's seat in the world: its board, and its clock.
pub struct Seat<'y> {
    world: Rc<World>,
    rank: usize,
    yielder: &'y Yielder<(), ()>,
    /// Lines that are stored with the next stamp, beside the stamp's own.
    beside: Cell<usize>,
}

impl World {
    /// A world whose ranks sit where `memory`, made by `machine` for a number of lines and cells, has them.
    pub fn new(size: usize, slots: Slots, machine: impl FnOnce(usize, usize) -> Memory) -> World {
        let words = slots.words(size);
        let state = State {
            clocks: vec![0; size],
            ready: BinaryHeap::new(),
            streaks: vec![Streak::default(); size],
            waited: vec![true; size],
            // A cell for each stamp, by the stamp's number.
            memory: machine(words, words),
            waiting: vec![Vec::new(); words],
            meeting: Vec::new(),
            stuck: None,
        };
        let word = |number| SimWord { number, value: Cell::new(0), location: Cell::new(Location::CELL) };
        World { size, slots, words: (0..words).map(word).collect(), state: RefCell::new(state) }
    }

    /// Runs `program` on every rank to its end; returns what crossed which distance.
    ///
    /// # Errors
    /// [`Stuck`] when ranks wait for ever.
    pub fn run<P>(self, program: &Rc<P>) -> Result<Traffic, Stuck>
    where
        P: Fn(&Seat<'_>) -> shm_core::Result<()> + 'static,
    {
        let size = self.size;
        self.state.borrow_mut().ready.extend((0..size).map(|rank| Reverse((0, rank))));
        let world = Rc::new(self);
        let start = |rank: usize| {
            let (world, program) = (Rc::clone(&world), Rc::clone(program));
            Coroutine::new(move |yielder: &Yielder<(), ()>, ()| {
                program(&Seat { world, rank, yielder, beside: Cell::new(0) })
            })
        };
        let mut ranks: Vec<Coroutine<(), (), shm_core::Result<()>>> = (0..size).map(start).collect();
        let mut left = size;
        while left > 0 {
            let next = world.state.borrow_mut().ready.pop();
            let Some(Reverse((_, rank))) = next else {
                world.state.borrow_mut().give_up();
                continue;
            };
            if let CoroutineResult::Return(result) = ranks[rank].resume(()) {
                left -= 1;
                debug_assert!(result.is_ok() || world.state.borrow().stuck.is_some(), "{result:?}");
            }
        }
        let mut state = world.state.borrow_mut();
        match state.stuck.take() {
            Some(stuck) => Err(stuck),
            None => Ok(state.memory.traffic),
        }
    }
}

impl State {
    /// Nobody can go on: notes who waits for whom, and lets all of them end with an error.
    fn give_up(&mut self) {
        let mut waits: Vec<(usize, usize, Edge)> = Vec::new();
        for waiting in self.waiting.iter_mut().flat_map(std::mem::take) {
            waits.push((waiting.rank, waiting.writer, waiting.edge));
        }
        waits.sort_unstable_by_key(|wait| wait.0);
        self.ready.extend(waits.iter().map(|&(rank, ..)| Reverse((self.clocks[rank], rank))));
        // Those who are at a meeting to which the others do not come go on too, and end at their next wait.
        self.ready.extend(self.meeting.drain(..).map(|rank| Reverse((self.clocks[rank], rank))));
        self.stuck.get_or_insert(Stuck { waits });
    }
}

impl Seat<'_> {
    /// Lets all go first who are behind.
    fn turn(&self) {
        let mut state = self.world.state.borrow_mut();
        let own = (state.clocks[self.rank], self.rank);
        if state.ready.peek().is_some_and(|Reverse(least)| *least < own) {
            state.ready.push(Reverse(own));
            drop(state);
            self.yielder.suspend(());
        }
    }

    /// The own clock.
    pub fn now(&self) -> Time {
        self.world.state.borrow().clocks[self.rank]
    }

    /// Waits until all ranks are here; then all clocks are what the last one's was.
    pub fn meet(&self) {
        let mut state = self.world.state.borrow_mut();
        if state.meeting.len() + 1 < self.world.size {
            state.meeting.push(self.rank);
            drop(state);
            self.yielder.suspend(());
            return;
        }
        let last = state.clocks.iter().copied().max().unwrap_or(0);
        state.clocks.fill(last);
        state.streaks.iter_mut().for_each(Streak::end);
        let State { meeting, ready, .. } = &mut *state;
        ready.extend(meeting.drain(..).map(|rank| Reverse((last, rank))));
    }

    /// Does something that costs time, with the memory at hand: `work(memory, now)` returns when it is done.
    fn spend(&self, work: impl FnOnce(&mut Memory, Time) -> Time) {
        let mut state = self.world.state.borrow_mut();
        let State { clocks, streaks, memory, .. } = &mut *state;
        clocks[self.rank] = work(memory, clocks[self.rank]);
        streaks[self.rank].end();
    }

    /// Instructions.
    pub fn compute(&self, cost: impl FnOnce(&super::figures::Costs) -> Time) {
        self.spend(|memory, now| now + cost(&memory.costs));
    }

    /// Loading or storing private buffers.
    pub fn private(&self, bytes: usize, level: Level) {
        if level == Level::Memory {
            self.turn();
        }
        self.spend(|memory, now| memory.private(self.rank, bytes, level, now));
    }

    /// Loading from a cell that `from` has published. Its first line is waited for if the stamp was: else the core has
    /// begun to load it beside the stamp.
    pub fn read(&self, ring: RingName, from: usize, slot: usize, bytes: usize) {
        self.turn();
        let cell = self.world.slots.stamp(ring, from, slot, self.world.size);
        let first = std::mem::take(&mut self.world.state.borrow_mut().waited[self.rank]);
        self.spend(|memory, now| memory.read(self.rank, cell, bytes, now, first));
    }

    /// [`read`](Seat::read) of a cell that this rank stores to next: it takes the lines from who had them. The cell is
    /// that of `of`, perhaps its own.
    pub fn take(&self, ring: RingName, of: usize, slot: usize, bytes: usize) {
        self.read(ring, of, slot, bytes);
        let cell = self.world.slots.stamp(ring, of, slot, self.world.size);
        self.spend(|memory, now| {
            memory.take(self.rank, cell, now);
            now
        });
    }

    /// Storing to a cell of `of`: this rank, or one whose cell it has taken.
    pub fn write(&self, ring: RingName, of: usize, slot: usize, bytes: usize) {
        self.turn();
        let cell = self.world.slots.stamp(ring, of, slot, self.world.size);
        self.spend(|memory, now| memory.write(self.rank, cell, bytes, now));
    }

    /// Filling further lines of a line slot: they go with the slot's stamp, which is published next.
    pub fn fill_beside(&self, lines: usize) {
        self.beside.set(lines);
    }

    /// Loading the further lines of `from`'s line slot, whose first line came with its stamp.
    pub fn read_beside(&self, from: usize, lines: usize) {
        self.spend(|memory, now| {
            let distance = memory.distance(self.rank, from) as usize;
            memory.traffic.lines[distance] += lines as u64;
            now + memory.costs.gap[distance] * lines as Time
        });
    }
}

impl Board for Seat<'_> {
    type Word = SimWord;

    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.world.size
    }

    fn stamp(&self, ring: RingName, rank: usize, slot: usize) -> &SimWord {
        &self.world.words[self.world.slots.stamp(ring, rank, slot, self.world.size)]
    }

    fn done(&self, ring: RingName, rank: usize) -> &SimWord {
        &self.world.words[self.world.slots.done(ring, rank, self.world.size)]
    }

    // All payload lies in cells, the writer's or the reader's. What is said of that comes with the stamp.
    fn locate(&self, ring: RingName, slot: usize, location: Location) {
        debug_assert!([Location::CELL, Location::BACK].contains(&location), "{location:?}");
        self.stamp(ring, self.rank, slot).location.set(location);
    }

    fn location(&self, ring: RingName, rank: usize, slot: usize) -> Location {
        self.stamp(ring, rank, slot).location.get()
    }

    fn claims(&self, _: RingName, _: usize, _: usize, _: u64) -> bool {
        unreachable!("simulated calls divide no work by claims")
    }

    fn publish(&self, word: &SimWord, value: u64, edge: Edge) {
        self.turn();
        word.publish(value, edge);
        let mut state = self.world.state.borrow_mut();
        let State { clocks, streaks, memory, waiting, ready, .. } = &mut *state;
        let now = clocks[self.rank];
        let visible = memory.store(self.rank, word.number, value, now, self.beside.take());
        clocks[self.rank] = now + memory.costs.publish;
        streaks[self.rank].end();
        waiting[word.number].retain(|waiting| {
            let woken = waiting.until.holds(value);
            if woken {
                let clock = &mut clocks[waiting.rank];
                *clock = (*clock).max(visible);
                ready.push(Reverse((*clock, waiting.rank)));
            }
            !woken
        });
    }

    fn wait_slowly(&self, writer: usize, word: &SimWord, until: Until, edge: Edge) -> shm_core::Result<u64> {
        self.wait(writer, word, until, edge)
    }

    fn wait(&self, writer: usize, word: &SimWord, until: Until, edge: Edge) -> shm_core::Result<u64> {
        let mut waited = false;
        loop {
            self.turn();
            let mut state = self.world.state.borrow_mut();
            let State { clocks, streaks, memory, waiting, stuck, waited: marks, .. } = &mut *state;
            if stuck.is_some() {
                return Err(shm_core::Error::RankFailed { rank: writer });
            }
            let (clock, streak) = (&mut clocks[self.rank], &mut streaks[self.rank]);
            match memory.visible(word.number, |value| until.holds(value)) {
                Some((value, visible)) if visible <= *clock => {
                    *clock = memory.load(self.rank, word.number, *clock, streak);
                    marks[self.rank] = waited;
                    return Ok(value);
                }
                // Published, but not to be seen yet: it polls until then.
                Some((_, visible)) => {
                    *clock = visible;
                    streak.end();
                    waited = true;
                }
                // Not published: the look has brought in a copy of the old line, which its writer must get rid of.
                None => {
                    *clock = memory.load(self.rank, word.number, *clock, streak);
                    streak.end();
                    waited = true;
                    waiting[word.number].push(Waiting { rank: self.rank, writer, until, edge });
                    drop(state);
                    self.yielder.suspend(());
                }
            }
        }
    }
}
