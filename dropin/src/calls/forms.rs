//! The two forms of a call: with counts that are C's integers, and with those of eight bytes (`_c`; MPI 4.1, section
//! 2.5.8).

use std::ffi::c_int;

use super::blocks::Counts;
use crate::abi::{self, Word};

/// What counts are in a form of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// C's integers, displacements too.
    Int,
    /// MPI_Count; displacements MPI_Aint.
    Count,
}

impl Width {
    /// A count that came as an argument.
    #[inline(always)]
    pub fn count(self, word: Word) -> isize {
        match self {
            Self::Int => abi::int(word) as isize,
            Self::Count => word.cast_signed(),
        }
    }

    /// The same number of elements for each rank.
    pub fn even(self, word: Word) -> Counts {
        Counts::Even(self.count(word))
    }

    /// Arrays of counts and displacements.
    pub fn uneven(self, counts: Word, displs: Word) -> Counts {
        Counts::Arrays(self, counts, displs)
    }

    /// A number of an array.
    ///
    /// # Safety
    /// The array has more than `place` numbers of this width.
    #[inline]
    pub unsafe fn read(self, array: Word, place: usize) -> isize {
        match self {
            // SAFETY: by contract.
            Self::Int => (unsafe { (array as *const c_int).wrapping_add(place).read_unaligned() }) as isize,
            // SAFETY: by contract.
            Self::Count => unsafe { (array as *const isize).wrapping_add(place).read_unaligned() },
        }
    }

    /// The sum of an array of as many counts; nothing, if there is no array, or one of them is wrong.
    ///
    /// # Safety
    /// The array, if there is one, has so many.
    #[inline]
    pub unsafe fn sum(self, array: Word, count: usize) -> Option<usize> {
        if array == 0 {
            return None;
        }
        (0..count).try_fold(0_usize, |sum, place| {
            // SAFETY: by contract.
            let next = unsafe { self.read(array, place) };
            sum.checked_add(usize::try_from(next).ok()?)
        })
    }
}

/// Both forms of calls, from one text: in it `$width` says what counts are, `$next` is the library's function of that
/// form.
macro_rules! forms {
    ($($(#[$doc:meta])* $narrow:ident $wide:ident($($argument:ident),*) |$width:ident, $next:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        #[allow(clippy::too_many_arguments, reason = "MPI has so many")]
        pub extern "C-unwind" fn $narrow($($argument: $crate::abi::Word),*) -> std::ffi::c_int {
            let ($width, $next) = ($crate::calls::forms::Width::Int, $crate::abi::next::$narrow);
            $body
        }

        $(#[$doc])*
        ///
        /// With counts of eight bytes.
        #[allow(clippy::too_many_arguments, reason = "MPI has so many")]
        pub extern "C-unwind" fn $wide($($argument: $crate::abi::Word),*) -> std::ffi::c_int {
            let ($width, $next) = ($crate::calls::forms::Width::Count, $crate::abi::next::$wide);
            $body
        }
    )*};
}

pub(super) use forms;
