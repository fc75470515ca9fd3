//! The simulation of a node: small cases by hand, and properties of all.

use std::cell::RefCell;
use std::process::Command;
use std::rc::Rc;

use bench::node_simulation::candidates::algorithm;
use bench::node_simulation::engine::{Seat, Slots, Stuck, World};
use bench::node_simulation::figures::{Costs, MachineFile, SHIPPED, Time};
use bench::node_simulation::memory::Memory;
use bench::node_simulation::places::{Place, Placement};
use bench::node_simulation::simulate::{Case, Pace, Simulated};
use bench::node_simulation::trees::papers_gain;
use shm_core::protocol::exchange::exchange;
use shm_core::protocol::step;
use shm_core::protocol::{Board, Ring, RingName};
use shm_core::{Collective, Links};

const SLOTS: Slots = Slots { of: [4, 4, 4] };

/// Round figures, in nanoseconds: fetch 100, own 50, gap 10, serve 20 within an L3 cache; three times that between
/// sockets.
fn costs() -> Costs {
    let three = |ns: Time| [ns * 1000, 2 * ns * 1000, 3 * ns * 1000];
    Costs {
        fetch: three(100),
        own: three(50),
        gap: three(10),
        serve: three(20),
        read: [1000.0, 2000.0, 3000.0],
        write: [500.0, 1000.0, 1500.0],
        own_byte: 125.0,
        l3_byte: 250.0,
        memory_core_byte: 500.0,
        memory_socket_byte: 250.0,
        serve_byte: 500.0,
        link_byte: 1000.0,
        call: 10_000,
        publish: 1000,
        look: 1000,
        operation: 1000,
        operand: 1000,
        own_bytes: 1 << 20,
        l3_bytes: 1 << 24,
    }
}

/// `sockets[rank]` is the socket of a rank; each has one L3 cache.
fn places(sockets: &[usize]) -> Vec<Place> {
    sockets.iter().map(|&socket| Place { package: socket, numa: socket, l3: socket }).collect()
}

/// Each rank's clock in nanoseconds when `program` has ended.
fn clocks(
    sockets: &[usize],
    program: impl Fn(&Seat<'_>) -> shm_core::Result<()> + 'static,
) -> Result<Vec<Time>, Stuck> {
    let places = places(sockets);
    let size = places.len();
    let world = World::new(size, SLOTS, |lines, cells| Memory::new(costs(), places, lines, cells));
    let ends = Rc::new(RefCell::new(vec![0; size]));
    let noted = Rc::clone(&ends);
    world.run(&Rc::new(move |seat: &Seat<'_>| {
        let result = program(seat);
        noted.borrow_mut()[seat.rank()] = seat.now() / 1000;
        result
    }))?;
    let ends = ends.borrow();
    Ok(ends.clone())
}

fn ring(seat: &Seat<'_>, name: RingName) -> Ring {
    Ring::new(name, SLOTS.of[name as usize], seat.size())
}

fn chain(rank: usize, size: usize) -> Links {
    let children: Vec<usize> = (rank + 1..size).take(1).collect();
    Links::new(rank.checked_sub(1), &children, size)
}

#[test]
fn an_exchange_of_two_ranks_by_hand() {
    let once = |seat: &Seat<'_>| exchange(seat, &mut ring(seat, RingName::Line), 1, |_| (), |_, _| ());
    // Nobody holds the lines yet: each publishes at 0 (1 ns), loads the other's (100 ns), says that it is done (1 ns).
    assert_eq!(clocks(&[0, 0], once).unwrap(), [102, 102]);
    assert_eq!(clocks(&[0, 1], once).unwrap(), [302, 302]);
    // The fifth is in the first one's slot, whose line the other still holds: it is visible 50 ns later.
    let five = |seat: &Seat<'_>| {
        let mut ring = ring(seat, RingName::Line);
        for _ in 0..4 {
            exchange(seat, &mut ring, 1, |_| (), |_, _| ())?;
        }
        seat.meet();
        exchange(seat, &mut ring, 1, |_| (), |_, _| ())
    };
    assert_eq!(clocks(&[0, 0], five).unwrap(), [4 * 102 + 152 - 1; 2]);
}

