//! Types x operators: every pair that has a meaning.

use half::{bf16, f16};
use num_complex::Complex;
use shm_core::Pair;
use shm_core::operator::{
    BitAnd, BitOr, BitXor, LogicalAnd, LogicalOr, LogicalXor, Max, MaxLoc, Min, MinLoc, Product, Sum, User,
};

use crate::algebra::{affine, each, matrix, permutation, triangle, triangles};
use crate::operation::Operation;
use crate::sample::{Flavour, Sample, part, samples};

/// An element that there are operations on.
pub trait Operations: Sample {
    /// All of them, in the same order everywhere.
    fn operations() -> &'static [Operation<Self>];
}

/// A structure of a program's own.
#[derive(Clone, Copy, Debug, PartialEq, bytemuck::NoUninit)]
#[repr(C)]
pub struct Reading {
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
pub struct Aligned([u64; 24]);

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

macro_rules! operations {
    ($type:ty: $($operation:expr),+ $(,)?) => {
        impl Operations for $type {
            fn operations() -> &'static [Operation<Self>] {
                static ALL: &[Operation<$type>] = &[$($operation),+];
                ALL
            }
        }
    };
}

macro_rules! case {
    ($type:ty, $operator:ident, $flavour:ident, $oracle:expr) => {
        Operation {
            name: concat!(stringify!($type), " ", stringify!($operator)),
            ordered: false,
            own: false,
            flavour: Flavour::$flavour,
            operator: &$operator,
            combine: |left, right| each(left, right, $oracle),
            samples,
        }
    };
}

macro_rules! user {
    ($type:ty, $kind:ident, $oracle:expr) => {
        Operation {
            name: concat!(stringify!($type), " ", stringify!($kind), " ", stringify!($oracle)),
            ordered: stringify!($kind).len() == "ordered".len(),
            own: true,
            flavour: Flavour::Sum,
            operator: &User::$kind(|left: &mut [$type], right: &[$type]| each(left, right, $oracle)),
            combine: |left, right| each(left, right, $oracle),
            samples,
        }
    };
}

macro_rules! integers {
    ($($type:ty $(, $own:expr)?);+ $(;)?) => {$(
        operations!($type:
            case!($type, Sum, Sum, |a, b| a.wrapping_add(b)),
            case!($type, Product, Product, |a, b| a.wrapping_mul(b)),
            case!($type, Min, Order, std::cmp::min),
            case!($type, Max, Order, std::cmp::max),
            case!($type, LogicalAnd, Logic, |a, b| if a == 0 || b == 0 { 0 } else { 1 }),
            case!($type, LogicalOr, Logic, |a, b| if a == 0 && b == 0 { 0 } else { 1 }),
            case!($type, LogicalXor, Logic, |a, b| if (a == 0) == (b == 0) { 0 } else { 1 }),
            case!($type, BitAnd, Bits, |a, b| a & b),
            case!($type, BitOr, Bits, |a, b| a | b),
            case!($type, BitXor, Bits, |a, b| a ^ b),
            $($own)?
        );
    )+};
}

macro_rules! floats {
    ($($type:ty)+) => {$(
        operations!($type:
            case!($type, Sum, Sum, |a, b| a + b),
            case!($type, Product, Product, |a, b| a * b),
            case!($type, Min, Order, |a, b| if a < b { a } else { b }),
            case!($type, Max, Order, |a, b| if a > b { a } else { b }),
        );
    )+};
}

macro_rules! complex {
    ($($type:ty)+) => {$(
        operations!($type: case!($type, Sum, Sum, |a, b| a + b), case!($type, Product, Product, |a, b| a * b));
    )+};
}

macro_rules! pairs {
    ($($value:ty, $index:ty);+ $(;)?) => {$(
        operations!(Pair<$value, $index>:
            case!(Pair<$value, $index>, MinLoc, Order, |a, b| match b.value == a.value {
                true => Pair::new(a.value, a.index.min(b.index)),
                false => if b.value < a.value { b } else { a },
            }),
            case!(Pair<$value, $index>, MaxLoc, Order, |a, b| match b.value == a.value {
                true => Pair::new(a.value, a.index.min(b.index)),
                false => if b.value > a.value { b } else { a },
            }),
        );
    )+};
}

macro_rules! own {
    ($($type:ty: $kind:ident, $oracle:expr;)+) => {$(
        operations!($type: user!($type, $kind, $oracle));
    )+};
}

integers! {
    i8; i16; i32; i64; isize; u16; u32; usize;
    u8, user!(u8, ordered, permutation);
    u64, user!(u64, commutative, |a: u64, b: u64| a ^ b ^ 0x5555);
}
floats!(f32 f64 f16 bf16);
complex!(Complex<f32> Complex<f64>);
operations!(bool:
    case!(bool, LogicalAnd, Logic, |a, b| a && b),
    case!(bool, LogicalOr, Logic, |a, b| a || b),
    case!(bool, LogicalXor, Logic, |a, b| a != b),
);
pairs! {
    f32, i32; f32, u32; f64, i64; f64, u64; f64, usize;
    i8, i8; i16, i16; i32, i32; i32, u32; i64, i64; i64, u64; i64, usize;
    u8, u8; u16, u16; u32, u32; u64, u64; usize, usize;
}
operations!([u8; 3]:
    user!([u8; 3], ordered, triangle),
    user!([u8; 3], commutative, |a: [u8; 3], b: [u8; 3]| [a[0] ^ b[0], a[1].max(b[1]), a[2].wrapping_add(b[2])]),
);
own! {
    [u8; 2]: ordered, affine;
    [u8; 4]: ordered, matrix;
    [u16; 3]: ordered, triangle;
    [u16; 4]: ordered, matrix;
    [u64; 2]: ordered, affine;
    [u64; 3]: ordered, triangle;
    [u64; 4]: ordered, matrix;
    [[u8; 3]; 100]: ordered, triangles;
    [[u64; 3]; 21]: ordered, triangles;
    [[u64; 3]; 42]: ordered, triangles;
    Reading: commutative, merge;
    u128: commutative, |a: u128, b: u128| a.wrapping_add(b);
    Aligned: commutative, aligned;
    [u8; 0]: commutative, |a: [u8; 0], _| a;
}
