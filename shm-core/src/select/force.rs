//! The environment's word on algorithms: `PHALANX_ALGORITHM`.
//!
//! ```text
//! PHALANX_ALGORITHM = rule [ ; rule ]..
//! rule              = strict | collective : [algorithm] [ , parameter = value ]..
//! collective        = barrier | broadcast | reduce | allreduce | all
//! algorithm         = line | cells | shares | exchange | auto
//! parameter         = leaders | cell | cells | up_cell | up_cells | down_cell | down_cells | share_cell | share_downs
//!                   | line_most | shares_from | direct_from | reach_from | convert_from | convert_after
//!                   | up_bytes | down_bytes | stream | readers | direct | flat_ranks
//! ```
//!
//! An algorithm takes the place of the table's choice at every size; `auto` leaves the choice to the table. Parameters
//! change all bands of the collective's rules ([`Band`] says what they mean); `cell` and `cells` set the up and the
//! down ring alike; `leaders=0` is all ranks (of many, as many as [`Band`] says), and a number larger than there are
//! ranks is each of them. `line_most` and `shares_from` move the edges of bands: bytes up to which lines are taken,
//! and from which shares, and `direct_from` that from which buffers in shared memory are used where they lie;
//! `direct=always` for that to be so whatever trials would say (`direct=tried`). `reach_from` is [`Tuning`]'s field
//! for these collectives, and for broadcasts `tried` where trials are to say it; `convert_from`, `convert_after`,
//! `up_bytes`, `down_bytes`, `stream`, `readers`, `direct` and `flat_ranks` are its fields for all (`flat_ranks` is both
//! of that name). Values take the suffixes K, M and G; `never` is more than any.
//!
//! `strict` has every reduction combine contributions in rank order, one after the other, at every size and with every
//! algorithm: the bits of a sum are those of a loop over the ranks. Cells take flat trees then.

use super::choice::{Collective, Regime};
use super::rule::{Band, Rule};
use super::tuning::{DIRECT_ALWAYS, REACH_TRIED, Tuning};
use crate::error::{Error, Result};
use crate::job::{is_on, variable};

/// The variable.
pub(crate) const VARIABLE: &str = "PHALANX_ALGORITHM";

impl Tuning {
    /// The table that the environment asks for: the default one, as `PHALANX_ALGORITHM` and `PHALANX_DEBUG` change it.
    ///
    /// # Errors
    /// `Environment` when a rule is not understood; `Tuning` when it cannot be carried out.
    pub fn from_environment() -> Result<Self> {
        Self::default().by(&variable)
    }

    /// This table, as the `PHALANX_ALGORITHM` and `PHALANX_DEBUG` that `lookup` has change it.
    pub(crate) fn by(mut self, lookup: &dyn Fn(&str) -> Option<String>) -> Result<Self> {
        if let Some(text) = lookup(VARIABLE) {
            self.force(&text)?;
        }
        self.debug = u32::from(lookup("PHALANX_DEBUG").is_some_and(|value| is_on(&value)));
        Ok(self)
    }

