//! Operators that the library applies: those of users, and predefined ones on types that Rust does not have.

use std::cell::Cell;
use std::ffi::c_int;

use hier::Element;
use hier::operator::Operator;
use mpi::ffi;

use crate::abi::{self, Word};

/// Bytes that are combined at a time where they must be moved for it.
const PIECE: usize = 32 << 10;

/// An operator as `MPI_Reduce_local` applies it (MPI 4.1, section 6.9.7): it calls the user's function with the user's
/// datatype, of C or Fortran, whatever made it.
///
/// Elements are blocks of `P` bytes, of which the first `extent` are the user's.
pub struct Local {
    op: ffi::MPI_Op,
    datatype: ffi::MPI_Datatype,
    /// Bytes from one element to the next, as the user's function expects them.
    extent: usize,
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
    pub fn new(op: Word, datatype: Word, extent: usize, commutative: bool) -> Self {
        let (op, datatype) = (abi::op(op), abi::datatype(datatype));
        let align = align_of::<u128>().min(1 << extent.trailing_zeros().min(usize::BITS - 1));
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
            let (left, inout) = (left.wrapping_add(done * self.extent), inout.wrapping_add(done * self.extent));
            // SAFETY: by contract; `count` elements are left.
            let code =
                unsafe { ffi::PMPI_Reduce_local(left.cast(), inout.cast(), count as c_int, self.datatype, self.op) };
            if code != abi::SUCCESS {
                self.failure.set(code);
            }
            done += count;
        }
    }

    /// Folds elements of a size of their own, or which are not aligned, as those in lines are by eight bytes alone, by
    /// way of buffers in which they lie as the user's function expects them.
    ///
    /// # Safety
    /// As [`Operator::fold`], on elements of `size` bytes.
    unsafe fn fold_aside(&self, dst: *mut u8, operands: &[*const u8], n: usize, size: usize) {
        let most = (PIECE / size).max(1).min(n);
        // Words, so that they are aligned as memory of malloc is.
        let words = (most * self.extent).div_ceil(16);
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
                unsafe { self.gather(operand.wrapping_add(at * size), into, len, size) };
                if i > 0 {
                    // SAFETY: both hold `len` elements.
                    unsafe { self.apply(result.as_ptr().cast(), into, len) };
                    std::mem::swap(&mut result, &mut next);
                }
            }
            // SAFETY: `at + len <= n` elements may be written.
            unsafe { self.scatter(result.as_ptr().cast(), dst.wrapping_add(at * size), len, size) };
            at += len;
        }
        self.buffers.set([result, next]);
    }

    /// Copies elements out of blocks of `size` bytes.
    ///
    /// # Safety
    /// `n` blocks are at `from`, room for `n` elements at `into`.
    unsafe fn gather(&self, from: *const u8, into: *mut u8, n: usize, size: usize) {
        let (pieces, bytes) = if size == self.extent { (1, n * size) } else { (n, self.extent) };
        for i in 0..pieces {
            let (from, into) = (from.wrapping_add(i * size), into.wrapping_add(i * self.extent));
            // SAFETY: by contract, and a block is no smaller than an element.
            unsafe { std::ptr::copy_nonoverlapping(from, into, bytes) };
        }
    }

    /// Copies elements into blocks of `size` bytes.
    ///
    /// # Safety
    /// `n` elements are at `from`, room for `n` blocks at `into`.
    unsafe fn scatter(&self, from: *const u8, into: *mut u8, n: usize, size: usize) {
        let (pieces, bytes) = if size == self.extent { (1, n * size) } else { (n, self.extent) };
        for i in 0..pieces {
            let (from, into) = (from.wrapping_add(i * self.extent), into.wrapping_add(i * size));
            // SAFETY: by contract, and a block is no smaller than an element.
            unsafe { std::ptr::copy_nonoverlapping(from, into, bytes) };
        }
    }
}

impl Local {
    /// Folds `n` elements that lie in blocks of `size` bytes.
    ///
    /// # Safety
    /// As [`Operator::fold`], on such blocks.
    unsafe fn fold_blocks(&self, dst: *mut u8, operands: &[*const u8], n: usize, size: usize) {
        let is_apart = operands.iter().skip(1).all(|&operand| operand != dst.cast_const());
        let is_aligned = |place: *const u8| place.addr().is_multiple_of(self.align);
        let all_aligned = || is_aligned(dst) && operands.iter().all(|&operand| is_aligned(operand));
        if !(self.commutative && size == self.extent && is_apart && all_aligned()) {
            // SAFETY: by contract.
            return unsafe { self.fold_aside(dst, operands, n, size) };
        }
        let (&first, others) = operands.split_first().expect("there is at least one operand");
        if first != dst.cast_const() {
            // SAFETY: by contract `n` elements are there and may be written, and the two do not overlap.
            unsafe { std::ptr::copy_nonoverlapping(first, dst, n * size) };
        }
        for &other in others {
            // SAFETY: `n` elements each; the result is this call's.
            unsafe { self.apply(other, dst, n) };
        }
    }

    fn code(&self) -> u8 {
        if self.commutative { 0xfc } else { 0xfd }
    }
}

// SAFETY: every block of the result is written, as far as elements reach; what is behind them in a block means nothing.
unsafe impl<T: Element> Operator<T> for Local {
    fn is_commutative(&self) -> bool {
        self.commutative
    }

    fn code(&self) -> u8 {
        Local::code(self)
    }

    unsafe fn fold(&self, dst: *mut T, operands: &[*const T], n: usize) {
        // SAFETY: pointers to bytes and to blocks are laid out alike.
        let operands = unsafe { std::slice::from_raw_parts(operands.as_ptr().cast::<*const u8>(), operands.len()) };
        // SAFETY: by contract, on blocks of `T`.
        unsafe { self.fold_blocks(dst.cast(), operands, n, size_of::<T>()) }
    }
}

/// The same on bytes, of which it takes an extent for an element: of any that has no gaps.
pub struct Bytewise<'a>(pub &'a Local);

// SAFETY: every element of the result is written, and elements fill their extents.
unsafe impl Operator<u8> for Bytewise<'_> {
    fn is_commutative(&self) -> bool {
        self.0.commutative
    }

    fn code(&self) -> u8 {
        self.0.code()
    }

    fn group(&self) -> usize {
        self.0.extent
    }

    unsafe fn fold(&self, dst: *mut u8, operands: &[*const u8], n: usize) {
        // SAFETY: by contract, on whole elements.
        unsafe { self.0.fold_blocks(dst, operands, n / self.0.extent, self.0.extent) }
    }
}
