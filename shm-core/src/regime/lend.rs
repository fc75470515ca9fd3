//! Regime 4, direct: payload that stays where it lies.
//!
//! A buffer in the job's heap is folded, copied from and stored to where it lies. A long private one may be read by one
//! kernel-assisted copy (process_vm_readv; compare Chakraborty et al., CLUSTER 2017), in pieces that stay in the reader's
//! cache; how many read one source at once is bounded by the tree: its children. This is no algorithm of its own: it says, for each
//! slot of the others, where its payload lies ([`Location`]).

use crate::board::SharedBoard;
use crate::counters::add;
use crate::error::Result;
use crate::operator::Fold;
use crate::payload::copy_out;
use crate::protocol::{Board, Place, Ring};
use crate::segment::layout::{LINE, round_up};
use crate::select::{Collective, Tuning};

/// From which size buffers are used where they lie.
#[derive(Clone, Copy)]
pub(super) struct Thresholds {
    direct_least: u64,
    reach_least: [u64; 4],
}

impl Thresholds {
    pub fn new(tuning: &Tuning) -> Self {
        Self { direct_least: tuning.direct_least, reach_least: tuning.reach_least }
    }

    /// Where others find `bytes` bytes at `buffer` in a call of this collective.
    pub fn place(&self, board: &SharedBoard, what: Collective, buffer: *const u8, bytes: usize) -> Place {
        if let Some(offset) = self.heap_offset(board, buffer, bytes) {
            return Place::Heap(offset);
        }
        if bytes > 0 && bytes as u64 >= self.reach_least[what as usize] && !buffer.is_null() && board.can_reach() {
            // Other ranks that are threads of this process read it by this address.
            return Place::Private(buffer.expose_provenance() as u64);
        }
        Place::Cell
    }

    /// Where `bytes` bytes at `buffer` lie in the heap, if they do, and are long enough.
    pub fn heap_offset(&self, board: &SharedBoard, buffer: *const u8, bytes: usize) -> Option<u64> {
        let long = bytes > 0 && bytes as u64 >= self.direct_least && !buffer.is_null();
        if long { board.seat().mapping().heap_offset(buffer, bytes) } else { None }
    }
}

/// Where this rank gets at another's payload.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    /// In the cell of the slot.
    Cell,
    /// Byte 0 of the message here.
    Near(*mut u8),
    /// Byte 0 of the message at this address of the other rank.
    Far(u64),
}

impl Source {
    /// What a peer's place of a message of `bytes` bytes, aligned to `align`, is to this rank.
    pub fn find(board: &SharedBoard, place: Place, bytes: usize, align: usize) -> Result<Self> {
        Ok(match place {
            Place::Cell => Source::Cell,
            Place::Heap(offset) => Source::Near(board.seat().mapping().heap_pointer(offset, bytes, align)?),
            Place::Private(address) => Source::Far(address),
        })
    }

    pub fn is_lent(self) -> bool {
        !matches!(self, Source::Cell)
    }

    /// The bytes from `at` on, in `cell` if the payload is there.
    pub fn input(self, rank: usize, cell: *const u8, at: usize) -> Input {
        match self {
            Source::Cell => Input::Here(cell),
            Source::Near(base) => Input::Here(base.wrapping_add(at)),
            Source::Far(base) => Input::There { rank, address: base + at as u64 },
        }
    }
}

/// Bytes of payload that a call is about to load.
#[derive(Clone, Copy, Debug)]
pub(super) enum Input {
    /// In memory that this rank has mapped.
    Here(*const u8),
    /// In another rank's private memory.
    There { rank: usize, address: u64 },
}

impl Input {
    /// Copies `len` bytes of it to `to`.
    ///
    /// # Safety
    /// They are there, initialised, and nobody writes them meanwhile; as many may be written at `to`, which does not overlap.
    pub unsafe fn copy(self, board: &SharedBoard, to: *mut u8, len: usize) -> Result<()> {
        match self {
            // SAFETY: by contract.
            Input::Here(from) => unsafe { copy_out(from, to, len) },
            // SAFETY: by contract.
            Input::There { rank, address } => unsafe { board.read_private(rank, address, to, len) }?,
        }
        add(&board.tally.loaded, len);
        add(&board.tally.stored, len);
        Ok(())
    }
}

