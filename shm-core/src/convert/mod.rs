//! Conversion: private buffers that come again and again are moved into the heap, whole page by whole page, at the addresses that they
//! have. From then on collectives use them where they lie, as they use those of [`Communicator::alloc`](crate::Communicator::alloc).
//!
//! A page is moved by mapping a page of the segment's file, with the same content, over it: the kernel puts one in the
//! other's place at once, for all threads. What a buffer has of its first and its last page stays, since others may have the rest: it is
//! copied to its place in the block when a call begins, and back when it ends ([`Entry`]). So a message lies in the
//! heap without gaps, and the regimes, which are given that place, know nothing of all this.
//!
//! The program may do with its memory what it likes. What that takes:
//!
//! * **It frees the buffer**, and maps something else there. So each call asks the kernel whether the pages still are the
//!   block's ([`Areas`], half a microsecond). If not the buffer is private again. Its block is given back when nothing in this
//!   process shows it, wherever it may have been moved to (`mremap`).
//! * **It forks.** A child must have its own copy of what its parent has: it makes one before `fork` returns ([`fork`]).
//! * **It ends its part in the job.** The pages stay the program's, and the block is left to it.
//!
//! What cannot be seen: a child that is made by the bare system call `clone` shares the pages with its parent; and
//! memory that the program gives up by `madvise(MADV_DONTNEED)` does not come back as zeros, which some allocators count upon
//! (jemalloc; not that of the GNU C library). So programs must ask for it.
//!
//! Sources: the single copy of XPMEM, without its kernel module; buffers that are registered once and remembered, as networks' are.

mod areas;
mod book;
mod entry;
mod fork;
#[cfg(test)]
mod tests;

use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use nix::sys::mman::{MapFlags, ProtFlags, mmap};

use crate::pace::Way;
use crate::payload::{ask_for, copy_in, copy_out};
use crate::segment::layout::EXTENT;
use crate::segment::mapping::Mapping;
use crate::segment::pool::RankHeap;
use areas::{Areas, FileId};
use book::{Book, Found};
use entry::Entry;
use fork::Owner;

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

/// A buffer as a call is to see it. Dropped when the call has ended.
pub(crate) struct Lent {
    entry: Option<Arc<Entry>>,
    call: Range<usize>,
    buffer: *mut u8,
    usage: Use,
}

impl Conversions {
    pub fn new(mapping: Arc<Mapping>, heap: Arc<RankHeap>) -> Self {
        Self { mapping, heap, system: OnceLock::new() }
    }

    /// Has a call see a buffer where the others can reach it, if its pages were moved, or are due (after so many calls).
    ///
    /// # Safety
    /// `bytes` bytes at `buffer` are the call's to use so, as long as what is returned lives, and no other call's to write.
    pub unsafe fn lend(&self, buffer: *mut u8, bytes: usize, usage: Use, after: u32) -> Lent {
        let call = buffer.addr()..buffer.addr() + bytes;
        let entry = match self.mapping.heap_offset(buffer, bytes) {
            // SAFETY: by contract.
            None if bytes > 0 && !buffer.is_null() => unsafe { self.entry(buffer, &call, after) },
            _ => None,
        };
        let lent = Lent { entry, call, buffer, usage };
        if usage != Use::Writes {
            // SAFETY: by contract, as long as `lent` lives.
            unsafe { lent.copy_ends(true) };
        }
        lent
    }

    /// # Safety
    /// As [`lend`](Conversions::lend).
    unsafe fn entry(&self, buffer: *mut u8, call: &Range<usize>, after: u32) -> Option<Arc<Entry>> {
        let system = self.system.get_or_init(|| System::ask(&self.mapping)).as_ref()?;
        // SAFETY: by contract.
        let body = unsafe { Entry::body_of(buffer, call) };
        let mut books = fork::books();
        let book = books.of(system.number);
        let entry = match book.find(call, &body, after) {
            Found::Moved(entry) => entry,
            Found::Due(within) => {
                self.release_of(system, book);
                let room = book.bytes_taken() + call.len() <= self.most_bytes();
                // SAFETY: by contract.
                let entry = if room { unsafe { self.convert(system, buffer, (call, body), &within) } } else { None };
                match &entry {
                    Some(entry) => book.replace(&within, entry),
                    None => book.put_off(call),
                }
                return entry;
            }
            Found::Not => return None,
        };
        drop(books);
        if entry.is_there(&system.areas, call) {
            entry.used();
            return Some(entry);
        }
        let mut books = fork::books();
        let book = books.of(system.number);
        book.lose(&entry);
        drop(entry);
        self.release_of(system, book);
        None
    }

