//! The collectives that move blocks, one of each rank, on one node: allgather, alltoall, gather and scatter (MPI 4.1, sections 6.5 to 6.8), with
//! equal counts and with others.
//!
//! A block is the bytes of its signature, which agree wherever it is described. Data of a type that do not simply follow one another are packed by
//! whose they are. Where all ranks know the lengths of all blocks, calls of no bytes are handed on; in a gatherv, scatterv or alltoallv each rank
//! knows its own, so that all calls are carried out.

use std::ffi::{c_int, c_void};

use hier::across::Error;
use hier::{Blocks, NodeCommunicator};

use super::Call;
use super::bcast::{pack, unpack};
use super::forms::Width;
use super::plain::{Everyday, Places};
use crate::abi::{self, Word};
use crate::communicators::Group;
use crate::life;
use crate::stats::Reason;
use crate::types::{self, Type};
use crate::verify;
use crate::what::What;

/// One block, as a caller describes it.
#[derive(Clone, Copy)]
pub struct One {
    pub at: Word,
    pub count: isize,
    pub datatype: Word,
}

/// A block for each rank, as a caller describes them.
#[derive(Clone, Copy)]
pub struct Many {
    pub at: Word,
    pub counts: Counts,
    pub datatype: Word,
}

/// How many elements the blocks have, and where they begin.
#[derive(Clone, Copy)]
pub enum Counts {
    /// So many each, one block behind the other.
    Even(isize),
    /// An array of counts, and one of displacements in elements.
    Arrays(Width, Word, Word),
}

/// What a call passes.
#[derive(Clone, Copy)]
pub enum Arguments {
    Allgather(One, Many),
    Alltoall(Many, Many),
    Gather(One, Many, isize),
    /// Blocks at the root, a rank's own, the root.
    Scatter(Many, One, isize),
}

/// One block, understood: what it consists of, or that it lies in place.
enum OwnBlock {
    InPlace,
    At { one: One, bytes: usize, is_plain: bool },
}

/// Blocks, understood.
struct AllBlocks {
    at: Word,
    datatype: Word,
    of: Type,
    layout: Layout,
}

enum Layout {
    Even(usize),
    Uneven { counts: Vec<usize>, displs: Vec<isize> },
}

/// How a call is carried out.
pub struct Plan {
    own: Option<OwnBlock>,
    send: Option<AllBlocks>,
    recv: Option<AllBlocks>,
}

const WRONG: (Reason, usize) = (Reason::Argument, 0);

impl One {
    /// Its bytes, where its type is predefined.
    #[inline]
    pub fn glance(&self) -> Option<usize> {
        types::bytes(usize::try_from(self.count).ok()?, self.datatype)
    }

    fn understand(&self) -> Result<OwnBlock, (Reason, usize)> {
        if abi::is_in_place(self.at) {
            return Ok(OwnBlock::InPlace);
        }
        if self.count < 0 || abi::is_no_datatype(self.datatype) {
            return Err(WRONG);
        }
        // Whether data may lie at nothing hangs on the type.
        let looked_at = if self.at == 0 { usize::MAX } else { self.count as usize };
        let of = types::find(self.datatype, looked_at).ok_or(WRONG)?;
        let bytes = (self.count as usize).checked_mul(of.size).ok_or(WRONG)?;
        if of.is_plain && self.at == 0 && bytes > 0 {
            return Err(WRONG);
        }
        Ok(OwnBlock::At { one: *self, bytes, is_plain: of.is_plain })
    }
}

impl Many {
    /// The bytes of one block, or of all where they differ, if their type is predefined.
    #[inline]
    pub fn glance(&self, ranks: usize) -> Option<usize> {
        let count = match self.counts {
            Counts::Even(count) => usize::try_from(count).ok()?,
            // SAFETY: by MPI's contract there is a count for each rank.
            Counts::Arrays(width, counts, _) => unsafe { width.sum(counts, ranks) }?,
        };
        types::bytes(count, self.datatype)
    }

