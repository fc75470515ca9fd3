//! Jobs that cannot go on. Each rank writes what it was told in a line `told RANK: ..`.

use std::io::Write;
use std::time::{Duration, Instant};

use hier::operator::Sum;
use mpi::topology::SimpleCommunicator;
use mpi::traits::Communicator as _;
use nix::sys::signal::{Signal, raise};
use phalanx_tests::Communicator;
use phalanx_tests::mix::Mix;

use crate::collectives;
use crate::watch::step;

/// Writes a line in one piece.
fn told(rank: usize, text: &str) {
    let line = format!("told {rank}: {text}\n");
    let mut out = std::io::stdout().lock();
    out.write_all(line.as_bytes()).expect("standard output");
    out.flush().expect("standard output");
}

/// A program that never initialises MPI.
pub fn unready() {
    match Communicator::from_mpi(&SimpleCommunicator::world()) {
        Ok(_) => panic!("a communicator without MPI"),
        Err(error) => told(0, &error.to_string()),
    }
}

/// A program that was built for another MPI than the launcher's.
pub fn alone(world: &SimpleCommunicator) {
    match Communicator::from_mpi(world) {
        Ok(comm) => panic!("a communicator of {} ranks", comm.size()),
        Err(error) => told(0, &error.to_string()),
    }
}

/// One rank's buffers differ in length from each other.
pub fn lengths(world: &SimpleCommunicator, culprit: usize) {
    let comm = collectives(world);
    let rank = comm.rank();
    comm.barrier().expect("a barrier");
    // An error ends earlier calls too, in which other ranks may still be.
    std::thread::sleep(Duration::from_millis(200));
    let mut recv = [0_u64; 300];
    let send = if rank == culprit { &[1; 299][..] } else { &[1; 300] };
    finds_out(&comm, || comm.all_reduce_into(send, &mut recv, Sum));
}

/// The ranks of each node have agreed on a count, those of different nodes have not: so many elements more on the
/// second.
pub fn counts(world: &SimpleCommunicator, more: usize) {
    let comm = collectives(world);
    let node = comm.placement().node_of(comm.rank());
    comm.barrier().expect("a barrier");
    std::thread::sleep(Duration::from_millis(200));
    let mut buffer = vec![1_u64; if node == 1 { 300 + more } else { 300 }];
    finds_out(&comm, || comm.all_reduce_in_place(&mut buffer, Sum));
}

/// A rank leaves for MPI_Finalize while the others are in a call: in good order, or by a panic.
pub fn leave(world: &SimpleCommunicator, how: &str, leaver: usize) {
    let comm = collectives(world);
    let rank = comm.rank();
    comm.barrier().expect("a barrier");
    if rank != leaver {
        return finds_out(&comm, || comm.all_reduce_in_place(&mut [1_u64; 300], Sum));
    }
    std::thread::sleep(Duration::from_millis(200));
    told(rank, how);
    if how == "panics" {
        // Without the hook, which would end the process.
        std::panic::resume_unwind(Box::new(()));
    }
}

/// Calls until there is an error, and once more.
fn finds_out<E: std::fmt::Display>(comm: &Communicator, mut call: impl FnMut() -> Result<(), E>) {
    let begin = Instant::now();
    // A rank whose part ends before the mistake shows is told in the next call.
    let error = loop {
        if let Err(error) = call() {
            break error;
        }
        assert!(begin.elapsed() < Duration::from_secs(20), "rank {}: no error in 20 s", comm.rank());
    };
    told(comm.rank(), &error.to_string());
    let again = comm.barrier().expect_err("a communicator that has failed").to_string();
    assert!(again.contains("cannot be used further"), "rank {}: {again}", comm.rank());
}

/// A rank is killed in the midst of allreduces.
pub fn die(world: &SimpleCommunicator, victim: usize) {
    let comm = collectives(world);
    let rank = comm.rank();
    // The launcher's SIGTERM is not to be quicker than the last line.
    block_termination();
    let begin = Instant::now();
    let mut buffer = vec![1_u64; 5000];
    for call in 0_u64.. {
        if rank == victim && begin.elapsed() > Duration::from_millis(300) {
            told(rank, "killed");
            raise(Signal::SIGKILL).expect("a signal");
        }
        step(format!("allreduce {call}"));
        if let Err(error) = comm.all_reduce_in_place(&mut buffer, Sum) {
            told(rank, &error.to_string());
            break;
        }
    }
    // MPI cannot be finalised without the victim.
    std::thread::sleep(Duration::from_millis(200));
    world.abort(9);
}

/// A rank ends so many microseconds after MPI has begun, wherever it is by then: communicators are made and dropped,
/// and calls of all kinds are mixed on them. If ranks are to be connected, the time begins after a barrier, and
/// allreduces follow on one communicator.
pub fn end(world: &SimpleCommunicator, how: &str, victim: usize, after: u64, connected: bool) {
    let rank = world.rank() as usize;
    block_termination();
    let connected = connected.then(|| collectives(world));
    if let Some(comm) = &connected {
        comm.barrier().expect("a barrier");
    }
    if rank == victim {
        let how = how.to_owned();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_micros(after));
            told(rank, &format!("ends by {how}"));
            match how.as_str() {
                "kill" => raise(Signal::SIGKILL).expect("a signal"),
                "abort" => {}
                "exit" => std::process::exit(3),
                other => panic!("{other} is no way to end"),
            }
            std::process::abort()
        });
    }
    let error = (0_u64..).find_map(|seed| {
        step(format!("mix {seed}"));
        if let Some(comm) = &connected {
            return comm.all_reduce_in_place(&mut [seed; 5000], Sum).err().map(|error| error.to_string());
        }
        let comm = match Communicator::from_mpi(world) {
            Ok(comm) => comm,
            Err(error) => return Some(error.to_string()),
        };
        Mix { seed, calls: 60, most: 100_000, late: false }.run(&comm).err().map(|error| error.to_string())
    });
    told(rank, &error.unwrap_or_default());
    // MPI cannot be finalised without the victim.
    std::thread::sleep(Duration::from_millis(200));
    world.abort(9);
}

/// SIGTERM stays pending in all threads that begin from here on, and in this one.
fn block_termination() {
    let mut set = nix::sys::signal::SigSet::empty();
    set.add(Signal::SIGTERM);
    set.thread_block().expect("a mask of signals");
}
