//! Everyday calls that move blocks: of predefined types without gaps, with a buffer of their own for what is sent and one for what comes. They are
//! carried out as they are described, with nothing allocated and nothing packed.

use hier::across::Error;
use hier::{Blocks, NodeCommunicator};

use super::blocks::{Arguments, Counts, Many, One};
use super::forms::Width;
use crate::abi::{self, Word};
use crate::communicators::Group;
use crate::types::{self, Type};

/// Ranks whose counts and displacements are held without an allocation.
const FEW: usize = 32;

/// Counts and displacements of a few ranks.
struct Places {
    counts: [usize; FEW],
    displs: [usize; FEW],
}

impl Default for Places {
    fn default() -> Self {
        Self { counts: [0; FEW], displs: [0; FEW] }
    }
}

/// A predefined type without gaps, of data that lie at a place of their own.
#[inline]
fn plain(at: Word, datatype: Word) -> Option<&'static Type> {
    let named = types::named(datatype)?;
    (at != 0 && !abi::is_in_place(at) && named.of.is_plain).then_some(&named.of)
}

/// The count and the displacement of a rank's block; nothing if they are wrong, or it lies before the buffer's beginning. A block of no elements
/// lies anywhere.
#[inline]
fn place(width: Width, counts: Word, displs: Word, rank: usize) -> Option<(usize, usize)> {
    if counts == 0 || displs == 0 {
        return None;
    }
    // SAFETY: by MPI's contract there is a number for each rank.
    let count = usize::try_from(unsafe { width.read(counts, rank) }).ok()?;
    if count == 0 {
        return Some((0, 0));
    }
    // SAFETY: the same.
    Some((count, usize::try_from(unsafe { width.read(displs, rank) }).ok()?))
}

impl One {
    /// Where the block lies, and its bytes.
    #[inline]
    fn plain(&self) -> Option<(*mut u8, usize)> {
        let bytes = usize::try_from(self.count).ok()?.checked_mul(plain(self.at, self.datatype)?.size)?;
        Some((self.at as *mut u8, bytes))
    }
}

impl Many {
    /// The blocks of `ranks` ranks, described in `places` where they differ.
    #[inline]
    fn plain<'a>(&self, ranks: usize, places: &'a mut Places) -> Option<(*mut u8, Blocks<'a>)> {
        let unit = plain(self.at, self.datatype)?.size;
        let blocks = match self.counts {
            Counts::Even(count) => Blocks::Even(usize::try_from(count).ok()?.checked_mul(unit)?),
            Counts::Arrays(width, counts, displs) => {
                let Places { counts: lengths, displs: begins } = places;
                let (lengths, begins) = (lengths.get_mut(..ranks)?, begins.get_mut(..ranks)?);
                for (rank, (length, begin)) in lengths.iter_mut().zip(begins.iter_mut()).enumerate() {
                    (*length, *begin) = place(width, counts, displs, rank)?;
                }
                Blocks::Uneven { counts: lengths, displs: begins, unit }
            }
        };
        Some((self.at as *mut u8, blocks))
    }

    /// The bytes of one block, or of all where they differ; nothing where there are none, or they are described otherwise.
    #[inline]
    fn plain_bytes(&self, ranks: usize) -> Option<usize> {
        plain(self.at, self.datatype)?;
        let is_plain = match self.counts {
            Counts::Even(_) => true,
            Counts::Arrays(width, counts, displs) => {
                ranks <= FEW && (0..ranks).all(|rank| place(width, counts, displs, rank).is_some())
            }
        };
        self.glance(ranks).filter(|&bytes| is_plain && bytes > 0)
    }
}

impl Arguments {
    /// The bytes that decide who carries the call out, if it is an everyday one on this rank.
    #[inline]
    pub fn everyday(&self, group: &Group) -> Option<usize> {
        let ranks = group.ranks;
        let is_root = |root: isize| usize::try_from(root).is_ok_and(|root| root == group.rank);
        match self {
            Self::Allgather(own, all) => own.plain().and(all.plain_bytes(ranks)),
            Self::Alltoall(sends, receives) => sends.plain_bytes(ranks).and(receives.plain_bytes(ranks)),
            Self::Gather(own, all, root) | Self::Scatter(all, own, root) => {
                let is_root = is_root(*root);
                let (_, bytes) = own.plain()?;
                let knows_root = is_root || (0..ranks as isize).contains(root);
                let has_all = !is_root || all.plain_bytes(ranks).is_some();
                (knows_root && has_all && bytes > 0).then_some(bytes)
            }
        }
    }

    /// Carries out an everyday call; nothing, if it turns out to be none: then nothing was done.
    #[inline]
    pub fn carry_out_plainly(&self, node: &NodeCommunicator) -> Option<Result<(), Error>> {
        let (ranks, rank) = (node.size(), node.rank());
        let (mut places, mut others) = (Places::default(), Places::default());
        let unless_there = |own: *mut u8, all: *mut u8, blocks: &Blocks<'_>| {
            let is_there = own == all.wrapping_add(blocks.of(rank).start);
            if is_there { std::ptr::null_mut() } else { own }
        };
        let done = match self {
            Self::Allgather(own, all) => {
                let (send, bytes) = own.plain()?;
                let (recv, blocks) = all.plain(ranks, &mut places)?;
                let send = unless_there(send, recv, &blocks);
                // SAFETY: by MPI's contract the own block and room for all of them are there; nobody uses them meanwhile.
                unsafe { node.all_gather_bytes(send, if send.is_null() { 0 } else { bytes }, recv, blocks) }
            }
            Self::Alltoall(sends, receives) => {
                let (send, from) = sends.plain(ranks, &mut places)?;
                let (recv, to) = receives.plain(ranks, &mut others)?;
                // SAFETY: by MPI's contract all blocks and room for as many are there; nobody uses them meanwhile.
                unsafe { node.all_to_all_bytes(Some((send, from)), recv, to) }
            }
            Self::Gather(own, all, root) => {
                let (send, bytes) = own.plain()?;
                let (is_even, root) = (matches!(all.counts, Counts::Even(_)), *root as usize);
                let recv = if rank == root { Some(all.plain(ranks, &mut places)?) } else { None };
                let send = recv.map_or(send, |(recv, blocks)| unless_there(send, recv, &blocks));
                // SAFETY: as of an allgather.
                unsafe { node.gather_bytes(root, send, bytes, recv, is_even) }
            }
            Self::Scatter(all, own, root) => {
                let (recv, bytes) = own.plain()?;
                let (is_even, root) = (matches!(all.counts, Counts::Even(_)), *root as usize);
                let send = if rank == root { Some(all.plain(ranks, &mut places)?) } else { None };
                let recv = send.map_or(recv, |(send, blocks)| unless_there(recv, send, &blocks));
                // SAFETY: by MPI's contract there is room for the own block, and, on the root, all of them are there; nobody uses them meanwhile.
                unsafe {
                    node.scatter_bytes(root, send.map(|(at, blocks)| (at.cast_const(), blocks)), recv, bytes, is_even)
                }
            }
        };
        Some(done.map_err(Error::from))
    }
}
