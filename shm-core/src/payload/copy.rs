//! The loops that copy: line after line, upwards or four runs [abreast], in the widest registers that the machine has;
//! through the caches, or past them.
//!
//! For lines that another core holds the way counts: each should be asked for once, and early, in an order in which the
//! core looks ahead. The C library's copies begin with both ends of a short buffer, and leave those of a few KiB and
//! more to one instruction (`rep movsb`), which asks for nothing ahead and takes many times as long where the two
//! buffers lie at unlucky distances: on an AMD EPYC (Zen 3) a cell of 16 KiB took 0.9 us more to copy in at some times,
//! and private messages of 1 MiB took 40 us or 415 to copy out.

#[cfg(target_arch = "x86_64")]
use crate::segment::layout::LINE;
#[cfg(target_arch = "x86_64")]
use crate::{abreast, ask};

/// How a copy goes, by what it asks for ahead: nothing, the lines that it stores to, those that it loads, or those that
/// it loads, to be stored to later.
pub(super) const NOTHING: u8 = 0;
pub(super) const STORED: u8 = 1;
pub(super) const LOADED: u8 = 2;
pub(super) const KEPT: u8 = 3;
/// The lines that it loads, which their writer has left.
pub(super) const SETTLED: u8 = 4;
/// The lines that it loads, a little ahead, to the first-level cache.
pub(super) const CLOSE: u8 = 5;
/// Nothing, but loads four runs [abreast].
pub(super) const ABREAST: u8 = 6;

/// Has `$load` called with `0..$n`, and `$store` with each of these and what came of it, once all are loaded.
#[cfg(target_arch = "x86_64")]
macro_rules! move_registers {
    ($n:expr, $load:ident, $store:ident) => {
        match $n {
            1 => move_registers!(@each $load, $store, 0 a),
            2 => move_registers!(@each $load, $store, 0 a 1 b),
            4 => move_registers!(@each $load, $store, 0 a 1 b 2 c 3 d),
            8 => move_registers!(@each $load, $store, 0 a 1 b 2 c 3 d 4 e 5 f 6 g 7 h),
            16 => move_registers!(
                @each $load, $store,
                0 a 1 b 2 c 3 d 4 e 5 f 6 g 7 h 8 i 9 j 10 k 11 l 12 m 13 n 14 o 15 p
            ),
            _ => unreachable!("so many registers are not moved at a time"),
        }
    };
    (@each $load:ident, $store:ident, $($at:literal $value:ident)+) => {{
        $(let $value = $load($at);)+
        $($store($at, $value);)+
    }};
}

/// Copies, and asks ahead for the lines that `HOW` says, where registers hold a line: on such machines that gains, or
/// makes no difference. On one whose registers hold half a line (AMD EPYC, Zen 3) it made broadcasts longer, by 2 to 12
/// percent between two cores that share a last-level cache (16 KiB 0.83 us, 0.73 without), by 4 to 15 between two that
/// share none (64 KiB 7.3 us, 6.4 without). Runs go [abreast] with registers of either width.
///
/// # Safety
/// `from` points to `bytes` initialised bytes that nobody writes meanwhile, `bytes` bytes may be written to `to`, which
/// nobody else touches meanwhile, and the two do not overlap.
#[inline]
pub(super) unsafe fn copy_lines<const HOW: u8>(from: *const u8, to: *mut u8, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    if bytes >= LINE {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: by contract, and the feature was just detected; a line at least.
            return unsafe { copy_avx512::<HOW>(from, to, bytes) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the same.
            return unsafe { copy_avx2::<HOW>(from, to, bytes) };
        }
        // SAFETY: by contract, a line at least.
        return unsafe { copy_sse2(from, to, bytes) };
    }
    // SAFETY: by contract.
    unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
}

/// How far ahead lines are asked for. Nothing is asked for past the end: that would be another's cell. What is to be
/// loaded may wait in the second-level cache: between two cores that share the next one (AMD EPYC, Zen 4) broadcasts of
/// 64 KiB to 4 MiB took 4 to 7 percent less with 4 KiB than with nothing, and less was gained with 1 or 16.
#[cfg(target_arch = "x86_64")]
const fn ahead(how: u8) -> usize {
    match how {
        LOADED => 4096,
        SETTLED => ask::BEHIND_A_WRITER,
        _ => 1024,
    }
}

/// Bytes that are loaded before the first of them is stored: loads that wait for another core's lines are then not held
/// up behind stores.
#[cfg(target_arch = "x86_64")]
const GROUP: usize = 4 * LINE;