#[test]
fn a_chain_of_three_by_hand() {
    let release = |seat: &Seat<'_>| {
        let mut ring = ring(seat, RingName::Down);
        let position = ring.take(1);
        step::release(seat, &mut ring, &chain(seat.rank(), seat.size()), position, 1, |_| ())
    };
    // Rank 1 has the root's line at 100 and publishes; rank 2, which polls since 0 and so holds that line, sees it at
    // 150, and has it at 250.
    assert_eq!(clocks(&[0, 0, 0], release).unwrap(), [2, 102, 251]);
    // With rank 2 in another socket: the line, which it holds too, is visible at 100 + 150, and there 300 later.
    assert_eq!(clocks(&[0, 0, 1], release).unwrap(), [2, 102, 551]);
}

#[test]
fn a_line_serves_its_readers_one_after_the_other() {
    let flat = |seat: &Seat<'_>| {
        let mut ring = ring(seat, RingName::Down);
        let position = ring.take(1);
        step::release(seat, &mut ring, &Links::flat(seat.rank(), seat.size(), 0), position, 1, |_| ())
    };
    assert_eq!(clocks(&[0, 0, 0, 0], flat).unwrap()[1..], [101, 121, 141]);
    // The second socket's first reader fetches it from afar, the other has it from its neighbour.
    assert_eq!(clocks(&[0, 1, 1], flat).unwrap()[1..], [301, 311]);
}

#[test]
fn loads_that_follow_one_another_overlap() {
    let gather = |seat: &Seat<'_>| {
        // The root comes late: all have published.
        if seat.rank() == 0 {
            seat.compute(|_| 1_000_000);
        }
        let mut ring = ring(seat, RingName::Up);
        let position = ring.take(1);
        step::gather(seat, &mut ring, &Links::flat(seat.rank(), seat.size(), 0), position, 1, |_| ())
    };
    assert_eq!(clocks(&[0, 0, 0, 0], gather).unwrap()[0], 1000 + 100 + 10 + 10 + 1);
    // The nearer comes in the shadow of the farther one, not the other way round.
    assert_eq!(clocks(&[0, 1, 0], gather).unwrap()[0], 1000 + 300 + 10 + 1);
    assert_eq!(clocks(&[0, 0, 1], gather).unwrap()[0], 1000 + 300 + 1);
}

#[test]
fn a_cell_costs_by_bytes_and_distance() {
    let send = |seat: &Seat<'_>| {
        let mut ring = ring(seat, RingName::Down);
        let position = ring.take(1);
        let links = Links::flat(seat.rank(), seat.size(), 0);
        step::release(seat, &mut ring, &links, position, 1, |passage| match passage.from {
            Some(from) => seat.read(RingName::Down, from, passage.slot, 1000),
            None => seat.write(RingName::Down, seat.rank(), passage.slot, 1000),
        })
    };
    // Stored in 125 ns; polled since 0, so visible at 175 and there at 275; then the first line, and 1000 bytes at 1 a
    // ns.
    assert_eq!(clocks(&[0, 0], send).unwrap()[1], 275 + 100 + 1000 + 1);
    // From afar: 275, 575, 300 for the first line, and 3 ns a byte.
    assert_eq!(clocks(&[0, 1], send).unwrap()[1], 575 + 300 + 3000 + 1);
}

#[test]
fn a_cell_that_was_taken_is_stored_to_as_ones_own() {
    let mut memory = Memory::new(costs(), places(&[0, 0]), 0, 1);
    assert_eq!(memory.write(0, 0, 1000, 0), 125_000);
    assert_eq!(memory.read(1, 0, 1000, 0, true), 100_000 + 1_000_000);
    // The other one holds it too.
    assert_eq!(memory.clone().write(1, 0, 1000, 0), 500_000);
    memory.take(1, 0, 0);
    assert_eq!(memory.write(1, 0, 1000, 0), 125_000);
    assert_eq!(memory.read(0, 0, 1000, 0, true), 100_000 + 1_000_000);
}

/// The cells of two ranks go to and fro: neither stores to one that the other holds, so it does not matter what that
/// would cost. Of a reduction only the root's cells come back.
#[test]
fn two_ranks_store_to_no_cell_that_the_other_holds() {
    let (plain, places) = (MachineFile::find("vm-2").unwrap(), places(&[0, 0]));
    let dear = plain.varied("write_gbs.l3", 0.01);
    for (what, force, bytes, same) in [
        (Collective::Allreduce, "all:exchange", 4 << 10, true),
        (Collective::Allreduce, "all:exchange", 256 << 10, true),
        (Collective::Allreduce, "all:auto", 64 << 10, true),
        (Collective::Allreduce, "all:auto", 1 << 20, true),
        (Collective::Reduce, "all:auto", 64 << 10, false),
        (Collective::Broadcast, "all:auto", 64 << 10, false),
    ] {
        let algorithm = algorithm("test", force, "").unwrap();
        let time = |machine: &MachineFile| {
            let costs = machine.costs();
            let case = Case { costs: &costs, places: &places, what, bytes, algorithm: &algorithm, pace: Pace::Each };
            case.simulate().unwrap().microseconds
        };
        assert_eq!(time(&plain) == time(&dear), same, "{what} {force} {bytes}");
    }
}

