//! Types x operators, each with what makes one call and checks it.

use std::fmt;

use half::{bf16, f16};
use hier::Pair;
use num_complex::Complex;
use phalanx_oracle::operation::Operation;
use phalanx_oracle::operations::{Aligned, Operations, Reading};

#[cfg(not(feature = "mpi"))]
use crate::block_call::{BlockCall, check_folded};
use crate::call::{Call, check};
use crate::sample::Sample;
use crate::{Communicator, Error};

/// An operation on elements of some type.
trait Checked: Sync {
    fn make(&self, comm: &Communicator, call: &Call) -> Result<(), Error>;
    #[cfg(not(feature = "mpi"))]
    fn fold(&self, comm: &Communicator, call: &BlockCall) -> Result<(), Error>;
}

impl<T: Sample> Checked for Operation<T> {
    fn make(&self, comm: &Communicator, call: &Call) -> Result<(), Error> {
        check(comm, call, self)
    }

    #[cfg(not(feature = "mpi"))]
    fn fold(&self, comm: &Communicator, call: &BlockCall) -> Result<(), Error> {
        check_folded(comm, call, self)
    }
}

/// An element type with an operator.
#[derive(Clone, Copy)]
pub struct Case {
    /// Both names.
    pub name: &'static str,
    /// Bytes of an element.
    pub element: usize,
    /// Whether operands must be combined in rank order.
    pub ordered: bool,
    /// Whether the operator is one of the tests' own.
    own: bool,
    checked: &'static dyn Checked,
}

impl Case {
    /// Makes a call and checks it: [`check`].
    ///
    /// # Errors
    /// That of the collective.
    pub fn make(&self, comm: &Communicator, call: &Call) -> Result<(), Error> {
        self.checked.make(comm, call)
    }

    /// Makes a reduce-scatter or a scan and checks it: [`check_folded`].
    ///
    /// # Errors
    /// That of the collective.
    #[cfg(not(feature = "mpi"))]
    pub fn fold(&self, comm: &Communicator, call: &BlockCall) -> Result<(), Error> {
        self.checked.fold(comm, call)
    }

    /// Those of a type.
    fn of<T: Operations>() -> impl Iterator<Item = Self> {
        T::operations().iter().map(|operation| {
            let Operation { name, ordered, own, .. } = *operation;
            Self { name, element: size_of::<T>(), ordered, own, checked: operation }
        })
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// All cases, in the same order everywhere.
#[must_use]
pub fn cases() -> Vec<Case> {
    let mut list = Vec::new();
    macro_rules! of {
        ($($type:ty),+ $(,)?) => {$(
            list.extend(Case::of::<$type>());
        )+};
    }
    of!(i32, u8, u16, u64, f32, f64, f16, bf16, Complex<f32>, Complex<f64>, bool);
    of!(Pair<f32, i32>, Pair<f64, u64>, Pair<i64, i64>);
    // Across nodes the rest would be the same code once more, and take minutes to build.
    #[cfg(not(feature = "mpi"))]
    of! {
        i8, i16, i64, isize, u32, usize,
        Pair<f32, u32>, Pair<f64, i64>, Pair<f64, usize>,
        Pair<i8, i8>, Pair<i16, i16>, Pair<i32, i32>, Pair<i32, u32>, Pair<i64, u64>, Pair<i64, usize>,
        Pair<u8, u8>, Pair<u16, u16>, Pair<u32, u32>, Pair<u64, u64>, Pair<usize, usize>,
    }
    // Of the tests' own.
    of! {
        [u8; 0], [u8; 2], [u8; 3], [u8; 4], [u16; 3], [u16; 4], [u64; 2], u128, [u64; 3], [u64; 4],
        Reading, Aligned, [[u8; 3]; 100], [[u64; 3]; 21], [[u64; 3]; 42],
    }
    list
}

/// Those with operators of the tests' own: the elements have 0, 1, 2, 3, 4, 6, 8, 16, 24,
/// 32, 192, 300, 504 and 1008 bytes.
#[must_use]
pub fn own_cases() -> Vec<Case> {
    let mut list = cases();
    list.retain(|case| case.own);
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