/// Groups of a run that are copied before the next run has its turn.
#[cfg(target_arch = "x86_64")]
const PARTED: usize = 4;

/// [`copy_lines`] with registers of a line.
///
/// # Safety
/// As there, of a line at least, on a machine with this feature.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn copy_avx512<const HOW: u8>(from: *const u8, to: *mut u8, bytes: usize) {
    use core::arch::x86_64::__m512i;
    // SAFETY: by contract.
    unsafe { copy_by::<__m512i, 4, 1, HOW>(from, to, bytes) }
}

/// [`copy_lines`] with registers of half a line.
///
/// # Safety
/// As there, of a line at least, on a machine with this feature.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn copy_avx2<const HOW: u8>(from: *const u8, to: *mut u8, bytes: usize) {
    use core::arch::x86_64::__m256i;
    match HOW {
        // SAFETY: by contract.
        ABREAST => unsafe { copy_by::<__m256i, 8, 2, ABREAST>(from, to, bytes) },
        // SAFETY: by contract.
        _ => unsafe { copy_by::<__m256i, 8, 2, NOTHING>(from, to, bytes) },
    }
}

/// [`copy_lines`] with what every x86-64 has.
///
/// # Safety
/// As there, of a line at least.
#[cfg(target_arch = "x86_64")]
unsafe fn copy_sse2(from: *const u8, to: *mut u8, bytes: usize) {
    use core::arch::x86_64::__m128i;
    // SAFETY: by contract.
    unsafe { copy_by::<__m128i, 16, 4, NOTHING>(from, to, bytes) }
}

/// The loop, with registers `R`, `GROUPED` of which hold a group, and `LINED` a line.
///
/// # Safety
/// As [`copy_lines`], of a line at least, on a machine that has such registers; of a line, where `HOW` is of lines
/// that will be stored to.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn copy_by<R: Copy, const GROUPED: usize, const LINED: usize, const HOW: u8>(
    from: *const u8,
    to: *mut u8,
    bytes: usize,
) {
    const { assert!(GROUPED * size_of::<R>() == GROUP && LINED * size_of::<R>() == LINE) };
    // SAFETY: a group lies within both buffers, as the callers below see to.
    let group = |at: usize| unsafe { copy_registers::<R, GROUPED>(from.wrapping_add(at), to.wrapping_add(at)) };
    // SAFETY: the same of a line.
    let line = |at: usize| unsafe { copy_registers::<R, LINED>(from.wrapping_add(at), to.wrapping_add(at)) };
    let (whole, grouped) = (bytes / LINE * LINE, bytes / GROUP * GROUP);
    let ahead = const { ahead(HOW) };
    let near = if HOW == NOTHING || HOW == ABREAST { 0 } else { grouped.saturating_sub(ahead) };
    match HOW {
        LOADED | SETTLED => ask::all_to_read(from, whole.min(ahead)),
        CLOSE => ask::all_to_read_soon(from, whole.min(ahead)),
        KEPT => ask::all_to_store(from, whole.min(ahead)),
        _ => {}
    }
    for at in (0..near).step_by(GROUP) {
        for line in (at + ahead..at + ahead + GROUP).step_by(LINE) {
            match HOW {
                LOADED | SETTLED => ask::to_read(from.wrapping_add(line)),
                CLOSE => ask::to_read_soon(from.wrapping_add(line)),
                // SAFETY: by contract the machine has registers of a line.
                KEPT => unsafe { ask::to_store(from.wrapping_add(line)) },
                // SAFETY: the same.
                _ => unsafe { ask::to_store(to.wrapping_add(line)) },
            }
        }
        group(at);
    }
    let mut copied = near;
    if HOW == ABREAST {
        let (parts, walked) = abreast::walk(bytes, PARTED * GROUP);
        for part in parts {
            (0..PARTED).for_each(|grouped| group(part + grouped * GROUP));
        }
        copied = walked;
    }
    for at in (copied..grouped).step_by(GROUP) {
        group(at);
    }
    for at in (grouped..whole).step_by(LINE) {
        line(at);
    }
    if whole < bytes {
        line(bytes - LINE);
    }
}

/// Copies as many bytes as `N` registers `R` hold (1, 2, 4, 8 or 16), all of which are loaded before the first is
/// stored.
///
/// Each is a variable of its own: a copy of all of them as a whole could become a call of the C library's, and an array
/// of them lies on the stack wherever the compiler does not take it apart. That came and went with what else was in the
/// program: in one build of the same loop calls of 8 ranks took up to twice as long.
///
/// # Safety
/// So many bytes are initialised at `from`, and may be written at `to`; any alignment will do.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn copy_registers<R: Copy, const N: usize>(from: *const u8, to: *mut u8) {
    let (from, to) = (from.cast::<R>(), to.cast::<R>());
    // SAFETY: by contract.
    let load = |i: usize| unsafe { from.wrapping_add(i).read_unaligned() };
    // SAFETY: the same.
    let store = |i: usize, value: R| unsafe { to.wrapping_add(i).write_unaligned(value) };
    move_registers!(N, load, store);
}

