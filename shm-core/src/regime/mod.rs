//! The regimes: protocols joined to payload.
//!
//! | file | regime | for |
//! |---|---|---|
//! | `line` | 1: stamp and payload in one cache line | barriers, short messages |
//! | `exchange` | 1 through cells: everybody folds everybody's contribution | medium allreduces of few ranks |
//! | `cells` | 2: release and gather steps over trees, pipelined cells | broadcasts, medium reductions |
//! | `delivery`, `folded` | 1 and its form through cells, for blocks that are moved, and for blocks and prefixes that are folded |
//! | `joint` | 2 between two ranks that reach each other's buffers: both work | broadcasts and reductions of two, of 16 KiB and more |
//! | `slots` | 1: the short way of blocks that fit a slot | short blocks, short scans |
//! | `rows` | 1: blocks that go along with their lengths | alltoalls of other lengths |
//! | `shares` | 3: the data-partitioned reduction with several leaders | long reductions |
//!
//! Regime 4, direct, is no algorithm beside them: it lets the payload of cells and shares stay in the buffers of the
//! ranks, where others can reach those (`lend`, from the sizes of `thresholds` on, and by what `reach_trial` finds of
//! private ones, `heap_trial` of buffers in the heap, and `view_trial` of results that all look at: these try two
//! `course`s);
//! `operands` loads and folds what lies anywhere, `fold` folds into cells. `one` is the short way of cells for messages
//! of one slice, `one_exchange` that of an exchange between two ranks, and `two` what one of two ranks folds then.
//! `cut` says how a message fills cells. `combining` and `passing` are the payload of the two steps of cells, `slicing`
//! and `handing` that of reductions and of an allgather of shares, which `division` cuts; `back` takes what came back.

mod back;
pub(crate) mod blocks;
mod cells;
mod combining;
mod course;
pub(crate) mod cut;
pub(crate) mod delivery;
pub(crate) mod division;
mod drift;
pub(crate) mod exchange;
mod fold;
pub(crate) mod folded;
mod handing;
mod heap_trial;
mod joint;
mod lend;
#[cfg(test)]
mod lengths;
mod line;
mod one;
mod one_exchange;
mod operands;
mod passing;
mod reach_trial;
pub(crate) mod route;
mod rows;
pub(crate) mod shares;
mod slicing;
mod slots;
mod thresholds;
mod two;
mod view_trial;

use std::sync::Arc;

use crate::board::SharedBoard;
use crate::error::Result;
use crate::links::Links;
use crate::operator::Fold;
use crate::pace::{Calls, Pace};
use crate::plan::{MOST_CLASSES, Plan, Step};
use crate::protocol::{Board, Place, Readers, Ring, RingName};
use crate::segment::layout::SLOT;
use crate::select::{Choice, Collective, Regime};
use crate::shared_result::ResultMemory;

pub(crate) use exchange::COPIED;
use heap_trial::HeapTrials;
pub(crate) use joint::JOINT_LEAST;
use lend::Source;
use operands::Operands;
use reach_trial::ReachTrial;
#[cfg(test)]
pub(crate) use reach_trial::Transfer;
#[cfg(test)]
pub(crate) use route::EXCHANGED_L2;
pub(crate) use thresholds::Thresholds;
use view_trial::ViewTrial;

/// The part of a message that one rank combines, and where the result goes: at byte `0..bytes` of both.
#[derive(Clone, Copy)]
pub(crate) struct Reduction<'a> {
    /// The own contribution.
    pub send: *const u8,
    /// Where the result goes (the same as `send` when in place); null where there is none.
    pub recv: *mut u8,
    /// Bytes of the vector.
    pub bytes: usize,
    pub fold: Fold<'a>,
}

/// A line slot's worth of private memory, aligned for any element.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Scratch([u8; SLOT]);

