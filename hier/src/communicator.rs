//! The communicator of programs.

use std::sync::Arc;

use shm_core::job::{Invitation, JobSpec, refuse_to_be_alone};
use shm_core::operator::{BitOr, Operator};
use shm_core::{
    Buffer, Collective, Counters, Element, Explanation, Partition, PartitionMut, Plan, Process, Reaching, Result,
    SharedResult, Zeroable,
};
use topo::{Machine, binding_of};

use crate::note::Note;
use crate::plan::TopologyPlan;
use crate::rules::TreeRules;
use crate::table::threads_spec;

/// A rank's handle on a group of ranks that call collectives together.
///
/// Its calls are those of [`shm_core::Communicator`], over trees that fit the places where the ranks run. What must
/// agree, what a call costs and how it fails stands there: each call here has a link.
#[derive(Debug)]
pub struct Communicator {
    node: shm_core::Communicator,
}

impl Communicator {
    /// The world of this process: all ranks that `phalanx run` started with it, or, without a launcher, a world of one
    /// rank.
    ///
    /// Collective over all ranks of the job: they tell each other where they run.
    ///
    /// # Errors
    /// [`Environment`](shm_core::Error::Environment), [`Segment`](shm_core::Error::Segment): what the launcher passed
    /// is damaged, or it was one of MPI programs, which started several processes.
    /// [`AlreadyAttached`](shm_core::Error::AlreadyAttached): the world was taken before; keep it, or duplicate it.
    /// [`RankFailed`](shm_core::Error::RankFailed): another rank ended before it came here.
    pub fn world() -> Result<Self> {
        let Some(invitation) = Invitation::from_environment()? else {
            refuse_to_be_alone()?;
            let mut worlds = Self::worlds_of_threads(1)?;
            return Ok(worlds.pop().expect("one rank was asked for"));
        };
        let note = Note::from_bytes(&invitation.note())?;
        let size = invitation.size();
        let node = invitation.accept(Arc::new(TopologyPlan::new(TreeRules::default(), vec![[0; 3]; size], 1)))?;
        let places = exchange_places(&node, own_place(note.machine.as_ref()))?;
        node.set_plan(Arc::new(TopologyPlan::new(note.rules, places, node.crowd())))?;
        node.count_calls_from_here()?;
        Ok(Self { node })
    }

    /// Runs `f` on `n` ranks that are threads of this process, each with its world; returns the results by rank.
    ///
    /// # Errors
    /// [`Ranks`](shm_core::Error::Ranks), [`Memory`](shm_core::Error::Memory),
    /// [`Environment`](shm_core::Error::Environment).
    ///
    /// # Panics
    /// When a rank panics: the others' calls return [`RankFailed`](shm_core::Error::RankFailed), and when all have
    /// ended the panic goes on.
    ///
    /// ```
    /// use hier::{Communicator, operator::Sum};
    /// let sums = Communicator::threads(3, |comm| {
    ///     let mut sum = [0];
    ///     comm.all_reduce_into(&[comm.rank()], &mut sum, Sum).unwrap();
    ///     sum[0]
    /// }).unwrap();
    /// assert_eq!(sums, [3; 3]);
    /// ```
    pub fn threads<R: Send>(n: usize, f: impl Fn(Self) -> R + Sync) -> Result<Vec<R>> {
        let (spec, rules) = threads_spec(n)?;
        Self::threads_of(&spec, rules, f)
    }

    /// [`threads`](Communicator::threads) for a job and rules of one's own making.
    ///
    /// # Errors
    /// As of [`threads`](Communicator::threads).
    ///
    /// # Panics
    /// When a rank panics, as of [`threads`](Communicator::threads).
    pub fn threads_of<R: Send>(spec: &JobSpec, rules: TreeRules, f: impl Fn(Self) -> R + Sync) -> Result<Vec<R>> {
        Self::threads_at(spec, rules, vec![[0; 3]; spec.ranks], f)
    }

    /// [`threads_of`](Communicator::threads_of) as if rank `r` ran at `places[r]`: package, NUMA node and L3.
    ///
    /// # Errors
    /// As of [`threads`](Communicator::threads).
    ///
    /// # Panics
    /// When a rank panics, as of [`threads`](Communicator::threads), and when there is not one place for each rank.
    pub fn threads_at<R: Send>(
        spec: &JobSpec,
        rules: TreeRules,
        places: Vec<[usize; 3]>,
        f: impl Fn(Self) -> R + Sync,
    ) -> Result<Vec<R>> {
        assert_eq!(places.len(), spec.ranks, "one place for each rank");
        let plan: Arc<dyn Plan> = Arc::new(TopologyPlan::new(rules, places, spec.crowd()));
        shm_core::Communicator::threads_of(spec, &plan, |node| f(Self { node }))
    }

