//! The rows of the table: bands of message sizes, and whom they are for.

use std::ops::RangeInclusive;

use super::choice::{Collective, Regime};
use crate::error::{Error, Result};
use crate::segment::layout::{LINE, MOST_RANKS};

/// The most bands of a rule.
pub const MOST_BANDS: usize = 6;

/// From so many bytes on: a regime, and the parameters of all regimes (which count when another one is forced, or when
/// elements do not fit lines).
///
/// The *up* ring serves gather steps and shares, the *down* ring release steps and results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Band {
    /// Bytes from which it counts.
    pub from: u64,
    /// The [`Regime`]'s number.
    pub regime: u32,
    /// Leaders among whom shares are divided; 0 for all ranks (of more than 32, half of them at least, and as many as
    /// leave slices of 4 KiB).
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
}

impl Band {
    /// A band with the usual parameters.
    #[must_use]
    pub const fn new(from: u64, regime: Regime) -> Self {
        Self {
            from,
            regime: regime.number(),
            leaders: 0,
            up_cell: 32 * 1024,
            up_cells: 32,
            down_cell: 32 * 1024,
            down_cells: 32,
            share_cell: 64 * 1024,
            share_downs: 32,
        }
    }

    /// Lines.
    #[must_use]
    pub const fn line(from: u64) -> Self {
        Self::new(from, Regime::Line)
    }

    /// Cells: number and bytes of those that go up, and of those that go down.
    #[must_use]
    pub const fn cells(from: u64, up: (u32, u32), down: (u32, u32)) -> Self {
        let (up_cells, up_cell) = up;
        let (down_cells, down_cell) = down;
        Self { up_cell, up_cells, down_cell, down_cells, ..Self::new(from, Regime::Cells) }
    }

    /// An exchange through cells: their number and bytes.
    #[must_use]
    pub const fn exchange(from: u64, cells: (u32, u32)) -> Self {
        let (up_cells, up_cell) = cells;
        Self { up_cell, up_cells, ..Self::new(from, Regime::Exchange) }
    }

    /// Shares: leaders (0 for all ranks, as [there](Band::leaders)), the most bytes of a slice, down cells of a leader.
    #[must_use]
    pub const fn shares(from: u64, leaders: u32, slice: u32, downs: u32) -> Self {
        Self { leaders, share_cell: slice, share_downs: downs, ..Self::new(from, Regime::Shares) }
    }

    /// The regime.
    #[must_use]
    pub fn regime(&self) -> Option<Regime> {
        Regime::from_number(self.regime)
    }

    /// Bytes of up and of down cells that a rank needs for it, at least.
    pub(crate) fn areas(&self) -> (usize, usize) {
        (2 * self.up_cell as usize, 2 * self.down_cell as usize)
    }

    fn check(&self, what: Collective) -> std::result::Result<(), String> {
        for (name, value, least, most) in [
            ("leaders", self.leaders, 0, MOST_RANKS as u32),
            ("up_cell", self.up_cell, LINE as u32, 1 << 26),
            ("up_cells", self.up_cells, 2, 64),
            ("down_cell", self.down_cell, LINE as u32, 1 << 26),
            ("down_cells", self.down_cells, 2, 64),
            ("share_cell", self.share_cell, LINE as u32, 1 << 26),
            ("share_downs", self.share_downs, 2, 64),
        ] {
            if !(least..=most).contains(&value) {
                return Err(format!("{name} = {value} is not within {least}..={most}"));
            }
        }
        if !(self.up_cell as usize).is_multiple_of(LINE) || !(self.down_cell as usize).is_multiple_of(LINE) {
            let (up, down) = (self.up_cell, self.down_cell);
            return Err(format!("cells of {up} and {down} bytes: they must be multiples of {LINE}"));
        }
        match self.regime() {
            Some(regime) if regime.serves(what) => Ok(()),
            Some(regime) => Err(format!("{what} has no algorithm {regime}")),
            None => Err(format!("{what} has no algorithm {}", self.regime)),
        }
    }
}

/// [`Rule::direct_from`], where nobody says otherwise.
pub const DIRECT_FROM: u64 = 8 << 10;

