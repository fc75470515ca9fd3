//! Rows that nobody knows beforehand: an alltoall of blocks of other lengths.
//!
//! Each rank tells all others how much it sends to whom, in a slot of lines, and puts its row behind the counts where
//! there is room. Everybody hears everybody's counts, and so knows alike whether all rows have come with them; if not,
//! none is taken from there.

use std::ops::Range;
use std::sync::atomic::Ordering;

use super::Engine;
use super::blocks::{Blocks, WORDS};
use super::delivery::copy_own;
use super::route::OwnBlock;
use super::slots::words_of;
use crate::board::SharedBoard;
use crate::counters::add;
use crate::counts::note;
use crate::error::Result;
use crate::payload::{load_line, store_line};
use crate::protocol::Board;
use crate::protocol::exchange::{Pieces, exchange_pieces};

/// What a rank has heard of all rows.
pub(crate) struct Heard {
    /// The longest block that a rank sends to another.
    pub longest: usize,
    /// Whether all of those are equally long.
    pub is_even: bool,
    /// Whether all rows have come along, and are in their places.
    pub has_come: bool,
}

impl Engine {
    /// Begins a call: tells the lengths of the blocks `sends` at `send`, and brings those of short rows to their places
    /// `receives` at `recv`, which may be the same memory; copies the own block. The counts and the row of a rank may
    /// have `most` bytes together, the same number on all ranks.
    pub fn exchange_rows(
        &mut self,
        tag: u32,
        (send, sends): (*const u8, Blocks<'_>),
        (recv, receives): (*mut u8, Blocks<'_>),
        own: OwnBlock,
        most: usize,
    ) -> Result<Heard> {
        self.board.may_begin()?;
        let Self { board, lines, .. } = self;
        let (me, size) = (board.rank(), board.size());
        let own_lengths = (0..size).filter(|&to| to != me).map(|to| sends.len(to));
        let (longest, shortest) = (own_lengths.clone().max().unwrap_or(0), own_lengths.min().unwrap_or(0));
        let has_come = row_of(me, size, |to| sends.len(to)).end <= most / 8;
        let mut rows = Rows {
            board,
            tag,
            own,
            send,
            sends,
            recv,
            receives,
            most,
            slot: 0,
            longest,
            shortest,
            has_come,
            differs: None,
        };
        exchange_pieces(board, lines, tag, size.div_ceil(WORDS), &mut rows)?;
        match rows.differs {
            Some((rank, theirs, own)) => {
                board.unnote();
                Err(board.differs(rank, theirs, own))
            }
            None => {
                let is_even = rows.longest == rows.shortest;
                Ok(Heard { longest: rows.longest, is_even, has_come: rows.has_come })
            }
        }
    }
}

/// The words of a slot that the row of a rank takes, behind the counts.
fn row_of(from: usize, size: usize, length: impl Fn(usize) -> usize) -> Range<usize> {
    let parts = (0..size).filter(|&to| to != from).map(|to| words_of(length(to)));
    size..parts.fold(size, usize::saturating_add)
}

/// The payload of an exchange of rows.
struct Rows<'a> {
    board: &'a SharedBoard,
    tag: u32,
    own: OwnBlock,
    send: *const u8,
    sends: Blocks<'a>,
    recv: *mut u8,
    receives: Blocks<'a>,
    /// Bytes of a slot that may be used.
    most: usize,
    /// The slot of this call, on all ranks.
    slot: usize,
    /// The longest block that this rank, and those that were heard, send to another; and the shortest.
    longest: usize,
    shortest: usize,
    /// Whether their rows have come along.
    has_come: bool,
    /// The first rank that sends another count than this one expects, that count, and the expected one.
    differs: Option<(usize, u64, usize)>,
}

impl Rows<'_> {
    /// How much a rank sends to another, in bytes, as it has told in a slot that begins with its count for rank
    /// `first`.
    fn told(&self, from: usize, to: usize, slot: usize, first: usize) -> usize {
        self.board.line(from, slot)[to - first].load(Ordering::Relaxed) as usize
    }

    /// The ranks for which counts are in a piece: the first has all where rows come along.
    fn range(&self, piece: usize) -> Range<usize> {
        piece * WORDS..((piece + 1) * WORDS).min(self.board.size())
    }
}

