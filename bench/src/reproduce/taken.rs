//! What the pieces of a study found, by key.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::across::measured::{Case, Measured};
use crate::statistics::Summary;

/// Results by the keys of pieces; those that were left out have none.
#[derive(Clone, Debug, Default)]
pub struct Taken {
    results: BTreeMap<String, Value>,
    /// Why pieces were left out, each reason once.
    pub skipped: Vec<String>,
}

impl Taken {
    /// Keeps the results of a piece.
    pub fn put(&mut self, key: &str, results: Value) {
        self.results.insert(key.into(), results);
    }

    /// Notes why a piece was left out.
    pub fn skip(&mut self, why: &str) {
        if !self.skipped.iter().any(|known| known == why) {
            self.skipped.push(why.into());
        }
    }

    /// The results of a piece.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.results.get(key)
    }

    /// What ranks of `bench across` measured.
    pub fn measured(&self, key: &str) -> Option<Measured> {
        serde_json::from_value(self.get(key)?["runs"][0]["measured"].clone()).ok()
    }

    /// All cases of the pieces whose keys begin with `group/`: one run that was taken in pieces.
    pub fn group(&self, group: &str) -> Group {
        let prefix = format!("{group}/");
        let keys = self.results.keys().filter(|key| key.starts_with(&prefix));
        let mut group = Group::default();
        for measured in keys.filter_map(|key| self.measured(key)) {
            group.goodput = group.goodput.or(measured.goodput);
            group.latency = group.latency.or(measured.latency);
            // What a library says behind its version is of no use here.
            group.library = measured.library.split(", package").next().unwrap_or_default().to_owned();
            group.rates.extend(measured.rates);
            group.cases.extend(measured.cases);
        }
        group.cases.sort_by_key(|case| case.bytes);
        group
    }

    /// The rows of a record of `bench collectives`.
    pub fn rows(&self, key: &str) -> Vec<NodeRow> {
        let rows = self.get(key).and_then(|results| results["rows"].as_array()).into_iter().flatten();
        rows.filter_map(NodeRow::of).collect()
    }
}

/// The cases of several pieces that belong together.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// The library that carried the messages.
    pub library: String,
    /// Bytes a second of a stream, where it was measured.
    pub goodput: Option<f64>,
    /// Seconds of a short message, where it was measured.
    pub latency: Option<f64>,
    /// All cases, by size.
    pub cases: Vec<Case>,
    /// Message rates, where they were measured.
    pub rates: Vec<crate::across::measured::MessageRate>,
}

impl Group {
    /// The sizes, ascending.
    pub fn sizes(&self) -> Vec<u64> {
        let mut sizes: Vec<u64> = self.cases.iter().map(|case| case.bytes).collect();
        sizes.dedup();
        sizes
    }

    /// The names of the series, in the order in which they took turns.
    pub fn series(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for case in &self.cases {
            if !names.contains(&case.series) {
                names.push(case.series.clone());
            }
        }
        names
    }

    /// The case of a series at a size.
    pub fn case(&self, series: &str, bytes: u64) -> Option<&Case> {
        self.cases.iter().find(|case| case.series == series && case.bytes == bytes)
    }

    /// (bytes, median milliseconds) of a series.
    pub fn curve(&self, series: &str) -> Vec<(f64, f64)> {
        let cases = self.cases.iter().filter(|case| case.series == series);
        cases.map(|case| (case.bytes as f64, case.milliseconds().median)).collect()
    }

    /// How many times the time of `first` is of that of `second` at a size, turn by turn.
    pub fn ratio(&self, first: &str, second: &str, bytes: u64) -> Option<Summary> {
        Some(self.case(first, bytes)?.over(self.case(second, bytes)?)).filter(|ratio| ratio.count > 0)
    }
}

/// What a study reads of a row of `bench collectives`.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeRow {
    /// `phalanx` or a baseline's series.
    pub series: String,
    /// The collective's name.
    pub operation: String,
    /// Message bytes.
    pub bytes: u64,
    /// Microseconds of the slowest rank: the median over blocks.
    pub median: f64,
    /// Microseconds of the quickest rank, averaged over calls.
    pub quickest: f64,
}

impl NodeRow {
    fn of(row: &Value) -> Option<NodeRow> {
        Some(NodeRow {
            series: row["series"].as_str()?.into(),
            operation: row["operation"].as_str()?.into(),
            bytes: row["bytes"].as_u64()?,
            median: row["time"]["median"].as_f64()?,
            quickest: row["t_min"].as_f64()?,
        })
    }
}

/// A ratio with its range: `1.25 (1.10-1.40)`.
pub fn with_range(ratio: Option<Summary>) -> String {
    ratio.map_or_else(|| "-".into(), |ratio| format!("{:.2} ({:.2}-{:.2})", ratio.median, ratio.min, ratio.max))
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;

    /// The results of `bench across`: each series' milliseconds at each size.
    pub fn across(cases: &[(&str, u64, &[f64])]) -> Value {
        let cases: Vec<Value> = cases
            .iter()
            .map(|(series, bytes, ms)| {
                let seconds: Vec<f64> = ms.iter().map(|ms| ms / 1e3).collect();
                json!({"series": series, "bytes": bytes, "seconds": seconds, "before": 2, "how": "x", "carried": [], "expected": null})
            })
            .collect();
        json!({"runs": [{"measured": {"library": "L", "ranks": 4, "nodes": 4, "per_node": [1, 1], "block": true,
            "operation": "allreduce", "goodput": 10e6, "latency": 1e-4, "cases": cases}}]})
    }

    #[test]
    fn pieces_of_one_run_belong_together() {
        let mut taken = Taken::default();
        taken.put("block/2", across(&[("a", 2048, &[2.0, 4.0, 6.0]), ("b", 2048, &[1.0, 1.0, 1.0])]));
        taken.put("block/1", across(&[("a", 1024, &[1.0]), ("b", 1024, &[3.0])]));
        taken.put("other/1", across(&[("c", 1024, &[1.0])]));
        let group = taken.group("block");
        assert_eq!((group.sizes(), group.series()), (vec![1024, 2048], vec!["a".to_string(), "b".into()]));
        assert_eq!(group.curve("a"), [(1024.0, 1.0), (2048.0, 4.0)]);
        let ratio = group.ratio("a", "b", 2048);
        assert_eq!(with_range(ratio), "4.00 (2.00-6.00)");
        assert_eq!((group.goodput, with_range(group.ratio("a", "c", 1024))), (Some(10e6), "-".into()));
        assert!(taken.group("none").cases.is_empty());
    }

    #[test]
    fn rows_of_a_node() {
        let mut taken = Taken::default();
        taken.put(
            "x",
            json!({"rows": [{"series": "phalanx", "operation": "reduce", "bytes": 8, "t_min": 0.5, "time": {"median": 1.5}}, {}]}),
        );
        let rows = taken.rows("x");
        assert_eq!((rows.len(), rows[0].median, rows[0].quickest), (1, 1.5, 0.5));
        assert!(taken.rows("y").is_empty());
    }

    #[test]
    fn a_reason_is_kept_once() {
        let mut taken = Taken::default();
        taken.skip("no namespaces");
        taken.skip("no namespaces");
        assert_eq!(taken.skipped, ["no namespaces"]);
    }
}
