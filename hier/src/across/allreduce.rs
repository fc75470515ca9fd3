//! Barrier and allreduce across nodes.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use shm_core::operator::{Hint, Max, Operator, whole_groups};
use shm_core::{Collective, Element};

use super::adapt::{self, Search};
use super::choosing::Lane;
use super::communicator::HierComm;
use super::cut::{Cut, Vector, cuts_alike};
use super::error::Result;
use super::flight::Flight;
use super::rules::{Choice, Slice};
use super::run::{Combiner, Memory, Run};
use super::stages::{Gate, Stage, Stages};
use crate::schedule::{Algorithm, Goal, Program};

impl HierComm {
    /// Waits until every rank has called it (MPI 4.1, section 6.3).
    ///
    /// # Cost
    /// Two barriers of the node, and between them ceil(log2 N) messages of no bytes for each of N nodes.
    ///
    /// # Errors
    /// [`Error::Node`](super::Error::Node), [`Error::Network`](super::Error::Network),
    /// [`Error::Elsewhere`](super::Error::Elsewhere): the communicator cannot be used further.
    pub fn barrier(&self) -> Result<()> {
        let _call = self.enter()?;
        self.on_node(self.node.barrier())?;
        if self.placement.nodes() == 1 {
            return Ok(());
        }
        if self.placement.local_rank(self.rank) == 0 {
            self.meet()?;
        } else {
            self.next_tag();
        }
        self.on_node(self.node.barrier())
    }

    /// Combines everybody's `send`, element by element, in everybody's `recv` (MPI 4.1, section 6.9.6).
    ///
    /// Collective: all ranks must give the same count, element type and operator. All ranks get the same bits, which do
    /// not depend on slices, leaders or timing, but on the schedule, and so on the rules. Operators that do not commute
    /// are applied in rank order.
    ///
    /// # Cost
    /// For n bytes on N nodes: 2(N-1)/N n bytes sent and received by each node (ring), in 2(N-1) rounds a slice; short
    /// vectors take log2 N rounds of n bytes (and two more where N is no power of two). While the size of slices is
    /// sought, each call agrees on its time by a short allreduce more. Within the node, that of an allreduce there.
    ///
    /// # Errors
    /// [`Error::Node`](super::Error::Node) with a length that does not fit: nothing was written, but other ranks may
    /// have begun; this and all other errors leave a communicator that cannot be used further.
    ///
    /// # References
    /// Patarasuk and Yuan (2009) for the ring; Bayatpour et al. (SC 2017, CLUSTER 2018) for leaders and pipeline.
    pub fn all_reduce_into<T: Element, O: Operator<T>>(&self, send: &[T], recv: &mut [T], operator: O) -> Result<()> {
        let _call = self.enter()?;
        if send.len() != recv.len() {
            let (what, found, expected) = ("receive buffer", recv.len(), send.len());
            let error = shm_core::Error::Length { rank: self.rank, what, found, expected };
            return self.settle(Err(error.into()));
        }
        self.allreduce(Some(send), recv, &operator)
    }

    /// [`all_reduce_into`](HierComm::all_reduce_into) with one buffer for contribution and result (MPI_IN_PLACE).
    ///
    /// # Errors
    /// As there.
    pub fn all_reduce_in_place<T: Element, O: Operator<T>>(&self, buffer: &mut [T], operator: O) -> Result<()> {
        let _call = self.enter()?;
        self.allreduce(None, buffer, &operator)
    }

    fn allreduce<T: Element, O: Operator<T>>(&self, send: Option<&[T]>, recv: &mut [T], operator: &O) -> Result<()> {
        if self.placement.nodes() == 1 {
            return self.on_node(match send {
                Some(send) => self.node.all_reduce_into(send, recv, operator),
                None => self.node.all_reduce_in_place(recv, operator),
            });
        }
        self.check_groups(recv.len(), operator)?;
        let bytes = size_of_val(recv);
        self.name_to_node(Collective::Allreduce, 0, bytes)?;
        let choice = self.choose(Collective::Allreduce, bytes, self.may_reorder(&operator));
        self.trace(Collective::Allreduce, bytes);
        if choice.flat {
            let lane = Lane { peers: (0..self.size()).collect(), place: self.rank };
            return self.allreduce_at_once(choice.algorithm, lane, send, recv, operator);
        }
        if choice.one_sided && self.allreduce_one_sided(send, recv, operator)? {
            return Ok(());
        }
        let slice = self.slice_bytes(Collective::Allreduce, bytes, &choice);
        let start = Instant::now();
        self.allreduce_in_slices(&choice, slice, send, recv, operator)?;
        if choice.slice == Slice::Adaptive {
            self.note_time(bytes, start)?;
        }
        Ok(())
    }

