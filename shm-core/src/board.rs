//! The board of a communicator in the segment: where each rank's words and cells lie. What is said of calls there is in
//! `calls`, how a rank waits in `wait`, where it runs in `home`, what is no more than a hint in `hints`.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::ask;
use crate::counters::{Tally, add};
use crate::counts::note;
use crate::error::Result;
use crate::protocol::{Board, Edge, Location, Moment, RingName, Until, Word};
use crate::seat::{Seat, Watch};
use crate::segment::layout::{AreaLayout, BlockLayout, LINE, LINES_A_SLOT, SHORT_CELL, SHORT_CELLS, line_place};
use approach::Approach;
use backing::Backing;
use home::Home;

mod approach;
mod backing;
mod calls;
mod cores;
mod hints;
mod home;
mod wait;

pub(crate) use backing::UntilHuge;
pub use wait::IdleHook;

/// A flag word in the segment.
#[repr(transparent)]
pub(crate) struct FlagWord(AtomicU64);

impl Word for FlagWord {
    #[inline]
    fn publish(&self, value: u64, _: Edge) {
        self.0.store(value, Ordering::Release);
    }

    #[inline]
    fn observe(&self, _: Edge) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

/// The first bytes of a communicator's block.
#[repr(C)]
pub(crate) struct BlockHeader {
    /// Handles that are still there; the last one gives the block back.
    pub users: AtomicU64,
    /// C1: 0, or why this communicator cannot go on.
    pub fault: AtomicU64,
}

/// One rank's view of a communicator's block.
///
/// Invariants:
/// * B1: `base` points to `layout.total()` reserved bytes of the mapping that `seat` keeps alive; they are given back
///   only when every rank of the communicator has dropped its board.
/// * B2: the block was all zero but for its cells before its first use, and its header and members were written before
///   any other member learned of it.
pub(crate) struct SharedBoard {
    base: *mut u8,
    /// The own area, and the first own line slot: both within the block (B1).
    own: *mut u8,
    own_lines: *mut u8,
    /// How far a rank's line slots lie behind each other.
    slots_apart: usize,
    layout: BlockLayout,
    area: AreaLayout,
    rank: usize,
    /// Each member's rank in the job's world.
    members: Arc<[usize]>,
    seat: Arc<Seat>,
    watch: Watch,
    /// The call that is running: its number, and what it was tagged with.
    call: Cell<(u64, u32)>,
    /// Calls up to that number were not asked for by the program, which counts from the next one on.
    unasked: Cell<u64>,
    /// What goes into the tag of the next one of the calls before it.
    chain: Cell<u32>,
    /// The last call whose note takes the place of one that this rank has refused.
    refused_until: Cell<u64>,
    /// Whether this rank lends memory of its caller's in the call that is running, or did in the one that ended by an
    /// error.
    lends: Cell<bool>,
    /// Whether this rank has found where the shared result of that call lies, and so has a view of it, or will.
    sees_result: Cell<bool>,
    idle: RefCell<Option<IdleHook>>,
    /// What memory there is for the own cells.
    backing: Backing,
    /// What this rank has said last of the core that it is on.
    core: Cell<u64>,
    /// Whether this rank moves to the core that its neighbours are on, and what it knows of that.
    shares_cores: bool,
    home: Home,
    /// When it looks for the other one's part of an exchange, where there is one other and each has a core.
    approach: Option<Approach>,
    /// What the last look for the other one's part saw.
    seen: Cell<u64>,
    /// The count of waits when this rank was last asked whether it looks ahead.
    waits_before: Cell<u64>,
    pub tally: Rc<Tally>,
    /// Ranks that reach into one rank's private memory at a time, at most; 0 for any number.
    pub readers: u32,
}

impl SharedBoard {
    /// # Safety
    /// The block at `offset` of the seat's mapping has this layout, and B1 and B2 hold of it.
    pub unsafe fn new(seat: Arc<Seat>, offset: u64, layout: BlockLayout, rank: usize, members: Vec<usize>) -> Self {
        // SAFETY: by contract the offset lies within the mapping.
        let base = unsafe { seat.mapping().base().add(offset as usize) };
        let area = layout.area();
        // SAFETY: the board keeps the seat.
        let watch = unsafe { seat.watch() };
        // SAFETY: B1: the layout keeps all areas, and all line slots, within the block.
        let own = unsafe { base.add(layout.ranks + rank * layout.stride) };
        // SAFETY: the same.
        let own_lines = unsafe { base.add(layout.line(rank, 0)) };
        let header = seat.mapping().header();
        let shares_cores = header.places == 1 && header.crowd() > 1 && layout.size == header.ranks as usize;
        let approach = (layout.size == 2 && seat.patience.spins > 0).then(|| Approach::new(rank));
        Self {
            base,
            own,
            own_lines,
            slots_apart: layout.lines_apart(),
            layout,
            area,
            rank,
            members: members.into(),
            watch,
            seat,
            call: Cell::new((0, 0)),
            unasked: Cell::new(0),
            chain: Cell::new(0),
            refused_until: Cell::new(0),
            lends: Cell::new(false),
            sees_result: Cell::new(false),
            idle: RefCell::new(None),
            backing: Backing::default(),
            core: Cell::new(0),
            shares_cores,
            home: Home::default(),
            approach,
            seen: Cell::new(0),
            waits_before: Cell::new(0),
            tally: Rc::default(),
            readers: 0,
        }
    }

