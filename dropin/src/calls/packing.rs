//! Data of any type, one after the other, and back in their places.
//!
//! MPI_Pack and MPI_Unpack count bytes by integers of C, so elements go through them in pieces. An element that is
//! longer than such an integer counts is a message of this process to itself: on the one side the element, on the other
//! side its bytes as MPI_PACKED, which matches any type (MPI 4.1, section 5.2).

use std::alloc::{Layout, alloc_zeroed};
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use mpi::ffi;

use super::fault::Fault;
use crate::abi::{self, Word};
use crate::types;

/// Bytes that are packed by one call, unless an element has more.
const PIECE: usize = 1 << 26;

/// The most bytes that MPI_Pack and MPI_Unpack count.
const COUNTED: usize = c_int::MAX as usize;

/// So many bytes of 0.
pub fn zeroed(bytes: usize) -> Result<Vec<u8>, Fault> {
    if bytes == 0 {
        return Ok(Vec::new());
    }
    let layout = Layout::array::<u8>(bytes).map_err(|_| Fault::Memory(bytes))?;
    // SAFETY: the layout has bytes.
    let at = unsafe { alloc_zeroed(layout) };
    if at.is_null() {
        return Err(Fault::Memory(bytes));
    }
    // SAFETY: the global allocator's memory of this layout, of which all bytes are initialised.
    Ok(unsafe { Vec::from_raw_parts(at, bytes, bytes) })
}

/// Elements that are packed at once.
struct Piece {
    elements: usize,
    /// Where their data are, one after the other.
    data: Range<usize>,
    /// Bytes from the buffer to the first of them.
    offset: isize,
}

/// The pieces of a buffer of `count` elements with `bytes` bytes of data; `function` is what they are for.
fn pieces(
    function: &'static str,
    datatype: Word,
    count: usize,
    bytes: usize,
) -> Result<impl Iterator<Item = Piece>, Fault> {
    // What is one piece needs no look at the type.
    let whole = (bytes <= PIECE).then_some((bytes, 0, count));
    let (size, extent, each) = match whole {
        Some(whole) => whole,
        None => {
            let of = types::find(datatype, count).ok_or(Fault::Packing(function, bytes, abi::ERR_OTHER))?;
            (of.size, of.extent, (PIECE / of.size.max(1)).max(1))
        }
    };
    let count = if size == 0 { 0 } else { count };
    Ok((0..count).step_by(each.max(1)).map(move |at| {
        let elements = each.min(count - at);
        let data = if whole.is_some() { 0..size } else { at * size..(at + elements) * size };
        Piece { elements, data, offset: at as isize * extent }
    }))
}

/// The data of `count` elements, `bytes` bytes, one after the other.
pub fn pack(buffer: *const c_void, count: usize, datatype: Word, bytes: usize) -> Result<Vec<u8>, Fault> {
    let mut data = zeroed(bytes)?;
    pack_into(&mut data, buffer, count, datatype)?;
    Ok(data)
}

