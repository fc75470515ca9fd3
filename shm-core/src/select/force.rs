//! The environment's word on algorithms: `PHALANX_ALGORITHM`.
//!
//! ```text
//! PHALANX_ALGORITHM = rule [ ; rule ]..
//! rule              = collective : [algorithm] [ , parameter = value ]..
//! collective        = barrier | broadcast | reduce | allreduce | all
//! algorithm         = line | cells | shares | auto
//! parameter         = leaders | cell | cells | up_cell | up_cells | down_cell | down_cells
//!                   | share_cell | share_downs | up_bytes | down_bytes | stream | flat_ranks | line_most | shares_least | shares_square
//! ```
//!
//! `cell` and `cells` set the up and the down ring alike. What they mean is said at [`Tuning`]'s fields. Values take
//! the suffixes K and M.

use super::choice::{Collective, Regime};
use super::tuning::Tuning;
use crate::error::{Error, Result};

/// The variable.
pub(crate) const VARIABLE: &str = "PHALANX_ALGORITHM";

impl Tuning {
    /// The table that the environment asks for: the default one, as `PHALANX_ALGORITHM` and `PHALANX_DEBUG` change it.
    ///
    /// # Errors
    /// `Environment` when a rule is not understood; `Tuning` when it cannot be carried out.
    pub fn from_environment() -> Result<Self> {
        let mut tuning = Self::default();
        if let Ok(text) = std::env::var(VARIABLE) {
            tuning.force(&text)?;
        }
        tuning.debug = u32::from(std::env::var("PHALANX_DEBUG").is_ok_and(|value| !value.is_empty() && value != "0"));
        Ok(tuning)
    }

    /// Changes the table as `rules` (the text of `PHALANX_ALGORITHM`) say.
    ///
    /// # Errors
    /// As [`from_environment`](Tuning::from_environment).
    pub fn force(&mut self, rules: &str) -> Result<()> {
        let wrong = |why: String| Error::Environment { name: VARIABLE, value: rules.to_owned(), why };
        for rule in rules.split(';').map(str::trim).filter(|rule| !rule.is_empty()) {
            let (what, how) = rule.split_once(':').ok_or_else(|| {
                wrong(format!("{rule:?} is no rule: write COLLECTIVE:ALGORITHM[,PARAMETER=VALUE..], as in allreduce:shares,leaders=4"))
            })?;
            let targets = Collective::meant_by(what.trim()).map_err(wrong)?;
            for part in how.split(',').map(str::trim).filter(|part| !part.is_empty()) {
                match part.split_once('=') {
                    Some((name, value)) => {
                        let number =
                            number_of_bytes(value.trim()).ok_or_else(|| wrong(format!("{value:?} is no number")))?;
                        self.set(name.trim(), number, &targets).map_err(wrong)?;
                    }
                    None if part == "auto" => targets.iter().for_each(|&what| self.forced[what as usize] = 0),
                    None => {
                        let regime = Regime::ALL
                            .into_iter()
                            .find(|regime| regime.name() == part)
                            .ok_or_else(|| wrong(format!("{part:?} is no algorithm: line, cells, shares, or auto")))?;
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
        self.check()
    }

    fn set(&mut self, name: &str, value: u64, targets: &[Collective]) -> std::result::Result<(), String> {
        let narrow = u32::try_from(value).map_err(|_| format!("{name}={value} is too large"));
        match name {
            "line_most" => targets.iter().for_each(|&what| self.line_most[what as usize] = value),
            "shares_least" => targets
                .iter()
                .filter(|&&what| Regime::Shares.serves(what))
                .for_each(|&what| self.shares_least[what as usize] = value),
            "shares_square" => targets.iter().for_each(|&what| self.shares_square[what as usize] = value),
            "leaders" => self.leaders = narrow?,
            "cell" => (self.up_cell, self.down_cell) = (narrow.clone()?, narrow?),
            "cells" => (self.up_cells, self.down_cells) = (narrow.clone()?, narrow?),
            "up_cell" => self.up_cell = narrow?,
            "up_cells" => self.up_cells = narrow?,
            "down_cell" => self.down_cell = narrow?,
            "down_cells" => self.down_cells = narrow?,
            "share_cell" => self.share_cell = narrow?,
            "share_downs" => self.share_downs = narrow?,
            "up_bytes" => self.up_bytes = narrow?,
            "down_bytes" => self.down_bytes = narrow?,
            "flat_ranks" => self.flat_ranks = narrow?,
            "stream" => self.stream = narrow?,
            _ => {
                return Err(format!(
                    "{name:?} is no parameter: leaders, cell, cells, up_cell, up_cells, down_cell, down_cells, share_cell, \
                     share_downs, up_bytes, down_bytes, stream, flat_ranks, line_most, shares_least, shares_square"
                ));
            }
        }
        Ok(())
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::select::Vector;

    fn vector(bytes: usize, element: usize) -> Vector {
        Vector { element, align: element.min(8), ..Vector::of_bytes(bytes) }
    }

    #[test]
    fn rules_are_read() {
        let mut tuning = Tuning::default();
        tuning.force("allreduce:shares,leaders=4; broadcast:cells,cell=16K,cells=8").unwrap();
        let choice = tuning.choose(Collective::Allreduce, vector(8, 8), 8).unwrap();
        assert_eq!((choice.regime, choice.leaders), (Regime::Shares, 4));
        let choice = tuning.choose(Collective::Broadcast, vector(8, 1), 8).unwrap();
        assert_eq!((choice.regime, choice.down_cell, choice.down_slots), (Regime::Cells, 16384, 8));
        assert_eq!(tuning.choose(Collective::Reduce, vector(8, 8), 8).unwrap().regime, Regime::Line);
        tuning.force("all:cells").unwrap();
        assert_eq!(tuning.choose(Collective::Reduce, vector(8, 8), 8).unwrap().regime, Regime::Cells);
        assert_eq!(tuning.choose(Collective::Barrier, vector(0, 1), 8).unwrap().regime, Regime::Line);
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
        ] {
            let error = Tuning::default().force(rules).unwrap_err().to_string();
            assert!(error.contains(word), "{rules}: {error}");
        }
    }

    #[test]
    fn large_elements_are_refused_alike_before_any_flag_moves() {
        let tuning = Tuning::default();
        assert!(tuning.choose(Collective::Allreduce, vector(1 << 20, 1 << 18), 4).is_err());
        assert!(tuning.choose(Collective::Allreduce, vector(1 << 14, 1 << 14), 4).is_ok());
    }
}