    /// Changes the table as `rules` (the text of `PHALANX_ALGORITHM`) say.
    ///
    /// # Errors
    /// As [`from_environment`](Tuning::from_environment).
    pub fn force(&mut self, rules: &str) -> Result<()> {
        let wrong = |why: String| Error::Environment { name: VARIABLE, value: rules.to_owned(), why };
        for rule in rules.split(';').map(str::trim).filter(|rule| !rule.is_empty()) {
            if rule == "strict" {
                self.strict = 1;
                continue;
            }
            let (what, how) = rule.split_once(':').ok_or_else(|| {
                wrong(format!("{rule:?} is no rule: write COLLECTIVE:ALGORITHM[,PARAMETER=VALUE..], as in allreduce:shares,leaders=4, or strict"))
            })?;
            let targets = Collective::meant_by(what.trim()).map_err(wrong)?;
            for part in how.split(',').map(str::trim).filter(|part| !part.is_empty()) {
                match part.split_once('=') {
                    Some((name, value)) => {
                        let number = match value.trim() {
                            "never" => u64::MAX,
                            "tried" if name.trim() == "reach_from" => REACH_TRIED,
                            "tried" if name.trim() == "direct" => 0,
                            "always" if name.trim() == "direct" => DIRECT_ALWAYS.into(),
                            value => number_of_bytes(value).ok_or_else(|| wrong(no_number(name.trim(), value)))?,
                        };
                        self.set((name.trim(), value.trim()), number, &targets).map_err(wrong)?;
                    }
                    None if part == "auto" => targets.iter().for_each(|&what| self.forced[what as usize] = 0),
                    None => {
                        let regime = Regime::ALL.into_iter().find(|regime| regime.name() == part).ok_or_else(|| {
                            wrong(format!("{part:?} is no algorithm: line, cells, shares, exchange, or auto"))
                        })?;
                        for &what in &targets {
                            if regime.serves(what) {
                                self.forced[what as usize] = regime.number();
                            } else if targets.len() == 1 {
                                return Err(wrong(format!("{what} has no algorithm {regime}")));
                            }
                        }
                    }
                }
            }
        }
        self.check().map_err(|error| wrong(error.reason()))
    }

