//! Ranks that go by different lengths under one tag, with buffers that others can reach: the length beside the place of
//! each is all that keeps them from reading and storing beyond what was lent. Lengths with equal tags are found by
//! trying.

use std::collections::HashMap;
use std::ops::Range;
use std::process::Child;
use std::sync::Arc;

use crate::collective::{FROM_LEADERS, SHARED, TO_LEADERS, reduction_tag, tag_of, tag_of_call};
use crate::communicator::Communicator;
use crate::element::type_number;
use crate::error::{Error, Result};
use crate::job::{Job, JobSpec};
use crate::operator::{Fold, Sum};
use crate::processes::{ended, say_skipped, start};
use crate::reach::Reaching;
use crate::segment::layout::EXTENT;
use crate::select::Collective;
use crate::{Buffer, FlatPlan};

/// Numbers of ranks: of two both work on broadcasts and reductions.
const RANKS: [usize; 2] = [2, 3];

/// Extents of the heap: rank 0 has the first and the last of them for its buffers, with a free one before the last.
const fn extents(ranks: usize) -> usize {
    3 + 2 * (ranks - 1) + 2
}

/// What no call sums up to, moves, or stores.
const CANARY: u64 = 0xdead_beef_dead_beef;

/// The calls.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Allreduce,
    InPlace,
    Shared,
    Reduce,
    Broadcast,
    ToLeaders,
    FromLeaders,
}

const KINDS: [Kind; 7] =
    [Kind::Allreduce, Kind::InPlace, Kind::Shared, Kind::Reduce, Kind::Broadcast, Kind::ToLeaders, Kind::FromLeaders];

const ROOT: usize = 1;
const LEADERS: usize = 2;

/// The tag of a call of so many elements, before those that came before are chained to it.
fn tag(kind: Kind, len: usize) -> u32 {
    let fold = Fold::new::<u64, _>(&Sum);
    match kind {
        Kind::Allreduce | Kind::InPlace => reduction_tag(Collective::Allreduce, 0, &fold, len),
        Kind::Shared => tag_of_call(SHARED, 0, fold.kind, fold.code, len),
        Kind::Reduce => reduction_tag(Collective::Reduce, ROOT, &fold, len),
        Kind::Broadcast => tag_of(Collective::Broadcast, ROOT, type_number::<u64>(), 0, len),
        Kind::ToLeaders => tag_of_call(TO_LEADERS, LEADERS, fold.kind, fold.code, len),
        Kind::FromLeaders => tag_of_call(FROM_LEADERS, LEADERS, type_number::<u64>(), 0, len),
    }
}

/// Two lengths whose calls have one tag, the shorter first.
fn lengths(kind: Kind) -> [usize; 2] {
    let mut seen = HashMap::new();
    for len in 500..EXTENT / 8 {
        if let Some(shorter) = seen.insert(tag(kind, len), len) {
            return [shorter, len];
        }
    }
    panic!("{kind:?}: all tags differ");
}

/// Where a slice of `len` elements of a buffer lies: at the buffer's end, or amid canaries.
fn part(buffer: &[u64], len: usize, at_the_end: bool) -> Range<usize> {
    let start = if at_the_end { buffer.len() - len } else { (buffer.len() - len) / 2 };
    start..start + len
}

/// The memory that a rank uses: a slice each of two buffers, in the heap or private.
struct Memory {
    shared: Option<[Buffer<u64>; 2]>,
    private: [Vec<u64>; 2],
}

impl Memory {
    /// Whole extents, so that a buffer's end is an extent's end: of rank 0's second the heap's, with a free extent
    /// before; of the first one the end before another rank's extent or a free one.
    fn new(world: &Communicator) -> Result<Self> {
        let count = EXTENT / 8;
        let mut buffers = Vec::new();
        let mut fillers = Vec::new();
        for rank in 0..world.size() {
            if world.rank() == rank {
                buffers.push(world.alloc::<u64>(count)?);
                if rank == 0 {
                    // The extent that comes next stays free.
                    fillers.push(world.alloc::<u64>(count)?);
                }
            }
            world.barrier()?;
        }
        for rank in (0..world.size()).rev() {
            if world.rank() == rank {
                // What is left but one extent, so that the next one is the last of the heap.
                if rank == 0 {
                    fillers.push(world.alloc::<u64>(count)?);
                    fillers.push(world.alloc::<u64>(count)?);
                }
                buffers.push(world.alloc::<u64>(count)?);
            }
            world.barrier()?;
        }
        drop(fillers);
        let shared = buffers.try_into().ok();
        Ok(Self { shared, private: [vec![0; count], vec![0; count]] })
    }

    fn buffers(&mut self, shared: bool) -> [&mut [u64]; 2] {
        match &mut self.shared {
            Some([send, recv]) if shared => [send, recv],
            _ => self.private.each_mut().map(|buffer| &mut buffer[..]),
        }
    }
}

