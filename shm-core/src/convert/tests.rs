//! Pages that were moved, and what a program may do with them.

use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::sync::{Mutex, Once};

use nix::sys::mman::{MRemapFlags, MapFlags, ProtFlags, mmap_anonymous, mprotect, mremap, munmap};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};

use super::allocation::allocation_of;
use super::areas::Areas;
use super::book::{Book, Found};
use crate::communicator::Communicator;
use crate::job::{Job, JobSpec};
use crate::operator::{Max, Sum};
use crate::segment::layout::EXTENT;
use crate::segment::pool::PAGE;

fn spec(ranks: usize, rules: &str) -> JobSpec {
    let mut spec = JobSpec::new(ranks).unwrap();
    spec.heap = Some(256 << 20);
    spec.tuning = crate::Tuning::default();
    spec.tuning.force(rules).unwrap();
    spec
}

/// Whether `test`, which asks, is to go on: in a process of its own, since what others do with their memory decides
/// which buffers can be moved.
fn alone<T: Fn()>(test: T) -> bool {
    if !super::is_possible() {
        crate::processes::say_skipped("conversion takes Linux 6.11, and /proc");
        return false;
    }
    crate::processes::is_alone(test)
}

fn ranks<R: Send>(number: usize, rules: &str, f: impl Fn(Communicator) -> R + Sync) -> Vec<R> {
    spec(number, rules).on_threads(f)
}

/// Every buffer is moved when it is seen.
const AT_ONCE: &str = "all:auto,convert_from=1,convert_after=0,line_most=64,direct_from=1";

fn moved(comm: &Communicator) -> u64 {
    comm.seat().conversions().bytes()
}

/// Words that the allocator maps pages for: it prefers memory that was freed, which is held meanwhile.
fn words(number: usize) -> Vec<u64> {
    static ONCE: Once = Once::new();
    // SAFETY: a setting of the allocator's.
    ONCE.call_once(|| assert_eq!(unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, 16 << 10) }, 1));
    let mut others = Vec::new();
    loop {
        let vector = vec![0; number];
        // Smaller ones come from where they like.
        if number < 2 * PAGE_WORDS || is_mapped(&vector) {
            return vector;
        }
        others.push(vector);
        assert!(others.len() < 10_000, "the allocator maps no pages for {number} words");
    }
}

/// The same, once all ranks have theirs: a neighbour that comes or goes meanwhile would stand in the way of a move.
fn words_of_all(comm: &Communicator, number: usize) -> Vec<u64> {
    let vector = words(number);
    comm.barrier().unwrap();
    vector
}

fn is_mapped(vector: &[u64]) -> bool {
    let call = vector.as_ptr().addr()..vector.as_ptr().addr() + size_of_val(vector);
    let books = super::fork::books();
    allocation_of(&Areas::open().unwrap(), &call, |at| books.allocation_at(at)).is_some()
}

const PAGE_WORDS: usize = PAGE / 8;

/// The sum of all ranks' words, which are their ranks plus the word's number plus `turn`.
fn sums(comm: &Communicator, words: &mut [u64], turn: u64) {
    let size = comm.size() as u64;
    words.iter_mut().zip(0..).for_each(|(word, at)| *word = comm.rank() as u64 + at + turn);
    comm.all_reduce_in_place(words, Sum).unwrap();
    let right = |(word, at): (&u64, u64)| *word == size * (size - 1) / 2 + size * (at + turn);
    assert!(words.iter().zip(0..).all(right), "rank {}, turn {turn}", comm.rank());
}