    fn understand(&self, ranks: usize) -> Result<AllBlocks, (Reason, usize)> {
        if abi::is_in_place(self.at) || abi::is_no_datatype(self.datatype) {
            return Err(WRONG);
        }
        let of = types::find(self.datatype, usize::MAX).ok_or(WRONG)?;
        let layout = match self.counts {
            Counts::Even(count) => Layout::Even(usize::try_from(count).map_err(|_| WRONG)?),
            Counts::Arrays(width, counts, displs) => {
                if counts == 0 || displs == 0 {
                    return Err(WRONG);
                }
                // SAFETY: by MPI's contract there is a number for each rank.
                let read = |array: Word, rank: usize| unsafe { width.read(array, rank) };
                let numbers = (0..ranks).map(|rank| usize::try_from(read(counts, rank)).map_err(|_| WRONG));
                let counts = numbers.collect::<Result<_, _>>()?;
                Layout::Uneven { counts, displs: (0..ranks).map(|rank| read(displs, rank)).collect() }
            }
        };
        let all = AllBlocks { at: self.at, datatype: self.datatype, of, layout };
        let has_data = (0..ranks).any(|rank| all.count(rank) * of.size > 0);
        if of.is_plain && self.at == 0 && has_data { Err(WRONG) } else { Ok(all) }
    }
}

impl AllBlocks {
    fn count(&self, rank: usize) -> usize {
        match &self.layout {
            Layout::Even(count) => *count,
            Layout::Uneven { counts, .. } => counts[rank],
        }
    }

    fn displacement(&self, rank: usize) -> isize {
        match &self.layout {
            Layout::Even(count) => (rank * count) as isize,
            Layout::Uneven { displs, .. } => displs[rank],
        }
    }

    fn bytes(&self, rank: usize) -> usize {
        self.count(rank) * self.of.size
    }

    /// Where a rank's block begins.
    fn place(&self, rank: usize) -> Word {
        self.at.wrapping_add_signed(self.displacement(rank).wrapping_mul(self.of.extent))
    }

    fn packed(&self, rank: usize) -> Vec<u8> {
        pack(self.place(rank) as *const c_void, self.count(rank), self.datatype, self.bytes(rank))
    }

    /// Calls `f` with where the blocks lie, one after the other if they must be packed. What is `read` was packed before; what is `written`
    /// is put in its places afterwards, but for a block that lies there already.
    fn with<R>(
        &self,
        ranks: usize,
        is_read: bool,
        is_written: Option<Option<usize>>,
        f: impl FnOnce(*mut u8, Blocks<'_>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        if self.of.is_plain {
            return match &self.layout {
                Layout::Even(count) => f(self.at as *mut u8, Blocks::Even(count * self.of.size)),
                Layout::Uneven { counts, displs } => {
                    // Displacements may be negative: the buffer begins with the first block. Those of no elements lie anywhere.
                    let used = |rank: &usize| counts[*rank] > 0;
                    let least = (0..ranks).filter(used).map(|rank| displs[rank]).min().unwrap_or(0);
                    let from = |rank| if used(&rank) { (displs[rank] - least) as usize } else { 0 };
                    let displs: Vec<usize> = (0..ranks).map(from).collect();
                    let base = self.at.wrapping_add_signed(least.wrapping_mul(self.of.extent));
                    f(base as *mut u8, Blocks::Uneven { counts, displs: &displs, unit: self.of.size })
                }
            };
        }
        let lengths: Vec<usize> = (0..ranks).map(|rank| self.bytes(rank)).collect();
        let mut places = Vec::with_capacity(ranks);
        let total = lengths.iter().fold(0, |at, length| {
            places.push(at);
            at + length
        });
        let mut data = vec![0_u8; total];
        if is_read {
            for rank in 0..ranks {
                data[places[rank]..places[rank] + lengths[rank]].copy_from_slice(&self.packed(rank));
            }
        }
        let blocks = match &self.layout {
            Layout::Even(count) => Blocks::Even(count * self.of.size),
            Layout::Uneven { .. } => Blocks::Uneven { counts: &lengths, displs: &places, unit: 1 },
        };
        let result = f(data.as_mut_ptr(), blocks)?;
        if let Some(kept) = is_written {
            for rank in (0..ranks).filter(|&rank| Some(rank) != kept) {
                let block = &data[places[rank]..places[rank] + lengths[rank]];
                unpack(block, self.place(rank) as *mut c_void, self.count(rank), self.datatype);
            }
        }
        Ok(result)
    }

