//! Simulated times against times that can be worked out by hand.

use hier::schedule::{Algorithm, Goal, Order};
use hier::simulate::{Error, Network, Simulation, simulate};
use proptest::prelude::*;

const NEAREST: Algorithm = Algorithm::HalvingDoubling { order: Order::Nearest };
const FARTHEST: Algorithm = Algorithm::HalvingDoubling { order: Order::Farthest };

/// Nodes on one switch: link i is the way from node i, link `nodes + i` the way to it.
fn star(nodes: usize, capacity: f64) -> Network<impl Fn(usize, usize, &mut Vec<usize>)> {
    Network {
        capacities: vec![capacity; 2 * nodes],
        latency: 0.0,
        reduction: 0.0,
        route: move |from, to, links: &mut Vec<usize>| links.extend([from, nodes + to]),
    }
}

/// Two switches with a trunk that is no faster than a node's link; `switch` says where a node is.
fn two_switches(nodes: usize, switch: impl Fn(usize) -> usize) -> Network<impl Fn(usize, usize, &mut Vec<usize>)> {
    Network {
        capacities: vec![1.0; 2 * nodes + 2],
        latency: 0.0,
        reduction: 0.0,
        route: move |from, to, links: &mut Vec<usize>| {
            links.extend([from, nodes + to]);
            if switch(from) != switch(to) {
                links.push(2 * nodes + switch(from));
            }
        },
    }
}

fn close(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= 1e-9 * expected.abs().max(1e-12)
}

fn run<R: Fn(usize, usize, &mut Vec<usize>)>(
    algorithm: Algorithm,
    goal: Goal,
    ranks: u32,
    bytes: usize,
    network: &Network<R>,
) -> Simulation {
    simulate(&algorithm.pattern(goal, ranks).unwrap(), bytes, 1, network).unwrap()
}

/// The textbook's formulas, on one switch.
#[test]
fn one_switch_takes_what_the_formulas_say() {
    let (latency, capacity, reduction) = (3.0, 2.0, 0.25);
    for log in 0..=6_u32 {
        let ranks = 1 << log;
        let (p, steps) = (f64::from(ranks), f64::from(log));
        let network = Network { latency, reduction, ..star(ranks as usize, capacity) };
        let bytes = 64 * ranks as usize;
        let n = bytes as f64;
        let share = (p - 1.0) / p * n;
        let whole = n / capacity;
        let halving = 2.0 * steps * latency + 2.0 * share / capacity + share * reduction;
        for (algorithm, goal, expected) in [
            (Algorithm::Ring, Goal::Allreduce, 2.0 * (p - 1.0) * latency + 2.0 * share / capacity + share * reduction),
            (Algorithm::RecursiveDoubling, Goal::Allreduce, steps * (latency + whole + n * reduction)),
            (NEAREST, Goal::Allreduce, halving),
            (FARTHEST, Goal::Allreduce, halving),
            (Algorithm::Circulant, Goal::Allreduce, halving),
            (Algorithm::Binomial, Goal::Reduce { root: 0 }, steps * (latency + whole + n * reduction)),
            (Algorithm::Binomial, Goal::Broadcast { root: 0 }, steps * (latency + whole)),
            (Algorithm::Dissemination, Goal::Barrier, steps * latency),
        ] {
            let found = run(algorithm, goal, ranks, bytes, &network);
            assert!(close(found.seconds, expected), "{found}, not {expected}");
        }
    }
}

