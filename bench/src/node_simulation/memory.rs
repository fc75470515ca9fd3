//! The cost model: which core holds which line or cell, and what it costs to get at it. Pure: times come in and go out.
//!
//! *Lines* are flag words with what shares their cache line. A store to a line that others hold is visible once they
//! have given it up (`own`); a load of a line that another core has written takes `fetch`, by distance. The nearest
//! copy serves: where one core of an L3 cache has fetched a line from afar, its neighbours get it from that cache. A
//! copy serves one core after the other, `serve` apart. Loads that a core issues one after the other overlap, `gap`
//! apart (a [`Streak`]).
//!
//! *Cells* hold payload. Loading one costs by bytes and distance, and its copies serve all readers at a bounded rate;
//! what crosses sockets takes the link between them, one after the other. A cell that others have read costs more to
//! fill again. *Private* buffers lie in the own cache, in the L3 cache or in memory, by how much is touched.

use super::figures::{Costs, Distance, Time};
use super::places::{Place, Ranks};

/// "Not there".
const NEVER: Time = Time::MAX;

/// Values of a word that are remembered: the readers of an older one have it in sight before so many newer ones come.
const REMEMBERED: usize = 4;

/// A copy in an L3 cache's reach.
#[derive(Clone, Copy, Debug)]
struct Shelf {
    /// From when on it is there.
    since: Time,
    /// Until when it serves others.
    busy: Time,
}

/// Who has copies.
#[derive(Clone, Debug, Default)]
struct Copies {
    holders: Ranks,
    /// By L3 cache; empty while nobody has written.
    shelves: Vec<Shelf>,
}

/// A flag word's cache line.
#[derive(Clone, Debug, Default)]
struct Line {
    /// The last values, with when each is visible.
    history: Vec<(u64, Time)>,
    copies: Copies,
}

/// Loads of one rank that overlap: when the first was issued, while nothing else came between.
#[derive(Clone, Copy, Debug, Default)]
pub struct Streak {
    since: Option<Time>,
}

impl Streak {
    /// Ends it: something else was done, or waited for.
    pub fn end(&mut self) {
        self.since = None;
    }
}

/// Where a rank's private buffers lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// In the core's own cache.
    Own,
    /// In the L3 cache.
    L3,
    /// In memory.
    Memory,
}

/// What crossed which distance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Lines fetched, by [`Distance`].
    pub lines: [u64; 3],
    /// Cells loaded, by [`Distance`].
    pub cells: [u64; 3],
    /// Their bytes.
    pub bytes: [u64; 3],
}

/// Lines, cells and what serves them.
#[derive(Clone, Debug)]
pub struct Memory {
    /// What things cost.
    pub costs: Costs,
    places: Vec<Place>,
    /// A place of each L3 cache.
    l3s: Vec<Place>,
    lines: Vec<Line>,
    cells: Vec<Copies>,
    /// When the last store of each rank is visible: stores become so in their order.
    drained: Vec<Time>,
    /// Until when a link is busy, by socket from which, then to which.
    links: Vec<Time>,
    /// Until when a socket's memory is busy.
    memories: Vec<Time>,
    /// What has crossed which distance.
    pub traffic: Traffic,
}

/// The time of `bytes` bytes.
fn stream(bytes: usize, byte: f64) -> Time {
    (bytes as f64 * byte).round() as Time
}

impl Memory {
    /// A machine on which ranks sit at `places`, with so many lines and cells that nobody has touched.
    pub fn new(costs: Costs, places: Vec<Place>, lines: usize, cells: usize) -> Memory {
        let count = places.iter().map(|place| place.l3).max().map_or(1, |most| most + 1);
        let mut l3s = vec![Place { package: 0, numa: 0, l3: 0 }; count];
        places.iter().for_each(|&place| l3s[place.l3] = place);
        let packages = places.iter().map(|place| place.package).max().map_or(1, |most| most + 1);
        Memory {
            drained: vec![0; places.len()],
            links: vec![0; packages * packages],
            memories: vec![0; packages],
            lines: vec![Line::default(); lines],
            cells: vec![Copies::default(); cells],
            traffic: Traffic::default(),
            costs,
            places,
            l3s,
        }
    }