    fn worlds_of_threads(n: usize) -> Result<Vec<Self>> {
        let (spec, rules) = threads_spec(n)?;
        let plan: Arc<dyn Plan> = Arc::new(TopologyPlan::new(rules, vec![[0; 3]; n], spec.crowd()));
        let job = shm_core::job::Job::create(&spec)?;
        (0..n).map(|rank| Ok(Self { node: job.attach(rank, Arc::clone(&plan))? })).collect()
    }

    /// This rank, from 0 on.
    #[inline]
    #[must_use]
    pub fn rank(&self) -> usize {
        self.node.rank()
    }

    /// Ranks in the group.
    #[inline]
    #[must_use]
    pub fn size(&self) -> usize {
        self.node.size()
    }

    /// Makes a vector of `len` elements in shared memory, all zero, which collectives work on where it lies from some
    /// size on: [`shm_core::Communicator::alloc`].
    ///
    /// # Errors
    /// [`HeapExhausted`](shm_core::Error::HeapExhausted), [`Memory`](shm_core::Error::Memory): nothing has changed.
    pub fn alloc<T: Element + Zeroable>(&self, len: usize) -> Result<Buffer<T>> {
        self.node.alloc(len)
    }

    /// Makes a copy of a vector in shared memory: [`shm_core::Communicator::alloc_copy`].
    ///
    /// # Errors
    /// As of [`alloc`](Communicator::alloc).
    pub fn alloc_copy<T: Element>(&self, values: &[T]) -> Result<Buffer<T>> {
        self.node.alloc_copy(values)
    }

    /// Waits until every rank has called it (MPI_Barrier): [`shm_core::Communicator::barrier`].
    ///
    /// # Errors
    /// As of [`shm_core::Communicator::barrier`].
    #[inline]
    pub fn barrier(&self) -> Result<()> {
        self.node.barrier()
    }

    /// Combines everybody's `send`, element by element, in everybody's `recv` (MPI_Allreduce):
    /// [`shm_core::Communicator::all_reduce_into`].
    ///
    /// # Errors
    /// As of [`shm_core::Communicator::all_reduce_into`].
    #[inline]
    pub fn all_reduce_into<T: Element, O: Operator<T>>(&self, send: &[T], recv: &mut [T], operator: O) -> Result<()> {
        self.node.all_reduce_into(send, recv, operator)
    }

    /// [`all_reduce_into`](Communicator::all_reduce_into) with one buffer for contribution and result (MPI_IN_PLACE):
    /// [`shm_core::Communicator::all_reduce_in_place`].
    ///
    /// # Errors
    /// As of [`shm_core::Communicator::all_reduce_in_place`].
    #[inline]
    pub fn all_reduce_in_place<T: Element, O: Operator<T>>(&self, buffer: &mut [T], operator: O) -> Result<()> {
        self.node.all_reduce_in_place(buffer, operator)
    }

    /// Combines everybody's `send` in one result that all look at where it lies:
    /// [`shm_core::Communicator::all_reduce_shared`].
    ///
    /// # Errors
    /// As of [`shm_core::Communicator::all_reduce_shared`].
    pub fn all_reduce_shared<T: Element, O: Operator<T>>(&self, send: &[T], operator: O) -> Result<SharedResult<T>> {
        self.node.all_reduce_shared(send, operator)
    }

    /// Gathers everybody's `send` in everybody's `recv`, in rank order (MPI_Allgather):
    /// [`shm_core::Communicator::all_gather_into`].
    ///
    /// # Errors
    /// As of [`shm_core::Communicator::all_gather_into`].
    #[inline]
    pub fn all_gather_into<T: Element>(&self, send: &[T], recv: &mut [T]) -> Result<()> {
        self.node.all_gather_into(send, recv)
    }

    /// [`all_gather_into`](Communicator::all_gather_into) where each rank has its block at its place in `buffer`
    /// (MPI_IN_PLACE): [`shm_core::Communicator::all_gather_in_place`].
    ///
    /// # Errors
    /// As of [`shm_core::Communicator::all_gather_in_place`].
    #[inline]
    pub fn all_gather_in_place<T: Element>(&self, buffer: &mut [T]) -> Result<()> {
        self.node.all_gather_in_place(buffer)
    }

    /// Gathers everybody's `send`, of different lengths, each at its place in everybody's `recv` (MPI_Allgatherv):
    /// [`shm_core::Communicator::all_gather_varcount_into`].
    ///
    /// # Errors
    /// As of [`shm_core::Communicator::all_gather_varcount_into`].
    pub fn all_gather_varcount_into<T: Element>(&self, send: &[T], recv: &mut PartitionMut<'_, T>) -> Result<()> {
        self.node.all_gather_varcount_into(send, recv)
    }

