//! The one-sided form of an allreduce between nodes (Bayatpour et al., SALaR, CLUSTER 2018): each node reads its part
//! of everybody's vector, reduces it, and writes the result to everybody. No node takes part in what another reads or
//! writes.
//!
//! The first ranks of nodes have a window each, with room for a slice that waits to be read and for one that is being
//! written. Parts are read and written in an order that begins behind the own place, so that no node is everybody's
//! target at once.

use std::sync::Arc;

use shm_core::Element;
use shm_core::operator::Operator;

use super::communicator::HierComm;
use super::error::Result;
use super::flight::{Flight, chunks, slices};
use super::run::{Memory, Run};
use crate::schedule::{Algorithm, Goal, segment_range};
use crate::transport::{Transport, Window, all_gather};

/// Bytes of a slice, at most.
pub(super) const SLICE: usize = 1 << 20;

/// Alignment of a slice in the window.
const LINE: usize = 64;

/// The first ranks of nodes, in the order of the ring, and their windows.
pub(super) struct OneSided {
    /// Freed before the transport; leaked if the communicator has failed, since freeing waits for all.
    window: Option<Box<dyn Window>>,
    _transport: Box<dyn Transport>,
    /// Memory for what is read: aligned to a line.
    arrived: Vec<[u64; LINE / 8]>,
}

impl OneSided {
    /// Gives the window up without telling the others.
    pub fn leak(&mut self) {
        std::mem::forget(self.window.take());
    }
}

impl HierComm {
    /// Carries no call out one-sided from now on, whatever rules and table say: for a communicator that its ranks drop
    /// when they will, since MPI frees windows on all ranks together. The same on all ranks, before the first call.
    pub fn forgo_windows(&self) {
        self.has_windows.set(Some(false));
    }

    /// Whether one-sided calls can be made: asked of the transport once, by all first ranks together. Collective.
    fn has_windows(&self) -> Result<bool> {
        if let Some(has) = self.has_windows.get() {
            return Ok(has);
        }
        let mut has = [1_u8];
        if self.placement.local_rank(self.rank) == 0 {
            let firsts: Vec<usize> = self.ring.iter().map(|&node| self.placement.members(node)[0]).collect();
            let transport = self.network().transport.subset(&firsts).map_err(Into::into);
            let transport = self.settle(transport)?;
            let window = self.settle(transport.window(2 * SLICE).map_err(Into::into))?;
            let own = [u8::from(window.is_some())];
            let all = self.settle(all_gather(transport.as_ref(), &own, None).map_err(Into::into))?;
            has[0] = u8::from(all.iter().all(|one| *one == [1]));
            let mut one_sided = OneSided { window, _transport: transport, arrived: Vec::new() };
            if has[0] == 1 {
                self.one_sided.replace(Some(one_sided));
            } else {
                one_sided.leak();
                if self.rank == 0 {
                    shm_core::remark(format_args!(
                        "the network has no one-sided communication; allreduces use messages"
                    ));
                }
            }
        }
        self.on_node(self.node.process_at_rank(0).broadcast_into(&mut has))?;
        self.has_windows.set(Some(has[0] == 1));
        Ok(has[0] == 1)
    }

    /// An allreduce in the one-sided form. Returns whether the transport can do it; if not, nothing was done.
    pub(super) fn allreduce_one_sided<T: Element, O: Operator<T>>(
        &self,
        send: Option<&[T]>,
        recv: &mut [T],
        operator: &O,
    ) -> Result<bool> {
        let group = operator.group().get();
        let element = size_of::<T>() * group;
        if align_of::<T>() > LINE || element > SLICE || !self.has_windows()? {
            return Ok(false);
        }
        let slice = SLICE / element.max(1) * group;
        for (range, chunk) in slices(recv.len(), slice).zip(chunks(recv, slice)) {
            self.on_node(match send {
                Some(send) => self.reduce_to_first(&send[range], chunk, operator),
                None => self.reduce_to_first_in_place(chunk, operator),
            })?;
            if self.placement.local_rank(self.rank) == 0 {
                if let Some(one_sided) = self.one_sided.borrow_mut().as_mut() {
                    self.exchange_parts(one_sided, chunk, operator)?;
                }
            } else {
                // The first rank's two meetings.
                self.next_tag();
                self.next_tag();
            }
            self.on_node(self.node.process_at_rank(0).broadcast_into(chunk))?;
        }
        Ok(true)
    }

