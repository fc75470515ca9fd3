//! What of the table counts for one communicator: picked out when it is made, so that a call looks at a few bands only.

use super::choice::{BlockChoice, Choice, Collective, Regime, Vector};
use super::rule::{Band, DIRECT_FROM, MOST_BANDS, Rule};
use super::tuning::Tuning;
use crate::error::{Error, Result};
use crate::protocol::shares::{LEAST_DOWN_SLOTS, least_up_slots, up_slots_to_give_back};
use crate::segment::layout::{BlockLayout, LINE, MOST_DOWN_SLOTS, SLOT_PAYLOAD, line_slots, most_up_slots, round_up};

/// The bands of one collective, rising from 0 bytes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ladder {
    bands: [Band; MOST_BANDS],
    /// 1 at least.
    length: usize,
}

impl Ladder {
    fn new(bands: &[Band]) -> Self {
        let mut ladder = Self { bands: [Band::line(0); MOST_BANDS], length: bands.len().clamp(1, MOST_BANDS) };
        ladder.bands.iter_mut().zip(bands).for_each(|(place, band)| *place = *band);
        ladder
    }

    fn bands(&self) -> &[Band] {
        &self.bands[..self.length]
    }

    /// The band of a message.
    fn at(&self, bytes: usize) -> &Band {
        let bands = self.bands();
        let at = bands.iter().rposition(|band| band.from <= bytes as u64).unwrap_or(0);
        &bands[at]
    }
}

/// The bands of all collectives on one communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selection {
    ladders: [Ladder; 4],
    /// Bytes from which buffers in the job's heap are used where they lie, by collective.
    direct_from: [u64; 4],
    /// Bytes from which private buffers are reached by kernel-assisted copies, by collective.
    reach_from: [u64; 4],
    forced: [Option<Regime>; 4],
    size: usize,
    /// Line slots a rank owns.
    line_slots: usize,
    /// Whether ranks outnumber cores.
    shares_cores: bool,
    flat_ranks: usize,
    strict: bool,
    /// Whether each kind of call is to be printed once.
    pub(crate) debug: bool,
    /// The most bytes of blocks that go in a slot of lines.
    block_lines: usize,
    /// The band whose up cells blocks go through.
    block_cut: Band,
    /// Bytes of up and of down cells that a rank uses.
    up_area: usize,
    down_area: usize,
    /// Bytes of up cells that it uses for rows of long blocks, and that it owns; and how many it would use.
    row_area: usize,
    row_most: usize,
}

impl Selection {
    pub(super) fn new(table: &Tuning<impl AsRef<[Rule]>>, size: usize, crowd: u32) -> Self {
        // A checked table has a rule for every call.
        let rules = Collective::ALL.map(|what| table.rule(what, size, crowd));
        let ladders = rules.map(|rule| Ladder::new(rule.map_or(&[], |rule| rule.bands())));
        let most = |area: fn(&Band) -> usize| ladders.iter().flat_map(Ladder::bands).map(area).max().unwrap_or(0);
        let area = |given: u32, derived: usize| if given == 0 { derived } else { given as usize };
        let (up, down) = if size <= 64 { (256 << 10, 128 << 10) } else { (128 << 10, 64 << 10) };
        let (up, down) = (area_of(size).max(up), area_of(size).max(down));
        let forced = table.forced.map(Regime::from_number);
        let flat_ranks = if crowd > 1 { table.flat_ranks_crowded } else { table.flat_ranks };
        let up_area = area(table.up_bytes, up).max(least_up_slots(size) * LINE).max(most(|band| band.areas().0));
        Self {
            ladders,
            direct_from: rules.map(|rule| rule.map_or(DIRECT_FROM, Rule::direct_from)),
            reach_from: Collective::ALL.map(|what| {
                let said = rules[what as usize].and_then(Rule::reach_from);
                said.unwrap_or(table.reach_from[what as usize])
            }),
            forced,
            block_lines: block_lines(&ladders, &forced),
            block_cut: block_cut(&ladders),
            size,
            line_slots: line_slots(size, crowd),
            shares_cores: crowd > 1,
            flat_ranks: flat_ranks as usize,
            strict: table.strict != 0,
            debug: table.debug != 0,
            up_area,
            down_area: area(table.down_bytes, down).max(LEAST_DOWN_SLOTS * LINE).max(most(|band| band.areas().1)),
            row_area: up_area,
            row_most: if crowd > 1 && size > 2 && table.up_bytes == 0 { up_area.max(row_area(size)) } else { up_area },
        }
    }

