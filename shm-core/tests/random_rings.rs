//! Random calls through tiny rings: the protocols over words on the heap, with more ranks, trees, leaders and slots than a
//! model checker has time for.
//!
//! Trees, roots, leaders, slots and the order of calls come from a seed, which is printed; `RINGS_SEED` runs one again. What
//! a rank waits for, once there, stays until that rank has read it, so that whether a run ends does not depend on the
//! schedule: a shape that can deadlock does so here, and the watchdog in the wait says where.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use shm_core::protocol::delivery::{Delivery, Origin, Sources, deliver};
use shm_core::protocol::exchange::{LEAST_SLICE_SLOTS, Pieces, exchange_pieces, exchange_then};
use shm_core::protocol::shares::{self, LEAST_DOWN_SLOTS, Parts, Shares, Takers, Work, least_up_slots};
use shm_core::protocol::step::{self, Gathers, Passage, Releases, Span};
use shm_core::protocol::{Board, Edge, Location, Place, Readers, Ring, RingName, Stamp, Until, Word};
use shm_core::{Links, Result};

#[path = "random_rings/flat.rs"]
mod flat;
#[path = "random_rings/joint.rs"]
mod joint;

/// The most slots of any ring here.
const MOST_SLOTS: usize = 24;

/// The most slices of a call: seven rounds of eight leaders.
const LONGEST: usize = 56;

/// Far longer than any wait here takes.
const WATCHDOG: Duration = Duration::from_secs(60);

struct HeapWord(AtomicU64);

impl Word for HeapWord {
    fn publish(&self, value: u64, _: Edge) {
        self.0.store(value, Ordering::Release);
    }

    fn observe(&self, _: Edge) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

struct Area {
    stamps: Vec<HeapWord>,
    done: HeapWord,
    cells: Vec<AtomicU64>,
    locations: Vec<[AtomicU64; 3]>,
    claimed: Vec<AtomicU64>,
}

/// Buffers of a rank that the others can reach: what it contributes, and what it gets, a word a slice (of a share).
struct Buffers {
    send: Vec<AtomicU64>,
    receive: Vec<AtomicU64>,
}

/// What no rank ever has to say.
const NOTHING: u64 = u64::MAX;

/// The length of all messages that are lent: ranks agree on it here.
const BYTES: usize = 8;

/// The places of a rank's two buffers.
const SEND: Place = Place::Heap(0);
const RECEIVE: Place = Place::Heap(1);

/// One rank's view of the words and cells of all ranks.
struct HeapBoard {
    rank: usize,
    size: usize,
    /// By ring, then by rank.
    areas: Arc<Vec<Area>>,
    /// By rank.
    buffers: Arc<Vec<Buffers>>,
    random: RefCell<Random>,
    seed: u64,
}

impl HeapBoard {
    fn area(&self, ring: RingName, rank: usize) -> &Area {
        &self.areas[ring as usize * self.size + rank]
    }

    fn fill(&self, ring: RingName, slot: usize, value: u64) {
        self.fill_of(ring, self.rank, slot, value);
    }

    fn fill_of(&self, ring: RingName, rank: usize, slot: usize, value: u64) {
        self.delay();
        self.area(ring, rank).cells[slot].store(value, Ordering::Relaxed);
    }

    fn read(&self, ring: RingName, from: usize, slot: usize) -> u64 {
        self.delay();
        self.area(ring, from).cells[slot].load(Ordering::Relaxed)
    }

    fn buffer(&self, rank: usize, place: Place) -> &[AtomicU64] {
        let buffers = &self.buffers[rank];
        match place {
            SEND => &buffers.send,
            RECEIVE => &buffers.receive,
            _ => panic!("seed {}, rank {}: {place:?} of rank {rank} is no buffer", self.seed, self.rank),
        }
    }