    /// Reduces a slice with those of the other nodes.
    fn exchange_parts<T: Element, O: Operator<T>>(
        &self,
        one_sided: &mut OneSided,
        vector: &mut [T],
        operator: &O,
    ) -> Result<()> {
        let OneSided { window: Some(window), arrived, .. } = one_sided else { return Ok(()) };
        let nodes = self.placement.nodes();
        let place = self.ring.iter().position(|&node| node == self.here).unwrap_or(0);
        let group = operator.group().get();
        let groups = segment_range(vector.len() / group, nodes, place);
        let part = groups.start * group..groups.end * group;
        let (offset, bytes) = (part.start * size_of::<T>(), part.len() * size_of::<T>());
        let own = vector.as_ptr().cast::<u8>();
        // SAFETY: the vector fits a slice; the others have read what was there before they came to the last meeting.
        unsafe { std::ptr::copy_nonoverlapping(own, window.base(), size_of_val(vector)) };
        self.settle(window.flush().map_err(Into::into))?;
        self.meet()?;

        // Read the own part of all others, each to a place of its own.
        let room = bytes.next_multiple_of(LINE);
        arrived.resize((room / LINE * (nodes - 1)).max(arrived.len()), [0; LINE / 8]);
        let others = || (1..nodes).map(|distance| (place + distance) % nodes);
        let arrived = arrived.as_mut_ptr().cast::<u8>();
        for (i, from) in others().enumerate() {
            // SAFETY: all have written their slice, and write no more before the next meeting; the places are this
            // rank's own.
            let begun = unsafe { window.get(from, offset, arrived.wrapping_add(i * room), bytes) };
            self.settle(begun.map_err(Into::into))?;
        }
        self.settle(window.flush().map_err(Into::into))?;
        // All nodes' parts, in the order of the ring.
        let mut operands = vec![std::ptr::null::<T>(); nodes];
        operands[place] = vector[part.clone()].as_ptr();
        for (i, from) in others().enumerate() {
            operands[from] = arrived.wrapping_add(i * room).cast_const().cast();
        }
        let result = window.base().wrapping_add(SLICE + offset);
        // Parts begin at any element, so the result is made where it is surely aligned, and copied.
        let mut combined = vector[part.clone()].to_vec();
        // SAFETY: each operand holds as many elements as the part, aligned, which nobody writes; the result is none of
        // them.
        unsafe { operator.fold(combined.as_mut_ptr(), &operands, part.len()) };
        // SAFETY: the place lies in the second half of the own window, where nobody else writes this part.
        unsafe { std::ptr::copy_nonoverlapping(combined.as_ptr().cast::<u8>(), result, bytes) };
        for to in others() {
            // SAFETY: this part of the others' second half is written by this rank alone, and read after the next
            // meeting.
            let begun = unsafe { window.put(to, SLICE + offset, combined.as_ptr().cast(), bytes) };
            self.settle(begun.map_err(Into::into))?;
        }
        self.settle(window.flush().map_err(Into::into))?;
        self.meet()?;
        self.settle(window.flush().map_err(Into::into))?;
        let from = window.base().wrapping_add(SLICE);
        // SAFETY: all have written their parts; together they are whole elements of the vector.
        unsafe {
            std::ptr::copy_nonoverlapping(from.cast_const(), vector.as_mut_ptr().cast::<u8>(), size_of_val(vector))
        };
        Ok(())
    }

    /// Waits until the first ranks of all nodes are here.
    pub(super) fn meet(&self) -> Result<()> {
        let peers: Arc<[usize]> = (0..self.placement.nodes()).map(|node| self.placement.members(node)[0]).collect();
        let program = self.program(Algorithm::Dissemination, Goal::Barrier, peers.len(), self.here)?;
        let mut flight = Flight::new(self);
        // SAFETY: a barrier touches no memory, and combines nothing.
        let run = unsafe { Run::new(program, peers, self.next_tag(), Memory::nothing(), None) };
        flight.begin(0, Some(run.expecting(self.is_alone())));
        flight.finish()?;
        Ok(())
    }
}
