//! Blocks as they lie in memory, of any type: data that do not simply follow one another are packed, and put in their
//! places.

use std::ffi::c_void;

use hier::Blocks;

use super::blocks::{Counts, Many, One};
use super::fault::Fault;
use super::packing::{pack, pack_into, unpack, zeroed};
use crate::abi::{self, Word};
use crate::stats::Reason;
use crate::types::{self, Type};

/// One block, understood: what it consists of, or that it lies in place.
pub enum OwnBlock {
    InPlace,
    At { one: One, bytes: usize, is_plain: bool },
}

/// Blocks, understood.
pub struct AllBlocks {
    at: Word,
    datatype: Word,
    pub of: Type,
    pub layout: Layout,
}

/// How many elements the blocks have, and where they begin.
pub enum Layout {
    Even(usize),
    Uneven { counts: Vec<usize>, displs: Vec<isize> },
}

/// What a call with a wrong argument is handed on for.
pub const WRONG: (Reason, usize) = (Reason::Argument, 0);

/// What elements consist of. Where there are none, none is as good as any type: a rank that has no part in the data may
/// name none, or one that was not committed, and MPIs that do not check arguments take it.
fn type_of(datatype: Word, looked_at: usize, has_elements: bool) -> Result<Type, (Reason, usize)> {
    let named = Some(datatype).filter(|&datatype| !abi::is_no_datatype(datatype));
    match named.and_then(|datatype| types::find(datatype, looked_at)) {
        None if !has_elements => Ok(Type::BYTE),
        found => found.ok_or(WRONG),
    }
}

impl One {
    /// What the block consists of.
    pub fn understand(&self) -> Result<OwnBlock, (Reason, usize)> {
        if abi::is_in_place(self.at) {
            return Ok(OwnBlock::InPlace);
        }
        if self.count < 0 {
            return Err(WRONG);
        }
        // Whether data may lie at nothing hangs on the type.
        let looked_at = if self.at == 0 { usize::MAX } else { self.count as usize };
        let of = type_of(self.datatype, looked_at, self.count > 0)?;
        let bytes = (self.count as usize).checked_mul(of.size).ok_or(WRONG)?;
        if of.is_plain && self.at == 0 && bytes > 0 {
            return Err(WRONG);
        }
        Ok(OwnBlock::At { one: *self, bytes, is_plain: of.is_plain })
    }
}

impl Many {
    /// What the blocks consist of.
    pub fn understand(&self, ranks: usize) -> Result<AllBlocks, (Reason, usize)> {
        if abi::is_in_place(self.at) {
            return Err(WRONG);
        }
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
        let has_elements = match &layout {
            Layout::Even(count) => *count > 0,
            Layout::Uneven { counts, .. } => counts.iter().any(|&count| count > 0),
        };
        let of = type_of(self.datatype, usize::MAX, has_elements)?;
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

    /// The bytes of a rank's block.
    pub fn bytes(&self, rank: usize) -> usize {
        self.count(rank) * self.of.size
    }

    /// Where a rank's block begins.
    pub fn place(&self, rank: usize) -> Word {
        self.at.wrapping_add_signed(self.displacement(rank).wrapping_mul(self.of.extent))
    }

    /// The data of a rank's block, one after the other.
    pub fn packed(&self, rank: usize) -> Result<Vec<u8>, Fault> {
        pack(self.place(rank) as *const c_void, self.count(rank), self.datatype, self.bytes(rank))
    }

    /// The data of all blocks, one after the other.
    pub fn all_packed(&self, ranks: usize) -> Result<Vec<u8>, Fault> {
        let blocks: Vec<Vec<u8>> = (0..ranks).map(|rank| self.packed(rank)).collect::<Result<_, _>>()?;
        Ok(blocks.concat())
    }

    /// Puts such data back in their places.
    pub fn unpack_all(&self, data: &[u8], ranks: usize) -> Result<(), Fault> {
        let mut rest = data;
        for rank in 0..ranks {
            let (block, behind) = rest.split_at(self.bytes(rank));
            unpack(block, self.place(rank) as *mut c_void, self.count(rank), self.datatype)?;
            rest = behind;
        }
        Ok(())
    }

    /// Calls `f` with where the blocks lie, one after the other if they must be packed. What is `read` was packed
    /// before; what is `written` is put in its places afterwards, but for a block that lies there already.
    pub fn with<R>(
        &self,
        ranks: usize,
        is_read: bool,
        is_written: Option<Option<usize>>,
        f: impl FnOnce(*mut u8, Blocks<'_>) -> Result<R, Fault>,
    ) -> Result<R, Fault> {
        if self.of.is_plain {
            return match &self.layout {
                Layout::Even(count) => f(self.at as *mut u8, Blocks::Even(count * self.of.size)),
                Layout::Uneven { counts, displs } => {
                    // Displacements may be negative: the buffer begins with the first block. Those of no elements lie
                    // anywhere.
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
        let mut data = zeroed(total)?;
        if is_read {
            for rank in 0..ranks {
                let block = &mut data[places[rank]..places[rank] + lengths[rank]];
                pack_into(block, self.place(rank) as *const c_void, self.count(rank), self.datatype)?;
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
                unpack(block, self.place(rank) as *mut c_void, self.count(rank), self.datatype)?;
            }
        }
        Ok(result)
    }

    /// The memory of the blocks' data, from the first byte to behind the last; nothing where there are none, or their
    /// type reaches out of its bounds.
    pub fn span(&self, ranks: usize) -> Option<(Word, usize)> {
        let used = || (0..ranks).filter(|&rank| self.bytes(rank) > 0);
        let end = |rank| self.place(rank) + (self.count(rank) - 1) * self.of.extent as usize + self.of.reach;
        let from = used().map(|rank| self.place(rank).wrapping_add(self.of.start)).min()?;
        let to = used().filter(|_| self.of.is_regular).map(end).max()?;
        Some((from, to - from))
    }
}

/// The bytes of an own block.
pub enum Data {
    InPlace,
    There(*const u8, usize),
    Packed(Vec<u8>),
}

impl Data {
    /// Where they lie, and how many they are; nothing where they lie in place.
    pub fn place(&self) -> (*const u8, usize) {
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
    /// Its bytes, packed if they must be.
    pub fn data(&self) -> Result<Data, Fault> {
        Ok(match self {
            Self::InPlace => Data::InPlace,
            Self::At { one, bytes, is_plain: true } => Data::There(one.at as *const u8, *bytes),
            Self::At { one, bytes, .. } => {
                Data::Packed(pack(one.at as *const c_void, one.count as usize, one.datatype, *bytes)?)
            }
        })
    }

    /// Calls `f` with room for the block, and puts in its places what it then holds.
    pub fn receive(&self, f: impl FnOnce(*mut u8, usize) -> Result<(), Fault>) -> Result<(), Fault> {
        match self {
            Self::InPlace => f(std::ptr::null_mut(), 0),
            Self::At { one, bytes, is_plain: true } => {
                f(if one.at == 0 { std::ptr::dangling_mut() } else { one.at as *mut u8 }, *bytes)
            }
            Self::At { one, bytes, .. } => {
                let mut data = zeroed(*bytes)?;
                f(data.as_mut_ptr(), *bytes)?;
                unpack(&data, one.at as *mut c_void, one.count as usize, one.datatype)
            }
        }
    }
}