    /// Sets a parameter, by its name and its value as they are written, to that value.
    fn set(
        &mut self,
        (name, written): (&str, &str),
        value: u64,
        targets: &[Collective],
    ) -> std::result::Result<(), String> {
        let narrow = u32::try_from(value).map_err(|_| format!("{name}={written} is too large"));
        match name {
            "up_bytes" => self.up_bytes = narrow?,
            "down_bytes" => self.down_bytes = narrow?,
            "flat_ranks" => (self.flat_ranks, self.flat_ranks_crowded) = (narrow.clone()?, narrow?),
            "stream" => self.stream = narrow?,
            "direct" if value == u64::MAX => {
                return Err("direct=never: write direct_from=never, for nothing to be used where it lies".to_owned());
            }
            "direct" => self.direct = narrow?,
            "direct_from" => self.change(targets, |rule| rule.with_direct_from(value)),
            "convert_from" => self.convert_from = value,
            "convert_after" => self.convert_after = narrow?,
            "reach_from" if value == REACH_TRIED && targets != [Collective::Broadcast] => {
                return Err("reach_from=tried is for broadcasts: write broadcast:reach_from=tried".to_owned());
            }
            "reach_from" => {
                targets.iter().for_each(|&what| self.reach_from[what as usize] = value);
                self.change(targets, |rule| rule.with_reach_from(0));
            }
            "readers" => self.readers = narrow?,
            "line_most" => self.edit(targets, |_, bands| lines_up_to(bands, value))?,
            "shares_from" => self.edit(targets, |what, bands| {
                if Regime::Shares.serves(what) {
                    shares_begin_at(bands, value);
                }
            })?,
            _ => {
                let value = narrow?;
                let mut known = true;
                self.edit(targets, |_, bands| {
                    bands.iter_mut().for_each(|band| known &= set_parameter(band, name, value))
                })?;
                if !known {
                    return Err(format!(
                        "{name:?} is no parameter: leaders, cell, cells, up_cell, up_cells, down_cell, down_cells, \
                         share_cell, share_downs, line_most, shares_from, direct_from, reach_from, \
                         convert_from, convert_after, up_bytes, down_bytes, stream, readers, direct, flat_ranks"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Changes all rules for these collectives.
    fn change(&mut self, targets: &[Collective], how: impl Fn(Rule) -> Rule) {
        let meant = |rule: &&mut Rule| rule.collective().is_some_and(|what| targets.contains(&what));
        self.rules_mut().iter_mut().filter(meant).for_each(|rule| *rule = how(*rule));
    }

    /// Changes the bands of all rules for these collectives.
    fn edit(
        &mut self,
        targets: &[Collective],
        mut change: impl FnMut(Collective, &mut Vec<Band>),
    ) -> std::result::Result<(), String> {
        for rule in self.rules_mut() {
            if let Some(what) = rule.collective().filter(|what| targets.contains(what)) {
                let mut bands = rule.bands().to_vec();
                change(what, &mut bands);
                rule.set_bands(&bands).map_err(Error::reason)?;
            }
        }
        Ok(())
    }
}

/// Sets one parameter of a band; false if there is none of this name.
fn set_parameter(band: &mut Band, name: &str, value: u32) -> bool {
    match name {
        "leaders" => band.leaders = value,
        "cell" => (band.up_cell, band.down_cell) = (value, value),
        "cells" => (band.up_cells, band.down_cells) = (value, value),
        "up_cell" => band.up_cell = value,
        "up_cells" => band.up_cells = value,
        "down_cell" => band.down_cell = value,
        "down_cells" => band.down_cells = value,
        "share_cell" => band.share_cell = value,
        "share_downs" => band.share_downs = value,
        _ => return false,
    }
    true
}

/// Lines for messages of up to `most` bytes, and for no others, if there are other bands.
fn lines_up_to(bands: &mut Vec<Band>, most: u64) {
    let Some(first) = bands.first().copied() else { return };
    bands.retain(|band| band.regime() != Some(Regime::Line));
    let edge = most.saturating_add(1);
    // Of the bands that begin before the edge, the last one goes on from there.
    let before = bands.iter().filter(|band| band.from <= edge).count();
    if let Some(last) = before.checked_sub(1) {
        bands[last].from = edge;
        bands.drain(..last);
    } else if let Some(next) = bands.first_mut() {
        next.from = edge;
    }
    bands.insert(0, Band { from: 0, regime: Regime::Line.number(), ..first });
}

/// Shares for messages of `least` bytes and more, and for no others; bands of lines stay.
fn shares_begin_at(bands: &mut Vec<Band>, least: u64) {
    let Some(last) = bands.last().copied() else { return };
    let lines = bands.iter().filter(|band| band.regime() == Some(Regime::Line)).count();
    let end_of_lines = bands.get(lines).map_or(0, |band| band.from);
    let edge = least.max(end_of_lines);
    let mut shares = Band { from: edge, regime: Regime::Shares.number(), ..last };
    if let Some(band) = bands.iter().find(|band| band.regime() == Some(Regime::Shares)) {
        shares = Band { from: edge, ..*band };
    }
    // Where shares were and are not any more, cells are.
    bands
        .iter_mut()
        .filter(|band| band.regime() == Some(Regime::Shares))
        .for_each(|band| band.regime = Regime::Cells.number());
    bands.retain(|band| band.from < edge);
    bands
        .dedup_by(|later, earlier| later.regime == earlier.regime && Band { from: earlier.from, ..*later } == *earlier);
    bands.push(shares);
}

/// A number with an optional suffix K, M or G.
#[must_use]
pub fn number_of_bytes(text: &str) -> Option<u64> {
    let (digits, unit) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 1 << 10),
        b'm' | b'M' => (&text[..text.len() - 1], 1 << 20),
        b'g' | b'G' => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// That a value is no number, and what it may be.
fn no_number(name: &str, value: &str) -> String {
    let write = match name {
        "direct" => "always, or tried",
        "reach_from" => "one, as 8192 or 8K, or never, or tried",
        _ => "one, as 8192 or 8K, or never",
    };
    format!("{name}={value} is no number: write {write}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::select::{Choice, Vector};

    fn choose(tuning: &Tuning, what: Collective, bytes: usize) -> Choice {
        tuning.select(8, 1).choose(what, Vector { element: 8, align: 8, ..Vector::of_bytes(bytes) }).unwrap()
    }

    #[test]
    fn buffers_are_used_where_they_lie_from_what_is_forced_on() {
        let mut tuning = Tuning::default();
        let usual = tuning.select(8, 4);
        tuning.force("reduce:direct_from=3000").unwrap();
        let forced = tuning.select(8, 4);
        assert_eq!(forced.direct_from(Collective::Reduce), 3000);
        for what in [Collective::Broadcast, Collective::Allreduce] {
            assert_eq!(forced.direct_from(what), usual.direct_from(what), "{what}");
        }
    }

    #[test]
    fn rules_are_read() {
        let mut tuning = Tuning::default();
        tuning.force("allreduce:shares,leaders=4; broadcast:cells,cell=16K,cells=8").unwrap();
        let choice = choose(&tuning, Collective::Allreduce, 8);
        assert_eq!((choice.regime, choice.leaders), (Regime::Shares, 4));
        let choice = choose(&tuning, Collective::Broadcast, 8);
        assert_eq!((choice.regime, choice.down_cell, choice.down_slots), (Regime::Cells, 16384, 8));
        assert_eq!(choose(&tuning, Collective::Reduce, 8).regime, Regime::Line);
        assert_ne!(choose(&tuning, Collective::Reduce, 2000).up_cell, 16384, "another collective's");
        tuning.force("all:cells").unwrap();
        assert_eq!(choose(&tuning, Collective::Reduce, 8).regime, Regime::Cells);
        assert_eq!(choose(&tuning, Collective::Barrier, 0).regime, Regime::Line);
        tuning.force("all:auto; strict").unwrap();
        assert_eq!(choose(&tuning, Collective::Reduce, 8).regime, Regime::Line);
        assert!(choose(&tuning, Collective::Allreduce, 2000).flat && tuning.select(3, 1).is_strict());
    }

    #[test]
    fn edges_of_bands_move() {
        for what in [Collective::Reduce, Collective::Allreduce] {
            for (lines, shares) in [(0, 1), (8, 16), (120, 1504), (504, 8), (2000, 3000), (0, 1 << 30)] {
                let mut tuning = Tuning::default();
                tuning.force(&format!("{what}:line_most={lines},shares_from={shares}")).unwrap();
                for bytes in (0..5000).step_by(8) {
                    let expected: &[Regime] = match bytes {
                        bytes if bytes <= lines => &[Regime::Line],
                        bytes if bytes >= shares => &[Regime::Shares],
                        _ => &[Regime::Cells, Regime::Exchange],
                    };
                    let regime = choose(&tuning, what, bytes).regime;
                    assert!(expected.contains(&regime), "{what} of {bytes}, {lines}, {shares}: {regime}");
                }
            }
        }
        let mut tuning = Tuning::default();
        tuning.force("all:line_most=64,shares_from=3000,leaders=3").unwrap();
        assert_eq!(choose(&tuning, Collective::Broadcast, 64).regime, Regime::Line);
        assert_eq!(choose(&tuning, Collective::Broadcast, 4096).regime, Regime::Cells);
        assert_eq!(choose(&tuning, Collective::Allreduce, 4096).leaders, 3);
    }

    #[test]
    fn wrong_rules_say_what_would_be_right() {
        for (rules, word) in [
            ("allreduce", "no rule"),
            ("alltoall:line", "no collective"),
            ("reduce:magic", "no algorithm"),
            ("broadcast:shares", "no algorithm shares"),
            ("reduce:cells,cell=many", "no number"),
            ("reduce:cells,size=4", "no parameter"),
            ("reduce:cells,cell=100", "multiples of 64"),
            ("reduce:cells,cells=1", "up_cells"),
            ("strictly", "or strict"),
            ("all:reach_from=tried", "write broadcast:reach_from=tried"),
            ("broadcast:cell=tried", "no number"),
            ("all:direct=often", "no number"),
            ("all:direct=never", "write direct_from=never"),
            ("all:direct=2", "not within 0..=1"),
        ] {
            let error = Tuning::default().force(rules).unwrap_err().to_string();
            assert!(error.contains(word), "{rules}: {error}");
        }
    }
}
