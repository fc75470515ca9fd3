//! Where everything lies: pure functions from sizes to offsets.

/// The most ranks that one segment serves.
pub const MOST_RANKS: usize = 256;

/// Bytes between words of different writers: a pair of cache lines, which some machines fetch together.
pub const APART: usize = 128;

/// Bytes of a cache line.
pub const LINE: usize = 64;

/// Bytes of the segment's header, rounded up to pages.
pub const HEADER: usize = round_up(size_of::<super::header::Header>(), 4096);

/// Line slots a rank owns in a communicator, where each rank has a core of its own.
pub const LINE_SLOTS: usize = 16;

/// The same where ranks take turns on a core: a root or a leaf that runs ahead fills as many while it has its turn, so
/// that each turn of the others serves as many calls.
pub const CROWDED_LINE_SLOTS: usize = 64;

/// Ranks of a communicator from which on it has [`LINE_SLOTS`] in a crowd, too: the lines of all ranks lie side by
/// side.
pub const MOST_CROWDED: usize = 64;

/// Cache lines of a line slot: room for 1 KiB of payload behind the stamp, in whole pairs of lines.
pub const LINES_A_SLOT: usize = 18;

/// Payload bytes that share the first line of a slot with its stamp.
pub const FIRST_LINE: usize = LINE - 8;

/// Payload bytes of a line slot.
pub const SLOT_PAYLOAD: usize = LINES_A_SLOT * LINE - 8;

/// Bytes of a line slot.
pub const SLOT: usize = LINES_A_SLOT * LINE;

/// Calls that each rank remembers for the others to compare: more than it can run ahead by in all three rings together,
/// so that two ranks that wait for each other in different calls find one that both remember.
pub const CALLS: usize = 256;

/// Down slots a rank owns at most.
pub const MOST_DOWN_SLOTS: usize = 64;

/// How far behind the first `done` word, in its line, the figures begin that a rank leaves for writers.
pub const FIGURES: usize = 32;

/// The unit in which the arena is given out.
pub const CHUNK: usize = 64 * 1024;

/// The unit in which the heap is given out and reserved: a huge page of most machines.
pub const EXTENT: usize = 2 * 1024 * 1024;

/// Up slots a rank owns at most, in a communicator of `size` ranks.
#[must_use]
pub const fn most_up_slots(size: usize) -> usize {
    if 2 * size > 64 { 2 * size } else { 64 }
}

/// Line slots a rank owns, in a communicator of `size` ranks of a job with `crowd` ranks for each core.
#[must_use]
pub const fn line_slots(size: usize, crowd: u32) -> usize {
    if crowd > 1 && size < MOST_CROWDED { CROWDED_LINE_SLOTS } else { LINE_SLOTS }
}

/// The place in memory of a line slot: the Gray code of its number, in which no two steps in a row are as long as each
/// other.
///
/// A core that executes one load at addresses equally far apart fetches the next one ahead. Here that would be what the
/// slot's owner has made its own to fill it with the next message, and would have to get back. On an Intel Xeon with an
/// L2 of 2 MiB, broadcasts of 128, 256 and 512 bytes, each begun together, took 197, 255 and 289 ns with slots one
/// after another, and 121, 138 and 158 so; those of 8 bytes 105 and 102.
#[inline(always)]
#[must_use]
pub const fn line_place(slot: usize) -> usize {
    slot ^ slot >> 1
}

const _: () = assert!(
    LINE_SLOTS.is_power_of_two() && CROWDED_LINE_SLOTS.is_power_of_two(),
    "a Gray code is of all numbers below a power of two"
);

/// Ranks of a job for each core, rounded up: one at least.
#[must_use]
pub fn crowd_of(ranks: usize, cores: usize) -> u32 {
    ranks.div_ceil(cores.max(1)).clamp(1, u32::MAX as usize) as u32
}

/// `value` rounded up to a multiple of `unit`.
#[must_use]
pub const fn round_up(value: usize, unit: usize) -> usize {
    value.div_ceil(unit) * unit
}