    /// Refuses a vector of `count` elements that is not made of whole [groups](Operator::group).
    pub(super) fn check_groups<T: Element, O: Operator<T>>(&self, count: usize, operator: &O) -> Result<()> {
        self.settle(whole_groups(operator.group(), count, self.rank, self.size()).map_err(Into::into))
    }

    /// The pipeline: the node reduces a slice, or a stage of a message that goes whole, while what was before it is on
    /// the network.
    fn allreduce_in_slices<T: Element, O: Operator<T>>(
        &self,
        choice: &Choice,
        slice: usize,
        send: Option<&[T]>,
        recv: &mut [T],
        operator: &O,
    ) -> Result<()> {
        let ordered = !self.may_reorder(operator);
        if self.placement.most() == 1 && slice >= size_of_val(recv) {
            // Nodes have nothing to do, and so there is nothing to do meanwhile.
            return self.allreduce_at_once(choice.algorithm, self.lane(1, 0, ordered), send, recv, operator);
        }
        let group = operator.group();
        let element = size_of::<T>() * group.get();
        let leaders = if cuts_alike(element) && !recv.is_empty() { choice.leaders } else { 1 };
        let place = if ordered { self.here } else { self.place_in_ring() };
        let program = self.program(choice.algorithm, Goal::Allreduce, self.placement.nodes(), place)?;
        let segments = program.segments as usize;
        let cut = Cut::new(recv.len() / group, segments, slice / element.max(1), leaders == 1).in_groups(group.get());
        if let Some(send) = send.filter(|_| self.is_alone()) {
            recv.copy_from_slice(send);
        }
        // Slices overlap with each other; a message that goes whole, with itself.
        let stages = match cut.slices() {
            1 if !self.is_alone() => Stages::of(&program, size_of_val(recv) / segments),
            _ => Stages::one(segments),
        };
        let vector = Vector::of(recv);
        let mut flight = Flight::new(self);
        for i in 0..cut.slices() {
            let mut run = self.share_run(&program, leaders, ordered, (&cut, i), &vector, operator)?;
            for (k, stage) in stages.reduce.iter().enumerate() {
                for piece in self.pieces(&cut, i, stage) {
                    // SAFETY: this stage of this slice is on no network yet, and pieces do not overlap.
                    let to = unsafe { vector.part(piece.clone()) };
                    self.on_node(match send {
                        Some(send) if leaders == 1 => self.reduce_to_first(&send[piece], to, operator),
                        Some(send) => self.node.reduce_to_leaders(leaders, &send[piece], to, operator),
                        None if leaders == 1 => self.reduce_to_first_in_place(to, operator),
                        None => self.node.reduce_to_leaders_in_place(leaders, to, operator),
                    })?;
                }
                let gate = stages.reduce.get(k + 1).map_or(Gate::OPEN, |next| Gate::before(next.point));
                if k > 0 {
                    flight.open(gate);
                    continue;
                }
                if let Some(run) = &mut run {
                    run.set_gate(gate);
                }
                flight.begin(i, run.take());
            }
            if flight.len() > choice.flight {
                self.hand_out(&mut flight, (leaders, group), (&cut, &stages), &vector)?;
            }
        }
        while flight.len() > 0 {
            self.hand_out(&mut flight, (leaders, group), (&cut, &stages), &vector)?;
        }
        Ok(())
    }

    /// What the node works on, piece by piece, in a stage of a slice. A vector of no elements is one piece, so that ranks
    /// of which others have some find that their calls differ.
    fn pieces(&self, cut: &Cut, slice: usize, stage: &Stage) -> Vec<Range<usize>> {
        match self.is_alone() {
            true => Vec::new(),
            false if cut.is_empty() => std::iter::once(0..0).collect(),
            false => cut.pieces(slice, &stage.segments),
        }
    }

