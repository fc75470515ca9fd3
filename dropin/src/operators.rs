//! Predefined operators on predefined types: which of them mean something (MPI 4.1, section 6.9.2), and what folds
//! them.
//!
//! Calls go through one of a few *shapes* of elements, of which only size and alignment are known, with an operator
//! whose fold is that of the real type. So there is one copy of the collectives for each shape, not for each type and
//! operator.

use std::mem::transmute;

use hier::operator::{
    BitAnd, BitOr, BitXor, Hint, LogicalAnd, LogicalOr, LogicalXor, Max, MaxLoc, Min, MinLoc, Operator, Product, Sum,
};
use hier::{Element, Pair};
use num_complex::Complex;

use crate::pairs::{GapMax, GapMin};

/// The predefined operators, in the order of abi/constants.c.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Op {
    /// MPI_SUM.
    Sum,
    /// MPI_PROD.
    Product,
    /// MPI_MIN.
    Min,
    /// MPI_MAX.
    Max,
    /// MPI_LAND.
    LogicalAnd,
    /// MPI_LOR.
    LogicalOr,
    /// MPI_LXOR.
    LogicalXor,
    /// MPI_BAND.
    BitAnd,
    /// MPI_BOR.
    BitOr,
    /// MPI_BXOR.
    BitXor,
    /// MPI_MINLOC.
    MinLoc,
    /// MPI_MAXLOC.
    MaxLoc,
}

impl Op {
    /// All of them, by place.
    pub const ALL: [Self; 12] = [
        Self::Sum,
        Self::Product,
        Self::Min,
        Self::Max,
        Self::LogicalAnd,
        Self::LogicalOr,
        Self::LogicalXor,
        Self::BitAnd,
        Self::BitOr,
        Self::BitXor,
        Self::MinLoc,
        Self::MaxLoc,
    ];
}

/// What a predefined type is, in the order of abi/constants.c; its size is asked of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Integers of C, addresses, counts and offsets.
    Signed,
    /// Integers of Fortran, which are no booleans.
    Integer,
    /// Unsigned integers of C.
    Unsigned,
    /// MPI_FLOAT, MPI_REAL8 and so on.
    Real,
    /// Two of those.
    Complex,
    /// Booleans of C and C++.
    Bool,
    /// Those of Fortran, whose values of true the library knows.
    Logical,
    /// MPI_BYTE.
    Byte,
    /// Characters and packed data, which are not reduced.
    Other,
    /// MPI_FLOAT_INT.
    FloatInt,
    /// MPI_DOUBLE_INT.
    DoubleInt,
    /// MPI_LONG_INT.
    LongInt,
    /// MPI_2INT, MPI_2INTEGER.
    TwoInt,
    /// MPI_SHORT_INT.
    ShortInt,
    /// MPI_LONG_DOUBLE_INT.
    LongDoubleInt,
    /// MPI_2REAL.
    TwoReal,
    /// MPI_2DOUBLE_PRECISION.
    TwoDouble,
}

impl Kind {
    /// All of them, by place.
    pub const ALL: [Self; 17] = [
        Self::Signed,
        Self::Integer,
        Self::Unsigned,
        Self::Real,
        Self::Complex,
        Self::Bool,
        Self::Logical,
        Self::Byte,
        Self::Other,
        Self::FloatInt,
        Self::DoubleInt,
        Self::LongInt,
        Self::TwoInt,
        Self::ShortInt,
        Self::LongDoubleInt,
        Self::TwoReal,
        Self::TwoDouble,
    ];

    /// Whether the standard has the operator on such a type. On others libraries do as they like.
    #[must_use]
    pub fn allows(self, op: Op) -> bool {
        use Op::{BitAnd, BitOr, BitXor, LogicalAnd, LogicalOr, LogicalXor, Max, MaxLoc, Min, MinLoc, Product, Sum};
        match op {
            Max | Min => matches!(self, Self::Signed | Self::Integer | Self::Unsigned | Self::Real),
            Sum | Product => matches!(self, Self::Signed | Self::Integer | Self::Unsigned | Self::Real | Self::Complex),
            LogicalAnd | LogicalOr | LogicalXor => {
                matches!(self, Self::Signed | Self::Unsigned | Self::Bool | Self::Logical)
            }
            BitAnd | BitOr | BitXor => matches!(self, Self::Signed | Self::Integer | Self::Unsigned | Self::Byte),
            MinLoc | MaxLoc => self.is_pair(),
        }
    }

    /// A value with its place.
    #[must_use]
    pub fn is_pair(self) -> bool {
        self as u8 >= Self::FloatInt as u8
    }
}

/// What an element is to those that move it: its size, and the alignment that its fold takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A byte.
    One,
    /// Two bytes.
    Two,
    /// Four bytes.
    Four,
    /// Eight bytes.
    Eight,
    /// Two of four bytes.
    TwoFours,
    /// Two of eight bytes.
    TwoEights,
}

type Fold = unsafe fn(*mut u8, &[*const u8], usize);
type FoldTo = unsafe fn(&[*mut u8], &[*const u8], Option<Hint>, usize);