    /// Reads payload: from the slot, or from the buffer that it names.
    fn read_at(&self, ring: RingName, from: usize, slot: usize, place: Place, index: usize) -> u64 {
        if place == Place::Cell {
            return self.read(ring, from, slot);
        }
        self.delay();
        self.buffer(from, place)[index].load(Ordering::Relaxed)
    }

    fn store(&self, rank: usize, place: Place, index: usize, value: u64) {
        self.delay();
        self.buffer(rank, place)[index].store(value, Ordering::Relaxed);
    }

    /// Writes both own buffers, as their owner does outside of a call: the first words of `send` as given, all else with nothing.
    fn rewrite(&self, send: impl Iterator<Item = u64>) {
        let buffers = &self.buffers[self.rank];
        for word in buffers.send.iter().chain(&buffers.receive) {
            word.store(NOTHING, Ordering::Relaxed);
        }
        for (word, value) in buffers.send.iter().zip(send) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Now and then lets the others go ahead.
    fn delay(&self) {
        let mut random = self.random.borrow_mut();
        if random.below(8) == 0 {
            for _ in 0..random.below(4) {
                std::thread::yield_now();
            }
        }
    }

    fn expect(&self, found: u64, expected: u64, what: &str) {
        assert_eq!(found, expected, "seed {}, rank {}: {what}", self.seed, self.rank);
    }
}

impl Board for HeapBoard {
    type Word = HeapWord;

    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn stamp(&self, ring: RingName, rank: usize, slot: usize) -> &HeapWord {
        &self.area(ring, rank).stamps[slot]
    }

    fn done(&self, ring: RingName, rank: usize) -> &HeapWord {
        &self.area(ring, rank).done
    }

    fn locate(&self, ring: RingName, slot: usize, location: Location) {
        for (word, value) in self.area(ring, self.rank).locations[slot].iter().zip(location.words()) {
            word.store(value, Ordering::Relaxed);
        }
    }

    fn location(&self, ring: RingName, rank: usize, slot: usize) -> Location {
        let words = &self.area(ring, rank).locations[slot];
        Location::of_words(std::array::from_fn(|word| words[word].load(Ordering::Relaxed)))
    }

    fn claims(&self, ring: RingName, rank: usize, slot: usize, position: u64) -> bool {
        self.delay();
        self.area(ring, rank).claimed[slot].fetch_max(position, Ordering::Relaxed) < position
    }

    fn publish(&self, word: &HeapWord, value: u64, edge: Edge) {
        word.publish(value, edge);
    }

    fn wait_slowly(&self, writer: usize, word: &HeapWord, until: Until, edge: Edge) -> Result<u64> {
        let start = Instant::now();
        loop {
            let value = word.observe(edge);
            if until.holds(value) {
                return Ok(value);
            }
            let (seed, rank) = (self.seed, self.rank);
            assert!(!until.mismatches(value), "seed {seed}, rank {rank}: {until:?} found {value:#x}");
            assert!(start.elapsed() < WATCHDOG, "seed {seed}, rank {rank} waits for {writer} ({edge:?}): {until:?}");
            std::thread::yield_now();
        }
    }
}

/// xorshift64*.
#[derive(Clone)]
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % most
    }

    fn index(&mut self, most: usize) -> usize {
        self.below(most as u64) as usize
    }

    fn order(&mut self, size: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..size).collect();
        for i in (1..size).rev() {
            order.swap(i, self.index(i + 1));
        }
        order
    }

    /// Any tree with this root, as `rank` sees it.
    fn tree(&mut self, size: usize, root: usize, rank: usize) -> Links {
        let mut order = self.order(size);
        let at = order.iter().position(|&other| other == root).expect("the root is a rank");
        order.swap(0, at);
        let mut parent = vec![None; size];
        for place in 1..size {
            parent[order[place]] = Some(order[self.index(place)]);
        }
        let children: Vec<usize> = order.into_iter().filter(|&other| parent[other] == Some(rank)).collect();
        Links::new(parent[rank], &children, size)
    }
}