    /// Line slots a rank owns.
    pub fn line_slots(&self) -> usize {
        self.layout.line_slots
    }

    pub fn members(&self) -> &Arc<[usize]> {
        &self.members
    }

    pub fn header(&self) -> &BlockHeader {
        // SAFETY: B1, B2; the block begins at a chunk's boundary.
        unsafe { &*self.base.cast::<BlockHeader>() }
    }

    /// A place in a rank's area.
    #[inline]
    fn place(&self, rank: usize, offset: usize) -> *mut u8 {
        debug_assert!(rank < self.layout.size && offset < self.layout.stride);
        // SAFETY: B1: the layout keeps all areas within the block.
        unsafe { self.base.add(self.layout.ranks + rank * self.layout.stride + offset) }
    }

    /// A place in a rank's up and down cells.
    #[inline]
    fn cells(&self, rank: usize, offset: usize) -> *mut u8 {
        debug_assert!(rank < self.layout.size && offset < self.layout.cells_stride);
        // SAFETY: B1: the layout keeps all cells within the block.
        unsafe { self.base.add(self.layout.cells + rank * self.layout.cells_stride + offset) }
    }

    /// A word in a rank's area, at an offset that the layout gives to words.
    #[inline]
    fn word(&self, rank: usize, offset: usize) -> &FlagWord {
        // SAFETY: `place` is mapped (B1) and, by the layout, eight-byte aligned and used as an atomic word only.
        unsafe { &*self.place(rank, offset).cast::<FlagWord>() }
    }

    /// A word in the own area.
    #[inline]
    fn own_word(&self, offset: usize) -> &FlagWord {
        debug_assert!(offset < self.layout.stride);
        // SAFETY: B1: the layout keeps the area within the block.
        let at = unsafe { self.own.add(offset) };
        // SAFETY: as in `word`.
        unsafe { &*at.cast::<FlagWord>() }
    }

    /// The payload of a line slot as bytes, for who holds it: contiguous behind the stamp, aligned to eight.
    #[inline]
    pub fn line_payload(&self, rank: usize, slot: usize) -> *const u8 {
        debug_assert!(rank < self.layout.size && slot < self.layout.line_slots);
        // SAFETY: B1: the layout keeps all line slots within the block.
        unsafe { self.base.add(self.layout.line(rank, 0) + line_place(slot) * self.slots_apart + 8).cast_const() }
    }