/// An operator on elements of a shape.
#[derive(Clone, Copy)]
pub struct Kernel {
    /// The elements.
    pub shape: Shape,
    code: u8,
    is_wide: bool,
    /// I1: fold `n` elements of a type that has the size and the alignment of `shape`.
    fold: Fold,
    fold_to: FoldTo,
}

impl Kernel {
    /// The kernel of a type and an operator. `code` tells it apart from those of other types and operators on the same
    /// shape.
    fn of<T: Element, O: Operator<T> + Default>(shape: Shape, code: u8) -> Self {
        /// # Safety
        /// As [`Operator::fold`] on elements of `T`.
        unsafe fn fold<T: Element, O: Operator<T> + Default>(dst: *mut u8, operands: &[*const u8], n: usize) {
            // SAFETY: pointers to bytes and to elements are laid out alike.
            let operands = unsafe { transmute::<&[*const u8], &[*const T]>(operands) };
            // SAFETY: by contract.
            unsafe { O::default().fold(dst.cast(), operands, n) }
        }
        /// # Safety
        /// As [`Operator::fold_to`] on elements of `T`, or [`Operator::fold_from`] where an operand is far.
        unsafe fn fold_to<T: Element, O: Operator<T> + Default>(
            dsts: &[*mut u8],
            operands: &[*const u8],
            hint: Option<Hint>,
            n: usize,
        ) {
            // SAFETY: pointers to bytes and to elements are laid out alike.
            let dsts = unsafe { transmute::<&[*mut u8], &[*mut T]>(dsts) };
            // SAFETY: the same.
            let operands = unsafe { transmute::<&[*const u8], &[*const T]>(operands) };
            match hint {
                // SAFETY: by contract.
                None => unsafe { O::default().fold_to(dsts, operands, n) },
                // SAFETY: by contract.
                Some(hint) => unsafe { O::default().fold_from(dsts, operands, hint, n) },
            }
        }
        debug_assert_eq!((size_of::<T>(), align_of::<T>()), shape.layout());
        let is_wide = O::default().is_wide();
        Self { shape, code, is_wide, fold: fold::<T, O>, fold_to: fold_to::<T, O> }
    }

    /// The kernel for a predefined operator on a predefined type of so many bytes; none where there is no such type in
    /// Rust.
    #[must_use]
    pub fn find(kind: Kind, size: usize, op: Op) -> Option<Self> {
        macro_rules! choose {
            ($type:ty, $shape:ident, $($name:ident: $operator:ty),*) => {
                match op {
                    $(Op::$name => Some(Self::of::<$type, $operator>(Shape::$shape, 16 * (kind as u8 % 16) + op as u8)),)*
                    _ => None,
                }
            };
        }
        macro_rules! integer {
            ($type:ty, $shape:ident) => {
                choose!($type, $shape, Sum: Sum, Product: Product, Min: Min, Max: Max, LogicalAnd: LogicalAnd, LogicalOr: LogicalOr,
                    LogicalXor: LogicalXor, BitAnd: BitAnd, BitOr: BitOr, BitXor: BitXor)
            };
        }
        macro_rules! real {
            ($type:ty, $shape:ident) => {
                choose!($type, $shape, Sum: Sum, Product: Product, Min: Min, Max: Max)
            };
        }
        if !kind.allows(op) {
            return None;
        }
        match (kind, size) {
            (Kind::Signed | Kind::Integer, 1) => integer!(i8, One),
            (Kind::Signed | Kind::Integer, 2) => integer!(i16, Two),
            (Kind::Signed | Kind::Integer, 4) => integer!(i32, Four),
            (Kind::Signed | Kind::Integer, 8) => integer!(i64, Eight),
            (Kind::Unsigned, 1) => integer!(u8, One),
            (Kind::Unsigned, 2) => integer!(u16, Two),
            (Kind::Unsigned, 4) => integer!(u32, Four),
            (Kind::Unsigned, 8) => integer!(u64, Eight),
            (Kind::Real, 4) => real!(f32, Four),
            (Kind::Real, 8) => real!(f64, Eight),
            (Kind::Complex, 8) => choose!(Complex<f32>, TwoFours, Sum: Sum, Product: Product),
            (Kind::Complex, 16) => choose!(Complex<f64>, TwoEights, Sum: Sum, Product: Product),
            // A boolean of C has one byte, 0 or 1; another value counts as true here.
            (Kind::Bool, 1) => {
                choose!(u8, One, LogicalAnd: LogicalAnd, LogicalOr: LogicalOr, LogicalXor: LogicalXor)
            }
            (Kind::Byte, 1) => choose!(u8, One, BitAnd: BitAnd, BitOr: BitOr, BitXor: BitXor),
            (Kind::FloatInt, 8) => choose!(Pair<f32, i32>, TwoFours, MinLoc: MinLoc, MaxLoc: MaxLoc),
            (Kind::TwoInt, 8) => choose!(Pair<i32, i32>, TwoFours, MinLoc: MinLoc, MaxLoc: MaxLoc),
            // Their extents: behind the place there is a gap.
            (Kind::DoubleInt, 16) => choose!([u64; 2], TwoEights, MinLoc: GapMin<f64>, MaxLoc: GapMax<f64>),
            (Kind::LongInt, 16) => choose!([u64; 2], TwoEights, MinLoc: GapMin<i64>, MaxLoc: GapMax<i64>),
            _ => None,
        }
    }
}

