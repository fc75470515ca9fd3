//! Everyday calls that move blocks: of predefined types without gaps, with a buffer of their own for what is sent and
//! one for what comes. They are carried out as they are described, with nothing allocated and nothing packed.

use std::mem::MaybeUninit;

use hier::{Blocks, NodeCommunicator};

use super::blocks::{Arguments, Counts, Many, One};
use super::fault::Fault;
use super::forms::Width;
use crate::abi::{self, Word};
use crate::communicators::Group;
use crate::types::{self, Type};

/// Ranks whose counts and displacements are held without an allocation.
const FEW: usize = 32;

/// Counts and displacements of a few ranks: room, until they are read.
pub struct Places {
    counts: [MaybeUninit<usize>; FEW],
    displs: [MaybeUninit<usize>; FEW],
}

impl Places {
    /// Room.
    pub const fn new() -> Self {
        Self { counts: [MaybeUninit::uninit(); FEW], displs: [MaybeUninit::uninit(); FEW] }
    }

    /// Reads those of `ranks` ranks: counts, displacements, and the sum of the counts. Nothing if one is wrong, or
    /// ranks are many.
    #[inline]
    fn read(&mut self, ranks: usize, width: Width, counts: Word, displs: Word) -> Option<(&[usize], &[usize], usize)> {
        let (lengths, begins) = (self.counts.get_mut(..ranks)?, self.displs.get_mut(..ranks)?);
        let mut sum = 0_usize;
        for (rank, (length, begin)) in lengths.iter_mut().zip(begins.iter_mut()).enumerate() {
            let (count, displacement) = place(width, counts, displs, rank)?;
            length.write(count);
            begin.write(displacement);
            sum = sum.checked_add(count)?;
        }
        // SAFETY: all of them were just written.
        let lengths = unsafe { written(lengths) };
        // SAFETY: the same.
        Some((lengths, unsafe { written(begins) }, sum))
    }
}

/// Numbers of which each has been written.
///
/// # Safety
/// So they have.
#[inline]
unsafe fn written(numbers: &[MaybeUninit<usize>]) -> &[usize] {
    // SAFETY: by contract; they lie as numbers do.
    unsafe { &*(std::ptr::from_ref(numbers) as *const [usize]) }
}

/// A predefined type without gaps, of data that lie at a place of their own.
#[inline]
fn plain(at: Word, datatype: Word) -> Option<&'static Type> {
    let named = types::named(datatype)?;
    (at != 0 && !abi::is_in_place(at) && named.of.is_plain).then_some(&named.of)
}

/// The count and the displacement of a rank's block; nothing if they are wrong, or it lies before the buffer's
/// beginning. A block of no elements lies anywhere.
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
    /// The blocks of `ranks` ranks, described in `places` where they differ, and the bytes of one block, or of all
    /// where they differ. Nothing where there are none, or they are described otherwise.
    #[inline]
    fn plain<'a>(&self, ranks: usize, places: &'a mut Places) -> Option<(All<'a>, usize)> {
        let unit = plain(self.at, self.datatype)?.size;
        let (blocks, count) = match self.counts {
            Counts::Even(count) => {
                let count = usize::try_from(count).ok()?;
                (Blocks::Even(count.checked_mul(unit)?), count)
            }
            Counts::Arrays(width, counts, displs) => {
                let (counts, displs, sum) = places.read(ranks, width, counts, displs)?;
                (Blocks::Uneven { counts, displs, unit }, sum)
            }
        };
        let bytes = count.checked_mul(unit).filter(|&bytes| bytes > 0)?;
        Some(((self.at as *mut u8, blocks), bytes))
    }
}

/// Where a block lies, and its bytes.
type Own = (*mut u8, usize);
/// Where all blocks lie, and each of them.
type All<'a> = (*mut u8, Blocks<'a>);

/// An everyday call, read once. All blocks of a gather and of a scatter are the root's.
pub enum Everyday<'a> {
    Allgather(Own, All<'a>),
    Alltoall(All<'a>, All<'a>),
    Gather(Own, Option<All<'a>>, Root),
    Scatter(Option<All<'a>>, Own, Root),
}

/// The root of a call, and whether blocks are equally long.
#[derive(Clone, Copy)]
pub struct Root {
    rank: usize,
    is_even: bool,
}

impl Arguments {
    /// The call, if it is an everyday one on this rank, and the bytes that decide who carries it out.
    #[inline]
    pub fn everyday<'a>(&self, group: &Group, places: &'a mut [Places; 2]) -> Option<(Everyday<'a>, usize)> {
        let ranks = group.ranks;
        let [places, others] = places;
        let root = |root: isize, all: &Many| {
            let rank = usize::try_from(root).ok().filter(|&root| root < ranks)?;
            Some(Root { rank, is_even: matches!(all.counts, Counts::Even(_)) })
        };
        Some(match self {
            Self::Allgather(own, all) => {
                let own = own.plain()?;
                let (all, bytes) = all.plain(ranks, places)?;
                (Everyday::Allgather(own, all), bytes)
            }
            Self::Alltoall(sends, receives) => {
                let (from, _) = sends.plain(ranks, places)?;
                let (to, bytes) = receives.plain(ranks, others)?;
                (Everyday::Alltoall(from, to), bytes)
            }
            Self::Gather(own, all, at) | Self::Scatter(all, own, at) => {
                let root = root(*at, all)?;
                let own = own.plain().filter(|&(_, bytes)| bytes > 0)?;
                let all = if group.rank == root.rank { Some(all.plain(ranks, places)?.0) } else { None };
                let call = match self {
                    Self::Gather(..) => Everyday::Gather(own, all, root),
                    _ => Everyday::Scatter(all, own, root),
                };
                (call, own.1)
            }
        })
    }
}

impl Everyday<'_> {
    /// Carries it out.
    #[inline]
    pub fn carry_out(self, node: &NodeCommunicator) -> Result<(), Fault> {
        let unless_there = |own: *mut u8, (all, blocks): All<'_>| {
            let is_there = own == all.wrapping_add(blocks.of(node.rank()).start);
            if is_there { std::ptr::null_mut() } else { own }
        };
        let done = match self {
            Self::Allgather((send, bytes), all) => {
                let send = unless_there(send, all);
                let (recv, blocks) = all;
                // SAFETY: by MPI's contract the own block and room for all of them are there; nobody uses them
                // meanwhile.
                unsafe { node.all_gather_bytes(send, if send.is_null() { 0 } else { bytes }, recv, blocks) }
            }
            Self::Alltoall((send, from), (recv, to)) => {
                // SAFETY: by MPI's contract all blocks and room for as many are there; nobody uses them meanwhile.
                unsafe { node.all_to_all_bytes(Some((send, from)), recv, to) }
            }
            Self::Gather((send, bytes), recv, Root { rank, is_even }) => {
                let send = recv.map_or(send, |all| unless_there(send, all));
                // SAFETY: as of an allgather.
                unsafe { node.gather_bytes(rank, send, bytes, recv, is_even) }
            }
            Self::Scatter(send, (recv, bytes), Root { rank, is_even }) => {
                let recv = send.map_or(recv, |all| unless_there(recv, all));
                let send = send.map(|(at, blocks)| (at.cast_const(), blocks));
                // SAFETY: by MPI's contract there is room for the own block, and, on the root, all of them are there;
                // nobody uses them meanwhile.
                unsafe { node.scatter_bytes(rank, send, recv, bytes, is_even) }
            }
        };
        done.map_err(Fault::from)
    }
}
