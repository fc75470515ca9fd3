//! A job one of whose ranks ends early: `dying_rank HOW WHERE VICTIM`.
//!
//! The victim writes `died at=NS` just before it ends, every other rank `survivor rank=R blames=K at=NS` when its
//! pending call has returned, and `later rank=R blames=K,K,K` for calls after that. Every rank writes its process
//! first. Survivors exit with [`SURVIVED`].
//!
//! WHERE is `unattached`, `operator`, or `COLLECTIVE[:REGIME[:MEMORY]]`; MEMORY is `private`, or `shared` for buffers
//! of `alloc`. Behind `amid:` the victim makes the calls too, and ends by a thread of its own at some moment: while the
//! others read its buffers, or it theirs. With MEMORY, COLLECTIVE may be `reduce-to` as well: to the victim.

#![forbid(unsafe_code)]

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::time::Duration;

use hier::operator::{Sum, User};
use hier::{Buffer, Communicator, Error};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{Signal, raise};
use nix::time::{ClockId, clock_gettime};

/// The exit status of a rank that was told of the victim's end.
const SURVIVED: u8 = 9;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [how, place, victim] = &args[..] else { panic!("dying_rank HOW WHERE VICTIM") };
    let victim: usize = victim.parse().expect("a rank");
    let rank: usize = std::env::var("PHALANX_RANK").expect("a job").parse().expect("a rank");
    // No core files in the way.
    let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    println!("process rank={rank} pid={}", std::process::id());
    if place == "unattached" && rank == victim {
        std::thread::sleep(Duration::from_millis(150));
        return die(how, None);
    }
    let world = match Communicator::world() {
        Ok(world) => world,
        Err(error) => {
            println!("survivor rank={rank} blames={} at={}", blamed(&error), now());
            return ExitCode::from(SURVIVED);
        }
    };
    if place != "unattached" {
        world.barrier().expect("everybody is there");
    }
    let (place, amid) = match place.strip_prefix("amid:") {
        Some(place) => (place, true),
        None => (place.as_str(), false),
    };
    if rank == victim && amid && how != "nothing" {
        let how = how.clone();
        std::thread::spawn(move || {
            // Some moment: the process's number differs from run to run.
            std::thread::sleep(Duration::from_micros(100_000 + u64::from(std::process::id()) * 7919 % 5000));
            let _ = die(&how, None);
            std::process::abort();
        });
        // What the others see is told by them; this rank's end is the thread's.
        while call(&world, place, victim).is_ok() {}
        loop {
            std::thread::park();
        }
    }
    if rank == victim {
        std::thread::sleep(Duration::from_millis(150));
        if place == "operator" {
            // Ends inside of a call, while it combines.
            let ends = User::commutative(|left: &mut [u64], _: &[u64]| {
                left[0] = 0;
                let _ = die(how, None);
            });
            let mut sum = [1; 3000];
            let result = world.all_reduce_in_place(&mut sum, ends);
            panic!("{how} in an operator: {result:?}");
        }
        return die(how, Some(world));
    }
    let error = loop {
        if let Err(error) = call(&world, place, victim) {
            break error;
        }
    };
    println!("survivor rank={rank} blames={} at={}", blamed(&error), now());
    let later = [world.barrier(), call(&world, "allreduce:shares", victim), world.duplicate().map(drop)];
    let later: Vec<String> =
        later.iter().map(|result| result.as_ref().map_or_else(blamed, |()| "nobody".to_owned())).collect();
    println!("later rank={rank} blames={}", later.join(","));
    ExitCode::from(SURVIVED)
}

/// Whom an error names.
fn blamed(error: &Error) -> String {
    match error {
        Error::RankFailed { rank } => rank.to_string(),
        other => format!("{other:?}"),
    }
}

fn now() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("a clock");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}

