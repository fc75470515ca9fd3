//! The words and cells of all ranks on the heap, as one rank sees them, and what a seed has in store.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use shm_core::protocol::{Board, Edge, Location, Place, RingName, Until, Word};
use shm_core::{Links, Result};

/// Far longer than any wait here takes.
pub const WATCHDOG: Duration = Duration::from_secs(60);

pub struct HeapWord(pub AtomicU64);

impl Word for HeapWord {
    fn publish(&self, value: u64, _: Edge) {
        self.0.store(value, Ordering::Release);
    }

    fn observe(&self, _: Edge) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

pub struct Area {
    pub stamps: Vec<HeapWord>,
    pub done: HeapWord,
    pub cells: Vec<AtomicU64>,
    pub locations: Vec<[AtomicU64; 3]>,
    pub claimed: Vec<AtomicU64>,
}

/// Buffers of a rank that the others can reach: what it contributes, and what it gets, a word a slice (of a share).
pub struct Buffers {
    pub send: Vec<AtomicU64>,
    pub receive: Vec<AtomicU64>,
}

/// What no rank ever has to say.
pub const NOTHING: u64 = u64::MAX;

/// The length of all messages that are lent: ranks agree on it here.
pub const BYTES: usize = 8;

/// The places of a rank's two buffers.
pub const SEND: Place = Place::Heap(0);

pub const RECEIVE: Place = Place::Heap(1);

/// One rank's view of the words and cells of all ranks.
pub struct HeapBoard {
    pub rank: usize,
    pub size: usize,
    /// By ring, then by rank.
    pub areas: Arc<Vec<Area>>,
    /// By rank.
    pub buffers: Arc<Vec<Buffers>>,
    pub random: RefCell<Random>,
    pub seed: u64,
}

impl HeapBoard {
    pub fn area(&self, ring: RingName, rank: usize) -> &Area {
        &self.areas[ring as usize * self.size + rank]
    }

    pub fn fill(&self, ring: RingName, slot: usize, value: u64) {
        self.fill_of(ring, self.rank, slot, value);
    }

    pub fn fill_of(&self, ring: RingName, rank: usize, slot: usize, value: u64) {
        self.delay();
        self.area(ring, rank).cells[slot].store(value, Ordering::Relaxed);
    }

    pub fn read(&self, ring: RingName, from: usize, slot: usize) -> u64 {
        self.delay();
        self.area(ring, from).cells[slot].load(Ordering::Relaxed)
    }

    pub fn buffer(&self, rank: usize, place: Place) -> &[AtomicU64] {
        let buffers = &self.buffers[rank];
        match place {
            SEND => &buffers.send,
            RECEIVE => &buffers.receive,
            _ => panic!("seed {}, rank {}: {place:?} of rank {rank} is no buffer", self.seed, self.rank),
        }
    }

    /// Reads payload: from the slot, or from the buffer that it names.
    pub fn read_at(&self, ring: RingName, from: usize, slot: usize, place: Place, index: usize) -> u64 {
        match place {
            Place::Cell => return self.read(ring, from, slot),
            Place::CellOf(rank) => return self.read(ring, rank, slot),
            _ => {}
        }
        self.delay();
        self.buffer(from, place)[index].load(Ordering::Relaxed)
    }

    pub fn store(&self, rank: usize, place: Place, index: usize, value: u64) {
        self.delay();
        self.buffer(rank, place)[index].store(value, Ordering::Relaxed);
    }

    /// Writes both own buffers, as their owner does outside of a call: the first words of `send` as given, all else
    /// with nothing.
    pub fn rewrite(&self, send: impl Iterator<Item = u64>) {
        let buffers = &self.buffers[self.rank];
        for word in buffers.send.iter().chain(&buffers.receive) {
            word.store(NOTHING, Ordering::Relaxed);
        }
        for (word, value) in buffers.send.iter().zip(send) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Now and then lets the others go ahead.
    pub fn delay(&self) {
        let mut random = self.random.borrow_mut();
        if random.below(8) == 0 {
            for _ in 0..random.below(4) {
                std::thread::yield_now();
            }
        }
    }

    pub fn expect(&self, found: u64, expected: u64, what: &str) {
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
pub struct Random(pub u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % most
    }

    pub fn index(&mut self, most: usize) -> usize {
        self.below(most as u64) as usize
    }

    pub fn order(&mut self, size: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..size).collect();
        for i in (1..size).rev() {
            order.swap(i, self.index(i + 1));
        }
        order
    }

    /// Any tree with this root, as `rank` sees it; the leaves below some ranks are a relay with them, in any order.
    pub fn tree(&mut self, size: usize, root: usize, rank: usize) -> Links {
        let mut order = self.order(size);
        let at = order.iter().position(|&other| other == root).expect("the root is a rank");
        order.swap(0, at);
        let mut parent = vec![None; size];
        for place in 1..size {
            parent[order[place]] = Some(order[self.index(place)]);
        }
        let children = |of: usize| order.iter().copied().filter(|&other| parent[other] == Some(of)).collect::<Vec<_>>();
        let links = Links::new(parent[rank], &children(rank), size);
        // Drawn alike on all ranks.
        let relays: Vec<(bool, bool)> = (0..size).map(|_| (self.below(2) == 0, self.below(2) == 0)).collect();
        let head = match parent[rank] {
            Some(above) if children(rank).is_empty() && relays[above].0 => above,
            _ => rank,
        };
        let mut relay: Vec<usize> = children(head).into_iter().filter(|&child| children(child).is_empty()).collect();
        if !relays[head].0 || relay.is_empty() {
            return links;
        }
        if relays[head].1 {
            relay.reverse();
        }
        let from = relay.iter().position(|&other| other == rank).map_or(0, |at| at + 1);
        links.in_relay(&relay[from..])
    }
}

/// What `rank` has to say at `position` of its `part`.
pub fn word_of(rank: usize, position: u64, part: u64) -> u64 {
    (position << 16) + (part << 10) + rank as u64 + 1
}

pub fn sum_of(size: usize, position: u64, part: u64) -> u64 {
    (0..size).map(|rank| word_of(rank, position, part)).sum()
}
