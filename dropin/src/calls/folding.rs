//! Reductions, carried out: where operands and results lie meanwhile.

use hier::operator::Operator;
use hier::{Element, HierComm, NodeCommunicator};

use super::fault::Fault;
use super::packing::{pack, unpack};
use super::reduction::{Arguments, Goal, Lengths, Parts, Plan, Way};
use super::room::Room;
use crate::abi::{self, Word};
use crate::local::{Bytewise, Local};
use crate::operators::{Kernel, Shape};
use crate::types::Type;

/// The widths of blocks, across nodes and of elements with gaps: powers of two, and what a few numbers of four or eight
/// bytes take.
macro_rules! widths {
    ($with:ident) => {
        $with!(1 2 4 8 12 16 20 24 32 40 48 56 64 72 80 96 128 256 512 1024 2048 4096)
    };
}

macro_rules! list {
    ($($size:literal)*) => { &[$($size),*] };
}

const WIDTHS: &[usize] = widths!(list);

/// Whether elements are folded as they lie, `on_one_node` or across nodes; others are copied.
pub fn lie_well(of: &Type, on_one_node: bool) -> bool {
    fills_extents(of) && (on_one_node || WIDTHS.contains(&of.size))
}

/// Whether elements have no gaps.
fn fills_extents(of: &Type) -> bool {
    of.size as isize == of.extent
}

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
                let local = Local::new(self.op, self.datatype, of.extent as usize, *commutative);
                self.by_library(comm, plan, &local)?;
                local.failure().map_or(Ok(()), |code| Err(Fault::Operator(code)))
            }
        }
    }

    #[cold]
    fn by_library(&self, comm: &HierComm, plan: &Plan, local: &Local) -> Result<(), Fault> {
        macro_rules! blocks {
            ($($size:literal)*) => {
                match plan.of().extent as usize {
                    $(..=$size => self.in_blocks::<$size>(comm, plan, local),)*
                    _ => unreachable!("the plan takes no longer elements"),
                }
            };
        }
        if fills_extents(plan.of()) && comm.single_node().is_some() {
            return self.in_bytes(comm, plan, &Bytewise(local));
        }
        widths!(blocks)
    }

    /// Elements without gaps, within a node: as the bytes that they are.
    fn in_bytes(&self, comm: &HierComm, plan: &Plan, bytewise: &Bytewise<'_>) -> Result<(), Fault> {
        let extent = plan.of().extent as usize;
        let scaled;
        let goal = match self.goal {
            Goal::Parts(parts) => {
                scaled = parts.scaled(extent);
                Goal::Parts(&scaled)
            }
            goal => goal,
        };
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
            place if place.is_null() => Some(room.blocks::<1>(places).as_flattened_mut()),
            // SAFETY: by MPI's contract so many elements may be written there, and nothing overlaps them.
            place => Some(unsafe { std::slice::from_raw_parts_mut(place, places) }),
        };
        reduce(comm, goal, if in_place { None } else { Some(send()) }, recv, bytewise)
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

    /// Elements as blocks of `N` bytes.
    fn in_blocks<const N: usize>(&self, comm: &HierComm, plan: &Plan, local: &Local) -> Result<(), Fault>
    where
        [u8; N]: Element,
    {
        let gets = self.goal.has_place(comm.rank());
        let in_place = gets && (abi::is_in_place(self.send) || self.send == self.recv);
        let (of, count) = (plan.of(), plan.count);
        let extent = of.extent as usize;
        if extent == N && of.size == N && (self.recv != 0 || !gets) {
            // SAFETY: by MPI's contract so many elements are there, which nobody writes meanwhile.
            let send = || unsafe { std::slice::from_raw_parts(self.send as *const [u8; N], count) };
            let places = if in_place { count } else { self.goal.results(count) };
            // SAFETY: by MPI's contract so many elements may be written there, and nothing overlaps them.
            let recv = || unsafe { std::slice::from_raw_parts_mut(self.recv as *mut [u8; N], places) };
            let send = if in_place { None } else { Some(send()) };
            let recv = if gets { Some(recv()) } else { None };
            return reduce(comm, self.goal, send, recv, local);
        }
        // Elements with gaps, or of a width that is none of those: in blocks, and back.
        let from = if in_place { self.recv } else { self.send };
        let mut room = Room::of(count.saturating_mul(N))?;
        let blocks = room.blocks::<N>(count);
        // A plan has an element at least; what lies before the first one's data, or behind the last one's, need not be
        // the program's.
        let held = (count - 1) * extent + of.reach - of.start;
        // SAFETY: by MPI's contract there are so many elements, whose data take so many bytes, which nobody writes
        // meanwhile.
        let data = unsafe { std::slice::from_raw_parts((from as *const u8).wrapping_add(of.start), held) };
        if extent == N {
            blocks.as_flattened_mut()[of.start..][..held].copy_from_slice(data);
        } else {
            for (block, data) in blocks.iter_mut().zip(data.chunks(extent)) {
                block[of.start..of.reach].copy_from_slice(&data[..of.reach - of.start]);
            }
        }
        if !gets {
            return reduce(comm, self.goal, Some(blocks), None, local);
        }
        reduce(comm, self.goal, None, Some(&mut *blocks), local)?;
        if !self.goal.gets(comm.rank()) {
            return Ok(());
        }
        let count = self.goal.results(count);
        if count == 0 {
            return Ok(());
        }
        if of.size == extent {
            // SAFETY: by MPI's contract so many elements may be written there, and nothing overlaps them.
            let results = unsafe { std::slice::from_raw_parts_mut(self.recv as *mut u8, count * extent) };
            for (element, block) in results.chunks_exact_mut(extent).zip(&*blocks) {
                element.copy_from_slice(&block[..extent]);
            }
            return Ok(());
        }
        // By the datatype, so that gaps are left alone.
        let elements = blocks.as_flattened_mut();
        if extent < N {
            (1..count).for_each(|i| elements.copy_within(i * N..i * N + extent, i * extent));
        }
        let data = pack(elements.as_ptr().cast(), count, self.datatype, count * of.size)?;
        unpack(&data, self.recv as *mut _, count, self.datatype)
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
