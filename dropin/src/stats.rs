//! What was called: counted by collective, size of the communicator and size of the message.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::{Deserialize, Serialize};

use crate::what::{NAMES, What};

/// Why a call went to the library beneath.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// `PHALANX_DISABLE`.
    Disabled,
    /// The communicator has not had calls enough to be taken over.
    Young,
    /// It has two groups.
    Intercommunicator,
    /// It has one rank.
    Alone,
    /// It has ranks that are not in this MPI_COMM_WORLD, or was made in a session.
    Foreign,
    /// There was no room for it in shared memory.
    NoRoom,
    /// It has ranks on several nodes, and the collective is carried out on one alone.
    Nodes,
    /// The library beneath is faster.
    Slower,
    /// It has no bytes.
    Empty,
    /// The datatype is none of those that are reduced here.
    Datatype,
    /// The operator does not go with the datatype, or is none.
    Operator,
    /// An argument is wrong: the library says so.
    Argument,
}

impl Reason {
    /// In a few words.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Young => "new communicator",
            Self::Intercommunicator => "intercommunicator",
            Self::Alone => "one rank",
            Self::Foreign => "ranks of another world",
            Self::NoRoom => "no room",
            Self::Nodes => "several nodes",
            Self::Slower => "slower here",
            Self::Empty => "no bytes",
            Self::Datatype => "datatype",
            Self::Operator => "operator",
            Self::Argument => "wrong argument",
        }
    }
}

/// What is counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Key {
    /// The place of the collective.
    pub what: usize,
    /// Ranks of the communicator.
    pub ranks: usize,
    /// The size class: messages of up to 2^class bytes, more than half of it; 0 for those of a byte or none.
    pub class: u32,
}

impl Key {
    /// That of a call.
    #[must_use]
    pub fn of(what: What, ranks: usize, bytes: usize) -> Self {
        let class = if bytes <= 1 { 0 } else { (bytes - 1).ilog2() + 1 };
        Self { what: what as usize, ranks, class }
    }

    fn bytes(&self) -> String {
        let most = 1_u64 << self.class.min(63);
        match (NAMES[self.what], self.class) {
            ("barrier", _) => String::new(),
            (_, 0..10) => format!("{most}"),
            (_, 10..20) => format!("{}K", most >> 10),
            (_, 20..30) => format!("{}M", most >> 20),
            _ => format!("{}G", most >> 30),
        }
    }
}

/// What was counted of some calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Calls that were carried out here.
    pub calls: u64,
    /// Their time in seconds.
    pub seconds: f64,
    /// Calls that were handed on, by reason.
    pub handed: BTreeMap<Reason, u64>,
    /// The time of those.
    pub handed_seconds: f64,
    /// How the first was carried out.
    pub algorithm: String,
}

/// All that a rank, or a job, has counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    pub(crate) rows: BTreeMap<Key, Row>,
}

/// A row as it is written.
#[derive(Serialize, Deserialize)]
struct Line {
    collective: String,
    ranks: usize,
    /// The longest messages of the class.
    up_to_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    key: Option<Key>,
    #[serde(flatten)]
    row: Row,
}

impl Stats {
    /// Notes a call that was carried out here. `algorithm` says how, where it is not known yet.
    pub fn note(&mut self, key: Key, seconds: f64, algorithm: impl FnOnce() -> String) {
        let row = self.rows.entry(key).or_default();
        row.calls += 1;
        row.seconds += seconds;
        if row.algorithm.is_empty() {
            row.algorithm = algorithm();
        }
    }

    /// Notes a call that was handed on.
    pub fn note_handed(&mut self, key: Key, seconds: f64, reason: Reason) {
        let row = self.rows.entry(key).or_default();
        *row.handed.entry(reason).or_default() += 1;
        row.handed_seconds += seconds;
    }

    /// Adds what another has counted.
    pub fn add(&mut self, other: &Self) {
        for (key, from) in &other.rows {
            let row = self.rows.entry(*key).or_default();
            row.calls += from.calls;
            row.seconds += from.seconds;
            row.handed_seconds += from.handed_seconds;
            from.handed.iter().for_each(|(&reason, count)| *row.handed.entry(reason).or_default() += count);
            if row.algorithm.is_empty() {
                row.algorithm.clone_from(&from.algorithm);
            }
        }
    }

    /// As JSON: a list of rows.
    #[must_use]
    pub fn to_json(&self) -> String {
        let lines: Vec<Line> = self
            .rows
            .iter()
            .map(|(key, row)| Line {
                collective: NAMES[key.what].to_owned(),
                ranks: key.ranks,
                up_to_bytes: 1 << key.class.min(63),
                key: Some(*key),
                row: row.clone(),
            })
            .collect();
        serde_json::to_string_pretty(&lines).unwrap_or_default()
    }