/// What `rank` has to say at `position` of its `part`.
fn word_of(rank: usize, position: u64, part: u64) -> u64 {
    (position << 16) + (part << 10) + rank as u64 + 1
}

fn sum_of(size: usize, position: u64, part: u64) -> u64 {
    (0..size).map(|rank| word_of(rank, position, part)).sum()
}

struct Engine {
    board: HeapBoard,
    line: Ring,
    up: Ring,
    down: Ring,
}

impl Engine {
    fn ring(&mut self, name: RingName) -> (&HeapBoard, &mut Ring) {
        match name {
            RingName::Line => (&self.board, &mut self.line),
            RingName::Up => (&self.board, &mut self.up),
            RingName::Down => (&self.board, &mut self.down),
        }
    }

    fn exchange(&mut self, tag: u32) {
        let Self { board, line, .. } = self;
        let position = line.next_position();
        let noted = RefCell::new(Vec::new());
        exchange_then(
            board,
            line,
            tag,
            |slot| board.fill(RingName::Line, slot, word_of(board.rank, position, 0)),
            |_| {
                board.delay();
                None
            },
            |from, slot| noted.borrow_mut().push((from, slot)),
            || {
                for &(from, slot) in noted.borrow().iter() {
                    let found = board.read(RingName::Line, from, slot);
                    board.expect(found, word_of(from, position, 0), "exchange");
                }
            },
        )
        .unwrap();
        assert_eq!(noted.borrow().len() + 1, board.size);
    }

    fn exchange_pieces(&mut self, tag: u32, count: usize) {
        let Self { board, line, .. } = self;
        let mut words = Words { board, first: line.next_position(), noted: Vec::new() };
        exchange_pieces(board, line, tag, count, &mut words).unwrap();
    }

    fn gather(&mut self, name: RingName, tag: u32, links: &Links, slices: u64, lends: bool) {
        let (board, ring) = self.ring(name);
        let mut rising = Rising::new(board, name, ring, links, lends && name != RingName::Line, 0, slices);
        let span = Span::take(ring, slices);
        step::gather_all(board, ring, links, span, tag, &mut rising).unwrap();
        board.rewrite(std::iter::empty());
    }

