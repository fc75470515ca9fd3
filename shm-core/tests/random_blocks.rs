//! Random mixes of the collectives that move blocks, among others, with lengths around what a slot of lines holds; and
//! one rank that has another length than all others: nobody hangs, and nobody takes a wrong block for a right one.
//!
//! Everything follows from one seed: `PHALANX_TEST_SEED=.. cargo test --test random_blocks` repeats a run, the timing
//! apart.

use std::time::Duration;

use shm_core::FlatPlan;
use shm_core::job::JobSpec;
use shm_core::operator::Sum;
use shm_core::{Communicator, Error, Partition, PartitionMut};

/// A sequence of numbers that all ranks draw alike.
#[derive(Clone)]
struct Draw(u64);

impl Draw {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % most as u64) as usize
    }

    /// Elements of a block: mostly few, around the edges of words, lines and slots, and now and then many.
    fn length(&mut self) -> usize {
        const EDGES: [usize; 12] = [0, 1, 3, 7, 8, 62, 63, 64, 142, 143, 144, 145];
        match self.below(8) {
            0 => self.below(6000),
            1 => self.below(150),
            2 | 3 => EDGES[self.below(EDGES.len())],
            _ => self.below(12),
        }
    }
}

/// What rank `from` sends to rank `to` at a place, in a call.
fn value(call: usize, from: usize, to: usize, at: usize) -> u16 {
    (call * 7919 + from * 523 + to * 67 + at) as u16
}

fn row(call: usize, from: usize, to: usize, length: usize) -> impl Iterator<Item = u16> {
    (0..length).map(move |at| value(call, from, to, at))
}

/// Blocks of these lengths, with so many elements between them, backwards or not: displacements, and elements in all.
fn places(lengths: &[usize], gap: usize, backwards: bool) -> (Vec<usize>, usize) {
    let mut displs = vec![0; lengths.len()];
    let mut end = gap;
    for turn in 0..lengths.len() {
        let at = if backwards { lengths.len() - 1 - turn } else { turn };
        displs[at] = end;
        end += lengths[at] + gap;
    }
    (displs, end)
}

/// Makes one call. `wrong` is added to one of the lengths that this rank gives, where there is more than one rank that
/// knows it.
fn call(comm: &Communicator, number: usize, draw: &mut Draw, wrong: usize) -> Result<(), Error> {
    let (me, size) = (comm.rank(), comm.size());
    let kind = draw.below(9);
    let (length, gap, backwards) = (draw.length() + wrong, draw.below(3), draw.below(2) == 1);
    let (in_place, root) = (draw.below(3) == 0, draw.below(size));
    let mut table = vec![0; size * size];
    let (is_even, seldom) = (draw.below(4) == 0, draw.below(3) == 0);
    let same = draw.length() % 1500;
    for entry in &mut table {
        *entry = if is_even { same } else { draw.length() % if seldom { 3000 } else { 40 } };
    }
    let everybody = |from: usize, to: usize| table[size * from + to];
    match kind {
        0 => {
            let own: Vec<u16> = row(number, me, 0, length).collect();
            let mut all = vec![0; size * length];
            if in_place {
                all[me * length..][..length].copy_from_slice(&own);
                comm.all_gather_in_place(&mut all)?;
            } else {
                comm.all_gather_into(&own, &mut all)?;
            }
            assert!(
                (0..size).all(|from| all[from * length..][..length].iter().copied().eq(row(number, from, 0, length)))
            );
        }
        1 => {
            let mut lengths: Vec<usize> = (0..size).map(|rank| everybody(rank, rank)).collect();
            lengths[root] += wrong;
            let (displs, room) = places(&lengths, gap, backwards);
            let own: Vec<u16> = row(number, me, 0, lengths[me]).collect();
            let mut all = vec![9; room];
            if in_place {
                all[displs[me]..][..own.len()].copy_from_slice(&own);
                comm.all_gather_varcount_in_place(&mut PartitionMut::new(&mut all, &lengths, &displs))?;
            } else {
                comm.all_gather_varcount_into(&own, &mut PartitionMut::new(&mut all, &lengths, &displs))?;
            }
            assert!((0..size).all(|from| {
                all[displs[from]..][..lengths[from]].iter().copied().eq(row(number, from, 0, lengths[from]))
            }));
        }
        2 => {
            let send: Vec<u16> = (0..size).flat_map(|to| row(number, me, to, length)).collect();
            let mut recv = if in_place { send.clone() } else { vec![9; send.len()] };
            if in_place {
                comm.all_to_all_in_place(&mut recv)?;
            } else {
                comm.all_to_all_into(&send, &mut recv)?;
            }
            assert!(recv.into_iter().eq((0..size).flat_map(|from| row(number, from, me, length))));
        }
        3..=5 => {
            let of = |from: usize, to: usize| {
                if in_place { everybody(from.min(to), from.max(to)) } else { everybody(from, to) }
            };
            let sends: Vec<usize> = (0..size).map(|to| of(me, to)).collect();
            let mut gets: Vec<usize> = (0..size).map(|from| of(from, me)).collect();
            gets[(me + 1 + root % (size - 1)) % size] += wrong;
            let ((from_places, from_room), (to_places, to_room)) =
                (places(&sends, gap, false), places(&gets, gap, backwards));
            let mut recv = vec![9; to_room];
            if in_place {
                for to in 0..size {
                    recv[to_places[to]..][..gets[to]]
                        .iter_mut()
                        .zip(row(number, me, to, gets[to]))
                        .for_each(|(place, value)| *place = value);
                }
                comm.all_to_all_varcount_in_place(&mut PartitionMut::new(&mut recv, &gets, &to_places))?;
            } else {
                let mut send = vec![8; from_room];
                for to in 0..size {
                    send[from_places[to]..][..sends[to]]
                        .iter_mut()
                        .zip(row(number, me, to, sends[to]))
                        .for_each(|(place, value)| *place = value);
                }
                let send = Partition::new(&send, &sends, &from_places);
                comm.all_to_all_varcount_into(&send, &mut PartitionMut::new(&mut recv, &gets, &to_places))?;
            }
            for from in 0..size {
                let found = recv[to_places[from]..][..gets[from]].iter().copied();
                assert!(
                    found.eq(row(number, from, me, gets[from])),
                    "call {number}: from {from} to {me} of {size}, {table:?}, in place: {in_place}"
                );
            }
            let used: usize = gets.iter().sum();
            let gaps = recv.len() - used;
            assert_eq!(gaps, gap * (size + 1));
        }
        6 => {
            let mut lengths: Vec<usize> = (0..size).map(|rank| everybody(rank, rank)).collect();
            lengths[root] += wrong;
            let send: Vec<u16> = (0..size).flat_map(|to| row(number, me, to, lengths[to])).collect();
            let mut recv = vec![9; lengths[me]];
            comm.reduce_scatter_into(&send, &mut recv, &lengths, Sum)?;
            let sum = |at| (0..size).fold(0_u16, |sum, from| sum.wrapping_add(value(number, from, me, at)));
            assert!(recv.into_iter().eq((0..lengths[me]).map(sum)));
        }
        7 => {
            let process = comm.process_at_rank(root);
            let mut data: Vec<u16> = if me == root { row(number, root, 0, length).collect() } else { vec![9; length] };
            process.broadcast_into(&mut data)?;
            assert!(data.into_iter().eq(row(number, root, 0, length)));
            let own: Vec<u16> = row(number, me, 1, length).collect();
            if me == root {
                let mut all = vec![0; size * length];
                process.gather_into_root(&own, &mut all)?;
                assert!(all.into_iter().eq((0..size).flat_map(|from| row(number, from, 1, length))));
            } else {
                process.gather_into(&own)?;
            }
        }
        _ => {
            let mut sum: Vec<u64> = row(number, me, 0, length).map(u64::from).collect();
            comm.all_reduce_in_place(&mut sum, Sum)?;
            let expected = |at| (0..size).map(|from| u64::from(value(number, from, 0, at))).sum();
            assert!(sum.into_iter().eq((0..length).map(expected)));
        }
    }
    Ok(())
}