#[test]
fn ranks_that_wait_for_each_other_are_an_error() {
    let both = clocks(&[0, 0], |seat| {
        let ring = ring(seat, RingName::Up);
        ring.expect(seat, 1 - seat.rank(), 1, 1).map(|_| ())
    });
    let waits = both.unwrap_err().waits;
    assert_eq!(waits.iter().map(|&(rank, writer, _)| (rank, writer)).collect::<Vec<_>>(), [(0, 1), (1, 0)]);
    let one = clocks(&[0, 0], |seat| {
        if seat.rank() == 1 {
            return Ok(());
        }
        seat.meet();
        Ok(())
    });
    assert!(one.is_err());
    let text = clocks(&[0, 0, 0], |seat| {
        if seat.rank() == 0 { Ok(()) } else { ring(seat, RingName::Down).expect(seat, 0, 1, 1).map(|_| ()) }
    });
    assert!(text.unwrap_err().to_string().contains("rank 1 for 0"));
}

/// A case on a shipped machine, all ranks.
fn simulated(
    machine: &str,
    placement: Placement,
    what: Collective,
    force: &str,
    trees: &str,
    bytes: usize,
) -> Simulated {
    let machine = MachineFile::find(machine).unwrap();
    let cores = machine.places().unwrap();
    let (costs, places) = (machine.costs(), placement.places(&cores, cores.len().min(40)).unwrap());
    let algorithm = algorithm("test", force, trees).unwrap();
    Case { costs: &costs, places: &places, what, bytes, algorithm: &algorithm, pace: Pace::Each }.simulate().unwrap()
}

#[test]
fn runs_are_the_same_to_the_last_digit() {
    for force in ["all:line", "all:cells", "all:shares", "all:exchange"] {
        let run = || simulated("xeon-2x20", Placement::Cyclic, Collective::Allreduce, force, "", 2000);
        assert_eq!(run(), run());
    }
}

#[test]
fn more_bytes_never_take_less() {
    for (what, force) in [
        (Collective::Broadcast, "all:cells"),
        (Collective::Reduce, "all:cells"),
        (Collective::Allreduce, "all:cells"),
        (Collective::Reduce, "all:shares"),
        (Collective::Allreduce, "all:shares"),
        (Collective::Allreduce, "all:exchange"),
        (Collective::Broadcast, "all:line"),
        (Collective::Reduce, "all:line"),
    ] {
        for machine in ["xeon-2x20", "vm-2"] {
            let mut last = 0.0;
            for bytes in [8, 64, 512, 4096, 32 << 10, 256 << 10, 1 << 20] {
                if force == "all:line" && bytes > 4096 {
                    break;
                }
                // A line is not divided: one of two ranks folds it for both, which may take longer than a half each.
                if (machine, force, bytes) == ("vm-2", "all:shares", 512) {
                    last *= 0.5;
                }
                let time = simulated(machine, Placement::Spread, what, force, "", bytes).microseconds;
                assert!(time >= last, "{what} {force} {machine} {bytes}: {time} after {last}");
                last = time;
            }
        }
    }
}

#[test]
fn aware_trees_cross_sockets_once_a_slice() {
    for placement in Placement::ALL {
        for (kind, bytes, slices) in [("kary:3", 8, 1), ("knomial:2", 4096, 1), ("kary:2", 64 << 10, 2)] {
            let crossings = |trees: &str, what| {
                let found = simulated("xeon-2x20", placement, what, "all:cells", trees, bytes);
                found.traffic.cells[2] as f64 / found.calls as f64
            };
            let gather = format!("gather: {kind}:right:package:leaders-last");
            assert_eq!(crossings(&gather, Collective::Reduce), f64::from(slices), "{kind} {placement}");
            let release = format!("release: {kind}:left:package");
            assert_eq!(crossings(&release, Collective::Broadcast), f64::from(slices), "{kind} {placement}");
        }
        let unaware = simulated("xeon-2x20", placement, Collective::Reduce, "all:cells", "gather: kary:2", 8);
        assert!(unaware.traffic.cells[2] > unaware.calls, "{placement}");
    }
}