/// What a rank keeps of a communicator between calls.
pub(crate) struct Engine {
    pub board: SharedBoard,
    lines: Ring,
    up: Ring,
    down: Ring,
    /// How the up and down cells are cut at present: bytes of a cell.
    up_cell: usize,
    down_cell: usize,
    /// What is known of the ways into the own cells.
    up_pace: Pace,
    down_pace: Pace,
    /// How the halves of broadcasts are copied that two ranks do together and that this one takes.
    copies: Calls,
    /// How results are copied out that came back, of reductions to a root and of those to all.
    backs: [Calls; 2],
    /// Where a partial result is made that goes on in a line.
    scratch: Box<Scratch>,
    /// Where each rank's piece of an exchange lies.
    places: Box<[*const u8]>,
    /// Where the operands of a fold of lines lie; kept to spare an allocation a call.
    line_operands: Vec<*const u8>,
    /// The same for cells and shares, and where results go.
    operands: Operands,
    /// Where other ranks' payload lies in the present call, and where they want the result.
    sources: Vec<Source>,
    results: Vec<Option<*mut u8>>,
    thresholds: Thresholds,
    /// What is known of lending private buffers.
    reach_trial: Option<ReachTrial>,
    /// And of using buffers in the heap where they lie.
    heap_trials: HeapTrials,
    /// And of results that all look at.
    view_trial: ViewTrial,
    /// Whether the next of these are each rank's own: what rank 0 says in the call that is made.
    next_own: bool,
    /// Whether the lines of the next slot are taken before it is filled: where each rank has a core of its own, to
    /// whose cache they come.
    takes: bool,
    /// Memory of shared results; rank 0 provides it.
    pub shared: ResultMemory,
    /// The ranks of the leaders, for the number of leaders that was used last.
    leaders: Vec<usize>,
    /// All higher ranks, who read this one's part of a scan.
    above: Option<Readers>,
    /// The place of this rank in the chain of longer scans, once there was one.
    chain: Option<Links>,
    trees: Trees,
}

/// A communicator is moved as it is made, and in an unoptimised program each move takes as much of a thread's stack.
const _: () = assert!(size_of::<Engine>() <= 4096);

impl Engine {
    pub fn new(mut board: SharedBoard, plan: Arc<dyn Plan>, thresholds: Thresholds) -> Self {
        board.readers = thresholds.readers;
        let (size, line_slots) = (board.size(), board.line_slots());
        let above: Vec<usize> = (board.rank() + 1..size).collect();
        let above = match above[..] {
            [] => None,
            [one] => Some(Readers::One(one)),
            _ => Some(Readers::These(above.into())),
        };
        let takes = board.seat().patience.spins > 0;
        Self {
            board,
            takes,
            lines: Ring::new(RingName::Line, line_slots, size),
            up: Ring::new(RingName::Up, 1, size),
            down: Ring::new(RingName::Down, 1, size),
            up_cell: 0,
            down_cell: 0,
            up_pace: Pace::new(RingName::Up, thresholds.stream),
            down_pace: Pace::new(RingName::Down, thresholds.stream),
            copies: Calls::new(Calls::HALVES, thresholds.stream),
            backs: [(); 2].map(|()| Calls::new(Calls::BACK, thresholds.stream)),
            scratch: Box::new(Scratch([0; SLOT])),
            places: vec![std::ptr::null(); size].into_boxed_slice(),
            line_operands: Vec::with_capacity(size),
            operands: Operands::default(),
            sources: Vec::new(),
            results: Vec::new(),
            thresholds,
            reach_trial: None,
            heap_trials: HeapTrials::default(),
            view_trial: ViewTrial::default(),
            next_own: false,
            shared: ResultMemory::default(),
            leaders: Vec::new(),
            above,
            chain: None,
            trees: Trees { plan, cache: Vec::new() },
        }
    }

    /// Lends by other thresholds, and fills cells by another word, from now on.
    pub fn set_thresholds(&mut self, thresholds: Thresholds) {
        (self.thresholds, self.reach_trial) = (thresholds, None);
        self.board.readers = thresholds.readers;
        (self.heap_trials, self.view_trial) = Default::default();
        self.up_pace.go_by(thresholds.stream);
        self.down_pace.go_by(thresholds.stream);
        self.copies.go_by(thresholds.stream);
        self.backs.iter_mut().for_each(|calls| calls.go_by(thresholds.stream));
    }

    /// An allreduce as it was chosen.
    pub fn allreduce(&mut self, choice: &Choice, reduction: Reduction<'_>, tag: u32) -> Result<()> {
        match choice.regime {
            Regime::Line => self.line_allreduce(choice, reduction, tag),
            Regime::Cells => self.cells_allreduce(choice, reduction, tag),
            Regime::Shares => self.shares_allreduce(choice, reduction, tag),
            Regime::Exchange => self.exchange_allreduce(choice, reduction, tag),
        }
    }