/// Parts of vectors, at odd places, that grow and shrink, in place and not, with every root.
#[test]
fn parts_of_vectors_at_odd_places() {
    if !alone(parts_of_vectors_at_odd_places) {
        return;
    }
    for rules in [
        AT_ONCE,
        "all:cells,cell=1K,cells=3,convert_from=1,convert_after=3",
        "all:shares,convert_from=1,convert_after=1",
    ] {
        for number in [2, 3] {
            let most = ranks(number, rules, |comm| {
                let (rank, size) = (comm.rank(), comm.size());
                let (mut own, mut result) = (words(30_000), words(30_000));
                let (mut number, mut most) = (7u64, 0);
                let mut random = |below: usize| {
                    number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    (number >> 33) as usize % below
                };
                for turn in 0..120 {
                    // Others at first, then the same again and again.
                    let (length, from, to) = match turn {
                        0..60 => (random(30_000), random(30_000) + rank, random(30_000)),
                        _ => (20_000, 3 + 5 * rank, 7),
                    };
                    let own = &mut bytemuck::cast_slice_mut::<u64, u32>(&mut own)[from..from + length];
                    let result = &mut bytemuck::cast_slice_mut::<u64, u32>(&mut result)[to..to + length];
                    let value = |rank: usize, at: usize| (rank * 1_000_003 + at * 7 + turn) as u32;
                    own.iter_mut().enumerate().for_each(|(at, word)| *word = value(rank, at));
                    result.fill(0);
                    let sum = |at: usize| (0..size).map(|rank| value(rank, at)).fold(0, u32::wrapping_add);
                    let root = random(size);
                    let process = comm.process_at_rank(root);
                    match turn % 5 {
                        0 => {
                            comm.all_reduce_into(own, result, Sum).unwrap();
                            assert!(result.iter().enumerate().all(|(at, &word)| word == sum(at)), "turn {turn}");
                            assert!(own.iter().enumerate().all(|(at, &word)| word == value(rank, at)), "turn {turn}");
                        }
                        1 => {
                            comm.all_reduce_in_place(own, Sum).unwrap();
                            assert!(own.iter().enumerate().all(|(at, &word)| word == sum(at)), "turn {turn}");
                        }
                        2 if rank == root => {
                            process.reduce_into_root(own, result, Sum).unwrap();
                            assert!(result.iter().enumerate().all(|(at, &word)| word == sum(at)), "turn {turn}");
                        }
                        2 => process.reduce_into(own, Sum).unwrap(),
                        3 => {
                            process.broadcast_into(own).unwrap();
                            assert!(own.iter().enumerate().all(|(at, &word)| word == value(root, at)), "turn {turn}");
                        }
                        _ => {
                            let view = comm.all_reduce_shared(own, Sum).unwrap();
                            assert!(view.iter().enumerate().all(|(at, &word)| word == sum(at)), "turn {turn}");
                        }
                    }
                    most = most.max(moved(&comm));
                }
                most
            });
            assert!(most.iter().all(|&most| most > 0), "{rules}: nothing was moved: {most:?}");
        }
    }
}

#[test]
fn what_comes_seldom_or_is_short_stays() {
    if !alone(what_comes_seldom_or_is_short_stays) {
        return;
    }
    ranks(2, "all:auto,convert_from=64K,convert_after=5", |comm| {
        let (mut long, mut short) = (words(1 << 17), words_of_all(&comm, 4 << 10));
        for turn in 0..5 {
            sums(&comm, &mut long, turn);
            sums(&comm, &mut short, turn);
        }
        assert_eq!(moved(&comm), 0);
        // Should something stand in the way when it is due, it is due again after twice as many.
        for turn in 0..35 {
            sums(&comm, &mut long, turn);
            sums(&comm, &mut short, turn);
        }
        assert_eq!(moved(&comm) as usize, (1 << 20) - PAGE);
    });
    ranks(2, "all:auto", |comm| {
        let mut long = words(1 << 17);
        (0..100).for_each(|turn| sums(&comm, &mut long, turn));
        assert_eq!(moved(&comm), 0, "not asked for");
    });
}

