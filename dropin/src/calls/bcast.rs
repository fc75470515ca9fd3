//! MPI_Bcast (MPI 4.1, section 6.4): the bytes of the message's signature.
//!
//! Ranks may describe the same signature by different types and counts: so bytes are all that counts. A type whose data
//! do not simply follow one another is packed by its owner; others need not know of it.

use std::ffi::{c_int, c_void};

use hier::HierComm;

use super::Call;
use super::fault::Fault;
use super::forms::forms;
use super::packing::{pack, unpack, zeroed};
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
    fn carry_out(&self, comm: &HierComm, bytes: usize, is_plain: bool) -> Result<(), Fault> {
        if is_plain {
            // SAFETY: by MPI's contract the buffer has so many elements, whose bytes are these, and is the call's
            // alone.
            let data = unsafe { std::slice::from_raw_parts_mut(self.buffer as *mut u8, bytes) };
            return send(comm, self.root as usize, data);
        }
        let is_root = comm.rank() == self.root as usize;
        let mut data = if is_root { self.packed(bytes)? } else { zeroed(bytes)? };
        send(comm, self.root as usize, &mut data)?;
        if is_root { Ok(()) } else { self.unpack(&data) }
    }

    /// The data of the buffer, one after the other.
    pub fn packed(&self, bytes: usize) -> Result<Vec<u8>, Fault> {
        pack(self.buffer as *const c_void, self.count as usize, self.datatype, bytes)
    }

    /// Puts the data in their places.
    fn unpack(&self, data: &[u8]) -> Result<(), Fault> {
        unpack(data, self.buffer as *mut c_void, self.count as usize, self.datatype)
    }
}

#[inline]
fn send(comm: &HierComm, root: usize, data: &mut [u8]) -> Result<(), Fault> {
    match comm.single_node() {
        Some(node) => node.process_at_rank(root).broadcast_into(data)?,
        None => comm.process_at_rank(root).broadcast_into(data)?,
    }
    Ok(())
}
