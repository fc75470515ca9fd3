//! The calls in which ranks are when one of them ends: those that the table of algorithms knows.

use hier::operator::{Operator, Sum, User};
use hier::{Communicator, Error};

use crate::blocks::Blocks;
use crate::memory::{Memory, all_are};

/// What an operator does, where that is not [`Sum`].
pub type Combine<'a> = &'a dyn Fn(&mut [u64], &[u64]);

/// A call that is made again and again.
pub type Calls<'a> = Box<dyn FnMut() -> Result<(), Error> + 'a>;

/// The calls of a place: `COLLECTIVE[:LENGTH[:MEMORY]]`.
pub fn calls<'a>(world: &'a Communicator, place: &'a str, victim: usize, combine: Option<Combine<'a>>) -> Calls<'a> {
    let mut words = place.split(':');
    let collective = words.next().unwrap_or_default();
    let length = words.next().unwrap_or("line");
    let Some(memory) = words.next() else {
        return Box::new(move || short_call(world, (collective, length), victim, combine));
    };
    match Blocks::of(world, (collective, length, memory), victim) {
        Some(mut blocks) => Box::new(move || blocks.call(combine)),
        None => Box::new(move || match combine {
            None => long_call(world, (collective, length, memory), victim, Sum),
            Some(combine) => long_call(world, (collective, length, memory), victim, User::commutative(combine)),
        }),
    }
}

/// A call with private buffers of its own.
fn short_call(
    world: &Communicator,
    (collective, length): (&str, &str),
    victim: usize,
    combine: Option<Combine<'_>>,
) -> Result<(), Error> {
    let elements = match length {
        "line" if collective == "operator" => 3000,
        "line" => 1,
        "cells" => 700,
        _ => 20_000,
    };
    let mut buffer = vec![1u64; elements];
    match collective {
        "barrier" | "unattached" => world.barrier(),
        "allreduce" => world.all_reduce_in_place(&mut buffer, Sum),
        "operator" => world.all_reduce_in_place(&mut buffer, User::commutative(combine.expect("an operator"))),
        "broadcast" => world.process_at_rank(victim).broadcast_into(&mut buffer),
        "reduce" => {
            let root = (victim + 1) % world.size();
            let process = world.process_at_rank(root);
            if world.rank() == root {
                process.reduce_into_root_in_place(&mut buffer, Sum)
            } else {
                process.reduce_into(&buffer, Sum)
            }
        }
        "split" => world.split(Some(world.rank() as u32 % 2), 0).map(drop),
        other => panic!("{other:?} is no place"),
    }
}

/// A call whose answer is looked at, most of them with buffers that others reach, long enough to end amid it.
fn long_call(
    world: &Communicator,
    (collective, length, memory): (&str, &str, &str),
    victim: usize,
    operator: impl Operator<u64>,
) -> Result<(), Error> {
    let elements = match length {
        "line" => 3,
        "slice" => 4000,
        _ => 200_000,
    };
    let (rank, size) = (world.rank(), world.size());
    let root = if matches!(collective, "broadcast" | "reduce-to") { victim } else { (victim + 1) % size };
    let process = world.process_at_rank(root);
    let gives = !collective.starts_with("broadcast") || rank == root;
    let shared = |gives: bool| memory == "shared" || memory == "mixed" && gives;
    let mut send = Memory::new(world, shared(gives), elements, 1)?;
    let mut recv = Memory::new(world, shared(false), elements, 0)?;
    let (send, recv, sum) = (send.slice(), recv.slice(), size as u64);
    let right = match collective {
        "broadcast" | "broadcast-to" => {
            send.fill(if rank == root { sum } else { 0 });
            process.broadcast_into(send).map(|()| all_are(send, sum))
        }
        "reduce" | "reduce-to" if rank == root => {
            process.reduce_into_root(send, recv, operator).map(|()| all_are(recv, sum))
        }
        "reduce" | "reduce-to" => process.reduce_into(send, operator).map(|()| true),
        "view" => world.all_reduce_shared(send, operator).map(|view| all_are(&view, sum)),
        "allreduce" => world.all_reduce_into(send, recv, operator).map(|()| all_are(recv, sum)),
        other => panic!("{other:?} is no place"),
    }?;
    assert!(right, "a wrong answer of {collective} beside a rank that ended");
    Ok(())
}
