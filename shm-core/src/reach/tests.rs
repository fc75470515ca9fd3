//! Ranks that read and write each other's private memory, as threads and as processes; and those that may not, or
//! cannot any more.

use std::process::Child;

use super::*;
use crate::communicator::Communicator;
use crate::job::{Job, JobSpec, Standing};
use crate::processes::{self, ended};
use crate::regime::{EXCHANGED_L2, Transfer};

const LEN: usize = 3 << 20;

fn byte(rank: usize, place: usize) -> u8 {
    (place.wrapping_mul(2_654_435_761) >> 13) as u8 ^ rank as u8
}

/// Everybody reads from everybody: whole, and at odd places.
fn all_read_all(world: &Communicator) {
    let (rank, size) = (world.rank(), world.size());
    let own: Vec<u8> = (0..LEN).map(|place| byte(rank, place)).collect();
    let mut addresses = vec![0u64; size];
    addresses[rank] = own.as_ptr().expose_provenance() as u64;
    world.all_reduce_in_place(&mut addresses, crate::operator::BitOr).unwrap();
    let reach = world.seat().reach();
    for (peer, place) in addresses.into_iter().enumerate() {
        for (from, bytes) in [(0, LEN), (1, 5000), (LEN - 1, 1), (4095, 2), (7, 0)] {
            let mut into = vec![0; bytes + 2];
            let address = place + from as u64;
            // SAFETY: the peer's vector is there until the barrier below, `into` is this rank's.
            unsafe { reach.read((peer, address), into[1..].as_mut_ptr(), bytes, 1) }.unwrap();
            let expected = (0..bytes).map(|place| byte(peer, from + place));
            assert!(into[1..=bytes].iter().copied().eq(expected), "rank {rank} from {peer}, {bytes} at {from}");
            assert_eq!((into[0], into[bytes + 1]), (0, 0));
        }
    }
    world.barrier().unwrap();
}

/// Everybody writes to everybody, each to a row of its own.
fn all_write_all(world: &Communicator) {
    const ROW: usize = 70_001;
    let (rank, size) = (world.rank(), world.size());
    let mut own = vec![0u8; size * ROW];
    let mut addresses = vec![0u64; size];
    addresses[rank] = own.as_mut_ptr().expose_provenance() as u64;
    world.all_reduce_in_place(&mut addresses, crate::operator::BitOr).unwrap();
    let reach = world.seat().reach();
    for (peer, place) in addresses.into_iter().enumerate() {
        let row: Vec<u8> = (0..ROW).map(|place| byte(rank, place)).collect();
        for (from, bytes) in [(1, ROW - 2), (5, 0)] {
            let address = place + (rank * ROW + from) as u64;
            // SAFETY: the peer's vector is there until the barrier below, where it looks at it; this row is this rank's
            // alone to write.
            unsafe { reach.write(row[from..].as_ptr(), (peer, address), bytes, 1) }.unwrap();
        }
    }
    world.barrier().unwrap();
    // What others have written the compiler cannot know of.
    let own = std::hint::black_box(own);
    for (peer, row) in own.chunks(ROW).enumerate() {
        let expected = (1..ROW - 1).map(|place| byte(peer, place));
        assert!(row[1..ROW - 1].iter().copied().eq(expected), "rank {rank} from {peer}");
        assert_eq!((row[0], row[ROW - 1]), (0, 0));
    }
}

/// Broadcasts of private buffers that are as long as those that are lent on trial, of which the ranks of a pair reach
/// some.
fn all_broadcast(world: &Communicator) {
    broadcast_long(world);
    let reached = world.counters().reached;
    assert_eq!(reached > 0, world.size() == 2, "{reached} bytes on rank {}", world.rank());
}

/// A job whose cells are filled in a known way: trials begin at once.
fn with_known_ways(ranks: usize) -> JobSpec {
    let mut spec = JobSpec::new(ranks).unwrap();
    spec.tuning.force("broadcast:down_cells=4,down_cell=32K,stream=1").unwrap();
    spec
}

fn broadcast_long(world: &Communicator) {
    const LONG: usize = 300_001;
    let rank = world.rank();
    for root in 0..world.size() {
        let process = world.process_at_rank(root);
        for call in 0..40 {
            let mut buffer =
                if rank == root { (0..LONG).map(|place| byte(call, place)).collect() } else { vec![0; LONG] };
            process.broadcast_into(&mut buffer).unwrap();
            let got = std::hint::black_box(&buffer);
            assert!(got.iter().copied().eq((0..LONG).map(|place| byte(call, place))), "{call} from {root} on {rank}");
        }
    }
}

