//! Collectives across nodes that are played by threads: every rank's answer against the naive oracle, over placements,
//! schedules, leaders, slices and transports that delay messages or end sends only with their receives.

mod answers;
#[path = "../collectives/mod.rs"]
mod collectives;
mod disagreement;
mod failures;
mod groups;
mod order;
mod table;
#[path = "../watchdog/mod.rs"]
mod watchdog;

use std::sync::Barrier;
use std::sync::mpsc::channel;
use std::time::Duration;

use hier::across::{ClusterSettings, HierComm};
use hier::nodes::{Nodes, Settings};
use hier::transport::local::{Behaviour, LocalTransport};

/// Ends the test program when a test hangs.
const LIMIT: Duration = Duration::from_secs(120);

/// Runs `f` on the ranks of a cluster: `labels` has each rank's node.
fn cluster<R: Send>(labels: &[usize], rules: &str, behaviour: Behaviour, f: impl Fn(&HierComm) -> R + Sync) -> Vec<R> {
    let settings = ClusterSettings { rules: rules.to_owned(), ..ClusterSettings::default() };
    cluster_by(labels, settings, behaviour, f)
}

/// The same with all settings but the nodes.
fn cluster_by<R: Send>(
    labels: &[usize],
    settings: ClusterSettings,
    behaviour: Behaviour,
    f: impl Fn(&HierComm) -> R + Sync,
) -> Vec<R> {
    let nodes = Settings { nodes: Nodes::Given(labels.to_vec()), ..Settings::default() };
    let settings = ClusterSettings { nodes, ..settings };
    let (alive, watched) = channel::<()>();
    std::thread::spawn(move || {
        if watched.recv_timeout(LIMIT) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            eprintln!("a cluster of threads has not ended within {LIMIT:?}");
            std::process::abort();
        }
    });
    let transports = LocalTransport::group(labels.len(), behaviour);
    let results = std::thread::scope(|scope| {
        let ranks: Vec<_> = transports
            .into_iter()
            .map(|transport| {
                let (f, settings) = (&f, &settings);
                scope.spawn(move || f(&HierComm::over(Box::new(transport), settings).unwrap()))
            })
            .collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    });
    drop(alive);
    results
}

/// Holds all ranks until each has returned from its calls: an error, or a rank that leaves, ends also earlier calls
/// in which others may still be, and the communicator's own barrier is one of them.
fn meet(comm: &HierComm, threads: &Barrier) {
    comm.barrier().unwrap();
    threads.wait();
}

const PLACEMENTS: [&[usize]; 9] = [
    &[0],
    &[0, 0, 0],
    &[0, 1],
    &[0, 1, 2, 3, 4],
    &[0, 0, 1, 1],
    &[0, 1, 0, 1, 0, 1],
    &[0, 0, 0, 1, 2, 2],
    &[0, 1, 1, 2, 2, 2, 3],
    &[2, 0, 1, 2, 0, 1, 3, 3],
];

const BEHAVIOURS: [Behaviour; 3] = [
    Behaviour { rendezvous: false, longest_delay: Duration::ZERO, seed: 1 },
    Behaviour { rendezvous: true, longest_delay: Duration::ZERO, seed: 2 },
    Behaviour { rendezvous: true, longest_delay: Duration::from_micros(300), seed: 3 },
];
