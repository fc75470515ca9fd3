//! The predefined operators (MPI 4.1, section 6.9.2), on every type for which they have a meaning.
//!
//! Integer sums and products wrap, as C's unsigned arithmetic does. `Min` and `Max` of floats follow IEEE 754-2008
//! minNum and maxNum: a NaN loses against a number. Logical operators read "not zero" as true and give 1 or 0.

use half::{bf16, f16};
use num_complex::Complex;

use super::halves;
use super::kernel::{Scalar, fold, fold_from, fold_to};
use super::{Hint, Operator};
use crate::element::Pair;

macro_rules! operators {
    ($($(#[$doc:meta])* $name:ident = $code:literal),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name;
        impl Code for $name {
            const CODE: u8 = $code;
        }
    )+};
}

/// The number of an operator in the check of calls.
trait Code {
    const CODE: u8;
}

operators! {
    /// The sum (MPI_SUM). That of halves is rounded once a [fold](super#half-precision).
    Sum = 1,
    /// The product (MPI_PROD). That of halves is rounded once a [fold](super#half-precision).
    Product = 2,
    /// The least (MPI_MIN).
    Min = 3,
    /// The greatest (MPI_MAX).
    Max = 4,
    /// True where all are (MPI_LAND).
    LogicalAnd = 5,
    /// True where one is (MPI_LOR).
    LogicalOr = 6,
    /// True where an odd number are (MPI_LXOR).
    LogicalXor = 7,
    /// Bits set in all (MPI_BAND).
    BitAnd = 8,
    /// Bits set in one (MPI_BOR).
    BitOr = 9,
    /// Bits set in an odd number (MPI_BXOR).
    BitXor = 10,
    /// The least value and its least index (MPI_MINLOC).
    MinLoc = 11,
    /// The greatest value and its least index (MPI_MAXLOC).
    MaxLoc = 12,
}

/// Joins a scalar operation to the kernels.
macro_rules! scalar {
    ($operator:ty, $type:ty, |$left:ident, $right:ident| $body:expr) => {
        scalar!($operator, $type, narrow if false, |$left, $right| $body);
    };
    ($operator:ty, $type:ty, narrow if $narrow:expr, |$left:ident, $right:ident| $body:expr) => {
        impl Scalar<$type> for $operator {
            const NARROW: bool = $narrow;
            #[inline(always)]
            fn combine($left: $type, $right: $type) -> $type {
                $body
            }
        }
        operator!($operator, $type, wide if false, fold::<$type, Self>, fold_to::<$type, Self>, fold_from::<$type, Self>);
    };
}

/// Joins a fold to an operator.
macro_rules! operator {
    ($operator:ty, $type:ty, wide if $wide:expr, $fold:expr, $fold_to:expr, $fold_from:expr) => {
        // SAFETY: the kernels write every element.
        unsafe impl Operator<$type> for $operator {
            #[inline]
            fn is_commutative(&self) -> bool {
                true
            }

            #[inline]
            fn code(&self) -> u8 {
                Self::CODE
            }

            #[inline]
            fn is_wide(&self) -> bool {
                $wide
            }

            #[inline]
            unsafe fn fold(&self, dst: *mut $type, operands: &[*const $type], n: usize) {
                // SAFETY: by contract.
                unsafe { $fold(dst, operands, n) }
            }

            #[inline]
            unsafe fn fold_to(&self, dsts: &[*mut $type], operands: &[*const $type], n: usize) {
                // SAFETY: by contract.
                unsafe { $fold_to(dsts, operands, n) }
            }

            #[inline]
            unsafe fn fold_from(&self, dsts: &[*mut $type], operands: &[*const $type], hint: Hint, n: usize) {
                // SAFETY: by contract.
                unsafe { $fold_from(dsts, operands, hint, n) }
            }
        }
    };
}

macro_rules! integers {
    ($($type:ty)+) => {$(
        scalar!(Sum, $type, |a, b| a.wrapping_add(b));
        scalar!(Product, $type, |a, b| a.wrapping_mul(b));
        scalar!(Min, $type, narrow if size_of::<$type>() == 8, |a, b| a.min(b));
        scalar!(Max, $type, narrow if size_of::<$type>() == 8, |a, b| a.max(b));
        scalar!(LogicalAnd, $type, |a, b| <$type>::from(a != 0 && b != 0));
        scalar!(LogicalOr, $type, |a, b| <$type>::from(a != 0 || b != 0));
        scalar!(LogicalXor, $type, |a, b| <$type>::from((a != 0) != (b != 0)));
        scalar!(BitAnd, $type, |a, b| a & b);
        scalar!(BitOr, $type, |a, b| a | b);
        scalar!(BitXor, $type, |a, b| a ^ b);
    )+};
}

integers!(i8 i16 i32 i64 isize u8 u16 u32 u64 usize);

macro_rules! floats {
    ($($type:ty)+) => {$(
        scalar!(Sum, $type, |a, b| a + b);
        scalar!(Product, $type, |a, b| a * b);
        scalar!(Min, $type, |a, b| a.min(b));
        scalar!(Max, $type, |a, b| a.max(b));
    )+};
}

floats!(f32 f64);

macro_rules! complex {
    ($($type:ty)+) => {$(
        scalar!(Sum, $type, |a, b| a + b);
        scalar!(Product, $type, |a, b| a * b);
    )+};
}

complex!(Complex<f32> Complex<f64>);

scalar!(LogicalAnd, bool, |a, b| a & b);
scalar!(LogicalOr, bool, |a, b| a | b);
scalar!(LogicalXor, bool, |a, b| a ^ b);

macro_rules! halves {
    ($($type:ident)+) => {$(
        halves!($type: Sum Product Min Max);
    )+};
    ($type:ident: $($operator:ident)+) => {$(
        operator!(
            $operator,
            $type,
            wide if true,
            halves::fold::<$type, Self>,
            halves::fold_to::<$type, Self>,
            halves::fold_from::<$type, Self>
        );
    )+};
}

halves!(f16 bf16);

/// Whether the right one of two pairs comes first. Without branches, for the sake of vector instructions.
macro_rules! before {
    ($a:ident, $b:ident, $compare:tt) => {
        ($b.value $compare $a.value) | (($b.value == $a.value) & ($b.index < $a.index))
    };
}

macro_rules! locations {
    ($($value:ty, $index:ty);+ $(;)?) => {$(
        scalar!(MinLoc, Pair<$value, $index>, |a, b| if before!(a, b, <) { b } else { a });
        scalar!(MaxLoc, Pair<$value, $index>, |a, b| if before!(a, b, >) { b } else { a });
    )+};
}

locations! {
    f32, i32; f32, u32; f64, i64; f64, u64; f64, usize;
    i8, i8; i16, i16; i32, i32; i32, u32; i64, i64; i64, u64; i64, usize;
    u8, u8; u16, u16; u32, u32; u64, u64; usize, usize;
}
