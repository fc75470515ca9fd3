//! The communicator: a group of ranks, and the handle of one of them.

use std::cell::{Cell, RefCell, RefMut};
use std::hash::Hash;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::board::{IdleHook, SharedBoard};
use crate::counters::{Counters, Tally};
use crate::error::{Error, Result};
use crate::plan::{Plan, Step};
use crate::reach::Reaching;
use crate::regime::{Engine, Thresholds};
use crate::seat::Seat;
use crate::segment::layout::BlockLayout;
use crate::segment::mapping::Mapping;
use crate::select::{Choice, Collective, Selection, Singles, Tuning, Vector};

mod choice;
mod explain;

use choice::singles;
use explain::Traced;

/// A rank's handle on a group of ranks that call collectives together.
///
/// Every rank of the group must make the same collective calls in the same order. A handle may move between threads,
/// but not be used by two at once.
pub struct Communicator {
    engine: RefCell<Engine>,
    /// What the engine has too, for who asks inside of a call.
    tally: Rc<Tally>,
    members: Arc<[usize]>,
    seat: Arc<Seat>,
    /// Where the block lies, and its layout.
    offset: u64,
    layout: BlockLayout,
    rank: usize,
    size: usize,
    /// What of the job's table counts here.
    pub(crate) selection: Selection,
    /// Bytes from which private buffers are moved into the heap, and after how many calls.
    pub(crate) convert: (u64, u32),
    /// Bytes below which a call surely takes one slot of lines, flat, by collective.
    slot_below: [usize; 4],
    /// The calls that surely go through one cell, by collective.
    singles: [Singles; 4],
    /// What `selection` chose last, by collective, and for what: programs make the same call again and again.
    chosen: [Cell<Option<(Vector, Choice)>>; 4],
    /// The size classes that were traced, by collective and by where the payload lies.
    traced: Traced,
}

// SAFETY: the raw pointers within are to the mapping, which lives as long as the seat and may be used from any thread,
// and to a call's operands, which are not used between calls. Cells are not shared: the type is not Sync, and the tally
// has no owners but this handle and its engine.
unsafe impl Send for Communicator {}

impl Communicator {
    /// The world of a seat.
    pub(crate) fn world_of(seat: Seat, plan: Arc<dyn Plan>) -> Result<Self> {
        let (rank, size) = (seat.rank(), seat.mapping().layout.ranks);
        let offset = seat.mapping().header().shared.world.load(Ordering::Acquire);
        seat.mapping().check_block(offset, seat.mapping().header().select(size).block_layout().total())?;
        let seat = Arc::new(seat);
        // SAFETY: the creator opened the world's block before anybody could attach, with a member for each rank.
        Ok(unsafe { Self::join(seat, offset, rank, (0..size).collect(), plan) })
    }

    /// Makes a fresh block ready for its members.
    ///
    /// # Safety
    /// The block at `offset` was just taken for this layout, and nobody else knows of it.
    pub(crate) unsafe fn open_block(mapping: &Mapping, offset: u64, layout: &BlockLayout, users: usize) {
        debug_assert_eq!(layout.size, users);
        // SAFETY: by contract it lies within the mapping.
        let base = unsafe { mapping.base().add(offset as usize) };
        // SAFETY: by contract the block is reserved; it begins with its header, of atomic words.
        let header = unsafe { &*base.cast::<crate::board::BlockHeader>() };
        header.users.store(users as u64, Ordering::Release);
    }

    /// Joins a block that was opened, as one of its members.
    ///
    /// # Safety
    /// The block at `offset` was opened for a communicator of these members, of which `rank` is this one and joins
    /// once.
    pub(crate) unsafe fn join(
        seat: Arc<Seat>,
        offset: u64,
        rank: usize,
        members: Vec<usize>,
        plan: Arc<dyn Plan>,
    ) -> Self {
        let size = members.len();
        let selection = seat.mapping().header().select(size);
        let layout = selection.block_layout();
        let slot_below = Collective::ALL.map(|what| selection.slot_below(what));
        let tuning = &seat.mapping().header().tuning;
        let singles = singles(&selection, tuning.convert_from);
        let (thresholds, convert) = (Thresholds::new(tuning, &selection), (tuning.convert_from, tuning.convert_after));
        // SAFETY: by contract; the block stays until this handle and all others have dropped it.
        let board = unsafe { SharedBoard::new(Arc::clone(&seat), offset, layout, rank, members) };
        Self {
            tally: Rc::clone(&board.tally),
            members: Arc::clone(board.members()),
            engine: RefCell::new(Engine::new(board, plan, thresholds)),
            seat,
            offset,
            layout,
            rank,
            size,
            selection,
            convert,
            slot_below,
            singles,
            chosen: Default::default(),
            traced: Default::default(),
        }
    }