/// Copies by the one instruction that x86-64 has for it, whose stores fetch no line that they fill as a whole, where
/// the processor sees to that (which it says by the features `erms` and `fsrm`).
///
/// # Safety
/// As [`copy_lines`].
#[inline]
pub(super) unsafe fn copy_string(from: *const u8, to: *mut u8, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: by contract; the calling convention has the direction flag cleared, so that it copies upwards.
    unsafe {
        core::arch::asm!(
            "rep movsb",
            inout("rcx") bytes => _,
            inout("rsi") from => _,
            inout("rdi") to => _,
            options(nostack, preserves_flags)
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: by contract.
    unsafe {
        std::ptr::copy_nonoverlapping(from, to, bytes);
    }
}

/// Copies past the caches where the machine can. A line that its reader still holds is then not fetched back to
/// be overwritten, nor fetched out of the writer's cache afterwards. The caller fences.
///
/// # Safety
/// As [`copy_lines`].
pub(super) unsafe fn stream(from: *const u8, to: *mut u8, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        let head = to.align_offset(LINE).min(bytes);
        let lines = (bytes - head) / LINE;
        let tail = head + lines * LINE;
        // SAFETY: `head <= bytes`.
        unsafe { std::ptr::copy_nonoverlapping(from, to, head) };
        let (from_lines, to_lines) = (from.wrapping_add(head), to.wrapping_add(head));
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the feature was just detected; so many whole lines are there, and `to_lines` is aligned to them.
            unsafe { stream_avx512(from_lines, to_lines, lines) };
        } else if is_x86_feature_detected!("avx2") {
            // SAFETY: the same.
            unsafe { stream_avx2(from_lines, to_lines, lines) };
        } else {
            // SAFETY: the same, and every machine can.
            unsafe { stream_sse2(from_lines, to_lines, lines) };
        }
        // SAFETY: `tail <= bytes`.
        unsafe { std::ptr::copy_nonoverlapping(from.wrapping_add(tail), to.wrapping_add(tail), bytes - tail) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: by contract.
    unsafe {
        std::ptr::copy_nonoverlapping(from, to, bytes);
    }
}

/// Streams whole lines, with registers of a line.
///
/// # Safety
/// As [`copy_lines`], of `lines` lines, on a machine with this feature; `to` is aligned to lines.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn stream_avx512(from: *const u8, to: *mut u8, lines: usize) {
    use core::arch::x86_64::{__m512i, _mm512_stream_si512};
    // SAFETY: the loop stores whole registers, aligned, as it says.
    let store = |to, value| unsafe { _mm512_stream_si512(to, value) };
    // SAFETY: by contract.
    unsafe { stream_by::<__m512i, 1>(from, to, lines, store) }
}

/// Streams whole lines, with registers of half a line.
///
/// # Safety
/// As [`stream_avx512`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn stream_avx2(from: *const u8, to: *mut u8, lines: usize) {
    use core::arch::x86_64::{__m256i, _mm256_stream_si256};
    // SAFETY: the loop stores whole registers, aligned, as it says.
    let store = |to, value| unsafe { _mm256_stream_si256(to, value) };
    // SAFETY: by contract.
    unsafe { stream_by::<__m256i, 2>(from, to, lines, store) }
}

/// Streams whole lines, with what every x86-64 has.
///
/// # Safety
/// As [`stream_avx512`], on any machine.
#[cfg(target_arch = "x86_64")]
unsafe fn stream_sse2(from: *const u8, to: *mut u8, lines: usize) {
    use core::arch::x86_64::{__m128i, _mm_stream_si128};
    // SAFETY: the loop stores whole registers, aligned, as it says.
    let store = |to, value| unsafe { _mm_stream_si128(to, value) };
    // SAFETY: by contract.
    unsafe { stream_by::<__m128i, 4>(from, to, lines, store) }
}

