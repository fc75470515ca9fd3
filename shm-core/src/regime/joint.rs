//! Broadcasts and reductions of two ranks that both work on them: where all buffers lie where both reach them, nothing
//! goes through cells, and each rank moves or folds one half.
//!
//! The bytes are those that one rank alone would load and store, 2n for a broadcast and 3n for a reduction of n bytes;
//! they are shared by two cores. A giver that has nothing to lend takes the way of cells, and the other one finds that
//! out; a taker that cannot be reached does all of it.
//!
//! Before private memory is reached for, each rank sees whether it can be, since not all memory can: the taker reads
//! the first and the last byte of the giver's, and has the kernel write those of its own; the giver sees that it still
//! gets at the taker. Who declines costs a call some system calls.

use super::cut::Cut;
use super::division::Division;
use super::lend::{Lending, Source};
use super::operands::{Input, Operands};
use super::reach_trial::Transfer;
use super::{Engine, Reduction};
use crate::board::SharedBoard;
use crate::counters::add;
use crate::error::Result;
use crate::pace::{Calls, Way, ticks};
use crate::payload::{Manner, copy_in};
use crate::protocol::joint::{self, Halves, Outcome, Part, Places};
use crate::protocol::{Board, Location, Place, Ring, RingName};
use crate::segment::layout::LINE;
use crate::select::Collective;

/// Bytes from which a message of one slice is done by both ranks too, where it lies in shared memory. On an AMD EPYC
/// (Zen 4), its cores near each other, broadcasts and reductions of 16 KiB between buffers there took 16 and 21 percent
/// less so than by the taker alone, of 32 KiB 18 and 19; of 8 KiB 5 percent less and 2 more. A taker whose own buffer
/// is private works alone all the same, and says so: that costs it 0.1 us.
pub(crate) const JOINT_LEAST: usize = 16 << 10;

impl Engine {
    /// Whether two ranks do a call of these slices together, or find out by trying: the same on both.
    ///
    /// Of several slices they try. Of one the giver decides, whose payload lies at `place`; the other one waits for it,
    /// and sees. Then the giver lends, and the call does not end as [`NotLent`](Outcome::NotLent).
    #[inline]
    pub(super) fn tries_jointly(
        &self,
        ring: &Ring,
        gives: bool,
        (slices, place): (Cut, Place),
        tag: u32,
    ) -> Result<bool> {
        let Self { board, up, down, .. } = self;
        if board.size() != 2 {
            return Ok(false);
        }
        if slices.count() > 1 {
            return Ok(true);
        }
        if slices.bytes() < JOINT_LEAST {
            return Ok(false);
        }
        if gives {
            return Ok(matches!(place, Place::Heap(_)));
        }
        // Nothing is lent yet: so are calls left by an error.
        let lending = Lending::begin(board, (up, 0), (down, 0));
        lending.end(joint::is_lent(board, ring, tag))
    }

    /// A broadcast, of which the root's buffer lies at `place`, to go by its `transfer`; the taker leaves a figure if
    /// it `tries`. Where the root does not lend that slices follow at the positions that are returned.
    pub(super) fn broadcast_jointly(
        &mut self,
        root: usize,
        (buffer, slices, place): (*mut u8, Cut, Place),
        (tag, tries): (u32, bool),
        transfer: Transfer,
    ) -> Result<(Outcome, Places)> {
        let (bytes, gives) = (slices.bytes(), self.board.rank() == root);
        let location = match gives {
            true => Location { alone: transfer == Transfer::ByTaker, ..Location::whole_at(place, bytes) },
            false => match self.thresholds.heap_offset(&self.board, Collective::Broadcast, buffer, bytes) {
                Some(offset) => Location::slice_at(Place::Heap(offset), bytes),
                None => Location::CELL,
            },
        };
        let way = self.thresholds.way_of_results(2 * bytes);
        let Self { board, up, down, copies, .. } = self;
        let places = Places::take(down, slices.count(), up);
        let lending = Lending::begin(board, (up, 0), (down, 0));
        let other = Source::Cell;
        let (middle, answer) = (middle(bytes, 1), up.slot(places.answer()));
        let by = Way::Cached;
        let (begun, has_all) = (0, false);
        let mut copying =
            Copying { board, buffer, bytes, middle, location, other, way, copies, answer, by, begun, has_all };
        let outcome = jointly(board, gives, (&mut *down, &mut *up), places, tag, &mut copying, lending)?;
        let Copying { begun, by, has_all, .. } = copying;
        if outcome == Outcome::Done && !gives && copying.is_open() {
            copying.copies.learn(places.payload().first(), bytes, by, begun);
        }
        match outcome {
            Outcome::Done if !gives && tries => {
                // SAFETY: the message lies in this call's buffer, whole: the giver is done with the half that it took.
                unsafe { self.leave_reach_figure((buffer, bytes), (places.payload().last(), begun), has_all) };
            }
            Outcome::Declined if gives => self.reach_no_more(),
            _ => {}
        }
        Ok((outcome, places))
    }

