//! Reduce-scatters and scans: what is read of several ranks is folded, in rank order, to where its reader wants it.
//!
//! For a reduce-scatter each rank publishes rows, of which each other rank folds its part; of two ranks with equal
//! blocks each writes its next row over what it has folded ([`cross`](crate::protocol::Ring::cross)). For a scan it
//! publishes its vector, which all higher ranks fold: over few ranks, or one slice. Longer scans go along a chain: each
//! rank folds its vector onto the prefix of the rank before, to its result and to the cell from which the next one
//! takes it.

use super::blocks::{BlockCut, Medium, Outgoing, Sending};
use super::cut::Cut;
use super::delivery::copy_own;
use super::exchange::crossing_positions;
use super::lend::{Lending, Source};
use super::operands::{Input, Operands};
use super::{Engine, Reduction};
use crate::board::SharedBoard;
use crate::counters::add;
use crate::error::Result;
use crate::links::Links;
use crate::operator::Fold;
use crate::pace::{Pace, Slice, Way, reading};
use crate::payload::{Manner, copy_in, copy_out};
use crate::protocol::delivery::{Delivery, Origin, Sources, deliver};
use crate::protocol::step::{self, Gathers, Span};
use crate::protocol::{Board, Location, Place, Readers};
use crate::select::{BlockChoice, Collective};

/// What a rank folds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    /// Everybody's part of a row, the own one among them.
    Rows,
    /// The vectors of all lower ranks, and the own one.
    Inclusive,
    /// The vectors of all lower ranks.
    Exclusive,
}

/// A call whose blocks are folded.
pub(crate) struct Folding<'a> {
    pub what: Operand,
    pub send: Sending<'a>,
    /// The own contribution to the own result.
    pub own: *const u8,
    pub recv: *mut u8,
    /// Bytes of the own result.
    pub bytes: usize,
    pub fold: Fold<'a>,
    /// Where in what each rank sends this rank's block lies, and how long that is.
    pub place: (usize, usize),
    /// Whether one buffer is contribution and result, so that it changes while others would read it.
    pub in_place: bool,
    /// Bytes of the longest result of all: the same on all ranks.
    pub longest: usize,
}

/// Slices up to which a scan of more than two ranks is read by all higher ranks, not handed along a chain.
const DIRECT_SLICES: u64 = 1;

impl Engine {
    /// Folds blocks. The call is begun here.
    pub fn fold_blocks(&mut self, choice: &BlockChoice, call: Folding<'_>, tag: u32) -> Result<()> {
        let cut = BlockCut::new(choice, call.longest);
        let medium = Medium::new(choice, call.longest);
        if choice.lines {
            self.board.may_begin()?;
        } else {
            self.board.begin_at_home(tag)?;
            self.cut_up_cells(choice.cell, choice.slots, true)?;
        }
        let size = self.board.size();
        let scans = call.what != Operand::Rows;
        if scans && !choice.lines && size > 2 && cut.count() > DIRECT_SLICES {
            return self.scan_along_chain(choice, call, tag);
        }
        let Self { board, lines, up, down, operands, sources, up_pace, thresholds, above, .. } = self;
        let board = &*board;
        let alone = (call.what == Operand::Inclusive && board.rank() == 0 || call.what == Operand::Rows && size == 1)
            && !call.in_place;
        let own = alone.then_some((call.own, call.recv, call.bytes));
        let note = choice.lines.then_some(tag);
        if size == 1 {
            note.inspect(|&tag| board.note(tag));
            copy_own(board, own);
            return Ok(());
        }
        let ring = if choice.lines { lines } else { &mut *up };
        let (buffer, bytes) = match call.send {
            Sending::Nothing => (std::ptr::null(), 0),
            Sending::Same(buffer, bytes) => (buffer, bytes),
            Sending::Rows(buffer, _) => (buffer, call.place.1),
        };
        let place = match choice.lines || call.in_place {
            true => Place::Cell,
            false => thresholds.block_place(board, Collective::Allreduce, !scans, (buffer, bytes), || false),
        };
        sources.clear();
        sources.resize(size, Source::Cell);
        let (readers, from) = match scans {
            true => (above.as_ref(), Sources::Below),
            false => (Some(&Readers::All), Sources::Others),
        };
        let location = if readers.is_some() { Location::whole_at(place, bytes) } else { Location::CELL };
        let (first, reader) = (ring.next_position(), (board.rank() + 1) % size);
        // Each slice has something for both.
        let even = matches!(call.send, Sending::Rows(_, blocks) if size == 2 && blocks.len(0) == blocks.len(1));
        let crosses = even && !choice.lines && call.longest > 0;
        let mut work = Combining {
            out: Outgoing { board, medium, cut, send: call.send, pace: up_pace, reader, first, crosses },
            positions: if crosses { crossing_positions(cut.count(), ring.slots()) } else { 0 },
            crossed: false,
            location,
            call: &call,
            copied: own,
            note,
            slots: size,
            operands,
            sources,
        };
        if choice.lines {
            return deliver(board, ring, (readers, from), 1, tag, &mut work);
        }
        let lending = Lending::begin(board, (ring, cut.count()), (down, 0));
        lending.end(deliver(board, ring, (readers, from), cut.count(), tag, &mut work))
    }