    /// Moves the whole pages of a buffer, of which those of `within` were moved before, with no fork meanwhile.
    ///
    /// # Safety
    /// As [`lend`](Conversions::lend).
    unsafe fn convert(
        &self,
        system: &System,
        buffer: *mut u8,
        (call, body): (&Range<usize>, Range<usize>),
        within: &[Arc<Entry>],
    ) -> Option<Arc<Entry>> {
        let span = Entry::span_of(call);
        if !system.can_move(&body, within) {
            return None;
        }
        // Long ones lie in the heap as they lie in the program's memory, but for a multiple of an extent: huge pages stay huge.
        let slack = if span.len() >= 4 * EXTENT { EXTENT } else { 0 };
        let block = self.heap.take(span.len() + slack).ok()?;
        let skip = if slack > 0 { span.start.wrapping_sub(block.pointer().addr()) % EXTENT } else { 0 };
        let offset = self.heap_in_file().start + block.offset() + skip as u64;
        // SAFETY: within the block, of which `skip` is a part of the slack.
        let place = unsafe { block.pointer().add(skip + (body.start - span.start)) };
        let from = buffer.wrapping_add(body.start.wrapping_sub(call.start));
        // SAFETY: the body is the buffer's alone, which nobody writes meanwhile; the block is nobody else's.
        unsafe { std::ptr::copy_nonoverlapping(from, place, body.len()) };
        // SAFETY: the pages are the call's, and those that are put in their place were just filled with what they hold.
        unsafe { put(&self.mapping, &body, offset + (body.start - span.start) as u64) }.then_some(())?;
        // SAFETY: the block has room for the span behind the slack; its body was just mapped there.
        let entry = unsafe { Entry::new(call, body, (block, skip), offset, system.file) };
        entry.used();
        Some(Arc::new(entry))
    }

    /// Gives back blocks whose pages the program has no more. Done before each move; to be done when the heap is full.
    pub fn release(&self) {
        if let Some(Some(system)) = self.system.get() {
            self.release_of(system, fork::books().of(system.number));
        }
    }

    fn release_of(&self, system: &System, book: &mut Book) {
        book.lose_all(|entry| !entry.is_there(&system.areas, entry.body()));
        let heap = self.heap_in_file();
        // An entry that somebody else still holds is in use by a call.
        book.gone.retain(|entry| Arc::strong_count(entry) > 1 || entry.is_shown(&system.areas, &heap));
    }

    /// Bytes of private memory that lie in the heap.
    #[cfg(test)]
    pub fn bytes(&self) -> u64 {
        let Some(Some(system)) = self.system.get() else {
            return 0;
        };
        fork::books().of(system.number).moved().iter().map(|entry| entry.body().len() as u64).sum()
    }

    /// What this rank may move: the ranks together have half of the heap for it.
    fn most_bytes(&self) -> usize {
        self.mapping.layout.extents * EXTENT / (2 * self.mapping.layout.ranks)
    }

    /// The bytes of the segment's file that the heap is.
    fn heap_in_file(&self) -> Range<u64> {
        let layout = &self.mapping.layout;
        layout.heap as u64..(layout.heap + layout.extents * EXTENT) as u64
    }

    /// Ends the rank's part: what the program still has stays its own. Not for the copy of a forked child.
    pub fn end(&self) {
        self.release();
        let Some(Some(system)) = self.system.get() else {
            return;
        };
        fork::retire(system.number, |entry| {
            if let Some(entry) = Arc::into_inner(entry) {
                entry.abandon();
            }
        });
    }
}

impl System {
    fn ask(mapping: &Arc<Mapping>) -> Option<Self> {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let areas = Areas::open()?;
        let own = areas.at(mapping.base().addr() + mapping.layout.heap)?;
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        fork::enter(Owner { number, file: own.file, mapping: Arc::clone(mapping) }).then_some(())?;
        Some(Self { areas, file: own.file, number })
    }

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
        !areas::some_is_locked()
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

impl Lent {
    /// Where the call finds the buffer.
    pub fn pointer(&self) -> *mut u8 {
        match &self.entry {
            Some(entry) => entry.place(self.call.start),
            None => self.buffer,
        }
    }

    /// Copies what the buffer has of pages that stayed: into the block, or back.
    ///
    /// # Safety
    /// The buffer may be read, or written then, and nobody else uses its place in the block.
    unsafe fn copy_ends(&self, into: bool) {
        let Some(entry) = &self.entry else {
            return;
        };
        for end in entry.ends(&self.call) {
            let own = self.buffer.wrapping_add(end.start - self.call.start);
            let place = entry.place(end.start);
            if into {
                // Those who read it in the last call still have its lines.
                ask_for(place, end.len());
                // SAFETY: by contract; both have that part of the call's bytes.
                unsafe { copy_in(own, place, end.len(), Way::Cached) };
            } else {
                // SAFETY: the same.
                unsafe { copy_out(place, own, end.len()) };
            }
        }
        // The program's pages and the block's are the same memory at two addresses: as far as the compiler knows, this is
        // what moves the bytes from one to the other.
        // SAFETY: it does nothing.
        unsafe {
            std::arch::asm!("/* {0} {1} */", in(reg) self.buffer, in(reg) self.pointer(), options(nostack, preserves_flags))
        };
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if self.usage != Use::Reads {
            // SAFETY: the call, which may write the buffer, has ended, and what it lent nobody uses any more.
            unsafe { self.copy_ends(false) };
        }
    }
}