    /// The same with longer rows, if an arena of so many bytes holds dozens of such communicators.
    pub(crate) fn with_rows(self, arena: u64) -> Self {
        const DOZENS: u64 = 32;
        let longer = Self { row_area: self.row_most, ..self };
        if DOZENS * longer.block_layout().total() as u64 <= arena { longer } else { self }
    }

    /// The same for a block of this layout, if its cells are large enough.
    pub(crate) fn within(mut self, layout: &BlockLayout) -> Result<Self> {
        if self.up_area > layout.up_bytes || self.down_area > layout.down_bytes {
            return Err(Error::Tuning {
                why: format!(
                    "it needs {} and {} bytes of cells, and the communicator has {} and {}: \
                     make it with PHALANX_ALGORITHM=all:up_bytes=..,down_bytes=..",
                    self.up_area, self.down_area, layout.up_bytes, layout.down_bytes
                ),
            });
        }
        self.row_area = self.row_most.min(layout.up_bytes);
        Ok(self)
    }

    /// The bands of a collective: what its messages take, by size, if nothing is forced.
    #[must_use]
    pub fn bands(&self, what: Collective) -> &[Band] {
        self.ladders[what as usize].bands()
    }

    /// Bytes from which calls of `what` reach private buffers by kernel-assisted copies; `u64::MAX` for never, and
    /// [`REACH_TRIED`](super::REACH_TRIED) where trials are to say it.
    #[must_use]
    pub fn reach_from(&self, what: Collective) -> u64 {
        self.reach_from[what as usize]
    }

    /// Bytes from which calls of `what` use buffers in the job's heap where they lie; `u64::MAX` for never.
    #[must_use]
    pub fn direct_from(&self, what: Collective) -> u64 {
        self.direct_from[what as usize]
    }

    /// Bytes from which calls on blocks do so; no rule speaks of them. Where every rank waits for every other anyway
    /// (`together`) this gains from [`DIRECT_FROM`] bytes on, else always; or from less on, or never, if allreduces
    /// do.
    #[must_use]
    pub(crate) fn block_from(&self, together: bool) -> u64 {
        match self.direct_from(Collective::Allreduce) {
            u64::MAX => u64::MAX,
            least => least.min(if together { DIRECT_FROM } else { 1 }),
        }
    }

    /// Whether ranks outnumber cores.
    pub(crate) fn shares_cores(&self) -> bool {
        self.shares_cores
    }

    /// Ranks of the communicator.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Whether every call combines contributions in rank order.
    #[must_use]
    pub fn is_strict(&self) -> bool {
        self.strict
    }

    /// The layout of the communicator's block.
    pub(crate) fn block_layout(&self) -> BlockLayout {
        BlockLayout::new(self.size, self.line_slots, self.row_area, self.down_area)
    }

    /// Bytes below which `what` takes one slot of lines, flat, if its elements fit lines: the calls that need no
    /// further choice.
    pub(crate) fn slot_below(&self, what: Collective) -> usize {
        let ladder = &self.ladders[what as usize];
        let lines = match self.forced[what as usize] {
            Some(Regime::Line) => SLOT_PAYLOAD + 1,
            Some(_) => 0,
            None => {
                let other = ladder.bands().iter().find(|band| band.regime() != Some(Regime::Line));
                other.map_or(SLOT_PAYLOAD + 1, |band| band.from.min(SLOT_PAYLOAD as u64 + 1) as usize)
            }
        };
        // With tracing, every call goes the long way, which says what it chose.
        if !self.lines_are_flat(true) || self.debug { 0 } else { lines }
    }

    /// Whether lines are exchanged flat.
    fn lines_are_flat(&self, commutative: bool) -> bool {
        self.size <= self.flat_ranks || self.strict || !commutative
    }

