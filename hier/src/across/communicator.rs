//! The communicator across nodes: made, divided, duplicated, ended.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use shm_core::operator::{BitOr, Min, Operator};
use shm_core::{Buffer, Collective, Counters, Element, Zeroable};

use super::adapt::Search;
use super::alarm::{Alarm, Cause};
use super::error::{Error, Result, of_node};
use super::model::NetworkModel;
use super::network::Network;
use super::one_sided::OneSided;
use super::rules::{Choice, ClusterRules, Rule, Setting};
use super::settings::{Agreed, ClusterSettings, Cost, Words};
use crate::communicator::{exchange_places, own_place};
use crate::nodes::{self, Placement, Watch};
use crate::plan::TopologyPlan;
use crate::schedule::{Algorithm, Goal, Program};
use crate::table::NetworkTable;
use crate::transport::Transport;

/// A rank's handle on a group of ranks on several nodes that call collectives together.
///
/// Its calls are those of [`Communicator`](crate::Communicator), whose rules hold: every rank makes the same calls in the same
/// order, a handle may move between threads but not be used by two at once.
///
/// While a rank waits in a call, messages that the program has under way through the same MPI move on.
///
/// When a rank has failed, [`shrink`](HierComm::shrink) makes a communicator of the others, where MPI can go on.
///
/// Dropping it is not collective, unless it has made `one-sided` calls: MPI frees their windows on all ranks together.
pub struct HierComm {
    pub(super) node: shm_core::Communicator,
    pub(super) network: Arc<Mutex<Network>>,
    pub(super) placement: Arc<Placement>,
    /// Nodes in the order of the ring.
    pub(super) ring: Arc<[usize]>,
    pub(super) rank: usize,
    /// This rank's node.
    pub(super) here: usize,
    pub(super) rules: ClusterRules,
    /// What was measured across nodes, if a table says something of that.
    table: Option<Arc<NetworkTable>>,
    /// Whether contributions are combined in rank order always.
    strict: bool,
    /// The ranks of this communicator that are the members of the node's whole job, by their rank there.
    world: Arc<[Option<usize>]>,
    /// The host of each rank.
    hosts: Arc<[String]>,
    /// How it was made, for a communicator of the ranks that are left when some have failed.
    pub(super) settings: Arc<ClusterSettings>,
    pub(super) words: Arc<Words>,
    /// The library that carries messages, and its version.
    library: Arc<str>,
    /// Ends the watch over the node's processes, once the last communicator of the node's job has gone: after `node`.
    watch: Arc<Watch>,
    /// Runs that were begun so far, counted alike on all ranks: tags are made of it.
    runs: Cell<u32>,
    programs: RefCell<HashMap<ProgramKey, Arc<Program>>>,
    lanes: RefCell<HashMap<LaneKey, Lane>>,
    /// What the last call of each collective did, and on how many bytes with what kind of operator.
    choices: Cell<[Option<(usize, bool, Choice)>; 4]>,
    pub(super) searches: RefCell<HashMap<u32, Search>>,
    /// Whether the network has one-sided communication, once that was asked; and what this rank has for it.
    pub(super) has_windows: Cell<Option<bool>>,
    pub(super) one_sided: RefCell<Option<OneSided>>,
    /// What the network costs.
    pub(super) model: Cell<NetworkModel>,
    broken: Cell<bool>,
    /// The rank whose end was the end of this communicator.
    pub(super) lost: Cell<Option<usize>>,
    pub(super) debug: bool,
    traced: Cell<[u64; 4]>,
}

/// The ranks that reduce a share with each other, one of each node, and this rank's place among them.
#[derive(Clone)]
pub(super) struct Lane {
    pub peers: Arc<[usize]>,
    pub place: usize,
}

/// Leaders a node, share, whether nodes stand in the order of their ranks.
type LaneKey = (usize, usize, bool);

/// Algorithm, goal, ranks, rank.
type ProgramKey = (Algorithm, Goal, u32, u32);

/// Schedules use the tags below this one.
const TAGS: u32 = 16_000;

/// What [`HierComm::assemble`] puts together.
struct Parts {
    node: shm_core::Communicator,
    watch: Arc<Watch>,
    transport: Box<dyn Transport>,
    placement: Arc<Placement>,
    ring: Arc<[usize]>,
    world: Arc<[Option<usize>]>,
    hosts: Arc<[String]>,
    rules: ClusterRules,
    settings: Arc<ClusterSettings>,
    words: Arc<Words>,
}

