//! What is measured beside what: algorithms on a node, schedules across nodes.

use std::fmt;
use std::str::FromStr;

use crate::across::series::{NATIVE, OURS, Series};
use crate::plan::BufferMode;

/// The algorithm that is taken unasked.
pub const AUTO: &str = "auto";

/// A way in which a node carries out an allreduce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Algorithm {
    /// The name in tables and plots.
    pub name: String,
    /// The rule for `PHALANX_ALGORITHM`; none leaves the choice to the table.
    pub rule: Option<String>,
    /// Where its buffers are.
    pub buffers: BufferMode,
}

/// All that have a name: rule and buffers.
const NAMED: [(&str, Option<&str>, BufferMode); 7] = [
    (AUTO, None, BufferMode::Rewritten),
    ("line", Some("allreduce:line"), BufferMode::Rewritten),
    ("cells", Some("allreduce:cells"), BufferMode::Rewritten),
    ("exchange", Some("allreduce:exchange"), BufferMode::Rewritten),
    ("shares", Some("allreduce:shares"), BufferMode::Rewritten),
    ("direct", Some("allreduce:shares,direct_from=1,direct=always"), BufferMode::Shared),
    ("view", Some("all:direct=always"), BufferMode::View),
];

impl Algorithm {
    /// All that have a name, the unasked one first.
    pub fn named() -> Vec<Algorithm> {
        let of = |&(name, rule, buffers): &(&str, Option<&str>, BufferMode)| Algorithm {
            name: name.into(),
            rule: rule.map(String::from),
            buffers,
        };
        NAMED.iter().map(of).collect()
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.rule {
            Some(rule) if !Algorithm::named().contains(self) => write!(f, "{}={rule}", self.name),
            _ => f.write_str(&self.name),
        }
    }
}

impl FromStr for Algorithm {
    type Err = String;

    fn from_str(text: &str) -> Result<Algorithm, String> {
        let all = Algorithm::named();
        let names: Vec<String> = all.iter().map(|algorithm| algorithm.name.clone()).collect();
        if let Some(known) = all.into_iter().find(|algorithm| algorithm.name == text) {
            return Ok(known);
        }
        let wrong = || {
            let names = names.join(", ");
            format!("{text:?} is no algorithm: {names}, or NAME=RULE, as in two=allreduce:shares,leaders=2")
        };
        let (name, rule) = text.split_once('=').ok_or_else(wrong)?;
        if name.is_empty() || name.contains([':', '/']) || !rule.starts_with("allreduce:") {
            return Err(wrong());
        }
        if names.iter().any(|known| known == name) {
            return Err(format!("{name:?} cannot be the name of another rule: choose another"));
        }
        hier::Tuning::default().force(rule).map_err(|error| error.to_string())?;
        Ok(Algorithm { name: name.into(), rule: Some(rule.into()), buffers: BufferMode::Rewritten })
    }
}

/// The series across nodes, with `slots` ranks on each: ours, the library's own, a ring of all ranks, and every
/// schedule of an allreduce among one leader a node, which takes whole vectors; with several ranks a node, also all of
/// them as leaders, and slices in a pipeline.
pub fn schedules(slots: usize) -> Vec<Series> {
    const AMONG_LEADERS: [(&str, &str); 6] = [
        ("ring", "ring"),
        ("doubling", "recursive-doubling"),
        ("near", "halving-nearest"),
        ("far", "halving-farthest"),
        ("binomial", "binomial"),
        ("circulant", "circulant"),
    ];
    let mut all: Vec<Series> = [OURS, NATIVE, "flat"].iter().filter_map(|name| Series::named(name)).collect();
    let mut add = |name: &str, rules: String| all.extend(format!("{name}={rules}").parse::<Series>());
    for (name, schedule) in AMONG_LEADERS {
        add(name, format!("allreduce:{schedule},leaders=1,slice=whole"));
    }
    if slots > 1 {
        add("ring-all", format!("allreduce:ring,leaders={},slice=whole", slots.min(16)));
        add("ring-pipe", "allreduce:ring,leaders=1,slice=64K,flight=3".into());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn algorithms_are_read_as_they_are_written() {
        let all = Algorithm::named();
        assert_eq!(all[0].name, AUTO);
        for algorithm in all {
            assert_eq!(algorithm.to_string().parse(), Ok(algorithm));
        }
        let own: Algorithm = "two=allreduce:shares,leaders=2".parse().unwrap();
        assert_eq!((own.name.as_str(), own.to_string().parse()), ("two", Ok(own.clone())));
    }

    #[test]
    fn what_is_no_algorithm_is_refused_with_a_word() {
        for (text, word) in [
            ("lines", "line, cells"),
            ("two=shares", "NAME=RULE"),
            ("=allreduce:line", "NAME=RULE"),
            ("line=allreduce:cells", "choose another"),
            ("two=allreduce:shears", "shears"),
        ] {
            let error = text.parse::<Algorithm>().unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn every_schedule_is_there_once() {
        for (slots, count) in [(1, 9), (4, 11)] {
            let mut names: Vec<String> = schedules(slots).into_iter().map(|series| series.name).collect();
            assert_eq!(names.len(), count);
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count);
        }
    }
}