/// 32 nodes on two switches, in units of the vector's time over one link: a ring that follows the switches, one that
/// alternates between them, and halving from either end.
#[test]
fn two_switches_of_sixteen() {
    let bytes = 32 * 1024;
    let times = |algorithm, switch: fn(usize) -> usize| {
        run(algorithm, Goal::Allreduce, 32, bytes, &two_switches(32, switch)).seconds / bytes as f64
    };
    let block = |node| node / 16;
    let alternating = |node| node % 2;
    assert!(close(times(Algorithm::Ring, block), 2.0 * 31.0 / 32.0));
    assert!(close(times(Algorithm::Ring, alternating), 16.0 * 2.0 * 31.0 / 32.0));
    // Nearest first: 15/16 n inside the switches, and 16 messages of n/32 at once over the trunk; both twice.
    assert!(close(times(NEAREST, block), 2.875));
    // Farthest first: 16 messages of n/2 over the trunk, and 15/32 n inside.
    assert!(close(times(FARTHEST, block), 2.0 * (8.0 + 15.0 / 32.0)));
    assert!(close(times(Algorithm::RecursiveDoubling, block), 4.0 + 16.0));
}

/// A slow node holds up its neighbours at once, and those far off later: ranks drift.
#[test]
fn ranks_wait_for_their_own_messages_only() {
    let mut network = star(8, 1.0);
    network.capacities[7] = 0.5;
    let all = run(Algorithm::Binomial, Goal::Broadcast { root: 0 }, 8, 12, &network);
    // Node 7 sends nothing.
    assert_eq!(all.ends, [36.0; 8]);
    let tree = run(Algorithm::Binomial, Goal::Reduce { root: 0 }, 8, 12, &network);
    // Its operand takes twice as long; 1, 3 and 5 have ended long before.
    assert_eq!(tree.ends, [48.0, 12.0, 24.0, 12.0, 48.0, 12.0, 36.0, 24.0]);
    assert_eq!(tree.carried[7], 12);
    assert_eq!(tree.messages, 7);
}

/// Two messages share a link; when the shorter has ended, the longer has the link for itself.
#[test]
fn rates_change_on_the_way() {
    let bus = Network {
        capacities: vec![1.0],
        latency: 0.0,
        reduction: 0.0,
        route: |_, _, links: &mut Vec<usize>| links.push(0),
    };
    // Segments of 200 and 100 bytes: both at half speed for 200 s, and then 100 bytes more.
    let elements = simulate(&Algorithm::Ring.pattern(Goal::Allgather, 2).unwrap(), 3, 100, &bus).unwrap();
    assert_eq!(elements.seconds, 300.0);
}

#[test]
fn what_the_figures_of_a_network_must_be() {
    let ring = Algorithm::Ring.pattern(Goal::Allreduce, 4).unwrap();
    let mut network = star(4, 1.0);
    network.capacities[3] = 0.0;
    assert_eq!(simulate(&ring, 8, 1, &network).unwrap_err(), Error::Capacity { link: 3, capacity: 0.0 });
    let network = Network { latency: -1.0, ..star(4, 1.0) };
    assert_eq!(simulate(&ring, 8, 1, &network).unwrap_err(), Error::Parameter { name: "latency", value: -1.0 });
    let error = simulate(&ring, 8, 1, &star(3, 1.0)).unwrap_err().to_string();
    assert!(error.contains("uses link 6, but only 6 have a capacity"), "{error}");
    // Nothing to do, and nothing to carry.
    assert_eq!(run(Algorithm::Ring, Goal::Allreduce, 1, 8, &star(1, 1.0)).seconds, 0.0);
    let line = run(Algorithm::Ring, Goal::Allreduce, 4, 8, &star(4, 1.0)).to_string();
    assert_eq!(
        line,
        "simulation: allreduce by ring over 4 ranks, 8 bytes: 1.200e1 s, 24 messages, at most 12 bytes over a link \
         (link 0)"
    );
}