    /// A reduction, of which the leaf's contribution lies at `place`. Where it does not lend that slices follow at the
    /// positions that are returned.
    pub(super) fn reduce_jointly(
        &mut self,
        root: usize,
        (reduction, slices, place): (Reduction<'_>, Cut, Place),
        tag: u32,
    ) -> Result<(Outcome, Places)> {
        let Reduction { send, recv, bytes, fold } = reduction;
        let way = match send == recv {
            // In place it lies in the caches already.
            true => Way::Cached,
            false => self.thresholds.way_of_results(4 * bytes),
        };
        let gives = self.board.rank() != root;
        let location = match gives {
            true => Location::whole_at(place, bytes),
            false => {
                let offset = |buffer| self.thresholds.heap_offset(&self.board, Collective::Reduce, buffer, bytes);
                match (offset(send), offset(recv)) {
                    (Some(send), Some(recv)) => Location::slice_at(Place::Heap(send), bytes).wanting(Some(recv), bytes),
                    _ => Location::CELL,
                }
            }
        };
        let Self { board, up, down, operands, .. } = self;
        let places = Places::take(up, slices.count(), down);
        let lending = Lending::begin(board, (up, 0), (down, 0));
        let (other, middle) = (Source::Cell, middle(bytes, fold.element));
        let mut folding = Folding { board, reduction, middle, location, other, result: recv, operands, way };
        let outcome = jointly(board, gives, (&mut *up, &mut *down), places, tag, &mut folding, lending)?;
        Ok((outcome, places))
    }
}

/// Where the second half of `bytes` bytes of `element`-byte elements begins.
fn middle(bytes: usize, element: usize) -> usize {
    Division::new(bytes, element, 2, element.next_multiple_of(LINE)).start(1)
}

/// Offset and length of a part of `bytes` bytes.
fn range(part: Part, middle: usize, bytes: usize) -> (usize, usize) {
    match part {
        Part::All => (0, bytes),
        Part::First => (0, middle),
        Part::Second => (middle, bytes - middle),
    }
}

/// Does the call if the giver lends.
fn jointly(
    board: &SharedBoard,
    gives: bool,
    (giving, answering): (&mut Ring, &mut Ring),
    places: Places,
    tag: u32,
    halves: &mut impl Halves,
    lending: Lending<'_>,
) -> Result<Outcome> {
    lending.end(match gives {
        true if halves.own().whole => joint::give(board, (giving, answering), places, tag, halves),
        true => Ok(Outcome::NotLent),
        false => joint::take(board, (giving, answering), places, tag, halves),
    })
}

/// The payload of a broadcast.
struct Copying<'a> {
    board: &'a SharedBoard,
    buffer: *mut u8,
    bytes: usize,
    /// Where the second half begins.
    middle: usize,
    /// Where the own buffer lies.
    location: Location,
    /// Where the other rank's buffer lies.
    other: Source,
    way: Way,
    copies: &'a mut Calls,
    /// The slot of the taker's answer, in which it tells how the halves are copied: by that, where they are open.
    answer: usize,
    by: Way,
    /// When this rank has found what the other one said, in ticks; 0 if it has not looked.
    begun: u64,
    /// Whether this taker has taken all before its answer.
    has_all: bool,
}

impl Copying<'_> {
    /// Whether loads and stores of both ranks reach both buffers, and all stays in the caches.
    fn is_open(&self) -> bool {
        self.way == Way::Cached
            && matches!(self.other, Source::Mapped(_))
            && matches!(self.location.place, Place::Heap(_))
    }

    /// Takes all of a message at that address of the giver's private memory; what this taker answers then. Nobody waits
    /// for the answer, so that whether the message can be read is found out by reading it.
    fn take_all(&mut self, address: u64) -> Location {
        let Self { board, buffer, bytes, .. } = *self;
        // SAFETY: the giver has lent so many bytes, which do not change before this rank says so; the own buffer has
        // room for them, and nobody is told of it.
        self.has_all = unsafe { board.tries_to_read(1 - board.rank(), address, buffer, bytes) };
        if !self.has_all {
            return Location::DECLINED;
        }
        add(&board.tally.loaded, bytes);
        add(&board.tally.stored, bytes);
        Location::CELL
    }

    /// What this taker answers a giver whose private memory is at that address, and who would do a half.
    fn answer_to_private(&self, address: u64) -> Location {
        let Self { board, buffer, bytes, location, .. } = *self;
        if !board.reads_ends(1 - board.rank(), address, bytes) {
            Location::DECLINED
        } else if location != Location::CELL {
            location
        // SAFETY: the buffer is this call's, and has so many bytes.
        } else if unsafe { board.opens(1 - board.rank(), buffer, bytes) } {
            Location::slice_at(Place::private(buffer), bytes)
        } else {
            Location::CELL
        }
    }
}