    fn release(&mut self, name: RingName, tag: u32, links: &Links, root: usize, slices: u64, lends: bool) {
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

    fn pipeline(&mut self, tag: u32, gather: &Links, release: &Links, slices: u64, lends: (bool, bool)) {
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

    fn shares(&mut self, tag: u32, leaders: &[usize], rounds: u64, takers: Takers, lends: [bool; 3]) {
        let Self { board, up, down, .. } = self;
        let first = up.next_position();
        let takes = takers == Takers::All || takers == Takers::Root(board.rank);
        let count = rounds * leaders.len() as u64;
        board.rewrite((0..count).map(|at| word_of(board.rank, first + at, 3)));
        let [sends, wants, gives] = lends;
        let place = if sends { SEND } else { Place::Cell };
        let contribution = Location::whole_at(place, BYTES).wanting((wants && takes).then_some(1), BYTES);
        let result = if gives && takers == Takers::All { Location::slice_at(RECEIVE, BYTES) } else { Location::CELL };
        let told = vec![Location::CELL; board.size];
        let mut work = Slices { board, leaders, first, folded: 0, taken: 0, contribution, result, told, takes };
        shares::run(board, up, down, Shares { leaders, rounds, takers }, tag, &mut work).unwrap();
        assert_eq!(work.folded, if leaders.contains(&board.rank) { rounds } else { 0 });
        let by_itself = takes && contribution.result.is_none();
        assert_eq!(work.taken, if by_itself { rounds * others(leaders, board.rank) } else { 0 });
        if takes {
            for at in 0..count {
                let found = board.buffer(board.rank, RECEIVE)[at as usize].load(Ordering::Relaxed);
                board.expect(found, sum_of(board.size, first + at, 3), "result of a share");
            }
        }
        board.rewrite(std::iter::empty());
    }

    fn spread(&mut self, tag: u32, leaders: &[usize], rounds: u64, lends: bool) {
        let Self { board, down, .. } = self;
        let first = down.next_position();
        board.rewrite((0..rounds).map(|round| word_of(board.rank, first + round, 4)));
        let lends = lends && leaders.contains(&board.rank);
        let location = if lends { Location::whole_at(SEND, BYTES) } else { Location::CELL };
        let told = vec![Location::CELL; leaders.len()];
        let mut parts = Handed { board, leaders, first, taken: 0, location, told };
        shares::spread(board, down, leaders, rounds, tag, &mut parts).unwrap();
        assert_eq!(parts.taken, rounds * others(leaders, board.rank));
        board.rewrite(std::iter::empty());
    }

    /// Cuts a ring anew if it has fewer slots than that, and sometimes if it has enough: what follows an uncut ring meets
    /// what the call before has left in it.
    fn provide(&mut self, name: RingName, least: usize, more: usize, anyway: bool) {
        let (board, ring) = self.ring(name);
        if ring.slots() < least || anyway {
            ring.reshape(board, least + more).unwrap();
        }
    }
}

/// The payload of gather steps: the sum of all ranks' words.
struct Rising<'a> {
    board: &'a HeapBoard,
    name: RingName,
    links: &'a Links,
    first: u64,
    slots: u64,
    part: u64,
    location: Location,
    /// What each child said.
    told: Vec<Location>,
}

impl<'a> Rising<'a> {
    fn new(
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
        Self { board, name, links, first, slots, part, location, told: vec![Location::CELL; board.size] }
    }
}

impl Gathers for Rising<'_> {
    fn location(&self) -> Location {
        self.location
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
        let sum = self.links.children().iter().map(word).sum::<u64>() + word_of(board.rank, position, part);
        match own {
            Some(own) => board.fill(name, own, sum),
            None => board.expect(sum, sum_of(board.size, position, part), "gather"),
        }
        Ok(())
    }
}

/// The payload of release steps: a known word a slice.
struct Falling<'a> {
    board: &'a HeapBoard,
    name: RingName,
    words: &'a dyn Fn(u64) -> u64,
    location: Location,
    /// What the parent said.
    parent: Location,
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

struct Words<'a> {
    board: &'a HeapBoard,
    first: u64,
    noted: Vec<(usize, usize)>,
}

impl Pieces for Words<'_> {
    fn write(&mut self, piece: usize, slot: usize) {
        self.board.fill(RingName::Line, slot, word_of(self.board.rank, self.first + piece as u64, 2));
    }

    fn read(&mut self, _: usize, rank: usize, slot: usize) {
        self.noted.push((rank, slot));
    }

    fn complete(&mut self, piece: usize) {
        assert_eq!(self.noted.len() + 1, self.board.size);
        for (rank, slot) in self.noted.drain(..) {
            let found = self.board.read(RingName::Line, rank, slot);
            self.board.expect(found, word_of(rank, self.first + piece as u64, 2), "exchange of pieces");
        }
    }
}

/// How many others lead.
fn others(leaders: &[usize], rank: usize) -> u64 {
    leaders.iter().filter(|&&leader| leader != rank).count() as u64
}

struct Slices<'a> {
    board: &'a HeapBoard,
    leaders: &'a [usize],
    first: u64,
    folded: u64,
    taken: u64,
    contribution: Location,
    result: Location,
    /// What each rank said.
    told: Vec<Location>,
    takes: bool,
}

