//! Broadcast and reduce across nodes.
//!
//! On the root's node the root itself goes to the network, on the others the node's first rank does: no rank relays for
//! another of its node.

use std::sync::Arc;

use shm_core::operator::Operator;
use shm_core::{Collective, Element};

use super::communicator::HierComm;
use super::error::Result;
use super::flight::{Flight, chunks, slices};
use super::run::{Combiner, Memory, Run};
use crate::schedule::{Algorithm, Goal};

/// A rank of a communicator across nodes, as the root of a collective.
#[derive(Clone, Copy, Debug)]
pub struct HierProcess<'a> {
    comm: &'a HierComm,
    rank: usize,
}

impl HierComm {
    /// The process of a rank. A rank that is not there shows as [`shm_core::Error::Root`] in the call.
    #[must_use]
    pub fn process_at_rank(&self, rank: usize) -> HierProcess<'_> {
        HierProcess { comm: self, rank }
    }
}

impl HierProcess<'_> {
    /// Its rank.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Everybody's `buffer` becomes what this process has in its own (MPI 4.1, section 6.4).
    ///
    /// Collective: all ranks must give the same root, count and element type.
    ///
    /// # Cost
    /// For n bytes on N nodes: short messages, ceil(log2 N) rounds of n bytes; long ones are scattered and go round a
    /// ring, at most 2(N-1)/N n bytes sent by a node. Within the node, that of a broadcast there.
    ///
    /// # Errors
    /// As of [`HierComm::all_reduce_into`].
    ///
    /// # References
    /// Zhou et al. (2016): the ring leaves out what its receivers have from the scatter.
    pub fn broadcast_into<T: Element>(&self, buffer: &mut [T]) -> Result<()> {
        self.comm.broadcast(self.rank, buffer)
    }

    /// Contributes `send` to a reduction whose result this process gets: called by all ranks but this one (MPI 4.1,
    /// section 6.9.1).
    ///
    /// Collective: all ranks must give the same root, count, element type and operator. Operators that do not commute
    /// are applied in rank order.
    ///
    /// # Cost
    /// For n bytes on N nodes: short vectors ceil(log2 N) rounds of n bytes; long ones are halved and gathered, 2n
    /// bytes at most sent by a node. Within the node, that of a reduction there.
    ///
    /// # Errors
    /// As of [`HierComm::all_reduce_into`].
    pub fn reduce_into<T: Element, O: Operator<T>>(&self, send: &[T], operator: O) -> Result<()> {
        self.comm.reduce(self.rank, Some(send), None, &operator)
    }

    /// Contributes `send` and gets the result of the reduction in `recv`: called by this process itself.
    ///
    /// # Errors
    /// As of [`reduce_into`](HierProcess::reduce_into).
    pub fn reduce_into_root<T: Element, O: Operator<T>>(&self, send: &[T], recv: &mut [T], operator: O) -> Result<()> {
        self.comm.reduce(self.rank, Some(send), Some(recv), &operator)
    }

    /// [`reduce_into_root`](HierProcess::reduce_into_root) with one buffer for contribution and result (MPI_IN_PLACE).
    ///
    /// # Errors
    /// As there.
    pub fn reduce_into_root_in_place<T: Element, O: Operator<T>>(&self, buffer: &mut [T], operator: O) -> Result<()> {
        self.comm.reduce(self.rank, None, Some(buffer), &operator)
    }
}

/// Who acts for the nodes in a rooted call.
struct Envoys {
    /// The ranks that go to the network, in the order in which the schedule counts them.
    peers: Arc<[usize]>,
    /// The root among them.
    root: u32,
    /// This rank among them, if it is one.
    own: Option<usize>,
    /// The local rank of this node's.
    local: usize,
}