/// 4,096 nodes in racks of 64, with a trunk for each rack.
#[test]
fn four_thousand_nodes() {
    let nodes = 4096;
    let network = Network {
        capacities: vec![1e9; 2 * nodes + 128],
        latency: 1e-6,
        reduction: 1e-11,
        route: move |from, to, links: &mut Vec<usize>| {
            links.extend([from, nodes + to]);
            if from / 64 != to / 64 {
                links.extend([2 * nodes + from / 64, 2 * nodes + 64 + to / 64]);
            }
        },
    };
    let bytes = 4096 * 1000;
    for algorithm in [Algorithm::RecursiveDoubling, NEAREST, FARTHEST, Algorithm::Circulant, Algorithm::Binomial] {
        let found = run(algorithm, Goal::Allreduce, 4096, bytes, &network);
        let pattern = algorithm.pattern(Goal::Allreduce, 4096).unwrap();
        assert_eq!(found.messages, pattern.formula().messages, "{found}");
        // No link carries more than its capacity, and nobody ends before the messages in turn could.
        let busiest = *found.carried.iter().max().unwrap() as f64;
        assert!(found.seconds >= busiest / 1e9 * (1.0 - 1e-9), "{found}");
        assert!(found.seconds >= f64::from(pattern.rounds()) * 1e-6, "{found}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Where there is one link for all, it is never idle, and whatever the order of messages, their bytes take their
    /// time.
    #[test]
    fn one_link_takes_the_time_of_all_bytes(algorithm in 0..8_usize, ranks in 1..40_u32, bytes in 0..5000_usize) {
        let algorithm = Algorithm::ALL[algorithm];
        let goals = [Goal::Allreduce, Goal::Broadcast { root: ranks / 2 }];
        let pattern = goals.into_iter().find_map(|goal| algorithm.pattern(goal, ranks).ok()).unwrap();
        let bus = Network {
            capacities: vec![8.0],
            latency: 0.0,
            reduction: 0.0,
            route: |_, _, links: &mut Vec<usize>| links.push(0),
        };
        let found = simulate(&pattern, bytes, 1, &bus).unwrap();
        let expected = pattern.total(bytes).sent.elements;
        prop_assert_eq!(found.carried[0], expected);
        prop_assert!((found.seconds - expected as f64 / 8.0).abs() <= 1e-6 * found.seconds, "{}", found);
    }

    /// Random clusters: no link carries more than it can; twice the capacity takes half the time; latency only adds.
    #[test]
    fn times_are_consistent(
        algorithm in 0..Algorithm::ALL.len(),
        ranks in 1..40_u32,
        bytes in 0..5000_usize,
        places in prop::collection::vec(0..4_usize, 40),
        speeds in prop::collection::vec(1..9_u32, 88),
    ) {
        let algorithm = Algorithm::ALL[algorithm];
        let goals = [Goal::Allreduce, Goal::Broadcast { root: ranks / 2 }, Goal::Barrier];
        let goal = goals.into_iter().find(|&goal| algorithm.pattern(goal, ranks).is_ok()).unwrap();
        let pattern = algorithm.pattern(goal, ranks).unwrap();
        let network = |factor: f64, latency| Network {
            capacities: speeds.iter().map(|&speed| factor * f64::from(speed)).collect(),
            latency,
            reduction: 0.0,
            route: |from, to, links: &mut Vec<usize>| {
                links.extend([from, 40 + to]);
                if places[from] != places[to] {
                    links.extend([80 + places[from], 84 + places[to]]);
                }
            },
        };
        let found = simulate(&pattern, bytes, 1, &network(1.0, 0.0)).unwrap();
        prop_assert_eq!(found.messages, pattern.formula().messages);
        for (carried, speed) in found.carried.iter().zip(&speeds) {
            prop_assert!(*carried as f64 / f64::from(*speed) <= found.seconds * (1.0 + 1e-9));
        }
        let twice = simulate(&pattern, bytes, 1, &network(2.0, 0.0)).unwrap();
        prop_assert!((found.seconds - 2.0 * twice.seconds).abs() <= 1e-6 * found.seconds, "{} {}", found, twice);
        let late = simulate(&pattern, bytes, 1, &network(1.0, 1.0)).unwrap();
        prop_assert!(late.seconds >= f64::from(pattern.rounds().min(1)), "{}", late);
    }
}
