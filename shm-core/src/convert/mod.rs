//! Conversion: private buffers that come again and again are moved into the heap, whole page by whole page, at the
//! addresses that they have. From then on collectives use them where they lie, as they use those of
//! [`Communicator::alloc`](crate::Communicator::alloc).
//!
//! A page is moved by mapping a page of the segment's file, with the same content, over it: the kernel puts one in the
//! other's place at once, for all threads. What a buffer has of its first and its last page stays, since others may
//! have the rest: it is copied to its place in the block when a call begins, and back when it has ended well
//! ([`Entry`]). So a message lies in the heap without gaps, and the regimes, which are given that place, know nothing
//! of all this.
//!
//! Only memory is moved that `malloc` of the GNU C library has mapped for one allocation alone ([`allocation`]): what
//! the program frees of that goes back to the system, and never holds lists of the allocator, other allocations or
//! stacks. What the program may do:
//!
//! * **It frees the buffer**, and maps something else there. So each call asks the kernel whether the pages still are
//!   the block's ([`Areas`], half a microsecond). If not the buffer is private again. Its block is given back when
//!   nothing in this process shows it, wherever it may have been moved to.
//! * **It forks.** A child must have its own copy of what its parent has: it makes one before `fork` returns
//!   ([`fork`]).
//! * **It ends its part in the job.** The pages stay the program's, and the block is left to it.
//!
//! What is not seen, so that programs must ask for all this: a child made by the bare system call `clone` (without
//! `CLONE_VM`), or by `_Fork`, shares the pages with its parent; a signal handler that forks amid a call may wait for
//! ever; and of what the program has the kernel do with these pages, some is lost (`mbind` from before) and some has no
//! effect (`MADV_DONTNEED` leaves what they hold). Nothing is moved in a process that has pages locked or pinned, as
//! far as the kernel says so: memory that is registered with a device in other ways should not be converted.
//!
//! Sources: the single copy of XPMEM, without its kernel module; buffers that are registered once and remembered, as
//! networks' are.

mod allocation;
mod areas;
mod book;
mod entry;
mod fork;
#[cfg(all(test, target_env = "gnu"))]
mod tests;

use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use nix::sys::mman::{MapFlags, ProtFlags, mmap};

use crate::ask;
use crate::error::Result;
use crate::pace::Way;
use crate::payload::{Manner, copy_in, copy_out};
use crate::segment::layout::EXTENT;
use crate::segment::map;
use crate::segment::mapping::Mapping;
use crate::segment::pool::RankHeap;
use allocation::allocation_of;
use areas::{Areas, FileId};
use book::{Book, Found};
use entry::Entry;
use fork::Books;

/// Whether the system can tell what lies where.
pub(crate) fn is_possible() -> bool {
    Areas::open().is_some()
}

/// What a call does with a buffer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    Reads,
    Writes,
    Both,
}

/// The buffers of a rank that lie in the heap without having been allocated there.
pub(crate) struct Conversions {
    mapping: Arc<Mapping>,
    heap: Arc<RankHeap>,
    bytes_moved: AtomicU64,
    /// None where the system cannot tell what lies where.
    system: OnceLock<Option<System>>,
}

/// What is asked of the system once.
struct System {
    areas: Areas,
    /// The segment's.
    file: FileId,
    /// The number of this rank's book.
    number: u64,
}

/// A buffer as a call is to see it; kept until the call has ended.
pub(crate) struct Converted {
    entry: Option<Arc<Entry>>,
    call: Range<usize>,
    buffer: *mut u8,
    usage: Use,
}

impl Conversions {
    pub fn new(mapping: Arc<Mapping>, heap: Arc<RankHeap>) -> Self {
        Self { mapping, heap, bytes_moved: AtomicU64::new(0), system: OnceLock::new() }
    }

    /// Has a call see a buffer where the others can reach it, if its pages were moved, or are due (after so many
    /// calls).
    ///
    /// # Safety
    /// `bytes` bytes at `buffer` are the call's to use so, as long as what is returned lives, and no other call's to
    /// write.
    pub unsafe fn buffer_of_call(&self, buffer: *mut u8, bytes: usize, usage: Use, after: u32) -> Converted {
        let call = buffer.addr()..buffer.addr() + bytes;
        let entry = match self.mapping.heap_offset(buffer, bytes) {
            // SAFETY: by contract.
            None if bytes > 0 && !buffer.is_null() => unsafe { self.entry(buffer, &call, after) },
            _ => None,
        };
        let converted = Converted { entry, call, buffer, usage };
        // SAFETY: by contract, as long as `converted` lives.
        unsafe { converted.begin() };
        converted
    }