    /// The memory of the blocks, from the first byte to behind the last; nothing where there are none, or their type reaches out of its
    /// bounds.
    fn span(&self, ranks: usize) -> Option<(Word, usize)> {
        let used = || (0..ranks).filter(|&rank| self.bytes(rank) > 0);
        let end = |rank| self.place(rank) + (self.count(rank) - 1) * self.of.extent as usize + self.of.reach;
        let from = used().map(|rank| self.place(rank)).min()?;
        let to = used().filter(|_| self.of.is_regular).map(end).max()?;
        Some((from, to - from))
    }
}

impl Arguments {
    /// The bytes that decide who carries the call out, where types are predefined. They are those of the plan.
    #[inline]
    fn glance(&self, group: &Group) -> Option<usize> {
        match self {
            Self::Allgather(_, recv) => recv.glance(group.ranks),
            Self::Alltoall(_, recv) if matches!(recv.counts, Counts::Even(_)) => recv.glance(group.ranks),
            Self::Gather(own, all, _) | Self::Scatter(all, own, _) if matches!(all.counts, Counts::Even(_)) => {
                if abi::is_in_place(own.at) {
                    all.glance(group.ranks)
                } else {
                    own.glance()
                }
            }
            // No rank knows all lengths: they do not count.
            _ => Some(0),
        }
    }

    /// How the call is carried out, and the bytes of a block, or of all where they differ; or why it is not.
    #[inline(never)]
    fn plan(&self, group: &Group) -> Result<(Plan, usize), (Reason, usize)> {
        let ranks = group.ranks;
        let all = |blocks: &AllBlocks| (0..ranks).map(|rank| blocks.bytes(rank)).sum::<usize>();
        let check_root = |root: isize| if (0..ranks as isize).contains(&root) { Ok(root as usize) } else { Err(WRONG) };
        let is_here = |root: usize| group.rank == root;
        Ok(match self {
            Self::Allgather(one, many) => {
                let (own, recv) = (one.understand()?, many.understand(ranks)?);
                let total = all(&recv);
                if total == 0 {
                    return Err((Reason::Empty, 0));
                }
                let bytes = if matches!(recv.layout, Layout::Even(_)) { recv.bytes(0) } else { total };
                (Plan { own: Some(own), send: None, recv: Some(recv) }, bytes)
            }
            Self::Alltoall(sends, receives) => {
                let recv = receives.understand(ranks)?;
                let send = if abi::is_in_place(sends.at) { None } else { Some(sends.understand(ranks)?) };
                let is_even = matches!(recv.layout, Layout::Even(_));
                if is_even && recv.bytes(0) == 0 {
                    return Err((Reason::Empty, 0));
                }
                let bytes = if is_even { recv.bytes(0) } else { all(&recv) };
                (Plan { own: None, send, recv: Some(recv) }, bytes)
            }
            Self::Gather(one, many, root) => {
                let root = check_root(*root)?;
                let own = one.understand()?;
                let recv = if is_here(root) { Some(many.understand(ranks)?) } else { None };
                let is_even = matches!(many.counts, Counts::Even(_));
                let bytes = match (&own, &recv) {
                    (OwnBlock::At { bytes, .. }, _) => *bytes,
                    (OwnBlock::InPlace, Some(recv)) => recv.bytes(root),
                    (OwnBlock::InPlace, None) => return Err(WRONG),
                };
                if is_even && bytes == 0 {
                    return Err((Reason::Empty, 0));
                }
                (Plan { own: Some(own), send: None, recv }, bytes)
            }
            Self::Scatter(many, one, root) => {
                let root = check_root(*root)?;
                let own = one.understand()?;
                let send = if is_here(root) { Some(many.understand(ranks)?) } else { None };
                let is_even = matches!(many.counts, Counts::Even(_));
                let bytes = match (&own, &send) {
                    (OwnBlock::At { bytes, .. }, _) => *bytes,
                    (OwnBlock::InPlace, Some(send)) => send.bytes(root),
                    (OwnBlock::InPlace, None) => return Err(WRONG),
                };
                if is_even && bytes == 0 {
                    return Err((Reason::Empty, 0));
                }
                (Plan { own: Some(own), send, recv: None }, bytes)
            }
        })
    }