impl HierComm {
    /// The communicator of the ranks of an MPI communicator: finds the nodes, and makes each node's segment. It has a
    /// duplicate of its own, so that no receive of the program can match its messages, and must be dropped before MPI ends.
    ///
    /// Collective over the communicator. `PHALANX_CLUSTER`, `PHALANX_TOPOLOGY`, `PHALANX_NETWORK`,
    /// `PHALANX_TABLE`, `PHALANX_ALGORITHM` and `PHALANX_TREES`, as rank 0 sees them, change how
    /// calls are carried out (see [`ClusterRules`] and [`ClusterSettings::topology`]).
    ///
    /// # Errors
    /// [`Error::Network`]: MPI is not initialised, or this thread may not use it, or every process believes to be alone;
    /// [`Error::Nodes`], [`Error::Rules`], [`Error::Topology`].
    #[cfg(feature = "mpi")]
    pub fn from_mpi<C: ::mpi::topology::Communicator>(communicator: &C) -> Result<Self> {
        let transport = crate::transport::mpi::MpiTransport::new(communicator)?;
        Self::over(Box::new(transport), &ClusterSettings::from_environment())
    }

    /// The communicator of the ranks of a transport: finds the nodes, and makes each node's segment.
    ///
    /// Collective over the ranks of the transport.
    ///
    /// # Errors
    /// [`Error::Nodes`], [`Error::Rules`], [`Error::Topology`], [`Error::Network`].
    pub fn over(transport: Box<dyn Transport>, settings: &ClusterSettings) -> Result<Self> {
        Self::over_by(transport, settings, None)
    }

    /// [`over`](HierComm::over), by words that were agreed on before.
    pub(super) fn over_by(
        transport: Box<dyn Transport>,
        settings: &ClusterSettings,
        known: Option<&Words>,
    ) -> Result<Self> {
        let found = Self::find(transport.as_ref(), settings, known).inspect_err(|_| {
            // Others may wait for messages of this rank.
            transport.revoke();
        });
        let (node, watch, agreed, placement, ring, hosts) = found?;
        let rank = transport.rank();
        let world = placement.members(placement.node_of(rank)).iter().map(|&rank| Some(rank)).collect();
        // Whether it is to be measured is rank 0's word, which is in what was agreed on.
        let usual = !matches!(settings.network, Cost::Given(_));
        let (rules, settings, words) = (agreed.rules, Arc::new(settings.clone()), Arc::new(agreed.words));
        let parts = Parts { node, watch, transport, placement, ring, world, hosts, rules, settings, words };
        let mut comm = Self::assemble(parts)?;
        comm.strict = agreed.tuning.strict != 0;
        comm.table = agreed.table.map(Arc::new);
        match agreed.network {
            Some(model) => {
                let measured = comm.measured().filter(|_| usual).map(|table| table.model);
                comm.set_model(measured.unwrap_or(model));
            }
            None => comm.measure_network()?,
        }
        Ok(comm)
    }

    /// Finds the nodes of a transport's ranks, and settles with them on everything else.
    #[expect(clippy::type_complexity, reason = "taken apart where it is made")]
    fn find(
        transport: &dyn Transport,
        settings: &ClusterSettings,
        known: Option<&Words>,
    ) -> Result<(shm_core::Communicator, Arc<Watch>, Agreed, Arc<Placement>, Arc<[usize]>, Arc<[String]>)> {
        let agreed = settings.agree(transport, known)?;
        let how = nodes::Settings { tuning: Some(agreed.tuning), ..settings.nodes.clone() };
        let joined = nodes::join(transport, &how)?;
        let placement = Arc::new(joined.placement);
        // Only trees that know sockets need to know the machine.
        let machine = if agreed.trees.are_aware() { topo::Machine::discover().ok() } else { None };
        let here = placement.node_of(transport.rank());
        let on_node = |error: shm_core::Error| match error {
            shm_core::Error::RankFailed { rank } if rank < placement.members(here).len() => {
                let rank = placement.members(here)[rank];
                Error::RankFailed { rank, host: joined.hosts.get(rank).cloned().unwrap_or_default() }
            }
            other => of_node(other, &placement, here),
        };
        let places = exchange_places(&joined.node, own_place(machine.as_ref())).map_err(on_node)?;
        let plan = TopologyPlan::new(agreed.trees.clone(), places, joined.node.crowd());
        joined.node.set_plan(Arc::new(plan)).map_err(on_node)?;
        if transport.rank() == 0 {
            joined.remarks.iter().for_each(|remark| eprintln!("phalanx: {remark}"));
        }
        let ring = agreed.ring(&placement)?;
        Ok((joined.node, Arc::new(joined.watch), agreed, placement, ring, joined.hosts.into()))
    }

