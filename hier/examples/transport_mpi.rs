//! What `tests/tests/mpi/transport.rs` of the workspace runs under mpirun: `transport_mpi WHAT ..`. Each rank writes a
//! line `ok rank=R ..` when all it checks is right, and ends with an error otherwise.

#[path = "../tests/contract/mod.rs"]
mod contract;

use std::io::Write;
use std::time::{Duration, Instant};

use hier::across::HierComm;
use hier::nodes::{Joined, Nodes, Settings, join};
use hier::operator::{LogicalOr, Sum};
use hier::transport::mpi::{MpiTransport, ThreadLevel};
use hier::transport::{Error, Transport, all_gather, wait};
use mpi::Threading;
use mpi::environment::Universe;

const LIMIT: Duration = Duration::from_secs(60);

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        ["contract"] => contract(),
        ["long"] => long(),
        ["level", level] => level_of_threads(level),
        ["unready"] => unready(),
        ["misuse"] => misuse(),
        ["alone"] => alone(),
        ["join", nodes] => joining(nodes),
        ["again"] => again(),
        ["leave"] => leaving(),
        ["die", how, victim] => dying(how, victim.parse().expect("a rank")),
        _ => panic!(
            "transport_mpi contract | long | level L | unready | misuse | alone | join NODES | again | leave | die HOW RANK"
        ),
    }
}

fn start(threading: Threading) -> Universe {
    mpi::initialize_with_threading(threading).expect("the first initialisation").0
}

/// Says, in one piece, that all is right.
fn fine(rank: usize, text: &str) {
    let line = format!("ok rank={rank} {text}\n");
    let mut out = std::io::stdout().lock();
    out.write_all(line.as_bytes()).expect("standard output");
    out.flush().expect("standard output");
    // The launcher may lose what is printed while it ends a job.
    if let Some(path) = std::env::var_os("TELL") {
        let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
        file.and_then(|mut file| file.write_all(line.as_bytes())).expect("the file to tell");
    }
}

fn contract() {
    let universe = start(Threading::Funneled);
    // As long as it is, and with everything of more than 1000 bytes in parts, or only long messages, whose further
    // parts are short.
    let whole = MpiTransport::new(&universe.world()).unwrap();
    contract::run(&whole);
    let parted = MpiTransport::world().unwrap().with_longest_whole(100_000);
    contract::run(&parted);
    let parted = MpiTransport::world().unwrap().with_longest_whole(1000);
    contract::run(&parted);
    fine(parted.rank(), &parted.describe());
}

/// A message of more than 2^31 bytes.
fn long() {
    const BYTES: usize = (2 << 30) + 5;
    let _universe = start(Threading::Single);
    let transport = MpiTransport::world().unwrap();
    let mut data = vec![0_u8; BYTES];
    if transport.rank() == 0 {
        (data[0], data[1 << 30], data[BYTES - 1]) = (1, 2, 3);
        // SAFETY: it ends below.
        let mut sending = unsafe { transport.send(1, 0, data.as_ptr(), BYTES) }.unwrap();
        wait(&transport, &mut sending, 1, "a message", Some(LIMIT)).unwrap();
    } else if transport.rank() == 1 {
        // SAFETY: it ends below.
        let mut receiving = unsafe { transport.receive(0, 0, data.as_mut_ptr(), BYTES) }.unwrap();
        wait(&transport, &mut receiving, 0, "a message", Some(LIMIT)).unwrap();
        assert_eq!((data[0], data[1], data[1 << 30], data[BYTES - 1]), (1, 0, 2, 3));
    }
    fine(transport.rank(), "");
}

/// What another thread may do.
fn level_of_threads(level: &str) {
    let threading = match level {
        "single" => Threading::Single,
        "funneled" => Threading::Funneled,
        "serialized" => Threading::Serialized,
        "multiple" => Threading::Multiple,
        other => panic!("{other} is no level"),
    };
    let _universe = start(threading);
    let transport = MpiTransport::world().unwrap();
    let granted = transport.thread_level();
    let (rank, size) = (transport.rank(), transport.size());
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| MpiTransport::world().map(drop));
        // Collective: where it is allowed, all ranks do it.
        let made_there = thread.join().unwrap();
        assert_eq!(made_there.is_ok(), granted >= ThreadLevel::Serialized, "{made_there:?}");
    });
    let moved = std::thread::spawn(move || {
        let result = all_gather(&transport, &[1], Some(LIMIT));
        match granted >= ThreadLevel::Serialized {
            true => assert_eq!(result.unwrap().len(), size),
            false => assert_eq!(result, Err(Error::Thread { level: granted.name() })),
        }
        transport
    });
    // Here it serves again.
    assert_eq!(all_gather(&moved.join().unwrap(), &[1], Some(LIMIT)).unwrap().len(), size);
    fine(rank, granted.name());
}

