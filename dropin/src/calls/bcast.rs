//! MPI_Bcast (MPI 4.1, section 6.4): the bytes of the message's signature.
//!
//! Ranks may describe the same signature by different types and counts: so bytes are all that counts. A type whose data do not simply
//! follow one another is packed by its owner; others need not know of it.

use std::ffi::{c_int, c_void};
use std::ops::Range;

use hier::HierComm;
use hier::across::Error;
use mpi::ffi;

use super::Call;
use super::forms::forms;
use crate::abi::{self, Word};
use crate::communicators::Group;
use crate::stats::Reason;
use crate::what::What;
use crate::{life, types, verify};

forms! {
    /// MPI_Bcast.
    bcast bcast_c(buffer, count, datatype, root, comm) |width, next| {
        let message = Message { buffer, count: width.count(count), datatype, root: abi::int(root) as isize };
        broadcast(&message, comm, || next(buffer, count, datatype, root, comm))
    };
}

#[inline]
fn broadcast(message: &Message, comm: Word, hand_on: impl FnOnce() -> c_int) -> c_int {
    let call = Call { what: What::Broadcast, comm };
    call.run(
        |_| None,
        |group| message.plan(group),
        |ours, (bytes, is_plain)| {
            if life::settings().verify {
                return verify::broadcast(message, bytes, comm, ours, || message.carry_out(ours, bytes, is_plain));
            }
            message.carry_out(ours, bytes, is_plain)
        },
        hand_on,
    )
}

/// The arguments of a broadcast.
pub struct Message {
    pub buffer: Word,
    pub count: isize,
    pub datatype: Word,
    pub root: isize,
}

impl Message {
    /// The bytes of the signature, and whether they lie in the buffer as they are sent.
    #[inline(always)]
    fn plan(&self, group: &Group) -> Result<((usize, bool), usize), (Reason, usize)> {
        if self.count > 0
            && self.buffer != 0
            && (0..group.ranks as isize).contains(&self.root)
            && let Some(named) = types::named(self.datatype)
            && let Some(bytes) = (self.count as usize).checked_mul(named.of.size)
        {
            return Ok(((bytes, named.of.is_plain), bytes));
        }
        self.plan_otherwise(group)
    }

    /// The same for whatever is not an everyday call.
    #[cold]
    fn plan_otherwise(&self, group: &Group) -> Result<((usize, bool), usize), (Reason, usize)> {
        let wrong = (Reason::Argument, 0);
        let count = usize::try_from(self.count).map_err(|_| wrong)?;
        if abi::is_no_datatype(self.datatype) || self.root < 0 || self.root >= group.ranks as isize {
            return Err(wrong);
        }
        // Whether data may lie at nothing hangs on the type.
        let looked_at = if self.buffer == 0 { usize::MAX } else { count };
        let of = types::find(self.datatype, looked_at).ok_or(wrong)?;
        let bytes = count.checked_mul(of.size).ok_or(wrong)?;
        if bytes == 0 {
            return Err((Reason::Empty, 0));
        }
        if of.is_plain && self.buffer == 0 {
            return Err((Reason::Argument, bytes));
        }
        Ok(((bytes, of.is_plain), bytes))
    }

    /// Broadcasts.
    fn carry_out(&self, comm: &HierComm, bytes: usize, is_plain: bool) -> Result<(), Error> {
        if is_plain {
            // SAFETY: by MPI's contract the buffer has so many elements, whose bytes are these, and is the call's alone.
            let data = unsafe { std::slice::from_raw_parts_mut(self.buffer as *mut u8, bytes) };
            return send(comm, self.root as usize, data);
        }
        let is_root = comm.rank() == self.root as usize;
        let mut data = if is_root { self.packed(bytes) } else { vec![0; bytes] };
        send(comm, self.root as usize, &mut data)?;
        if !is_root {
            self.unpack(&data);
        }
        Ok(())
    }

    /// The data of the buffer, one after the other.
    pub fn packed(&self, bytes: usize) -> Vec<u8> {
        pack(self.buffer as *const c_void, self.count as usize, self.datatype, bytes)
    }

    /// Puts the data in their places.
    pub fn unpack(&self, data: &[u8]) {
        unpack(data, self.buffer as *mut c_void, self.count as usize, self.datatype);
    }
}