/// Jain et al. (SC18) measured up to about 1.8x over unaware trees, on 2 x 20 cores.
#[test]
fn trees_that_know_sockets_gain_what_the_paper_found() {
    let machine = MachineFile::find("xeon-2x20").unwrap();
    let places = Placement::Block.places(&machine.places().unwrap(), 40).unwrap();
    let costs = machine.costs();
    let gains = [8, 512, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10]
        .map(|bytes| papers_gain(&costs, &places, Collective::Reduce, bytes).unwrap());
    let most = gains.iter().copied().fold(0.0, f64::max);
    assert!((1.6..=2.1).contains(&most), "{gains:?}");
    assert_eq!(most, gains[4], "at 16 KiB: {gains:?}");
    assert!(gains[0] < 1.0, "{gains:?}");
    assert!(gains[2..].iter().all(|&gain| gain > 1.2), "{gains:?}");
}

#[test]
fn bytes_are_those_of_the_real_collectives() {
    let (p, n) = (40, 64 << 10);
    let loaded = |what, force| {
        let found = simulated("xeon-2x20", Placement::Block, what, force, "", n);
        found.traffic.bytes.iter().sum::<u64>() / found.calls
    };
    let once = (p - 1) * n as u64;
    // Each contribution is loaded from its cell once, each rank but the root loads the result once; shares: all but the
    // own part.
    assert_eq!(loaded(Collective::Reduce, "all:cells"), once);
    assert_eq!(loaded(Collective::Broadcast, "all:cells"), once);
    assert_eq!(loaded(Collective::Allreduce, "all:cells"), 2 * once);
    assert_eq!(loaded(Collective::Allreduce, "all:shares"), 2 * once);
    assert_eq!(loaded(Collective::Allreduce, "all:exchange"), p * once);
}

#[test]
fn shipped_machines_are_whole_and_name_their_sources() {
    for (name, text) in SHIPPED {
        let machine = MachineFile::parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(machine.figures().len() >= 19, "{name}");
        assert!(machine.figures().iter().all(|(_, figure)| figure.source.contains(": ")), "{name}");
    }
    let sizes = SHIPPED.map(|(name, _)| MachineFile::find(name).unwrap().places().unwrap().len());
    assert_eq!(sizes, [2, 40, 128]);
}

#[test]
fn every_output_says_that_it_is_simulated() {
    let folder = std::env::temp_dir().join(format!("node-simulation-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let svg = folder.join("plot.svg");
    let plot = svg.to_str().unwrap();
    for (words, tables) in [
        (vec!["--machines", "vm-2", "--sizes", "8,4K", "--svg", plot], 4),
        (vec!["--machines", "xeon-2x20", "-n", "4", "--aware", "--sizes", "8", "--svg", plot], 2),
        (vec!["--machines", "xeon-2x20", "-n", "4", "--aware", "--sizes", "8", "--vary", "2"], 2),
    ] {
        let output =
            Command::new(env!("CARGO_BIN_EXE_bench")).arg("simulate-node").args(&words).output().expect("it starts");
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(text.starts_with("SIMULATION, not measured: "), "{text}");
        assert_eq!(text.matches("\nSIMULATED ").count(), tables, "{text}");
        if words.contains(&"--svg") {
            assert!(std::fs::read_to_string(&svg).unwrap().contains("SIMULATION, not measured"));
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn machines_that_cannot_be_are_refused() {
    let text = SHIPPED[1].1;
    for (from, to, word) in [
        ("published: nviennot", "nviennot", "source must begin"),
        ("value = 48", "value = -48", "no positive number"),
        ("pack:2 l3:1 core:20 pu:1", "pack:none", "topology"),
        ("[serve_ns]", "[served_ns]", "served_ns"),
    ] {
        let error = MachineFile::parse(&text.replace(from, to)).unwrap_err().to_string();
        assert!(error.contains(word), "{word}: {error}");
    }
    assert!(MachineFile::find("no-such-machine").unwrap_err().to_string().contains("xeon-2x20"));
    let cores = MachineFile::find("vm-2").unwrap().places().unwrap();
    assert!(Placement::Block.places(&cores, 3).is_err());
}