    /// How far two ranks are from each other.
    pub fn distance(&self, rank: usize, other: usize) -> Distance {
        self.places[rank].to(self.places[other])
    }

    /// The newest value of a line, whether or not it is visible yet.
    pub fn newest(&self, line: usize) -> u64 {
        self.lines[line].history.last().map_or(0, |(value, _)| *value)
    }

    /// When a value that `holds` is, or will be, visible: the oldest that is remembered.
    pub fn visible(&self, line: usize, holds: impl Fn(u64) -> bool) -> Option<(u64, Time)> {
        self.lines[line].history.iter().copied().find(|&(value, _)| holds(value))
    }

    /// A load of a line at `now`; returns when it is done.
    pub fn load(&mut self, rank: usize, line: usize, now: Time, streak: &mut Streak) -> Time {
        let Memory { lines, places, l3s, costs, traffic, .. } = self;
        let copies = &mut lines[line].copies;
        if copies.holders.has(rank) {
            return now + costs.look;
        }
        let own = places[rank].l3;
        copies.begin(l3s.len());
        let (from, distance) = copies.nearest(places[rank], l3s);
        let d = distance as usize;
        // Issued while the load before was under way, if there was one.
        let (issued, earliest) = match streak.since {
            Some(first) => ((now + costs.gap[d]).saturating_sub(costs.fetch[d]).max(first), now + costs.gap[d]),
            None => (now, now),
        };
        streak.since.get_or_insert(now);
        let shelf = &mut copies.shelves[from];
        let (since, busy) = if shelf.since == NEVER { (0, 0) } else { (shelf.since, shelf.busy) };
        let served = issued.max(busy);
        shelf.busy = served + costs.serve[d];
        // A neighbour may be fetching it from afar at this moment: then it is handed on when it comes.
        let handed =
            if issued < since { (served + costs.gap[d]).max(issued + costs.fetch[d]) } else { served + costs.fetch[d] };
        let done = handed.max(earliest);
        if copies.shelves[own].since == NEVER {
            copies.shelves[own] = Shelf { since: done, busy: done };
        }
        copies.holders.add(rank);
        traffic.lines[d] += 1;
        done
    }

    /// A store to an own line at `now`, behind `more` other lines that are stored before it; returns when it is
    /// visible.
    pub fn store(&mut self, rank: usize, line: usize, value: u64, now: Time, more: usize) -> Time {
        let Memory { lines, places, l3s, costs, drained, .. } = self;
        let line = &mut lines[line];
        let mut visible = now.max(drained[rank]);
        if let Some(distance) = line.copies.farthest(rank, places) {
            let d = distance as usize;
            let behind = costs.gap[d] * (more as Time + 1);
            visible = (now + costs.own[d] + costs.gap[d] * more as Time).max(drained[rank] + behind);
        }
        drained[rank] = visible;
        line.copies.written(rank, places[rank].l3, l3s.len(), visible);
        if line.history.len() == REMEMBERED {
            line.history.remove(0);
        }
        line.history.push((value, visible));
        visible
    }