    /// Carries it out.
    #[inline(never)]
    fn carry_out(&self, node: &NodeCommunicator, plan: &Plan) -> Result<(), Error> {
        let (ranks, rank) = (node.size(), node.rank());
        match (self, plan) {
            (Self::Allgather(..), Plan { own: Some(own), recv: Some(recv), .. }) => {
                let is_own_place = matches!(own, OwnBlock::At { one, is_plain: true, .. } if recv.of.is_plain && one.at == recv.place(rank));
                let kept = matches!(own, OwnBlock::InPlace).then_some(rank);
                // What lies in place is a block like others, should it have to be packed.
                let packed = kept.filter(|_| !recv.of.is_plain).map(|rank| recv.packed(rank));
                let own_data = own.data();
                let (send, bytes) = match (&packed, &own_data) {
                    _ if is_own_place => (std::ptr::null(), 0),
                    (Some(packed), _) => (packed.as_ptr(), packed.len()),
                    (None, data) => data.place(),
                };
                // SAFETY: by MPI's contract the own block and room for all of them are there, or their copies; nobody uses them meanwhile.
                recv.with(ranks, false, Some(kept), |at, blocks| unsafe {
                    Ok(node.all_gather_bytes(send, bytes, at, blocks)?)
                })
            }
            (Self::Alltoall(..), Plan { send: Some(send), recv: Some(recv), .. }) => {
                send.with(ranks, true, None, |from, sends| {
                    // SAFETY: by MPI's contract all blocks and room for as many are there, or their copies; nobody uses them meanwhile.
                    recv.with(ranks, false, Some(None), |at, blocks| unsafe {
                        Ok(node.all_to_all_bytes(Some((from.cast_const(), sends)), at, blocks)?)
                    })
                })
            }
            (Self::Alltoall(..), Plan { send: None, recv: Some(recv), .. }) => {
                // SAFETY: by MPI's contract all blocks are there, or their copies, and nobody uses them meanwhile.
                recv.with(ranks, true, Some(None), |at, blocks| unsafe { Ok(node.all_to_all_bytes(None, at, blocks)?) })
            }
            (Self::Gather(_, many, root), Plan { own: Some(own), recv, .. }) => {
                let (is_even, root) = (matches!(many.counts, Counts::Even(_)), *root as usize);
                let own_data = own.data();
                let (send, bytes) = own_data.place();
                match recv {
                    // SAFETY: by MPI's contract the own block is there, or its copy, and nobody writes to it meanwhile.
                    None => Ok(unsafe { node.gather_bytes(root, send, bytes, None, is_even) }?),
                    Some(recv) => {
                        let is_own_place = matches!(own, OwnBlock::At { one, is_plain: true, .. } if recv.of.is_plain && one.at == recv.place(rank));
                        let send = if is_own_place { std::ptr::null() } else { send };
                        let kept = matches!(own, OwnBlock::InPlace).then_some(rank);
                        // SAFETY: the same, and there is room for all blocks.
                        recv.with(ranks, false, Some(kept), |at, blocks| unsafe {
                            Ok(node.gather_bytes(root, send, bytes, Some((at, blocks)), is_even)?)
                        })
                    }
                }
            }
            (Self::Scatter(many, _, root), Plan { own: Some(own), send, .. }) => {
                let (is_even, root) = (matches!(many.counts, Counts::Even(_)), *root as usize);
                own.receive(|at, bytes| match send {
                    // SAFETY: by MPI's contract there is room for the own block, or its copy, and nobody uses it meanwhile.
                    None => Ok(unsafe { node.scatter_bytes(root, None, at, bytes, is_even) }?),
                    Some(send) => {
                        let is_own_place = send.of.is_plain && at as Word == send.place(rank);
                        let at = if is_own_place { std::ptr::null_mut() } else { at };
                        // SAFETY: the same, and all blocks are there.
                        send.with(ranks, true, None, |from, blocks| unsafe {
                            Ok(node.scatter_bytes(root, Some((from.cast_const(), blocks)), at, bytes, is_even)?)
                        })
                    }
                })
            }
            _ => unreachable!("a plan has what its call needs"),
        }
    }
}