    /// # Safety
    /// As [`buffer_of_call`](Conversions::buffer_of_call).
    unsafe fn entry(&self, buffer: *mut u8, call: &Range<usize>, after: u32) -> Option<Arc<Entry>> {
        let system = self.system.get_or_init(|| self.ask()).as_ref()?;
        let mut books = fork::books();
        let book = books.of(system.number)?;
        match book.find(call, after) {
            Found::Moved(entry) => {
                drop(books);
                if entry.is_there(&system.areas, call) {
                    entry.used();
                    return Some(entry);
                }
                let mut books = fork::books();
                books.of(system.number)?.lose(|lost| std::ptr::eq(lost, &raw const *entry));
                drop(entry);
                release(system, &mut books);
                None
            }
            Found::Due => {
                release(system, &mut books);
                let allocation = allocation_of(&system.areas, call, |at| books.allocation_at(at));
                let book = books.of(system.number)?;
                // SAFETY: by contract.
                let entry = allocation.and_then(|at| unsafe { self.convert(system, book, buffer, (call, at)) });
                if entry.is_none() {
                    book.put_off(call);
                }
                entry
            }
            Found::Stays => None,
        }
    }

    /// Moves the whole pages of a buffer in an allocation, with no fork meanwhile.
    ///
    /// # Safety
    /// As [`buffer_of_call`](Conversions::buffer_of_call).
    unsafe fn convert(
        &self,
        system: &System,
        book: &mut Book,
        buffer: *mut u8,
        (call, allocation): (&Range<usize>, usize),
    ) -> Option<Arc<Entry>> {
        let (span, body) = (Entry::span_of(call), Entry::body_of(call));
        let old = book.within(&body)?;
        if body.is_empty() || book.bytes_taken() + span.len() > self.most_bytes() || !system.can_move(&body, &old) {
            return None;
        }
        // Long ones lie in the heap as they lie in the program's memory, but for a multiple of an extent: huge pages
        // stay huge.
        let slack = if span.len() >= 4 * EXTENT { EXTENT } else { 0 };
        let block = self.heap.take(span.len() + slack).ok()?;
        let skip = if slack > 0 { span.start.wrapping_sub(block.pointer().addr()) % EXTENT } else { 0 };
        let offset = self.mapping.layout.heap as u64 + block.offset() + skip as u64;
        // SAFETY: within the block, of which `skip` is a part of the slack.
        let place = unsafe { block.pointer().add(skip + (body.start - span.start)) };
        let from = buffer.wrapping_add(body.start - call.start);
        // SAFETY: the body lies within the buffer, which nobody writes meanwhile; the block is nobody else's.
        unsafe { std::ptr::copy_nonoverlapping(from, place, body.len()) };
        // SAFETY: the pages are the call's, and those that are put in their place were just filled with what they hold.
        unsafe { put(&self.mapping, &body, offset + (body.start - span.start) as u64) }.then_some(())?;
        // SAFETY: the block has room for the span behind the slack; its body was just mapped there.
        let entry = unsafe { Entry::new(call, allocation, (block, skip), offset, system.file) };
        entry.used();
        let entry = Arc::new(entry);
        book.replace(&old, &entry);
        self.bytes_moved.fetch_add(entry.body().len() as u64, Ordering::Relaxed);
        Some(entry)
    }

    /// Gives back blocks whose pages the program has no more, as is done before each move.
    pub fn release(&self) {
        if let Some(Some(system)) = self.system.get() {
            for _ in 0..book::LOOKS {
                release(system, &mut fork::books());
            }
        }
    }

    /// Bytes that have been moved so far.
    pub fn bytes_moved(&self) -> u64 {
        self.bytes_moved.load(Ordering::Relaxed)
    }

    /// Bytes of private memory that lie in the heap.
    #[cfg(test)]
    pub fn bytes(&self) -> u64 {
        let Some(Some(system)) = self.system.get() else {
            return 0;
        };
        fork::books()
            .of(system.number)
            .map_or(0, |book| book.moved().iter().map(|entry| entry.body().len() as u64).sum())
    }

    /// What this rank may move: the ranks together have half of the heap for it.
    fn most_bytes(&self) -> usize {
        self.mapping.layout.extents * EXTENT / (2 * self.mapping.layout.ranks)
    }

    /// Ends the rank's part: what the program still has stays its own. Not for the copy of a forked child.
    pub fn end(&self) {
        self.release();
        let Some(Some(system)) = self.system.get() else {
            return;
        };
        fork::retire(system.number, |entry| {
            // Calls hold entries, and communicators the seat: there is no call any more.
            let entry = Arc::into_inner(entry);
            debug_assert!(entry.is_some(), "a call outlives its communicator");
            entry.into_iter().for_each(Entry::abandon);
        });
    }