    /// The payload words of a line slot.
    #[inline]
    pub fn line(&self, rank: usize, slot: usize) -> &[AtomicU64] {
        let at = self.line_payload(rank, slot);
        // SAFETY: the slot is `LINES_A_SLOT` lines long, its first word is the stamp, all others are atomic words (B1).
        unsafe { std::slice::from_raw_parts(at.cast::<AtomicU64>(), LINES_A_SLOT * LINE / 8 - 1) }
    }

    /// Where an own line slot begins.
    #[inline]
    fn own_slot(&self, slot: usize) -> *mut u8 {
        debug_assert!(slot < self.layout.line_slots);
        // SAFETY: B1: the layout keeps all line slots within the block.
        unsafe { self.own_lines.add(line_place(slot) * self.slots_apart) }
    }

    /// [`line`](SharedBoard::line) of an own slot.
    #[inline]
    pub fn own_line(&self, slot: usize) -> &[AtomicU64] {
        let at = self.own_slot(slot).wrapping_add(8);
        // SAFETY: as in `line`.
        unsafe { std::slice::from_raw_parts(at.cast::<AtomicU64>(), LINES_A_SLOT * LINE / 8 - 1) }
    }

    /// An up cell.
    #[inline]
    pub fn up_cell(&self, rank: usize, slot: usize, cell: usize) -> *mut u8 {
        debug_assert!((slot + 1) * cell <= self.layout.up_bytes);
        self.cells(rank, slot * cell)
    }

    /// A down cell.
    #[inline]
    pub fn down_cell(&self, rank: usize, slot: usize, cell: usize) -> *mut u8 {
        debug_assert!((slot + 1) * cell <= self.layout.down_bytes);
        self.cells(rank, self.layout.down + slot * cell)
    }

    /// Whether a contribution of `bytes` bytes goes through the short cell of its up slot.
    #[inline]
    pub fn goes_short(&self, bytes: usize) -> bool {
        bytes <= SHORT_CELL && self.layout.has_short_cells()
    }

    /// The short up cell of a slot.
    #[inline]
    pub fn short_cell(&self, rank: usize, slot: usize) -> *mut u8 {
        debug_assert!(self.layout.has_short_cells() && slot < SHORT_CELLS);
        self.place(rank, self.area.short + slot * SHORT_CELL)
    }

    /// Where the stamp of an up or a down slot lies in its rank's area.
    #[inline]
    fn stamp_offset(&self, ring: RingName, slot: usize) -> usize {
        debug_assert!(ring != RingName::Line, "a line's stamp lies with its payload");
        let stamps = if ring == RingName::Up { self.area.up_stamps } else { self.area.down_stamps };
        stamps + slot * LINE
    }

    /// The words of a location, in the line of its slot's stamp, behind it; behind these the last position at which
    /// what the slot offered was claimed, and how its cell was filled and whether its writer waits for a figure.
    #[inline]
    fn location_words(&self, ring: RingName, rank: usize, slot: usize) -> &[AtomicU64; 5] {
        let at = self.place(rank, self.stamp_offset(ring, slot) + size_of::<FlagWord>());
        // SAFETY: an up or down stamp has a line of its own (B1), whose next five words are used as atomic words only.
        unsafe { &*at.cast::<[AtomicU64; 5]>() }
    }

    /// When this rank looks for the other one's part of an exchange of a message of `bytes` bytes, as many as both say:
    /// if there is one other, and each has a core.
    #[inline(always)]
    pub fn approach(&self, bytes: usize) -> Option<Moment> {
        self.approach.as_ref().map(|approach| approach.moment(bytes, self.seen.get()))
    }

    pub fn seat(&self) -> &Seat {
        &self.seat
    }
}

impl Board for SharedBoard {
    type Word = FlagWord;

    #[inline]
    fn rank(&self) -> usize {
        self.rank
    }

    #[inline]
    fn size(&self) -> usize {
        self.layout.size
    }

