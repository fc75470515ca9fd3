//! The table.

use super::choice::{Choice, Collective, Regime, Vector};
use crate::error::{Error, Result};
use crate::protocol::shares::{LEAST_DOWN_SLOTS, least_up_slots};
use crate::segment::layout::{BlockLayout, LINE, MOST_DOWN_SLOTS, SLOT_PAYLOAD, most_up_slots, round_up};

/// [`Tuning::stream`]: cells are never filled past the caches.
pub(crate) const STREAM_NEVER: u32 = 1;

/// [`Tuning::stream`]: cells are always filled past the caches.
pub(crate) const STREAM_ALWAYS: u32 = 2;

/// The parameters of the choice. Every rank of a job sees the one that its creator wrote into the segment.
///
/// Cells and trees of the broadcast and of the reduction are set apart: the *up* ring serves gather steps and shares, the
/// *down* ring release steps and results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Tuning {
    /// Bytes up to which a collective takes lines, by [`Collective`].
    pub line_most: [u64; 4],
    /// Bytes from which a collective takes shares, by [`Collective`]; `u64::MAX` for never.
    pub shares_least: [u64; 4],
    /// The same for each pair of ranks (bytes by the square of their number): a share must be long enough for the p
    /// contributions that are folded to it, and there are p shares.
    pub shares_square: [u64; 4],
    /// The regime that is forced on a collective, by [`Collective`]: 0 for none, else the [`Regime`]'s number.
    pub forced: [u32; 4],
    /// Ranks up to which lines are exchanged flat (everybody reads everybody, or the root everybody).
    pub flat_ranks: u32,
    /// Leaders among whom shares are divided; 0 for all ranks.
    pub leaders: u32,
    /// Bytes of an up cell where trees are used.
    pub up_cell: u32,
    /// Number of up cells where trees are used, at most: as many as the area holds.
    pub up_cells: u32,
    /// Bytes of a down cell where trees are used.
    pub down_cell: u32,
    /// Number of down cells where trees are used, at most: as many as the area holds.
    pub down_cells: u32,
    /// The most bytes of a slice of a share.
    pub share_cell: u32,
    /// Down cells of a leader, at most: as many as its area holds.
    pub share_downs: u32,
    /// Bytes of up cells a rank; 0 to derive them from the number of ranks.
    pub up_bytes: u32,
    /// Bytes of down cells a rank; 0 to derive them from the number of ranks.
    pub down_bytes: u32,
    /// 1 to print what is chosen, once for each kind of call.
    pub debug: u32,
    /// How cells are filled: 0 in the way that measuring finds the better one, 1 always through the caches, 2 always past
    /// them. Slices shorter than 1 KiB always go through the caches.
    pub stream: u32,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            line_most: [0, 504, 504, 504],
            shares_least: [u64::MAX, u64::MAX, 6 * 1024, 2 * 1024],
            shares_square: [0, 0, 0, 512],
            forced: [0; 4],
            flat_ranks: 32,
            leaders: 0,
            up_cell: 32 * 1024,
            up_cells: 32,
            down_cell: 32 * 1024,
            down_cells: 32,
            share_cell: 64 * 1024,
            share_downs: 32,
            up_bytes: 0,
            down_bytes: 0,
            debug: 0,
            stream: 0,
        }
    }
}

impl Tuning {
    /// Bytes of up cells a rank of a communicator of `size` ranks owns.
    ///
    /// Few ranks get 1 MiB: cells that are used in turn then leave the writer's second-level cache before they are read,
    /// and a reader takes a line faster from a cache that it shares with the writer than from the writer's own.
    #[must_use]
    pub fn up_area(&self, size: usize) -> usize {
        let derived = area_of(size).max(if size <= 64 { 256 * 1024 } else { 128 * 1024 });
        let area = if self.up_bytes == 0 { derived } else { self.up_bytes as usize };
        area.max(least_up_slots(size) * LINE).max(2 * self.up_cell as usize)
    }

    /// Bytes of down cells a rank of a communicator of `size` ranks owns.
    #[must_use]
    pub fn down_area(&self, size: usize) -> usize {
        let derived = area_of(size).max(if size <= 64 { 128 * 1024 } else { 64 * 1024 });
        let area = if self.down_bytes == 0 { derived } else { self.down_bytes as usize };
        area.max(LEAST_DOWN_SLOTS * LINE).max(2 * self.down_cell as usize)
    }

    /// Bytes from which `what` takes shares on `size` ranks.
    fn shares_from(&self, what: Collective, size: usize) -> u64 {
        // Of two ranks, the root folds faster alone than it is handed half of the result.
        if size == 2 && what == Collective::Reduce {
            return u64::MAX;
        }
        let square = (size * size) as u64;
        self.shares_least[what as usize].max(self.shares_square[what as usize].saturating_mul(square))
    }

    /// The layout of the block of a communicator of `size` ranks.
    pub(crate) fn block_layout(&self, size: usize) -> BlockLayout {
        BlockLayout::new(size, self.up_area(size), self.down_area(size))
    }

    /// Bytes below which `what` takes one slot of lines, flat, if its elements fit lines: the calls that need no further
    /// choice.
    pub(crate) fn slot_below(&self, what: Collective, size: usize) -> usize {
        let lines = match Regime::from_number(self.forced[what as usize]) {
            None => self.line_most[what as usize] as usize,
            Some(Regime::Line) => SLOT_PAYLOAD,
            Some(_) => return 0,
        };
        // With tracing, every call goes the long way, which says what it chose.
        if size > self.flat_ranks as usize || self.debug != 0 { 0 } else { lines.min(SLOT_PAYLOAD) + 1 }
    }