    /// Asks the system, and enters the rank; none in a child that was forked, whose parent's the rank is.
    fn ask(&self) -> Option<System> {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let areas = Areas::open().filter(|_| self.heap.is_of_this_process())?;
        let file = areas.at(self.mapping.base().addr() + self.mapping.layout.heap)?.file;
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        fork::enter(number, file).then_some(System { areas, file, number })
    }
}

/// Notes which buffers the program has no more, and gives back the blocks of one rank.
fn release(system: &System, books: &mut Books) {
    books.lose_all(|entry| !entry.is_there(&system.areas, entry.body()));
    let views = map::views().clone();
    if let Some(book) = books.of(system.number) {
        book.give_back(|entry| entry.is_shown(&system.areas, &views));
    }
}

impl System {
    /// Whether pages are ordinary memory of the program's, but for those that were moved before.
    fn can_move(&self, body: &Range<usize>, within: &[Arc<Entry>]) -> bool {
        let mut at = body.start;
        while at < body.end {
            let Some(area) = self.areas.named(at) else {
                return false;
            };
            let moved = || {
                let entry = within.iter().find(|entry| entry.body().contains(&at));
                entry.is_some_and(|entry| {
                    let pages = at..area.pages.end.min(entry.body().end);
                    area.shows(&pages, self.file, entry.in_file(at))
                })
            };
            if !area.is_plain() && !moved() {
                return false;
            }
            at = area.pages.end;
        }
        !areas::some_is_pinned()
    }
}

/// Maps bytes of the segment's file from `offset` on over `pages`. Returns whether it was done.
///
/// # Safety
/// The pages are the caller's, and the file holds there what they hold.
unsafe fn put(mapping: &Mapping, pages: &Range<usize>, offset: u64) -> bool {
    let (Some(at), Some(length)) = (NonZeroUsize::new(pages.start), NonZeroUsize::new(pages.len())) else {
        return false;
    };
    let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
    let flags = MapFlags::MAP_SHARED | MapFlags::MAP_FIXED | MapFlags::MAP_POPULATE;
    // SAFETY: by contract.
    unsafe { mmap(Some(at), length, protection, flags, mapping.file(), offset as libc::off_t) }.is_ok()
}

/// Ends a call with what was kept for it, and its result.
#[inline]
pub(crate) fn end_all<const N: usize>(converted: [Option<Converted>; N], result: Result<()>) -> Result<()> {
    if converted.iter().any(Option::is_some) {
        converted.into_iter().flatten().for_each(|converted| converted.end(&result));
    }
    result
}

impl Converted {
    /// Where the call finds the buffer.
    pub fn pointer(&self) -> *mut u8 {
        match &self.entry {
            Some(entry) => entry.place(self.call.start),
            None => self.buffer,
        }
    }

    /// Ends a call: if it has ended well, the result is where it belongs.
    fn end(self, result: &Result<()>) {
        if result.is_ok() && self.usage != Use::Reads {
            // SAFETY: the call, which may write the buffer, has stored all of it.
            unsafe { self.copy_ends(false) };
        }
        self.exchange();
    }

    /// # Safety
    /// As [`buffer_of_call`](Conversions::buffer_of_call).
    unsafe fn begin(&self) {
        if self.usage != Use::Writes {
            // SAFETY: by contract.
            unsafe { self.copy_ends(true) };
        }
        self.exchange();
    }

    /// The program's pages and the block's are the same memory at two addresses: as far as the compiler knows, this is
    /// what moves the bytes from one to the other.
    fn exchange(&self) {
        let (buffer, place) = (self.buffer, self.pointer());
        // SAFETY: it does nothing.
        unsafe { std::arch::asm!("/* {0} {1} */", in(reg) buffer, in(reg) place, options(nostack, preserves_flags)) };
    }

    /// Copies what the buffer has of pages that stayed: into the block, or back.
    ///
    /// # Safety
    /// The buffer may be read, or written then, and nobody else uses its place in the block, which has it.
    unsafe fn copy_ends(&self, into: bool) {
        let Some(entry) = &self.entry else {
            return;
        };
        for end in entry.ends(&self.call) {
            let own = self.buffer.wrapping_add(end.start - self.call.start);
            let place = entry.place(end.start);
            if into {
                // Those who read it in the last call still have its lines.
                ask::all_to_store(place, end.len());
                // SAFETY: by contract; both have that part of the call's bytes.
                unsafe { copy_in(own, place, end.len(), Way::Cached) };
            } else {
                // SAFETY: the same.
                unsafe { copy_out(place, own, end.len(), Manner::Plain) };
            }
        }
    }
}
