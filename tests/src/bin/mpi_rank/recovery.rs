//! Ranks that fail, one after another, under an MPI that can go on without them: the others are told who it was, in the
//! call that they were in and in later ones, make a communicator of those who are left, and use it.

use std::time::{Duration, Instant};

use hier::across::{ClusterSettings, Error};
use hier::nodes::{Nodes, Settings};
use hier::operator::{Min, Sum};
use hier::transport::mpi::MpiTransport;
use mpi::topology::SimpleCommunicator;
use nix::sys::signal::{Signal, raise};
use phalanx_tests::Communicator;
use phalanx_tests::sweep::Sweep;

use crate::watch::step;
use crate::well;

/// How long it may take until a rank hears of a failure, on a machine that does much else.
const SOON: Duration = Duration::from_secs(10);

/// Loses the ranks of `ends`, `HOW:RANK` each, as numbered in the world; `kill:1+2` are two at once. `nodes` has each
/// rank's node, as in `0,0,1,1`; `found` asks the machine.
pub fn run(world: &SimpleCommunicator, elements: usize, nodes: &str, ends: &[String]) {
    let transport = MpiTransport::new(world).expect("a transport");
    let mut settings = ClusterSettings::from_environment();
    if nodes != "found" {
        let numbers = nodes.split(',').map(|number| number.parse().expect("a node's number")).collect();
        settings.nodes = Settings { nodes: Nodes::Given(numbers), ..Settings::default() };
    }
    // Only the first rank knows the rules: they are those of all, and stay so when it has failed.
    if hier::transport::Transport::rank(&transport) == 0 {
        settings.rules = "allreduce:circulant".to_owned();
    }
    let mut comm = Communicator::over(Box::new(transport), &settings).expect("a communicator");
    let own = comm.rank();
    // The world's ranks that live, by rank.
    let mut alive: Vec<usize> = (0..comm.size()).collect();
    let mut slowest = Duration::ZERO;
    for end in ends {
        let (how, victims) = end.split_once(':').expect("HOW:RANK");
        let victims: Vec<usize> = victims.split('+').map(|victim| victim.parse().expect("a rank")).collect();
        let lost: Vec<usize> =
            victims.iter().filter_map(|victim| alive.iter().position(|rank| rank == victim)).collect();
        step(format!("the end of {victims:?} by {how}"));
        slowest = slowest.max(until_it_is_told(&comm, elements, how, victims.contains(&own), &lost));
        alive.retain(|rank| !victims.contains(rank));
        step(format!("going on without {victims:?}"));
        let next = comm.shrink().unwrap_or_else(|error| panic!("rank {own}: {error}"));
        drop(comm);
        comm = next;
        assert_eq!((comm.size(), Some(&own)), (alive.len(), alive.get(comm.rank())));
        let how = comm.explain(hier::Collective::Allreduce, 8);
        assert!(comm.placement().nodes() == 1 || how.starts_with("circulant"), "other rules: {how}");
        let mut here = vec![0_usize; alive.len()];
        here[comm.rank()] = own;
        comm.all_reduce_in_place(&mut here, Sum).expect("an allreduce");
        assert_eq!(here, alive);
        Sweep::new(&comm, "after a failure", 7, true).roots(&[1, 700, 20_000]);
        let part = comm.split(Some(comm.rank() as u32 % 2), 0).expect("a split").expect("a part");
        Sweep::new(&part, "in a part after a failure", 8, true).roots(&[1, 700]);
    }
    let mut time = [slowest.as_millis() as u64];
    comm.all_reduce_in_place(&mut time, hier::operator::Max).expect("an allreduce");
    let mut told = [1_usize];
    comm.all_reduce_in_place(&mut told, Min).expect("an allreduce");
    well(&comm, &format!("{} failures, told after {} ms at most", ends.len(), time[0]));
    // Open MPI 5.0.11 may hang in MPI_Finalize after two failures. Nobody leaves before all have heard that all is
    // well.
    std::thread::sleep(Duration::from_millis(300));
    std::process::exit(0);
}

/// Under an MPI that does not go on: the communicator says so, and is as it was.
pub fn refused(world: &SimpleCommunicator) {
    let comm = crate::collectives(world);
    let error = comm.shrink().expect_err("an MPI that goes on");
    println!("told {}: {error}", comm.rank());
    Sweep::new(&comm, "after a refusal", 7, true).roots(&[1, 700]);
    well(&comm, "refused");
}

/// Allreduces until there is an error, which must say who of `lost` has failed; and so must those of the next calls.
fn until_it_is_told(comm: &Communicator, elements: usize, how: &str, is_victim: bool, lost: &[usize]) -> Duration {
    comm.barrier().expect("a barrier");
    let begin = Instant::now();
    let due = Duration::from_millis(150);
    let mut buffer = vec![1_u64; elements];
    let mut calls = 0;
    let error = loop {
        if is_victim && begin.elapsed() > due {
            end(how);
        }
        match comm.all_reduce_in_place(&mut buffer, Sum) {
            Ok(()) => calls += 1,
            // Of the end of another that fails at the same time.
            Err(_) if is_victim => end(how),
            Err(error) => break error,
        }
    };
    let after = begin.elapsed().saturating_sub(due);
    let expect = |error: Error| match error {
        Error::RankFailed { rank, .. } if lost.contains(&rank) => {}
        other => panic!("rank {}, after {calls} calls: {other:?}", comm.rank()),
    };
    expect(error);
    assert!(after < SOON, "rank {}: told after {after:?}", comm.rank());
    expect(comm.barrier().expect_err("a communicator that has lost a rank"));
    expect(comm.process_at_rank(0).broadcast_into(&mut buffer).expect_err("the same"));
    after
}

/// Ends this process, without MPI_Finalize.
fn end(how: &str) -> ! {
    match how {
        "kill" => raise(Signal::SIGKILL).expect("a signal"),
        "abort" => {}
        "exit" => std::process::exit(0),
        "status" => std::process::exit(3),
        other => panic!("{other} is no way to end"),
    }
    std::process::abort()
}