    /// Loading `bytes` bytes of a cell at `now`; `first` when nothing else is under way: then its first line is waited
    /// for.
    pub fn read(&mut self, rank: usize, cell: usize, bytes: usize, now: Time, first: bool) -> Time {
        if bytes == 0 {
            return now;
        }
        let Memory { cells, places, l3s, costs, links, traffic, .. } = self;
        let copies = &mut cells[cell];
        if copies.holders.has(rank) {
            return now + stream(bytes, costs.own_byte);
        }
        let own = places[rank].l3;
        copies.begin(l3s.len());
        let (from, distance) = copies.nearest(places[rank], l3s);
        let d = distance as usize;
        let latency = if first { costs.fetch[d] } else { 0 };
        let mut done = now + latency + stream(bytes, costs.read[d]);
        let shelf = &mut copies.shelves[from];
        if shelf.since != NEVER {
            done = done.max(shelf.since + costs.gap[d]);
        }
        let busy = now.max(if shelf.busy == NEVER { 0 } else { shelf.busy }) + stream(bytes, costs.serve_byte);
        shelf.busy = busy;
        done = done.max(busy);
        if distance == Distance::Other {
            let packages = l3s.iter().map(|place| place.package).max().unwrap_or(0) + 1;
            let link = &mut links[l3s[from].package * packages + places[rank].package];
            *link = now.max(*link) + stream(bytes, costs.link_byte);
            done = done.max(*link);
        }
        if copies.shelves[own].since == NEVER {
            copies.shelves[own] = Shelf { since: done, busy: now };
        }
        copies.holders.add(rank);
        traffic.cells[d] += 1;
        traffic.bytes[d] += bytes as u64;
        done
    }

    /// A rank that has just loaded a cell, to store to it next, has its lines for itself.
    pub fn take(&mut self, rank: usize, cell: usize, now: Time) {
        let Memory { cells, places, l3s, .. } = self;
        cells[cell].written(rank, places[rank].l3, l3s.len(), now);
    }

    /// Storing `bytes` bytes to a cell at `now`: an own one, or one that it has taken.
    pub fn write(&mut self, rank: usize, cell: usize, bytes: usize, now: Time) -> Time {
        let Memory { cells, places, l3s, costs, .. } = self;
        let copies = &mut cells[cell];
        let byte = copies.farthest(rank, places).map_or(costs.own_byte, |distance| costs.write[distance as usize]);
        let done = now + stream(bytes, byte);
        copies.written(rank, places[rank].l3, l3s.len(), done);
        done
    }

    /// Loading or storing `bytes` bytes of private buffers at `now`.
    pub fn private(&mut self, rank: usize, bytes: usize, level: Level, now: Time) -> Time {
        match level {
            Level::Own => now + stream(bytes, self.costs.own_byte),
            Level::L3 => now + stream(bytes, self.costs.l3_byte),
            Level::Memory => {
                let memory = &mut self.memories[self.places[rank].package];
                *memory = now.max(*memory) + stream(bytes, self.costs.memory_socket_byte);
                (now + stream(bytes, self.costs.memory_core_byte)).max(*memory)
            }
        }
    }
}

impl Copies {
    /// Makes shelves where nobody has written: what was never written lies nowhere in particular.
    fn begin(&mut self, count: usize) {
        if self.shelves.is_empty() {
            self.shelves = vec![Shelf { since: NEVER, busy: NEVER }; count];
        }
    }

    /// The L3 cache that serves a core, and how far it is. What nobody has lies in the own socket.
    fn nearest(&self, place: Place, l3s: &[Place]) -> (usize, Distance) {
        let there = (0..l3s.len()).filter(|&l3| self.shelves[l3].since != NEVER);
        let least = there.map(|l3| (place.to(l3s[l3]), self.shelves[l3].since, l3)).min();
        least.map_or((place.l3, Distance::L3), |(distance, _, l3)| (l3, distance))
    }

    /// The farthest of those who hold a copy beside the owner, if there are any.
    fn farthest(&self, owner: usize, places: &[Place]) -> Option<Distance> {
        self.holders.iter().filter(|&rank| rank != owner).map(|rank| places[owner].to(places[rank])).max()
    }

    /// Written by its owner: the others' copies are gone.
    fn written(&mut self, owner: usize, l3: usize, count: usize, at: Time) {
        self.holders = Ranks::only(owner);
        self.shelves.clear();
        self.shelves.resize(count, Shelf { since: NEVER, busy: NEVER });
        self.shelves[l3] = Shelf { since: at, busy: at };
    }
}