/// One rule: what a collective takes, by message size, on communicators of some sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Rule {
    collective: u32,
    /// 1 where this is for the strict mode only.
    strict: u32,
    /// Ranks of the communicator: least and most.
    ranks: [u32; 2],
    /// Ranks of the job for each core, rounded up: least and most.
    crowd: [u32; 2],
    length: u32,
    /// KiB that a processor's second-level cache must have for the rule to count on a machine; 0 for all machines.
    l2_from: u32,
    /// Bytes from which buffers in the job's heap are used where they lie, where cells or shares would be, and trials
    /// do not say otherwise; `u64::MAX` for never.
    direct_from: u64,
    /// Bytes from which private buffers are reached by kernel-assisted copies; 0 for as the table says of the collective.
    reach_from: u64,
    /// `length` bands, from 0 bytes on, rising; what follows is no band.
    ladder: [Band; MOST_BANDS],
}

/// A rule's place that holds none.
pub(super) const EMPTY: Rule = Rule {
    collective: 0,
    strict: 0,
    ranks: [0; 2],
    crowd: [0; 2],
    length: 0,
    l2_from: 0,
    direct_from: DIRECT_FROM,
    reach_from: 0,
    ladder: [Band { from: 0, ..Band::new(0, Regime::Line) }; MOST_BANDS],
};

impl Rule {
    /// A rule for all communicators.
    ///
    /// # Errors
    /// `Tuning` when the bands do not rise from 0 bytes on, are too many, or cannot be carried out.
    pub fn new(what: Collective, bands: &[Band]) -> Result<Self> {
        if bands.len() > MOST_BANDS {
            return Err(wrong(what, format!("{} bands of sizes, there can be {MOST_BANDS}", bands.len())));
        }
        let rule = Self::built_in(what, (1, MOST_RANKS as u32), (1, u32::MAX), false, bands);
        rule.check()?;
        Ok(rule)
    }

    /// A rule for communicators of so many ranks, in jobs with so many ranks for each core (for the strict mode only,
    /// perhaps), of at most [`MOST_BANDS`] bands: for the built-in table, which a test checks.
    pub(super) const fn built_in(
        what: Collective,
        ranks: (u32, u32),
        crowd: (u32, u32),
        strict: bool,
        bands: &[Band],
    ) -> Self {
        let mut rule = Rule {
            collective: what as u32,
            strict: strict as u32,
            ranks: [ranks.0, ranks.1],
            crowd: [crowd.0, crowd.1],
            length: bands.len() as u32,
            ..EMPTY
        };
        let mut at = 0;
        while at < bands.len() {
            rule.ladder[at] = bands[at];
            at += 1;
        }
        rule
    }

    /// The same for communicators of so many ranks.
    #[must_use]
    pub fn on_ranks(mut self, ranks: RangeInclusive<u32>) -> Self {
        self.ranks = [*ranks.start(), *ranks.end()];
        self
    }

    /// The same for jobs of so many ranks for each core.
    #[must_use]
    pub fn on_crowds(mut self, crowd: RangeInclusive<u32>) -> Self {
        self.crowd = [*crowd.start(), *crowd.end()];
        self
    }

    /// The same for machines whose processors have a second-level cache of so many KiB or more, each or in common;
    /// [`Tuning::on_machine`](super::Tuning::on_machine) says what comes of it.
    #[must_use]
    pub const fn with_l2_from(mut self, kib: u32) -> Self {
        self.l2_from = kib;
        self
    }

    /// The same for the strict mode, or for the other one too.
    #[must_use]
    pub fn in_strict_mode(mut self, only: bool) -> Self {
        self.strict = u32::from(only);
        self
    }

    /// The same with buffers in the job's heap used where they lie from so many bytes on; `u64::MAX` for never.
    #[must_use]
    pub const fn with_direct_from(mut self, bytes: u64) -> Self {
        self.direct_from = bytes;
        self
    }