/// What ranks send of blocks lies in the heap too.
#[test]
fn blocks_that_are_sent() {
    if !alone(blocks_that_are_sent) {
        return;
    }
    ranks(3, AT_ONCE, |comm| {
        let (rank, size, each) = (comm.rank(), comm.size(), 5000);
        let value = |from: usize, to: usize, at: usize| (from * 100 + to * 10 + at) as u64;
        let mut send = words(size * each);
        for turn in 0..4 {
            let words = &mut send[..];
            words.iter_mut().enumerate().for_each(|(at, word)| *word = value(rank, at / each, at % each) + turn);
            let mut got = vec![0u64; size * each];
            comm.all_to_all_into(words, &mut got).unwrap();
            assert!(got.iter().enumerate().all(|(at, &word)| word == value(at / each, rank, at % each) + turn));
            let all = &words[3..each - 7];
            let mut got = vec![0; size * all.len()];
            comm.all_gather_into(all, &mut got).unwrap();
            let right = |(at, &word): (usize, &u64)| word == value(at / all.len(), 0, at % all.len() + 3) + turn;
            assert!(got.iter().enumerate().all(right));
            assert!(moved(&comm) > 0);
        }
    });
}

/// Of several lengths the longest is due, unless it does not come again.
#[test]
fn a_buffer_that_is_called_with_several_lengths() {
    let due = |lengths: &mut dyn Iterator<Item = usize>| -> Vec<usize> {
        let mut book = Book::new();
        lengths.filter(|bytes| matches!(book.find(&(1 << 20..(1 << 20) + bytes), 4), Found::Due)).collect()
    };
    let in_turn = due(&mut (0..60).map(|call| [5000, 9000][call % 2]));
    assert!(!in_turn.is_empty() && in_turn.iter().all(|&bytes| bytes == 9000), "{in_turn:?}");
    let once = due(&mut (0..20).map(|call| if call == 0 { 9000 } else { 5000 }));
    assert!(!once.is_empty() && once.iter().all(|&bytes| bytes == 5000), "{once:?}");
}

/// Whole pages are moved, of parts of allocations too, which are found among their neighbours.
#[test]
fn parts_of_allocations() {
    if !alone(parts_of_allocations) {
        return;
    }
    ranks(2, AT_ONCE, |comm| {
        let mut vectors = [(); 3].map(|()| words_of_all(&comm, 16 * PAGE_WORDS));
        for (at, vector) in vectors.iter_mut().enumerate() {
            sums(&comm, &mut vector[3 * PAGE_WORDS..6 * PAGE_WORDS - 1], 0);
            assert_eq!(moved(&comm) as usize, (2 + 15 * at) * PAGE);
            sums(&comm, vector, 1);
            assert_eq!(moved(&comm) as usize, 15 * (at + 1) * PAGE);
            sums(&comm, &mut vector[1..], 2);
            assert_eq!(moved(&comm) as usize, 15 * (at + 1) * PAGE, "it lies in what was moved");
        }
    });
}

/// What is not an allocation of its own stays: arrays on the stack, pages that the program has mapped, short
/// allocations.
#[test]
fn other_memory_stays() {
    if !alone(other_memory_stays) {
        return;
    }
    ranks(2, AT_ONCE, |comm| {
        let mut stack = [0u64; 40 * PAGE_WORDS];
        sums(&comm, &mut stack, 0);
        let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        let bytes = NonZeroUsize::new(40 * PAGE).unwrap();
        // SAFETY: fresh address space.
        let own = unsafe { mmap_anonymous(None, bytes, protection, MapFlags::MAP_PRIVATE) }.unwrap();
        // SAFETY: mapped, and nobody else's; all bits are a word.
        sums(&comm, unsafe { NonNull::slice_from_raw_parts(own.cast(), 40 * PAGE_WORDS).as_mut() }, 1);
        drop(words(1));
        let mut short: Vec<_> = (0..20).map(|_| vec![0u64; PAGE_WORDS + 100]).collect();
        short.iter_mut().for_each(|vector| sums(&comm, vector, 2));
        assert_eq!(moved(&comm), 0);
        // SAFETY: nobody has it any more.
        unsafe { munmap(own, bytes.get()) }.unwrap();
    });
}

