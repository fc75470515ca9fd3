//! What rank 0 writes: times, counted bytes, and what they were measured on.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::counters::Carried;
use super::expected::Expected;
use crate::error::{Error, Result};
use crate::statistics::Summary;

/// All that one run of ranks has measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The library that carried the messages.
    pub library: String,
    /// Ranks.
    pub ranks: usize,
    /// Nodes that were found.
    pub nodes: usize,
    /// Ranks on the node that has the fewest, and on that which has the most.
    pub per_node: (usize, usize),
    /// Whether the ranks of each node follow one another.
    pub block: bool,
    /// The collective.
    pub operation: String,
    /// Bytes a second that a stream from one host to another carries.
    pub goodput: Option<f64>,
    /// Seconds that a message of few bytes takes from one host to another.
    pub latency: Option<f64>,
    /// Whether ranks begin each call at one time of a clock that all of them read, and not behind a barrier.
    #[serde(default)]
    pub common_start: bool,
    /// Messages a second from host to host, by bytes and pairs; empty unless asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<MessageRate>,
    /// One for each size and series, sizes outermost.
    pub cases: Vec<Case>,
}

/// Streams of messages from ranks of one host to as many of another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MessageRate {
    /// Bytes of a message.
    pub bytes: u64,
    /// Pairs of ranks between two hosts.
    pub pairs: usize,
    /// Messages a second from one host to the other, all pairs together, by repetition.
    pub per_second: Vec<f64>,
}

/// One series at one size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// The series' name.
    pub series: String,
    /// Message bytes.
    pub bytes: u64,
    /// The longest time of any rank, by call, in seconds.
    pub seconds: Vec<f64>,
    /// Untimed calls before.
    pub before: u32,
    /// What a call does, for people.
    pub how: String,
    /// What a link carried during a call, the barriers around it included; empty where nobody counts.
    pub carried: Vec<Carried>,
    /// What links carry by the schedule, where it is ours.
    pub expected: Option<Expected>,
}

impl Case {
    /// The times in milliseconds.
    pub fn milliseconds(&self) -> Summary {
        Summary::of(&self.seconds).scaled(1e3)
    }

    /// This series' time over the other's, turn by turn: median, least and greatest.
    pub fn over(&self, other: &Case) -> Summary {
        let ratios: Vec<f64> = self.seconds.iter().zip(&other.seconds).map(|(own, other)| own / other).collect();
        Summary::of(&ratios)
    }
}

impl Measured {
    /// The case of a series at a size.
    pub fn case(&self, series: &str, bytes: u64) -> Option<&Case> {
        self.cases.iter().find(|case| case.series == series && case.bytes == bytes)
    }

    /// The sizes, in their order.
    pub fn sizes(&self) -> Vec<u64> {
        let mut sizes: Vec<u64> = self.cases.iter().map(|case| case.bytes).collect();
        sizes.dedup();
        sizes
    }

    /// The names of the series, in their order.
    pub fn series(&self) -> Vec<&str> {
        let first = self.cases.first().map_or(0, |case| case.bytes);
        self.cases.iter().take_while(|case| case.bytes == first).map(|case| case.series.as_str()).collect()
    }

    /// Reads what rank 0 has written.
    ///
    /// # Errors
    ///
    /// [`Error::File`]; [`Error::Samples`] for what is no such file.
    pub fn read(path: &Path) -> Result<Measured> {
        let text = fs::read_to_string(path).map_err(Error::file("cannot read", path))?;
        serde_json::from_str(&text).map_err(|error| Error::Samples {
            path: path.into(),
            line: error.line(),
            detail: error.to_string(),
        })
    }

    /// Writes it, whole or not at all.
    ///
    /// # Errors
    ///
    /// [`Error::File`].
    pub fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)
            .map_err(|error| Error::System { what: "results as JSON".into(), source: error.into() })?;
        let part = path.with_extension("part");
        fs::write(&part, text + "\n").map_err(Error::file("cannot write", &part))?;
        fs::rename(&part, path).map_err(Error::file("cannot write", path))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::scratch::Scratch;

    /// A run of two series at two sizes on 4 nodes of 2 ranks.
    pub fn sample() -> Measured {
        let case = |series: &str, bytes: u64, milliseconds: [f64; 3]| Case {
            series: series.into(),
            bytes,
            seconds: milliseconds.map(|ms| ms / 1e3).into(),
            before: 2,
            how: "ring among 4 nodes".into(),
            carried: ["n0", "n1", "n2", "n3", "up0", "up1"]
                .map(|link| Carried { link: link.into(), up: 1.5 * bytes as f64, down: 1.25 * bytes as f64 })
                .into(),
            expected: (series == "ours").then_some(Expected { host: bytes * 3 / 2, trunk: Some(bytes * 3 / 2) }),
        };
        Measured {
            library: "An MPI 1.0".into(),
            ranks: 8,
            nodes: 4,
            per_node: (2, 2),
            block: true,
            operation: "allreduce".into(),
            goodput: Some(12.0e6),
            latency: Some(1e-4),
            common_start: true,
            rates: Vec::new(),
            cases: vec![
                case("ours", 1 << 10, [1.0, 2.0, 3.0]),
                case("native", 1 << 10, [2.0, 2.0, 9.0]),
                case("ours", 1 << 20, [140.0, 150.0, 160.0]),
                case("native", 1 << 20, [280.0, 450.0, 160.0]),
            ],
        }
    }

    #[test]
    fn it_is_read_as_it_was_written() {
        let scratch = Scratch::new().unwrap();
        let path = scratch.path().join("x.json");
        sample().write(&path).unwrap();
        assert_eq!(Measured::read(&path).unwrap(), sample());
        fs::write(&path, "{}").unwrap();
        assert!(Measured::read(&path).unwrap_err().to_string().contains("x.json"));
    }

    #[test]
    fn ratios_are_taken_turn_by_turn() {
        let sample = sample();
        let ratio = sample.case("native", 1 << 20).unwrap().over(sample.case("ours", 1 << 20).unwrap());
        assert_eq!((ratio.min, ratio.median, ratio.max), (1.0, 2.0, 3.0));
        assert_eq!(sample.case("native", 1 << 10).unwrap().milliseconds().median, 2.0);
    }

    #[test]
    fn sizes_and_series_in_their_order() {
        assert_eq!((sample().sizes(), sample().series()), (vec![1 << 10, 1 << 20], vec!["ours", "native"]));
    }
}