impl Slices<'_> {
    fn index(&self, round: u64, leader: usize) -> usize {
        round as usize * self.leaders.len() + leader
    }

    fn position(&self, round: u64, leader: usize) -> u64 {
        self.first + self.index(round, leader) as u64
    }

    /// Everybody's part of a slice, summed up to where it is wanted.
    fn sum(&mut self, round: u64, leader: usize, up: usize) -> u64 {
        let (board, position, index) = (self.board, self.position(round, leader), self.index(round, leader));
        let others = (0..board.size).filter(|&rank| rank != board.rank);
        let word = |rank: usize| board.read_at(RingName::Up, rank, up, self.told[rank].place, index);
        let sum = others.clone().map(word).sum::<u64>() + word_of(board.rank, position, 3);
        board.expect(sum, sum_of(board.size, position, 3), "fold of a share");
        if self.takes {
            board.store(board.rank, RECEIVE, index, sum);
        }
        for rank in others.filter(|&rank| self.told[rank].result.is_some()) {
            board.store(rank, RECEIVE, index, sum);
        }
        self.folded += 1;
        sum
    }
}

impl Work for Slices<'_> {
    fn contribution(&self) -> Location {
        self.contribution
    }

    fn has(&self, rank: usize) -> bool {
        self.told[rank].whole
    }

    fn note(&mut self, rank: usize, location: Location) {
        self.told[rank] = location;
    }

    fn serves(&self, takers: Takers) -> bool {
        match takers {
            Takers::All => (0..self.board.size).all(|rank| rank == self.board.rank || self.told[rank].result.is_some()),
            Takers::Root(root) => self.told[root].result.is_some(),
            Takers::Owners => true,
        }
    }

    fn result(&self) -> Location {
        self.result
    }

    fn contribute(&mut self, round: u64, leader: usize, slot: usize) {
        self.board.fill(RingName::Up, slot, word_of(self.board.rank, self.position(round, leader), 3));
    }

    fn fold(&mut self, round: u64, leader: usize, up: usize, down: Option<usize>) -> Result<()> {
        let sum = self.sum(round, leader, up);
        if let Some(slot) = down {
            self.board.fill(RingName::Down, slot, sum);
        }
        Ok(())
    }

    fn gives_back(&self) -> bool {
        true
    }

    fn fold_back(&mut self, round: u64, leader: usize, up: usize) -> Result<()> {
        let sum = self.sum(round, leader, up);
        self.board.fill_of(RingName::Up, 1 - self.board.rank, up, sum);
        Ok(())
    }

    fn take(&mut self, round: u64, leader: usize, slot: usize, location: Location) -> Result<()> {
        let (board, index) = (self.board, self.index(round, leader));
        let found = match location.place {
            Place::Back => board.read(RingName::Up, board.rank, slot),
            place => board.read_at(RingName::Down, self.leaders[leader], slot, place, index),
        };
        board.expect(found, sum_of(board.size, self.position(round, leader), 3), "take of a share");
        board.store(board.rank, RECEIVE, index, found);
        self.taken += 1;
        Ok(())
    }
}

struct Handed<'a> {
    board: &'a HeapBoard,
    leaders: &'a [usize],
    first: u64,
    taken: u64,
    location: Location,
    /// What each leader said.
    told: Vec<Location>,
}

impl Parts for Handed<'_> {
    fn location(&self) -> Location {
        self.location
    }

    fn has(&self, leader: usize) -> bool {
        self.told[leader].whole
    }

    fn note(&mut self, leader: usize, location: Location) {
        self.told[leader] = location;
    }

    fn give(&mut self, round: u64, leader: usize, slot: usize) {
        assert_eq!(self.leaders[leader], self.board.rank);
        self.board.fill(RingName::Down, slot, word_of(self.board.rank, self.first + round, 4));
    }

    fn take(&mut self, round: u64, leader: usize, slot: usize) -> Result<()> {
        let from = self.leaders[leader];
        let found = self.board.read_at(RingName::Down, from, slot, self.told[leader].place, round as usize);
        self.board.expect(found, word_of(from, self.first + round, 4), "share that is handed out");
        self.taken += 1;
        Ok(())
    }
}

/// Who publishes for whom in a delivery.
#[derive(Clone, Copy, PartialEq)]
enum DeliveryParts {
    All,
    From(usize),
    To(usize),
    Upwards,
}