    /// [`all_gather_varcount_into`](Communicator::all_gather_varcount_into) where each rank has its block at its place
    /// already (MPI_IN_PLACE): [`shm_core::Communicator::all_gather_varcount_in_place`].
    ///
    /// # Errors
    /// As of [`shm_core::Communicator::all_gather_varcount_in_place`].
    pub fn all_gather_varcount_in_place<T: Element>(&self, buffer: &mut PartitionMut<'_, T>) -> Result<()> {
        self.node.all_gather_varcount_in_place(buffer)
    }

    /// Sends block `r` of `send` to rank `r`, whose `recv` has it as block of this rank (MPI_Alltoall):
    /// [`shm_core::Communicator::all_to_all_into`].
    ///
    /// # Errors
    /// As of [`shm_core::Communicator::all_to_all_into`].
    #[inline]
    pub fn all_to_all_into<T: Element>(&self, send: &[T], recv: &mut [T]) -> Result<()> {
        self.node.all_to_all_into(send, recv)
    }

    /// [`all_to_all_into`](Communicator::all_to_all_into) with one buffer (MPI_IN_PLACE):
    /// [`shm_core::Communicator::all_to_all_in_place`].
    ///
    /// # Errors
    /// As of [`shm_core::Communicator::all_to_all_in_place`].
    #[inline]
    pub fn all_to_all_in_place<T: Element>(&self, buffer: &mut [T]) -> Result<()> {
        self.node.all_to_all_in_place(buffer)
    }

    /// Sends each rank its block of `send`, each of its own length (MPI_Alltoallv):
    /// [`shm_core::Communicator::all_to_all_varcount_into`].
    ///
    /// # Errors
    /// As of [`shm_core::Communicator::all_to_all_varcount_into`].
    pub fn all_to_all_varcount_into<T: Element>(
        &self,
        send: &Partition<'_, T>,
        recv: &mut PartitionMut<'_, T>,
    ) -> Result<()> {
        self.node.all_to_all_varcount_into(send, recv)
    }

    /// [`all_to_all_varcount_into`](Communicator::all_to_all_varcount_into) with one buffer (MPI_IN_PLACE):
    /// [`shm_core::Communicator::all_to_all_varcount_in_place`].
    ///
    /// # Errors
    /// As of [`shm_core::Communicator::all_to_all_varcount_in_place`].
    pub fn all_to_all_varcount_in_place<T: Element>(&self, buffer: &mut PartitionMut<'_, T>) -> Result<()> {
        self.node.all_to_all_varcount_in_place(buffer)
    }

    /// Combines everybody's `send`, and gives each rank its block of the result, all of one length
    /// (MPI_Reduce_scatter_block): [`shm_core::Communicator::reduce_scatter_block_into`].
    ///
    /// # Errors
    /// As of [`shm_core::Communicator::reduce_scatter_block_into`].
    #[inline]
    pub fn reduce_scatter_block_into<T: Element, O: Operator<T>>(
        &self,
        send: &[T],
        recv: &mut [T],
        operator: O,
    ) -> Result<()> {
        self.node.reduce_scatter_block_into(send, recv, operator)
    }

    /// Combines everybody's `send`, and gives each rank its block of the result, of `counts[r]` elements
    /// (MPI_Reduce_scatter): [`shm_core::Communicator::reduce_scatter_into`].
    ///
    /// # Errors
    /// As of [`shm_core::Communicator::reduce_scatter_into`].
    pub fn reduce_scatter_into<T: Element, O: Operator<T>>(
        &self,
        send: &[T],
        recv: &mut [T],
        counts: &[usize],
        operator: O,
    ) -> Result<()> {
        self.node.reduce_scatter_into(send, recv, counts, operator)
    }

    /// Combines the `send`s of ranks 0 to this one in `recv` (MPI_Scan): [`shm_core::Communicator::scan_into`].
    ///
    /// # Errors
    /// As of [`shm_core::Communicator::scan_into`].
    #[inline]
    pub fn scan_into<T: Element, O: Operator<T>>(&self, send: &[T], recv: &mut [T], operator: O) -> Result<()> {
        self.node.scan_into(send, recv, operator)
    }

    /// [`scan_into`](Communicator::scan_into) with one buffer for contribution and result (MPI_IN_PLACE):
    /// [`shm_core::Communicator::scan_in_place`].
    ///
    /// # Errors
    /// As of [`shm_core::Communicator::scan_in_place`].
    #[inline]
    pub fn scan_in_place<T: Element, O: Operator<T>>(&self, buffer: &mut [T], operator: O) -> Result<()> {
        self.node.scan_in_place(buffer, operator)
    }