    /// Where others find a buffer of this rank in a call of this collective that is no exchange of lines.
    pub fn place(&self, what: Collective, buffer: *const u8, bytes: usize) -> Place {
        self.thresholds.place(&self.board, what, buffer, bytes)
    }

    pub fn trees(&mut self) -> &mut Trees {
        &mut self.trees
    }

    /// Cuts the own cells of both rings as `choice` says.
    fn cut_cells(&mut self, choice: &Choice) -> Result<()> {
        self.cut_up_cells(choice.up_cell, choice.up_slots, true)?;
        self.cut_down_cells(choice.down_cell, choice.down_slots, true)
    }

    /// Cuts the own up cells into so many, of so many bytes each; waits for readers of cells that were cut otherwise.
    /// No memory is needed for them where this rank only reads others'.
    ///
    /// All ranks cut a ring alike in a call, by what all of them know of it: positions lie in the same slots on all,
    /// and whose turn it is to write in a cell that changes hands hangs on what was exchanged since ([`Ring::cross`]).
    #[inline]
    fn cut_up_cells(&mut self, cell: usize, slots: usize, fills: bool) -> Result<()> {
        let Self { board, up, up_cell, .. } = self;
        cut(board, (up, up_cell), (cell, slots), fills)
    }

    /// The same of the down cells.
    #[inline]
    fn cut_down_cells(&mut self, cell: usize, slots: usize, fills: bool) -> Result<()> {
        let Self { board, down, down_cell, .. } = self;
        cut(board, (down, down_cell), (cell, slots), fills)
    }
}

/// Cuts the own cells of a ring, which are cut into some of `present` bytes, and has memory for them if this rank
/// `fills` any.
#[inline]
fn cut(
    board: &SharedBoard,
    (ring, present): (&mut Ring, &mut usize),
    (cell, slots): (usize, usize),
    fills: bool,
) -> Result<()> {
    let mut cut = || {
        if *present != cell || ring.slots() != slots {
            ring.reshape(board, slots)?;
            *present = cell;
        }
        if fills { board.back(ring.name(), cell * slots) } else { Ok(()) }
    };
    cut().inspect_err(|_| board.unnote())
}

/// The places of this rank in the trees that were used so far.
pub(crate) struct Trees {
    plan: Arc<dyn Plan>,
    /// By step, class (the last one is the flat tree), root.
    cache: Vec<Option<Links>>,
}

/// The class of the flat tree, beside those of the plan.
const FLAT: usize = MOST_CLASSES;

impl Trees {
    pub fn plan(&self) -> &Arc<dyn Plan> {
        &self.plan
    }

    /// Takes the trees from another plan.
    pub fn follow(&mut self, plan: Arc<dyn Plan>) {
        self.plan = plan;
        self.cache.clear();
    }

    /// Finds the place of this rank in the tree that `choice` means for a message of `bytes` bytes; [`at`](Trees::at)
    /// shows it.
    #[inline]
    fn find(&mut self, board: &SharedBoard, choice: &Choice, step: Step, bytes: usize, root: usize) -> usize {
        let class = if choice.flat { FLAT } else { self.plan.class(step, bytes).min(MOST_CLASSES - 1) };
        let size = board.size();
        let index = ((step as usize) * (MOST_CLASSES + 1) + class) * size + root;
        if self.cache.get(index).is_none_or(Option::is_none) {
            self.fill(board, step, class, root, index);
        }
        index
    }

    #[cold]
    fn fill(&mut self, board: &SharedBoard, step: Step, class: usize, root: usize, index: usize) {
        let (rank, size) = (board.rank(), board.size());
        self.cache.resize(2 * (MOST_CLASSES + 1) * size, None);
        self.cache[index] = Some(match class {
            FLAT => Links::flat(rank, size, root),
            class => {
                let links = self.plan.links(step, class, root, rank, size);
                let (behind, _) = links.relay();
                let all = links.parent().into_iter().chain(links.children().iter().chain(behind).copied());
                assert!(all.max().is_none_or(|most| most < size), "a tree has ranks that are not in the communicator");
                links
            }
        });
    }

    /// A place that was found.
    #[inline]
    fn at(&self, index: usize) -> &Links {
        self.cache[index].as_ref().expect("it was found")
    }
}