#[inline]
fn send(comm: &HierComm, root: usize, data: &mut [u8]) -> Result<(), Error> {
    match comm.single_node() {
        Some(node) => node.process_at_rank(root).broadcast_into(data).map_err(Error::from),
        None => comm.process_at_rank(root).broadcast_into(data),
    }
}

/// Bytes that are packed by one call: its positions are integers of C.
const PIECE: usize = 1 << 26;

/// Pieces of a buffer of `count` elements with `bytes` bytes of data: elements in it, bytes before it, where the data and where the buffer
/// are. None if the library refuses the type.
fn pieces(datatype: Word, count: usize, bytes: usize) -> impl Iterator<Item = (usize, Range<usize>, isize)> {
    // What is one piece needs no look at the type.
    let whole = (bytes <= PIECE).then_some((bytes, 0, count));
    let (size, extent, each) = whole.unwrap_or_else(|| match types::find(datatype, count) {
        Some(of) => (of.size, of.extent, (PIECE / of.size.max(1)).max(1)),
        None => (0, 0, 1),
    });
    let count = if size == 0 { 0 } else { count };
    (0..count).step_by(each.max(1)).map(move |at| {
        let len = each.min(count - at);
        let data = if whole.is_some() { 0..size } else { at * size..(at + len) * size };
        (len, data, at as isize * extent)
    })
}

/// The data of `count` elements, `bytes` bytes, one after the other.
pub fn pack(buffer: *const c_void, count: usize, datatype: Word, bytes: usize) -> Vec<u8> {
    let mut data = vec![0_u8; bytes];
    for (len, range, offset) in pieces(datatype, count, bytes) {
        let from = buffer.cast::<u8>().wrapping_offset(offset);
        let into = &mut data[range];
        let (total, mut place) = (into.len() as c_int, 0);
        let from = Elements::at(from.cast_mut().cast(), len, datatype);
        // SAFETY: by MPI's contract so many elements are at the buffer, and their data fill the piece.
        let _ = unsafe {
            ffi::PMPI_Pack(
                from.base,
                from.count,
                from.datatype,
                into.as_mut_ptr().cast(),
                total,
                &mut place,
                types::quiet(),
            )
        };
    }
    data
}

/// Puts the data of `count` elements in their places.
pub fn unpack(data: &[u8], buffer: *mut c_void, count: usize, datatype: Word) {
    for (len, range, offset) in pieces(datatype, count, data.len()) {
        let into = buffer.cast::<u8>().wrapping_offset(offset);
        let from = &data[range];
        let (total, mut place) = (from.len() as c_int, 0);
        let into = Elements::at(into.cast(), len, datatype);
        // SAFETY: by MPI's contract so many elements may be written at the buffer.
        let _ = unsafe {
            ffi::PMPI_Unpack(
                from.as_ptr().cast(),
                total,
                &mut place,
                into.base,
                into.count,
                into.datatype,
                types::quiet(),
            )
        };
    }
}

/// Elements of a buffer, as they are packed and unpacked. MPICH does so only from a base that is not nothing: data whose type has
/// absolute addresses (MPI_BOTTOM) are described from another base.
struct Elements {
    base: *mut c_void,
    count: c_int,
    datatype: ffi::MPI_Datatype,
    /// Whether the datatype was made for this.
    is_made: bool,
}

impl Elements {
    fn at(base: *mut c_void, count: usize, datatype: Word) -> Self {
        let plain = Self { base, count: count as c_int, datatype: abi::datatype(datatype), is_made: false };
        if !base.is_null() {
            return plain;
        }
        let (base, mut made) = (std::ptr::dangling_mut::<u128>(), plain.datatype);
        let (length, place) = (plain.count, -(base as isize) as ffi::MPI_Aint);
        // SAFETY: one block of a valid datatype.
        let code = unsafe { ffi::PMPI_Type_create_hindexed(1, &length, &place, plain.datatype, &mut made) };
        if code != abi::SUCCESS {
            return plain;
        }
        // SAFETY: it was just made.
        let _ = unsafe { ffi::PMPI_Type_commit(&mut made) };
        Self { base: base.cast(), count: 1, datatype: made, is_made: true }
    }
}

impl Drop for Elements {
    fn drop(&mut self) {
        if self.is_made {
            // SAFETY: made above, freed once.
            let _ = unsafe { ffi::PMPI_Type_free(&mut self.datatype) };
        }
    }
}