impl Halves for Copying<'_> {
    fn own(&self) -> Location {
        self.location
    }

    fn note(&mut self, location: Location) -> Result<()> {
        self.begun = ticks();
        self.other = Source::find(self.board, 1 - self.board.rank(), location, self.bytes, 1)?;
        if self.location.whole {
            self.by = self.board.told(RingName::Up, 1 - self.board.rank(), self.answer);
        } else {
            if self.is_open() {
                self.by = self.copies.next(self.bytes);
            }
            // The giver may still read what the slot's last use told, which is as good.
            self.board.tell_reader(RingName::Up, self.answer, self.by, false);
        }
        if let (Source::Remote(base), false) = (self.other, self.location.whole) {
            self.location = if location.alone { self.take_all(base) } else { self.answer_to_private(base) };
        }
        Ok(())
    }

    fn may_store(&self, wanted: Location) -> bool {
        !matches!(wanted.place, Place::Private(_)) || self.board.gets_at(1 - self.board.rank())
    }

    fn work(&mut self, part: Part) -> Result<()> {
        if self.has_all {
            return Ok(());
        }
        let Self { board, buffer, bytes, middle, other, way, .. } = *self;
        let (at, len) = range(part, middle, bytes);
        let own = buffer.wrapping_add(at);
        let by = if self.is_open() { self.by } else { Way::Cached };
        if !self.location.whole {
            let input = other.input(1 - board.rank(), std::ptr::null(), at);
            // SAFETY: the giver has lent so many bytes, which do not change before this rank says so; the own buffer
            // has room for them. The giver stores none but the half that it has claimed.
            return unsafe { input.copy(Manner::of_fresh(way).behind(by, len), board, own, len) };
        }
        match other {
            // SAFETY: the taker has said that so many bytes belong there, and this rank has claimed the half.
            Source::Mapped(base) => unsafe {
                copy_in(own, base.wrapping_add(at), len, if by == Way::Cached { way } else { by })
            },
            // SAFETY: the same.
            Source::Remote(base) => unsafe { board.write_private(1 - board.rank(), own, base + at as u64, len) }?,
            // Who takes all alone leaves nothing to claim.
            Source::Cell | Source::CellOf(_) => return Err(board.differs(1 - board.rank(), 0, bytes)),
        }
        add(&board.tally.loaded, len);
        add(&board.tally.stored, len);
        Ok(())
    }
}

/// The payload of a reduction.
struct Folding<'a> {
    board: &'a SharedBoard,
    reduction: Reduction<'a>,
    /// Where the second half begins.
    middle: usize,
    /// Where the own contribution lies, and the result is wanted.
    location: Location,
    /// Where the other rank's contribution lies.
    other: Source,
    /// Where the result goes.
    result: *mut u8,
    operands: &'a mut Operands,
    way: Way,
}

impl Halves for Folding<'_> {
    fn own(&self) -> Location {
        self.location
    }

    fn note(&mut self, location: Location) -> Result<()> {
        let (board, bytes, align) = (self.board, self.reduction.bytes, self.reduction.fold.align);
        self.other = Source::find(board, 1 - board.rank(), location, bytes, align)?;
        if let Some(offset) = location.result {
            self.result = board.seat().mapping().heap_pointer(offset, bytes, align)?;
            if location.place == Place::Heap(offset) {
                // In place it lies in the caches already.
                self.way = Way::Cached;
            }
        }
        Ok(())
    }

    fn work(&mut self, part: Part) -> Result<()> {
        let board = self.board;
        let bytes = self.reduction.bytes;
        let (at, len) = range(part, self.middle, bytes);
        let own = Input::Own(self.reduction.send.wrapping_add(at));
        let other = self.other.input(1 - board.rank(), std::ptr::null(), at);
        let Operands { inputs, results, .. } = &mut *self.operands;
        inputs.clear();
        inputs.extend(if board.rank() == 0 { [own, other] } else { [other, own] });
        results.clear();
        results.push(self.result.wrapping_add(at));
        // SAFETY: both contributions are there, and do not change before this rank says so but by the fold itself, in
        // place; the result's part is this rank's alone to store. Parts are whole elements.
        unsafe { self.operands.fold(board, &self.reduction.fold, (len, bytes), self.way) }
    }
}
