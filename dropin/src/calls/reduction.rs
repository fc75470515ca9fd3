//! What reduce and allreduce have in common: what is folded by what, and where operands and results lie meanwhile.

use std::ffi::c_int;
use std::fmt;

use hier::operator::Operator;
use hier::{Element, HierComm, NodeCommunicator};
use mpi::ffi;

use super::bcast::{pack, unpack};
use crate::abi::{self, Word};
use crate::local::Local;
use crate::operators::{Kernel, Shape};
use crate::stats::Reason;
use crate::types::{self, Named, Reduction, Type};

/// The arguments of a reduction.
#[derive(Clone, Copy)]
pub struct Arguments<'a> {
    /// The contribution: MPI_IN_PLACE, or where it lies.
    pub send: Word,
    /// The result, where this rank gets one.
    pub recv: Word,
    pub count: isize,
    pub datatype: Word,
    pub op: Word,
    pub goal: Goal<'a>,
}

/// Who gets what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal<'a> {
    /// All ranks, everybody's.
    All,
    /// A root, everybody's.
    Root(usize),
    /// Each rank, that of the ranks up to it.
    Scan,
    /// Each rank but the first, that of the ranks before it.
    Exscan,
    /// Each rank its part of everybody's.
    Parts(&'a Parts),
}

/// The parts of a result, in the order of ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    pub lengths: Lengths,
    /// Elements of all.
    pub total: usize,
    /// Elements before this rank's.
    pub before: usize,
    /// This rank's.
    pub own: usize,
}

/// Elements of each part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lengths {
    Even(usize),
    Uneven(Vec<usize>),
}

impl Parts {
    /// Those of `ranks` ranks; nothing, if they are too long together.
    pub fn new(lengths: Lengths, ranks: usize, rank: usize) -> Option<Self> {
        let (total, before, own) = match &lengths {
            Lengths::Even(count) => (count.checked_mul(ranks)?, count.checked_mul(rank)?, *count),
            Lengths::Uneven(counts) => {
                let total = counts.iter().try_fold(0_usize, |sum, &count| sum.checked_add(count))?;
                (total, counts[..rank].iter().sum(), counts[rank])
            }
        };
        isize::try_from(total).ok()?;
        Some(Self { lengths, total, before, own })
    }
}

impl Goal<'_> {
    /// Elements that a rank gets of a vector of `count`.
    #[inline]
    pub fn results(self, count: usize) -> usize {
        if let Self::Parts(parts) = self { parts.own } else { count }
    }

    /// Elements before the first of them.
    pub fn before(self) -> usize {
        if let Self::Parts(parts) = self { parts.before } else { 0 }
    }

    /// Whether a rank gets a result.
    pub fn gets(self, rank: usize) -> bool {
        match self {
            Self::All | Self::Scan | Self::Parts(_) => true,
            Self::Root(root) => root == rank,
            Self::Exscan => rank > 0,
        }
    }

    /// Whether it contributes what lies in the place of the result, if that is said.
    pub fn has_place(self, rank: usize) -> bool {
        matches!(self, Self::Exscan) || self.gets(rank)
    }
}

/// How a reduction is carried out.
pub struct Plan {
    pub count: usize,
    way: Way,
}

/// Kernels stay where they are: what short calls take is three words.
enum Way {
    Kernel(&'static Named, &'static Kernel),
    /// By the library's own function; whether operands may change places.
    Local(Box<(Type, bool)>),
}

impl Plan {
    /// The elements.
    pub fn of(&self) -> &Type {
        match &self.way {
            Way::Kernel(named, _) => &named.of,
            Way::Local(local) => &local.0,
        }
    }
}

/// The longest element that is folded by the library's function.
const LONGEST: usize = 4096;

/// Why a reduction failed.
#[derive(Debug)]
pub enum Fault {
    Ours(hier::across::Error),
    /// The library would not apply the operator: its code.
    Operator(c_int),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ours(error) => error.fmt(f),
            Self::Operator(code) => write!(f, "MPI_Reduce_local, which applies the operator, returned {code}"),
        }
    }
}

impl super::Fault for Fault {
    fn may_be_an_end(&self) -> bool {
        matches!(self, Self::Ours(error) if super::Fault::may_be_an_end(error))
    }
}

impl From<hier::across::Error> for Fault {
    fn from(error: hier::across::Error) -> Self {
        Self::Ours(error)
    }
}

impl From<hier::Error> for Fault {
    fn from(error: hier::Error) -> Self {
        Self::Ours(error.into())
    }
}

