//! The board of a communicator in the segment: where each rank's words and cells lie, and how to wait for them.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::counters::{Tally, add};
use crate::counts::note;
use crate::error::{Error, Result};
use crate::protocol::{Board, Edge, Location, Moment, RingName, Stamp, Until, Word};
use crate::seat::{NAP, Seat, Watch};
use crate::segment::header::Standing;
use crate::segment::layout::{AreaLayout, BlockLayout, CALLS, LINE, LINES_A_SLOT};
use crate::segment::memory_file;
use approach::Approach;

mod approach;
mod cores;

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

/// The tag of a call whose arguments a rank refused.
const REFUSED: u32 = 0xff_ffff;

/// In the place of a call's note: the rank is out of a call that it has finished, or whose shared result it has found.
const FINISHED: u64 = 1;

/// Faults of a communicator: kind in the upper half, one plus the rank in the lower.
const FAULT_MISMATCH: u64 = 1 << 32;
const FAULT_REFUSED: u64 = 2 << 32;

/// What a rank does while it waits for others: returns how long it may sleep before it is due again, or nothing when it
/// cannot go on.
pub type IdleHook = Box<dyn FnMut() -> Option<Duration> + Send>;

/// Looks of a rank that has a core for itself that follow one which failed: a pause between two of them, and nothing else.
const FEW: u32 = 32;

/// Spins between two calls of the idle hook.
const HOOK_ROUND: u32 = 64;

/// Between two looks whether others have left a call that this rank leaves by an error.
const LEAVING: Duration = Duration::from_micros(50);

/// The least that it sleeps meanwhile, even if its hook would have it come back at once.
const SHORTEST: Duration = Duration::from_micros(5);

