//! The communicator across nodes: made, divided, duplicated, ended.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, TryLockError};
use std::time::Duration;

use shm_core::job::{is_on, variable};
use shm_core::operator::{BitOr, Min};
use shm_core::{Buffer, Counters, Element, Zeroable};

use super::adapt::Search;
use super::alarm::{Alarm, Cause};
use super::choosing::{Lane, LaneKey, ProgramKey};
use super::error::{Error, Result, of_node};
use super::model::NetworkModel;
use super::network::Network;
use super::one_sided::OneSided;
use super::rules::{Choice, ClusterRules};
use super::settings::{Agreed, ClusterSettings, Cost, Words};
use crate::communicator::{exchange_places, own_place};
use crate::nodes::{self, Placement, Watch};
use crate::plan::TopologyPlan;
use crate::schedule::Program;
use crate::table::NetworkTable;
use crate::transport::Transport;

/// A rank's handle on a group of ranks on several nodes that call collectives together.
///
/// Its calls are barrier, broadcast, reduce and allreduce, with those that make communicators and buffers. The rules of
/// [`Communicator`](crate::Communicator) hold: every rank makes the same calls in the same order, a handle may move
/// between threads but not be used by two at once. What that has besides (`all_reduce_shared`, gathers, scatters,
/// alltoalls, scans) is not here, but on the node's own communicator, where there is one node
/// ([`single_node`](HierComm::single_node)).
///
/// While a rank waits in a call, messages that the program has under way through the same MPI move on.
///
/// When a rank has failed, [`shrink`](HierComm::shrink) makes a communicator of the others, where MPI can go on.
///
/// Dropping it is not collective, unless it has made `one-sided` calls: MPI frees their windows on all ranks together.
/// A rank that drops it by a panic makes the others' calls return an error, as [`give_up`](HierComm::give_up) does. One
/// that drops it in good order tells nobody but those of its node who wait for it: a rank that ends while others count on
/// it calls that first, or `MPI_Abort`.
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
    pub(super) table: Option<Arc<NetworkTable>>,
    /// Whether contributions are combined in rank order always.
    pub(super) strict: bool,
    /// The ranks of this communicator that are the members of the node's whole job, by their rank there.
    pub(super) world: Arc<[Option<usize>]>,
    /// The host of each rank.
    pub(super) hosts: Arc<[String]>,
    /// How it was made, for a communicator of the ranks that are left when some have failed.
    pub(super) settings: Arc<ClusterSettings>,
    pub(super) words: Arc<Words>,
    /// The library that carries messages, and its version.
    library: Arc<str>,
    /// Ends the watch over the node's processes, once the last communicator of the node's job has gone: after `node`.
    watch: Arc<Watch>,
    /// Runs that were begun so far, counted alike on all ranks: tags are made of it.
    pub(super) runs: Cell<u32>,
    pub(super) programs: RefCell<HashMap<ProgramKey, Arc<Program>>>,
    pub(super) lanes: RefCell<HashMap<LaneKey, Lane>>,
    /// What the last call of each collective did, and on how many bytes with what kind of operator.
    pub(super) choices: Cell<[Option<(usize, bool, Choice)>; 4]>,
    pub(super) searches: RefCell<HashMap<u32, Search>>,
    /// Whether the network has one-sided communication, once that was asked; and what this rank has for it.
    pub(super) has_windows: Cell<Option<bool>>,
    pub(super) one_sided: RefCell<Option<OneSided>>,
    /// What the network costs.
    pub(super) model: Cell<NetworkModel>,
    pub(super) broken: Cell<bool>,
    /// The rank whose end was the end of this communicator.
    pub(super) lost: Cell<Option<usize>>,
    /// The process that made it, and whether its thread was unwinding.
    made_by: (u32, bool),
    pub(super) debug: bool,
    pub(super) traced: Cell<[u64; 4]>,
}

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
    /// duplicate of its own, so that no receive of the program can match its messages, and must be dropped before MPI
    /// ends.
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
        let how = nodes::Settings { tuning: Some(agreed.tuning.clone()), ..settings.nodes.clone() };
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
            other => of_node(other, &placement, here, |rank| placement.rank_at(here, rank).unwrap_or(rank)),
        };
        let places = exchange_places(&joined.node, own_place(machine.as_ref())).map_err(on_node)?;
        let plan = TopologyPlan::new(agreed.trees.clone(), places, joined.node.crowd());
        joined.node.set_plan(Arc::new(plan)).map_err(on_node)?;
        if transport.rank() == 0 {
            joined.remarks.iter().for_each(|remark| shm_core::remark(format_args!("{remark}")));
        }
        let ring = agreed.ring(&placement)?;
        Ok((joined.node, Arc::new(joined.watch), agreed, placement, ring, joined.hosts.into()))
    }

    fn assemble(parts: Parts) -> Result<Self> {
        let Parts { node, watch, transport, placement, ring, world, hosts, rules, settings, words } = parts;
        let rank = transport.rank();
        let here = placement.node_of(rank);
        let alarm = Alarm::among(transport.as_ref(), &placement)?;
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
            made_by: (std::process::id(), std::thread::panicking()),
            debug: variable("PHALANX_DEBUG").is_some_and(|value| is_on(&value)),
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

    /// Makes a vector of `len` elements in the node's shared memory, all zero: [`shm_core::Communicator::alloc`]. Not
    /// collective.
    ///
    /// # Errors
    /// [`Error::Node`], as [`shm_core::Communicator::alloc`]; the communicator is as it was.
    pub fn alloc<T: Element + Zeroable>(&self, len: usize) -> Result<Buffer<T>> {
        self.node.alloc(len).map_err(|error| self.translated(error))
    }

    /// Makes a copy of a vector in the node's shared memory: [`shm_core::Communicator::alloc_copy`]. Not collective.
    ///
    /// # Errors
    /// As [`alloc`](HierComm::alloc).
    pub fn alloc_copy<T: Element>(&self, values: &[T]) -> Result<Buffer<T>> {
        self.node.alloc_copy(values).map_err(|error| self.translated(error))
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

    /// Divides the group: ranks of one `color` form a new communicator, ordered by `key`, then by rank. A rank without
    /// a color takes part in the call and gets none (MPI_Comm_split; MPI 4.1, section 7.4.2).
    ///
    /// Collective.
    ///
    /// # Errors
    /// [`Error::NoRoom`], or on the node in question [`shm_core::Error::ArenaExhausted`] or
    /// [`shm_core::Error::Memory`], when a node has no room for another communicator: nothing is kept, and this one is
    /// as it was. Others as of the other calls.
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
            Err(error) => return Err(self.translated(error)),
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

    /// The same group with calls of its own (MPI_Comm_dup; MPI 4.1, section 7.4.2).
    ///
    /// Collective.
    ///
    /// # Errors
    /// As of [`split`](HierComm::split).
    pub fn duplicate(&self) -> Result<Self> {
        let copy = self.split(Some(0), self.rank as i64)?;
        Ok(copy.expect("a rank with a color is in a group"))
    }
}

impl Drop for HierComm {
    fn drop(&mut self) {
        // Others may be in a call, or come to one, in which they wait for this rank. Those of one node see that it has
        // gone. A child of this process, or a destructor that makes a communicator, is no rank that fails.
        let by_panic = std::thread::panicking() && self.made_by == (std::process::id(), false);
        let is_news = by_panic && !self.broken.get() && self.placement.nodes() > 1;
        if is_news && self.reach().is_ok_and(|network| network.transport.ready().is_ok()) {
            self.break_off(self.rank, None);
        }
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