    /// What a call on a vector takes on `size` ranks.
    ///
    /// An operator that does not commute never takes a tree deeper than one.
    ///
    /// # Errors
    /// `Tuning` when an element is larger than a cell can be: the same on all ranks, before any flag moves.
    pub fn choose(&self, what: Collective, vector: Vector, size: usize) -> Result<Choice> {
        let Vector { bytes, commutative, .. } = vector;
        let element = vector.element.max(1);
        let regime = match Regime::from_number(self.forced[what as usize]) {
            Some(regime) => regime,
            None if bytes as u64 <= self.line_most[what as usize] && vector.fits_lines() => Regime::Line,
            None if bytes as u64 >= self.shares_from(what, size) => Regime::Shares,
            None => Regime::Cells,
        };
        // What cannot be cut into lines goes through cells.
        let regime = if regime == Regime::Line && !vector.fits_lines() { Regime::Cells } else { regime };
        let flat = size <= self.flat_ranks as usize || !commutative;
        match regime {
            Regime::Line => {
                Ok(Choice { regime, flat, leaders: 1, up_cell: 0, up_slots: 0, down_cell: 0, down_slots: 0 })
            }
            Regime::Cells => {
                let (up_cell, up_slots) =
                    fit(self.up_cell as usize, self.up_cells as usize, element, self.up_area(size), 2)?;
                let (down_cell, down_slots) =
                    fit(self.down_cell as usize, self.down_cells as usize, element, self.down_area(size), 2)?;
                let down_slots = down_slots.min(MOST_DOWN_SLOTS);
                Ok(Choice { regime, flat: !commutative, leaders: 1, up_cell, up_slots, down_cell, down_slots })
            }
            Regime::Shares => self.choose_shares(self.leaders as usize, vector, size),
        }
    }

    /// The parameters of shares for `leaders` leaders (0: all ranks).
    ///
    /// # Errors
    /// `Tuning` when an element is larger than a cell can be.
    pub(crate) fn choose_shares(&self, leaders: usize, vector: Vector, size: usize) -> Result<Choice> {
        let element = vector.element.max(1);
        let leaders = match leaders {
            0 => size,
            some => some.min(size),
        };
        // As long as they may be, then as many as there is room for.
        let (least_up, least_down) = (least_up_slots(leaders), LEAST_DOWN_SLOTS);
        let most = (self.up_area(size) / least_up).min(self.down_area(size) / least_down);
        let cell = (self.share_cell as usize).min(most) / LINE * LINE;
        let cell = cell.max(round_up(element, LINE));
        if cell > most {
            return Err(too_large(element, most));
        }
        let up_slots =
            (self.up_area(size) / cell / leaders * leaders).clamp(least_up, most_up_slots(size).max(least_up));
        let asked = (self.share_downs as usize).clamp(least_down, MOST_DOWN_SLOTS);
        let down_slots = (self.down_area(size) / cell).clamp(least_down, asked);
        let regime = Regime::Shares;
        Ok(Choice { regime, flat: false, leaders, up_cell: cell, up_slots, down_cell: cell, down_slots })
    }

    /// Refuses a table that could not be carried out.
    pub(crate) fn check(&self) -> Result<()> {
        let refuse = |why: String| Err(Error::Tuning { why });
        for (name, value, least, most) in [
            ("flat_ranks", self.flat_ranks, 1, 256),
            ("leaders", self.leaders, 0, 256),
            ("up_cell", self.up_cell, LINE as u32, 1 << 26),
            ("up_cells", self.up_cells, 2, 64),
            ("down_cell", self.down_cell, LINE as u32, 1 << 26),
            ("down_cells", self.down_cells, 2, 64),
            ("share_cell", self.share_cell, LINE as u32, 1 << 26),
            ("share_downs", self.share_downs, 2, 64),
            ("stream", self.stream, 0, STREAM_ALWAYS),
            ("up_bytes", self.up_bytes, 0, 1 << 28),
            ("down_bytes", self.down_bytes, 0, 1 << 28),
        ] {
            if !(least..=most).contains(&value) {
                return refuse(format!("{name} = {value} is not within {least}..={most}"));
            }
        }
        if !(self.up_cell as usize).is_multiple_of(LINE) || !(self.down_cell as usize).is_multiple_of(LINE) {
            return refuse(format!(
                "cells of {} and {} bytes: they must be multiples of {LINE}",
                self.up_cell, self.down_cell
            ));
        }
        for what in Collective::ALL {
            let forced = self.forced[what as usize];
            let regime = Regime::from_number(forced);
            if forced != 0 && !regime.is_some_and(|regime| regime.serves(what)) {
                return refuse(format!("{what} has no algorithm {forced}"));
            }
        }
        Ok(())
    }
}

/// Bytes of cells that a rank gets of each ring, as far as 4 MiB for all of them go.
fn area_of(size: usize) -> usize {
    (4 << 20 >> size.next_power_of_two().ilog2()).min(1 << 20)
}

/// Cells large enough for an element, and as many of them as were asked for if the area holds them.
fn fit(cell: usize, cells: usize, element: usize, area: usize, least: usize) -> Result<(usize, usize)> {
    let cell = cell.max(round_up(element, LINE));
    let cells = cells.min(area / cell);
    if cells < least { Err(too_large(element, area / least)) } else { Ok((cell, cells)) }
}

fn too_large(element: usize, most: usize) -> Error {
    Error::Tuning {
        why: format!(
            "an element of {element} bytes does not fit a cell of at most {most} bytes; \
             use a vector of smaller elements, or larger cells (PHALANX_ALGORITHM=all:up_bytes=..,down_bytes=..)"
        ),
    }
}
