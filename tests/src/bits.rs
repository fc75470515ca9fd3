//! Sums that do round: their bits must not depend on timing, on how often they were taken, or on what the ranks are.

use half::{bf16, f16};
use hier::Element;
use hier::operator::{Max, Min, Sum};

use crate::random::{Random, mixed};
use crate::{Communicator, Error};

/// A float whose sums round.
trait Rounding: Element {
    /// What `rank` contributes at `place`: of either sign and of many magnitudes.
    fn contribution(seed: u64, rank: usize, place: usize) -> Self;
    /// The sum of all, in rank order, rounded as the library says that it is.
    fn in_rank_order(all: impl Iterator<Item = Self>) -> Self;
    /// The bits.
    fn bits(self) -> u64;
}

fn number(seed: u64, rank: usize, place: usize) -> f64 {
    let bits = mixed(seed ^ mixed((rank as u64) << 40 ^ place as u64));
    let part = (bits >> 12) as f64 / (1u64 << 52) as f64 - 0.5;
    part * f64::from(1u32 << (bits % 12))
}

macro_rules! rounding {
    ($($type:ty: $from:expr, $sum:expr);+ $(;)?) => {$(
        impl Rounding for $type {
            fn contribution(seed: u64, rank: usize, place: usize) -> Self {
                $from(number(seed, rank, place))
            }
            fn in_rank_order(all: impl Iterator<Item = Self>) -> Self {
                $sum(all)
            }
            fn bits(self) -> u64 {
                self.to_bits().into()
            }
        }
    )+};
}

/// Half precision is added in single precision, and rounded at the end.
fn wide(all: impl Iterator<Item = f32>) -> f32 {
    all.reduce(|a, b| a + b).unwrap_or_default()
}

rounding! {
    f32: |x| x as f32, |all: _| wide(all);
    f64: |x| x, |all: _| Iterator::reduce(all, |a: f64, b| a + b).unwrap_or_default();
    f16: f16::from_f64, |all: _| f16::from_f32(wide(Iterator::map(all, f16::to_f32)));
    bf16: bf16::from_f64, |all: _| bf16::from_f32(wide(Iterator::map(all, bf16::to_f32)));
}

/// Lengths, in elements: lines, cells and shares by default, several of each.
const LENS: [usize; 7] = [1, 5, 63, 126, 700, 1500, 20_000];

/// Takes sums of all lengths and types, again and again, and returns a fingerprint of each result.
///
/// Checks that all ranks have the same bits and that the same sum has the same bits each time. With `ordered`, that
/// they are those of the sum in rank order.
///
/// # Errors
/// That of the first call which failed.
///
/// # Panics
/// When bits differ.
pub fn fingerprints(comm: &Communicator, seed: u64, ordered: bool, late: bool) -> Result<Vec<u64>, Error> {
    let mut own = Random::new(seed ^ (comm.rank() as u64 + 1) << 32);
    let mut found: Vec<Vec<u64>> = Vec::new();
    for _ in 0..3 {
        let mut round = Vec::new();
        for len in LENS {
            sums::<f32>(comm, seed, len, ordered, &mut round)?;
            if late {
                own.loiter();
            }
            sums::<f64>(comm, seed, len, ordered, &mut round)?;
            sums::<f16>(comm, seed, len, ordered, &mut round)?;
            sums::<bf16>(comm, seed, len, ordered, &mut round)?;
        }
        found.push(round);
    }
    assert!(found.iter().all(|round| *round == found[0]), "rank {}: bits depend on the call's number", comm.rank());
    Ok(found.remove(0))
}

fn sums<T: Rounding>(
    comm: &Communicator,
    seed: u64,
    len: usize,
    ordered: bool,
    found: &mut Vec<u64>,
) -> Result<(), Error>
where
    Sum: hier::operator::Operator<T>,
{
    let (rank, size) = (comm.rank(), comm.size());
    let name = std::any::type_name::<T>();
    let mine: Vec<T> = (0..len).map(|place| T::contribution(seed, rank, place)).collect();
    let mut all = mine.clone();
    comm.all_reduce_into(&mine, &mut all, Sum)?;
    let print = |sums: &[T]| sums.iter().fold(len as u64, |print, sum| mixed(print ^ sum.bits()));
    let of_all = print(&all);
    let (mut least, mut most) = ([of_all], [of_all]);
    comm.all_reduce_in_place(&mut least, Min)?;
    comm.all_reduce_in_place(&mut most, Max)?;
    assert_eq!(least, most, "rank {rank} of {size}: ranks have different bits: {len} x {name}");

    let root = (len + size - 1) % size;
    let process = comm.process_at_rank(root);
    let mut of_root = [0];
    if rank == root {
        let mut one = mine.clone();
        process.reduce_into_root(&mine, &mut one, Sum)?;
        of_root = [print(&one)];
        if ordered {
            check_order(seed, size, &one);
        }
    } else {
        process.reduce_into(&mine, Sum)?;
    }
    process.broadcast_into(&mut of_root)?;
    if ordered {
        check_order(seed, size, &all);
        assert_eq!(of_root[0], of_all, "rank {rank} of {size}: reduce and allreduce: {len} x {name}");
    }
    found.extend([of_all, of_root[0]]);
    Ok(())
}

fn check_order<T: Rounding>(seed: u64, size: usize, sums: &[T]) {
    for (place, sum) in sums.iter().enumerate() {
        let expected = T::in_rank_order((0..size).map(|rank| T::contribution(seed, rank, place)));
        let name = std::any::type_name::<T>();
        assert_eq!(sum.bits(), expected.bits(), "{size} ranks, {name}: element {place} was not added in rank order");
    }
}