/// Before MPI begins, and after it has ended.
fn unready() {
    assert_eq!(MpiTransport::world().map(drop), Err(Error::NotInitialised));
    let universe = start(Threading::Single);
    let transport = MpiTransport::world().unwrap();
    let rank = transport.rank();
    all_gather(&transport, &[], Some(LIMIT)).unwrap();
    drop(universe);
    assert_eq!(MpiTransport::world().map(drop), Err(Error::Finalised));
    // A transport that outlives MPI ends quietly.
    drop(transport);
    fine(rank, "");
}

/// Communicators that are none, or not what they should be; calls from the wrong thread, and after MPI's end.
fn misuse() {
    use mpi::ffi;
    use mpi::topology::Communicator as _;
    use mpi::traits::AsRaw as _;
    let universe = start(Threading::Funneled);
    let world = universe.world();
    let (rank, size) = (world.rank() as usize, world.size() as usize);
    // SAFETY: a constant of MPI.
    let null = unsafe { ffi::RSMPI_COMM_NULL };
    // SAFETY: no communicator at all is recognised.
    assert_eq!(unsafe { MpiTransport::from_raw(null) }.map(drop), Err(Error::NoCommunicator));
    // Between the even and the odd ranks.
    let mut part = null;
    // SAFETY: all ranks of the world split it.
    let code = unsafe { ffi::MPI_Comm_split(world.as_raw(), (rank % 2) as i32, 0, &mut part) };
    assert_eq!(code, 0);
    let mut between = null;
    // SAFETY: both groups name each other's first rank in the world.
    let code = unsafe { ffi::MPI_Intercomm_create(part, 0, world.as_raw(), 1 - (rank % 2) as i32, 7, &mut between) };
    assert_eq!(code, 0);
    // SAFETY: it was just made.
    assert_eq!(unsafe { MpiTransport::from_raw(between) }.map(drop), Err(Error::Intercommunicator));
    // SAFETY: it was just made, and is freed once.
    let code = unsafe { ffi::MPI_Comm_free(&mut between) };
    assert_eq!(code, 0);
    // A program's communicator may be freed, and may have errors end the job: ours are duplicates that return them.
    // SAFETY: it was made above.
    let own = HierComm::over(Box::new(unsafe { MpiTransport::from_raw(part) }.unwrap()), &Default::default()).unwrap();
    // SAFETY: it was made above, and is freed once.
    let code = unsafe { ffi::MPI_Comm_free(&mut part) };
    assert_eq!(code, 0);
    let mut sum = [1];
    own.all_reduce_in_place(&mut sum, Sum).unwrap();
    assert_eq!((sum[0], own.size()), (size.div_ceil(2) - usize::from(size % 2 == 1 && rank % 2 == 1), sum[0]));
    // Of one rank.
    // SAFETY: MPI's own communicator of this process.
    let alone = unsafe { MpiTransport::from_raw(ffi::RSMPI_COMM_SELF) }.unwrap();
    let alone = HierComm::over(Box::new(alone), &Default::default()).unwrap();
    let mut one = [rank; 100];
    alone.all_reduce_in_place(&mut one, Sum).unwrap();
    alone.process_at_rank(0).broadcast_into(&mut one).unwrap();
    alone.barrier().unwrap();
    assert_eq!((one, alone.size()), ([rank; 100], 1));
    // From another thread.
    let whole = HierComm::from_mpi(&world).unwrap();
    let whole = std::thread::spawn(move || {
        let error = whole.barrier().unwrap_err().to_string();
        assert!(error.contains("this thread must not use MPI"), "{error}");
        whole
    });
    let whole = whole.join().unwrap();
    whole.barrier().unwrap();
    drop(universe);
    for (comm, name) in [(&whole, "of all"), (&own, "of some"), (&alone, "of one")] {
        let error = comm.barrier().unwrap_err().to_string();
        assert!(error.contains("MPI is finalised already"), "{name}: {error}");
    }
    // Dropped after MPI's end, quietly.
    drop((whole, own, alone));
    fine(rank, "");
}

/// A process that should not be alone.
fn alone() {
    let _universe = start(Threading::Single);
    match MpiTransport::world() {
        Ok(transport) => fine(transport.rank(), &format!("of {}", transport.size())),
        Err(error) => println!("refused: {error}"),
    }
}

/// Checks all that a rank knows once it has joined.
fn check(transport: &dyn Transport, joined: &Joined, nodes: &[usize]) {
    let (rank, placement) = (transport.rank(), &joined.placement);
    assert_eq!(placement.ranks(), transport.size());
    for other in 0..placement.ranks() {
        let together = placement.node_of(other) == placement.node_of(rank);
        assert_eq!(together, nodes[other] == nodes[rank], "{placement:?} for {nodes:?}");
    }
    let members = placement.members(placement.node_of(rank));
    assert_eq!((joined.node.rank(), joined.node.size()), (placement.local_rank(rank), members.len()));
    for elements in [1, 1000, 100_000] {
        let mut sum = vec![0; elements];
        joined.node.all_reduce_into(&vec![rank + 1; elements], &mut sum, Sum).unwrap();
        assert_eq!(sum, vec![members.iter().map(|member| member + 1).sum::<usize>(); elements]);
    }
    let all = all_gather(transport, format!("{placement:?}").as_bytes(), Some(LIMIT)).unwrap();
    assert!(all.iter().all(|other| *other == all[0]), "placements differ");
}

