//! The calls that move blocks, of bytes and by pointers: for libraries that have to do with other languages' buffers.
//!
//! Each is one of the safe calls: what must agree, what it costs and what it returns is said there. A length is a number of bytes, and all
//! ranks' elements count as bytes, so that ranks whose elements differ understand each other if the bytes agree. Calls by bytes are not the
//! same calls as those of elements of a type, but for `u8`.

use super::blocks::{Known, Name};
use super::{ALL_GATHER, ALL_TO_ALL, GATHER, SCATTER};
use crate::communicator::Communicator;
use crate::element::type_number;
use crate::error::Result;
use crate::regime::blocks::Blocks;

fn name(numbers: [u64; 2], root: usize) -> Name {
    Name { numbers, root, kind: type_number::<u8>() }
}

impl Communicator {
    /// [`all_gather_into`](Communicator::all_gather_into), or, where `blocks` are uneven,
    /// [`all_gather_varcount_into`](Communicator::all_gather_varcount_into): `bytes` bytes at `send`, which is null where they lie in place.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Safety
    /// So many bytes are at `send`; `recv` has room for all blocks, those of uneven ones have an entry for each rank, and no block reaches
    /// beyond what a pointer can. Nobody else uses this memory during the call, and the two do not overlap.
    pub unsafe fn all_gather_bytes(
        &self,
        send: *const u8,
        bytes: usize,
        recv: *mut u8,
        blocks: Blocks<'_>,
    ) -> Result<()> {
        self.all_gather_to(name(ALL_GATHER, 0), self.known(&blocks), (send, bytes), (recv, blocks))
    }

    /// [`gather_into`](crate::Process::gather_into) and its siblings: `bytes` bytes at `send`, which is null where the root has its own in
    /// place; `recv` on the root alone. All ranks must agree on `even`: that all send equally much, and the root's blocks are even.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Safety
    /// As of [`all_gather_bytes`](Communicator::all_gather_bytes).
    pub unsafe fn gather_bytes(
        &self,
        root: usize,
        send: *const u8,
        bytes: usize,
        recv: Option<(*mut u8, Blocks<'_>)>,
        even: bool,
    ) -> Result<()> {
        let each = match recv {
            Some((_, blocks)) => blocks.len(self.rank()),
            None => bytes,
        };
        let known = if even { Known::Even(each) } else { Known::Own };
        self.gather_to(name(GATHER, root), known, (send, bytes), recv)
    }

    /// [`scatter_into`](crate::Process::scatter_into) and its siblings: `send` on the root alone; `bytes` bytes for `recv`, which is null where
    /// the root leaves its own where they are. All ranks must agree on `even`: that all get equally much, and the root's blocks are even.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Safety
    /// As of [`all_gather_bytes`](Communicator::all_gather_bytes), with all blocks at the root's `send`, and `bytes` bytes of room at `recv`.
    pub unsafe fn scatter_bytes(
        &self,
        root: usize,
        send: Option<(*const u8, Blocks<'_>)>,
        recv: *mut u8,
        bytes: usize,
        even: bool,
    ) -> Result<()> {
        let each = match send {
            Some((_, blocks)) => blocks.len(self.rank()),
            None => bytes,
        };
        let known = if even { Known::Even(each) } else { Known::Own };
        self.scatter_from(name(SCATTER, root), known, send, (recv, bytes))
    }

    /// [`all_to_all_into`](Communicator::all_to_all_into), or, where `receives` are uneven,
    /// [`all_to_all_varcount_into`](Communicator::all_to_all_varcount_into): no `send` where the blocks lie in place. All ranks must agree on
    /// whether blocks are even, of both buffers.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Safety
    /// As of [`all_gather_bytes`](Communicator::all_gather_bytes), with all blocks at `send`; blocks in place do not overlap.
    pub unsafe fn all_to_all_bytes(
        &self,
        send: Option<(*const u8, Blocks<'_>)>,
        recv: *mut u8,
        receives: Blocks<'_>,
    ) -> Result<()> {
        let known = match receives {
            Blocks::Even(bytes) => Known::Even(bytes),
            Blocks::Uneven { .. } => Known::Own,
        };
        self.all_to_all_by(name(ALL_TO_ALL, 0), known, send, (recv, receives))
    }

    fn known(&self, blocks: &Blocks<'_>) -> Known {
        match blocks {
            Blocks::Even(bytes) => Known::Even(*bytes),
            uneven => Known::of(uneven, self.size()),
        }
    }
}