    /// Combines the `send`s of all ranks below this one in `recv`, which stays as it was on rank 0 (MPI_Exscan):
    /// [`shm_core::Communicator::exclusive_scan_into`].
    ///
    /// # Errors
    /// As of [`shm_core::Communicator::exclusive_scan_into`].
    #[inline]
    pub fn exclusive_scan_into<T: Element, O: Operator<T>>(
        &self,
        send: &[T],
        recv: &mut [T],
        operator: O,
    ) -> Result<()> {
        self.node.exclusive_scan_into(send, recv, operator)
    }

    /// [`exclusive_scan_into`](Communicator::exclusive_scan_into) with one buffer for contribution and result
    /// (MPI_IN_PLACE): [`shm_core::Communicator::exclusive_scan_in_place`].
    ///
    /// # Errors
    /// As of [`shm_core::Communicator::exclusive_scan_in_place`].
    #[inline]
    pub fn exclusive_scan_in_place<T: Element, O: Operator<T>>(&self, buffer: &mut [T], operator: O) -> Result<()> {
        self.node.exclusive_scan_in_place(buffer, operator)
    }

    /// A rank as the root of rooted collectives: [`Process`].
    #[inline]
    #[must_use]
    pub fn process_at_rank(&self, rank: usize) -> Process<'_> {
        self.node.process_at_rank(rank)
    }

    /// Divides the group by color, ordered by key (MPI_Comm_split): [`shm_core::Communicator::split`].
    ///
    /// # Errors
    /// As of [`shm_core::Communicator::split`]: where one group has no room no rank gets a communicator.
    pub fn split(&self, color: Option<u32>, key: i64) -> Result<Option<Self>> {
        Ok(self.node.split(color, key)?.map(|node| Self { node }))
    }

    /// The same group with calls of its own (MPI_Comm_dup): [`shm_core::Communicator::duplicate`].
    ///
    /// # Errors
    /// As of [`split`](Communicator::split).
    pub fn duplicate(&self) -> Result<Self> {
        Ok(Self { node: self.node.duplicate()? })
    }

    pub(crate) fn node(&self) -> &shm_core::Communicator {
        &self.node
    }

    pub(crate) fn node_mut(&mut self) -> &mut shm_core::Communicator {
        &mut self.node
    }

    /// What this rank has counted in this communicator.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.node.counters()
    }

    /// Begins to count anew.
    pub fn reset_counters(&self) {
        self.node.reset_counters();
    }

    /// Whether ranks copy from each other's private memory: [`shm_core::Communicator::reaching`].
    #[must_use]
    pub fn reaching(&self) -> Reaching {
        self.node.reaching()
    }

    /// Bytes of this rank's private memory that have become shared so far: [`shm_core::Communicator::converted`].
    #[must_use]
    pub fn converted(&self) -> u64 {
        self.node.converted()
    }

    /// Which algorithm a message of `bytes` bytes takes, and what it costs.
    ///
    /// # Errors
    /// [`Busy`](shm_core::Error::Busy), inside of a call.
    pub fn explain(&self, what: Collective, bytes: usize) -> Result<Explanation> {
        self.node.explain(what, bytes)
    }

    /// [`explain`](Communicator::explain), where all buffers lie in shared memory ([`alloc`](Communicator::alloc)).
    ///
    /// # Errors
    /// [`Busy`](shm_core::Error::Busy), inside of a call.
    pub fn explain_shared(&self, what: Collective, bytes: usize) -> Result<Explanation> {
        self.node.explain_shared(what, bytes)
    }

    /// [`explain`](Communicator::explain), where all ranks use each other's buffers where they lie: in shared memory,
    /// or in private memory by kernel-assisted copies.
    ///
    /// # Errors
    /// [`Busy`](shm_core::Error::Busy), inside of a call.
    pub fn explain_lent(&self, what: Collective, bytes: usize) -> Result<Explanation> {
        self.node.explain_lent(what, bytes)
    }
}

/// Where this process may run: package, NUMA node and L3, each plus one; 0 where its binding spans several.
pub(crate) fn own_place(machine: Option<&Machine>) -> [u32; 3] {
    let (Some(machine), Ok(pus)) = (machine, binding_of(None)) else { return [0; 3] };
    let place = machine.location(&pus);
    [place.package, place.numa, place.l3].map(|index| index.map_or(0, |index| index as u32 + 1))
}

/// Everybody's place, by rank.
pub(crate) fn exchange_places(node: &shm_core::Communicator, own: [u32; 3]) -> Result<Vec<[usize; 3]>> {
    let mut table = vec![0u32; 3 * node.size()];
    table[3 * node.rank()..][..3].copy_from_slice(&own);
    node.all_reduce_in_place(&mut table, BitOr)?;
    Ok(table.chunks_exact(3).map(|place| [place[0], place[1], place[2]].map(|index| index as usize)).collect())
}