/// The call in which the survivors are when the victim ends.
fn call(world: &Communicator, place: &str, victim: usize) -> Result<(), Error> {
    let mut words = place.split(':');
    let collective = words.next().unwrap_or_default();
    let regime = words.next().unwrap_or("line");
    if let Some(memory) = words.next() {
        return long_call(world, collective, memory, victim);
    }
    let elements = match regime {
        "line" if collective == "operator" => 3000,
        "line" => 1,
        "cells" => 700,
        _ => 20_000,
    };
    let mut buffer = vec![1u64; elements];
    match collective {
        "barrier" | "unattached" => world.barrier(),
        "allreduce" => world.all_reduce_in_place(&mut buffer, Sum),
        // The victim's operator ends the victim.
        "operator" => world.all_reduce_in_place(&mut buffer, User::commutative(add)),
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

/// A call, most of them with buffers that others reach, long enough to end amid it.
fn long_call(world: &Communicator, collective: &str, memory: &str, victim: usize) -> Result<(), Error> {
    const ELEMENTS: usize = 200_000;
    let buffer = |value: u64| -> Result<Memory, Error> {
        Ok(match memory {
            "shared" => Memory::Shared(world.alloc_copy(&vec![value; ELEMENTS])?),
            _ => Memory::Private(vec![value; ELEMENTS]),
        })
    };
    let (mut send, mut recv) = (buffer(1)?, buffer(0)?);
    let size = world.size() as u64;
    let outcome = match collective {
        "broadcast" => {
            send.slice().fill(if world.rank() == victim { size } else { 0 });
            world.process_at_rank(victim).broadcast_into(send.slice()).map(|()| send.slice()[ELEMENTS - 1])
        }
        "reduce" | "reduce-to" => {
            let root = if collective == "reduce" { (victim + 1) % world.size() } else { victim };
            let process = world.process_at_rank(root);
            if world.rank() == root {
                process.reduce_into_root(send.slice(), recv.slice(), Sum).map(|()| recv.slice()[ELEMENTS - 1])
            } else {
                process.reduce_into(send.slice(), Sum).map(|()| size)
            }
        }
        "view" => world.all_reduce_shared(send.slice(), Sum).map(|sum| sum[ELEMENTS - 1]),
        _ => world.all_reduce_into(send.slice(), recv.slice(), Sum).map(|()| recv.slice()[ELEMENTS - 1]),
    };
    assert!(
        outcome.as_ref().map_or(true, |&last| last == size),
        "a wrong answer beside a rank that ended: {outcome:?}"
    );
    outcome.map(drop)
}

/// Memory that a rank has for itself, or that others can reach.
enum Memory {
    Private(Vec<u64>),
    Shared(Buffer<u64>),
}

impl Memory {
    fn slice(&mut self) -> &mut [u64] {
        match self {
            Memory::Private(values) => values,
            Memory::Shared(values) => values,
        }
    }
}

fn add(left: &mut [u64], right: &[u64]) {
    left.iter_mut().zip(right).for_each(|(left, right)| *left += right);
}

fn die(how: &str, world: Option<Communicator>) -> ExitCode {
    println!("died at={}", now());
    match how {
        "exit:0" => std::process::exit(0),
        "exit:3" => std::process::exit(3),
        "abort" => std::process::abort(),
        "panic" => panic!("the victim panics"),
        "kill" => raise(Signal::SIGKILL).expect("a signal"),
        // The first one only takes the handler of Rust's runtime away.
        "segv" => (0..2).for_each(|_| raise(Signal::SIGSEGV).expect("a signal")),
        "term" => raise(Signal::SIGTERM).expect("a signal"),
        "exec" => panic!("{}", Command::new("true").exec()),
        // Leaves in good order while others count on it: at once, or long before its process ends.
        "return" => drop(world),
        "drop" => {
            drop(world);
            std::thread::sleep(Duration::from_millis(1500));
        }
        // The same, with results and buffers kept.
        "keep" => {
            let world = world.expect("a world");
            let kept = world.alloc_copy(&[1u64; 5000]).expect("a buffer");
            drop(world);
            std::thread::sleep(Duration::from_millis(1500));
            drop(kept);
        }
        "forget" => std::mem::forget(world),
        other => panic!("{other:?} is no way to end"),
    }
    ExitCode::SUCCESS
}