/// Freed, and something else at the same address.
#[test]
fn other_pages_at_the_same_address() {
    if !alone(other_pages_at_the_same_address) {
        return;
    }
    let job = Job::create(&spec(2, AT_ONCE)).unwrap();
    job.on_threads(|comm| {
        for turn in 0..40 {
            let mut vector = words_of_all(&comm, 75 * PAGE_WORDS);
            assert!(vector.iter().all(|&word| word == 0), "the allocator counts upon zeros");
            // The first call may find that what it knew of this address is no longer true.
            (0..2).for_each(|again| sums(&comm, &mut vector, turn + again));
            assert_eq!(moved(&comm) as usize, 74 * PAGE);
        }
        comm.seat().conversions().release();
        assert_eq!(moved(&comm), 0);
    });
    assert_eq!(job.heap_taken(), 0, "all is given back");
}

/// Moved by the program: nobody gets the block as long as it is somewhere.
#[test]
fn pages_that_the_program_moves() {
    if !alone(pages_that_the_program_moves) {
        return;
    }
    ranks(2, AT_ONCE, |comm| {
        let mut vector = words(16 * PAGE_WORDS);
        sums(&comm, &mut vector, 0);
        let before = vector[PAGE_WORDS - 2..9 * PAGE_WORDS - 2].to_vec();
        let from = NonNull::from(&mut vector[PAGE_WORDS - 2..]).cast();
        let (bytes, flags) =
            (NonZeroUsize::new(8 * PAGE).unwrap(), MRemapFlags::MREMAP_MAYMOVE | MRemapFlags::MREMAP_FIXED);
        // SAFETY: fresh address space.
        let place = unsafe { mmap_anonymous(None, bytes, ProtFlags::PROT_NONE, MapFlags::MAP_PRIVATE) }.unwrap();
        // SAFETY: both are ours: a half of the vector's pages, behind its first one, which is not used again.
        unsafe { mremap(from, 8 * PAGE, 8 * PAGE, flags, Some(place)) }.unwrap();
        std::mem::forget(vector);
        comm.barrier().unwrap();
        for turn in 1..10 {
            let mut others = words(16 * PAGE_WORDS);
            sums(&comm, &mut others, turn);
        }
        let fresh: Vec<_> = (0..20).map(|_| comm.alloc::<u64>(8 << 10).unwrap()).collect();
        assert!(fresh.iter().all(|buffer| buffer.iter().all(|&word| word == 0)));
        // SAFETY: it was moved here.
        let kept = unsafe { NonNull::slice_from_raw_parts(place.cast::<u64>(), 8 * PAGE_WORDS).as_ref() };
        assert!(kept == before);
    });
}

/// The allocator grows and shrinks what was moved: never into what is not its own.
#[test]
fn vectors_that_shrink_and_grow() {
    if !alone(vectors_that_shrink_and_grow) {
        return;
    }
    ranks(2, AT_ONCE, |comm| {
        for turn in 0..20 {
            let mut vector = words(64 * PAGE_WORDS);
            let mut others: Vec<_> = (0..4).map(|_| comm.alloc_copy(&[77u64; 20_000]).unwrap()).collect();
            sums(&comm, &mut vector, turn);
            sums(&comm, &mut vector, turn + 1);
            let first = vector[0];
            vector.truncate((32 + 7 * turn as usize % 30) * PAGE_WORDS);
            vector.shrink_to_fit();
            vector.reserve_exact(500 * PAGE_WORDS);
            vector.resize(500 * PAGE_WORDS, 3);
            assert!(vector[0] == first && vector.ends_with(&[3; 400]));
            others.push(comm.alloc_copy(&[77u64; 20_000]).unwrap());
            vector[64 * PAGE_WORDS..].fill(5);
            assert!(others.iter().all(|other| other.iter().all(|&word| word == 77)), "turn {turn}");
            sums(&comm, &mut vector, turn + 2);
            vector.shrink_to(10 * PAGE_WORDS);
            sums(&comm, &mut vector, turn + 3);
            assert!(others.iter().all(|other| other.iter().all(|&word| word == 77)), "turn {turn}");
        }
    });
}