impl Engine {
    /// Slices from those who publish to those who read; this rank lends what it publishes, or takes no more than the first slice.
    fn deliver(&mut self, name: RingName, tag: u32, parts: DeliveryParts, slices: u64, (lends, short): (bool, bool)) {
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
        let mut work = Delivered { board, name, first, location, told, noted: Vec::new(), short, crosses, taken: 0 };
        deliver(board, ring, (readers.as_ref(), sources), slices, tag, &mut work).unwrap();
        let expected = sources.ranks(me, size).count() as u64 * if short { 1 } else { slices };
        assert_eq!(work.taken, expected, "seed {}, rank {me}: slices that were taken", board.seed);
        board.rewrite(std::iter::empty());
    }
}

/// The payload of a delivery: a known word a slice.
struct Delivered<'a> {
    board: &'a HeapBoard,
    name: RingName,
    first: u64,
    location: Location,
    /// What each rank said.
    told: Vec<Location>,
    /// Whose slots hold a word of the slice.
    noted: Vec<(usize, bool)>,
    short: bool,
    /// Whether cells change hands.
    crosses: bool,
    taken: u64,
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

/// The calls that a seed stands for, as one rank makes them.
fn make_calls(engine: &mut Engine, seed: u64, calls: usize) {
    let (size, rank) = (engine.board.size, engine.board.rank);
    let mut plan = Random::new(seed);
    for call in 0..calls {
        let tag = (call as u32).wrapping_mul(2_654_435_761) >> 8;
        let root = plan.index(size);
        let (first, second) = (plan.tree(size, root, rank), plan.tree(size, root, rank));
        let name = RingName::ALL[plan.index(3)];
        let slices = 1 + plan.below(7);
        // Each rank decides for itself what it lends in this call.
        let mut own = Random::new(seed ^ ((call as u64) << 20) ^ ((rank as u64 + 1) << 40));
        let lends = [(); 3].map(|()| own.below(2) == 0);
        match plan.index(if size == 2 { 20 } else { 17 }) {
            0 => engine.exchange(tag),
            1 => {
                let most = (engine.line.slots() / 2).max(1);
                let pieces = 1 + plan.index(most);
                if 2 * pieces <= engine.line.slots() {
                    engine.exchange_pieces(tag, pieces)
                } else {
                    engine.exchange(tag)
                }
            }
            2 => engine.gather(name, tag, &first, slices, lends[0]),
            3 => engine.release(name, tag, &first, root, slices, lends[0]),
            4 | 5 => engine.pipeline(tag, &first, &second, slices, (lends[0], lends[1])),
            13 => engine.hand_out(name, tag, root),
            14 => engine.collect(name, tag, root),
            15 | 16 => {
                // As with shares, all lend and want in some of the calls.
                let (more, cuts, spare) = (plan.index(3), plan.below(2) == 0, plan.below(3));
                let all = plan.below(3) == 0;
                engine.provide(RingName::Up, LEAST_SLICE_SLOTS, more, cuts);
                engine.exchange_slices(tag, slices, spare, (all || lends[0], all || lends[1]));
            }
            17..20 => {
                let name = if plan.below(2) == 0 { RingName::Up } else { RingName::Down };
                engine.joint(tag, root, name, slices, lends[0]);
            }
            6 => {
                // Lines are never cut anew in a communicator, but nothing in the ring forbids it.
                let slots = 1 + plan.index(6);
                let (board, ring) = engine.ring(name);
                ring.reshape(board, slots).unwrap();
            }
            7..10 => {
                let parts = match plan.below(4) {
                    0 => DeliveryParts::All,
                    1 => DeliveryParts::From(root),
                    2 => DeliveryParts::To(root),
                    _ => DeliveryParts::Upwards,
                };
                // All for all takes two slots at least.
                if parts != DeliveryParts::All || engine.ring(name).1.slots() >= 2 {
                    engine.deliver(name, tag, parts, slices, (lends[0], lends[1]));
                }
            }
            _ => {
                let count = 1 + plan.index(size);
                let mut leaders = plan.order(size);
                leaders.truncate(count);
                let (more_up, more_down) = (plan.index(3), plan.index(3));
                let (cuts_up, cuts_down) = (plan.below(2) == 0, plan.below(2) == 0);
                let takers = match plan.below(4) {
                    0 => Some(Takers::All),
                    1 => Some(Takers::Root(root)),
                    2 => Some(Takers::Owners),
                    _ => None,
                };
                match takers {
                    Some(takers) => {
                        engine.provide(RingName::Up, least_up_slots(count), more_up, cuts_up);
                        engine.provide(RingName::Down, LEAST_DOWN_SLOTS, more_down, cuts_down);
                        engine.shares(tag, &leaders, slices, takers, lends);
                    }
                    None => {
                        engine.provide(RingName::Down, 1, more_down, cuts_down);
                        engine.spread(tag, &leaders, slices, lends[0]);
                    }
                }
            }
        }
    }
}

