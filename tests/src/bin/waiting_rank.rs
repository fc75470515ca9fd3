//! A job one of whose ranks comes late: `waiting_rank LATE MILLISECONDS COLLECTIVE`. The others say how much processor
//! time their wait took, as `waited rank=R cpu_us=C wall_ms=W sleeps=S`.

#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

use hier::Communicator;
use hier::operator::Sum;
use nix::sys::resource::{UsageWho, getrusage};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| args[at].parse::<u64>().expect("a number");
    let (late, pause) = (number(0) as usize, Duration::from_millis(number(1)));
    let world = Communicator::world().expect("the world");
    let mut vector = vec![1u64; 4000];
    // Everything that happens once, before.
    for _ in 0..3 {
        world.all_reduce_in_place(&mut vector, Sum).expect("a sum");
        world.barrier().expect("a barrier");
    }
    vector.fill(1);
    world.reset_counters();
    let (begin, before) = (Instant::now(), used());
    if world.rank() == late {
        std::thread::sleep(pause);
    }
    let root = world.process_at_rank(late);
    match args[2].as_str() {
        "barrier" => world.barrier(),
        "line" => world.all_reduce_in_place(&mut vector[..1], Sum),
        "cells" => world.all_reduce_in_place(&mut vector[..300], Sum),
        "shares" => world.all_reduce_in_place(&mut vector, Sum),
        "broadcast" => root.broadcast_into(&mut vector),
        "duplicate" => world.duplicate().map(drop),
        other => panic!("{other:?} is no collective"),
    }
    .expect("the call");
    let (wall, cpu) = (begin.elapsed(), used() - before);
    if world.rank() != late {
        let sleeps = world.counters().sleeps;
        println!(
            "waited rank={} cpu_us={} wall_ms={} sleeps={sleeps}",
            world.rank(),
            cpu.as_micros(),
            wall.as_millis()
        );
    }
    // The one that is late does not leave before the others have written down their times.
    world.barrier().expect("a barrier");
}

/// Processor time of this process.
fn used() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("the usage of this process");
    let sum = usage.user_time() + usage.system_time();
    Duration::new(sum.tv_sec() as u64, sum.tv_usec() as u32 * 1000)
}
