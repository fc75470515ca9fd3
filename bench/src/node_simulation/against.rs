//! Simulated beside measured: the rows of a record of `bench collectives`.

use std::fs;
use std::path::Path;

use serde_json::Value;
use shm_core::Collective;

use super::candidates;
use super::figures::MachineFile;
use super::options::SimulateNode;
use super::places::Placement;
use super::simulate::{Case, Pace};
use crate::bytes::expected;
use crate::error::{Error, Result};
use crate::plan::Operation;
use crate::sizes::show_size;
use crate::statistics::Summary;
use crate::table::{Table, microseconds};

/// The table of a record's rows that this machine has cores for: ours, warm and rewritten buffers, through cells and
/// lines. What is timed alone takes as long more as a call that does nothing, in the same record.
///
/// # Errors
/// [`Error::File`] and [`Error::Samples`] for the record; what [`Case::simulate`] says.
pub fn run(machine: &MachineFile, path: &Path, options: &SimulateNode) -> Result<String> {
    let text = fs::read_to_string(path).map_err(Error::file("cannot read", path))?;
    let wrong = |detail: String| Error::Samples { path: path.to_owned(), line: 0, detail };
    let results: Value = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    compare(machine, &results, options)?.ok_or_else(|| {
        wrong("no row of it can be simulated: is it the results.json of `bench collectives`, and has the machine so many cores?".into())
    })
}

/// A row that can be simulated.
struct Row<'a> {
    what: Collective,
    operation: Operation,
    pace: Pace,
    ranks: usize,
    bytes: u64,
    /// The median, in microseconds.
    measured: f64,
    /// What the calls took, as the record has it.
    algorithm: &'a str,
    /// Bytes loaded and stored a byte of the vector, where that was counted.
    moved: Option<f64>,
}

impl<'a> Row<'a> {
    /// Ours, of these buffers and timings; of the turns in one state of the cores, if one is asked for.
    fn of(row: &'a Value, cores: Option<&str>) -> Option<Row<'a>> {
        let pace = match (row["buffers"].as_str()?, row["timing"].as_str()?) {
            ("warm", "stream") => Pace::Stream,
            ("rewritten", "each") => Pace::Each,
            _ => return None,
        };
        let time = match cores {
            Some(cores) => &row["parts"].as_array()?.iter().find(|part| part["cores"] == cores)?["time"],
            None => &row["time"],
        };
        let found = Row {
            what: Collective::ALL.into_iter().find(|what| row["operation"] == what.name())?,
            operation: row["operation"].as_str()?.parse().ok()?,
            pace,
            ranks: row["ranks"].as_u64()? as usize,
            bytes: row["bytes"].as_u64()?,
            measured: time["median"].as_f64()?,
            algorithm: row["algorithm"].as_str().unwrap_or_default(),
            moved: row["counted"]["multiple"].as_f64(),
        };
        (row["series"] == "phalanx" && found.measured > 0.0).then_some(found)
    }

    /// What its ranks measure around a call that does nothing; 0 if it is not timed alone, or nobody has measured it.
    fn empty(&self, results: &Value) -> f64 {
        let is_empty = |row: &&Value| {
            row["series"] == "phalanx"
                && row["operation"] == "empty"
                && row["ranks"].as_u64() == Some(self.ranks as u64)
        };
        let found = results["rows"].as_array().and_then(|rows| rows.iter().find(is_empty));
        let time = found.and_then(|row| row["time"]["median"].as_f64()).unwrap_or(0.0);
        if self.pace == Pace::Each { time } else { 0.0 }
    }

    /// The family of algorithms that the record names.
    fn regime(&self) -> &str {
        self.algorithm.split_whitespace().next().unwrap_or_default()
    }

    /// Whether calls, or some of them, went past the cells: what is lent is copied once less.
    fn is_lent(&self) -> bool {
        let p = self.ranks as f64;
        // The root takes what others lead out of their cells.
        let taken =
            if (self.what, self.regime()) == (Collective::Reduce, "shares") { 2.0 * (p - 1.0) / p } else { 0.0 };
        let through_cells = expected(self.regime(), self.operation, self.ranks as u64) as f64 + taken;
        self.algorithm.ends_with("lent") || self.moved.is_some_and(|moved| moved < 0.98 * through_cells)
    }

    /// Bytes, as tables show them.
    fn size(&self) -> String {
        if self.what == Collective::Barrier { "-".into() } else { show_size(self.bytes) }
    }
}

fn compare(machine: &MachineFile, results: &Value, options: &SimulateNode) -> Result<Option<String>> {
    let (cores, costs) = (machine.places()?, machine.costs());
    let algorithm = candidates::with_settings(&options.algorithm, &options.trees)?;
    let heads = ["collective<", "ranks", "bytes", "timing<", "simulated as<"];
    let mut table = Table::new(&[&heads[..], &["simulated us", "measured us", "ratio"]].concat());
    let (mut ratios, mut left_out): (Vec<f64>, Vec<String>) = (Vec::new(), Vec::new());
    for row in results["rows"].as_array().into_iter().flatten() {
        let Some(row) = Row::of(row, options.cores.as_deref()) else { continue };
        if row.ranks > cores.len() {
            continue;
        }
        if row.is_lent() {
            left_out.push(format!("{} {}", row.what, row.size()));
            continue;
        }
        let places = Placement::Block.places(&cores, row.ranks)?;
        let Row { what, pace, measured, .. } = row;
        let bytes = row.bytes as usize;
        let case = Case { costs: &costs, places: &places, what, bytes, algorithm: &algorithm, pace };
        let regime = case.choice()?.regime.name();
        let simulated = case.simulate()?.microseconds + row.empty(results);
        ratios.push(simulated / measured);
        table.row(vec![
            what.to_string(),
            row.ranks.to_string(),
            row.size(),
            if pace == Pace::Stream { "back to back".into() } else { "each after a common start".into() },
            if [regime, ""].contains(&row.regime()) {
                regime.into()
            } else {
                format!("{regime}, was {}", row.regime())
            },
            microseconds(simulated),
            microseconds(measured),
            format!("{:.2}", simulated / measured),
        ]);
    }
    if ratios.is_empty() {
        return Ok(None);
    }
    let all = Summary::of(&ratios);
    let mut spread = format!(
        "  SIMULATED / measured: {} rows, median {:.2}, middle half {:.2} to {:.2}, all {:.2} to {:.2}\n",
        ratios.len(),
        all.median,
        all.p25,
        all.p75,
        all.min,
        all.max
    );
    if !left_out.is_empty() {
        spread += &format!("  left out, as payload was lent or copied past the cells: {}\n", left_out.join(", "));
    }
    Ok(Some(format!("SIMULATED / measured\n{}{spread}\n", table.render())))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: SimulateNode,
    }