const RULES: [&str; 6] = [
    "all:auto",
    "all:auto,line_most=33,shares_from=400,cell=64,cells=2",
    "all:line",
    "all:cells,cell=64,cells=2",
    "broadcast:line;allreduce:exchange,cell=128,cells=3",
    "all:auto,line_most=200,flat_ranks=2",
];

fn seed_of_run() -> u64 {
    std::env::var("PHALANX_TEST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| {
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(1, |since| since.as_micros() as u64)
    })
}

fn world(size: usize, rules: &str, cores: usize) -> JobSpec {
    let mut spec = JobSpec::new(size).unwrap();
    // Short ones are lent too.
    spec.tuning.force(&format!("all:direct_from=1;{rules}")).unwrap();
    spec.cores = cores;
    spec
}

#[test]
fn mixes_of_blocks_bring_what_was_sent() {
    let first = seed_of_run();
    println!("PHALANX_TEST_SEED={first}");
    for size in 2..=8 {
        for (turn, rules) in RULES.into_iter().enumerate() {
            let seed = first.wrapping_mul(31).wrapping_add((size * RULES.len() + turn) as u64);
            let spec = world(size, rules, if turn % 2 == 0 { size } else { 1 });
            Communicator::threads_of(&spec, &(std::sync::Arc::new(FlatPlan) as _), |comm| {
                let (mut draw, mut late) = (Draw(seed), Draw(seed.wrapping_add(comm.rank() as u64)));
                for number in 0..300 {
                    if late.below(50) == 0 {
                        std::thread::sleep(Duration::from_micros(late.below(300) as u64));
                    }
                    call(&comm, number, &mut draw, 0).unwrap();
                }
            })
            .unwrap();
        }
    }
}

#[test]
fn another_length_on_one_rank_is_no_block_for_anybody() {
    let first = seed_of_run();
    println!("PHALANX_TEST_SEED={first}");
    for turn in 0..200_u64 {
        let mut lots = Draw(first.wrapping_mul(17).wrapping_add(turn));
        let (size, rules) = (2 + lots.below(4), RULES[lots.below(RULES.len())]);
        let (odd, at) = (lots.below(size), lots.below(6));
        let wrong = if lots.below(2) == 0 { 1 } else { 1 + lots.below(4000) };
        let spec = world(size, rules, if lots.below(2) == 0 { size } else { 1 });
        let outcomes = Communicator::threads_of(&spec, &(std::sync::Arc::new(FlatPlan) as _), |comm| {
            let mut draw = lots.clone();
            let begin = std::time::Instant::now();
            let outcome = (0..at + 4).try_for_each(|number| {
                let wrong = if number == at && comm.rank() == odd { wrong } else { 0 };
                call(&comm, number, &mut draw, wrong)?;
                if number >= at { comm.barrier() } else { Ok(()) }
            });
            assert!(begin.elapsed() < Duration::from_secs(60), "PHALANX_TEST_SEED={first}, turn {turn}");
            std::thread::sleep(Duration::from_millis(5));
            outcome
        });
        for (rank, outcome) in outcomes.unwrap().into_iter().enumerate() {
            assert!(outcome.is_err(), "PHALANX_TEST_SEED={first}, turn {turn}: rank {rank} of {size}, odd {odd}");
        }
    }
}
