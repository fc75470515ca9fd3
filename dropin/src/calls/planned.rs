//! Calls that move blocks, by a plan: of any type, in place or not, with wrong arguments found.

use hier::NodeCommunicator;

use super::blocks::{Arguments, Counts, Many, One};
use super::fault::Fault;
use super::layout::{AllBlocks, Data, Layout, OwnBlock, WRONG};
use crate::abi::{self, Word};
use crate::communicators::Group;
use crate::stats::Reason;

/// How a call is carried out.
pub struct Plan {
    own: Option<OwnBlock>,
    send: Option<AllBlocks>,
    recv: Option<AllBlocks>,
}

impl Arguments {
    /// How the call is carried out, and the bytes of a block, or of all where they differ; or why it is not.
    #[inline(never)]
    pub fn plan(&self, group: &Group) -> Result<(Plan, usize), (Reason, usize)> {
        let ranks = group.ranks;
        let all = |blocks: &AllBlocks| (0..ranks).map(|rank| blocks.bytes(rank)).sum::<usize>();
        // The own block, all blocks on the root, and the bytes of one.
        let rooted = |one: &One, many: &Many, root: isize| {
            let root = usize::try_from(root).ok().filter(|&root| root < ranks).ok_or(WRONG)?;
            let own = one.understand()?;
            let all = if group.rank == root { Some(many.understand(ranks)?) } else { None };
            let bytes = match (&own, &all) {
                (OwnBlock::At { bytes, .. }, _) => *bytes,
                (OwnBlock::InPlace, Some(all)) => all.bytes(root),
                (OwnBlock::InPlace, None) => return Err(WRONG),
            };
            let is_even = matches!(many.counts, Counts::Even(_));
            if is_even && bytes == 0 { Err((Reason::Empty, 0)) } else { Ok((own, all, bytes)) }
        };
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
                let (own, recv, bytes) = rooted(one, many, *root)?;
                (Plan { own: Some(own), send: None, recv }, bytes)
            }
            Self::Scatter(many, one, root) => {
                let (own, send, bytes) = rooted(one, many, *root)?;
                (Plan { own: Some(own), send, recv: None }, bytes)
            }
        })
    }

    /// Carries it out.
    #[inline(never)]
    pub fn carry_out(&self, node: &NodeCommunicator, plan: &Plan) -> Result<(), Fault> {
        let (ranks, rank) = (node.size(), node.rank());
        match (self, plan) {
            (Self::Allgather(..), Plan { own: Some(own), recv: Some(recv), .. }) => {
                let is_own_place = matches!(own, OwnBlock::At { one, is_plain: true, .. } if recv.of.is_plain && one.at == recv.place(rank));
                let kept = matches!(own, OwnBlock::InPlace).then_some(rank);
                // What lies in place is a block like others, should it have to be packed.
                let packed = kept.filter(|_| !recv.of.is_plain).map(|rank| recv.packed(rank)).transpose()?;
                let own_data = own.data()?;
                let (send, bytes) = match (&packed, &own_data) {
                    _ if is_own_place => (std::ptr::null(), 0),
                    (Some(packed), _) => (packed.as_ptr(), packed.len()),
                    (None, data) => data.place(),
                };
                // SAFETY: by MPI's contract the own block and room for all of them are there, or their copies; nobody
                // uses them meanwhile.
                recv.with(ranks, false, Some(kept), |at, blocks| unsafe {
                    Ok(node.all_gather_bytes(send, bytes, at, blocks)?)
                })
            }
            (Self::Alltoall(..), Plan { send: Some(send), recv: Some(recv), .. }) => {
                send.with(ranks, true, None, |from, sends| {
                    // SAFETY: by MPI's contract all blocks and room for as many are there, or their copies; nobody uses
                    // them meanwhile.
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
                let own_data = own.data()?;
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
                    // SAFETY: by MPI's contract there is room for the own block, or its copy, and nobody uses it
                    // meanwhile.
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

impl Plan {
    /// The memory that the call writes on this rank, where it is one piece with data.
    pub fn written(&self, arguments: &Arguments, ranks: usize) -> Option<(Word, usize)> {
        match (arguments, &self.own) {
            (Arguments::Scatter(..), Some(OwnBlock::At { one, bytes, is_plain: true })) if *bytes > 0 => {
                Some((one.at, *bytes))
            }
            (Arguments::Scatter(..), _) => None,
            _ => self.recv.as_ref()?.span(ranks),
        }
    }

    /// The data of what the call writes on this rank, block after block, where that is not one piece.
    pub fn result(&self, arguments: &Arguments, ranks: usize) -> Result<Vec<u8>, Fault> {
        match (arguments, &self.own, &self.recv) {
            (Arguments::Scatter(..), Some(own), _) => Ok(match own.data()? {
                Data::Packed(data) => data,
                // One of no bytes, or nothing that is written.
                Data::InPlace | Data::There(..) => Vec::new(),
            }),
            (_, _, Some(recv)) => recv.all_packed(ranks),
            _ => Ok(Vec::new()),
        }
    }

    /// Puts such data back in their places.
    pub fn put_back(&self, arguments: &Arguments, data: &[u8], ranks: usize) -> Result<(), Fault> {
        match (arguments, &self.own, &self.recv) {
            // What a scatter finds there it does not read.
            (Arguments::Scatter(..), ..) | (_, _, None) => Ok(()),
            (_, _, Some(recv)) => recv.unpack_all(data, ranks),
        }
    }
}