/// Makes a call of `len` elements, and checks that nothing was written beside the buffers, nor read from there.
fn call(comm: &Communicator, kind: Kind, len: usize, memory: [&mut [u64]; 2], at_the_end: bool) -> Result<()> {
    let [send, recv] = memory;
    let (from, to) = (part(send, len, at_the_end), part(recv, len, at_the_end));
    for buffer in [&mut *send, &mut *recv] {
        buffer.fill(CANARY);
    }
    send[from.clone()].fill(1);
    recv[to.clone()].fill(1);
    let root = comm.process_at_rank(ROOT);
    let ended = match kind {
        Kind::Allreduce => comm.all_reduce_into(&send[from.clone()], &mut recv[to.clone()], Sum),
        Kind::InPlace => comm.all_reduce_in_place(&mut recv[to.clone()], Sum),
        Kind::Shared => comm.all_reduce_shared(&send[from.clone()], Sum).map(drop),
        Kind::Reduce if comm.rank() == ROOT => root.reduce_into_root(&send[from.clone()], &mut recv[to.clone()], Sum),
        Kind::Reduce => root.reduce_into(&send[from.clone()], Sum),
        Kind::Broadcast => root.broadcast_into(&mut recv[to.clone()]),
        Kind::ToLeaders => comm.reduce_to_leaders(LEADERS, &send[from.clone()], &mut recv[to.clone()], Sum),
        Kind::FromLeaders => comm.gather_from_leaders(LEADERS, &mut recv[to.clone()]),
    };
    for (buffer, own) in [(send, from), (recv, to)] {
        let beside = buffer[..own.start].iter().chain(&buffer[own.end..]);
        assert!(beside.copied().all(|word| word == CANARY), "{kind:?} of {len}: something was stored beside a buffer");
        assert!(buffer[own].iter().all(|&word| word <= comm.size() as u64), "{kind:?} of {len}: read beside a buffer");
    }
    ended
}

/// Every call on communicators of their own, one rank going by another length than all others; returns how many there
/// were.
fn disagree(world: &Communicator, memory: &mut Memory, shared: bool) -> Result<usize> {
    let mut calls = 0;
    for kind in KINDS {
        let [shorter, longer] = lengths(kind);
        for odd in 0..world.size() {
            for (at_the_end, odd_is_longer) in [(true, true), (false, true), (true, false)] {
                let len = if (world.rank() == odd) == odd_is_longer { longer } else { shorter };
                let comm = world.duplicate()?;
                let own = call(&comm, kind, len, memory.buffers(shared), at_the_end);
                // Who has not found out by itself is told at the latest by the next call.
                let later = comm.barrier();
                for found in [own.err(), later.err()].into_iter().flatten() {
                    let told = matches!(found, Error::Mismatch { .. });
                    assert!(told, "{kind:?}, {len}, odd {odd}, rank {}: {found}", world.rank());
                }
                assert!(comm.health().is_err(), "{kind:?}, {len}, odd {odd}: rank {} was not told", world.rank());
                world.barrier()?;
                calls += 1;
            }
        }
        // The same with lengths that agree: the memory, and who reads it, are as they should be.
        let comm = world.duplicate()?;
        call(&comm, kind, longer, memory.buffers(shared), true)?;
    }
    Ok(calls)
}

fn job(ranks: usize, rules: &str) -> Job {
    let mut spec = JobSpec::new(ranks).unwrap();
    spec.heap = Some((extents(ranks) * EXTENT) as u64);
    // Short ones are lent too.
    spec.tuning.force(&format!("all:direct_from=1;{rules}")).unwrap();
    Job::create(&spec).unwrap()
}

/// All numbers of ranks with all of these rules.
fn cases<'a>(rules: &'a [&str]) -> impl Iterator<Item = (usize, &'a str)> {
    RANKS.into_iter().flat_map(|ranks| rules.iter().map(move |&rules| (ranks, rules)))
}

#[test]
fn lengths_with_one_tag_are_found() {
    for kind in KINDS {
        let [shorter, longer] = lengths(kind);
        assert!(shorter < longer && tag(kind, shorter) == tag(kind, longer), "{kind:?}: {shorter}, {longer}");
    }
}

#[test]
fn threads_that_disagree_on_the_length() {
    for (ranks, rules) in cases(&["all:cells", "all:cells,cell=1K", "all:shares;broadcast:cells"]) {
        let job = job(ranks, rules);
        job.on_threads(|world| {
            let mut memory = Memory::new(&world).unwrap();
            assert!(disagree(&world, &mut memory, true).unwrap() > 20 * world.size());
        });
    }
}

#[test]
fn processes_that_disagree_on_the_length() {
    let rules =
        ["all:cells", "all:shares;broadcast:cells", "all:cells;all:reach_from=1", "all:shares;all:reach_from=1"];
    for (ranks, rules) in cases(&rules) {
        let job = job(ranks, rules);
        let shared = if rules.contains("reach") { "0" } else { "1" };
        let children: Vec<Child> = (0..ranks)
            .map(|rank| start(&job, rank, "regime::lengths::process", &[("LENGTHS_SHARED", shared)]))
            .collect();
        let found = ended(children);
        match found[0].as_str() {
            "no reach" => say_skipped(&format!("{rules}: ranks do not reach each other's memory")),
            word => assert_eq!(word, "a mismatch everywhere", "{rules}"),
        }
        assert!(found.iter().all(|word| *word == found[0]), "{rules}: {found:?}");
    }
}

/// What a process of the test above does: not a test of its own.
#[test]
#[ignore = "the other tests start it"]
fn process() {
    let Ok(shared) = std::env::var("LENGTHS_SHARED") else { return };
    let invitation = crate::job::Invitation::from_environment().unwrap().unwrap();
    let world = invitation.accept(Arc::new(FlatPlan)).unwrap();
    // All have attached; each asks; then all know.
    world.barrier().unwrap();
    let _ = world.reaching();
    world.barrier().unwrap();
    if shared == "0" && world.reaching() != Reaching::Allowed {
        println!("found: no reach");
        return;
    }
    let mut memory = Memory::new(&world).unwrap();
    disagree(&world, &mut memory, shared == "1").unwrap();
    println!("found: a mismatch everywhere");
    world.barrier().unwrap();
}