/// The nodes' numbers by rank, `found:` and what numbers should be found, or `found` when all should be on one.
fn joining(nodes: &str) {
    let _universe = start(Threading::Funneled);
    let transport = MpiTransport::world().unwrap();
    let numbers = |list: &str| list.split(',').map(|number| number.parse().expect("a number")).collect::<Vec<usize>>();
    let (nodes, expected) = match nodes.strip_prefix("found") {
        Some("") => (Nodes::Found, vec![0; transport.size()]),
        Some(list) => (Nodes::Found, numbers(list.trim_start_matches(':'))),
        None => (Nodes::Given(numbers(nodes)), numbers(nodes)),
    };
    let settings = Settings { nodes, ..Settings::default() };
    let begin = Instant::now();
    let joined = join(&transport, &settings).unwrap();
    let took = begin.elapsed();
    check(&transport, &joined, &expected);
    fine(transport.rank(), &format!("nodes={} joined={took:?} remarks={:?}", joined.placement.nodes(), joined.remarks));
}

/// Threads and descriptors of this process.
fn counts() -> [usize; 2] {
    ["/proc/self/task", "/proc/self/fd"].map(|folder| std::fs::read_dir(folder).expect("proc").count())
}

/// Joining many times leaves nothing behind.
fn again() {
    let _universe = start(Threading::Funneled);
    let transport = MpiTransport::world().unwrap();
    let nodes = vec![0; transport.size()];
    let once = || check(&transport, &join(&transport, &Settings::default()).unwrap(), &nodes);
    once();
    all_gather(&transport, &[], Some(LIMIT)).unwrap();
    std::thread::sleep(Duration::from_millis(2500));
    let before = counts();
    (0..20).for_each(|_| once());
    all_gather(&transport, &[], Some(LIMIT)).unwrap();
    std::thread::sleep(Duration::from_millis(2500));
    let after = counts();
    assert!(after[0] <= before[0] && after[1] <= before[1], "threads and descriptors: {before:?}, then {after:?}");
    fine(transport.rank(), "");
}

/// Rank 0 leaves by `exit` and in good order; the others go on among themselves.
fn leaving() {
    let universe = start(Threading::Funneled);
    let transport = MpiTransport::world().unwrap();
    let joined = join(&transport, &Settings::default()).unwrap();
    let rank = transport.rank();
    let part = joined.node.split(Some(u32::from(rank == 0)), 0).unwrap().unwrap();
    joined.node.barrier().unwrap();
    all_gather(&transport, &[], Some(LIMIT)).unwrap();
    drop(transport);
    // Nobody waits for anybody in MPI any more.
    drop(universe);
    if rank == 0 {
        fine(rank, "leaves");
        std::mem::forget((joined, part));
        std::process::exit(0);
    }
    let begin = Instant::now();
    let mut ends = [false];
    // All of them end after the same round: the first to see that rank 0 is gone stops the job for all.
    while !ends[0] {
        ends[0] = begin.elapsed() > Duration::from_millis(700);
        part.all_reduce_in_place(&mut ends, LogicalOr).unwrap();
    }
    // With the one that left there is nothing more to be had.
    assert_eq!(joined.node.barrier(), Err(hier::Error::RankFailed { rank: 0 }));
    fine(rank, "went on");
}

/// A rank ends in the midst; the others are told by their node's communicator.
fn dying(how: &str, victim: usize) {
    let _universe = start(Threading::Funneled);
    let transport = MpiTransport::world().unwrap();
    // The launcher's SIGTERM is not to be quicker than the last line.
    // SAFETY: no handler is installed, the signal is ignored.
    unsafe { nix::sys::signal::signal(nix::sys::signal::Signal::SIGTERM, nix::sys::signal::SigHandler::SigIgn) }
        .unwrap();
    let joined = join(&transport, &Settings::default()).unwrap();
    let rank = transport.rank();
    joined.node.barrier().unwrap();
    if rank == victim {
        std::thread::sleep(Duration::from_millis(200));
        fine(rank, &format!("died at={}", now()));
        match how {
            "kill" => nix::sys::signal::raise(nix::sys::signal::Signal::SIGKILL).expect("a signal"),
            "abort" => std::process::abort(),
            "exit" => std::process::exit(0),
            other => panic!("{other} is no way to end"),
        }
    }
    let error = loop {
        if let Err(error) = joined.node.barrier() {
            break error;
        }
    };
    fine(
        rank,
        &format!(
            "survived at={} blames={}",
            now(),
            match error {
                hier::Error::RankFailed { rank } => rank.to_string(),
                other => format!("{other:?}"),
            }
        ),
    );
    // MPI cannot be finalised without the victim.
    std::thread::sleep(Duration::from_millis(100));
    std::process::exit(9);
}

/// Milliseconds of a clock that all processes share.
fn now() -> u128 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a clock").as_millis()
}
