//! What a vector may be made of.

use std::any::TypeId;
use std::hash::{Hash, Hasher};

use bytemuck::{NoUninit, Zeroable};

/// A type whose values are moved between ranks byte by byte.
///
/// Every `bytemuck::NoUninit` type is one: all integers, floats, `f16`, `bf16`, complex numbers, `bool`, [`Pair`]s,
/// arrays of them, and user-defined `#[repr(C)]` structures without padding. Reductions take elements aligned to at
/// most 64 bytes. All ranks of a collective must use the same type: bytes that one rank wrote as a `T` are read as a
/// `T` by the others. So the type is part of what is checked between ranks; programs of one job must be built by the
/// same compiler.
pub trait Element: NoUninit + Send + Sync + 'static {}

impl<T: NoUninit + Send + Sync + 'static> Element for T {}

/// A number that tells element types apart, the same in all programs of one compiler.
#[inline]
pub(crate) fn type_number<T: Element>() -> u64 {
    /// Keeps the last number that it is fed: a type's identity is a hash already.
    struct Keep(u64);
    impl Hasher for Keep {
        fn finish(&self) -> u64 {
            self.0
        }
        fn write(&mut self, bytes: &[u8]) {
            bytes.iter().for_each(|&byte| self.0 = self.0.rotate_left(8) ^ u64::from(byte));
        }
        fn write_u64(&mut self, number: u64) {
            self.0 = number;
        }
    }
    let mut hasher = Keep(0);
    TypeId::of::<T>().hash(&mut hasher);
    hasher.finish()
}

/// A value and where it was found: the element of [`MinLoc`](crate::operator::MinLoc) and
/// [`MaxLoc`](crate::operator::MaxLoc) (MPI 4.1, section 6.9.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd)]
#[repr(C)]
pub struct Pair<V, I> {
    /// What is compared.
    pub value: V,
    /// What goes with it: of equal values, the least index wins.
    pub index: I,
}

impl<V, I> Pair<V, I> {
    /// A value and its index.
    pub const fn new(value: V, index: I) -> Self {
        Self { value, index }
    }
}

// SAFETY: repr(C) of fields of which all zero is a value.
unsafe impl<V: Zeroable, I: Zeroable> Zeroable for Pair<V, I> {}

macro_rules! pairs {
    ($($value:ty, $index:ty);+ $(;)?) => {$(
        const _: () = assert!(
            size_of::<Pair<$value, $index>>() == size_of::<$value>() + size_of::<$index>(),
            "a pair with padding could not be moved byte by byte"
        );
        // SAFETY: repr(C) of two NoUninit fields, and (asserted above) no padding between or behind them.
        unsafe impl NoUninit for Pair<$value, $index> {}
    )+};
}

pairs! {
    f32, i32; f32, u32; f64, i64; f64, u64; f64, usize;
    i8, i8; i16, i16; i32, i32; i32, u32; i64, i64; i64, u64; i64, usize;
    u8, u8; u16, u16; u32, u32; u64, u64; usize, usize;
}