/// The parts of a job's segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobLayout {
    /// Ranks of the job.
    pub ranks: usize,
    /// Where the bells begin.
    pub bells: usize,
    /// Where the note begins.
    pub note: usize,
    /// Where the map of the arena begins, one byte a chunk.
    pub map: usize,
    /// Where the map of the heap begins, one byte an extent.
    pub heap_map: usize,
    /// Where the arena begins: a multiple of an extent.
    pub arena: usize,
    /// Chunks in the arena.
    pub chunks: usize,
    /// Where the heap begins: a multiple of an extent.
    pub heap: usize,
    /// Extents in the heap.
    pub extents: usize,
}

impl JobLayout {
    /// The layout for `ranks` ranks, a note of `note` bytes, an arena of at least `arena` bytes, and a heap of at least
    /// `heap` bytes.
    #[must_use]
    pub fn new(ranks: usize, note: usize, arena: usize, heap: usize) -> Self {
        let (chunks, extents) = (arena.div_ceil(CHUNK), heap.div_ceil(EXTENT));
        let bells = HEADER;
        let note_at = bells + ranks * APART;
        let map = round_up(note_at + note, APART);
        let heap_map = round_up(map + chunks, APART);
        let arena = round_up(heap_map + extents, EXTENT);
        let heap = round_up(arena + chunks * CHUNK, EXTENT);
        Self { ranks, bells, note: note_at, map, heap_map, arena, chunks, heap, extents }
    }

    /// Bytes before the arena, in whole pages, but for those that are there to fill an extent.
    #[must_use]
    pub fn before_arena(&self) -> usize {
        round_up(self.heap_map + self.extents, 4096)
    }

    /// Bytes of the segment.
    #[must_use]
    pub fn total(&self) -> usize {
        self.heap + self.extents * EXTENT
    }
}

/// The parts of a communicator's block in the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockLayout {
    /// Ranks of the communicator.
    pub size: usize,
    /// Line slots.
    pub line_slots: usize,
    /// Up slots that have a stamp.
    pub up_slots: usize,
    /// Bytes of up cells a rank.
    pub up_bytes: usize,
    /// Bytes of down cells a rank.
    pub down_bytes: usize,
    /// Where the line slots begin: all ranks' slots of one position side by side, so that an exchange touches few
    /// pages. Ranks that take turns on a core find their translations gone at each turn.
    pub lines: usize,
    /// Where the ranks' areas begin.
    pub ranks: usize,
    /// Bytes of a rank's area.
    pub stride: usize,
    /// Where the ranks' cells begin, up and down cells of one behind those of another: apart from words, so that whole
    /// extents are one rank's cells and nothing else.
    pub cells: usize,
    /// Where among a rank's cells those of the down slots begin.
    pub down: usize,
    /// Bytes of a rank's cells.
    pub cells_stride: usize,
}

/// Offsets within a rank's area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AreaLayout {
    /// The `done` words, one a ring; [`FIGURES`] bytes on, in the same line, the figures that this rank leaves for
    /// writers, one a ring (in that of the lines, of whole calls), and behind them the call of which it wants one itself.
    pub done: usize,
    /// The core that this rank was on when it looked last, in a line of its own, since it seldom changes.
    pub core: usize,
    /// Whether this rank has dropped its handle, behind that word.
    pub dropped: usize,
    /// The calls that this rank made last.
    pub calls: usize,
    /// The stamps of the up slots, a line each.
    pub up_stamps: usize,
    /// The stamps of the down slots, a line each.
    pub down_stamps: usize,
    /// The short up cells of two ranks, one a slot.
    pub short: usize,
    /// Bytes in all.
    pub total: usize,
}

/// Bytes of a short up cell.
///
/// Two ranks have one for each of [`SHORT_CELLS`] slots, if they have so much memory for other up cells too, beside the
/// cell that the slot has by the cut in force, for reductions of as many bytes: messages that come one behind the other
/// in memory, and nearly fill their cells, are read in less time (why was not measured; prefetchers that go on from one
/// to the next would explain it). With 64 cells of 4.5 KiB, of 6, and of 32 reductions of 3 KiB took 0.19, 0.27 and
/// 0.25 us, of 4 KiB 0.24, 0.37 and 0.32 (AMD EPYC, Zen 5, near). A cut of such cells would do as well, but calls that
/// are cut in two ways wait for each other's readers when they take turns.
pub const SHORT_CELL: usize = 4608;

