//! Moving payload: the one door through which bytes enter and leave lines and cells.

use std::sync::atomic::{AtomicU64, Ordering};

/// Stores `bytes` bytes in the words of a line.
///
/// # Safety
/// `from` points to `bytes` initialised bytes, and `bytes <= 8 * words.len()`.
#[inline]
pub(crate) unsafe fn store_line(words: &[AtomicU64], from: *const u8, bytes: usize) {
    if bytes == 8 {
        // SAFETY: eight bytes are there; any alignment will do.
        let value = unsafe { from.cast::<u64>().read_unaligned() };
        return words[0].store(value, Ordering::Relaxed);
    }
    let whole = bytes / 8;
    for (i, word) in words[..whole].iter().enumerate() {
        // SAFETY: `8 * (i + 1) <= bytes`; any alignment will do.
        let value = unsafe { from.wrapping_add(8 * i).cast::<u64>().read_unaligned() };
        word.store(value, Ordering::Relaxed);
    }
    let rest = bytes % 8;
    if rest != 0 {
        let mut value = [0u8; 8];
        let from = from.wrapping_add(8 * whole);
        // SAFETY: `rest` bytes are left there, and fewer than eight fit.
        unsafe { std::ptr::copy_nonoverlapping(from, value.as_mut_ptr(), rest) };
        words[whole].store(u64::from_ne_bytes(value), Ordering::Relaxed);
    }
}

/// Loads `bytes` bytes from the words of a line.
///
/// # Safety
/// `bytes` bytes may be written to `to`, and `bytes <= 8 * words.len()`.
#[inline]
pub(crate) unsafe fn load_line(words: &[AtomicU64], to: *mut u8, bytes: usize) {
    if bytes == 8 {
        // SAFETY: eight bytes may be written there; any alignment will do.
        return unsafe { to.cast::<u64>().write_unaligned(words[0].load(Ordering::Relaxed)) };
    }
    let whole = bytes / 8;
    for (i, word) in words[..whole].iter().enumerate() {
        // SAFETY: `8 * (i + 1) <= bytes`; any alignment will do.
        unsafe { to.wrapping_add(8 * i).cast::<u64>().write_unaligned(word.load(Ordering::Relaxed)) };
    }
    let rest = bytes % 8;
    if rest != 0 {
        let value = words[whole].load(Ordering::Relaxed).to_ne_bytes();
        let to = to.wrapping_add(8 * whole);
        // SAFETY: room for `rest` bytes is left there.
        unsafe { std::ptr::copy_nonoverlapping(value.as_ptr(), to, rest) };
    }
}

/// Copies `bytes` bytes from a private buffer into an own cell.
///
/// # Safety
/// `from` points to `bytes` initialised bytes that nobody writes meanwhile, `bytes` bytes may be written to `cell`, which
/// nobody else touches meanwhile, and the two do not overlap.
#[inline]
pub(crate) unsafe fn copy_in(from: *const u8, cell: *mut u8, bytes: usize) {
    // SAFETY: by contract.
    unsafe { std::ptr::copy_nonoverlapping(from, cell, bytes) };
}

/// Copies `bytes` bytes out of another rank's cell into a private buffer.
///
/// # Safety
/// `cell` points to `bytes` initialised bytes that nobody writes meanwhile, `bytes` bytes may be written to `to`, which
/// nobody else touches meanwhile, and the two do not overlap.
#[inline]
pub(crate) unsafe fn copy_out(cell: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: by contract.
    unsafe { std::ptr::copy_nonoverlapping(cell, to, bytes) };
}
