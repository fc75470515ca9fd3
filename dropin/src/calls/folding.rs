//! Reductions, carried out: where operands and results lie meanwhile.

use std::num::NonZeroUsize;

use hier::operator::Operator;
use hier::{Element, HierComm, NodeCommunicator};

use super::fault::Fault;
use super::packing::{pack, unpack};
use super::reduction::{Arguments, Goal, Lengths, Parts, Plan, Way};
use super::room::Room;
use crate::abi::{self, Word};
use crate::local::Local;
use crate::operators::{Kernel, Shape};

impl Arguments<'_> {
    /// Carries it out.
    #[inline]
    pub fn carry_out(&self, comm: &HierComm, plan: &Plan) -> Result<(), Fault> {
        match &plan.way {
            Way::Kernel(_, kernel) => match kernel.shape {
                Shape::One => self.by_kernel::<u8>(comm, plan, kernel),
                Shape::Two => self.by_kernel::<u16>(comm, plan, kernel),
                Shape::Four => self.by_kernel::<u32>(comm, plan, kernel),
                Shape::Eight => self.by_kernel::<u64>(comm, plan, kernel),
                Shape::TwoFours => self.by_kernel::<[u32; 2]>(comm, plan, kernel),
                Shape::TwoEights => self.by_kernel::<[u64; 2]>(comm, plan, kernel),
            },
            Way::Local(by_library) => {
                let (of, commutative) = &**by_library;
                // Regular, as it is, it has one.
                let extent = NonZeroUsize::new(of.extent as usize).unwrap_or(NonZeroUsize::MIN);
                let local = Local::new(self.op, self.datatype, extent, *commutative);
                self.by_library(comm, plan, &local)?;
                local.failure().map_or(Ok(()), |code| Err(Fault::Operator(code)))
            }
        }
    }

    /// Elements as the bytes that they are, of which the operator takes an extent for one.
    #[cold]
    fn by_library(&self, comm: &HierComm, plan: &Plan, local: &Local) -> Result<(), Fault> {
        let (of, extent) = (plan.of(), plan.of().extent as usize);
        let scaled;
        let goal = match self.goal {
            Goal::Parts(parts) => {
                scaled = parts.scaled(extent);
                Goal::Parts(&scaled)
            }
            goal => goal,
        };
        if !of.fills_extent() {
            return self.without_gaps(comm, plan, goal, local);
        }
        let gets = goal.has_place(comm.rank());
        let in_place = gets && (abi::is_in_place(self.send) || self.send == self.recv);
        let bytes = plan.count * extent;
        // SAFETY: by MPI's contract so many elements are there, which nobody writes meanwhile.
        let send = || unsafe { std::slice::from_raw_parts(self.send as *const u8, bytes) };
        let places = if in_place { bytes } else { goal.results(bytes) };
        // A rank that gets nothing has a place for it all the same, and need not name one.
        let mut room = Room::of(if gets && self.recv == 0 { places } else { 0 })?;
        let recv = match self.recv as *mut u8 {
            _ if !gets => None,
            place if place.is_null() => Some(room.bytes(places)),
            // SAFETY: by MPI's contract so many elements may be written there, and nothing overlaps them.
            place => Some(unsafe { std::slice::from_raw_parts_mut(place, places) }),
        };
        reduce(comm, goal, if in_place { None } else { Some(send()) }, recv, local)
    }

    /// The same of copies of elements with gaps, which are left alone.
    fn without_gaps(&self, comm: &HierComm, plan: &Plan, goal: Goal<'_>, local: &Local) -> Result<(), Fault> {
        let gets = goal.has_place(comm.rank());
        let in_place = gets && (abi::is_in_place(self.send) || self.send == self.recv);
        let (of, count) = (plan.of(), plan.count);
        let extent = of.extent as usize;
        let from = if in_place { self.recv } else { self.send };
        let mut room = Room::of(count.saturating_mul(extent))?;
        let copy = room.bytes(count * extent);
        // A plan has an element at least; what lies before the first one's data, or behind the last one's, need not be
        // the program's.
        let held = (count - 1) * extent + of.reach - of.start;
        // SAFETY: by MPI's contract there are so many elements, whose data take so many bytes, which nobody writes
        // meanwhile.
        let data = unsafe { std::slice::from_raw_parts((from as *const u8).wrapping_add(of.start), held) };
        copy[of.start..][..held].copy_from_slice(data);
        if !gets {
            return reduce(comm, goal, Some(copy), None, local);
        }
        reduce(comm, goal, None, Some(&mut *copy), local)?;
        let results = self.goal.results(count);
        if !self.goal.gets(comm.rank()) || results == 0 {
            return Ok(());
        }
        let data = pack(copy.as_ptr().cast(), results, self.datatype, results * of.size)?;
        unpack(&data, self.recv as *mut _, results, self.datatype)
    }

    /// The contribution and the result, as vectors of their elements, where they lie.
    #[inline]
    fn by_kernel<T: Element>(&self, comm: &HierComm, plan: &Plan, kernel: &Kernel) -> Result<(), Fault> {
        let gets = self.goal.has_place(comm.rank());
        let is_aligned = |word: Word| (word as *const T).is_aligned();
        let in_place = gets && (abi::is_in_place(self.send) || self.send == self.recv);
        let has_gaps = !plan.of().is_plain;
        if has_gaps || !(in_place || is_aligned(self.send)) || gets && (self.recv == 0 || !is_aligned(self.recv)) {
            return self.aside::<T>(comm, plan, kernel);
        }
        // SAFETY: by MPI's contract so many elements are there, which nobody writes meanwhile; they are aligned.
        let send = || unsafe { std::slice::from_raw_parts(self.send as *const T, plan.count) };
        // In place all contributions are there, whatever this rank gets.
        let places = if in_place { plan.count } else { self.goal.results(plan.count) };
        // SAFETY: by MPI's contract so many elements may be written there, and nothing overlaps them.
        let recv = || unsafe { std::slice::from_raw_parts_mut(self.recv as *mut T, places) };
        let send = if in_place { None } else { Some(send()) };
        let recv = if gets { Some(recv()) } else { None };
        reduce(comm, self.goal, send, recv, kernel)
    }

    /// The same with copies, for vectors that are not aligned as their elements should be, have no place for a result, or
    /// whose elements have gaps, which are left alone.
    #[cold]
    fn aside<T: Element>(&self, comm: &HierComm, plan: &Plan, kernel: &Kernel) -> Result<(), Fault> {
        let gets = self.goal.has_place(comm.rank());
        let from = if abi::is_in_place(self.send) { self.recv } else { self.send };
        let mut copy: Vec<T> = Vec::with_capacity(plan.count);
        // SAFETY: there is room for them.
        unsafe { copy.as_mut_ptr().write_bytes(0, plan.count) };
        // SAFETY: by MPI's contract so many elements are there; there is room for them.
        unsafe { copy_data::<T>(plan, plan.count, from as *const u8, copy.as_mut_ptr().cast()) };
        // SAFETY: they were just written; kernels have elements of integers, and of those any bytes are some.
        unsafe { copy.set_len(plan.count) };
        if !gets {
            return reduce(comm, self.goal, Some(&copy), None, kernel);
        }
        reduce(comm, self.goal, None, Some(&mut copy), kernel)?;
        if !self.goal.gets(comm.rank()) {
            return Ok(());
        }
        // SAFETY: by MPI's contract so many elements may be written there, and so many are in the copy.
        unsafe { copy_data::<T>(plan, self.goal.results(plan.count), copy.as_ptr().cast(), self.recv as *mut u8) };
        Ok(())
    }
}

