//! Memory that the allocator of the GNU C library has mapped for one allocation alone. It is given back to the system
//! whole when it is freed, and holds nothing of anybody else's until then: no other allocations, no lists of free ones,
//! no stacks. Only such memory is moved.
//!
//! ```text
//! page         0      8                16                            whole pages
//! allocation   | 0    | bytes, flags   | what the program has ..        |
//! ```
//!
//! The two words at the beginning are the allocator's *note*. `malloc` maps allocations of 128 KiB and more. Each time
//! one is freed that limit rises to its size, at most to 32 MiB; `MALLOC_MMAP_THRESHOLD_` in the environment keeps it
//! where it is (mallopt(3)).

use std::io::IoSliceMut;
use std::ops::Range;

use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;

use super::areas::{Area, Areas};
use crate::segment::pool::PAGE;

/// Bytes of the note.
const NOTE: usize = 2 * size_of::<usize>();

/// In the note: the flags, and what they are of an allocation that was mapped.
const FLAGS: usize = 7;
const MAPPED: usize = 2;

/// Where the allocation begins that bytes of the program lie in; none if it is not known to be such a one.
///
/// Neighbouring allocations may share one mapping, so it is walked from its beginning, from note to note. `known` tells
/// where allocations begin of which pages were moved, by an address in them: the mapping may begin inside of such a
/// one.
pub fn allocation_of(areas: &Areas, call: &Range<usize>, known: impl Fn(usize) -> Option<usize>) -> Option<usize> {
    if let Some(start) = known(call.start) {
        let end = end_of(start)?;
        return (start + NOTE <= call.start && call.end <= end).then_some(start);
    }
    let area = areas.named(call.start / PAGE * PAGE).filter(Area::is_plain)?;
    let mut at = area.pages.start;
    if known(at).is_none() && areas.at(at - 1).is_some_and(|before| before.is_shared()) {
        // It may be the end of an allocation that was moved by a rank that has ended.
        return None;
    }
    while at < call.start {
        let start = known(at).unwrap_or(at);
        let end = end_of(start).filter(|&end| end > at)?;
        if call.start < end {
            let plain = areas.named(end - PAGE).is_some_and(|last| last.is_plain());
            return (start + NOTE <= call.start && call.end <= end && plain).then_some(start);
        }
        if end > area.pages.end {
            return None;
        }
        at = end;
    }
    None
}

/// Where the allocation ends that begins here, if its note says that it is one.
fn end_of(start: usize) -> Option<usize> {
    let [before, size] = note_at(start)?;
    let bytes = size & !FLAGS;
    let is_note = before == 0 && size & FLAGS == MAPPED && bytes > 0 && bytes.is_multiple_of(PAGE);
    start.checked_add(bytes).filter(|_| is_note)
}

/// Reads the two words at an address, by way of the system: a neighbour may be freed meanwhile.
fn note_at(at: usize) -> Option<[usize; 2]> {
    let mut note = [0; NOTE];
    let from = RemoteIoVec { base: at, len: NOTE };
    let read = process_vm_readv(Pid::this(), &mut [IoSliceMut::new(&mut note)], &[from]).ok()?;
    (read == NOTE).then(|| bytemuck::cast(note))
}