    /// This rank, from 0 on.
    #[inline]
    #[must_use]
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Ranks in the group.
    #[inline]
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// Ranks of the job for each core that it may use, rounded up.
    #[must_use]
    pub fn crowd(&self) -> u32 {
        self.seat.mapping().header().crowd()
    }

    /// The ranks of the group in the job's world, in order.
    #[must_use]
    pub fn members(&self) -> Vec<usize> {
        self.members.to_vec()
    }

    /// What this rank has counted in this communicator; inside of a call (in an operator, say) with what that one has
    /// counted so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.tally.read()
    }

    /// Begins to count anew; inside of a call, what that one counts from then on.
    pub fn reset_counters(&self) {
        self.tally.reset();
    }

    /// Has errors count this communicator's calls from the next one on ("its call 1"): those before made it ready, and
    /// the program has not asked for them.
    ///
    /// # Errors
    /// [`Busy`](Error::Busy), inside of a call.
    pub fn count_calls_from_here(&self) -> Result<()> {
        self.enter()?.board.uncount_all();
        Ok(())
    }

    /// Has the calls from the next one on be parts of `what`: all ranks must say so between the same two calls, and the
    /// next call of ranks that have said something else is a [`Mismatch`](Error::Mismatch), even if it is the same call.
    ///
    /// # Errors
    /// [`Busy`](Error::Busy), inside of a call.
    #[doc(hidden)]
    pub fn go_on_by(&self, what: impl Hash) -> Result<()> {
        self.enter()?.board.go_on_by(what);
        Ok(())
    }

    /// Takes the trees from `plan` from now on. All ranks must do so between the same two calls; the next call of ranks
    /// whose trees have other names is a [`Mismatch`](Error::Mismatch).
    ///
    /// # Errors
    /// [`Busy`](Error::Busy), inside of a call.
    pub fn set_plan(&self, plan: Arc<dyn Plan>) -> Result<()> {
        let mut engine = self.enter()?;
        let sizes = (0..usize::BITS).map(|bit| 1 << bit);
        let names = |step| sizes.clone().map(|bytes| plan.name(step, plan.class(step, bytes))).collect::<Vec<_>>();
        engine.board.go_on_by([Step::Release, Step::Gather].map(names));
        engine.trees().follow(plan);
        // All have attached if they came here by calls: a good time to find out.
        self.seat.reach().settle();
        Ok(())
    }

    /// Chooses by another table from now on, as if it were the job's; communicators that are made of this one go by the
    /// job's own. All ranks must do so between the same two calls; the next call of ranks that go by other tables is a
    /// [`Mismatch`](Error::Mismatch).
    ///
    /// # Errors
    /// [`Tuning`](Error::Tuning), on all ranks alike: the table cannot be carried out, or needs more cells than there
    /// are. [`Busy`](Error::Busy), inside of a call.
    pub fn set_tuning(&mut self, tuning: &Tuning) -> Result<()> {
        tuning.check()?;
        let header = self.seat.mapping().header();
        let (crowd, l2) = (header.crowd(), header.l2);
        let selection = tuning.on_machine(l2).select(self.size, crowd).within(&self.layout)?;
        {
            let mut engine = self.enter()?;
            engine.board.go_on_by(format!("{tuning:?}"));
            engine.set_thresholds(Thresholds::new(tuning, &selection));
        }
        self.selection = selection;
        // What the job was asked for stands.
        let least = self.seat.mapping().header().tuning.convert_from.min(tuning.convert_from);
        self.convert = (least, tuning.convert_after);
        self.slot_below = Collective::ALL.map(|what| self.selection.slot_below(what));
        self.singles = singles(&self.selection, least);
        self.chosen = Default::default();
        self.traced = Default::default();
        Ok(())
    }

    /// Whether ranks of this job copy from each other's private memory, as far as that is settled: where the system
    /// lets them (process_vm_readv), or where they are threads of one process. Not collective; asking is how a rank
    /// takes part in finding out.
    #[must_use]
    pub fn reaching(&self) -> Reaching {
        self.seat.reach().found()
    }

    /// Bytes of this rank's private memory that have become shared so far ([`Conversion`](crate::job::Conversion));
    /// once more, if they were freed and others in their place became so too.
    #[must_use]
    pub fn converted(&self) -> u64 {
        self.seat.conversions().bytes_moved()
    }

    /// Whether this communicator, and the job, can go on, as far as this rank can see.
    ///
    /// # Errors
    /// What the next call would return.
    pub fn health(&self) -> Result<()> {
        self.enter()?.board.check()
    }

    /// Makes this communicator unusable, because this rank cannot go on with what all are doing together (its part of
    /// it outside of this node has failed, say): pending and later calls of all its ranks return
    /// [`Refused`](Error::Refused) with this rank. Inside of a call, in an operator say, it does nothing.
    pub fn give_up(&self) {
        if let Ok(engine) = self.engine.try_borrow() {
            engine.board.give_up();
        }
    }

    /// Says that this rank makes no further call here, before the handle is dropped: who waits for one gets
    /// [`Dropped`](Error::Dropped), as behind the drop. Inside of a call, in an operator say, it does nothing.
    pub fn drop_out(&self) {
        if let Ok(engine) = self.engine.try_borrow()
            && !is_last(&self.seat)
        {
            engine.board.drop_out();
        }
    }

    /// Sets what this rank does while it waits for others inside of a call: between looks, again and again, from the
    /// first look that fails on. The hook returns how long the rank may sleep before it is due again, or nothing when
    /// it cannot go on, as [`give_up`](Communicator::give_up) says; it may use other communicators, but not this one.
    /// Where it panics the job cannot go on, since it is out of a call halfway.
    ///
    /// A rank whose hook asks for short sleeps uses CPU while it waits for long.
    ///
    /// # Errors
    /// [`Busy`](Error::Busy), inside of a call.
    pub fn set_idle(&self, hook: Option<IdleHook>) -> Result<()> {
        self.enter()?.board.set_idle(hook);
        Ok(())
    }

    /// Makes a call; should it be left by a panic (of a user-defined operator), the job is stopped: the others would
    /// wait for this rank's part.
    #[inline]
    pub(crate) fn stopping_at_panic<R>(&self, call: impl FnOnce() -> R) -> R {
        self.seat.stopping_at_panic(call, || ())
    }

    pub(crate) fn seat(&self) -> &Arc<Seat> {
        &self.seat
    }

    /// Holds the engine for a call.
    #[inline]
    pub(crate) fn enter(&self) -> Result<RefMut<'_, Engine>> {
        self.engine.try_borrow_mut().map_err(|_| Error::Busy { rank: self.rank })
    }

    /// Refuses a call because of its arguments: tells the others, who would wait in vain.
    #[cold]
    pub(crate) fn refuse<T>(&self, error: Error) -> Result<T> {
        if let Ok(engine) = self.engine.try_borrow_mut() {
            engine.board.refuse();
        }
        Err(error)
    }
}

/// Whether a handle is the last of its rank, given the seat that it and its board have: with it the rank leaves the job,
/// which says more to those who wait for it than that the handle is dropped.
fn is_last(seat: &Arc<Seat>) -> bool {
    Arc::strong_count(seat) <= 2
}

impl Drop for Communicator {
    fn drop(&mut self) {
        let engine = self.engine.get_mut();
        if !self.seat.is_of_this_process() {
            return;
        }
        engine.shared.shrink(&self.seat, 0);
        if !is_last(&self.seat) {
            engine.board.drop_out();
        }
        // B3: everything this rank did with the block comes before the last one gives it back.
        if engine.board.header().users.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.seat.mapping().give_block_back(self.seat.rank(), self.offset, self.layout.total());
        }
    }
}

impl std::fmt::Debug for Communicator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Communicator").field("rank", &self.rank).field("size", &self.size).finish_non_exhaustive()
    }
}
