//! Moving payload: the one door through which bytes enter and leave lines and cells.

mod copy;

use std::sync::atomic::{AtomicU64, Ordering};

use self::copy::{ABREAST, CLOSE, KEPT, LOADED, NOTHING, SETTLED, STORED, copy_lines, copy_string, stream};
use crate::abreast;
use crate::ask::FRESH;
use crate::counts::note;
use crate::pace::{LEAST, Way};
use crate::segment::layout::{FIRST_LINE, LINE};

/// Stores `bytes` bytes in the words of a line slot.
///
/// The first line comes last. It is the one that readers look at while they wait, and each look takes it away from the
/// writer: stored to first, it would have to be fetched once more for the stamp, which follows.
///
/// # Safety
/// `from` points to `bytes` initialised bytes, and `bytes <= 8 * words.len()`.
#[inline(always)]
pub(crate) unsafe fn store_line(words: &[AtomicU64], from: *const u8, bytes: usize) {
    debug_assert!(bytes <= size_of_val(words));
    note::stored(words.as_ptr().cast(), bytes);
    if bytes == 8 {
        // SAFETY: eight bytes are there; any alignment will do.
        let value = unsafe { from.cast::<u64>().read_unaligned() };
        return words[0].store(value, Ordering::Relaxed);
    }
    if bytes > FIRST_LINE {
        let to = words[FIRST_LINE / 8..].as_ptr().cast_mut().cast::<u8>();
        // SAFETY: by contract so many bytes are there and fit the words, which are the writer's alone until it has
        // published them, and may be written through a shared reference, as atomics are.
        unsafe { copy_lines::<STORED>(from.wrapping_add(FIRST_LINE), to, bytes - FIRST_LINE) };
    }
    let bytes = bytes.min(FIRST_LINE);
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

/// Loads `bytes` bytes from the words of a line slot.
///
/// # Safety
/// `bytes` bytes may be written to `to`, and `bytes <= 8 * words.len()`.
#[inline(always)]
pub(crate) unsafe fn load_line(words: &[AtomicU64], to: *mut u8, bytes: usize) {
    note::loaded(words.as_ptr().cast(), bytes);
    if bytes == 8 {
        // SAFETY: eight bytes may be written there; any alignment will do.
        return unsafe { to.cast::<u64>().write_unaligned(words[0].load(Ordering::Relaxed)) };
    }
    if bytes > FIRST_LINE {
        debug_assert!(bytes <= size_of_val(words));
        let from = words[FIRST_LINE / 8..].as_ptr().cast::<u8>();
        // SAFETY: by contract so many bytes may be written there, and are in the words, which nobody writes to while
        // their reader holds them.
        unsafe { copy_lines::<NOTHING>(from, to.wrapping_add(FIRST_LINE), bytes - FIRST_LINE) };
    }
    let bytes = bytes.min(FIRST_LINE);
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

/// Stores to each line of a line slot of which `bytes` bytes will be filled, so that its lines are this core's before
/// that: what [`take_lines`] does for a cell.
#[inline(always)]
pub(crate) fn take_slot(words: &[AtomicU64], bytes: usize) {
    // The word behind the stamp, then the first one of each further line.
    words[0].store(0, Ordering::Relaxed);
    for word in words[..bytes.div_ceil(8)].iter().skip(FIRST_LINE / 8).step_by(LINE / 8) {
        word.store(0, Ordering::Relaxed);
    }
}

/// Bytes of a cell that are taken at most. What leaves the first-level cache before it is filled is in the second: on
/// an AMD EPYC (Zen 4) broadcasts of 32 KiB took 8 percent less with all of it taken than with half.
pub(crate) const TAKEN: usize = 32 * 1024;

/// Stores to each line of an own cell that will be filled next with `bytes` bytes, so that its lines are this core's
/// before that.
///
/// Its readers hold these lines, and a store waits until they have given up theirs. Here nobody waits for it: the
/// stores stand in line while the call returns, and the caller does something else. To ask for the lines without a
/// store (PREFETCHW) is not the same everywhere: AMD's Zen 4 hardly heeds it for lines that have left the second-level
/// cache.
///
/// # Safety
/// `cell` is aligned to lines; nobody reads or writes its first `bytes` bytes meanwhile.
#[inline]
pub(crate) unsafe fn take_lines(cell: *mut u8, bytes: usize) {
    for at in (0..bytes.min(TAKEN)).step_by(LINE) {
        // SAFETY: by contract the line is this rank's alone.
        unsafe { cell.wrapping_add(at).cast::<u64>().write_volatile(0) };
    }
}

/// Copies `bytes` bytes from a private buffer into an own cell, in `way`.
///
/// # Safety
/// `from` points to `bytes` initialised bytes that nobody writes meanwhile, `bytes` bytes may be written to `cell`,
/// which nobody else touches meanwhile, and the two do not overlap.
#[inline]
pub(crate) unsafe fn copy_in(from: *const u8, cell: *mut u8, bytes: usize, way: Way) {
    // SAFETY: by contract.
    unsafe { copy_part_in(from, cell, bytes, way) };
    end_parts(way);
}

/// Orders what [`copy_part_in`] stored before whatever is stored later. Streamed stores are ordered by nothing else,
/// not even by a store with release ordering after them.
#[inline]
#[cfg_attr(not(target_arch = "x86_64"), allow(unused_variables))]
pub(crate) fn end_parts(way: Way) {
    #[cfg(target_arch = "x86_64")]
    if way == Way::Streamed {
        // SAFETY: every x86-64 has this fence.
        unsafe { core::arch::x86_64::_mm_sfence() };
    }
}

/// [`copy_in`] of a part of what belongs in a cell: [`end_parts`] must follow the last one, before the cell is
/// published.
///
/// # Safety
/// As [`copy_in`].
#[inline]
pub(crate) unsafe fn copy_part_in(from: *const u8, cell: *mut u8, bytes: usize, way: Way) {
    note::loaded(from, bytes);
    note::stored(cell, bytes);
    match way {
        // SAFETY: by contract.
        Way::Cached => unsafe { copy_lines::<STORED>(from, cell, bytes) },
        // SAFETY: by contract.
        Way::Streamed => unsafe { stream(from, cell, bytes) },
        // SAFETY: by contract.
        Way::ByString | Way::BothByString => unsafe { copy_string(from, cell, bytes) },
    }
}

/// [`copy_in`] of a cell whose lines are here, as a rule: this rank has read there what the other one stored, or has
/// [taken](take_lines) them. They are not asked for: between two cores that share a last-level cache (AMD EPYC, Zen 3)
/// to ask for lines that are here made broadcasts of 16 KiB 4 to 8 percent longer.
///
/// # Safety
/// As there.
#[inline]
pub(crate) unsafe fn copy_in_again(from: *const u8, cell: *mut u8, bytes: usize, way: Way) {
    if way != Way::Cached {
        // SAFETY: by contract.
        return unsafe { copy_in(from, cell, bytes, way) };
    }
    note::loaded(from, bytes);
    note::stored(cell, bytes);
    // SAFETY: by contract.
    unsafe { copy_lines::<NOTHING>(from, cell, bytes) };
}

/// Bytes of which a core has all loads under way at once, so that to ask for them only holds them up: broadcasts of 1.5
/// to 4 KiB took 5 to 8 percent longer where lines were asked for (AMD EPYC, Zen 5).
const AT_ONCE: usize = 4096;

/// How what another rank has stored is copied to a private buffer. In the first of these manners four runs may go
/// [abreast] instead, from [some length](Manner::abreast_from) on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Line after line.
    Plain,
    /// Its lines are asked for ahead.
    Asking,
    /// The same, of what was stored a moment ago, slice after slice.
    Fresh,
    /// They are asked for a little ahead, into the first-level cache.
    Close,
    /// They are asked for further ahead than either, of what another rank has stored and left, as a rule, for something
    /// else.
    Settled,
    /// Line after line, of what this rank itself has stored.
    Own,
    /// They are asked for ahead to be stored to, of a cell that this rank writes next.
    Keeping,
    /// By the string instruction.
    String,
    /// Past the caches.
    Streamed,
}

impl Manner {
    /// How parts of a message of `bytes` bytes are copied, as a rule.
    pub fn of(way: Way, bytes: usize) -> Self {
        match way {
            Way::Streamed => Manner::Streamed,
            _ if bytes <= FRESH => Manner::Asking,
            _ => Manner::Plain,
        }
    }

    /// The manner in which `bytes` bytes are copied that were stored in this way, as it was told, where this one would
    /// do as a rule. Of short slices nobody tells.
    pub fn behind(self, filled: Way, bytes: usize) -> Self {
        match (self, filled) {
            _ if bytes < LEAST => self,
            (Manner::Streamed, _) | (_, Way::Cached | Way::Streamed) => self,
            (_, Way::ByString) => Manner::Close,
            (_, Way::BothByString) => Manner::String,
        }
    }

    /// How what was stored a moment ago is copied, however long it is.
    pub fn of_fresh(way: Way) -> Self {
        if way == Way::Streamed { Manner::Streamed } else { Manner::Fresh }
    }

    /// From how many bytes on loads go [abreast], where that serves. An allreduce of 64 KiB took 7 percent longer where
    /// halves that had come back were copied out so, of 128 KiB 7, and of 256 KiB 7 percent less (Intel Xeon).
    fn abreast_from(self) -> usize {
        match self {
            Manner::Plain | Manner::Fresh | Manner::Close => 0,
            Manner::Asking | Manner::Settled => 128 * 1024,
            Manner::Own | Manner::Keeping | Manner::String | Manner::Streamed => usize::MAX,
        }
    }
}

/// Copies `bytes` bytes that another rank has stored into a private buffer.
///
/// The buffer's lines are not asked for: they are this core's, as a rule, and what is asked for to be stored to stands
/// in the way of what has to come. A broadcast of 256 KiB from a core on another complex (AMD EPYC, Zen 4) took 19.6 us
/// where the buffer's lines were asked for, 16.4 where they were not, and 7.7 and 7.5 from a core beside.
///
/// # Safety
/// `from` points to `bytes` initialised bytes that nobody writes meanwhile, `bytes` bytes may be written to `to`, which
/// nobody else touches meanwhile, and the two do not overlap.
#[inline]
pub(crate) unsafe fn copy_out(from: *const u8, to: *mut u8, bytes: usize, manner: Manner) {
    if manner == Manner::Streamed {
        // SAFETY: by contract.
        return unsafe { copy_in(from, to, bytes, Way::Streamed) };
    }
    note::loaded(from, bytes);
    note::stored(to, bytes);
    if bytes >= manner.abreast_from() && abreast::serves(bytes) {
        // SAFETY: by contract.
        return unsafe { copy_lines::<ABREAST>(from, to, bytes) };
    }
    match manner {
        // SAFETY: by contract.
        Manner::Asking | Manner::Fresh if bytes > AT_ONCE => unsafe { copy_lines::<LOADED>(from, to, bytes) },
        // SAFETY: by contract.
        Manner::Settled => unsafe { copy_lines::<SETTLED>(from, to, bytes) },
        // SAFETY: by contract.
        Manner::Close => unsafe { copy_lines::<CLOSE>(from, to, bytes) },
        // SAFETY: by contract.
        Manner::String => unsafe { copy_string(from, to, bytes) },
        // SAFETY: by contract.
        Manner::Keeping => unsafe { copy_lines::<KEPT>(from, to, bytes) },
        // SAFETY: by contract.
        Manner::Asking | Manner::Fresh | Manner::Plain | Manner::Own | Manner::Streamed => unsafe {
            copy_lines::<NOTHING>(from, to, bytes);
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::layout::SLOT_PAYLOAD;

    #[repr(align(64))]
    struct Lines([u8; 1024]);

    /// What a slot is given comes out of it, at every length, and nothing beside it is touched.
    #[test]
    fn lines_give_back_what_they_were_given() {
        let from: Vec<u8> = (0..SLOT_PAYLOAD).map(|i| (i * 7 % 251) as u8).collect();
        for bytes in 0..=SLOT_PAYLOAD {
            let words: Vec<AtomicU64> = (0..SLOT_PAYLOAD / 8).map(|_| AtomicU64::new(u64::MAX)).collect();
            let mut to = vec![255; SLOT_PAYLOAD];
            // SAFETY: so many bytes are there, and the words hold as many.
            unsafe { store_line(&words, from.as_ptr(), bytes) };
            // SAFETY: the same.
            unsafe { load_line(&words, to.as_mut_ptr(), bytes) };
            assert_eq!(to[..bytes], from[..bytes]);
            assert!(to[bytes..].iter().all(|&byte| byte == 255));
            let beyond = &words[bytes.div_ceil(8)..];
            assert!(beyond.iter().all(|word| word.load(Ordering::Relaxed) == u64::MAX), "{bytes}");
        }
    }

    /// Every kernel, at every offset within a line, and nothing beside the place that was meant.
    #[test]
    fn copies_into_cells_are_whole_and_keep_to_their_place() {
        let from: Vec<u8> = (0..1024).map(|i| (i * 7 % 251) as u8).collect();
        for way in [Way::Cached, Way::Streamed, Way::ByString] {
            for (begin, skip) in (0..64).zip((0..64).rev()) {
                for bytes in [0, 1, 63, 64, 65, 127, 128, 500, 800] {
                    let mut to = Lines([255; 1024]);
                    // SAFETY: `skip + bytes` and `begin + bytes` are below 1024.
                    unsafe { copy_in(from[skip..].as_ptr(), to.0[begin..].as_mut_ptr(), bytes, way) };
                    assert_eq!(to.0[begin..begin + bytes], from[skip..skip + bytes]);
                    assert!(to.0[..begin].iter().chain(&to.0[begin + bytes..]).all(|&byte| byte == 255));
                }
            }
        }
    }

    /// In every manner, of lengths around those from which lines are asked for ahead, or runs go abreast.
    #[test]
    fn copies_out_of_cells_are_whole_and_keep_to_their_place() {
        let from: Vec<u8> = (0..150_000).map(|i| (i * 7 % 251) as u8).collect();
        for manner in [
            Manner::Plain,
            Manner::Asking,
            Manner::Fresh,
            Manner::Close,
            Manner::String,
            Manner::Settled,
            Manner::Own,
            Manner::Keeping,
            Manner::Streamed,
        ] {
            let short = [0, 1, 63, 64, 255, 256, 1024, 1025, 1280, 1343];
            let long = [4095, 4096, 4351, 4352, 4353, 4415, 5990, 6143, 6144, 6399, 6400, 6401, 6463, 8990];
            let abreast = [16_383, 16_384, 18_003, 131_071, 131_072, 135_001];
            for bytes in short.into_iter().chain(long).chain(abreast) {
                let mut to = vec![255; 150_000];
                // SAFETY: `3 + bytes` is below 150,000.
                unsafe { copy_out(from[3..].as_ptr(), to[3..].as_mut_ptr(), bytes, manner) };
                assert_eq!(to[3..3 + bytes], from[3..3 + bytes], "{manner:?}, {bytes}");
                assert!(to[..3].iter().chain(&to[3 + bytes..]).all(|&byte| byte == 255), "{manner:?}, {bytes}");
            }
        }
    }
}