    /// What a call on a vector takes.
    ///
    /// An operator that does not commute never takes a tree deeper than one; in the strict mode, none does.
    ///
    /// # Errors
    /// `Tuning` when an element is larger than a cell can be: the same on all ranks, before any flag moves.
    pub fn choose(&self, what: Collective, vector: Vector) -> Result<Choice> {
        let element = vector.element.max(1);
        let band = self.ladders[what as usize].at(vector.bytes);
        let regime = self.forced[what as usize].or(band.regime()).unwrap_or(Regime::Line);
        // What cannot be cut into lines goes through cells.
        let regime = if regime == Regime::Line && !vector.fits_lines() { Regime::Cells } else { regime };
        match regime {
            Regime::Line => {
                let flat = self.lines_are_flat(vector.commutative);
                Ok(Choice { regime, flat, leaders: 1, up_cell: 0, up_slots: 0, down_cell: 0, down_slots: 0 })
            }
            Regime::Cells | Regime::Exchange => {
                let fit = |cell: u32, cells: u32, element, area| fit(cell as usize, cells as usize, element, area);
                // Elements go up in reductions and exchanges, and down in broadcasts, which cut those that fit no cell.
                let going_down = if what == Collective::Reduce || regime == Regime::Exchange { 1 } else { element };
                let (up_cell, up_slots) = fit(band.up_cell, band.up_cells, element, self.up_area)?;
                let (down_cell, down_slots) = fit(band.down_cell, band.down_cells, going_down, self.down_area)?;
                let down_slots = down_slots.min(MOST_DOWN_SLOTS);
                // A broadcast combines nothing; an exchange has no tree.
                let flat =
                    regime == Regime::Exchange || !vector.commutative || (self.strict && what != Collective::Broadcast);
                Ok(Choice { regime, flat, leaders: 1, up_cell, up_slots, down_cell, down_slots })
            }
            Regime::Shares => {
                // Of two ranks who reduces to a root that is late runs ahead, as far as all cells go; and so calls of
                // this length have the cells of shorter and longer ones.
                let runs_ahead = self.size == 2 && what == Collective::Reduce;
                let area = if runs_ahead { MOST_AREA } else { SHARES_AREA };
                let leaders = match band.leaders as usize {
                    0 => self.all_leaders(band),
                    some => some,
                };
                self.shares(band, leaders, vector, area)
            }
        }
    }

    /// Leaders where every rank may be one: no more than leave slices of [`LEAST_SLICE`], as a ring holds a slice for
    /// each of them twice, but half of the ranks, and two, all the same. It follows from the table and the number of
    /// ranks, so that all ranks agree; and the bits of a result are the same with any number of leaders, as each element
    /// is folded by one of them, in rank order.
    fn all_leaders(&self, band: &Band) -> usize {
        let slice = LEAST_SLICE.min(band.share_cell as usize);
        let fitting = self.up_area / least_up_slots(1) / slice;
        self.size.min(fitting.max(self.size.div_ceil(2)).max(2))
    }

    /// The parameters of shares for `leaders` leaders.
    ///
    /// # Errors
    /// `Tuning` when an element is larger than a cell can be.
    pub(crate) fn choose_shares(&self, leaders: usize, vector: Vector) -> Result<Choice> {
        let mut band = *self.ladders[Collective::Allreduce as usize].at(vector.bytes);
        band.share_cell = band.share_cell.min(HALVES_CELL);
        self.shares(&band, leaders, vector, SHARES_AREA)
    }

    /// Whether `parts` blocks of `bytes` bytes go in one slot of lines.
    #[inline]
    pub(crate) fn fits_a_slot(&self, parts: usize, bytes: usize) -> bool {
        parts.saturating_mul(bytes.div_ceil(8) * 8) <= self.block_lines
    }

    /// The most bytes of blocks that go in a slot of lines.
    #[inline]
    pub(crate) fn block_lines(&self) -> usize {
        self.block_lines
    }