    fn assemble(parts: Parts) -> Result<Self> {
        let Parts { node, watch, transport, placement, ring, world, hosts, rules, settings, words } = parts;
        let rank = transport.rank();
        let here = placement.node_of(rank);
        let local = placement.local_rank(rank);
        let alarm = if local < placement.fewest() {
            let circle: Vec<usize> = (0..placement.nodes()).map(|node| placement.members(node)[local]).collect();
            Alarm::among(transport.as_ref(), &circle, here)?
        } else {
            Alarm::deaf()
        };
        let library = transport.describe().into();
        let network = Arc::new(Mutex::new(Network::new(transport, alarm, placement.members(here).len() == 1)));
        let moved = Arc::clone(&network);
        node.set_idle(Some(Box::new(move || {
            let mut network = match moved.try_lock() {
                Ok(network) => network,
                // A run has panicked; the call that it was part of gives it up.
                Err(TryLockError::Poisoned(network)) => network.into_inner(),
                Err(TryLockError::WouldBlock) => return Some(Duration::from_millis(1)),
            };
            let nap = network.step_aside();
            if network.knows_alarm() {
                let failed = network.hear_of_failure();
                network.fail(Cause { rank, failed });
                return None;
            }
            Some(nap)
        })))?;
        Ok(Self {
            node,
            network,
            placement,
            ring,
            rank,
            here,
            rules,
            table: None,
            strict: false,
            world,
            hosts,
            settings,
            words,
            library,
            watch,
            runs: Cell::new(0),
            programs: RefCell::default(),
            lanes: RefCell::default(),
            choices: Cell::default(),
            searches: RefCell::default(),
            has_windows: Cell::new(None),
            one_sided: RefCell::new(None),
            model: Cell::default(),
            broken: Cell::new(false),
            lost: Cell::new(None),
            debug: std::env::var("PHALANX_DEBUG").is_ok_and(|value| !value.is_empty() && value != "0"),
            traced: Cell::new([0; 4]),
        })
    }

    /// This rank, from 0 on.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Ranks in the group.
    #[must_use]
    pub fn size(&self) -> usize {
        self.placement.ranks()
    }

    /// Which ranks are on which node.
    #[must_use]
    pub fn placement(&self) -> &Placement {
        &self.placement
    }

    /// Makes a vector of `len` elements in the node's shared memory, all zero: [`shm_core::Communicator::alloc`]. Not collective.
    ///
    /// # Errors
    /// As there.
    pub fn alloc<T: Element + Zeroable>(&self, len: usize) -> Result<Buffer<T>> {
        self.node.alloc(len).map_err(Error::from)
    }

    /// Makes a copy of a vector in the node's shared memory: [`shm_core::Communicator::alloc_copy`]. Not collective.
    ///
    /// # Errors
    /// As there.
    pub fn alloc_copy<T: Element>(&self, values: &[T]) -> Result<Buffer<T>> {
        self.node.alloc_copy(values).map_err(Error::from)
    }

