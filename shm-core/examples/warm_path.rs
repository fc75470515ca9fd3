//! Calls on the warm path, many times, on ranks that are threads: what `scripts/instructions` counts the instructions
//! of.
//!
//! `warm_path COLLECTIVE [BYTES [RANKS [CALLS]]]`, with a block of so many bytes where a collective has blocks. Rank 0
//! is the root; its calls, and those of the last rank, are made in functions of their own names.

#![forbid(unsafe_code)]

use shm_core::operator::Sum;
use shm_core::{Communicator, Error};

/// What is called, and how often.
struct Wish {
    what: String,
    bytes: usize,
    calls: usize,
}

impl Wish {
    fn call(&self, comm: &Communicator) -> Result<(), Error> {
        let (ranks, block) = (comm.size(), self.bytes / 8);
        let (mut one, mut other) = (vec![1u64; block], vec![0u64; block]);
        let (mut row, mut column) = (vec![1u64; block * ranks], vec![0u64; block * ranks]);
        let (root, is_root) = (comm.process_at_rank(0), comm.rank() == 0);
        let (one, other) = (one.as_mut_slice(), other.as_mut_slice());
        let (row, column) = (row.as_mut_slice(), column.as_mut_slice());
        let mut all: Box<dyn FnMut() -> Result<(), Error>> = match (self.what.as_str(), is_root) {
            ("barrier", _) => Box::new(|| comm.barrier()),
            ("broadcast", _) => Box::new(|| root.broadcast_into(other)),
            ("reduce", true) => Box::new(|| root.reduce_into_root(one, other, Sum)),
            ("reduce", false) => Box::new(|| root.reduce_into(one, Sum)),
            ("allreduce", _) => Box::new(|| comm.all_reduce_into(one, other, Sum)),
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
        // Caches, tables of choices and slots are warm afterwards.
        (0..self.calls).try_for_each(|_| all())?;
        comm.barrier()?;
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
    std::hint::black_box(Ok(()))
}

fn main() -> Result<(), Error> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, usual: usize| args.get(at).map_or(usual, |text| text.parse().expect("a number"));
    let what = args.first().map_or("barrier", String::as_str).to_owned();
    let wish = Wish { what, bytes: number(1, 8), calls: number(3, 1000) };
    let ended = Communicator::threads(number(2, 2), |comm| wish.call(&comm))?;
    ended.into_iter().collect()
}