    fn scan_along_chain(&mut self, choice: &BlockChoice, call: Folding<'_>, tag: u32) -> Result<()> {
        let Self { board, up, down, operands, up_pace, chain, .. } = self;
        let board = &*board;
        let (rank, size) = (board.rank(), board.size());
        let links = chain.get_or_insert_with(|| {
            let before = rank.checked_sub(1);
            Links::new((rank + 1 < size).then_some(rank + 1), before.as_slice(), size)
        });
        let slices = Cut::new(call.bytes, choice.cell, call.fold.element);
        let lending = Lending::begin(board, (up, slices.count()), (down, 0));
        let span = Span::take(up, slices.count());
        let mut work = Prefixes {
            board,
            cell: choice.cell,
            ring: (span.first(), up.slots() as u64),
            reduction: Reduction { send: call.own, recv: call.recv, bytes: call.bytes, fold: call.fold },
            exclusive: call.what == Operand::Exclusive,
            slices,
            operands,
            pace: up_pace,
        };
        lending.end(step::gather_all(board, up, links, span, tag, &mut work))
    }
}

/// The payload of a call in which each rank folds what it reads.
struct Combining<'a> {
    out: Outgoing<'a>,
    /// The least number of positions.
    positions: u64,
    /// Whether what was read last lies in the own cell.
    crossed: bool,
    location: Location,
    call: &'a Folding<'a>,
    /// The own contribution, where that is the result.
    copied: Option<(*const u8, *mut u8, usize)>,
    /// The tag by which the call is to be noted, if it is not yet.
    note: Option<u32>,
    slots: usize,
    operands: &'a mut Operands,
    /// Where each source's payload lies.
    sources: &'a mut [Source],
}

impl Combining<'_> {
    fn is_operand(&self, rank: usize) -> bool {
        let me = self.out.board.rank();
        match self.call.what {
            Operand::Rows => true,
            Operand::Inclusive => rank <= me,
            Operand::Exclusive => rank < me,
        }
    }
}

impl Delivery for Combining<'_> {
    fn location(&self) -> Location {
        self.location
    }

    fn has(&self, rank: usize) -> bool {
        self.sources[rank].is_lent()
    }

    fn takes(&self, slice: u64, _: usize) -> bool {
        self.out.cut.range(self.call.bytes, slice).1 > 0
    }

    fn positions(&self) -> u64 {
        self.positions
    }

    fn crosses(&self) -> bool {
        self.out.crosses
    }

    #[inline]
    fn write(&mut self, slice: u64, slot: usize, crossed: bool) {
        self.out.write(slice, slot, crossed);
    }

    #[inline]
    fn meanwhile(&mut self) {
        self.note.inspect(|&tag| self.out.board.note(tag));
        copy_own(self.out.board, self.copied);
    }

    #[inline]
    fn read(&mut self, _: u64, rank: usize, from: Origin) -> Result<()> {
        self.crossed = from.crossed;
        self.sources[rank] =
            Source::find(self.out.board, rank, from.location, self.call.place.1, self.call.fold.align)?;
        Ok(())
    }

    fn complete(&mut self, slice: u64, slot: usize) -> Result<()> {
        let Outgoing { board, medium, cut, first, .. } = self.out;
        let Folding { what, own, recv, bytes, fold, place, .. } = *self.call;
        let (at, len) = cut.range(bytes, slice);
        if len == 0 && slice > 0 {
            return Ok(());
        }
        let me = board.rank();
        let mut inputs = std::mem::take(&mut self.operands.inputs);
        inputs.clear();
        inputs.extend((0..self.slots).filter(|&rank| self.is_operand(rank)).map(|rank| {
            if rank == me {
                return Input::Own(own.wrapping_add(at));
            }
            let part = if what == Operand::Rows { Medium::part(rank, me) } else { 0 };
            let cell = medium.place(board, if self.crossed { me } else { rank }, slot, part);
            self.sources[rank].input(rank, cell, place.0 + at)
        }));
        let in_cells = matches!(medium, Medium::Cells(..)) && what != Operand::Rows;
        let in_cells = in_cells && !self.sources.iter().any(|source| source.is_lent());
        self.operands.inputs = inputs;
        self.operands.results.clear();
        self.operands.results.push(recv.wrapping_add(at));
        let (operands, mut folded) = (&mut *self.operands, Ok(()));
        // SAFETY: the slots of all operands are published, or their buffers lent: `len` bytes of their payload (in this
        // rank's own cell where they are crossed) are written and will not change; in lines they are aligned as far as
        // the elements need it, in cells to lines. The result goes to the caller's buffer, which is an operand only in
        // place, where it was not lent and takes the operand's very bytes.
        let mut combine = || folded = unsafe { operands.fold(board, &fold, (len, bytes), Way::Cached) };
        match in_cells && len > 0 {
            true => reading(board, first + slice, len, combine),
            false => combine(),
        }
        folded
    }
}