/// The loop, with registers `R`, `LINED` of which hold a line: its stores meet in one write-combining buffer.
///
/// A turn moves a whole line, so that it does not count where the compiler puts the loop. With 16 bytes a turn it
/// streamed 23 GB/s, and 12 where its few instructions lay across two lines of code (AMD EPYC, Zen 3, from a
/// last-level cache): gathers of 256 KiB between 8 ranks took up to half longer in one build than in another.
///
/// `store` is given places that hold a register, aligned to it.
///
/// # Safety
/// As [`copy_lines`], of `lines` lines; `to` is aligned to lines.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn stream_by<R: Copy, const LINED: usize>(
    from: *const u8,
    to: *mut u8,
    lines: usize,
    store: impl Fn(*mut R, R),
) {
    const { assert!(LINED * size_of::<R>() == LINE) };
    for at in (0..lines * LINE).step_by(LINE) {
        let (from, to) = (from.wrapping_add(at).cast::<R>(), to.wrapping_add(at).cast::<R>());
        // SAFETY: the line lies within the buffer; any alignment will do.
        let load = |i: usize| unsafe { from.wrapping_add(i).read_unaligned() };
        let store = |i: usize, value: R| store(to.wrapping_add(i), value);
        move_registers!(LINED, load, store);
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    /// A loop that copies.
    type Copy = unsafe fn(*const u8, *mut u8, usize);

    /// All loops that this machine can run, whatever they ask for.
    fn loops() -> Vec<(&'static str, Copy)> {
        let mut loops = vec![("registers of 16 bytes", copy_sse2 as Copy), ("the string instruction", copy_string)];
        if is_x86_feature_detected!("avx2") {
            loops.push(("registers of 32 bytes", copy_avx2::<NOTHING>));
            loops.push(("the same, abreast", copy_avx2::<ABREAST>));
        }
        if is_x86_feature_detected!("avx512f") {
            loops.extend([
                ("registers of 64 bytes", copy_avx512::<NOTHING> as Copy),
                ("the same, asking for what is stored to", copy_avx512::<STORED>),
                ("the same, asking for what is loaded", copy_avx512::<LOADED>),
                ("the same, asking for it to be stored to", copy_avx512::<KEPT>),
                ("the same, further ahead", copy_avx512::<SETTLED>),
                ("the same, a little ahead", copy_avx512::<CLOSE>),
                ("the same, abreast", copy_avx512::<ABREAST>),
            ]);
        }
        loops
    }

    /// With registers of every width, at lengths around those of a line, of a group, and from which lines are asked for
    /// ahead.
    #[test]
    fn every_loop_copies_all_and_nothing_beside_it() {
        let from: Vec<u8> = (0..9000).map(|i| (i * 7 % 251) as u8).collect();
        let short = (64..=1345).step_by(3);
        let long = [4095, 4096, 4351, 4352, 4353, 4415, 5990, 6143, 6144, 6399, 6400, 6401, 6463, 8900];
        for bytes in short.chain(long) {
            for (name, copy) in loops() {
                let (skip, begin) = (bytes % 61, bytes % 67);
                let mut to = vec![255; 9000];
                // SAFETY: `skip + bytes` and `begin + bytes` are below 9000, and `bytes` is a line at least; the
                // machine can.
                unsafe { copy(from[skip..].as_ptr(), to[begin..].as_mut_ptr(), bytes) };
                assert_eq!(to[begin..begin + bytes], from[skip..skip + bytes], "{name}, {bytes}");
                assert!(to[..begin].iter().chain(&to[begin + bytes..]).all(|&byte| byte == 255), "{name}, {bytes}");
            }
        }
    }

    #[repr(align(64))]
    struct Lines([u8; 1024]);

    /// With registers of every width.
    #[test]
    fn lines_are_streamed_and_nothing_beside_them() {
        let mut loops = vec![("registers of 16 bytes", stream_sse2 as Copy)];
        if is_x86_feature_detected!("avx2") {
            loops.push(("registers of 32 bytes", stream_avx2));
        }
        if is_x86_feature_detected!("avx512f") {
            loops.push(("registers of 64 bytes", stream_avx512));
        }
        let from: Vec<u8> = (0..1024).map(|i| (i * 7 % 251) as u8).collect();
        for (name, stream) in loops {
            for lines in 0..=15 {
                let (mut to, bytes) = (Lines([255; 1024]), lines * LINE);
                // SAFETY: fifteen lines and a byte are there; the machine can.
                unsafe { stream(from[1..].as_ptr(), to.0.as_mut_ptr(), lines) };
                // SAFETY: every x86-64 has this fence.
                unsafe { core::arch::x86_64::_mm_sfence() };
                assert_eq!(to.0[..bytes], from[1..1 + bytes], "{name}, {lines}");
                assert!(to.0[bytes..].iter().all(|&byte| byte == 255), "{name}, {lines}");
            }
        }
    }
}