    /// What this rank has counted within its node. Messages between nodes are not in it.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.node.counters()
    }

    /// What the network costs, as it was measured when the communicator was made.
    #[must_use]
    pub fn network_model(&self) -> NetworkModel {
        self.model.get()
    }

    /// What the network is: the library and its version.
    #[must_use]
    pub fn describe_network(&self) -> String {
        self.library.to_string()
    }

    /// Divides the group: ranks of one `color` form a new communicator, ordered by `key`, then by rank. A rank without a color takes
    /// part in the call and gets none.
    ///
    /// Collective.
    ///
    /// # Errors
    /// [`Error::NoRoom`], or [`shm_core::Error::ArenaExhausted`] on the node in question, when a node has no room for another
    /// communicator: nothing is kept, and this one is as it was. Others as of the other calls.
    pub fn split(&self, color: Option<u32>, key: i64) -> Result<Option<Self>> {
        let _call = self.enter()?;
        let mut wishes = vec![[0_u64; 3]; self.size()];
        wishes[self.rank] = [u64::from(color.is_some()), u64::from(color.unwrap_or(0)), key as u64];
        let mut flat: Vec<u64> = wishes.concat();
        self.all_reduce_in_place(&mut flat, BitOr)?;
        for (wish, row) in wishes.iter_mut().zip(flat.chunks_exact(3)) {
            wish.copy_from_slice(row);
        }
        let mut members: Vec<usize> =
            (0..self.size()).filter(|&rank| wishes[rank][..2] == wishes[self.rank][..2]).collect();
        members.sort_by_key(|&rank| (wishes[rank][2] as i64, rank));
        let place = members.iter().position(|&rank| rank == self.rank).unwrap_or(0);
        let node = match self.node.split(color, place as i64) {
            Err(error @ (shm_core::Error::ArenaExhausted { .. } | shm_core::Error::Memory { .. })) => Err(error),
            other => Ok(self.on_node(other)?),
        };
        // One node without room is none for all: before anybody makes what others would wait for.
        let mut all = [u8::from(node.is_ok())];
        self.all_reduce_in_place(&mut all, Min)?;
        let node = match node {
            Err(error) => return Err(error.into()),
            Ok(_) if all[0] == 0 => return Err(Error::NoRoom { rank: self.rank }),
            Ok(None) => return Ok(None),
            Ok(Some(node)) => node,
        };
        let transport = self.network().transport.subset(&members).map_err(Error::from);
        let transport = self.settle(transport)?;
        self.part(&members, node, transport).map(Some)
    }

    /// The communicator of some ranks of this one, over their node's and between nodes, both of which were made for it.
    pub(super) fn part(
        &self,
        members: &[usize],
        node: shm_core::Communicator,
        transport: Box<dyn Transport>,
    ) -> Result<Self> {
        let labels: Vec<usize> = members.iter().map(|&rank| self.placement.node_of(rank)).collect();
        let placement = Arc::new(Placement::new(&labels));
        // The ring goes round the nodes that are left, in the order in which it went before.
        let ring = self
            .ring
            .iter()
            .filter_map(|old| labels.iter().position(|label| label == old))
            .map(|rank| placement.node_of(rank))
            .collect();
        let world = self.world.iter().map(|rank| members.iter().position(|&member| Some(member) == *rank)).collect();
        let hosts = members.iter().map(|&member| self.hosts[member].clone()).collect();
        let mut part = Self::assemble(Parts {
            node,
            watch: Arc::clone(&self.watch),
            transport,
            placement,
            ring,
            world,
            hosts,
            rules: self.rules.clone(),
            settings: Arc::new(self.settings_for(members)),
            words: Arc::clone(&self.words),
        })?;
        part.set_model(self.model.get());
        (part.table, part.strict) = (self.table.clone(), self.strict);
        Ok(part)
    }

    /// The same group with calls of its own.
    ///
    /// Collective.
    ///
    /// # Errors
    /// As of [`split`](HierComm::split).
    pub fn duplicate(&self) -> Result<Self> {
        let copy = self.split(Some(0), self.rank as i64)?;
        Ok(copy.expect("a rank with a color is in a group"))
    }

    /// What a call on `bytes` bytes with an operator that commutes does, for people.
    #[must_use]
    pub fn explain(&self, what: Collective, bytes: usize) -> String {
        let choice = self.choose(what, bytes, !self.strict);
        let nodes = self.placement.nodes();
        if nodes == 1 {
            return "within the node".to_owned();
        }
        if choice.one_sided {
            return format!("one-sided among {nodes} nodes, where the network can, else {}", choice.algorithm);
        }
        let slice = match self.slice_bytes(what, bytes, &choice) {
            slice if slice >= bytes => "whole".to_owned(),
            slice => format!("slices of {slice} bytes, {} in flight", choice.flight),
        };
        let source = match self.measured().map(|table| table.rule(what, bytes)) {
            Some(rule) if rule != Rule::default() => ", by the table",
            _ => "",
        };
        format!("{} among {nodes} nodes, leaders a node: {}, {slice}{source}", choice.algorithm, choice.leaders)
    }

    /// What was measured on such a communicator, if a table says something of it.
    fn measured(&self) -> Option<&NetworkTable> {
        let placement = &self.placement;
        self.table.as_deref().filter(|table| table.fits(placement.nodes(), placement.fewest(), placement.most()))
    }

    /// Whether contributions may be combined in another order than that of ranks.
    pub(super) fn may_reorder<T: Element, O: Operator<T>>(&self, operator: &O) -> bool {
        operator.is_commutative() && !self.strict
    }

    /// Carries calls out by these rules from now on, the same on all ranks.
    pub(crate) fn set_rules(&mut self, rules: ClusterRules) {
        self.rules = rules;
        self.choices.take();
    }

    /// Sets what the network costs: choices follow from it.
    pub(super) fn set_model(&self, model: NetworkModel) {
        self.model.set(model);
        self.choices.take();
    }

    /// The table's word on a call.
    pub(super) fn choose(&self, what: Collective, bytes: usize, commutative: bool) -> Choice {
        let mut choices = self.choices.get();
        match choices[what as usize] {
            Some((of, kind, choice)) if (of, kind) == (bytes, commutative) => choice,
            _ => {
                let choice = self.choose_anew(what, bytes, commutative);
                choices[what as usize] = Some((bytes, commutative, choice));
                self.choices.set(choices);
                choice
            }
        }
    }

    fn choose_anew(&self, what: Collective, bytes: usize, commutative: bool) -> Choice {
        let setting = Setting {
            nodes: self.placement.nodes(),
            ranks: self.size(),
            fewest: self.placement.fewest(),
            block: self.placement.is_block(),
            commutative,
            network: self.model.get(),
        };
        let measured = self.measured().map_or(Rule::default(), |table| table.rule(what, bytes));
        self.rules.choose(what, bytes, setting, measured)
    }

    /// Says on stderr what a call does, once for each size class (`PHALANX_DEBUG`).
    pub(super) fn trace(&self, what: Collective, bytes: usize) {
        let class = 1_u64 << super::adapt::class(bytes).min(63);
        let mut traced = self.traced.get();
        if self.debug && self.rank == 0 && traced[what as usize] & class == 0 {
            traced[what as usize] |= class;
            self.traced.set(traced);
            eprintln!("phalanx: {what} of {bytes} bytes on {} ranks: {}", self.size(), self.explain(what, bytes));
        }
    }

    /// Begins a call, which must be held until it ends: a panic that leaves it (of a user-defined operator) ends this
    /// communicator on all nodes.
    ///
    /// # Errors
    /// When an earlier call has failed, or this rank is in the midst of one, or may not make one.
    pub(super) fn enter(&self) -> Result<Call<'_>> {
        if self.broken.get() {
            let broken = Error::Broken { rank: self.rank };
            return Err(self.lost.get().map_or(broken, |rank| self.rank_failed(rank)));
        }
        self.reach()?.transport.ready()?;
        Ok(Call { comm: self, unwinding: std::thread::panicking() })
    }

    /// Passes a part's outcome on; should it be an error, ends this communicator on all nodes.
    pub(super) fn settle<T>(&self, outcome: Result<T>) -> Result<T> {
        let error = match outcome {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        self.broken.set(true);
        self.node.give_up();
        let heard = self.network().alarmed();
        let failed = error.failed_rank().or(heard.and_then(|cause| cause.failed));
        let failed = failed.or_else(|| if error.is_second_hand() { self.network().hear_of_failure() } else { None });
        let heard = heard.filter(|cause| cause.rank != self.rank);
        let culprit = match error {
            Error::Node(shm_core::Error::Refused { rank }) => rank,
            _ => self.rank,
        };
        self.break_off(culprit, failed);
        // What a node's ranks find out first is that their first rank went no further: that a rank has failed, or that it was
        // told to by another node, says more.
        Err(match (failed, heard) {
            (Some(rank), _) => self.rank_failed(rank),
            (None, Some(cause)) => Error::Elsewhere { rank: cause.rank },
            (None, None) => error,
        })
    }

    /// Ends this communicator on all nodes, because of a rank that cannot go on, or of one that has failed.
    pub(super) fn break_off(&self, rank: usize, failed: Option<usize>) {
        self.broken.set(true);
        self.lost.set(self.lost.get().or(failed));
        self.node.give_up();
        self.network().fail(Cause { rank, failed });
    }

    fn rank_failed(&self, rank: usize) -> Error {
        Error::RankFailed { rank, host: self.hosts.get(rank).cloned().unwrap_or_default() }
    }

    /// The outcome of a call on the node, with an error in terms of this communicator's ranks, and the end of this
    /// communicator on all nodes, should it be one.
    pub(super) fn on_node<T>(&self, outcome: shm_core::Result<T>) -> Result<T> {
        self.settle(outcome.map_err(|error| self.translated(error)))
    }

    pub(super) fn translated(&self, error: shm_core::Error) -> Error {
        let shm_core::Error::RankFailed { rank } = error else { return of_node(error, &self.placement, self.here) };
        match self.world.get(rank).copied().flatten() {
            Some(rank) => self.rank_failed(rank),
            None => Error::NodeFailed { rank: self.rank, host: self.hosts[self.rank].clone() },
        }
    }

    /// The network, for a call that an operator may make in the midst of another one.
    ///
    /// # Errors
    /// [`shm_core::Error::Busy`], there: only this rank uses it, and who finds it locked is inside of a step of the network.
    pub(super) fn reach(&self) -> Result<MutexGuard<'_, Network>> {
        match self.network.try_lock() {
            Err(TryLockError::WouldBlock) => Err(shm_core::Error::Busy { rank: self.rank }.into()),
            Err(TryLockError::Poisoned(network)) => Ok(network.into_inner()),
            Ok(network) => Ok(network),
        }
    }

    pub(super) fn network(&self) -> MutexGuard<'_, Network> {
        // A panic while it was held leaves it whole: runs are stepped through or given up.
        self.network.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tag of the next run: all ranks count runs alike, whether they take part or not.
    pub(super) fn next_tag(&self) -> u32 {
        let run = self.runs.get();
        self.runs.set((run + 1) % TAGS);
        run
    }

    /// This node's place in the ring.
    pub(super) fn place_in_ring(&self) -> usize {
        self.ring.iter().position(|&node| node == self.here).unwrap_or(self.here)
    }

    /// The leaders of a share, round the ring, or in the order of nodes where operands must stay in order.
    pub(super) fn lane(&self, leaders: usize, share: usize, ordered: bool) -> Lane {
        let new = || {
            let leader = |node: usize| {
                let members = self.placement.members(node);
                members[share * members.len() / leaders]
            };
            let peers: Arc<[usize]> = match ordered {
                false => self.ring.iter().map(|&node| leader(node)).collect(),
                true => (0..self.placement.nodes()).map(leader).collect(),
            };
            let place = peers.iter().position(|&rank| rank == self.rank).unwrap_or(self.here);
            Lane { peers, place }
        };
        self.lanes.borrow_mut().entry((leaders, share, ordered)).or_insert_with(new).clone()
    }

    /// A program, kept for the next time.
    pub(super) fn program(&self, algorithm: Algorithm, goal: Goal, ranks: usize, rank: usize) -> Result<Arc<Program>> {
        let key = (algorithm, goal, ranks as u32, rank as u32);
        if let Some(program) = self.programs.borrow().get(&key) {
            return Ok(Arc::clone(program));
        }
        let program = Arc::new(algorithm.program(goal, key.2, key.3)?);
        self.programs.borrow_mut().insert(key, Arc::clone(&program));
        Ok(program)
    }
}

/// A call that runs.
pub(super) struct Call<'a> {
    comm: &'a HierComm,
    /// Whether the thread was unwinding when the call began.
    unwinding: bool,
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() && !self.unwinding {
            self.comm.break_off(self.comm.rank, None);
        }
    }
}

impl Drop for HierComm {
    fn drop(&mut self) {
        // Freeing windows waits for all, which some may never come to.
        if self.broken.get() {
            self.one_sided.get_mut().iter_mut().for_each(OneSided::leak);
        }
        // The hook holds the network, and the network the transport: MPI wants both gone before it ends.
        let _ = self.node.set_idle(None);
    }
}

impl std::fmt::Debug for HierComm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HierComm")
            .field("rank", &self.rank)
            .field("size", &self.size())
            .field("nodes", &self.placement.nodes())
            .finish_non_exhaustive()
    }
}