/// The same where there is room for just so many bytes.
pub fn pack_into(data: &mut [u8], buffer: *const c_void, count: usize, datatype: Word) -> Result<(), Fault> {
    const FUNCTION: &str = "MPI_Pack";
    for piece in pieces(FUNCTION, datatype, count, data.len())? {
        let from = buffer.cast::<u8>().wrapping_offset(piece.offset);
        let into = &mut data[piece.data];
        let from = Elements::at(from.cast_mut().cast(), piece.elements, datatype);
        if into.len() > COUNTED {
            let place = into.as_mut_ptr().cast();
            // SAFETY: by MPI's contract the element is at the buffer, and its data fill the piece.
            unsafe { send_to_self(&from, &Elements::octets(place, into.len())?, into.len()) }?;
            continue;
        }
        let (total, mut place) = (into.len() as c_int, 0);
        // SAFETY: by MPI's contract so many elements are at the buffer, and their data fill the piece.
        let code = unsafe {
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
        if code != abi::SUCCESS {
            return Err(Fault::Packing(FUNCTION, into.len(), code));
        }
    }
    Ok(())
}

/// Puts the data of `count` elements in their places.
pub fn unpack(data: &[u8], buffer: *mut c_void, count: usize, datatype: Word) -> Result<(), Fault> {
    const FUNCTION: &str = "MPI_Unpack";
    for piece in pieces(FUNCTION, datatype, count, data.len())? {
        let into = buffer.cast::<u8>().wrapping_offset(piece.offset);
        let from = &data[piece.data];
        let into = Elements::at(into.cast(), piece.elements, datatype);
        if from.len() > COUNTED {
            let place = from.as_ptr().cast_mut().cast();
            // SAFETY: by MPI's contract the element may be written at the buffer; its data, which are only read, are
            // the piece.
            unsafe { send_to_self(&Elements::octets(place, from.len())?, &into, from.len()) }?;
            continue;
        }
        let (total, mut place) = (from.len() as c_int, 0);
        // SAFETY: by MPI's contract so many elements may be written at the buffer.
        let code = unsafe {
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
        if code != abi::SUCCESS {
            return Err(Fault::Packing(FUNCTION, from.len(), code));
        }
    }
    Ok(())
}

/// Moves `bytes` bytes of data from elements to others by a message of this process to itself.
///
/// # Safety
/// `from` may be read, `to` may be written, each has so many bytes of data, and the two do not overlap.
unsafe fn send_to_self(from: &Elements, to: &Elements, bytes: usize) -> Result<(), Fault> {
    const FUNCTION: &str = "MPI_Sendrecv to itself";
    /// Messages of two threads would be taken for one another.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let mut status = MaybeUninit::<ffi::MPI_Status>::zeroed();
    // SAFETY: by contract; the communicator is this process alone, whose rank is 0.
    let code = unsafe {
        ffi::PMPI_Sendrecv(
            from.base,
            from.count,
            from.datatype,
            0,
            0,
            to.base,
            to.count,
            to.datatype,
            0,
            0,
            types::quiet(),
            status.as_mut_ptr(),
        )
    };
    if code != abi::SUCCESS {
        return Err(Fault::Packing(FUNCTION, bytes, code));
    }
    let mut moved = 0;
    // SAFETY: the status of a call that went well.
    let code = unsafe { ffi::PMPI_Get_elements_x(status.as_ptr(), abi::datatype(abi::packed()), &mut moved) };
    let is_all = code == abi::SUCCESS && usize::try_from(moved) == Ok(bytes);
    if is_all { Ok(()) } else { Err(Fault::Packing(FUNCTION, bytes, abi::ERR_OTHER)) }
}

/// Elements of a buffer, as they are packed and unpacked. MPICH does so only from a base that is not nothing: data
/// whose type has absolute addresses (MPI_BOTTOM) are described from another base.
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
        let (base, place) = (std::ptr::dangling_mut::<u128>(), std::ptr::dangling_mut::<u128>() as isize);
        let made = Self::blocks(base.cast(), &[plain.count], &[-place as ffi::MPI_Aint], plain.datatype);
        made.unwrap_or(plain)
    }

    /// So many bytes as one element: blocks of what MPI_PACKED counts.
    fn octets(base: *mut c_void, bytes: usize) -> Result<Self, Fault> {
        const BLOCK: usize = 1 << 30;
        let places: Vec<ffi::MPI_Aint> = (0..bytes).step_by(BLOCK).map(|at| at as ffi::MPI_Aint).collect();
        let lengths: Vec<c_int> = (0..bytes).step_by(BLOCK).map(|at| BLOCK.min(bytes - at) as c_int).collect();
        Self::blocks(base, &lengths, &places, abi::datatype(abi::packed()))
            .map_err(|code| Fault::Packing("MPI_Type_create_hindexed", bytes, code))
    }

    /// One element: so many of a valid datatype at each place. The library's code, if it refuses that.
    fn blocks(
        base: *mut c_void,
        lengths: &[c_int],
        places: &[ffi::MPI_Aint],
        of: ffi::MPI_Datatype,
    ) -> Result<Self, c_int> {
        debug_assert_eq!(lengths.len(), places.len());
        let (count, mut made) = (lengths.len() as c_int, of);
        // SAFETY: as many lengths and places as there are blocks.
        let code = unsafe { ffi::PMPI_Type_create_hindexed(count, lengths.as_ptr(), places.as_ptr(), of, &mut made) };
        if code != abi::SUCCESS {
            return Err(code);
        }
        let made = Self { base, count: 1, datatype: made, is_made: true };
        let mut datatype = made.datatype;
        // SAFETY: it was just made.
        let code = unsafe { ffi::PMPI_Type_commit(&mut datatype) };
        if code == abi::SUCCESS { Ok(made) } else { Err(code) }
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
