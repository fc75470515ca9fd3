//! What a communicator across nodes takes of each rank as the cluster grows: memory and time of the parts that know all
//! ranks or all nodes, and of whole communicators whose ranks are threads, each a node of its own.
//!
//! ```sh
//! cargo run --release -p hier --example growth
//! ```

use std::time::Instant;

use hier::across::{ClusterSettings, HierComm};
use hier::nodes::{Nodes, Placement, Settings};
use hier::operator::Sum;
use hier::schedule::{Algorithm, Goal, Order};
use hier::transport::local::{Behaviour, LocalTransport};

/// Resident bytes of this process.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split_whitespace().nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4096
}

/// What making something takes: microseconds, resident bytes.
fn taken<T>(make: impl FnOnce() -> T) -> (T, f64, usize) {
    let (before, start) = (resident(), Instant::now());
    let made = make();
    (made, start.elapsed().as_secs_f64() * 1e6, resident().saturating_sub(before))
}

fn main() {
    const EACH: usize = 64;
    println!("{EACH} ranks a node: of one rank, the placement, and the programs of an allreduce\n");
    println!("nodes     ranks  placement us        KiB  ring us   KiB  halving us   KiB");
    let halving = Algorithm::HalvingDoubling { order: Order::Nearest };
    for nodes in [8, 64, 512, 4096] {
        let labels: Vec<usize> = (0..nodes * EACH).map(|rank| rank / EACH).collect();
        let (placement, time, bytes) = taken(|| Placement::new(&labels));
        assert_eq!(placement.nodes(), nodes);
        let program = |algorithm: Algorithm| {
            let (program, time, bytes) =
                taken(|| algorithm.program(Goal::Allreduce, nodes as u32, 1).expect("serves any number of nodes"));
            assert!(!program.rounds.is_empty());
            (program, time, bytes)
        };
        let (ring, ring_time, ring_bytes) = program(Algorithm::Ring);
        let (halving, halving_time, halving_bytes) = program(halving);
        println!(
            "{nodes:5} {:9} {time:13.0} {:10} {ring_time:8.0} {:5} {halving_time:11.0} {:5}",
            nodes * EACH,
            bytes / 1024,
            ring_bytes / 1024,
            halving_bytes / 1024
        );
        drop((placement, ring, halving));
    }
    println!(
        "\nthreads as nodes of one rank: set-up, and memory with the segment of each node\n\nnodes  set-up ms  KiB a rank"
    );
    for nodes in [2_usize, 8, 32, 128] {
        let settings = ClusterSettings {
            nodes: Settings { nodes: Nodes::Given((0..nodes).collect()), ..Settings::default() },
            ..ClusterSettings::default()
        };
        let before = resident();
        let start = Instant::now();
        let made: Vec<HierComm> = std::thread::scope(|scope| {
            let ranks: Vec<_> = LocalTransport::group(nodes, Behaviour::default())
                .into_iter()
                .map(|transport| {
                    let settings = &settings;
                    scope.spawn(move || {
                        let comm = HierComm::over(Box::new(transport), settings).expect("threads find each other");
                        let mut sum = [1_u64];
                        comm.all_reduce_in_place(&mut sum, Sum).expect("all call");
                        assert_eq!(sum, [nodes as u64]);
                        comm
                    })
                })
                .collect();
            ranks.into_iter().map(|rank| rank.join().expect("no rank panics")).collect()
        });
        let time = start.elapsed().as_secs_f64() * 1e3;
        println!("{nodes:5} {time:10.1} {:11}", resident().saturating_sub(before) / 1024 / nodes);
        drop(made);
    }
}