    /// How blocks are moved of which the longest has `vector.bytes` bytes, `parts` of them in a slot. Lines are for
    /// what they are for in broadcasts. `together` says that every rank reads every other's slots in turn.
    ///
    /// # Errors
    /// `Tuning` when an element is larger than a part of a cell can be: the same on all ranks.
    pub(crate) fn choose_blocks(&self, parts: usize, together: bool, vector: Vector) -> Result<BlockChoice> {
        if vector.fits_lines() && self.fits_a_slot(parts, vector.bytes) {
            return Ok(BlockChoice { lines: true, part: 0, slice: vector.bytes.max(1), cell: 0, slots: 0 });
        }
        let least = round_up(vector.element.max(1), LINE);
        let band = &self.block_cut;
        let mut cell = (band.up_cell as usize).max(parts * least);
        // Where ranks share a core each slice of a row costs a turn of everybody; two of them cost less than cells that
        // have left the caches. Cells that somebody has asked to be small stay so.
        let is_long = parts > 1 && parts * vector.bytes > 2 * cell && band.up_cell >= SMALL_CELL;
        let mut area = self.up_area;
        if self.shares_cores && together && is_long {
            area = self.row_area;
            cell = cell.max(area / LONG_ROWS / LINE * LINE);
        }
        if 2 * cell > area {
            return Err(too_large(vector.element, area / 2 / parts));
        }
        let part = if parts == 1 { cell } else { cell / parts / LINE * LINE };
        let slice = part / vector.element.max(1) * vector.element.max(1);
        let slots = (band.up_cells as usize).min(area / cell);
        Ok(BlockChoice { lines: false, part, slice, cell, slots })
    }

    fn shares(&self, band: &Band, leaders: usize, vector: Vector, area: usize) -> Result<Choice> {
        let element = vector.element.max(1);
        let leaders = match leaders {
            0 => self.size,
            some => some.min(self.size),
        };
        // As long as they may be, then as many as there is room for.
        let (least_up, least_down) = (least_up_slots(leaders), LEAST_DOWN_SLOTS);
        let most = (self.up_area / least_up).min(self.down_area / least_down);
        // Of two ranks results come back in the cells of contributions, if there are enough of them.
        let kept_slots = up_slots_to_give_back(leaders);
        let kept = if self.size == 2 { self.up_area / kept_slots } else { most };
        let cell = (band.share_cell as usize).min(kept).min(most) / LINE * LINE;
        let cell = cell.max(round_up(element, LINE));
        if cell > most {
            return Err(too_large(element, most));
        }
        let up_area = if self.size == 2 { area.max(kept_slots.next_power_of_two() * cell) } else { area };
        let up_slots = (self.up_area.min(up_area) / cell / leaders * leaders)
            .clamp(least_up, most_up_slots(self.size).max(least_up));
        let asked = (band.share_downs as usize).clamp(least_down, MOST_DOWN_SLOTS);
        let down_slots = (self.down_area.min(area) / cell).clamp(least_down, asked);
        let regime = Regime::Shares;
        Ok(Choice { regime, flat: false, leaders, up_cell: cell, up_slots, down_cell: cell, down_slots })
    }
}

/// Bytes of cells that a rank gets of each ring, as far as 4 MiB for all of them go.
///
/// Few ranks get [`MOST_AREA`]: cells that are used in turn have then left the second-level caches of writer and
/// readers before they are filled again, and a line that no other core holds is stored to, and taken from a cache that
/// writer and reader share, in less time. A rank alone shares its lines with nobody, and gets less.
fn area_of(size: usize) -> usize {
    let most = if size == 1 { LONE_AREA } else { MOST_AREA };
    (4 << 20 >> size.next_power_of_two().ilog2()).min(most)
}

/// The most bytes of up and of down cells of a rank alone.
const LONE_AREA: usize = 1 << 20;

/// Bytes of up cells that a rank gets for rows of long blocks where ranks share cores, as far as 16 MiB for all of them
/// go: each rank takes its turn on a core for every row, so that longer rows are fewer turns of everybody. On two cores
/// (AMD EPYC, Zen 3) alltoalls and reduce-scatters of blocks of 64 KiB, 256 KiB and 1 MiB, back to back and written
/// anew, took so much less with as much as this than with as many bytes as other cells have: 8 ranks 1 to 29 percent
/// (512 KiB), 16 ranks 3 to 26 percent in eleven of twelve cases, and 4 more in one (256 KiB). On 4 ranks, which have 1
/// MiB for all cells, twice as much took from 16 percent less to 16 more.
fn row_area(size: usize) -> usize {
    const MOST_ROWS: usize = 1 << 20;
    (16 << 20 >> size.next_power_of_two().ilog2()).min(MOST_ROWS)
}