impl HierComm {
    fn envoys(&self, root: usize, ordered: bool) -> Envoys {
        let placement = &self.placement;
        let root_node = placement.node_of(root);
        let envoy = |node: usize| if node == root_node { root } else { placement.members(node)[0] };
        let order: Vec<usize> = if ordered { (0..placement.nodes()).collect() } else { self.ring.to_vec() };
        let peers: Arc<[usize]> = order.iter().map(|&node| envoy(node)).collect();
        let root = order.iter().position(|&node| node == root_node).unwrap_or(0) as u32;
        let own = peers.iter().position(|&rank| rank == self.rank);
        Envoys { peers, root, own, local: placement.local_rank(envoy(self.here)) }
    }

    /// Refuses a root that is not there, and a call that belongs to the other side of the root.
    fn check_root(&self, root: usize, why: Option<&'static str>) -> Result<()> {
        let why = if root >= self.size() { Some("it is no rank of this communicator") } else { why };
        match why {
            None => Ok(()),
            Some(why) => {
                let (rank, size) = (self.rank, self.size());
                self.settle(Err(shm_core::Error::Root { rank, size, root, why }.into()))
            }
        }
    }

    fn broadcast<T: Element>(&self, root: usize, buffer: &mut [T]) -> Result<()> {
        let _call = self.enter()?;
        self.check_root(root, None)?;
        let envoys = self.envoys(root, false);
        let at = self.node.process_at_rank(envoys.local);
        if self.placement.nodes() == 1 {
            return self.on_node(at.broadcast_into(buffer));
        }
        let bytes = size_of_val(buffer);
        self.name_to_node(Collective::Broadcast, root, bytes)?;
        let choice = self.choose(Collective::Broadcast, bytes, true);
        self.trace(Collective::Broadcast, bytes);
        let slice = self.slice_elements::<T>(Collective::Broadcast, bytes, 1, &choice);
        let mut chunks = chunks(buffer, slice);
        let mut flight = Flight::new(self);
        for i in 0..chunks.len() {
            let tag = self.next_tag();
            let run = match envoys.own {
                Some(own) => {
                    let goal = Goal::Broadcast { root: envoys.root };
                    let program = self.program(choice.algorithm, goal, envoys.peers.len(), own)?;
                    let memory = Memory::whole(chunks[i], 1);
                    // SAFETY: the buffer outlives the flight, and the chunk is left alone until its run has ended.
                    Some(unsafe { Run::new(program, Arc::clone(&envoys.peers), tag, memory, None) })
                }
                None => None,
            };
            flight.begin(i, run);
            while flight.len() > choice.flight || (i + 1 == chunks.len() && flight.len() > 0) {
                if let Some(first) = flight.finish()? {
                    self.on_node(at.broadcast_into(chunks[first]))?;
                }
            }
        }
        Ok(())
    }

