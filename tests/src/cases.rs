//! Types x operators: every pair that has a meaning, as a table of functions that make one call and check it.

use half::{bf16, f16};
use hier::Pair;
use hier::operator::{
    BitAnd, BitOr, BitXor, LogicalAnd, LogicalOr, LogicalXor, Max, MaxLoc, Min, MinLoc, Product, Sum, User,
};
use num_complex::Complex;

use crate::algebra::{affine, each, matrix, permutation, triangle, triangles};
#[cfg(not(feature = "mpi"))]
use crate::block_call::{BlockCall, check_folded};
use crate::call::{Call, check};
use crate::folding::Operation;
use crate::sample::{Flavour, Sample, part};
use crate::{Communicator, Error};

/// An element type with an operator.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Both names.
    pub name: &'static str,
    /// Bytes of an element.
    pub element: usize,
    /// Whether operands must be combined in rank order.
    pub ordered: bool,
    make: fn(&Communicator, &Call) -> Result<(), Error>,
    #[cfg(not(feature = "mpi"))]
    fold: fn(&Communicator, &BlockCall) -> Result<(), Error>,
}

impl Case {
    /// Makes a call and checks it: [`check`].
    ///
    /// # Errors
    /// That of the collective.
    pub fn make(&self, comm: &Communicator, call: &Call) -> Result<(), Error> {
        (self.make)(comm, call)
    }

    /// Makes a reduce-scatter or a scan and checks it: [`check_folded`].
    ///
    /// # Errors
    /// That of the collective.
    #[cfg(not(feature = "mpi"))]
    pub fn fold(&self, comm: &Communicator, call: &BlockCall) -> Result<(), Error> {
        (self.fold)(comm, call)
    }
}

/// A structure of a program's own.
#[derive(Clone, Copy, Debug, PartialEq, bytemuck::NoUninit)]
#[repr(C)]
struct Reading {
    least: i64,
    count: u32,
    kind: u16,
    flags: [u8; 2],
}

impl Sample for Reading {
    fn made_of(bits: u64, flavour: Flavour, rank: usize, place: usize) -> Self {
        Self {
            least: i64::made_of(bits, flavour, rank, place),
            count: u32::made_of(part(bits, 1), flavour, rank, place),
            kind: u16::made_of(part(bits, 2), flavour, rank, place),
            flags: <[u8; 2]>::made_of(part(bits, 3), flavour, rank, place),
        }
    }
}

/// An element that is aligned as far as elements of a reduction may be.
#[derive(Clone, Copy, Debug, PartialEq, bytemuck::NoUninit)]
#[repr(C, align(64))]
struct Aligned([u64; 24]);

impl Sample for Aligned {
    fn made_of(bits: u64, flavour: Flavour, rank: usize, place: usize) -> Self {
        Self(<[u64; 24]>::made_of(bits, flavour, rank, place))
    }
}

fn aligned(mut a: Aligned, b: Aligned) -> Aligned {
    assert!(std::ptr::from_ref(&a).is_aligned() && std::ptr::from_ref(&b).is_aligned());
    each(&mut a.0, &b.0, u64::wrapping_add);
    a
}

fn merge(a: Reading, b: Reading) -> Reading {
    Reading {
        least: a.least.min(b.least),
        count: a.count.wrapping_add(b.count),
        kind: a.kind ^ b.kind,
        flags: [a.flags[0] | b.flags[0], a.flags[1] & b.flags[1]],
    }
}

macro_rules! push {
    ($list:ident, $type:ty, $name:expr, $ordered:expr, $flavour:ident, $operator:expr, $oracle:expr) => {
        $list.push({
            const OPERATION: Operation<$type> =
                Operation { name: $name, flavour: Flavour::$flavour, operator: &$operator, oracle: $oracle };
            Case {
                name: $name,
                element: size_of::<$type>(),
                ordered: $ordered,
                make: |comm, call| check(comm, call, &OPERATION),
                #[cfg(not(feature = "mpi"))]
                fold: |comm, call| check_folded(comm, call, &OPERATION),
            }
        })
    };
}

macro_rules! case {
    ($list:ident, $type:ty, $operator:ident, $flavour:ident, $oracle:expr) => {
        push!($list, $type, concat!(stringify!($type), " ", stringify!($operator)), false, $flavour, $operator, $oracle)
    };
}

macro_rules! user {
    ($list:ident, $type:ty, $kind:ident, $oracle:expr) => {
        push!(
            $list,
            $type,
            concat!(stringify!($type), " ", stringify!($kind), " ", stringify!($oracle)),
            stringify!($kind).len() == "ordered".len(),
            Sum,
            User::$kind(|left: &mut [$type], right: &[$type]| each(left, right, $oracle)),
            $oracle
        )
    };
}