impl Arguments<'_> {
    /// The bytes of the vector, where its type is predefined.
    #[inline(always)]
    pub fn glance(&self) -> Option<usize> {
        types::bytes(usize::try_from(self.count).ok()?, self.datatype)
    }

    /// How it is carried out, and the bytes of the vector; or why it is not. All that this looks at is the same on all ranks
    /// (MPI 4.1, section 6.9.1), but for pointers to nothing, which are errors.
    #[inline(always)]
    pub fn plan(&self) -> Result<(Plan, usize), (Reason, usize)> {
        if self.count > 0
            && let (Some(op), Some(named)) = (types::operator(self.op), types::named(self.datatype))
            && let Reduction::Kernel(kernel) = named.reduction(op)
            && let Some(bytes) = (self.count as usize).checked_mul(named.of.size)
        {
            return Ok((Plan { count: self.count as usize, way: Way::Kernel(named, kernel) }, bytes));
        }
        self.plan_otherwise()
    }

    /// The same for whatever is not an everyday call.
    #[cold]
    fn plan_otherwise(&self) -> Result<(Plan, usize), (Reason, usize)> {
        let wrong = (Reason::Argument, 0);
        let count = usize::try_from(self.count).map_err(|_| wrong)?;
        if abi::is_no_datatype(self.datatype) || abi::is_no_operator(self.op) {
            return Err(wrong);
        }
        let way = match (types::operator(self.op), types::named(self.datatype)) {
            (Some(op), Some(named)) => match named.reduction(op) {
                Reduction::Kernel(kernel) => Way::Kernel(named, kernel),
                Reduction::Local => Way::Local(Box::new((named.of, true))),
                Reduction::Refused => return Err((Reason::Operator, count * named.of.size)),
            },
            (Some(_), None) => return Err((Reason::Datatype, 0)),
            (None, _) => {
                let of = types::find(self.datatype, count).ok_or(wrong)?;
                Way::Local(Box::new((of, commutes(self.op).ok_or(wrong)?)))
            }
        };
        let plan = Plan { count, way };
        let bytes = count.checked_mul(plan.of().size).ok_or(wrong)?;
        if bytes == 0 {
            return Err((Reason::Empty, 0));
        }
        if let (Way::Local(_), of) = (&plan.way, plan.of())
            && (!of.is_regular || of.extent as usize > LONGEST)
        {
            return Err((Reason::Datatype, bytes));
        }
        Ok((plan, bytes))
    }

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
        blocks!(1 2 4 8 16 32 64 128 256 512 1024 2048 4096)
    }

    /// The contribution and the result, as vectors of their elements, where they lie.
    #[inline]
    fn by_kernel<T: Element>(&self, comm: &HierComm, plan: &Plan, kernel: &Kernel) -> Result<(), Fault> {
        let gets = self.goal.has_place(comm.rank());
        let is_aligned = |word: Word| (word as *const T).is_aligned();
        let in_place = gets && (abi::is_in_place(self.send) || self.send == self.recv);
        if !(in_place || is_aligned(self.send)) || gets && (self.recv == 0 || !is_aligned(self.recv)) {
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

    /// The same with copies, for vectors that are not aligned as their elements should be, or have no place for a result.
    #[cold]
    fn aside<T: Element>(&self, comm: &HierComm, plan: &Plan, kernel: &Kernel) -> Result<(), Fault> {
        let gets = self.goal.has_place(comm.rank());
        let from = if abi::is_in_place(self.send) { self.recv } else { self.send };
        let mut copy: Vec<T> = Vec::with_capacity(plan.count);
        // SAFETY: by MPI's contract so many elements are there, and there is room for them.
        unsafe {
            std::ptr::copy_nonoverlapping(
                from as *const u8,
                copy.as_mut_ptr().cast::<u8>(),
                plan.count * size_of::<T>(),
            );
        }
        // SAFETY: they were just written; any bytes that come from such elements are some.
        unsafe { copy.set_len(plan.count) };
        if !gets {
            return reduce(comm, self.goal, Some(&copy), None, kernel);
        }
        reduce(comm, self.goal, None, Some(&mut copy), kernel)?;
        if !self.goal.gets(comm.rank()) {
            return Ok(());
        }
        // SAFETY: by MPI's contract so many elements may be written there.
        unsafe {
            std::ptr::copy_nonoverlapping(
                copy.as_ptr().cast::<u8>(),
                self.recv as *mut u8,
                self.goal.results(plan.count) * size_of::<T>(),
            );
        }
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
        // Elements with gaps, or of an odd size: in blocks, and back by the datatype, so that gaps are left alone.
        let from = if in_place { self.recv } else { self.send };
        let mut blocks = vec![[0_u8; N]; count];
        for (i, block) in blocks.iter_mut().enumerate() {
            let element = (from as *const u8).wrapping_add(i * extent);
            // What lies behind the last element's data need not be the program's.
            let bytes = if i + 1 == count { of.reach } else { extent };
            // SAFETY: by MPI's contract there are so many elements, of so many bytes.
            unsafe { std::ptr::copy_nonoverlapping(element, block.as_mut_ptr(), bytes) };
        }
        if !gets {
            return reduce(comm, self.goal, Some(&blocks), None, local);
        }
        reduce(comm, self.goal, None, Some(&mut blocks), local)?;
        if !self.goal.gets(comm.rank()) {
            return Ok(());
        }
        let count = self.goal.results(count);
        let elements: Vec<u8> = blocks[..count].iter().flat_map(|block| &block[..extent]).copied().collect();
        let data = pack(elements.as_ptr().cast(), count, self.datatype, count * of.size);
        unpack(&data, self.recv as *mut _, count, self.datatype);
        Ok(())
    }
}

/// Whether the library refuses one buffer for contribution and result that is not said by MPI_IN_PLACE: MPICH does. Open MPI takes it, and
/// a root may then be the only rank that makes the mistake: so it counts as MPI_IN_PLACE there.
#[inline(always)]
pub fn refuses_one_buffer() -> bool {
    !cfg!(open_mpi)
}

/// Whether a user's operator commutes; nothing if the library refuses it.
fn commutes(op: Word) -> Option<bool> {
    let mut commutes = 0;
    // SAFETY: the caller's operator; the library refuses one that is none.
    let code = unsafe { ffi::PMPI_Op_commutative(abi::op(op), &mut commutes) };
    (code == abi::SUCCESS).then_some(commutes != 0)
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