/// A page in the middle that may not be written.
#[test]
fn pages_of_several_kinds() {
    if !alone(pages_of_several_kinds) {
        return;
    }
    ranks(2, AT_ONCE, |comm| {
        let (mut own, mut most) = (words(10 * PAGE_WORDS), words_of_all(&comm, 10 * PAGE_WORDS));
        // Before the page: behind such a page nobody can tell where an allocation begins.
        sums(&comm, &mut most, 0);
        assert_eq!(moved(&comm) as usize, 9 * PAGE);
        own.fill(comm.rank() as u64);
        let middle = own.as_mut_ptr().wrapping_byte_add(4 * PAGE - 16).cast();
        let protect = |protection| {
            // SAFETY: a page of ours.
            unsafe { mprotect(NonNull::new(middle).unwrap(), PAGE, protection) }.unwrap();
        };
        protect(ProtFlags::PROT_READ);
        comm.all_reduce_into(&own, &mut most, Max).unwrap();
        assert!(most.iter().all(|&word| word == 1));
        assert_eq!(moved(&comm) as usize, 9 * PAGE, "only the result's");
        protect(ProtFlags::PROT_READ | ProtFlags::PROT_WRITE);
        sums(&comm, &mut own, 1);
        protect(ProtFlags::PROT_READ);
        comm.all_reduce_into(&own, &mut most, Max).unwrap();
        protect(ProtFlags::PROT_READ | ProtFlags::PROT_WRITE);
        assert!(own == most);
        sums(&comm, &mut own, 2);
    });
}

/// Forks; the child says whether all words of a buffer are `value` once the parent has stored others there, and stores
/// some itself.
fn child_has(words: &mut [u64], value: u64) {
    assert!(words.iter().all(|&word| word == value));
    let (mut from_parent, to_child) = std::io::pipe().unwrap();
    // SAFETY: the child but touches memory that is there, reads a byte, and ends.
    match unsafe { fork() }.unwrap() {
        ForkResult::Child => {
            drop(to_child);
            // Until the parent has stored.
            let _ = std::io::Read::read(&mut from_parent, &mut [0]);
            let right = words.iter().all(|&word| word == value);
            words.fill(1);
            // SAFETY: ends this process at once.
            unsafe { libc::_exit(if right { 7 } else { 8 }) }
        }
        ForkResult::Parent { child } => {
            words.fill(value + 1);
            drop(to_child);
            assert!(
                matches!(waitpid(child, None).unwrap(), WaitStatus::Exited(_, 7)),
                "it sees what its parent stored"
            );
            assert!(words.iter().all(|&word| word == value + 1), "its child stores into its memory");
        }
    }
}

/// A child has its own copy of what its parent had when it forked; and the parent goes on.
#[test]
fn a_child_has_its_own_copy() {
    if !alone(a_child_has_its_own_copy) {
        return;
    }
    ranks(2, AT_ONCE, |comm| {
        let mut vector = words_of_all(&comm, EXTENT / 4);
        for turn in 0..3 {
            sums(&comm, &mut vector, turn);
            vector.fill(40 + turn);
            if comm.rank() == 0 {
                child_has(&mut vector, 40 + turn);
            }
            comm.barrier().unwrap();
            sums(&comm, &mut vector, turn);
            assert_eq!(moved(&comm) as usize, 2 * EXTENT - PAGE);
        }
    });
}

/// When the job has ended its buffers are the program's, as before; and a child has its own copy of them still.
#[test]
fn buffers_outlive_the_job() {
    if !alone(buffers_outlive_the_job) {
        return;
    }
    let mut kept = ranks(2, AT_ONCE, |comm| {
        let mut vector = words(100_000);
        sums(&comm, &mut vector, 5);
        assert!(moved(&comm) > 0);
        vector
    });
    for vector in &mut kept {
        assert!(vector.iter().zip(0..).all(|(&word, at)| word == 1 + 2 * (at + 5)));
        vector.fill(9);
        child_has(vector, 9);
        vector.fill(9);
    }
    // The next job moves them again, if they are moved at all: they are not memory of its own.
    let again = Mutex::new(kept);
    ranks(2, AT_ONCE, |comm| {
        let mut vector = again.lock().unwrap().pop().unwrap();
        sums(&comm, &mut vector, 6);
    });
}