    fn options(words: &[&str]) -> SimulateNode {
        Line::parse_from([&["simulate-node", "--against", "-"], words].concat()).options
    }

    #[test]
    fn a_record_is_compared_row_by_row() {
        let machine = MachineFile::find("vm-2").unwrap();
        let row = |ranks: u64, series: &str| {
            serde_json::json!({"series": series, "ranks": ranks, "operation": "barrier", "buffers": "warm", "timing": "stream",
                "bytes": 0, "time": {"median": 0.2}})
        };
        let results = serde_json::json!({"rows": [row(2, "phalanx"), row(2, "openmpi"), row(8, "phalanx")]});
        let text = compare(&machine, &results, &options(&[])).unwrap().unwrap();
        assert!(text.starts_with("SIMULATED / measured"), "{text}");
        assert_eq!(text.matches("barrier").count(), 1, "{text}");
        assert!(compare(&machine, &serde_json::json!({}), &options(&[])).unwrap().is_none());
    }

    #[test]
    fn algorithms_are_asked_for_and_what_was_lent_is_left_out() {
        let machine = MachineFile::find("vm-2").unwrap();
        let row = |bytes: u64, multiple: f64, algorithm: &str| {
            serde_json::json!({"series": "phalanx", "ranks": 2, "operation": "broadcast", "buffers": "rewritten",
                "timing": "each", "bytes": bytes, "time": {"median": 9.0}, "algorithm": algorithm,
                "counted": {"multiple": multiple}, "parts": [{"cores": "near", "time": {"median": 7.0}}]})
        };
        let (cells, lent) = ("cells down 64x32KiB release=flat", "cells down 64x32KiB release=flat, lent");
        let rows = [row(4096, 4.0, cells), row(8192, 3.9, cells), row(16384, 2.2, lent), row(32768, 2.5, cells)];
        let results = serde_json::json!({"rows": rows});
        let text = |words: &[&str]| compare(&machine, &results, &options(words)).unwrap();
        let plain = text(&[]).unwrap();
        assert!(plain.contains("SIMULATED / measured: 1 rows"), "{plain}");
        assert!(plain.contains("past the cells: broadcast 8K, broadcast 16K, broadcast 32K"), "{plain}");
        assert!(text(&["--algorithm", "broadcast:line"]).unwrap().contains("line, was cells"));
        assert_ne!(text(&["--algorithm", "broadcast:down_cell=1K,down_cells=4"]).unwrap(), plain);
        assert!(text(&["--cores", "near"]).unwrap().contains("7.000"));
        assert!(text(&["--cores", "far"]).is_none());
    }
}