    /// Whether this rank is the only one of its node, which then has nothing to combine and nobody to give to.
    pub(super) fn is_alone(&self) -> bool {
        self.node.size() == 1
    }

    /// The run of this rank's share of a slice, if it leads one.
    fn share_run<T: Element, O: Operator<T>>(
        &self,
        program: &Arc<Program>,
        leaders: usize,
        ordered: bool,
        (cut, slice): (&Cut, usize),
        vector: &Vector<'_, T>,
        operator: &O,
    ) -> Result<Option<Run>> {
        let tag = self.next_tag();
        let Some(share) = (0..leaders).find(|&share| self.node.leader_of(share, leaders) == self.node.rank()) else {
            return Ok(None);
        };
        let Lane { peers, .. } = self.lane(leaders, share, ordered);
        let group = operator.group().get();
        let mut parts = Vec::with_capacity(program.segments as usize);
        for segment in 0..program.segments as usize {
            let range = cut.part(slice, segment);
            let own = match leaders {
                1 => 0..range.len(),
                _ => {
                    let groups = range.len() / group;
                    let share = self.node.share_of_bytes(size_of::<T>() * group, groups, leaders, share);
                    let share = self.on_node(share)?;
                    share.start * group..share.end * group
                }
            };
            parts.push(range.start + own.start..range.start + own.end);
        }
        let (memory, combiner) =
            (Memory::parts(vector.data, group, parts.into_iter()), Some(Combiner::of::<T, O>(operator)));
        // SAFETY: the caller keeps vector and operator until its flight has ended; of the slice it writes what is
        // behind the run's gate, and reads what is complete.
        Ok(Some(unsafe { Run::new(Arc::clone(program), peers, tag, memory, combiner) }))
    }

    /// Gives the first slice in flight to the ranks of the node, stage by stage, as soon as each is complete.
    fn hand_out<T: Element>(
        &self,
        flight: &mut Flight<'_>,
        (leaders, group): (usize, NonZeroUsize),
        (cut, stages): (&Cut, &Stages),
        vector: &Vector<'_, T>,
    ) -> Result<()> {
        let Some(i) = flight.first() else { return Ok(()) };
        for (k, stage) in stages.hand_out.iter().enumerate() {
            if k + 1 < stages.hand_out.len() {
                flight.wait(Some(stage.point))?;
            } else {
                flight.finish()?;
            }
            for piece in self.pieces(cut, i, stage) {
                // SAFETY: nothing that is on the network writes to this stage any more, and where this rank leads a
                // share, it is not written here either; pieces do not overlap.
                let piece = unsafe { vector.part(piece) };
                self.on_node(if leaders == 1 {
                    self.node.process_at_rank(0).broadcast_into(piece)
                } else {
                    self.node.gather_groups_from_leaders(leaders, group, piece)
                })?;
            }
        }
        Ok(())
    }

    /// The node's contributions in one vector at its first rank, combined in rank order: which tree a piece would take
    /// hangs on its length, and results must not hang on how a vector is cut.
    pub(super) fn reduce_to_first<T: Element, O: Operator<T>>(
        &self,
        send: &[T],
        recv: &mut [T],
        operator: &O,
    ) -> shm_core::Result<()> {
        let (first, operator) = (self.node.process_at_rank(0), &InOrder(operator));
        if self.node.rank() == 0 {
            first.reduce_into_root(send, recv, operator)
        } else {
            first.reduce_into(send, operator)
        }
    }

    /// The same, in place.
    pub(super) fn reduce_to_first_in_place<T: Element, O: Operator<T>>(
        &self,
        buffer: &mut [T],
        operator: &O,
    ) -> shm_core::Result<()> {
        let (first, operator) = (self.node.process_at_rank(0), &InOrder(operator));
        if self.node.rank() == 0 {
            first.reduce_into_root_in_place(buffer, operator)
        } else {
            first.reduce_into(buffer, operator)
        }
    }