/// One rank's view of a communicator's block.
///
/// Invariants:
/// * B1: `base` points to `layout.total()` reserved bytes of the mapping that `seat` keeps alive; they are given back
///   only when every rank of the communicator has dropped its board.
/// * B2: the block was all zero but for its cells before its first use, and its header and members were written before any other member
///   learned of it.
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
    members: Vec<usize>,
    seat: Arc<Seat>,
    watch: Watch,
    /// The call that is running: its number, and what it was tagged with.
    call: Cell<(u64, u32)>,
    /// What goes into the tag of the next one of the calls before it.
    chain: Cell<u32>,
    /// Whether this rank lends memory of its caller's in the call that is running.
    lends: Cell<bool>,
    /// Whether this rank has found where the shared result of that call lies, and so counts among its users.
    sees_result: Cell<bool>,
    idle: RefCell<Option<IdleHook>>,
    /// Bytes of the own up and down cells that are reserved.
    backed: [Cell<usize>; 2],
    /// What this rank has said last of the core that it is on.
    core: Cell<u64>,
    /// When it looks for the other one's part of an exchange, where there is one other and each has a core.
    approach: Option<Approach>,
    /// What the last look for the other one's part saw.
    seen: Cell<u64>,
    pub tally: Tally,
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
        let approach = (layout.size == 2 && seat.patience.spins > 0).then(|| Approach::new(rank));
        Self {
            base,
            own,
            own_lines,
            slots_apart: layout.line_apart(1),
            layout,
            area,
            rank,
            members,
            watch,
            seat,
            call: Cell::new((0, 0)),
            chain: Cell::new(0),
            lends: Cell::new(false),
            sees_result: Cell::new(false),
            idle: RefCell::new(None),
            backed: Default::default(),
            core: Cell::new(0),
            approach,
            seen: Cell::new(0),
            tally: Tally::default(),
        }
    }

    /// Sets what is done while this rank waits.
    pub fn set_idle(&self, hook: Option<IdleHook>) {
        self.idle.replace(hook);
    }

    /// Calls the idle hook, if there is one, and returns how long this rank may sleep.
    fn idle(&self) -> Duration {
        // Borrowed already: the hook itself waits on this communicator. Then it is not called again.
        let Ok(mut hook) = self.idle.try_borrow_mut() else { return NAP };
        match hook.as_mut().map(|hook| hook()) {
            None => NAP,
            Some(Some(nap)) => nap.min(NAP),
            Some(None) => {
                self.give_up();
                Duration::ZERO
            }
        }
    }

    /// Line slots a rank owns.
    pub fn line_slots(&self) -> usize {
        self.layout.line_slots
    }

    pub fn members(&self) -> &[usize] {
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
        unsafe { self.base.add(self.layout.line(rank, 0) + slot * self.slots_apart + 8).cast_const() }
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
        unsafe { self.own_lines.add(slot * self.slots_apart) }
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
        self.place(rank, self.area.up + slot * cell)
    }

    /// A down cell.
    #[inline]
    pub fn down_cell(&self, rank: usize, slot: usize, cell: usize) -> *mut u8 {
        debug_assert!((slot + 1) * cell <= self.layout.down_bytes);
        self.place(rank, self.area.down + slot * cell)
    }

    /// Reserves memory for the first `bytes` bytes of the own up or down cells, before they are written, where the system counts it. Should
    /// there be none, this communicator cannot go on.
    ///
    /// # Errors
    /// `Memory`, `RankFailed`.
    #[inline]
    pub fn back(&self, ring: RingName, bytes: usize) -> Result<()> {
        let (backed, cells) = match ring {
            RingName::Up => (&self.backed[0], self.area.up),
            _ => (&self.backed[1], self.area.down),
        };
        if bytes <= backed.get() { Ok(()) } else { self.reserve(backed, cells, bytes) }
    }

    #[cold]
    fn reserve(&self, backed: &Cell<usize>, cells: usize, bytes: usize) -> Result<()> {
        if memory_file::is_counted() {
            let mapping = self.seat.mapping();
            let at = self.place(self.rank, cells) as usize - mapping.base() as usize;
            mapping.reserve_block(self.seat.rank(), at as u64, bytes).inspect_err(|_| self.give_up())?;
        }
        backed.set(bytes);
        Ok(())
    }

    /// Where the stamp of an up or a down slot lies in its rank's area.
    #[inline]
    fn stamp_offset(&self, ring: RingName, slot: usize) -> usize {
        debug_assert!(ring != RingName::Line, "a line's stamp lies with its payload");
        let stamps = if ring == RingName::Up { self.area.up_stamps } else { self.area.down_stamps };
        stamps + slot * LINE
    }

    /// The words of a location, in the line of its slot's stamp, behind it; and behind these the last position at which what the slot offered
    /// was claimed.
    #[inline]
    fn location_words(&self, ring: RingName, rank: usize, slot: usize) -> &[AtomicU64; 4] {
        let at = self.place(rank, self.stamp_offset(ring, slot) + size_of::<FlagWord>());
        // SAFETY: an up or down stamp has a line of its own (B1), whose next four words are used as atomic words only.
        unsafe { &*at.cast::<[AtomicU64; 4]>() }
    }

    /// Where a rank leaves figures for writers of a ring, in the line of its `done` words.
    fn figure_word(&self, ring: RingName, rank: usize) -> &AtomicU64 {
        &self.word(rank, self.area.done + 32 + ring as usize * 8).0
    }

    /// Leaves a figure for the writers of what was read. It orders nothing and promises nothing.
    pub fn leave_figure(&self, ring: RingName, figure: u64) {
        self.figure_word(ring, self.rank).store(figure, Ordering::Relaxed);
    }

    /// The figure that `rank` left last.
    pub fn figure(&self, ring: RingName, rank: usize) -> u64 {
        self.figure_word(ring, rank).load(Ordering::Relaxed)
    }

    fn call_word(&self, rank: usize, call: u64) -> &FlagWord {
        self.word(rank, self.call_offset(call))
    }

    /// Where a rank notes a call, in its area.
    #[inline]
    fn call_offset(&self, call: u64) -> usize {
        self.area.calls + (call as usize % CALLS) * 8
    }

    /// When this rank looks for the other one's part of an exchange of a message of `bytes` bytes, as many as both say: if there is one other, and each has a core.
    #[inline(always)]
    pub fn approach(&self, bytes: usize) -> Option<Moment> {
        self.approach.as_ref().map(|approach| approach.moment(bytes, self.seen.get()))
    }

    /// Looks a few times more, where this rank has a core for itself, before it settles down to wait.
    #[cold]
    #[inline(never)]
    fn look_again(&self, writer: usize, word: &FlagWord, until: Until, edge: Edge) -> Result<u64> {
        if let Some(approach) = &self.approach {
            approach.miss();
        }
        for _ in 0..self.seat.patience.spins.min(FEW) {
            std::hint::spin_loop();
            let value = word.observe(edge);
            self.seen.set(value);
            if until.holds(value) {
                add(&self.tally.waits, 1);
                return Ok(value);
            }
        }
        self.wait_slowly(writer, word, until, edge).inspect(|&value| self.seen.set(value))
    }

    /// Whether this communicator, and the job, can go on; if not, says that this rank is out of its last call, so that who leaves
    /// that by an error does not wait for it.
    #[inline]
    pub fn may_begin(&self) -> Result<()> {
        self.check().inspect_err(|_| {
            let (call, tag) = self.call.get();
            let word = self.call_word(self.rank, call);
            if word.0.load(Ordering::Relaxed) == Stamp::new(call, tag).0 {
                word.0.store(FINISHED, Ordering::Release);
            }
        })
    }

    /// Begins a call that all ranks must tag alike.
    ///
    /// # Errors
    /// When this communicator, or the job, cannot go on.
    #[inline]
    pub fn begin(&self, tag: u32) -> Result<()> {
        self.may_begin()?;
        self.note(tag);
        // E1, who may reach into buffers: noted before this look.
        self.watch.light_fence();
        self.check().inspect_err(|_| self.unnote())
    }

    /// Says that this rank takes no part, or no further part, in the call that it noted last.
    pub fn unnote(&self) {
        let (call, _) = self.call.get();
        let word = if self.sees_result.get() { FINISHED } else { 0 };
        self.call_word(self.rank, call).0.store(word, Ordering::Release);
    }

    /// Notes that this rank has found where the shared result of the call that is running lies.
    pub fn see_result(&self) {
        self.sees_result.set(true);
    }

    /// Whether it has.
    pub fn sees_result(&self) -> bool {
        self.sees_result.get()
    }

    /// The ranks that never found where the shared result of the last call lies, and will not any more. Of this rank alone when it has
    /// left that call by an error: then all others are out of it.
    pub fn never_saw_result(&self) -> usize {
        let (call, tag) = self.call.get();
        let others = (0..self.layout.size).filter(|&other| other != self.rank);
        let never = |&other: &usize| {
            let word = self.call_word(other, call).0.load(Ordering::Acquire);
            // A note of an earlier call, of another one in this one's place, or one that was taken back.
            let stamp = Stamp(word);
            word != FINISHED && stamp != Stamp::new(call, tag) && stamp.position() <= call
        };
        others.filter(never).count()
    }

    /// Leaves a call by an error, or by a panic: the others hear of it, and what this rank lent in it is its caller's again when
    /// this returns, since all who could reach it have finished the call (`done` at these positions of the up and the down
    /// ring), left it too, or are gone. Who has yet to begin it finds that this communicator cannot go on.
    #[cold]
    pub fn leave(&self, last_up: u64, last_down: u64) {
        if std::thread::panicking() {
            let _ = self.seat.condemn(self.seat.rank());
        } else if self.check().is_ok() {
            self.give_up();
        }
        self.unnote();
        if !self.lends.replace(false) {
            return;
        }
        // E1, who lent: what stands against the call is stored before the others' notes are looked at.
        self.seat.heavy_fence();
        let (call, _) = self.call.get();
        for other in (0..self.layout.size).filter(|&other| other != self.rank) {
            while self.is_within(other, call, last_up, last_down) {
                // Who is waited for may itself be waiting, in an operator, for what this rank's hook moves on.
                let nap = if std::thread::panicking() { LEAVING } else { self.idle().min(LEAVING) };
                std::thread::sleep(nap.max(SHORTEST));
            }
        }
    }

    /// Whether `other` is in the call of this number, and may reach into what was lent to it.
    fn is_within(&self, other: usize, call: u64, last_up: u64, last_down: u64) -> bool {
        let noted = self.call_word(other, call).0.load(Ordering::Acquire) == Stamp::new(call, self.call.get().1).0;
        let done = |ring, last| self.done(ring, other).observe(Edge::UpReuse) >= last;
        let member = self.members[other];
        noted
            && !(done(RingName::Up, last_up) && done(RingName::Down, last_down))
            && (self.seat.reach().is_here(member)
                || (self.seat.mapping().rank(member).standing() as u32) < Standing::Left as u32)
    }

    /// The call that is running has ended well: nothing is lent any more.
    #[inline]
    pub fn keep_own(&self) {
        self.lends.set(false);
    }

    pub fn seat(&self) -> &Seat {
        &self.seat
    }

    /// Whether this communicator, and the job, can go on.
    #[inline]
    pub fn check(&self) -> Result<()> {
        if self.watch.failed_rank().is_some() || self.header().fault.load(Ordering::Acquire) != 0 {
            return Err(self.fault().expect("one of the two was just seen"));
        }
        Ok(())
    }

    /// The tag of the next call, given what the call itself is: the calls before it go into it too, so that ranks which
    /// once differed, or of which one refused its arguments, notice at the next call that waits for all, even if the call
    /// in which they differed waited for nobody.
    #[inline]
    pub fn chained(&self, tag: u32) -> u32 {
        let chained = (tag ^ self.chain.get()) & 0xff_ffff;
        if chained == REFUSED { 0 } else { chained }
    }

    /// Notes a call and its tag, for others to compare with theirs: before this rank waits for anybody in it.
    #[inline]
    pub fn note(&self, tag: u32) {
        self.note_call(tag);
        add(&self.tally.calls, 1);
    }

    /// Tells the others that this rank takes no part in this call, because its arguments were wrong.
    pub fn refuse(&self) {
        self.note_call(REFUSED);
        self.watch.ring_if_needed();
    }

    #[inline]
    fn note_call(&self, tag: u32) {
        let call = self.call.get().0 + 1;
        self.call.set((call, tag));
        self.chain.set(tag.wrapping_mul(0x9e37_79b1) >> 8);
        self.sees_result.set(false);
        // C2, writer.
        self.own_word(self.call_offset(call)).0.store(Stamp::new(call, tag).0, Ordering::Release);
    }

    /// The error that stands for this communicator, if any.
    fn fault(&self) -> Option<Error> {
        if let Some(rank) = self.watch.failed_rank() {
            return Some(Error::RankFailed { rank });
        }
        // C1, reader.
        let fault = self.header().fault.load(Ordering::Acquire);
        let rank = (fault as u32).checked_sub(1)? as usize;
        Some(if fault & FAULT_REFUSED != 0 { Error::Refused { rank } } else { self.mismatch(rank) })
    }

    fn mismatch(&self, rank: usize) -> Error {
        let (call, tag) = self.call.get();
        Error::Mismatch { rank, own: self.rank, own_call: format!("call {call} of this communicator (tag {tag:#08x})") }
    }

    /// Says that `other` made another call: what it lends, or wants, has `theirs` bytes where this rank's message has `own`.
    #[cold]
    pub fn differs(&self, other: usize, theirs: u64, own: usize) -> Error {
        self.set_fault(FAULT_MISMATCH, other);
        match self.fault() {
            Some(Error::Mismatch { rank, own: noticed, own_call }) if rank == other => Error::Mismatch {
                rank,
                own: noticed,
                own_call: format!("{own_call} with {own} bytes, where the other's buffer has {theirs}"),
            },
            other => other.expect("it was just written"),
        }
    }

    /// Whether one of the last calls differed between this rank and another; and if so, the rank that refused its
    /// arguments to it, if one did.
    fn differing_call(&self, other: usize) -> Option<Option<usize>> {
        (0..CALLS as u64).find_map(|slot| {
            // C2, reader.
            let [own, theirs] =
                [self.rank, other].map(|rank| Stamp(self.call_word(rank, slot).0.load(Ordering::Acquire)));
            let differs = own != theirs && own.same_position(theirs);
            differs.then(|| {
                let refused = |stamp: Stamp| stamp.0 & u64::from(REFUSED) == u64::from(REFUSED);
                if refused(theirs) { Some(other) } else { refused(own).then_some(self.rank) }
            })
        })
    }

    /// C1, writer: says that this communicator cannot go on, and why; the first word stands.
    fn set_fault(&self, kind: u64, rank: usize) {
        let fault = &self.header().fault;
        let _ = fault.compare_exchange(0, kind | (rank as u64 + 1), Ordering::AcqRel, Ordering::Acquire);
        self.watch.ring_if_needed();
    }

    /// Says that this rank goes on no further.
    pub fn give_up(&self) {
        self.set_fault(FAULT_REFUSED, self.rank);
    }

    /// Looks for reasons why a wait for `writer` could have no end.
    fn inspect(&self, writer: usize, word: &FlagWord, until: Until, edge: Edge) -> Result<()> {
        // J2: what a rank that left published and said before is visible after this: looked at first, judged last.
        let job_rank = self.members[writer];
        let has_left = self.seat.mapping().rank(job_rank).standing() as u32 >= Standing::Left as u32;
        if let Some(fault) = self.fault() {
            return Err(fault);
        }
        let refused = self.differing_call(writer);
        if until.mismatches(word.observe(edge)) || refused.is_some() {
            let (kind, writer) = match refused {
                Some(Some(rank)) => (FAULT_REFUSED, rank),
                _ => (FAULT_MISMATCH, writer),
            };
            self.set_fault(kind, writer);
            return Err(self.fault().expect("it was just written"));
        }
        if has_left {
            let value = word.observe(edge);
            if !until.holds(value) && !until.mismatches(value) {
                return Err(self.seat.condemn(job_rank));
            }
        }
        Ok(())
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
            self.lends.set(true);
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
        /// Yields between two looks at the whole situation.
        const LOOK_ROUND: u32 = 32;
        /// Yields between two calls of the idle hook, which may itself give the core away: an MPI that is told to does.
        const IDLE_ROUND: u32 = 4;
        let look = || Some(word.observe(edge)).filter(|&value| until.holds(value));
        add(&self.tally.waits, 1);
        for turn in 0..self.seat.patience.spins {
            std::hint::spin_loop();
            if let Some(value) = look() {
                return Ok(value);
            }
            if turn % HOOK_ROUND == HOOK_ROUND - 1 {
                self.idle();
            }
        }
        for turn in 0..self.seat.patience.yields {
            if turn % LOOK_ROUND == LOOK_ROUND - 1 {
                self.inspect(writer, word, until, edge)?;
            }
            if turn % IDLE_ROUND == IDLE_ROUND - 1 {
                self.idle();
            }
            // Lines are short: what is spent here on waiting for another core is less than what a core takes to change hands.
            if matches!(edge, Edge::LinePublish | Edge::LineReuse) && !self.is_core_wanted(writer) {
                for _ in 0..self.seat.patience.alone {
                    std::hint::spin_loop();
                    if let Some(value) = look() {
                        return Ok(value);
                    }
                }
            }
            std::thread::yield_now();
            add(&self.tally.yields, 1);
            if let Some(value) = look() {
                return Ok(value);
            }
        }
        loop {
            self.inspect(writer, word, until, edge)?;
            let nap = self.idle();
            if self.seat.sleep_on(self.members[writer], nap, || look().is_some()) {
                add(&self.tally.sleeps, 1);
            }
            if let Some(value) = look() {
                return Ok(value);
            }
        }
    }
}