/// Scatters blocks that are long enough to be offered from rank 1; returns how many bytes this rank has reached.
fn scatter_long(world: &Communicator, call: usize) -> usize {
    const LONG: usize = 200_003;
    let (rank, size) = (world.rank(), world.size());
    let process = world.process_at_rank(1);
    let all: Vec<u8> = (0..size * LONG).map(|place| byte(call, place)).collect();
    let mut block = vec![0; LONG];
    world.reset_counters();
    match rank {
        1 => process.scatter_into_root(&all, &mut block).unwrap(),
        _ => process.scatter_into(&mut block).unwrap(),
    }
    assert!(std::hint::black_box(block) == all[rank * LONG..][..LONG], "call {call}, rank {rank}");
    world.counters().reached as usize
}

/// Gathers blocks that are long enough to be put where they belong on rank 1; returns how many bytes this rank has
/// reached.
fn gather_long(world: &Communicator, call: usize) -> usize {
    const LONG: usize = 200_003;
    let (rank, size) = (world.rank(), world.size());
    let process = world.process_at_rank(1);
    let own: Vec<u8> = (0..LONG).map(|place| byte(call + rank, place)).collect();
    let mut all = vec![0; size * LONG + 1];
    world.reset_counters();
    match rank {
        1 => process.gather_into_root(&own, &mut all[..size * LONG]).unwrap(),
        _ => process.gather_into(&own).unwrap(),
    }
    let reached = world.counters().reached as usize;
    // What others have written the compiler cannot know of.
    let all = std::hint::black_box(all);
    for (peer, block) in all[..size * LONG].chunks(LONG).enumerate().filter(|_| rank == 1) {
        let expected = (0..LONG).map(|place| byte(call + peer, place));
        assert!(block.iter().copied().eq(expected), "call {call}, from {peer}");
    }
    assert_eq!(all[size * LONG], 0);
    reached
}

/// An alltoall of blocks that all offer to all, where processors have a second-level cache that is large enough;
/// returns how many bytes this rank has reached.
fn exchange_medium(world: &Communicator, call: usize) -> usize {
    const MEDIUM: usize = 140_003;
    let (rank, size) = (world.rank(), world.size());
    let block = |from: usize, to: usize| (0..MEDIUM).map(move |place| byte(call + 16 * from + to, place));
    let send: Vec<u8> = (0..size).flat_map(|to| block(rank, to)).collect();
    let mut recv = vec![0; size * MEDIUM];
    world.reset_counters();
    world.all_to_all_into(&send, &mut recv).unwrap();
    let recv = std::hint::black_box(recv);
    for (peer, got) in recv.chunks(MEDIUM).enumerate() {
        assert!(got.iter().copied().eq(block(peer, rank)), "call {call}, rank {rank} from {peer}");
    }
    world.counters().reached as usize
}

/// What is offered is taken by those who reach it, as long as they do, and what a root opens is written to by them.
/// Then all go on, through cells. `reach` says which ranks reach others at first.
fn some_decline(world: &Communicator, make: fn(&Communicator, usize) -> usize, reach: fn(usize) -> bool) {
    let rank = world.rank();
    let reached = make(world, 1);
    assert_eq!(reached > 0, reach(rank), "{reached} bytes on rank {rank}");
    if rank == 0 {
        // Of a root that is no superuser everybody may read, whoever closes itself.
        close();
    }
    (2..4).for_each(|call| _ = make(world, call));
    if rank == 1 {
        // As when a process's first thread has ended: nothing of it is found.
        world.seat().reach().of(1).beacon.store(64, Ordering::Relaxed);
    }
    world.barrier().unwrap();
    for call in 4..8 {
        assert_eq!(make(world, call), 0, "nobody reaches it");
    }
    world.barrier().unwrap();
}

/// Lets no other user's process reach this one, and, of the superuser, this one no other user's.
fn close() {
    let user = nix::unistd::Uid::from_raw(65534);
    if nix::unistd::setuid(user).is_err() {
        nix::sys::prctl::set_dumpable(false).unwrap();
    }
}

#[test]
fn threads_reach_each_other() {
    for ranks in [1, 2, 5] {
        with_known_ways(ranks).on_threads(|world| {
            // All attached before any of them ran.
            assert_eq!(world.reaching(), Reaching::Allowed);
            all_read_all(&world);
            all_write_all(&world);
            all_broadcast(&world);
        });
    }
    let mut spec = JobSpec::new(2).unwrap();
    spec.cma = false;
    let found = spec.on_threads(|world| world.reaching());
    assert_eq!(found, [Reaching::Unwanted; 2]);
}

