//! A job one of whose ranks ends early: `dying_rank HOW WHERE VICTIM`.
//!
//! The victim writes `died at=NS` just before it ends, every other rank `survivor rank=R blames=K at=NS` when its
//! pending call has returned, and `later rank=R blames=K,K,K` for calls after that. Every rank writes its process
//! first. Survivors exit with [`SURVIVED`].
//!
//! WHERE is `unattached`, or `COLLECTIVE[:LENGTH[:MEMORY]]`; MEMORY is `private`, or `shared` for buffers of `alloc`,
//! or `mixed` where only what is given lies in one.
//!
//! Without more, the victim ends before the call that all others are in.
//! Behind `amid:` it makes the calls too, and ends by a thread of its own at some moment: while the others read its
//! buffers, or it theirs. Behind `inside:` (and by `operator`) it comes late, and ends when it combines.
//!
//! With MEMORY there are more calls: `reduce-to`, `gather-to` and `scatter-to`, `broadcast-to`, in which the victim is
//! the one, or one of those, that something goes to; and those of `blocks`, whose LENGTH is that of a block. A HOW that
//! is `nothing` has all make calls for ever.

#![forbid(unsafe_code)]

mod blocks;
mod calls;
mod memory;

use std::os::unix::process::{CommandExt, parent_id};
use std::process::{Command, ExitCode};
use std::time::Duration;

use calls::calls;
use hier::{Communicator, Error};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{Signal, raise};
use nix::time::{ClockId, clock_gettime};

/// The exit status of a rank that was told of the victim's end.
const SURVIVED: u8 = 9;

/// Longer than the launcher waits for the end of a rank that others blame.
const LONGER: Duration = Duration::from_millis(1500);

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
    let is_victim = rank == victim && how != "nothing";
    let (place, amid, inside) = match (place.strip_prefix("amid:"), place.strip_prefix("inside:")) {
        (Some(place), _) => (place, true, false),
        (_, Some(place)) => (place, false, true),
        _ => (place.as_str(), false, place == "operator"),
    };
    // Ends the victim inside of a call, while it combines.
    let combine = |left: &mut [u64], right: &[u64]| {
        if is_victim {
            let _ = die(how, None);
        }
        add(left, right);
    };
    let mut call = calls(&world, place, victim, if inside { Some(&combine) } else { None });
    if is_victim && amid {
        let how = how.clone();
        std::thread::spawn(move || {
            // Some moment: the process's number differs from run to run.
            std::thread::sleep(Duration::from_micros(100_000 + u64::from(std::process::id()) * 7919 % 5000));
            let _ = die(&how, None);
            std::process::abort();
        });
        // What the others see is told by them; this rank's end is the thread's.
        while call().is_ok() {}
        loop {
            std::thread::park();
        }
    }
    if is_victim {
        std::thread::sleep(Duration::from_millis(150));
        if inside {
            // It may be that only another one combines, for a while.
            let result = loop {
                if let Err(error) = call() {
                    break error;
                }
            };
            panic!("{how} in an operator: {result:?}");
        }
        drop(call);
        return die(how, Some(world));
    }
    let error = loop {
        if let Err(error) = call() {
            break error;
        }
    };
    drop(call);
    println!("survivor rank={rank} blames={} at={}", blamed(&error), now());
    let later = [world.barrier(), calls(&world, "allreduce:shares", victim, None)(), world.duplicate().map(drop)];
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

fn add(left: &mut [u64], right: &[u64]) {
    left.iter_mut().zip(right).for_each(|(left, right)| *left += right);
}

/// Waits until another rank has ended, a process of the same launcher as this one, where the system tells; and then longer
/// than the launcher leaves the first word on who failed to this rank.
fn outlive_another() {
    let launcher = parent_id();
    let others = || std::fs::read_to_string(format!("/proc/{launcher}/task/{launcher}/children")).ok();
    let count = || others().map(|others| others.split_whitespace().count()).filter(|&count| count > 1);
    if let Some(before) = count() {
        while count() >= Some(before) {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    std::thread::sleep(LONGER);
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
            outlive_another();
        }
        // The same, with results and buffers kept.
        "keep" => {
            let world = world.expect("a world");
            let kept = world.alloc_copy(&[1u64; 5000]).expect("a buffer");
            drop(world);
            outlive_another();
            drop(kept);
        }
        "forget" => std::mem::forget(world),
        other => panic!("{other:?} is no way to end"),
    }
    ExitCode::SUCCESS
}