/// The up slots that have a short cell: as many as calls through cells have slots at most.
pub const SHORT_CELLS: usize = 64;

impl BlockLayout {
    /// The layout for a communicator of `size` ranks with so many line slots and so many bytes of cells a rank.
    #[must_use]
    pub fn new(size: usize, line_slots: usize, up_bytes: usize, down_bytes: usize) -> Self {
        let up_slots = most_up_slots(size);
        let (lines, down) = (4096, round_up(up_bytes, 4096));
        let ranks = round_up(lines + line_slots * size * SLOT, 4096);
        let cells_stride = round_up(down + down_bytes, 4096);
        let (stride, cells) = (0, 0);
        let mut layout =
            Self { size, line_slots, up_slots, up_bytes, down_bytes, lines, ranks, stride, cells, down, cells_stride };
        layout.stride = layout.area().total;
        layout.cells = round_up(ranks + size * layout.stride, if layout.fills_extents() { CHUNK } else { 4096 });
        layout
    }

    /// Whether each rank's cells are extents, if the first one's begin with one: then the system may back them by huge
    /// pages. A rank alone has nobody to fill cells for.
    #[must_use]
    pub fn fills_extents(&self) -> bool {
        self.size > 1 && self.cells_stride > 0 && self.cells_stride.is_multiple_of(EXTENT)
    }

    /// Whether up slots have short cells: of two ranks, where the other up cells take no less memory than these.
    #[inline]
    #[must_use]
    pub fn has_short_cells(&self) -> bool {
        self.size == 2 && self.up_bytes >= SHORT_CELLS * SHORT_CELL
    }

    /// Offsets within a rank's area.
    #[must_use]
    pub fn area(&self) -> AreaLayout {
        let done = 0;
        let core = done + LINE;
        let dropped = core + 8;
        let calls = done + APART;
        let up_stamps = calls + round_up(8 * CALLS, APART);
        let down_stamps = up_stamps + self.up_slots * LINE;
        let short = round_up(down_stamps + MOST_DOWN_SLOTS * LINE, 4096);
        let total = round_up(short + if self.has_short_cells() { SHORT_CELLS * SHORT_CELL } else { 0 }, 4096);
        AreaLayout { done, core, dropped, calls, up_stamps, down_stamps, short, total }
    }

    /// What every communicator uses, as ranges of offsets in whole pages: all but cells.
    pub fn used_at_once(&self) -> impl Iterator<Item = (usize, usize)> {
        let (ranks, stride, area) = (self.ranks, self.stride, self.area().short);
        std::iter::once((0, ranks))
            .chain((0..self.size).map(move |rank| (ranks + rank * stride, ranks + rank * stride + area)))
    }

    /// Where the words lie, as ranges of offsets: all but payload.
    pub fn words(&self) -> impl Iterator<Item = (usize, usize)> {
        let (ranks, stride, area) = (self.ranks, self.stride, self.area().short);
        let stamps =
            (0..self.line_slots * self.size).map(|slot| (self.lines + slot * SLOT, self.lines + slot * SLOT + 8));
        std::iter::once((0, self.lines)).chain(stamps).chain((0..self.size).map(move |rank| {
            let at = ranks + rank * stride;
            (at, at + area)
        }))
    }

    /// Where a rank's line slot lies.
    #[inline]
    #[must_use]
    pub fn line(&self, rank: usize, slot: usize) -> usize {
        self.lines + rank * SLOT + line_place(slot) * self.lines_apart()
    }

    /// How far one of a rank's line slots lies behind the one before it in memory.
    #[inline]
    #[must_use]
    pub fn lines_apart(&self) -> usize {
        self.size * SLOT
    }