/// What a process of the tests below does: not a test of its own.
#[test]
#[ignore = "the other tests start it"]
fn process() {
    let Ok(role) = std::env::var("REACH_ROLE") else { return };
    let invitation = crate::job::Invitation::from_environment().unwrap().unwrap();
    if role == "stranger" {
        // The superuser reads everything, so that only another user is refused; others are by who closes itself.
        close();
    }
    let world = invitation.accept(Arc::new(crate::FlatPlan)).unwrap();
    // From here on all have attached. Each asks; then all know.
    world.barrier().unwrap();
    let _ = world.reaching();
    world.barrier().unwrap();
    let found = world.reaching();
    match role.as_str() {
        "reader" if std::env::var("REACH_STRANGERS").is_err() => {
            if found == Reaching::Allowed {
                all_read_all(&world);
                all_write_all(&world);
                all_broadcast(&world);
                shows_what_is_there(&world);
                errors_name_the_rank(&world);
            }
            println!("found: {found:?}");
        }
        // It closes itself when all have found that they reach each other, or nothing of it can be read any more though
        // it lives, as when its first thread has ended: what is lent is declined then, once.
        "closing by both" | "closing by the taker" | "hidden by both" | "hidden by the taker" => {
            if found == Reaching::Allowed {
                let closes = role.starts_with("closing");
                if world.rank() == 1 {
                    match closes {
                        true => {
                            close();
                            assert!(!shows(&world, &[1; 4]));
                        }
                        false => world.seat().reach().of(1).beacon.store(64, Ordering::Relaxed),
                    }
                }
                world.barrier().unwrap();
                let by_both = role.ends_with("both");
                world.enter().unwrap().send_by(if by_both { Transfer::ByBoth } else { Transfer::ByTaker });
                broadcast_long(&world);
                let reaching = world.reaching();
                assert_eq!(matches!(reaching, Reaching::Refused(_)), closes, "{reaching:?}");
            }
            println!("found: {found:?}");
        }
        "offered" | "opened" | "exchanged" => {
            if found == Reaching::Allowed {
                match role.as_str() {
                    "offered" => some_decline(&world, scatter_long, |rank| rank != 1),
                    "opened" => some_decline(&world, gather_long, |rank| rank != 1),
                    _ => some_decline(&world, exchange_medium, |_| exchanges_are_reached()),
                }
            }
            println!("found: {found:?}");
        }
        _ => {
            assert!(matches!(found, Reaching::Refused(_)), "{found:?}");
            println!("found: Refused");
        }
    }
    world.barrier().unwrap();
}

/// Whether this machine's processors are of those on which alltoalls are read where they lie.
fn exchanges_are_reached() -> bool {
    crate::first_processor::l2() >= EXCHANGED_L2
}

/// Whether others could read these bytes of this rank.
fn shows(world: &Communicator, bytes: &[u8]) -> bool {
    world.seat().reach().shows(bytes.as_ptr(), bytes.len())
}

fn shows_what_is_there(world: &Communicator) {
    assert!(shows(world, &vec![1; LEN]) && shows(world, &[1]));
    let nowhere = std::ptr::without_provenance(64);
    assert!(!world.seat().reach().shows(nowhere, 1));
    // Its end alone is there.
    let end: *const u8 = std::ptr::from_ref(world).cast();
    assert!(!world.seat().reach().shows(nowhere, end.addr() - nowhere.addr()));
}

fn errors_name_the_rank(world: &Communicator) {
    let (rank, reach) = (world.rank(), world.seat().reach());
    let peer = (rank + 1) % world.size();
    let mut into = [0u8; 64];
    // SAFETY: nothing lies at this address of another process: the call fails.
    let read = unsafe { reach.read((peer, 64), into.as_mut_ptr(), into.len(), 0) };
    // SAFETY: the same.
    let written = unsafe { reach.write(into.as_ptr(), (peer, 64), into.len(), 0) };
    for error in [read.unwrap_err(), written.unwrap_err()] {
        assert!(
            matches!(error, Error::Unreachable { rank, own, .. } if rank == peer && own == world.rank()),
            "{error}"
        );
    }
    assert!(reach.allowed(), "one wrong address is no refusal");
}

fn start(job: &Job, rank: usize, role: &str, strangers: bool) -> Child {
    let strangers = strangers.then_some(("REACH_STRANGERS", "1"));
    let environment: Vec<_> = std::iter::once(("REACH_ROLE", role)).chain(strangers).collect();
    processes::start(job, rank, "reach::tests::process", &environment)
}