macro_rules! integers {
    ($list:ident, $($type:ty)+) => {$(
        case!($list, $type, Sum, Sum, |a, b| a.wrapping_add(b));
        case!($list, $type, Product, Product, |a, b| a.wrapping_mul(b));
        case!($list, $type, Min, Order, |a, b| std::cmp::min(a, b));
        case!($list, $type, Max, Order, |a, b| std::cmp::max(a, b));
        case!($list, $type, LogicalAnd, Logic, |a, b| if a == 0 || b == 0 { 0 } else { 1 });
        case!($list, $type, LogicalOr, Logic, |a, b| if a == 0 && b == 0 { 0 } else { 1 });
        case!($list, $type, LogicalXor, Logic, |a, b| if (a == 0) == (b == 0) { 0 } else { 1 });
        case!($list, $type, BitAnd, Bits, |a, b| a & b);
        case!($list, $type, BitOr, Bits, |a, b| a | b);
        case!($list, $type, BitXor, Bits, |a, b| a ^ b);
    )+};
}

macro_rules! floats {
    ($list:ident, $($type:ty)+) => {$(
        case!($list, $type, Sum, Sum, |a, b| a + b);
        case!($list, $type, Product, Product, |a, b| a * b);
        case!($list, $type, Min, Order, |a, b| if a < b { a } else { b });
        case!($list, $type, Max, Order, |a, b| if a > b { a } else { b });
    )+};
}

macro_rules! pairs {
    ($list:ident, $($value:ty, $index:ty);+) => {$(
        case!($list, Pair<$value, $index>, MinLoc, Order, |a, b| match b.value == a.value {
            true => Pair::new(a.value, a.index.min(b.index)),
            false => if b.value < a.value { b } else { a },
        });
        case!($list, Pair<$value, $index>, MaxLoc, Order, |a, b| match b.value == a.value {
            true => Pair::new(a.value, a.index.min(b.index)),
            false => if b.value > a.value { b } else { a },
        });
    )+};
}

/// All cases, in the same order everywhere.
#[must_use]
pub fn cases() -> Vec<Case> {
    let mut list = Vec::new();
    integers!(list, i32 u8 u16 u64);
    // Across nodes the rest would be the same code once more, and take minutes to build.
    #[cfg(not(feature = "mpi"))]
    integers!(list, i8 i16 i64 isize u32 usize);
    floats!(list, f32 f64 f16 bf16);
    case!(list, Complex<f32>, Sum, Sum, |a, b| a + b);
    case!(list, Complex<f32>, Product, Product, |a, b| a * b);
    case!(list, Complex<f64>, Sum, Sum, |a, b| a + b);
    case!(list, Complex<f64>, Product, Product, |a, b| a * b);
    case!(list, bool, LogicalAnd, Logic, |a, b| a && b);
    case!(list, bool, LogicalOr, Logic, |a, b| a || b);
    case!(list, bool, LogicalXor, Logic, |a, b| a != b);
    pairs!(list, f32, i32; f64, u64; i64, i64);
    #[cfg(not(feature = "mpi"))]
    pairs!(list,
        f32, u32; f64, i64; f64, usize;
        i8, i8; i16, i16; i32, i32; i32, u32; i64, u64; i64, usize;
        u8, u8; u16, u16; u32, u32; u64, u64; usize, usize
    );
    list.extend(own_cases());
    list
}

/// Those with operators of the tests' own: the elements have 0, 1, 2, 3, 4, 6, 8, 16, 24,
/// 32, 192, 300, 504 and 1008 bytes.
#[must_use]
pub fn own_cases() -> Vec<Case> {
    let mut list = Vec::new();
    user!(list, u8, ordered, permutation);
    user!(list, [u8; 2], ordered, affine);
    user!(list, [u8; 3], ordered, triangle);
    user!(list, [u8; 4], ordered, matrix);
    user!(list, [u16; 3], ordered, triangle);
    user!(list, [u16; 4], ordered, matrix);
    user!(list, [u64; 2], ordered, affine);
    user!(list, [u64; 3], ordered, triangle);
    user!(list, [u64; 4], ordered, matrix);
    user!(list, [[u8; 3]; 100], ordered, triangles);
    user!(list, [[u64; 3]; 21], ordered, triangles);
    user!(list, [[u64; 3]; 42], ordered, triangles);
    user!(list, Reading, commutative, merge);
    user!(list, u64, commutative, |a: u64, b: u64| a ^ b ^ 0x5555);
    user!(list, [u8; 3], commutative, |a: [u8; 3], b: [u8; 3]| [a[0] ^ b[0], a[1].max(b[1]), a[2].wrapping_add(b[2])]);
    user!(list, u128, commutative, |a: u128, b: u128| a.wrapping_add(b));
    user!(list, Aligned, commutative, aligned);
    user!(list, [u8; 0], commutative, |a: [u8; 0], _| a);
    list
}

/// The cases of a list whose names begin so.
///
/// # Panics
/// When one is missing.
#[must_use]
pub fn named(names: &[&str]) -> Vec<Case> {
    let all = cases();
    let find = |name: &&str| *all.iter().find(|case| case.name.starts_with(*name)).expect("a case of this name");
    names.iter().map(find).collect()
}
