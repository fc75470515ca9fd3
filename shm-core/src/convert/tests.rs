//! Pages that were moved, and what a program may do with them.

use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::sync::Arc;

use nix::sys::mman::{MRemapFlags, MapFlags, ProtFlags, mmap_anonymous, mprotect, mremap, munmap};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};

use crate::communicator::Communicator;
use crate::job::{Job, JobSpec};
use crate::operator::{Max, Sum};
use crate::plan::{FlatPlan, Plan};
use crate::segment::layout::EXTENT;
use crate::segment::pool::PAGE;

fn spec(ranks: usize, rules: &str) -> JobSpec {
    let mut spec = JobSpec::new(ranks).unwrap();
    spec.heap = Some(256 << 20);
    spec.tuning = crate::Tuning::default();
    spec.tuning.force(rules).unwrap();
    spec
}

fn ranks<R: Send>(number: usize, rules: &str, f: impl Fn(Communicator) -> R + Sync) -> Vec<R> {
    Communicator::threads_of(&spec(number, rules), &(Arc::new(FlatPlan) as Arc<dyn Plan>), f).unwrap()
}

/// Every buffer is moved when it is seen.
const AT_ONCE: &str = "all:auto,convert_least=1,convert_after=0,line_most=64";

fn moved(comm: &Communicator) -> u64 {
    comm.seat().conversions().bytes()
}

/// Pages of the program's own.
struct Pages {
    at: NonNull<u64>,
    bytes: usize,
}

impl Pages {
    fn map(bytes: usize) -> Self {
        Self::map_at(None, bytes)
    }

    /// At this address, if nothing is there.
    fn map_at(at: Option<NonZeroUsize>, bytes: usize) -> Self {
        let flags =
            MapFlags::MAP_PRIVATE | if at.is_some() { MapFlags::MAP_FIXED_NOREPLACE } else { MapFlags::empty() };
        let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: fresh address space; nothing is replaced.
        let mapped = unsafe { mmap_anonymous(at, NonZeroUsize::new(bytes).unwrap(), protection, flags) };
        // Another thread may have mapped something there.
        mapped.map_or_else(|_| Self::map(bytes), |mapped| Self { at: mapped.cast(), bytes })
    }

    fn words(&mut self) -> &mut [u64] {
        // SAFETY: mapped, and this value's own; all bits are a word.
        unsafe { NonNull::slice_from_raw_parts(self.at, self.bytes / 8).as_mut() }
    }
}

