//! Random calls through tiny rings: the protocols over words on the heap, with more ranks, trees, leaders and slots
//! than a model checker has time for.
//!
//! Trees, roots, leaders, slots and the order of calls come from a seed, which is printed; `RINGS_SEED` runs one again.
//! What a rank waits for, once there, stays until that rank has read it, so that whether a run ends does not depend on
//! the schedule: a shape that can deadlock does so here, and the watchdog in the wait says where.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use shm_core::protocol::exchange::LEAST_SLICE_SLOTS;
use shm_core::protocol::shares::{LEAST_DOWN_SLOTS, Takers, least_up_slots};
use shm_core::protocol::{Ring, RingName, Stamp};

#[path = "random_rings/board.rs"]
mod board;
#[path = "random_rings/delivery.rs"]
mod delivery;
#[path = "random_rings/exchange.rs"]
mod exchange;
#[path = "random_rings/flat.rs"]
mod flat;
#[path = "random_rings/joint.rs"]
mod joint;
#[path = "random_rings/shares.rs"]
mod shares;
#[path = "random_rings/steps.rs"]
mod steps;

use board::{Area, BYTES, Buffers, HeapBoard, HeapWord, NOTHING, RECEIVE, Random, SEND, sum_of, word_of};
use delivery::DeliveryParts;

/// The most slots of any ring here.
const MOST_SLOTS: usize = 24;

/// The most slices of a call: seven rounds of eight leaders.
const LONGEST: usize = 56;

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

    /// Cuts a ring anew if it has fewer slots than that, and sometimes if it has enough: what follows an uncut ring
    /// meets what the call before has left in it.
    fn provide(&mut self, name: RingName, least: usize, more: usize, anyway: bool) {
        let (board, ring) = self.ring(name);
        if ring.slots() < least || anyway {
            ring.reshape(board, least + more).unwrap();
        }
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
                engine.joint(tag, root, name, slices, lends[0], lends[1]);
            }
            6 => {
                // Lines are never cut anew in a communicator, but nothing in the ring forbids it.
                let slots = 1 + plan.index(6);
                let (board, ring) = engine.ring(name);
                ring.reshape(board, slots).unwrap();
            }
            7..10 => {
                // All offer, and all reach each other, in some of the calls.
                let all = plan.below(2) == 0;
                let parts = match plan.below(7) {
                    6 => {
                        if engine.up.slots() >= 2 {
                            engine.offer_all(tag, slices, [lends[0] || all, lends[1] || all, lends[2]]);
                        }
                        continue;
                    }
                    5 => {
                        engine.open(tag, root, slices, lends);
                        continue;
                    }
                    4 => {
                        engine.offer(name, tag, root, slices, lends);
                        continue;
                    }
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
    let [some, all] = [&shares::SOME_DECLINED, &shares::ALL_DECLINED].map(|calls| calls.load(Ordering::Relaxed));
    eprintln!("{runs} runs of 120 calls; slices were declined: all in {all} calls, some in {some}");
    assert!(runs < 1000 || some > 0 && all > 0, "nobody has gone on without a root");
}