/// The bytes of an own block.
enum Data {
    InPlace,
    There(*const u8, usize),
    Packed(Vec<u8>),
}

impl Data {
    fn place(&self) -> (*const u8, usize) {
        match self {
            Self::InPlace => (std::ptr::null(), 0),
            // Nothing means in place; a block of no bytes lies somewhere.
            Self::There(at, bytes) if at.is_null() => (std::ptr::dangling(), *bytes),
            Self::There(at, bytes) => (*at, *bytes),
            Self::Packed(data) => (data.as_ptr(), data.len()),
        }
    }
}

impl OwnBlock {
    fn data(&self) -> Data {
        match self {
            Self::InPlace => Data::InPlace,
            Self::At { one, bytes, is_plain: true } => Data::There(one.at as *const u8, *bytes),
            Self::At { one, bytes, .. } => {
                Data::Packed(pack(one.at as *const c_void, one.count as usize, one.datatype, *bytes))
            }
        }
    }

    /// Calls `f` with room for the block, and puts in its places what it then holds.
    fn receive(&self, f: impl FnOnce(*mut u8, usize) -> Result<(), Error>) -> Result<(), Error> {
        match self {
            Self::InPlace => f(std::ptr::null_mut(), 0),
            Self::At { one, bytes, is_plain: true } => {
                f(if one.at == 0 { std::ptr::dangling_mut() } else { one.at as *mut u8 }, *bytes)
            }
            Self::At { one, bytes, .. } => {
                let mut data = vec![0_u8; *bytes];
                f(data.as_mut_ptr(), *bytes)?;
                unpack(&data, one.at as *mut c_void, one.count as usize, one.datatype);
                Ok(())
            }
        }
    }
}

impl Plan {
    /// The memory that the call writes on this rank, where it is one piece.
    fn written(&self, arguments: &Arguments, ranks: usize) -> Option<(Word, usize)> {
        match (arguments, &self.own) {
            (Arguments::Scatter(..), Some(OwnBlock::At { one, bytes, is_plain: true })) => Some((one.at, *bytes)),
            (Arguments::Scatter(..), _) => None,
            _ => self.recv.as_ref()?.span(ranks),
        }
    }
}

/// How a call is carried out: as it stands, or by a plan.
enum Way<'a> {
    Plainly(Everyday<'a>),
    ByPlan(Box<Plan>),
}

/// Carries out a call, or hands it on: `hand_on` with another place than the result's, for the library's own answer.
#[inline]
pub fn run(what: What, arguments: &Arguments, comm: Word, hand_on: impl Fn(isize) -> c_int) -> c_int {
    let mut places = [const { Places::new() }; 2];
    let places = &mut places;
    Call { what, comm }.run(
        |group| arguments.glance(group),
        move |group| {
            let places = places;
            if !life::settings().verify
                && let Some((call, bytes)) = arguments.everyday(group, places)
            {
                return Ok((Way::Plainly(call), bytes));
            }
            arguments.plan(group).map(|(plan, bytes)| (Way::ByPlan(Box::new(plan)), bytes))
        },
        |ours, way| {
            let node = ours.single_node().ok_or(Error::Broken { rank: ours.rank() })?;
            let plan = match way {
                Way::ByPlan(plan) => plan,
                Way::Plainly(call) => return call.carry_out(node),
            };
            if life::settings().verify {
                let written = plan.written(arguments, node.size());
                return verify::blocks(what, written, comm, ours.rank(), &hand_on, || arguments.carry_out(node, &plan));
            }
            arguments.carry_out(node, &plan)
        },
        || hand_on(0),
    )
}
