//! Calls on the warm path, many times, on ranks that are threads: what `scripts/instructions` counts the instructions
//! of, and `scripts/counts` the system calls.
//!
//! `warm_path COLLECTIVE [BYTES [RANKS [CALLS [private|shared]]]]`, with a block of so many bytes where a collective
//! has blocks. The buffers are vectors of each rank's own, or shared ones ([`Communicator::alloc`]); `view` is the
//! allreduce whose result all look at where it lies. `PHALANX_ALGORITHM` says which way the calls go. Rank 0 is the
//! root; its calls, and those of the last rank, are made in functions of their own names.

#![forbid(unsafe_code)]

use std::hint::black_box;

use shm_core::operator::Sum;
use shm_core::{Buffer, Communicator, Error};

/// What is called, and how often.
struct Wish {
    what: String,
    bytes: usize,
    calls: usize,
    shared: bool,
}

/// What a rank sends, or where it gets its result.
enum Words {
    Private(Vec<u64>),
    Shared(Buffer<u64>),
}

impl Words {
    fn as_mut_slice(&mut self) -> &mut [u64] {
        match self {
            Words::Private(words) => words,
            Words::Shared(words) => words,
        }
    }
}

impl Wish {
    /// So many words, each of which is `value`.
    fn words(&self, comm: &Communicator, count: usize, value: u64) -> Result<Words, Error> {
        if !self.shared {
            return Ok(Words::Private(vec![value; count]));
        }
        let mut words = comm.alloc(count)?;
        words.fill(value);
        Ok(Words::Shared(words))
    }

    fn call(&self, comm: &Communicator) -> Result<(), Error> {
        let (ranks, block) = (comm.size(), self.bytes / 8);
        let (mut one, mut other) = (self.words(comm, block, 1)?, self.words(comm, block, 0)?);
        let (mut row, mut column) = (self.words(comm, block * ranks, 1)?, self.words(comm, block * ranks, 0)?);
        let (root, is_root) = (comm.process_at_rank(0), comm.rank() == 0);
        let (one, other) = (one.as_mut_slice(), other.as_mut_slice());
        let (row, column) = (row.as_mut_slice(), column.as_mut_slice());
        let mut all: Box<dyn FnMut() -> Result<(), Error>> = match (self.what.as_str(), is_root) {
            ("barrier", _) => Box::new(|| comm.barrier()),
            ("broadcast", _) => Box::new(|| root.broadcast_into(other)),
            ("reduce", true) => Box::new(|| root.reduce_into_root(one, other, Sum)),
            ("reduce", false) => Box::new(|| root.reduce_into(one, Sum)),
            ("allreduce", _) => Box::new(|| comm.all_reduce_into(one, other, Sum)),
            ("view", _) => Box::new(|| comm.all_reduce_shared(one, Sum).map(|view| drop(black_box(view)))),
            ("gather", true) => Box::new(|| root.gather_into_root(one, column)),
            ("gather", false) => Box::new(|| root.gather_into(one)),
            ("scatter", true) => Box::new(|| root.scatter_into_root(row, other)),
            ("scatter", false) => Box::new(|| root.scatter_into(other)),
            ("allgather", _) => Box::new(|| comm.all_gather_into(one, column)),
            ("alltoall", _) => Box::new(|| comm.all_to_all_into(row, column)),
            ("reduce-scatter", _) => Box::new(|| comm.reduce_scatter_block_into(row, other, Sum)),
            ("scan", _) => Box::new(|| comm.scan_into(one, other, Sum)),
            (other, _) => panic!("{other:?} is no collective"),
        };
        // Caches, tables of choices and slots are warm afterwards, and two ranks have found when to look for each other.
        // No other call follows: whose readers would be waited for once.
        let warming = if ranks == 2 { self.calls.max(1000) } else { self.calls };
        (0..warming).try_for_each(|_| all())?;
        match comm.rank() {
            0 => counted_on_the_root(&mut all, self.calls),
            last if last + 1 == ranks => counted_on_the_last(&mut all, self.calls),
            _ => (0..self.calls).try_for_each(|_| all()),
        }?;
        drop(all);
        comm.barrier()
    }
}

#[inline(never)]
fn counted_on_the_root(call: &mut dyn FnMut() -> Result<(), Error>, calls: usize) -> Result<(), Error> {
    (0..calls).try_for_each(|_| call())
}

#[inline(never)]
fn counted_on_the_last(call: &mut dyn FnMut() -> Result<(), Error>, calls: usize) -> Result<(), Error> {
    (0..calls).try_for_each(|_| call())?;
    // Two functions that the compiler cannot make one of.
    black_box(Ok(()))
}

fn main() -> Result<(), Error> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, usual: usize| args.get(at).map_or(usual, |text| text.parse().expect("a number"));
    let what = args.first().map_or("barrier", String::as_str).to_owned();
    let shared = match args.get(4).map_or("private", String::as_str) {
        "private" => false,
        "shared" => true,
        other => panic!("{other:?}: buffers are private or shared"),
    };
    let wish = Wish { what, bytes: number(1, 8), calls: number(3, 1000), shared };
    let ended = Communicator::threads(number(2, 2), |comm| wish.call(&comm))?;
    ended.into_iter().collect()
}
