//! Lines that are asked for ahead: hints, which change nothing but where lines are.
//!
//! What is asked for to be read goes to the second-level cache. There more lines may be on their way at once than to
//! the first level, which is what seems to bound a loop over another core's lines: on an AMD EPYC (Zen 4) the same hint
//! for the first level (PREFETCHT0, PREFETCHNTA), or one for lines to be stored to, gained nothing at any distance from
//! 512 bytes to 4 KiB. On the generation behind it (Zen 5) the first level, 1 KiB ahead, is the better place for what
//! comes out of a cell: broadcasts of 1 MiB took 18.4 us of two threads, 21.1 with the second level and 4 KiB; so it is
//! read where the string instruction has filled it ([`pace`](crate::pace)). On machines whose registers hold less than
//! a line they are left out (but for that of the next stamp, one a slice): they cost more than they gained on an AMD
//! EPYC of the generation before (Zen 3).

use crate::segment::layout::LINE;

/// Bytes up to which a message that another rank has just stored is in the caches next to its core, so that asking
/// ahead gains. Longer ones come from the last-level cache, which sees by itself what is wanted next: sums of 768 KiB
/// took 1 to 5 percent more time where lines were asked for (AMD EPYC, Zen 4).
pub(crate) const FRESH: usize = 384 * 1024;

/// Bytes of an operand of which a core finds by itself what to load next, so that to ask for it only holds that up.
/// Without asking, between two cores that share a last-level cache allreduces of 4 to 16 KiB took 7 to 13 percent less,
/// and of 64 KiB (in halves) 4, and reductions of 2 to 16 KiB 2 to 8; between two that share none exchanges of 4 to 16
/// KiB took 4 to 15 percent less, but sums of 256 KiB 10 percent more (AMD EPYC, Zen 5).
pub(crate) const FOUND: usize = 32 * 1024;

/// How many bytes ahead the lines of an operand are asked for of which another core may be storing more meanwhile.
/// Where two cores share a last-level cache (AMD EPYC, Zen 4) 2 to 4 KiB serve alike; where they share none, sums of 64
/// KiB (in halves, for which nothing is asked any more: [`FOUND`]) took 5 to 7 percent less with 3 than with 2, and
/// reductions of 256 KiB 13.0 us with 3, 14.0 with 6.
pub(crate) const BESIDE_A_WRITER: usize = 3072;

/// The same of what is stored already, while that core reads too, from [`FAR_AHEAD_FROM`] bytes on. Between cores that
/// share no cache allreduces of 256 KiB took 20.2 us with 3 KiB (4 of what is copied), 18.9 with 6; else the two serve
/// alike.
pub(crate) const BEHIND_A_WRITER: usize = 6144;

/// What is asked for before the first line is loaded holds that up, and the more so the shorter the operand: of 16 KiB
/// 1.61 us with 3 KiB, 1.66 with 6 ([`FOUND`] is where nothing is asked for).
pub(crate) const FAR_AHEAD_FROM: usize = 64 * 1024;

/// Asks for the line at `at`, to be read.
#[inline(always)]
pub(crate) fn to_read(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: a hint, which touches nothing, wherever it points; every x86-64 has it.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(at.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Asks for the line at `at`, to be read at once: into the first-level cache.
#[inline(always)]
pub(crate) fn to_read_soon(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: as in `to_read`.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Asks for the line at `at`, to be stored to.
///
/// # Safety
/// On a machine with registers of a line: every one of them has the instruction.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) unsafe fn to_store(at: *const u8) {
    // SAFETY: a hint, which touches nothing; by contract the machine has it.
    unsafe { core::arch::asm!("prefetchw [{}]", in(reg) at, options(nostack, preserves_flags, readonly)) };
}

/// Asks for all lines of `bytes` bytes at `at`, to be read.
#[inline]
pub(crate) fn all_to_read(at: *const u8, bytes: usize) {
    (0..bytes).step_by(LINE).for_each(|line| to_read(at.wrapping_add(line)));
}

/// Asks for all lines of `bytes` bytes at `at`, to be read at once.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn all_to_read_soon(at: *const u8, bytes: usize) {
    (0..bytes).step_by(LINE).for_each(|line| to_read_soon(at.wrapping_add(line)));
}

/// Asks for all lines of `bytes` bytes at `at`, to be stored to, where the machine is known to have the instruction.
#[inline]
pub(crate) fn all_to_store(at: *const u8, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") {
        for line in (0..bytes).step_by(LINE) {
            // SAFETY: the feature was just detected.
            unsafe { to_store(at.wrapping_add(line)) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (at, bytes);
}
