//! Figures: which slices are timed, by which clock, and what it cost to read them.

use super::LEAST;
use crate::board::SharedBoard;
use crate::payload::Manner;
use crate::protocol::RingName;
use crate::segment::layout::LINE;

/// Whether the slice at a position is timed by its writer while ways are compared, and by its reader (of down slots, if
/// the writer waits for that): one in eight, the same for both, and without a period that slices of some leader, root
/// or message could keep in step with.
#[inline]
pub(crate) fn is_sample(position: u64) -> bool {
    mixed(position) >> 61 == 0
}

/// Whether it is one in four of these, which its writer times at all times: it waits until its stores are done, which
/// costs more than to look at the clock.
#[inline]
pub(super) fn is_rare_sample(position: u64) -> bool {
    mixed(position) >> 59 == 0
}

#[inline]
fn mixed(position: u64) -> u64 {
    position.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// A clock that is cheap to read; its unit is the same for all ranks.
#[inline]
pub(crate) fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: every x86-64 has a time-stamp counter.
        unsafe { core::arch::x86_64::_rdtsc() }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        use std::sync::OnceLock;
        use std::time::Instant;
        static BEGIN: OnceLock<Instant> = OnceLock::new();
        BEGIN.get_or_init(Instant::now).elapsed().as_nanos() as u64
    }
}

/// Ticks between two looks at the clock. One that another core reads otherwise may seem to go back: that is taken for
/// more than any call takes, and for little enough to be reckoned with.
#[inline]
pub(crate) fn span(begun: u64, now: u64) -> u64 {
    now.wrapping_sub(begun).min(MOST_TICKS)
}

/// The most that is ever said to have passed.
pub(crate) const MOST_TICKS: u64 = 1 << 40;

/// [`ticks`] when all is loaded that was to be loaded before: a processor looks at its clock as soon as it can, and a
/// slice of a few KiB would seem to cost nothing.
#[inline]
pub(super) fn ticks_behind_loads() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 has this fence.
    unsafe {
        core::arch::x86_64::_mm_lfence();
    }
    ticks()
}

/// Bits of a cost.
const COST_BITS: u32 = 24;

/// A figure and the position that it was taken at, in one word.
pub(crate) fn pack(position: u64, cost: u64) -> u64 {
    position << COST_BITS | cost
}

/// The cost in a figure, if that was taken at this position.
pub(crate) fn cost_at(figure: u64, position: u64) -> Option<u64> {
    (figure >> COST_BITS == position).then_some(figure & ((1 << COST_BITS) - 1))
}

/// Ticks for 4 KiB.
pub(super) fn cost(ticks: u64, bytes: usize) -> u64 {
    (ticks.min(MOST_TICKS) * 4096 / bytes as u64).clamp(1, (1 << COST_BITS) - 1)
}

/// Leaves a figure for who published at `position`: what `bytes` bytes have cost since `begun`.
pub(crate) fn leave_figure(board: &SharedBoard, ring: RingName, position: u64, bytes: usize, begun: u64) {
    board.leave_figure(ring, pack(position, cost(ticks_behind_loads().wrapping_sub(begun), bytes)));
}

/// Does `read`, which reads `bytes` bytes of an up slot, and leaves a figure for the slot's writer if its position is a
/// sample.
#[inline]
pub(crate) fn reading(board: &SharedBoard, position: u64, bytes: usize, read: impl FnOnce()) {
    reading_of(board, position, (bytes, 1), read);
}

/// [`reading`] of the slots of several ranks, the number of which stands beside the bytes of each: what is known is
/// what they cost together, and a writer weighs what its own slice costs. For slots that have one reader: where all
/// ranks read all slots, as in an exchange, what each leaves stands for all that read the writer's.
#[inline]
pub(crate) fn reading_of(board: &SharedBoard, position: u64, (bytes, slots): (usize, usize), read: impl FnOnce()) {
    if bytes < LEAST || !is_sample(position) {
        return read();
    }
    let begun = ticks_behind_loads();
    read();
    leave_figure(board, RingName::Up, position, bytes * slots, begun);
}

/// A slice that is copied out of a down slot.
pub(crate) struct Taken {
    /// Whose slot it is.
    pub writer: usize,
    pub slot: usize,
    pub position: u64,
    pub bytes: usize,
    /// The place in the reader's own buffer.
    pub to: *mut u8,
    pub manner: Manner,
}

/// Does `copy`, which copies a slice out of a down slot, and leaves a figure for the slot's writer if that waits for
/// one. To load what was copied is part of the figure, unless it goes past the caches in any case: a way may be quick
/// because it leaves the result in memory, and who has called looks at it, as a rule. The slot is free when that is
/// done: one slice in eight, while ways are compared.
///
/// # Safety
/// `copy` initialises the `bytes` bytes at `to`, and nobody but this rank stores there until the call ends.
#[inline]
pub(crate) unsafe fn taking_out(board: &SharedBoard, taken: Taken, copy: impl FnOnce()) {
    let Taken { writer, slot, position, bytes, to, manner } = taken;
    if bytes < LEAST || !is_sample(position) || !board.is_figure_wanted(writer, slot) {
        return copy();
    }
    let begun = ticks_behind_loads();
    copy();
    if manner != Manner::Streamed {
        // SAFETY: they are initialised now, by contract.
        unsafe { load(to, bytes) };
    }
    leave_figure(board, RingName::Down, position, bytes, begun);
}

/// Loads a byte of every line, as whoever has called for a result will.
///
/// # Safety
/// There are so many initialised bytes at `at`, and nobody stores there meanwhile.
pub(crate) unsafe fn load(at: *const u8, bytes: usize) {
    for line in (0..bytes).step_by(LINE) {
        // SAFETY: within these bytes, by contract.
        unsafe { at.wrapping_add(line).read_volatile() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_position_in_eight_is_a_sample_whatever_the_stride() {
        for stride in [1, 2, 3, 4, 8, 16, 64] {
            for offset in 0..stride {
                let samples = (0..1000u64).filter(|i| is_sample(offset + i * stride)).count();
                assert!((60..260).contains(&samples), "{samples} of 1000 at {offset} + i * {stride}");
            }
        }
    }

    #[test]
    fn rare_samples_are_samples() {
        let rare = (0..100_000).filter(|&position| is_rare_sample(position)).count();
        assert!((2800..3500).contains(&rare), "{rare}");
        assert!((0..100_000).all(|position| is_sample(position) || !is_rare_sample(position)));
    }

    #[test]
    fn a_clock_that_goes_back_has_a_bound() {
        assert_eq!([span(7, 7), span(7, 1007), span(u64::MAX, 4)], [0, 1000, 5]);
        assert_eq!([span(1, 0), span(u64::MAX, 1 << 50), span(0, u64::MAX)], [MOST_TICKS; 3]);
    }

    #[test]
    fn figures_keep_to_their_bits() {
        let position = (1 << 39) - 1;
        for figure in [cost(0, 1024), cost(1000, 4096), cost(u64::MAX, 1024)] {
            assert!(figure >= 1);
            assert_eq!(pack(position, figure) >> 24, position);
            assert_eq!(pack(position, figure) & ((1 << 24) - 1), figure);
        }
    }
}