/// Bytes of private memory into which the pieces of all far operands of a fold are read: they should stay in a core's cache.
const LANDING: usize = 256 * 1024;

/// What a fold works with, kept between calls to spare allocations.
#[derive(Default)]
pub(super) struct Operands {
    pub inputs: Vec<Input>,
    pub results: Vec<*mut u8>,
    here: Vec<*const u8>,
    landing: Vec<Aligned>,
}

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Aligned([u8; LINE]);

impl Operands {
    /// Folds `len` bytes of all inputs, in their order, to all results.
    ///
    /// # Safety
    /// As [`Fold::apply_to`] for the inputs that are here; those that are not are initialised, and nobody writes them meanwhile.
    pub unsafe fn fold(&mut self, board: &SharedBoard, fold: &Fold<'_>, len: usize) -> Result<()> {
        let Self { inputs, results, here, landing } = self;
        let far = inputs.iter().filter(|input| matches!(input, Input::There { .. })).count();
        let element = fold.element.max(1);
        let piece = match far {
            0 => len,
            far => (LANDING / far / element).max(1) * element,
        };
        let row = round_up(piece.min(len), LINE);
        if landing.len() * LINE < far * row {
            landing.resize(far * row / LINE, Aligned([0; LINE]));
        }
        add(&board.tally.loaded, inputs.len() * len);
        add(&board.tally.stored, results.len() * len);
        let mut at = 0;
        loop {
            let part = piece.min(len - at);
            here.clear();
            let mut place = landing.as_mut_ptr().cast::<u8>();
            for &input in inputs.iter() {
                here.push(match input {
                    Input::Here(from) => from.wrapping_add(at),
                    Input::There { rank, address } => {
                        // SAFETY: by contract `len` bytes are there; the row has room for the part.
                        unsafe { board.read_private(rank, address + at as u64, place, part) }?;
                        let operand = place.cast_const();
                        place = place.wrapping_add(row);
                        operand
                    }
                });
            }
            if let [result] = results[..] {
                // SAFETY: by contract; rows are aligned to lines.
                unsafe { fold.apply(result.wrapping_add(at), here, part) };
            } else {
                results.iter_mut().for_each(|result| *result = result.wrapping_add(at));
                // SAFETY: the same.
                unsafe { fold.apply_to(results, here, part) };
                results.iter_mut().for_each(|result| *result = result.wrapping_sub(at));
            }
            at += part;
            if at >= len {
                return Ok(());
            }
        }
    }
}

/// A call in which ranks may reach into each other's buffers. Dropped before it has ended, by an error or by a panic, it keeps
/// the caller until nobody does any more.
pub(super) struct Lending<'a> {
    board: &'a SharedBoard,
    last_up: u64,
    last_down: u64,
}

impl<'a> Lending<'a> {
    /// A call that takes so many positions of the up and the down ring.
    pub fn begin(board: &'a SharedBoard, (up, ups): (&Ring, u64), (down, downs): (&Ring, u64)) -> Self {
        Self { board, last_up: up.next_position() + ups - 1, last_down: down.next_position() + downs - 1 }
    }

    /// Ends it.
    pub fn end(self, result: Result<()>) -> Result<()> {
        if result.is_ok() {
            self.board.keep_own();
            std::mem::forget(self);
        }
        result
    }
}

impl Drop for Lending<'_> {
    fn drop(&mut self) {
        self.board.leave(self.last_up, self.last_down);
    }
}

impl SharedBoard {
    /// Whether the ranks of this job can read each other's private memory.
    pub fn can_reach(&self) -> bool {
        false
    }

    /// Reads another rank's private memory.
    ///
    /// # Safety
    /// `len` bytes may be written at `to`; those at `address` of the other rank are initialised, and nobody writes them meanwhile.
    unsafe fn read_private(&self, rank: usize, address: u64, to: *mut u8, len: usize) -> Result<()> {
        add(&self.tally.reached, len);
        let _ = (rank, address, to);
        Ok(())
    }
}