    /// One schedule on the whole vector, between the ranks of a lane: nodes are left out.
    fn allreduce_at_once<T: Element, O: Operator<T>>(
        &self,
        algorithm: Algorithm,
        lane: Lane,
        send: Option<&[T]>,
        recv: &mut [T],
        operator: &O,
    ) -> Result<()> {
        if let Some(send) = send {
            recv.copy_from_slice(send);
        }
        let program = self.program(algorithm, Goal::Allreduce, lane.peers.len(), lane.place)?;
        let memory = Memory::whole(recv, operator.group().get());
        let (tag, combiner) = (self.next_tag(), Some(Combiner::of::<T, O>(operator)));
        let mut flight = Flight::new(self);
        // SAFETY: vector and operator outlive the flight, and are left alone.
        let run = unsafe { Run::new(program, lane.peers, tag, memory, combiner) };
        flight.begin(0, Some(run.expecting(self.is_alone())));
        flight.finish()?;
        Ok(())
    }

    /// Elements of a slice of a broadcast or a reduction of `bytes` bytes: whole groups of so many.
    pub(super) fn slice_elements<T>(&self, what: Collective, bytes: usize, group: usize, choice: &Choice) -> usize {
        match size_of::<T>() * group {
            0 => usize::MAX,
            element => (self.slice_bytes(what, bytes, choice) / element).max(1) * group,
        }
    }

    /// Bytes of a slice of a call on `bytes` bytes.
    pub(super) fn slice_bytes(&self, what: Collective, bytes: usize, choice: &Choice) -> usize {
        match choice.slice {
            Slice::Whole => bytes.max(1),
            Slice::Bytes(slice) => slice.max(1),
            Slice::Adaptive if what == Collective::Allreduce => {
                let new = || Search::new(self.placement.nodes(), choice.leaders);
                self.searches.borrow_mut().entry(adapt::class(bytes)).or_insert_with(new).slice()
            }
            Slice::Adaptive => bytes.max(1),
        }
    }

    /// Tells the search for slices what a call took. All ranks agree on the longest time, until the search is over.
    fn note_time(&self, bytes: usize, start: Instant) -> Result<()> {
        let class = adapt::class(bytes);
        let searching = self.searches.borrow().get(&class).is_some_and(|search| !search.is_frozen());
        if !searching {
            return Ok(());
        }
        let mut longest = [0.0];
        let own = [start.elapsed().as_secs_f64() * 1e6];
        let choice = Choice { slice: Slice::Whole, ..self.choose(Collective::Allreduce, size_of_val(&own), true) };
        self.allreduce_in_slices(&choice, size_of_val(&own), Some(&own), &mut longest, &Max)?;
        let mut searches = self.searches.borrow_mut();
        if let Some(search) = searches.get_mut(&class) {
            search.note(bytes, longest[0]);
            if search.is_frozen() && self.rank == 0 && self.debug {
                shm_core::remark(format_args!(
                    "allreduces from {} bytes on: slices of {} bytes from here on",
                    1_usize << class,
                    search.slice()
                ));
            }
        }
        Ok(())
    }
}

/// An operator whose operands stay in rank order.
struct InOrder<'a, O>(&'a O);

// SAFETY: the folds are those of the operator that is referred to.
unsafe impl<T: Element, O: Operator<T>> Operator<T> for InOrder<'_, O> {
    fn is_commutative(&self) -> bool {
        false
    }

    fn code(&self) -> u8 {
        self.0.code()
    }

    fn is_wide(&self) -> bool {
        self.0.is_wide()
    }

    fn group(&self) -> NonZeroUsize {
        self.0.group()
    }

    unsafe fn fold(&self, dst: *mut T, operands: &[*const T], n: usize) {
        // SAFETY: by contract.
        unsafe { self.0.fold(dst, operands, n) }
    }

    unsafe fn fold_to(&self, dsts: &[*mut T], operands: &[*const T], n: usize) {
        // SAFETY: by contract.
        unsafe { self.0.fold_to(dsts, operands, n) }
    }

    unsafe fn fold_from(&self, dsts: &[*mut T], operands: &[*const T], hint: Hint, n: usize) {
        // SAFETY: by contract.
        unsafe { self.0.fold_from(dsts, operands, hint, n) }
    }
}
