//! Memory that the allocator of the GNU C library has mapped for one allocation alone. It is given back to the system whole when it is
//! freed, and holds nothing of anybody else's until then: no other allocations, no lists of free ones, no stacks. Only such memory is moved.
//!
//! ```text
//! page         0      8                16                            whole pages
//! allocation   | 0    | bytes, flags   | what the program has ..        |
//! ```
//!
//! The two words at the beginning, the allocator's *note*, are touched when the allocation is freed or grows. (Of aligned ones there is a second note in
//! between, and the first one stays.) `malloc` maps allocations from 128 KiB on, or from the size of the largest such one that was
//! freed, up to 32 MiB; `MALLOC_MMAP_THRESHOLD_` in the environment keeps that where it is (mallopt(3)).

use std::io::IoSliceMut;
use std::ops::Range;

use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;

use super::areas::{Area, Areas};
use crate::segment::pool::PAGE;

/// Bytes of the note.
pub const NOTE: usize = 2 * size_of::<usize>();

/// In the note: the flags, and what they are of an allocation that was mapped.
const FLAGS: usize = 7;
const MAPPED: usize = 2;

/// The pages of the allocation that bytes of the program lie in; none if it is not known to be such a one.
///
/// Neighbours share an area of the system's: they are gone through from its beginning, from note to note, as long as these are notes. Of those that are
/// `known`, by an address in them, the first pages may have been moved.
pub fn allocation_of(
    areas: &Areas,
    call: &Range<usize>,
    known: impl Fn(usize) -> Option<Range<usize>>,
) -> Option<Range<usize>> {
    if let Some(pages) = known(call.start) {
        return (call.end <= pages.end).then_some(pages);
    }
    let area = areas.named(call.start / PAGE * PAGE).filter(Area::is_plain)?;
    let mut at = area.pages.start;
    while at < call.start {
        if let Some(pages) = known(at) {
            at = pages.end;
            continue;
        }
        let [before, size] = note_at(at)?;
        let bytes = size & !FLAGS;
        let end = at.checked_add(bytes).filter(|&end| end <= area.pages.end)?;
        if before != 0 || size & FLAGS != MAPPED || bytes == 0 || !bytes.is_multiple_of(PAGE) {
            return None;
        }
        if call.start < end {
            return (at + NOTE <= call.start && call.end <= end).then_some(at..end);
        }
        at = end;
    }
    None
}

/// Reads the two words at an address, by way of the system: a neighbour may be freed meanwhile.
fn note_at(at: usize) -> Option<[usize; 2]> {
    let mut note = [0; NOTE];
    let from = RemoteIoVec { base: at, len: NOTE };
    let read = process_vm_readv(Pid::this(), &mut [IoSliceMut::new(&mut note)], &[from]).ok()?;
    (read == NOTE).then(|| bytemuck::cast(note))
}