/// The payload of a scan along a chain: the rank before is the only child.
struct Prefixes<'a> {
    board: &'a SharedBoard,
    cell: usize,
    /// The first position, and the slots of the ring.
    ring: (u64, u64),
    reduction: Reduction<'a>,
    /// Whether the result is the prefix of the rank before.
    exclusive: bool,
    slices: Cut,
    operands: &'a mut Operands,
    pace: &'a mut Pace,
}

impl Gathers for Prefixes<'_> {
    fn fold(&mut self, slice: u64, own: Option<usize>) -> Result<()> {
        let (at, len) = self.slices.range(slice);
        let (board, rank, position) = (self.board, self.board.rank(), self.ring.0 + slice);
        let Reduction { send, recv, fold, bytes } = self.reduction;
        let (send, recv) = (send.wrapping_add(at), recv.wrapping_add(at));
        let cell = |of: usize, slot: usize| board.up_cell(of, slot, self.cell);
        let before = rank.checked_sub(1).map(|before| cell(before, (position % self.ring.1) as usize));
        let next = own.map(|own| cell(rank, own));
        let filled = |slot| Slice { position, slot, bytes: len, reader: rank + 1 };
        let Some(before) = before else {
            // The first prefix is the own vector.
            let own = own.expect("the chain has more than one rank");
            let to = cell(rank, own);
            self.pace.writing(board, filled(own), |way| {
                // SAFETY: `len` bytes of the caller's buffer; the own slot is claimed, and has room for a slice.
                unsafe { copy_in(send, to, len, way) };
            });
            add(&board.tally.loaded, len);
            add(&board.tally.stored, len);
            let keeps = !self.exclusive && send != recv.cast_const();
            copy_own(board, keeps.then_some((send, recv, len)));
            return Ok(());
        };
        let Operands { inputs, results, .. } = &mut *self.operands;
        inputs.clear();
        inputs.extend([Input::Mapped(before), Input::Own(send)]);
        results.clear();
        // The own result, which may take the place of the own vector, and, last, the cell.
        results.extend((!self.exclusive).then_some(recv));
        results.extend(next);
        let mut folded = Ok(());
        let wanted = !results.is_empty();
        let operands = &mut *self.operands;
        // SAFETY: the slot of the rank before is published (so `len` bytes of the prefix are written and will not
        // change), the own one claimed; so many bytes of the caller's buffers are there; slices are whole elements, and
        // cells aligned to lines. The own result is no operand, unless the caller works in place; a cell never is.
        let mut fold = |way| folded = unsafe { operands.fold(board, &fold, (len, bytes), way) };
        let pace = &mut *self.pace;
        let combine = || match own {
            _ if !wanted => {}
            Some(own) => pace.writing(board, filled(own), fold),
            None => fold(Way::Cached),
        };
        match len > 0 {
            true => reading(board, position, len, combine),
            false => combine(),
        }
        folded?;
        if self.exclusive {
            // Behind the fold: in place, the result takes the own vector's place.
            // SAFETY: the prefix of the rank before is still there; so many bytes of the caller's buffer are.
            unsafe { copy_out(before, recv, len, Manner::Plain) };
            add(&board.tally.loaded, len);
            add(&board.tally.stored, len);
        }
        Ok(())
    }
}