impl Pages {
    fn halves(&mut self) -> &mut [u32] {
        bytemuck::cast_slice_mut(self.words())
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: its own, and nobody has them any more.
        unsafe { munmap(self.at.cast(), self.bytes) }.unwrap();
    }
}

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
    for rules in [
        AT_ONCE,
        "all:cells,cell=1K,cells=3,convert_least=1,convert_after=3",
        "all:shares,convert_least=1,convert_after=1",
    ] {
        for number in [2, 3] {
            let most = ranks(number, rules, |comm| {
                let (rank, size) = (comm.rank(), comm.size());
                let (mut own, mut result) = (Pages::map(240_000), Pages::map(240_000));
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
                    let own = &mut own.halves()[from..from + length];
                    let result = &mut result.halves()[to..to + length];
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
    ranks(2, "all:auto,convert_least=64K,convert_after=5", |comm| {
        let (mut long, mut short) = (Pages::map(1 << 20), Pages::map(32 << 10));
        for turn in 0..5 {
            sums(&comm, long.words(), turn);
            sums(&comm, short.words(), turn);
        }
        assert_eq!(moved(&comm), 0);
        for turn in 0..5 {
            sums(&comm, long.words(), turn);
            sums(&comm, short.words(), turn);
        }
        assert_eq!(moved(&comm), 1 << 20);
    });
    ranks(2, "all:auto", |comm| {
        let mut pages = Pages::map(1 << 20);
        (0..100).for_each(|turn| sums(&comm, pages.words(), turn));
        assert_eq!(moved(&comm), 0, "not asked for");
    });
}

/// What ranks send of blocks lies in the heap too.
#[test]
fn blocks_that_are_sent() {
    ranks(3, AT_ONCE, |comm| {
        let (rank, size, each) = (comm.rank(), comm.size(), 5000);
        let value = |from: usize, to: usize, at: usize| (from * 100 + to * 10 + at) as u64;
        let mut send = Pages::map(size * each * 8);
        for turn in 0..4 {
            let words = &mut send.words()[..size * each];
            words.iter_mut().enumerate().for_each(|(at, word)| *word = value(rank, at / each, at % each) + turn);
            let mut got = vec![0; size * each];
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

/// A buffer that the allocator has mapped is moved with its first page, another one without.
#[test]
fn the_first_page() {
    ranks(2, AT_ONCE, |comm| {
        let mut vector = vec![0u64; 1 << 20];
        let whole = 8 * vector.len();
        sums(&comm, &mut vector, 0);
        if cfg!(target_env = "gnu") && vector.as_ptr().addr() % PAGE == 16 {
            assert_eq!(moved(&comm) as usize, whole, "all pages but the last, which begins in the buffer");
        }
        sums(&comm, &mut vector[3..70_000], 1);
        drop(vector);
        let mut vector = vec![0u64; 1 << 20];
        sums(&comm, &mut vector[1..], 2);
        assert!((moved(&comm) as usize) < whole);
    });
}

/// Freed, and something else at the same address.
#[test]
fn other_pages_at_the_same_address() {
    let job = Job::create(&spec(2, AT_ONCE)).unwrap();
    std::thread::scope(|scope| {
        for rank in 0..2 {
            let comm = job.attach(rank, Arc::new(FlatPlan)).unwrap();
            scope.spawn(move || {
                for turn in 0..20 {
                    let mut pages = Pages::map(300 << 10);
                    let at = pages.at.addr();
                    // The first call may find that what it knew of this address is no longer true.
                    (0..2).for_each(|again| sums(&comm, pages.words(), turn + again));
                    assert_eq!(moved(&comm), 300 << 10);
                    drop(pages);
                    let mut pages = Pages::map_at(Some(at), 300 << 10);
                    assert!(pages.words().iter().all(|&word| word == 0));
                    sums(&comm, pages.words(), turn + 1);
                    sums(&comm, pages.words(), turn + 2);
                }
                comm.seat().conversions().release();
                assert_eq!(moved(&comm), 0);
            });
        }
    });
    assert_eq!(job.heap_taken(), 0, "all is given back");
}

/// Moved by the program: nobody gets the block as long as it is somewhere.
#[test]
fn pages_that_the_program_moves() {
    ranks(2, AT_ONCE, |comm| {
        let mut pages = Pages::map(64 << 10);
        sums(&comm, pages.words(), 0);
        let before = pages.words().to_vec();
        let elsewhere = Pages::map(64 << 10);
        // SAFETY: both are ours; what was at the second place nobody has.
        let at = unsafe {
            let flags = MRemapFlags::MREMAP_MAYMOVE | MRemapFlags::MREMAP_FIXED;
            mremap(pages.at.cast(), pages.bytes, pages.bytes, flags, Some(elsewhere.at.cast()))
        };
        assert_eq!(at.unwrap(), elsewhere.at.cast());
        std::mem::forget(pages);
        let mut pages = elsewhere;
        comm.barrier().unwrap();
        for turn in 1..10 {
            let mut others = Pages::map(64 << 10);
            sums(&comm, others.words(), turn);
        }
        let fresh: Vec<_> = (0..20).map(|_| comm.alloc::<u64>(8 << 10).unwrap()).collect();
        assert!(fresh.iter().all(|buffer| buffer.iter().all(|&word| word == 0)));
        assert!(pages.words() == before);
        drop(fresh);
        sums(&comm, pages.words(), 11);
    });
}

/// A page in the middle that may not be written.
#[test]
fn pages_of_several_kinds() {
    ranks(2, AT_ONCE, |comm| {
        let mut pages = Pages::map(10 * PAGE);
        let middle = pages.at.cast::<u8>().map_addr(|at| at.saturating_add(4 * PAGE)).cast();
        let protect = |protection| {
            // SAFETY: a page of ours.
            unsafe { mprotect(middle, PAGE, protection) }.unwrap();
        };
        pages.words().fill(comm.rank() as u64);
        let mut most = Pages::map(10 * PAGE);
        protect(ProtFlags::PROT_READ);
        comm.all_reduce_into(pages.words(), most.words(), Max).unwrap();
        assert!(most.words().iter().all(|&word| word == 1));
        assert_eq!(moved(&comm), 10 * PAGE as u64, "only the result's");
        protect(ProtFlags::PROT_READ | ProtFlags::PROT_WRITE);
        sums(&comm, pages.words(), 1);
        protect(ProtFlags::PROT_READ);
        comm.all_reduce_into(pages.words(), most.words(), Max).unwrap();
        protect(ProtFlags::PROT_READ | ProtFlags::PROT_WRITE);
        let same = pages.words() == most.words();
        assert!(same);
        sums(&comm, pages.words(), 2);
    });
}

/// A child has its own copy, of what its parent had when it forked; and the parent goes on.
#[test]
fn a_child_has_its_own_copy() {
    ranks(2, AT_ONCE, |comm| {
        let mut pages = Pages::map(2 * EXTENT);
        for turn in 0..3 {
            sums(&comm, pages.words(), turn);
            let words = pages.words();
            words.fill(40 + turn);
            if comm.rank() == 0 {
                let (mut from_parent, to_child) = std::io::pipe().unwrap();
                // SAFETY: the child but touches memory that is there, reads a byte, and ends.
                match unsafe { fork() }.unwrap() {
                    ForkResult::Child => {
                        drop(to_child);
                        // Until the parent has written.
                        let _ = std::io::Read::read(&mut from_parent, &mut [0]);
                        let right = words.iter().all(|&word| word == 40 + turn);
                        words.fill(1);
                        // SAFETY: ends this process at once.
                        unsafe { libc::_exit(if right { 7 } else { 8 }) }
                    }
                    ForkResult::Parent { child } => {
                        words.fill(50 + turn);
                        drop(to_child);
                        assert!(matches!(waitpid(child, None).unwrap(), WaitStatus::Exited(_, 7)), "turn {turn}");
                        assert!(words.iter().all(|&word| word == 50 + turn), "its child writes into its memory");
                    }
                }
            }
            comm.barrier().unwrap();
            sums(&comm, words, turn);
            assert_eq!(moved(&comm), 2 * EXTENT as u64);
        }
    });
}

/// When the job has ended its buffers are the program's, as before.
#[test]
fn buffers_outlive_the_job() {
    let mut kept = ranks(2, AT_ONCE, |comm| {
        let mut vector = vec![0u64; 100_000];
        sums(&comm, &mut vector, 5);
        assert!(moved(&comm) > 0);
        vector
    });
    for vector in &mut kept {
        assert!(vector.iter().zip(0..).all(|(&word, at)| word == 1 + 2 * (at + 5)));
        vector.fill(9);
    }
    // The next job moves them again, if they are moved at all: they are not memory of its own.
    let again = std::sync::Mutex::new(kept);
    ranks(2, AT_ONCE, |comm| {
        let mut vector = again.lock().unwrap().pop().unwrap();
        sums(&comm, &mut vector, 6);
    });
}

/// Two ranks that are threads contribute the same memory.
#[test]
fn one_buffer_of_two_ranks() {
    let common: Vec<u64> = (0..50_000).collect();
    ranks(2, AT_ONCE, |comm| {
        for _ in 0..5 {
            let mut sum = vec![0; common.len()];
            comm.all_reduce_into(&common, &mut sum, Sum).unwrap();
            assert!(sum.iter().zip(&common).all(|(&sum, &word)| sum == 2 * word));
        }
    });
}

/// A heap that is full: buffers stay where they are; and what nobody has any more makes room for those that are asked for.
#[test]
fn a_heap_that_is_full() {
    let mut spec = spec(2, AT_ONCE);
    spec.heap = Some(8 * EXTENT as u64);
    Communicator::threads_of(&spec, &(Arc::new(FlatPlan) as Arc<dyn Plan>), |comm| {
        let mut large: Vec<_> = (0..5).map(|_| Pages::map(EXTENT)).collect();
        for turn in 0..3 {
            large.iter_mut().for_each(|pages| sums(&comm, pages.words(), turn));
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
    })
    .unwrap();
}