/// All have found the same; where that is a refusal, they have tried nothing more.
fn agreed(found: &[String]) {
    assert!(found.iter().all(|word| *word == found[0]), "{found:?}");
    if found[0] != "Allowed" {
        processes::say_skipped(&format!("ranks do not reach each other's memory: {}", found[0]));
    }
}

#[test]
fn processes_reach_each_other() {
    for ranks in [2, 3] {
        let job = Job::create(&with_known_ways(ranks)).unwrap();
        let found = ended((0..ranks).map(|rank| start(&job, rank, "reader", false)).collect());
        agreed(&found);
        assert!((0..ranks).all(|rank| job.standing(rank) == Standing::Left));
    }
}

#[test]
fn what_cannot_be_reached_any_more_is_declined() {
    for role in ["closing by both", "closing by the taker", "hidden by both", "hidden by the taker"] {
        let job = Job::create(&with_known_ways(2)).unwrap();
        let found = ended((0..2).map(|rank| start(&job, rank, role, false)).collect());
        agreed(&found);
        assert!((0..2).all(|rank| job.standing(rank) == Standing::Left));
    }
}

#[test]
fn what_is_offered_or_opened_and_not_reached_goes_through_cells() {
    if !exchanges_are_reached() {
        processes::say_skipped("alltoalls are not read where they lie: the second-level cache is too small");
    }
    for role in ["offered", "opened", "exchanged"] {
        let job = Job::create(&JobSpec { cores: 1, ..JobSpec::new(4).unwrap() }).unwrap();
        let found = ended((0..4).map(|rank| start(&job, rank, role, false)).collect());
        agreed(&found);
        assert!((0..4).all(|rank| job.standing(rank) == Standing::Left));
    }
}

#[test]
fn a_rank_that_is_refused_is_one_for_all() {
    let job = Job::create(&JobSpec::new(3).unwrap()).unwrap();
    let roles = ["reader", "stranger", "reader"];
    let children = (0..3).map(|rank| start(&job, rank, roles[rank], true)).collect();
    assert_eq!(ended(children), ["Refused"; 3]);
}

/// A process that came to the id of a rank, or has it in another namespace, is not read.
#[test]
fn another_process_in_the_place_of_a_rank() {
    let job = Job::create(&JobSpec::new(2).unwrap()).unwrap();
    let world = job.attach(0, Arc::new(crate::FlatPlan)).unwrap();
    let reach = world.seat().reach();
    let other = reach.of(1);
    // This very process, under the number of another.
    other.pid.store(std::process::id(), Ordering::Relaxed);
    other.beacon.store(BEACON.as_ptr().addr() as u64, Ordering::Relaxed);
    other.number.store(reach.own ^ 2, Ordering::Release);
    let mut into = [7u8; 8];
    // SAFETY: the place is this test's own; nothing is taken from it.
    let error = unsafe { reach.read((1, into.as_ptr().addr() as u64), into.as_mut_ptr(), 4, 1) }.unwrap_err();
    assert_eq!(error, Error::RankFailed { rank: 1 });
    let from = [9u8; 8];
    // SAFETY: the same.
    let error = unsafe { reach.write(from.as_ptr(), (1, into.as_mut_ptr().addr() as u64), 4, 1) }.unwrap_err();
    assert_eq!((error, std::hint::black_box(into)), (Error::RankFailed { rank: 1 }, [7; 8]), "nothing was written");
    // The beacon is not there: what was a rank runs another program (`exec`), and has its id.
    other.beacon.store(64, Ordering::Relaxed);
    // SAFETY: nothing is taken from this place, nor written to it.
    let error = unsafe { reach.read((1, from.as_ptr().addr() as u64), into.as_mut_ptr(), 4, 1) }.unwrap_err();
    assert_eq!(error, Error::RankFailed { rank: 1 });
    // SAFETY: the same.
    let error = unsafe { reach.write(from.as_ptr(), (1, into.as_mut_ptr().addr() as u64), 4, 1) }.unwrap_err();
    assert_eq!((error, std::hint::black_box(into)), (Error::RankFailed { rank: 1 }, [7; 8]), "nothing was written");
    // One that is no more. Ids end at 2^22.
    other.pid.store((1 << 22) + 1, Ordering::Relaxed);
    // SAFETY: there is no such process.
    let error = unsafe { reach.read((1, 4096), into.as_mut_ptr(), 4, 1) }.unwrap_err();
    assert_eq!(error, Error::RankFailed { rank: 1 });
    assert!(!reach.allowed());
    assert_eq!(reach.found(), Reaching::Refused(Errno::ESRCH.desc()));
}