impl Pieces for Rows<'_> {
    fn write(&mut self, piece: usize, slot: usize) {
        self.slot = slot;
        let told = self.range(piece);
        let Self { board, send, sends, .. } = *self;
        let (me, size, words) = (board.rank(), board.size(), board.own_line(slot));
        let mut at = size;
        for to in (0..size).filter(|&to| to != me && self.has_come) {
            // SAFETY: so many bytes of a block in the caller's buffer; the slot is claimed, and has room for the whole
            // row.
            unsafe { store_line(&words[at..], send.wrapping_add(sends.of(to).start), sends.len(to)) };
            at += words_of(sends.len(to));
            add(&board.tally.loaded, sends.len(to));
            add(&board.tally.stored, sends.len(to));
        }
        // The first line comes last, as in all slots.
        note::stored(words.as_ptr().cast(), 8 * told.len());
        words.iter().zip(told).for_each(|(word, to)| word.store(sends.len(to) as u64, Ordering::Relaxed));
    }

    fn meanwhile(&mut self) {
        self.board.note(self.tag);
        copy_own(self.board, self.own);
    }

    fn read(&mut self, piece: usize, rank: usize, slot: usize) {
        let (me, size, told) = (self.board.rank(), self.board.size(), self.range(piece));
        note::loaded(self.board.line_payload(rank, slot), 8 * told.len());
        for to in told.clone().filter(|&to| to != rank) {
            let bytes = self.told(rank, to, slot, told.start);
            self.longest = self.longest.max(bytes);
            self.shortest = self.shortest.min(bytes);
        }
        self.has_come = self.has_come && row_of(rank, size, |to| self.told(rank, to, slot, 0)).end <= self.most / 8;
        if told.contains(&me) {
            let (found, expected) = (self.told(rank, me, slot, told.start), self.receives.len(rank));
            if found != expected {
                self.differs.get_or_insert((rank, found as u64, expected));
            }
        }
    }

    fn complete(&mut self, _: usize) {
        let (me, size) = (self.board.rank(), self.board.size());
        if !self.has_come || self.differs.is_some() {
            return;
        }
        for rank in (0..size).filter(|&rank| rank != me) {
            let before = (0..me).filter(|&to| to != rank).map(|to| words_of(self.told(rank, to, self.slot, 0)));
            let words = &self.board.line(rank, self.slot)[size + before.sum::<usize>()..];
            let (to, bytes) = (self.recv.wrapping_add(self.receives.of(rank).start), self.receives.len(rank));
            // SAFETY: the slot is published, and not written before this rank is done; the row of that rank lies there,
            // with so many bytes for this one, for which the caller's buffer has room.
            unsafe { load_line(words, to, bytes) };
            add(&self.board.tally.loaded, bytes);
            add(&self.board.tally.stored, bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::communicator::Communicator;
    use crate::{Partition, PartitionMut};

    /// What a rank sends to another at a place.
    fn value(from: usize, to: usize, at: usize) -> usize {
        1_000_000 * from + 1_000 * to + at
    }

    /// An alltoall on `size` ranks, of which rank `a` sends `length(a, b)` elements to rank `b`; in place if both send
    /// each other equally many.
    fn exchange(size: usize, length: fn(usize, usize) -> usize, in_place: bool) {
        let places = |counts: &[usize]| -> Vec<usize> {
            counts.iter().scan(0, |end, count| Some(std::mem::replace(end, *end + count))).collect()
        };
        Communicator::threads(size, |comm| {
            let me = comm.rank();
            let sends: Vec<usize> = (0..size).map(|to| length(me, to)).collect();
            let gets: Vec<usize> = (0..size).map(|from| length(from, me)).collect();
            let send: Vec<usize> = (0..size).flat_map(|to| (0..sends[to]).map(move |at| value(me, to, at))).collect();
            let mut recv = if in_place { send.clone() } else { vec![usize::MAX; gets.iter().sum()] };
            let get_places = places(&gets);
            let mut to = PartitionMut::new(&mut recv, &gets, &get_places);
            match in_place {
                true => comm.all_to_all_varcount_in_place(&mut to).unwrap(),
                false => {
                    comm.all_to_all_varcount_into(&Partition::new(&send, &sends, &places(&sends)), &mut to).unwrap();
                }
            }
            let all = (0..size).flat_map(|from| (0..gets[from]).map(move |at| value(from, me, at)));
            assert!(recv.iter().copied().eq(all), "rank {me} of {size}");
        })
        .unwrap();
    }

    #[test]
    fn rows_come_along_or_none_does() {
        for in_place in [false, true] {
            // All short; none; one that does not fit; the longest that do, on two ranks, and one element more.
            exchange(3, |a, b| a + b, in_place);
            exchange(3, |_, _| 0, in_place);
            exchange(3, |a, b| if a + b == 3 { 500 } else { 2 }, in_place);
            for each in [fn_of::<59>(), fn_of::<61>(), fn_of::<62>(), fn_of::<140>(), fn_of::<141>(), fn_of::<142>()] {
                exchange(2, each, in_place);
            }
        }
        exchange(4, |a, b| 7 * a + 3 * b, false);
        exchange(2, |a, _| 200 * a, false);
    }

    fn fn_of<const N: usize>() -> fn(usize, usize) -> usize {
        |a, b| if a == b { 1 } else { N }
    }

    /// Counts of more ranks than a slot has words.
    #[test]
    fn counts_of_many_ranks_take_several_slots() {
        exchange(WORDS + 5, |a, b| (a + b) % 3, true);
    }

    #[test]
    fn rows_lie_behind_the_counts() {
        let lengths = [8, 100, 0, 9];
        assert_eq!(row_of(0, 4, |to| lengths[to]), 4..4 + 13 + 2);
        assert_eq!(row_of(3, 4, |to| lengths[to]), 4..4 + 1 + 13);
    }
}
