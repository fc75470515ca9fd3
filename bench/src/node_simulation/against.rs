//! Simulated beside measured: the rows of a record of `bench collectives`.

use std::fs;
use std::path::Path;

use serde_json::Value;
use shm_core::Collective;

use super::candidates;
use super::figures::MachineFile;
use super::places::Placement;
use super::simulate::{Case, Pace};
use crate::error::{Error, Result};
use crate::sizes::show_size;
use crate::statistics::Summary;
use crate::table::{Table, microseconds};

/// The table of a record's rows that this machine has cores for: ours, warm and rewritten buffers.
///
/// # Errors
/// [`Error::File`] and [`Error::Samples`] for the record; what [`Case::simulate`] says.
pub fn run(machine: &MachineFile, path: &Path) -> Result<String> {
    let text = fs::read_to_string(path).map_err(Error::file("cannot read", path))?;
    let wrong = |detail: String| Error::Samples { path: path.to_owned(), line: 0, detail };
    let results: Value = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    compare(machine, &results)?.ok_or_else(|| {
        wrong("no row of it can be simulated: is it the results.json of `bench collectives`, and has the machine so many cores?".into())
    })
}

fn compare(machine: &MachineFile, results: &Value) -> Result<Option<String>> {
    let (cores, costs) = (machine.places()?, machine.costs());
    let algorithm = candidates::table()?;
    let mut table = Table::new(&["collective<", "ranks", "bytes", "timing<", "simulated us", "measured us", "ratio"]);
    let mut ratios: Vec<f64> = Vec::new();
    for row in results["rows"].as_array().into_iter().flatten() {
        let what = Collective::ALL.into_iter().find(|what| row["operation"] == what.name());
        let pace = match (row["buffers"].as_str(), row["timing"].as_str()) {
            (Some("warm"), Some("stream")) => Pace::Stream,
            (Some("rewritten"), Some("each")) => Pace::Each,
            _ => continue,
        };
        let (Some(what), Some(ranks), Some(bytes), Some(measured)) =
            (what, row["ranks"].as_u64(), row["bytes"].as_u64(), row["time"]["median"].as_f64())
        else {
            continue;
        };
        if row["series"] != "phalanx" || ranks as usize > cores.len() || measured <= 0.0 {
            continue;
        }
        let places = Placement::Block.places(&cores, ranks as usize)?;
        let case = Case { costs: &costs, places: &places, what, bytes: bytes as usize, algorithm: &algorithm, pace };
        let simulated = case.simulate()?.microseconds;
        ratios.push(simulated / measured);
        table.row(vec![
            what.to_string(),
            ranks.to_string(),
            if what == Collective::Barrier { "-".into() } else { show_size(bytes) },
            if pace == Pace::Stream { "back to back".into() } else { "each after a common start".into() },
            microseconds(simulated),
            microseconds(measured),
            format!("{:.2}", simulated / measured),
        ]);
    }
    if ratios.is_empty() {
        return Ok(None);
    }
    let all = Summary::of(&ratios);
    let spread = format!(
        "  SIMULATED / measured: median {:.2}, middle half {:.2} to {:.2}, all {:.2} to {:.2}\n\n",
        all.median, all.p25, all.p75, all.min, all.max
    );
    Ok(Some(format!("SIMULATED / measured\n{}{spread}", table.render())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_compared_row_by_row() {
        let machine = MachineFile::find("vm-2").unwrap();
        let row = |ranks: u64, series: &str| {
            serde_json::json!({"series": series, "ranks": ranks, "operation": "barrier", "buffers": "warm", "timing": "stream",
                "bytes": 0, "time": {"median": 0.2}})
        };
        let results = serde_json::json!({"rows": [row(2, "phalanx"), row(2, "openmpi"), row(8, "phalanx")]});
        let text = compare(&machine, &results).unwrap().unwrap();
        assert!(text.starts_with("SIMULATED / measured"), "{text}");
        assert_eq!(text.matches("barrier").count(), 1, "{text}");
        assert!(compare(&machine, &serde_json::json!({})).unwrap().is_none());
    }
}
