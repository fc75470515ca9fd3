//! The communicator: a group of ranks, and the handle of one of them.

use std::cell::{Cell, RefCell, RefMut};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::board::{IdleHook, SharedBoard};
use crate::cost::{self, Chain, Payload};
use crate::counters::{Counters, Tally};
use crate::error::{Error, Result};
use crate::plan::{Plan, Step};
use crate::protocol::Place;
use crate::reach::Reaching;
use crate::regime::{Engine, JOINT_LEAST, Thresholds};
use crate::remark::remark;
use crate::seat::Seat;
use crate::segment::layout::BlockLayout;
use crate::segment::mapping::Mapping;
use crate::select::{Choice, Collective, Explanation, Regime, Selection, Single, Singles, Tuning, Vector};

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
    traced: [[Cell<u64>; PLACES * PLACES]; 4],
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
        let singles = singles(&selection, tuning, tuning.convert_least);
        let (thresholds, convert) = (Thresholds::new(tuning, &selection), (tuning.convert_least, tuning.convert_after));
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

    /// What the table chooses for a message of `bytes` bytes of small elements (root 0), and what it costs with buffers
    /// whose payload goes through cells.
    ///
    /// # Errors
    /// [`Busy`](Error::Busy), inside of a call.
    pub fn explain(&self, what: Collective, bytes: usize) -> Result<Explanation> {
        self.explain_payload(what, bytes, Payload::InCells)
    }

    /// [`explain`](Communicator::explain), where all buffers lie in shared memory ([`alloc`](Communicator::alloc)):
    /// where they are too short to be used there, their payload goes through cells all the same.
    ///
    /// # Errors
    /// [`Busy`](Error::Busy), inside of a call.
    pub fn explain_shared(&self, what: Collective, bytes: usize) -> Result<Explanation> {
        let is_lent = bytes as u64 >= self.selection.direct_least(what);
        self.explain_payload(what, bytes, if is_lent { Payload::Lent } else { Payload::InCells })
    }

    /// [`explain`](Communicator::explain), where all ranks use each other's buffers where they lie: in shared memory,
    /// or in private memory by kernel-assisted copies.
    ///
    /// # Errors
    /// [`Busy`](Error::Busy), inside of a call.
    pub fn explain_lent(&self, what: Collective, bytes: usize) -> Result<Explanation> {
        self.explain_payload(what, bytes, Payload::Lent)
    }

    fn explain_payload(&self, what: Collective, bytes: usize, payload: Payload) -> Result<Explanation> {
        let choice = self.selection.choose(what, Vector::of_bytes(bytes))?;
        let mut engine = self.enter()?;
        let plan = engine.trees().plan();
        let tree = |step| match choice.flat {
            true => ("flat".to_owned(), Chain::flat(step, self.size)),
            false => {
                let class = plan.class(step, bytes);
                (plan.name(step, class), Chain::of(plan.as_ref(), step, class, 0, self.size))
            }
        };
        let ((gather, up), (release, down)) = (tree(Step::Gather), tree(Step::Release));
        let text = choice.describe(
            (what != Collective::Broadcast).then_some(&gather),
            (what != Collective::Reduce).then_some(&release),
        );
        let critical_lines = cost::critical_lines(&choice, what, (bytes, payload), self.size, up, down);
        Ok(Explanation { text, regime: choice.regime, critical_lines })
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
        let crowd = self.seat.mapping().header().crowd();
        let selection = tuning.select(self.size, crowd).within(&self.layout)?;
        {
            let mut engine = self.enter()?;
            engine.board.go_on_by(format!("{tuning:?}"));
            engine.set_thresholds(Thresholds::new(tuning, &selection));
        }
        self.selection = selection;
        // What the job was asked for stands.
        let least = self.seat.mapping().header().tuning.convert_least.min(tuning.convert_least);
        self.convert = (least, tuning.convert_after);
        self.slot_below = Collective::ALL.map(|what| self.selection.slot_below(what));
        self.singles = singles(&self.selection, tuning, least);
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

    /// What a call on a vector takes.
    ///
    /// # Errors
    /// As [`Selection::choose`].
    #[inline]
    pub(crate) fn choose(&self, what: Collective, vector: Vector) -> Result<Choice> {
        match self.chosen[what as usize].get() {
            Some((before, choice)) if before == vector => Ok(choice),
            _ => self.choose_anew(what, vector),
        }
    }

    #[inline(never)]
    fn choose_anew(&self, what: Collective, vector: Vector) -> Result<Choice> {
        let choice = self.selection.choose(what, vector)?;
        self.chosen[what as usize].set(Some((vector, choice)));
        Ok(choice)
    }

    /// Whether a call of `bytes` bytes surely takes one slot of lines, flat.
    #[inline]
    pub(crate) fn fits_a_slot(&self, what: Collective, bytes: usize) -> bool {
        bytes < self.slot_below[what as usize]
    }

    /// How cells are cut for a call of `bytes` bytes, if it surely goes through one of them, as far as this rank has a
    /// say: of what it gives at `given` (null for nothing), and of what it takes.
    #[inline]
    pub(crate) fn single(&self, what: Collective, bytes: usize, given: *const u8) -> Option<&Single> {
        let single = self.singles[what as usize].find(bytes)?;
        // What others may reach takes the longer way; so does who takes what may be done by both.
        let surely = match given.is_null() {
            _ if bytes < single.lent_from => true,
            true => bytes < JOINT_LEAST,
            false => self.seat.mapping().heap_offset(given, bytes).is_none(),
        };
        surely.then_some(single)
    }

    /// The same of a call that copies what it gives and what it takes, wherever they lie.
    #[inline]
    pub(crate) fn single_of_copied(&self, what: Collective, bytes: usize) -> Option<&Single> {
        self.singles[what as usize].find(bytes)
    }

    /// Says on stderr what was chosen, and where rank 0 has its payload (what it sends, and what it gets; null for
    /// none), once for each size class and place, if the job is to (`PHALANX_DEBUG`).
    #[inline]
    pub(crate) fn trace(&self, what: Collective, bytes: usize, buffers: [*const u8; 2]) {
        if self.selection.debug && self.rank == 0 {
            self.trace_slowly(what, bytes, buffers);
        }
    }

    #[cold]
    fn trace_slowly(&self, what: Collective, bytes: usize, buffers: [*const u8; 2]) {
        let Ok(places) = self.enter().map(|engine| buffers.map(|buffer| engine.place(what, buffer, bytes))) else {
            return;
        };
        let class = 1u64 << (usize::BITS - bytes.leading_zeros()).min(63);
        let [sent, received] = places.map(kind_of);
        let seen = &self.traced[what as usize][sent * PLACES + received];
        if seen.get() & class == 0 {
            seen.set(seen.get() | class);
            let lent = buffers.iter().zip(&places).all(|(buffer, place)| buffer.is_null() || *place != Place::Cell);
            let payload = if lent { Payload::Lent } else { Payload::InCells };
            if let Ok(explanation) = self.explain_payload(what, bytes, payload) {
                let (size, lines) = (self.size, explanation.critical_lines);
                let names = if what == Collective::Broadcast { ["", "message"] } else { ["contribution", "result"] };
                let mut lying = String::new();
                if explanation.regime != Regime::Line {
                    for (name, kind) in names
                        .into_iter()
                        .zip([sent, received])
                        .zip(buffers)
                        .filter_map(|(said, buffer)| (!buffer.is_null()).then_some(said))
                    {
                        lying.push_str(&format!(", {name} {}", PLACE_WORDS[kind]));
                    }
                }
                remark(format_args!(
                    "{what} of {bytes} bytes on {size} ranks: {explanation}{lying} ({lines} lines on the longest chain)"
                ));
            }
        }
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

/// The calls that go through one cell where no buffer lies in the heap: of fewer bytes than private ones that are
/// reached, or moved there (from `convert_least` on).
fn singles(selection: &Selection, tuning: &Tuning, convert_least: u64) -> [Singles; 4] {
    Collective::ALL.map(|what| Singles::of(selection, what, (convert_least, tuning.reach_least[what as usize])))
}

/// Kinds of places, and what is said of payload there.
const PLACES: usize = 3;
const PLACE_WORDS: [&str; PLACES] = ["through cells", "where it lies in shared memory", "by kernel-assisted copies"];

fn kind_of(place: Place) -> usize {
    match place {
        Place::Cell | Place::Back => 0,
        Place::Heap(_) => 1,
        Place::Private(_) => 2,
    }
}

impl Drop for Communicator {
    fn drop(&mut self) {
        let engine = self.engine.get_mut();
        if !self.seat.is_of_this_process() {
            return;
        }
        engine.shared.shrink(&self.seat, 0);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Shared buffers cost what those in cells cost below the table's threshold, and what lent ones cost from there on.
    #[test]
    fn explanations_know_from_which_size_on_shared_buffers_are_lent() {
        Communicator::threads(2, |mut comm| {
            let mut tuning = Tuning::default();
            tuning.force("all:cells;broadcast:direct_least=90000;allreduce:direct_least=70000").unwrap();
            comm.set_tuning(&tuning).unwrap();
            for (what, least) in [(Collective::Broadcast, 90_000), (Collective::Allreduce, 70_000)] {
                let explained = |bytes| {
                    let all =
                        [comm.explain(what, bytes), comm.explain_lent(what, bytes), comm.explain_shared(what, bytes)];
                    all.map(|explanation| explanation.unwrap().critical_lines)
                };
                let ([cells, lent, shared], [long_cells, long_lent, long_shared]) =
                    (explained(least - 1), explained(least));
                assert!(lent < cells && long_lent < long_cells, "{what}");
                assert_eq!((shared, long_shared), (cells, long_lent), "{what}");
            }
        })
        .unwrap();
    }

    /// What was chosen is remembered until the table changes, and no longer.
    #[test]
    fn another_table_forgets_what_was_chosen() {
        let chosen = Communicator::threads(2, |mut comm| {
            let vector = Vector { element: 8, align: 8, ..Vector::of_bytes(8 * 5000) };
            ["cells", "exchange", "shares", "cells"].map(|regime| {
                let mut tuning = Tuning::default();
                tuning.force(&format!("allreduce:{regime}")).unwrap();
                comm.set_tuning(&tuning).unwrap();
                let (mut sum, rank) = (vec![0; 5000], comm.rank() as u64);
                comm.all_reduce_into(&vec![rank + 1; 5000], &mut sum, crate::operator::Sum).unwrap();
                assert!(sum.iter().all(|&sum| sum == 3));
                let remembered = comm.chosen[Collective::Allreduce as usize].get();
                assert!(remembered.is_some_and(|(before, _)| before.bytes == 8 * 5000), "{remembered:?}");
                comm.choose(Collective::Allreduce, vector).unwrap().regime.name()
            })
        });
        assert_eq!(chosen.unwrap(), [["cells", "exchange", "shares", "cells"]; 2]);
    }

    /// Who gives takes the short way with a private buffer of up to a cell, and with one in the heap below the size
    /// from which that is used there; who takes does where nothing is done by both ranks.
    #[test]
    fn who_gives_and_who_takes_know_when_a_call_goes_through_one_cell() {
        Communicator::threads(2, |mut comm| {
            let (private, shared) = (vec![0u8; 40_000], comm.alloc::<u8>(40_000).unwrap());
            let (private, shared, nothing) = (private.as_ptr(), shared.as_ptr(), std::ptr::null());
            let longest = |comm: &Communicator, what, given| {
                (1..40_000).filter(|&bytes| comm.single(what, bytes, given).is_some()).max().unwrap_or(0)
            };
            for what in [Collective::Broadcast, Collective::Reduce] {
                let direct = comm.selection.direct_least(what) as usize;
                let all = [private, shared, nothing].map(|given| longest(&comm, what, given));
                assert_eq!(all, [32 << 10, direct - 1, JOINT_LEAST - 1], "{what}");
            }
            let direct = comm.selection.direct_least(Collective::Allreduce) as usize;
            assert_eq!(longest(&comm, Collective::Allreduce, shared), direct - 1);
            assert_eq!(longest(&comm, Collective::Barrier, private), 0);
            for (rules, wanted) in [
                ("all:direct_least=2K", [32 << 10, 2047, JOINT_LEAST - 1]),
                ("all:reach_least=3K", [3071, 3071, 3071]),
                ("all:direct_least=2K,convert_least=5K", [5119, 2047, 5119]),
                ("all:direct_least=6K,convert_least=5K", [6143, 6143, 6143]),
                ("broadcast:cells,down_cell=4K", [4096, 4096, 4096]),
                ("broadcast:line", [0, 0, 0]),
            ] {
                let mut tuning = Tuning::default();
                tuning.force(rules).unwrap();
                comm.set_tuning(&tuning).unwrap();
                let all = [private, shared, nothing].map(|given| longest(&comm, Collective::Broadcast, given));
                assert_eq!(all, wanted, "{rules}");
            }
        })
        .unwrap();
    }
}
