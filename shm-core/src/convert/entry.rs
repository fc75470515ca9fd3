//! A buffer whose whole pages lie in the heap.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use super::areas::{Areas, FileId};
use crate::segment::pool::{HeapBlock, PAGE};

/// Pages of the program's that were put into the heap, where they keep their addresses; and room for the ends of the
/// buffer, which share their pages with what else the program has there, and stay.
///
/// ```text
/// program   ..|..[====|=========|=========|==]...|    buffer
/// pages       |  stay |       moved       | stay |
/// block       | copy  |   the same pages  | copy |    one message without gaps
/// ```
pub(super) struct Entry {
    /// The pages of the buffer, the first and the last as well, that others may have a part of.
    span: Range<usize>,
    body: Range<usize>,
    /// Where the allocation begins that the buffer is, or is a part of.
    allocation: usize,
    block: HeapBlock,
    /// Where the block's place for the first page of `span` lies: in the block, and in the segment's file.
    at: *mut u8,
    offset: u64,
    file: FileId,
    calls: AtomicU64,
}

// SAFETY: the pointer is into the mapping that the block keeps; what lies there is touched by calls alone, which own
// their buffers.
unsafe impl Send for Entry {}
// SAFETY: the same.
unsafe impl Sync for Entry {}

impl Entry {
    /// The pages of `call`, with those that it has a part of.
    pub fn span_of(call: &Range<usize>) -> Range<usize> {
        call.start / PAGE * PAGE..call.end.next_multiple_of(PAGE)
    }

    /// Its whole pages; empty if there are none. So the first page of an allocation, which has the allocator's note, is
    /// never among them, nor the last one: `realloc` grows an allocation by a system call (`mremap`) that fails if its
    /// pages are of several kinds, and then copies. Were all of one kind, moved, it would succeed, and what it adds
    /// would be the next bytes of the segment, which are somebody else's.
    pub fn body_of(call: &Range<usize>) -> Range<usize> {
        let start = call.start.next_multiple_of(PAGE);
        start..(call.end / PAGE * PAGE).max(start)
    }

    /// # Safety
    /// The block has room for the pages of `call` from `skip` on. That of its body is what the program sees there: it
    /// is mapped so.
    pub unsafe fn new(
        call: &Range<usize>,
        allocation: usize,
        (block, skip): (HeapBlock, usize),
        offset: u64,
        file: FileId,
    ) -> Self {
        // SAFETY: by contract within the block.
        let at = unsafe { block.pointer().add(skip) };
        let body = Self::body_of(call);
        Self { span: Self::span_of(call), body, allocation, block, at, offset, file, calls: AtomicU64::new(0) }
    }

    /// Where the allocation begins that an address lies in, as far as is known: at the last look it went as far as the
    /// body.
    pub fn allocation_at(&self, address: usize) -> Option<usize> {
        // The byte behind the body is its own too: the last page of an allocation never belongs to a body.
        let own = (self.allocation..self.span.end).contains(&address) || address == self.body.end;
        own.then_some(self.allocation)
    }

    /// Bytes of the heap.
    pub fn bytes_taken(&self) -> usize {
        self.block.bytes()
    }

    pub fn body(&self) -> &Range<usize> {
        &self.body
    }

    /// Whether the block has a place for each byte of `call`, which has pages of the body.
    pub fn holds(&self, call: &Range<usize>) -> bool {
        self.span.start <= call.start && call.end <= self.span.end && self.touches(call)
    }

    pub fn touches(&self, bytes: &Range<usize>) -> bool {
        self.body.start < bytes.end && bytes.start < self.body.end
    }

    pub fn is_within(&self, body: &Range<usize>) -> bool {
        body.start <= self.body.start && self.body.end <= body.end
    }

    /// Where the block has what the program has at `address`, which is in the span.
    pub fn place(&self, address: usize) -> *mut u8 {
        self.at.wrapping_add(address - self.span.start)
    }

    /// Where in the segment's file the byte at `address` lies.
    pub fn in_file(&self, address: usize) -> u64 {
        self.offset + (address - self.span.start) as u64
    }

    /// Whether the program's pages of a call still are the block's.
    pub fn is_there(&self, areas: &Areas, call: &Range<usize>) -> bool {
        let pages = call.start.max(self.body.start)..call.end.min(self.body.end);
        areas.at(pages.start).is_some_and(|area| area.shows(&pages, self.file, self.in_file(pages.start)))
    }

    /// Whether anything in this process shows the block, besides `views` of the whole segment.
    pub fn is_shown(&self, areas: &Areas, views: &[Range<usize>]) -> bool {
        let own = self.in_file(self.span.start)..self.in_file(self.span.end);
        areas.of_files().filter(|area| area.file == self.file && !area.is_in(views)).any(|area| {
            let shown = area.of_file();
            shown.start < own.end && own.start < shown.end
        })
    }

    /// Takes note of a call.
    pub fn used(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// The parts of `call` that lie in the program's pages alone: before the body, and after it.
    pub fn ends(&self, call: &Range<usize>) -> [Range<usize>; 2] {
        let (head, tail) = (call.end.min(self.body.start), call.start.max(self.body.end));
        [call.start..head.max(call.start), tail.min(call.end)..call.end]
    }

    /// Leaves the block to the program for good.
    pub fn abandon(self) {
        self.block.abandon();
    }
}