impl Shape {
    /// Bytes of an element, and its alignment.
    #[must_use]
    pub const fn layout(self) -> (usize, usize) {
        match self {
            Self::One => (1, 1),
            Self::Two => (2, 2),
            Self::Four => (4, 4),
            Self::Eight => (8, 8),
            Self::TwoFours => (8, 4),
            Self::TwoEights => (16, 8),
        }
    }
}

// SAFETY: the folds are those of operators, which write all elements (I1).
unsafe impl<T: Element> Operator<T> for Kernel {
    fn is_commutative(&self) -> bool {
        true
    }

    fn code(&self) -> u8 {
        self.code
    }

    fn is_wide(&self) -> bool {
        self.is_wide
    }

    unsafe fn fold(&self, dst: *mut T, operands: &[*const T], n: usize) {
        debug_assert_eq!((size_of::<T>(), align_of::<T>()), self.shape.layout());
        // SAFETY: pointers to bytes and to elements are laid out alike.
        let operands = unsafe { transmute::<&[*const T], &[*const u8]>(operands) };
        // SAFETY: by contract, and I1: T has the layout of the kernel's type.
        unsafe { (self.fold)(dst.cast(), operands, n) }
    }

    unsafe fn fold_to(&self, dsts: &[*mut T], operands: &[*const T], n: usize) {
        // SAFETY: by contract.
        unsafe { self.fold_all(dsts, operands, None, n) }
    }

    unsafe fn fold_from(&self, dsts: &[*mut T], operands: &[*const T], hint: Hint, n: usize) {
        // SAFETY: by contract.
        unsafe { self.fold_all(dsts, operands, Some(hint), n) }
    }
}

impl Kernel {
    /// # Safety
    /// As [`Operator::fold_from`] on elements of a `T` that has the layout of the kernel's type.
    unsafe fn fold_all<T>(&self, dsts: &[*mut T], operands: &[*const T], hint: Option<Hint>, n: usize) {
        // SAFETY: pointers to bytes and to elements are laid out alike.
        let dsts = unsafe { transmute::<&[*mut T], &[*mut u8]>(dsts) };
        // SAFETY: the same.
        let operands = unsafe { transmute::<&[*const T], &[*const u8]>(operands) };
        // SAFETY: by contract, and I1.
        unsafe { (self.fold_to)(dsts, operands, hint, n) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fold<T: Element>(kernel: Kernel, left: T, right: T) -> T {
        let mut result = left;
        // SAFETY: three values of the kernel's type.
        unsafe { kernel.fold(&mut result, &[&left, &right], 1) };
        result
    }

    #[test]
    fn kernels_are_those_of_the_types() {
        let kernel = |kind, size, op| Kernel::find(kind, size, op).unwrap();
        assert_eq!(fold(kernel(Kind::Real, 8, Op::Sum), 1.5_f64, 2.25), 3.75);
        assert_eq!(fold(kernel(Kind::Signed, 4, Op::Min), -3_i32, 2), -3);
        assert_eq!(fold(kernel(Kind::Unsigned, 4, Op::Min), u32::MAX, 2), 2);
        assert_eq!(fold(kernel(Kind::Bool, 1, Op::LogicalXor), 2_u8, 1), 0);
        assert_eq!(fold(kernel(Kind::Byte, 1, Op::BitOr), 2_u8, 1), 3);
        let product = fold(kernel(Kind::Complex, 16, Op::Product), Complex::new(0.0, 1.0), Complex::new(0.0, 1.0));
        assert_eq!(product, Complex::new(-1.0, 0.0));
        let least = fold(kernel(Kind::TwoInt, 8, Op::MinLoc), Pair::new(4_i32, 7_i32), Pair::new(4, 3));
        assert_eq!(least, Pair::new(4, 3));
    }

    /// The table of MPI 4.1, section 6.9.2, by hand.
    #[test]
    fn operators_are_allowed_where_the_standard_has_them() {
        let allowed = |kind: Kind| Op::ALL.into_iter().filter(|&op| kind.allows(op)).count();
        let counts = Kind::ALL.map(allowed);
        assert_eq!(counts, [10, 7, 10, 4, 2, 3, 3, 3, 0, 2, 2, 2, 2, 2, 2, 2, 2]);
        for kind in Kind::ALL {
            for op in Op::ALL {
                for size in [1, 2, 4, 8, 16, 32] {
                    let kernel = Kernel::find(kind, size, op);
                    assert!(kernel.is_none_or(|kernel| kind.allows(op) && kernel.shape.layout().0 == size));
                }
            }
        }
    }
}
