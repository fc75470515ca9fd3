//! Fork: a child gets a copy of the pages that were moved, before either side goes on.
//!
//! Without this a child would share moved pages with its parent and all ranks. So the child, of which only the thread
//! that forked is there, replaces them by copies, and the thread that forked waits in the parent until that is done:
//! nothing which it does, or has others do, after the fork is seen by the child. What other threads store at the same
//! time, unordered, the child may see or not, as always.

use std::cell::UnsafeCell;
use std::io::{ErrorKind, PipeReader, PipeWriter, Read, Write};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use nix::sys::mman::{MRemapFlags, MapFlags, ProtFlags, mmap_anonymous, mprotect, mremap};

use super::areas::{Area, Areas, FileId};
use super::book::Book;
use super::entry::Entry;
use crate::segment::map;

/// What this process has moved. Pages are moved, and blocks given back, while this is locked; and nobody forks
/// meanwhile.
static BOOKS: Mutex<Books> = Mutex::new(Books { live: Vec::new(), ended: Vec::new(), pipe: None });

pub(super) struct Books {
    /// The ranks that move buffers: their numbers, their segments, their books.
    live: Vec<(u64, FileId, Book)>,
    /// Segments of ranks that have ended, and left pages of them to the program.
    ended: Vec<FileId>,
    /// During a fork: the pipe on which the child says that it has its copies.
    pipe: Option<(PipeReader, PipeWriter)>,
}

impl Books {
    /// The book of a rank; none when it has ended, or is that of the parent of this process.
    pub fn of(&mut self, number: u64) -> Option<&mut Book> {
        self.live.iter_mut().find(|(own, ..)| *own == number).map(|(.., book)| book)
    }

    /// Has all ranks note which of their buffers the program has no more.
    pub fn lose_all(&mut self, lost: impl Fn(&Entry) -> bool) {
        self.live.iter_mut().for_each(|(.., book)| book.lose(&lost));
    }

    /// Where the allocation begins that an address lies in, if a part of it was moved.
    pub fn allocation_at(&self, address: usize) -> Option<usize> {
        self.live.iter().find_map(|(.., book)| book.allocation_at(address))
    }

    /// Whether there may be pages of a file among the program's.
    fn has(&self, file: FileId) -> bool {
        self.ended.contains(&file) || self.live.iter().any(|(_, own, book)| *own == file && !book.is_empty())
    }

    /// Whether there may be any.
    fn has_any(&self) -> bool {
        !self.ended.is_empty() || self.live.iter().any(|(.., book)| !book.is_empty())
    }
}

pub(super) fn books() -> MutexGuard<'static, Books> {
    BOOKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives a rank a book. Returns whether it has one: whether forks are seen to.
pub(super) fn enter(number: u64, file: FileId) -> bool {
    static SEEN_TO: OnceLock<bool> = OnceLock::new();
    // SAFETY: the handlers are functions of this program, or of a library of it that stays loaded: whoever moves pages
    // cannot be unloaded, as they stay.
    let seen_to =
        *SEEN_TO.get_or_init(|| unsafe { libc::pthread_atfork(Some(prepare), Some(parent), Some(child)) } == 0);
    if seen_to {
        books().live.push((number, file, Book::new()));
    }
    seen_to
}

/// Takes a rank's book, and ends it entry by entry; what is left then stays the program's.
pub(super) fn retire(number: u64, end: impl FnMut(Arc<Entry>)) {
    let mut books = books();
    if let Some(at) = books.live.iter().position(|(own, ..)| *own == number) {
        let (_, file, mut book) = books.live.swap_remove(at);
        if !book.is_empty() && !books.ended.contains(&file) {
            books.ended.push(file);
        }
        book.take_all().for_each(end);
    }
}

/// What a thread that forks has locked, from [`prepare`] on: until its own handler and, in a copy, its child's.
struct Locked {
    books: MutexGuard<'static, Books>,
    /// Where this process has whole segments.
    views: MutexGuard<'static, Vec<Range<usize>>>,
}

/// Where it keeps that.
struct Held(UnsafeCell<Option<Locked>>);

// SAFETY: only who has locked the books touches it.
unsafe impl Sync for Held {}

static HELD: Held = Held(UnsafeCell::new(None));

extern "C" fn prepare() {
    let mut books = books();
    if books.has_any() {
        books.pipe = std::io::pipe().ok();
    }
    let views = map::views();
    // SAFETY: this thread has locked the books.
    unsafe { *HELD.0.get() = Some(Locked { books, views }) };
}

/// Takes what [`prepare`] kept.
fn take_held() -> Option<Locked> {
    // SAFETY: called by the thread that has locked the books, or by its copy in the child.
    unsafe { (*HELD.0.get()).take() }
}

extern "C" fn parent() {
    let Some(Locked { mut books, views }) = take_held() else {
        return;
    };
    drop(views);
    let Some((mut from_child, to_parent)) = books.pipe.take() else {
        return;
    };
    drop(to_parent);
    // A byte, or the end of the file if the child has ended, or there is none.
    while from_child.read(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::Interrupted) {}
}

/// What a child says that cannot have its copies, and ends: better than one that shares memory with its parent.
const NO_COPIES: &[u8] =
    b"phalanx: this forked process cannot have its own copy of pages that are shared (PHALANX_CONVERT), and ends; \
    free memory, raise the limit of open files, or do without PHALANX_CONVERT\n";

extern "C" fn child() {
    let Some(Locked { mut books, views }) = take_held() else {
        return;
    };
    let pipe = books.pipe.take();
    let copied = || Areas::open().and_then(|areas| copy_pages(&areas, &books, &views)).is_some();
    if books.has_any() && !(pipe.is_some() && copied()) {
        // No lock of the standard library is safe here.
        // SAFETY: so many bytes are there.
        unsafe { libc::write(2, NO_COPIES.as_ptr().cast(), NO_COPIES.len()) };
        std::process::abort();
    }
    // The blocks are the parent's.
    std::mem::forget(std::mem::take(&mut books.live));
    books.ended.clear();
    drop((books, views));
    if let Some((_, mut to_parent)) = pipe {
        let _ = to_parent.write(&[1]);
    }
}

/// Puts copies in the place of all pages of segments that the program has among its own. No other thread is there.
fn copy_pages(areas: &Areas, books: &Books, views: &[Range<usize>]) -> Option<()> {
    let of_program = |area: &Area| area.is_shared() && books.has(area.file) && !area.is_in(views);
    areas.of_files().filter(of_program).try_for_each(|area| copy_area(&area))
}

fn copy_area(area: &Area) -> Option<()> {
    let (at, length) = (NonNull::new(std::ptr::with_exposed_provenance_mut(area.pages.start))?, area.pages.len());
    let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
    // SAFETY: fresh address space, wherever the kernel likes.
    let copy = unsafe { mmap_anonymous(None, NonZeroUsize::new(length)?, protection, MapFlags::MAP_PRIVATE) }.ok()?;
    if !area.is_readable() {
        // SAFETY: it is replaced below.
        unsafe { mprotect(at, length, ProtFlags::PROT_READ) }.ok()?;
    }
    // SAFETY: both have so many bytes; this is the only thread.
    unsafe { copy.copy_from_nonoverlapping(at, length) };
    // SAFETY: the copy is nobody's yet.
    unsafe { mprotect(copy, length, area.protection()) }.ok()?;
    let flags = MRemapFlags::MREMAP_MAYMOVE | MRemapFlags::MREMAP_FIXED;
    // SAFETY: what is replaced holds the same, with the same protection.
    unsafe { mremap(copy, length, length, flags, Some(at)) }.ok().map(|_| ())
}