/// Two ranks that are threads contribute the same memory.
#[test]
fn one_buffer_of_two_ranks() {
    if !alone(one_buffer_of_two_ranks) {
        return;
    }
    let mut common = words(50_000);
    common.iter_mut().zip(0..).for_each(|(word, at)| *word = at);
    ranks(2, AT_ONCE, |comm| {
        for _ in 0..5 {
            let mut sum = words(common.len());
            comm.all_reduce_into(&common, &mut sum, Sum).unwrap();
            assert!(sum.iter().zip(&common).all(|(&sum, &word)| sum == 2 * word));
        }
    });
}

/// A heap that is full: buffers stay where they are; and what nobody has any more makes room for those that are asked
/// for.
#[test]
fn a_heap_that_is_full() {
    if !alone(a_heap_that_is_full) {
        return;
    }
    let mut spec = spec(2, AT_ONCE);
    spec.heap = Some(8 * EXTENT as u64);
    spec.on_threads(|comm| {
        let mut large: Vec<_> = (0..5).map(|_| words(EXTENT / 8)).collect();
        for turn in 0..3 {
            large.iter_mut().for_each(|vector| sums(&comm, vector, turn));
        }
        assert!((1..=2 * EXTENT as u64).contains(&moved(&comm)));
        comm.barrier().unwrap();
        drop(large);
        comm.barrier().unwrap();
        if comm.rank() == 0 {
            // The other rank's may still be there, between those that this one had.
            let _most = [(); 4].map(|()| comm.alloc::<u8>(EXTENT).unwrap());
        }
        comm.barrier().unwrap();
    });
}

/// A call that fails leaves nothing of others in a result.
#[test]
fn a_call_that_fails() {
    if !alone(a_call_that_fails) {
        return;
    }
    ranks(2, AT_ONCE, |comm| {
        let mut bytes = vec![255u8; 100_000];
        comm.process_at_rank(0).broadcast_into(&mut bytes).unwrap();
        drop(words(1));
        drop(bytes);
        let mut flags = vec![false; 100_000];
        let length = 70_000 + 1000 * comm.rank();
        let result = comm.process_at_rank(0).broadcast_into(&mut flags[5..length]);
        assert!(comm.rank() == 0 || result.is_err());
        let (at, length) = (flags.as_ptr().cast::<u8>(), flags.len());
        // SAFETY: bytes can be looked at.
        let raw = unsafe { std::slice::from_raw_parts(at, length) };
        assert!(raw.iter().all(|&byte| byte <= 1));
    });
}

/// Pages are moved for calls that use them where they lie, and for no others: whatever else asks for it.
#[test]
fn pages_stay_where_calls_would_copy_them_all_the_same() {
    if !alone(pages_stay_where_calls_would_copy_them_all_the_same) {
        return;
    }
    let seen = |direct: &str, number: usize, gathers: bool| {
        let rules = format!("{AT_ONCE};reduce:cells;all:{direct}");
        let bytes = ranks(2, &rules, |comm| {
            let (send, mut recv) = (words(number), words(2 * number));
            if gathers {
                comm.all_gather_into(&send, &mut recv).unwrap();
            } else {
                comm.all_reduce_into(&send, &mut recv[..number], Sum).unwrap();
            }
            moved(&comm)
        });
        bytes.into_iter().sum::<u64>()
    };
    // Of 512 KiB and of 1 MiB.
    for (direct, short, long) in
        [("direct_from=1M", false, true), ("direct_from=never", false, false), ("direct_from=512K", true, true)]
    {
        for (number, moves) in [(64 << 10, short), (128 << 10, long)] {
            assert_eq!(seen(direct, number, false) > 0, moves, "allreduce of {number} words, {direct}");
            // Blocks go from 8 KiB on, unless no allreduce does.
            assert_eq!(
                seen(direct, number, true) > 0,
                direct != "direct_from=never",
                "allgather of {number} words, {direct}"
            );
        }
    }
}