/// The most bytes of up and of down cells, where nobody says otherwise. Two ranks on one core complex (AMD EPYC, Zen 4,
/// 1 MiB of second-level cache a core), an exchange through 0.5, 1 and 2 MiB of cells: 16 KiB in 2.3, 1.2 and 1.1 us,
/// 64 KiB in 9.1, 5.8 and 4.7.
const MOST_AREA: usize = 2 << 20;

/// Bytes of up and of down cells that shares use: their slices are long, and more of them would not stay in a shared
/// cache (256 KiB on the same ranks, through 1 and 2 MiB: 15 and 24 us). Where results come back in the cells of
/// contributions each allreduce begins with the same cells, and they may be as large as they are wanted;
/// [halves](Selection::choose_shares) do not come back.
const SHARES_AREA: usize = 1 << 20;

/// The shortest slices of shares for which all ranks lead. Simulated (bench simulate-node, 2 x 64 cores, a core for each
/// rank), allreduces through shares of 64 ranks with 64 and 32 leaders, whose slices have 2 and 4 KiB: 32 KiB in 41.7 and
/// 31.3 us, 1 MiB in 749 and 604; of 128 ranks with 128, 64, 32 and 16 leaders, whose slices have 512 bytes to 4 KiB:
/// 32 KiB in 73.8, 49.4, 44.3 and 53.0 us, 1 MiB in 1487, 927, 1010 and 1430. So half of the ranks fold in any case.
const LEAST_SLICE: usize = 4 << 10;

/// The longest slices of halves of an allreduce, which go through all cells in turn.
const HALVES_CELL: u32 = (SHARES_AREA / 8) as u32;

/// The most bytes of blocks that go in a slot of lines: as much as a broadcast would put there.
fn block_lines(ladders: &[Ladder; 4], forced: &[Option<Regime>; 4]) -> usize {
    match forced[Collective::Broadcast as usize] {
        Some(Regime::Line) => SLOT_PAYLOAD,
        Some(_) => 0,
        None => {
            let bands = ladders[Collective::Broadcast as usize].bands();
            let other = bands.iter().find(|band| band.regime() != Some(Regime::Line));
            other.map_or(SLOT_PAYLOAD, |band| SLOT_PAYLOAD.min((band.from as usize).saturating_sub(1)))
        }
    }
}

/// The cut of blocks of all sizes: that of medium allreduces, so that calls of either kind may follow one another as
/// they are. Cells for short or for long vectors are taken where there are no others.
fn block_cut(ladders: &[Ladder; 4]) -> Band {
    let bands = ladders[Collective::Allreduce as usize].bands();
    let is_cut = |band: &&Band| matches!(band.regime(), Some(Regime::Cells | Regime::Exchange));
    let is_medium = |band: &&Band| is_cut(band) && (SMALL_CELL..=LARGE_CELL).contains(&band.up_cell);
    *bands.iter().find(is_medium).or(bands.iter().find(is_cut)).unwrap_or(&bands[bands.len() - 1])
}

/// Every built-in rule for allreduces on more ranks than two has a band with cells of so many bytes, to [`LARGE_CELL`].
const SMALL_CELL: u32 = 32 << 10;

/// Longer cells are for long vectors.
const LARGE_CELL: u32 = 64 << 10;

/// Rows of long blocks that a rank owns, where ranks share cores: with four, none is waited for before it is filled
/// again.
const LONG_ROWS: usize = 4;

/// Cells large enough for an element, and as many of them as were asked for if the area holds them; two at least.
fn fit(cell: usize, cells: usize, element: usize, area: usize) -> Result<(usize, usize)> {
    const LEAST: usize = 2;
    let cell = cell.max(round_up(element, LINE));
    let cells = cells.min(area / cell);
    if cells < LEAST { Err(too_large(element, area / LEAST)) } else { Ok((cell, cells)) }
}

fn too_large(element: usize, most: usize) -> Error {
    Error::Tuning {
        why: format!(
            "an element of {element} bytes does not fit a cell of at most {most} bytes; \
             use a vector of smaller elements, or larger cells (PHALANX_ALGORITHM=all:up_bytes=..,down_bytes=..)"
        ),
    }
}

#[cfg(test)]
mod tests;