/// Copies `count` elements of a plan's type, as far as they are data: what lies in a gap, or behind the last one's data,
/// need not be the program's.
///
/// # Safety
/// So many elements are at `from`, and may be written at `to`; the two do not overlap.
unsafe fn copy_data<T>(plan: &Plan, count: usize, from: *const u8, to: *mut u8) {
    let of = plan.of();
    if of.is_plain {
        // SAFETY: by contract.
        return unsafe { std::ptr::copy_nonoverlapping(from, to, count * size_of::<T>()) };
    }
    for at in (0..count).map(|i| i * size_of::<T>()) {
        // SAFETY: by contract; the data of an element of a kernel, a value and its place, are its first bytes.
        unsafe { std::ptr::copy_nonoverlapping(from.wrapping_add(at), to.wrapping_add(at), of.size) };
    }
}

/// The call itself. Who gets the result passes `recv`; who passes no `send` contributes what is there.
#[inline]
fn reduce<T: Element, O: Operator<T>>(
    comm: &HierComm,
    goal: Goal<'_>,
    send: Option<&[T]>,
    recv: Option<&mut [T]>,
    operator: &O,
) -> Result<(), Fault> {
    match (comm.single_node(), goal, send, recv) {
        (Some(node), Goal::All, Some(send), Some(recv)) => node.all_reduce_into(send, recv, operator)?,
        (Some(node), Goal::All, None, Some(recv)) => node.all_reduce_in_place(recv, operator)?,
        (Some(node), Goal::Root(root), Some(send), Some(recv)) => {
            node.process_at_rank(root).reduce_into_root(send, recv, operator)?;
        }
        (Some(node), Goal::Root(root), None, Some(recv)) => {
            node.process_at_rank(root).reduce_into_root_in_place(recv, operator)?;
        }
        (Some(node), Goal::Root(root), send, None) => {
            node.process_at_rank(root).reduce_into(send.unwrap_or_default(), operator)?;
        }
        (Some(node), Goal::Scan, Some(send), Some(recv)) => node.scan_into(send, recv, operator)?,
        (Some(node), Goal::Scan, None, Some(recv)) => node.scan_in_place(recv, operator)?,
        (Some(node), Goal::Exscan, Some(send), Some(recv)) => node.exclusive_scan_into(send, recv, operator)?,
        (Some(node), Goal::Exscan, None, Some(recv)) => node.exclusive_scan_in_place(recv, operator)?,
        (Some(node), Goal::Parts(parts), Some(send), Some(recv)) => scatter(node, parts, send, recv, operator)?,
        (Some(node), Goal::Parts(parts), None, Some(recv)) => {
            let send = recv.to_vec();
            scatter(node, parts, &send, &mut recv[..parts.own], operator)?;
        }
        (None, Goal::All, Some(send), Some(recv)) => comm.all_reduce_into(send, recv, operator)?,
        (None, Goal::All, None, Some(recv)) => comm.all_reduce_in_place(recv, operator)?,
        (None, Goal::Root(root), Some(send), Some(recv)) => {
            comm.process_at_rank(root).reduce_into_root(send, recv, operator)?;
        }
        (None, Goal::Root(root), None, Some(recv)) => {
            comm.process_at_rank(root).reduce_into_root_in_place(recv, operator)?;
        }
        (None, Goal::Root(root), send, None) => {
            comm.process_at_rank(root).reduce_into(send.unwrap_or_default(), operator)?;
        }
        (None, Goal::Scan | Goal::Exscan | Goal::Parts(_), _, _) => unreachable!("they are carried out on one node"),
        (_, _, _, None) => unreachable!("everybody has a place for the result"),
    }
    Ok(())
}

/// A reduction whose result is scattered.
fn scatter<T: Element, O: Operator<T>>(
    node: &NodeCommunicator,
    parts: &Parts,
    send: &[T],
    recv: &mut [T],
    operator: &O,
) -> Result<(), Fault> {
    match &parts.lengths {
        Lengths::Even(_) => node.reduce_scatter_block_into(send, recv, operator)?,
        Lengths::Uneven(counts) => node.reduce_scatter_into(send, recv, counts, operator)?,
    }
    Ok(())
}