    fn reduce<T: Element, O: Operator<T>>(
        &self,
        root: usize,
        send: Option<&[T]>,
        mut recv: Option<&mut [T]>,
        operator: &O,
    ) -> Result<()> {
        let _call = self.enter()?;
        self.check_root(
            root,
            match (root == self.rank, recv.is_some()) {
                (true, false) => Some("the root itself calls reduce_into_root, or reduce_into_root_in_place"),
                (false, true) => Some("ranks other than the root call reduce_into"),
                _ => None,
            },
        )?;
        let count = send.map_or_else(|| recv.as_ref().map_or(0, |recv| recv.len()), <[T]>::len);
        if let Some(found) = recv.as_ref().map(|recv| recv.len()).filter(|&found| found != count) {
            let (what, expected) = ("receive buffer", count);
            return self.settle(Err(shm_core::Error::Length { rank: self.rank, what, found, expected }.into()));
        }
        let group = operator.group().get();
        let bytes = count * size_of::<T>();
        let choice = self.choose(Collective::Reduce, bytes, self.may_reorder(&operator));
        if self.placement.nodes() > 1 {
            self.check_groups(count, operator)?;
            self.name_to_node(Collective::Reduce, root, bytes)?;
            if choice.flat {
                return self.reduce_flat(choice.algorithm, root, send, recv, operator);
            }
        }
        let envoys = self.envoys(root, !self.may_reorder(&operator));
        let at = self.node.process_at_rank(envoys.local);
        if self.placement.nodes() == 1 {
            return self.on_node(match (send, recv) {
                (Some(send), Some(recv)) => at.reduce_into_root(send, recv, operator),
                (Some(send), None) => at.reduce_into(send, operator),
                (None, Some(buffer)) => at.reduce_into_root_in_place(buffer, operator),
                (None, None) => Ok(()),
            });
        }
        self.trace(Collective::Reduce, bytes);
        let slice = self.slice_elements::<T>(Collective::Reduce, bytes, group, &choice);
        // What goes over the network: the root's vector, or copies of slices.
        let mut chunks: Option<Vec<&mut [T]>> = recv.as_mut().map(|recv| chunks(recv, slice));
        let mut copies: Vec<Vec<T>> = Vec::new();
        let mut flight = Flight::new(self);
        for (i, range) in slices(count, slice).enumerate() {
            let tag = self.next_tag();
            let Some(own) = envoys.own else {
                self.on_node(at.reduce_into(&send.unwrap_or(&[])[range], operator))?;
                continue;
            };
            let vector: &mut [T] = match &mut chunks {
                Some(chunks) => {
                    if let Some(send) = send {
                        self.on_node(at.reduce_into_root(&send[range], chunks[i], operator))?;
                    } else {
                        self.on_node(at.reduce_into_root_in_place(chunks[i], operator))?;
                    }
                    chunks[i]
                }
                None => {
                    let mut copy = send.unwrap_or(&[])[range].to_vec();
                    self.on_node(at.reduce_into_root_in_place(&mut copy, operator))?;
                    copies.push(copy);
                    copies.last_mut().map_or(&mut [], |copy| copy)
                }
            };
            let goal = Goal::Reduce { root: envoys.root };
            let program = self.program(choice.algorithm, goal, envoys.peers.len(), own)?;
            let (peers, memory) = (Arc::clone(&envoys.peers), Memory::whole(vector, group));
            // SAFETY: the chunk or copy, whose elements do not move, outlives the flight, as does the operator; it is
            // left alone until its run has ended.
            let run = unsafe { Run::new(program, peers, tag, memory, Some(Combiner::of::<T, O>(operator))) };
            flight.begin(i, Some(run));
            if flight.len() > choice.flight {
                flight.finish()?;
                if let Some(done) = (i + 1).checked_sub(flight.len() + 1).and_then(|done| copies.get_mut(done)) {
                    *done = Vec::new();
                }
            }
        }
        while flight.len() > 0 {
            flight.finish()?;
        }
        Ok(())
    }

    /// One schedule between all ranks, nodes left out.
    fn reduce_flat<T: Element, O: Operator<T>>(
        &self,
        algorithm: Algorithm,
        root: usize,
        send: Option<&[T]>,
        recv: Option<&mut [T]>,
        operator: &O,
    ) -> Result<()> {
        let mut copy: Vec<T>;
        let vector: &mut [T] = match (recv, send) {
            (Some(recv), Some(send)) => {
                recv.copy_from_slice(send);
                recv
            }
            (Some(recv), None) => recv,
            (None, send) => {
                copy = send.unwrap_or(&[]).to_vec();
                &mut copy
            }
        };
        let goal = Goal::Reduce { root: root as u32 };
        let program = self.program(algorithm, goal, self.size(), self.rank)?;
        let memory = Memory::whole(vector, operator.group().get());
        let (peers, tag) = ((0..self.size()).collect(), self.next_tag());
        let mut flight = Flight::new(self);
        // SAFETY: vector and operator outlive the flight, and are left alone.
        flight.begin(0, Some(unsafe { Run::new(program, peers, tag, memory, Some(Combiner::of::<T, O>(operator))) }));
        flight.finish()?;
        Ok(())
    }
}