    /// The same with private buffers reached by kernel-assisted copies from so many bytes on; `u64::MAX` for never, and
    /// 0 for as [the table](super::Tuning::reach_from) says.
    #[must_use]
    pub const fn with_reach_from(mut self, bytes: u64) -> Self {
        self.reach_from = bytes;
        self
    }

    /// The collective.
    #[must_use]
    pub fn collective(&self) -> Option<Collective> {
        Collective::ALL.into_iter().find(|&what| what as u32 == self.collective)
    }

    /// Ranks of the communicators that it is for.
    #[must_use]
    pub fn ranks(&self) -> RangeInclusive<u32> {
        self.ranks[0]..=self.ranks[1]
    }

    /// Ranks for each core, in the jobs that it is for.
    #[must_use]
    pub fn crowd(&self) -> RangeInclusive<u32> {
        self.crowd[0]..=self.crowd[1]
    }

    /// KiB that a processor's second-level cache must have for the rule to count on a machine; 0 for all machines.
    #[must_use]
    pub fn l2_from(&self) -> u32 {
        self.l2_from
    }

    /// Whether it is for the strict mode only.
    #[must_use]
    pub fn is_strict(&self) -> bool {
        self.strict != 0
    }

    /// Bytes from which buffers in the job's heap are used where they lie, where cells or shares would be; `u64::MAX`
    /// for never. Who lends a buffer copies nothing, but waits until the others are through with it: where ranks share
    /// cores, that is a turn of everybody.
    #[must_use]
    pub fn direct_from(&self) -> u64 {
        self.direct_from
    }

    /// Bytes from which private buffers are reached by kernel-assisted copies, `u64::MAX` for never, if the rule says it.
    #[must_use]
    pub fn reach_from(&self) -> Option<u64> {
        (self.reach_from > 0).then_some(self.reach_from)
    }

    /// Its bands.
    #[must_use]
    pub fn bands(&self) -> &[Band] {
        &self.ladder[..(self.length as usize).min(MOST_BANDS)]
    }

    /// Other bands in their place.
    ///
    /// # Errors
    /// As of [`new`](Rule::new).
    pub(super) fn set_bands(&mut self, bands: &[Band]) -> Result<()> {
        let what = self.collective().unwrap_or(Collective::Barrier);
        let changed = Self::new(what, bands)?;
        (self.length, self.ladder) = (changed.length, changed.ladder);
        Ok(())
    }

    /// Whether it is for calls of `what` on `size` ranks, of whatever machine.
    pub(super) fn fits(&self, what: Collective, size: usize, crowd: u32) -> bool {
        self.l2_from == 0
            && self.collective == what as u32
            && self.ranks().contains(&(size as u32))
            && self.crowd().contains(&crowd)
    }

    /// Whether it is for all calls of `what` on `size` ranks.
    pub(super) fn fits_all_crowds(&self, what: Collective, size: usize) -> bool {
        !self.is_strict() && self.fits(what, size, 1) && self.fits(what, size, u32::MAX)
    }

    /// Refuses what could not be carried out.
    pub(super) fn check(&self) -> Result<()> {
        let Some(what) = self.collective() else {
            return Err(Error::Tuning { why: format!("there is no collective {}", self.collective) });
        };
        if !(1..=MOST_BANDS).contains(&(self.length as usize)) {
            return Err(wrong(what, format!("{} bands of sizes, there can be 1 to {MOST_BANDS}", self.length)));
        }
        if self.ranks[0] > self.ranks[1] || self.crowd[0] > self.crowd[1] {
            let [least, most] = if self.ranks[0] > self.ranks[1] { self.ranks } else { self.crowd };
            return Err(wrong(what, format!("the range {least}..{most} is empty")));
        }
        if self.ladder[0].from != 0 || !self.bands().is_sorted_by(|a, b| a.from < b.from) {
            return Err(wrong(what, "the sizes of bands must rise, from 0 bytes on".to_owned()));
        }
        self.bands().iter().try_for_each(|band| band.check(what)).map_err(|why| wrong(what, why))
    }
}

fn wrong(what: Collective, why: String) -> Error {
    Error::Tuning { why: format!("the rule for {what}: {why}") }
}