    #[inline]
    fn stamp(&self, ring: RingName, rank: usize, slot: usize) -> &FlagWord {
        let offset = match ring {
            RingName::Line => {
                // The stamp is the word before the payload.
                let at = self.line_payload(rank, slot).wrapping_sub(8);
                // SAFETY: the slot begins there (B1), aligned to a line; its first word is used as an atomic word only.
                return unsafe { &*at.cast::<FlagWord>() };
            }
            cells => self.stamp_offset(cells, slot),
        };
        self.word(rank, offset)
    }

    #[inline]
    fn done(&self, ring: RingName, rank: usize) -> &FlagWord {
        self.word(rank, self.area.done + ring as usize * 8)
    }

    #[inline]
    fn own_stamp(&self, ring: RingName, slot: usize) -> &FlagWord {
        let offset = match ring {
            RingName::Line => {
                // SAFETY: as in `stamp`.
                return unsafe { &*self.own_slot(slot).cast::<FlagWord>() };
            }
            cells => self.stamp_offset(cells, slot),
        };
        self.own_word(offset)
    }

    #[inline]
    fn own_done(&self, ring: RingName) -> &FlagWord {
        self.own_word(self.area.done + ring as usize * 8)
    }

    #[inline]
    fn locate(&self, ring: RingName, slot: usize, location: Location) {
        let words = self.location_words(ring, self.rank, slot);
        let [place, result, bytes] = location.words();
        words[0].store(place, Ordering::Relaxed);
        if place != 0 {
            words[1].store(result, Ordering::Relaxed);
            words[2].store(bytes, Ordering::Relaxed);
            if location.names_memory() {
                self.lends.set(true);
            }
        }
    }

    #[inline]
    fn location(&self, ring: RingName, rank: usize, slot: usize) -> Location {
        let words = self.location_words(ring, rank, slot);
        match words[0].load(Ordering::Relaxed) {
            0 => Location::CELL,
            place => Location::of_words([place, words[1].load(Ordering::Relaxed), words[2].load(Ordering::Relaxed)]),
        }
    }

    #[inline]
    fn claims(&self, ring: RingName, rank: usize, slot: usize, position: u64) -> bool {
        // Positions grow, and a slot's positions differ.
        self.location_words(ring, rank, slot)[3].fetch_max(position, Ordering::Relaxed) < position
    }

    #[inline]
    fn publish(&self, word: &FlagWord, value: u64, edge: Edge) {
        word.publish(value, edge);
        note::published(word, edge);
        if self.watch.ring_if_needed() {
            add(&self.tally.wakes, 1);
        }
    }

    /// If nobody was waited for since the last time: then what this rank waits for next is there already, as a rule,
    /// and its line is not taken from who has yet to store to it.
    #[inline]
    fn looks_ahead(&self) -> bool {
        let waits = self.tally.waits.get();
        self.waits_before.replace(waits) == waits
    }

    #[inline]
    fn look_ahead(&self, word: &FlagWord) {
        ask::to_read_soon(std::ptr::from_ref(word).cast());
    }

    #[inline]
    fn note_wait(&self, word: &FlagWord, edge: Edge) {
        note::awaited(word, edge);
    }

    #[inline(always)]
    fn wait_from(&self, moment: Moment, writer: usize, word: &FlagWord, until: Until, edge: Edge) -> Result<u64> {
        self.note_wait(word, edge);
        // SAFETY: zero bytes further.
        let same = unsafe { std::ptr::from_ref(word).byte_add(moment.zero()) };
        // SAFETY: it is the same word.
        let value = unsafe { &*same }.observe(edge);
        self.seen.set(value);
        if until.holds(value) { Ok(value) } else { self.look_again(writer, word, until, edge) }
    }

    #[cold]
    #[inline(never)]
    fn wait_slowly(&self, writer: usize, word: &FlagWord, until: Until, edge: Edge) -> Result<u64> {
        self.settle_down(writer, word, until, edge)
    }
}
