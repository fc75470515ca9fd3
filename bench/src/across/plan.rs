//! What the ranks of one run shall do, as the words of a command line.

use std::path::PathBuf;

use super::options::{AcrossRank, Work};
use super::series::Series;
use crate::error::{Error, Result};
use crate::plan::Operation;

/// Messages are made of elements of so many bytes (f64).
pub const ELEMENT: u64 = 8;

/// What the ranks of one run shall do; the same on all of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The collective.
    pub operation: Operation,
    /// Message bytes, each a multiple of [`ELEMENT`].
    pub sizes: Vec<u64>,
    /// What takes turns; names differ.
    pub series: Vec<Series>,
    /// Timed calls of each series and size.
    pub calls: u32,
    /// Whether streams from host to host are timed.
    pub goodput: bool,
    /// Message bytes of which rates are measured, by pairs of ranks; none for no such streams.
    pub rates: Vec<u64>,
    /// How many ranks there must be.
    pub ranks: Option<usize>,
    /// Where rank 0 writes what was measured; otherwise it prints a table.
    pub json: Option<PathBuf>,
}

impl Plan {
    /// The plan of a rank's options.
    ///
    /// # Errors
    ///
    /// [`Error::Usage`]: no size, a size of no element, two series of one name.
    pub fn of(options: &AcrossRank) -> Result<Plan> {
        let mut plan = Plan::of_work(&options.work)?;
        plan.ranks = options.ranks;
        plan.json.clone_from(&options.json);
        Ok(plan)
    }

    /// The plan of what all runs of a command have in common.
    ///
    /// # Errors
    ///
    /// As of [`Plan::of`].
    pub fn of_work(work: &Work) -> Result<Plan> {
        let mut series = if work.series.is_empty() { Series::all() } else { work.series.clone() };
        series.extend(work.rules.iter().cloned());
        let plan = Plan {
            operation: work.collective,
            sizes: work.sizes.iter().map(|bytes| bytes / ELEMENT * ELEMENT).collect(),
            series,
            calls: work.calls,
            goodput: !work.no_goodput,
            rates: work.message_rates.clone(),
            ranks: None,
            json: None,
        };
        plan.check()?;
        Ok(plan)
    }

    fn check(&self) -> Result<()> {
        if self.sizes.is_empty() || self.sizes.contains(&0) {
            return Err(Error::Usage(format!("--sizes: give sizes of {ELEMENT} bytes or more")));
        }
        if self.rates.contains(&0) {
            return Err(Error::Usage("--message-rates: give sizes of a byte or more".into()));
        }
        for (place, series) in self.series.iter().enumerate() {
            if self.series[..place].iter().any(|other| other.name == series.name) {
                return Err(Error::Usage(format!(
                    "two series are called {:?}: name one of them NAME=RULES",
                    series.name
                )));
            }
        }
        Ok(())
    }

    /// The words that `bench` reads this plan from.
    pub fn to_words(&self) -> Vec<String> {
        let sizes: Vec<String> = self.sizes.iter().map(u64::to_string).collect();
        let mut words: Vec<String> = vec!["across-rank".into()];
        let mut add = |name: &str, value: String| words.extend([name.to_owned(), value]);
        add("--collective", self.operation.to_string());
        add("--sizes", sizes.join(","));
        add("--calls", self.calls.to_string());
        for series in &self.series {
            add("--series", series.to_string());
        }
        if !self.rates.is_empty() {
            let rates: Vec<String> = self.rates.iter().map(u64::to_string).collect();
            add("--message-rates", rates.join(","));
        }
        if let Some(ranks) = self.ranks {
            add("--ranks", ranks.to_string());
        }
        if let Some(json) = &self.json {
            add("--json", json.display().to_string());
        }
        if !self.goodput {
            words.push("--no-goodput".into());
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::command::{Cli, Command};

    fn read(words: &[&str]) -> Result<Plan> {
        let cli = Cli::try_parse_from(["bench", "across-rank"].iter().chain(words)).map_err(|error| {
            let line = error.to_string().lines().next().unwrap_or_default().to_owned();
            Error::Usage(line)
        })?;
        match cli.command {
            Command::AcrossRank(options) => Plan::of(&options),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn without_a_word_all_named_series_take_turns() {
        let plan = read(&[]).unwrap();
        assert_eq!(plan.sizes, [32 << 10, 256 << 10, 1 << 20, 4 << 20]);
        assert_eq!((plan.series, plan.calls, plan.goodput), (Series::all(), 7, true));
    }

    #[test]
    fn a_plan_is_read_as_it_was_written() {
        let plan = read(&[
            "--collective",
            "broadcast",
            "--sizes",
            "1000,1M",
            "--series",
            "native",
            "--series",
            "x=allreduce:ring,slice=64K;broadcast:binomial",
            "--rules",
            "allreduce:auto,flight=3",
            "--ranks",
            "4",
            "--json",
            "a b.json",
            "--no-goodput",
            "--calls",
            "2",
            "--message-rates",
            "64,4K",
        ])
        .unwrap();
        assert_eq!(plan.rates, [64, 4096]);
        assert_eq!((plan.operation, plan.series.len(), plan.ranks), (Operation::Broadcast, 3, Some(4)));
        let words = plan.to_words();
        let words: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        assert_eq!(read(&words).unwrap(), plan);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (words, word) in [
            (vec!["--sizes", "4"], "8 bytes"),
            (vec!["--sizes", "64K,big"], "big"),
            (vec!["--collective", "reduce"], "reduce"),
            (vec!["--series", "ours", "--series", "ours"], "two series"),
            (vec!["--rules", "allreduce:rung"], "rung"),
            (vec!["--calls", "0"], "0"),
            (vec!["--message-rates", "0"], "a byte"),
        ] {
            let error = read(&words).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn sizes_are_whole_elements() {
        assert_eq!(read(&["--sizes", "1001"]).unwrap().sizes, [1000]);
    }
}