fn run(seed: u64, calls: usize) {
    let mut shape = Random::new(seed ^ 0xabcd);
    let size = 1 + shape.index(8);
    let slots = [(); 3].map(|()| 1 + shape.index(5));
    // Sometimes the positions begin just below where stamps wrap.
    let begin = if shape.below(3) == 0 { (1 << 39) - shape.below(200) } else { 0 };
    assert!(Stamp::new(1 << 39, 5).same_position(Stamp::new(0, 0)), "stamps wrap after 2^39 positions");
    assert!(!Stamp::new(1 << 39, 0).same_position(Stamp(0)), "a word that was never written is no stamp");
    let word = |_| HeapWord(AtomicU64::new(0));
    let area = |_| Area {
        stamps: (0..MOST_SLOTS).map(word).collect(),
        done: word(0),
        cells: (0..MOST_SLOTS).map(|_| AtomicU64::new(0)).collect(),
        locations: (0..MOST_SLOTS).map(|_| [const { AtomicU64::new(0) }; 3]).collect(),
        claimed: (0..MOST_SLOTS).map(|_| AtomicU64::new(0)).collect(),
    };
    let areas: Arc<Vec<Area>> = Arc::new((0..3 * size).map(area).collect());
    let words = || (0..LONGEST).map(|_| AtomicU64::new(NOTHING)).collect();
    let buffers: Arc<Vec<Buffers>> = Arc::new((0..size).map(|_| Buffers { send: words(), receive: words() }).collect());
    std::thread::scope(|scope| {
        for rank in 0..size {
            let (areas, buffers) = (Arc::clone(&areas), Arc::clone(&buffers));
            scope.spawn(move || {
                let random = RefCell::new(Random::new(seed + 1000 * (rank as u64 + 1)));
                let board = HeapBoard { rank, size, areas, buffers, random, seed };
                let ring = |name: RingName| {
                    let mut ring = Ring::new(name, slots[name as usize], size);
                    ring.take(begin);
                    ring
                };
                let (line, up, down) = (ring(RingName::Line), ring(RingName::Up), ring(RingName::Down));
                make_calls(&mut Engine { board, line, up, down }, seed, calls);
            });
        }
    });
}

#[test]
fn random_calls_through_tiny_rings() {
    if let Ok(seed) = std::env::var("RINGS_SEED") {
        return run(seed.parse().expect("RINGS_SEED is a number"), 120);
    }
    let time = std::env::var("RINGS_SECONDS").map_or(8, |seconds| seconds.parse().expect("RINGS_SECONDS is a number"));
    let first =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |now| now.as_nanos() as u64 >> 10);
    let first = first % 1_000_000_000;
    eprintln!("seeds from {first} on (RINGS_SEED=N runs one again)");
    let start = Instant::now();
    let mut runs = 0;
    while start.elapsed() < Duration::from_secs(time) {
        run(first + runs, 120);
        runs += 1;
    }
    eprintln!("{runs} runs of 120 calls");
}
