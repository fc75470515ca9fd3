//! Fork: a child gets a copy of the pages that were moved, before either side goes on.
//!
//! Moved pages are shared memory, which a child would share with its parent and with all ranks. So a child, of which only the
//! thread that forked is there, maps its pages anew as its own (`MAP_PRIVATE`) and has the kernel copy them. The thread
//! that forked waits for that in the parent, so that nothing which it does, or has others do, after the fork is seen by the child.
//! What other threads write at the same time, unordered, the child may see or not, as always.

use std::cell::RefCell;
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap, mprotect};

use super::areas::{Area, Areas, FileId};
use super::book::Book;
use super::entry::Entry;
use crate::segment::layout::EXTENT;
use crate::segment::mapping::Mapping;

/// All ranks of this process that move buffers. Pages are moved, and blocks given back, while this is locked.
static BOOKS: Mutex<Books> = Mutex::new(Books(Vec::new()));

/// A rank, and its segment.
pub(super) struct Owner {
    pub number: u64,
    pub file: FileId,
    pub mapping: Arc<Mapping>,
}

pub(super) struct Books(Vec<(Owner, Book)>);

impl Books {
    /// The book of a rank that has entered.
    pub fn of(&mut self, number: u64) -> &mut Book {
        let found = self.0.iter_mut().find(|(owner, _)| owner.number == number);
        found.map(|(_, book)| book).expect("a rank that has entered has a book until it ends")
    }
}

pub(super) fn books() -> MutexGuard<'static, Books> {
    BOOKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives a rank a book. Returns whether it has one: whether forks are seen to.
pub(super) fn enter(owner: Owner) -> bool {
    static SEEN_TO: OnceLock<bool> = OnceLock::new();
    // SAFETY: the handlers are there as long as the process: they are functions of this program, which does not unload itself.
    let seen_to =
        *SEEN_TO.get_or_init(|| unsafe { libc::pthread_atfork(Some(prepare), Some(parent), Some(child)) } == 0);
    if seen_to {
        books().0.push((owner, Book::new()));
    }
    seen_to
}

/// Takes a rank's book, and ends it entry by entry.
pub(super) fn retire(number: u64, end: impl FnMut(Arc<Entry>)) {
    let mut books = books();
    if let Some(at) = books.0.iter().position(|(owner, _)| owner.number == number) {
        let (_, mut book) = books.0.swap_remove(at);
        book.take_all().for_each(end);
    }
}

/// What a thread holds while it forks: the books, and a pipe on which the child says that it has its copies, if there is
/// anything to copy.
struct Held {
    books: MutexGuard<'static, Books>,
    pipe: Option<(PipeReader, PipeWriter)>,
}

thread_local! {
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

fn take_held() -> Option<Held> {
    HELD.try_with(|held| held.borrow_mut().take()).ok().flatten()
}

extern "C" fn prepare() {
    let books = books();
    let pipe = if books.0.iter().any(|(_, book)| !book.is_empty()) { std::io::pipe().ok() } else { None };
    let _ = HELD.try_with(|held| *held.borrow_mut() = Some(Held { books, pipe }));
}

extern "C" fn parent() {
    let Some(Held { books, pipe }) = take_held() else {
        return;
    };
    if let Some((mut from_child, to_parent)) = pipe {
        drop(to_parent);
        // A byte, or the end of the file if the child has ended, or there is none.
        let _ = from_child.read(&mut [0]);
    }
    drop(books);
}

extern "C" fn child() {
    let Some(Held { mut books, pipe }) = take_held() else {
        return;
    };
    if books.0.iter().any(|(_, book)| !book.is_empty()) {
        let copied =
            Areas::open().and_then(|areas| books.0.iter().try_for_each(|(owner, _)| copy_pages(&areas, owner)));
        if copied.is_none() {
            // Better than a child that writes into its parent's memory.
            eprintln!(
                "phalanx: this forked process cannot have its own copy of pages that are shared (PHALANX_CONVERT), and ends; \
                 free memory, raise the limit of open files, or set PHALANX_CONVERT=never"
            );
            std::process::abort();
        }
    }
    // The blocks are the parent's.
    std::mem::forget(std::mem::take(&mut books.0));
    drop(books);
    if let Some((_, mut to_parent)) = pipe {
        let _ = to_parent.write(&[1]);
    }
}

/// Makes all pages of the heap that the program has among its own into copies. No other thread is there.
fn copy_pages(areas: &Areas, owner: &Owner) -> Option<()> {
    let layout = &owner.mapping.layout;
    let heap = layout.heap as u64..(layout.heap + layout.extents * EXTENT) as u64;
    let moved = |area: &Area| {
        area.file == owner.file && area.is_shared() && area.offset >= heap.start && !area.shows_all(&heap)
    };
    areas.of_files().filter(moved).try_for_each(|area| copy_area(&area, &owner.mapping))
}

fn copy_area(area: &Area, mapping: &Mapping) -> Option<()> {
    let (at, length) = (NonZeroUsize::new(area.pages.start)?, NonZeroUsize::new(area.pages.len())?);
    let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
    let flags = MapFlags::MAP_PRIVATE | MapFlags::MAP_FIXED;
    // SAFETY: the area is a mapping of the same bytes of the same file, which it replaces: it goes on holding what it holds.
    let pages =
        unsafe { mmap(Some(at), length, protection, flags, mapping.file(), area.offset as libc::off_t) }.ok()?;
    copy_on_write(pages, area)
}

/// Has the kernel copy each page, as a write would, and gives the area the protection that it had.
fn copy_on_write(pages: NonNull<std::ffi::c_void>, area: &Area) -> Option<()> {
    // SAFETY: the pages were just mapped, and keep what they hold.
    unsafe { madvise(pages, area.pages.len(), MmapAdvise::MADV_POPULATE_WRITE) }.ok()?;
    if !area.is_writable() {
        // SAFETY: as the program had it.
        unsafe { mprotect(pages, area.pages.len(), ProtFlags::PROT_READ) }.ok()?;
    }
    Some(())
}
