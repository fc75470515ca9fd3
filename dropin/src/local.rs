//! Operators that the library applies: those of users, and predefined ones on types that Rust does not have.

use std::cell::Cell;
use std::ffi::c_int;
use std::num::NonZeroUsize;

use hier::operator::Operator;
use mpi::ffi;

use crate::abi::{self, Word};

/// Bytes that are combined at a time where they must be moved for it.
const PIECE: usize = 32 << 10;

/// An operator as `MPI_Reduce_local` applies it (MPI 4.1, section 6.9.7): it calls the user's function with the user's
/// datatype, of C or Fortran, whatever made it.
///
/// Vectors are those of their bytes, of which it takes an extent for an element.
pub struct Local {
    op: ffi::MPI_Op,
    datatype: ffi::MPI_Datatype,
    /// Bytes from one element to the next, as the user's function expects them.
    extent: NonZeroUsize,
    /// What the user's function may take elements to be aligned to: as far as malloc aligns memory, which an MPI hands
    /// them over in, and as elements of this extent in a row can be.
    align: usize,
    commutative: bool,
    /// The library's last refusal.
    failure: Cell<c_int>,
    /// Buffers of one fold, kept for the next.
    buffers: Cell<[Vec<u128>; 2]>,
}

impl Local {
    /// The operator on elements of a datatype that begins at its lower bound, 0, and fills no more than its extent.
    pub fn new(op: Word, datatype: Word, extent: NonZeroUsize, commutative: bool) -> Self {
        let (op, datatype) = (abi::op(op), abi::datatype(datatype));
        let align = align_of::<u128>().min(1 << extent.trailing_zeros());
        Self { op, datatype, extent, align, commutative, failure: Cell::new(abi::SUCCESS), buffers: Cell::default() }
    }

    /// MPI's code of a refusal, if there was one.
    pub fn failure(&self) -> Option<c_int> {
        Some(self.failure.get()).filter(|&code| code != abi::SUCCESS)
    }

    /// `inout = left op inout`, for `n` elements that lie `extent` bytes apart.
    ///
    /// # Safety
    /// Both hold so many elements of the datatype, and `inout` nobody else touches.
    unsafe fn apply(&self, left: *const u8, inout: *mut u8, n: usize) {
        let mut done = 0;
        while done < n {
            let count = (n - done).min(c_int::MAX as usize);
            let at = done * self.extent.get();
            let (left, inout) = (left.wrapping_add(at), inout.wrapping_add(at));
            // SAFETY: by contract; `count` elements are left.
            let code =
                unsafe { ffi::PMPI_Reduce_local(left.cast(), inout.cast(), count as c_int, self.datatype, self.op) };
            if code != abi::SUCCESS {
                self.failure.set(code);
            }
            done += count;
        }
    }

    /// Folds operands that change places, or are not aligned as the user's function expects, as those in lines are by
    /// eight bytes alone: by way of buffers.
    ///
    /// # Safety
    /// As [`Operator::fold`], on `n` elements.
    unsafe fn fold_aside(&self, dst: *mut u8, operands: &[*const u8], n: usize) {
        let extent = self.extent.get();
        let most = (PIECE / extent).max(1).min(n);
        // Words, so that they are aligned as memory of malloc is.
        let words = (most * extent).div_ceil(size_of::<u128>());
        let [mut result, mut next] = self.buffers.take();
        for buffer in [&mut result, &mut next] {
            buffer.resize(buffer.len().max(words), 0);
        }
        let mut at = 0;
        while at < n {
            let len = most.min(n - at);
            for (i, operand) in operands.iter().enumerate() {
                let into: *mut u8 = if i == 0 { result.as_mut_ptr().cast() } else { next.as_mut_ptr().cast() };
                // SAFETY: `at + len <= n` elements are there, and `len` fit the buffer.
                unsafe { std::ptr::copy_nonoverlapping(operand.wrapping_add(at * extent), into, len * extent) };
                if i > 0 {
                    // SAFETY: both hold `len` elements.
                    unsafe { self.apply(result.as_ptr().cast(), into, len) };
                    std::mem::swap(&mut result, &mut next);
                }
            }
            let made = result.as_ptr().cast::<u8>();
            // SAFETY: `at + len <= n` elements may be written, and the buffer holds `len`.
            unsafe { std::ptr::copy_nonoverlapping(made, dst.wrapping_add(at * extent), len * extent) };
            at += len;
        }
        self.buffers.set([result, next]);
    }
}

// SAFETY: every element of the result is written.
unsafe impl Operator<u8> for Local {
    fn is_commutative(&self) -> bool {
        self.commutative
    }

    fn code(&self) -> u8 {
        if self.commutative { 0xfc } else { 0xfd }
    }

    fn group(&self) -> NonZeroUsize {
        self.extent
    }

    unsafe fn fold(&self, dst: *mut u8, operands: &[*const u8], n: usize) {
        let n = n / self.extent;
        let is_apart = operands.iter().skip(1).all(|&operand| operand != dst.cast_const());
        let is_aligned = |place: *const u8| place.addr().is_multiple_of(self.align);
        let all_aligned = || is_aligned(dst) && operands.iter().all(|&operand| is_aligned(operand));
        if !(self.commutative && is_apart && all_aligned()) {
            // SAFETY: by contract.
            return unsafe { self.fold_aside(dst, operands, n) };
        }
        let (&first, others) = operands.split_first().expect("there is at least one operand");
        if first != dst.cast_const() {
            // SAFETY: by contract `n` elements are there and may be written, and the two do not overlap.
            unsafe { std::ptr::copy_nonoverlapping(first, dst, n * self.extent.get()) };
        }
        for &other in others {
            // SAFETY: `n` elements each; the result is this call's.
            unsafe { self.apply(other, dst, n) };
        }
    }
}