    /// Bytes of the block.
    #[must_use]
    pub fn total(&self) -> usize {
        self.cells + self.size * self.cells_stride
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn line_slots_have_places_of_their_own_in_uneven_steps() {
        for slots in [LINE_SLOTS, CROWDED_LINE_SLOTS] {
            let places: Vec<usize> = (0..slots).map(line_place).collect();
            let mut sorted = places.clone();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..slots));
            // Around the end, too.
            let step = |slot: usize| places[(slot + 1) % slots] as isize - places[slot % slots] as isize;
            assert!((0..slots).all(|slot| step(slot) != step(slot + 1)), "{places:?}");
        }
    }

    proptest! {
        #[test]
        fn parts_of_a_block_do_not_overlap(size in 1..=MOST_RANKS, crowd in 1u32..4, up in 0usize..1 << 20, down in 0usize..1 << 20) {
            let block = BlockLayout::new(size, line_slots(size, crowd), up, down);
            let area = block.area();
            prop_assert!(size_of::<crate::board::BlockHeader>() <= block.ranks);
            prop_assert!(area.done + LINE <= area.core && area.core + LINE <= area.calls);
            prop_assert!(area.calls + 8 * CALLS <= area.up_stamps);
            prop_assert!((0..block.line_slots).all(|slot| block.line(size - 1, slot) + SLOT <= block.ranks));
            prop_assert!(size_of::<crate::board::BlockHeader>() <= block.lines);
            prop_assert!(area.up_stamps + block.up_slots * LINE <= area.down_stamps);
            prop_assert!(area.down_stamps + MOST_DOWN_SLOTS * LINE <= area.short);
            let short = if block.has_short_cells() { SHORT_CELLS * SHORT_CELL } else { 0 };
            prop_assert!(area.short + short <= area.total && area.total == block.stride);
            prop_assert!(block.ranks + size * block.stride <= block.cells);
            prop_assert_eq!(block.cells % if block.fills_extents() { CHUNK } else { 4096 }, 0);
            prop_assert!(up <= block.down && block.down + down <= block.cells_stride);
            // Words and payload are all there is.
            let words: usize = block.words().map(|(from, to)| to - from).sum();
            let slots = block.line_slots * size;
            let unused = block.ranks - block.lines - slots * SLOT;
            prop_assert!(unused < 4096);
            let below_cells = block.cells - block.ranks - size * area.short;
            let payload = slots * (SLOT - 8) + size * block.cells_stride;
            prop_assert_eq!(words + payload + unused + below_cells, block.total());
            prop_assert!(block.words().any(|range| range == (block.line(size - 1, 1), block.line(size - 1, 1) + 8)));
            for offset in [block.lines, area.up_stamps, area.down_stamps, area.short, block.stride, block.ranks,
                           block.cells, block.down, block.cells_stride] {
                prop_assert_eq!(offset % LINE, 0);
            }
            prop_assert!(block.up_slots >= crate::protocol::shares::least_up_slots(size));
        }

        #[test]
        fn parts_of_a_job_do_not_overlap(ranks in 1..=MOST_RANKS, note in 0usize..100_000, arena in 0usize..1 << 30,
                                        heap in 0usize..1 << 40) {
            let job = JobLayout::new(ranks, note, arena, heap);
            prop_assert!(size_of::<super::super::header::Header>() <= job.bells && job.bells.is_multiple_of(APART));
            prop_assert!(job.bells + ranks * APART <= job.note);
            prop_assert!(job.note + note <= job.map);
            prop_assert!(job.map + job.chunks <= job.heap_map);
            prop_assert!(job.heap_map + job.extents <= job.arena);
            prop_assert!(job.arena + job.chunks * CHUNK <= job.heap);
            prop_assert!(job.heap + job.extents * EXTENT <= job.total());
            prop_assert!(job.extents * EXTENT >= heap);
            prop_assert_eq!(job.heap % EXTENT, 0);
            prop_assert!(job.chunks * CHUNK >= arena);
            prop_assert_eq!(job.arena % EXTENT, 0);
        }
    }
}