    /// Back from JSON; nothing from what is none.
    #[must_use]
    pub fn from_json(text: &str) -> Self {
        let lines: Vec<Line> = serde_json::from_str(text).unwrap_or_default();
        Self { rows: lines.into_iter().filter_map(|line| Some((line.key?, line.row))).collect() }
    }

    /// As values parted by commas, with a line of names.
    #[must_use]
    pub fn to_csv(&self) -> String {
        let mut text =
            "collective,ranks,up_to_bytes,calls,seconds,handed_on,handed_on_seconds,reasons,algorithm\n".to_owned();
        for (key, row) in &self.rows {
            let reasons: Vec<String> =
                row.handed.iter().map(|(why, count)| format!("{} {count}", why.text())).collect();
            let (handed, algorithm) = (row.handed.values().sum::<u64>(), row.algorithm.replace('"', "'"));
            let _ = writeln!(
                text,
                "{},{},{},{},{:.9},{handed},{:.9},\"{}\",\"{algorithm}\"",
                NAMES[key.what],
                key.ranks,
                1_u64 << key.class.min(63),
                row.calls,
                row.seconds,
                row.handed_seconds,
                reasons.join("; ")
            );
        }
        text
    }

    /// As a table for people. Calls are those of all ranks: an allreduce of four ranks is four.
    #[must_use]
    pub fn to_table(&self) -> String {
        let mut text = String::new();
        let (mut ours, mut all) = (0, 0);
        let _ = writeln!(
            text,
            "{:<10} {:>6} {:>6} {:>12} {:>10} {:>12} {:>10}  how",
            "collective", "ranks", "bytes", "calls", "us a call", "handed on", "us a call"
        );
        for (key, row) in &self.rows {
            let handed = row.handed.values().sum::<u64>();
            let each = |seconds: f64, calls: u64| match calls {
                0 => String::new(),
                _ => format!("{:.2}", seconds * 1e6 / calls as f64),
            };
            let reasons: Vec<String> =
                row.handed.iter().map(|(why, count)| format!("{}: {count}", why.text())).collect();
            let reasons = reasons.join(", ");
            let how =
                [row.algorithm.as_str(), &reasons].iter().filter(|how| !how.is_empty()).copied().collect::<Vec<_>>();
            let _ = writeln!(
                text,
                "{:<10} {:>6} {:>6} {:>12} {:>10} {:>12} {:>10}  {}",
                NAMES[key.what],
                key.ranks,
                key.bytes(),
                row.calls,
                each(row.seconds, row.calls),
                handed,
                each(row.handed_seconds, handed),
                how.join("; ")
            );
            ours += row.calls;
            all += row.calls + handed;
        }
        let share = if all == 0 { 0.0 } else { 100.0 * ours as f64 / all as f64 };
        let _ = writeln!(text, "{ours} of {all} calls taken over ({share:.1} %), counted on all ranks");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Stats {
        let mut stats = Stats::default();
        stats.note(Key::of(What::Allreduce, 4, 1000), 2e-6, || "line".to_owned());
        stats.note(Key::of(What::Allreduce, 4, 1024), 4e-6, || unreachable!());
        stats.note_handed(Key::of(What::Broadcast, 2, 3 << 20), 1e-3, Reason::Young);
        stats.note_handed(Key::of(What::Barrier, 2, 0), 1e-6, Reason::Disabled);
        stats
    }

    #[test]
    fn sizes_have_classes() {
        let class = |bytes| Key::of(What::Reduce, 2, bytes).class;
        assert_eq!([0, 1, 2, 3, 4, 5, 1024, 1025].map(class), [0, 0, 1, 2, 2, 3, 10, 11]);
    }

    #[test]
    fn ranks_are_added() {
        let mut sum = example();
        sum.add(&Stats::from_json(&example().to_json()));
        let row = &sum.rows[&Key::of(What::Allreduce, 4, 1024)];
        assert_eq!((row.calls, row.algorithm.as_str()), (4, "line"));
        assert!((row.seconds - 12e-6).abs() < 1e-12);
        let row = &sum.rows[&Key::of(What::Broadcast, 2, 4 << 20)];
        assert_eq!((row.calls, &row.handed), (0, &BTreeMap::from([(Reason::Young, 2)])));
        assert_eq!(Stats::from_json("no json"), Stats::default());
    }

    #[test]
    fn tables_say_what_was_counted() {
        let table = example().to_table();
        let row = table.lines().find(|line| line.starts_with("allreduce")).unwrap();
        let words: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(words, ["allreduce", "4", "1K", "2", "3.00", "0", "line"]);
        assert!(table.contains("new communicator: 1") && table.contains("2 of 4 calls taken over (50.0 %)"), "{table}");
        let csv = example().to_csv();
        assert!(csv.contains("allreduce,4,1024,2,0.000006000,0,0.000000000,\"\",\"line\"\n"), "{csv}");
        assert_eq!(csv.lines().count(), 4);
    }
}
