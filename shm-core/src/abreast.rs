//! The order in which a core loads much that another one has stored: four runs abreast.
//!
//! What bounds such loads is how many lines are on their way at once, and what keeps most of them on their way is the
//! core itself, which sees what is wanted next. Intel's cores do so page by page, up to 20 lines ahead, for 32 pages at
//! once (Intel 64 and IA-32 Architectures Optimization Reference Manual, "Data Prefetching", the streamer): at the
//! first line of each page they begin anew. In the order of addresses one page has lines on their way; in that of four
//! places in turn four have.
//!
//! Measured on a Xeon (L2 2 MiB), two bare threads: 1 MiB through cells of 32 KiB took 58 us so, and 69 in the order of
//! addresses; runs that do not begin with pages, as those of slices whose quarter is no whole number of them, gained
//! nothing. On an AMD EPYC (Zen 3) the library's reductions of 256 KiB and 1 MiB took 13 and 7 percent longer so.

use std::sync::OnceLock;

/// Bytes from which runs are worth their while: each of the four is a page then.
const LEAST: usize = 16 * 1024;

/// Runs that go abreast.
const RUNS: usize = 4;

/// Whether so many bytes that another core has stored are better loaded by [`walk`].
#[inline]
pub(crate) fn serves(bytes: usize) -> bool {
    bytes >= LEAST && looks_by_pages()
}

/// Whether this machine's cores look ahead page by page.
fn looks_by_pages() -> bool {
    static INTEL: OnceLock<bool> = OnceLock::new();
    // Unit tests walk on every machine.
    *INTEL.get_or_init(|| cfg!(test) || is_intel())
}

#[cfg(target_arch = "x86_64")]
fn is_intel() -> bool {
    #[allow(unused_unsafe, reason = "safe in newer Rust")]
    // SAFETY: every x86-64 has this instruction.
    let vendor = unsafe { core::arch::x86_64::__cpuid(0) };
    [vendor.ebx, vendor.edx, vendor.ecx] == [*b"Genu", *b"ineI", *b"ntel"].map(u32::from_le_bytes)
}

#[cfg(not(target_arch = "x86_64"))]
fn is_intel() -> bool {
    false
}

/// Places in `0..len` that are `part` apart and have as much behind them, in turn of each of four runs, and where they
/// end. What is left are fewer than four parts and a rest.
#[inline(always)]
pub(crate) fn walk(len: usize, part: usize) -> (impl Iterator<Item = usize>, usize) {
    let run = len / (RUNS * part) * part;
    ((0..run / part * RUNS).map(move |turn| turn % RUNS * run + turn / RUNS * part), RUNS * run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_has_its_turn_once() {
        for (len, part) in [(0, 256), (1023, 256), (1024, 256), (LEAST + 5000, 256), (33_331, 17), (12, 1)] {
            let (places, end) = walk(len, part);
            let mut places: Vec<_> = places.collect();
            places.sort_unstable();
            assert!(places.iter().copied().eq((0..end).step_by(part)), "{len}, {part}");
            assert!(end <= len && len - end < RUNS * part, "{len}, {part}");
        }
    }

    #[test]
    fn runs_go_abreast() {
        let run = 1 << 18;
        assert!(walk(1 << 20, 256).0.take(6).eq([0, run, 2 * run, 3 * run, 256, run + 256]));
    }
}
