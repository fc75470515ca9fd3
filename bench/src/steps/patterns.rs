//! The patterns that are timed: names, what a step is, and the arguments that give rows. The steps themselves are in C,
//! `baseline/steps_data.c` and `baseline/steps_waiting.c`.

use serde::Serialize;

use crate::error::{Error, Result};
use crate::sizes::{parse_some, show_size};

/// What the argument of a pattern counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Bytes of a rank's buffer.
    Bytes,
    /// Microseconds of work or sleep: of work that many times 350 operations, whatever time these take.
    Microseconds,
    /// Points of a rank.
    Points,
    /// Calls.
    Calls,
    /// Messages.
    Messages,
}

impl Unit {
    /// In one word, for tables.
    pub fn word(self) -> &'static str {
        match self {
            Unit::Bytes => "bytes",
            Unit::Microseconds => "us",
            Unit::Points => "points",
            Unit::Calls => "calls",
            Unit::Messages => "messages",
        }
    }

    /// An argument, as a person writes it.
    pub fn show(self, argument: u64) -> String {
        if self == Unit::Bytes { show_size(argument) } else { argument.to_string() }
    }
}

/// The pattern whose jobs are timed as a whole, from outside.
pub const START: &str = "start";

/// A pattern.
#[derive(Debug)]
pub struct Pattern {
    /// Its name.
    pub name: &'static str,
    /// What a step is, in a line.
    pub words: &'static str,
    /// What its argument counts.
    pub unit: Unit,
    /// The least argument that it takes.
    pub least: u64,
    /// The arguments that give rows; the short form takes the first.
    pub arguments: &'static [u64],
}

const fn bytes(name: &'static str, words: &'static str, arguments: &'static [u64]) -> Pattern {
    Pattern { name, words, unit: Unit::Bytes, least: 8, arguments }
}

const fn microseconds(name: &'static str, words: &'static str, arguments: &'static [u64]) -> Pattern {
    Pattern { name, words, unit: Unit::Microseconds, least: 0, arguments }
}

const fn calls(name: &'static str, words: &'static str, least: u64, arguments: &'static [u64]) -> Pattern {
    Pattern { name, words, unit: Unit::Calls, least, arguments }
}

const K: u64 = 1 << 10;
const M: u64 = 1 << 20;

/// All of them, in the order in which they are measured.
pub const PATTERNS: &[Pattern] = &[
    Pattern {
        name: "cg",
        words: "conjugate gradients on a line of points: halo by Isend and Irecv, two allreduces of 8 bytes",
        unit: Unit::Points,
        least: 96,
        arguments: &[100, 1_000, 10_000],
    },
    bytes("gradients", "gradients written, summed by allreduce, read", &[64 * K, 8, 4 * K, 256 * K, M, 4 * M]),
    bytes("gradients-in-place", "the same with MPI_IN_PLACE", &[64 * K, 4 * K, M]),
    bytes(
        "gradients-malloc",
        "the same, with buffers that a step takes and frees",
        &[64 * K, 4 * K, 256 * K, M, 4 * M],
    ),
    bytes("gradients-many", "the same in place, with 50 buffers in turn", &[64 * K, 4 * K, 256 * K, M]),
    bytes("bcast-lengths", "a broadcast of a length, and one of so much, up to the argument", &[64 * K, 4 * K, M]),
    bytes("reduce", "input written, reduced to rank 0, read there", &[64 * K, 8, 4 * K, M]),
    bytes("gather-scatter", "blocks gathered on rank 0 and scattered again", &[64 * K, 4 * K, M]),
    bytes("alltoall", "blocks written, exchanged by alltoall, read", &[64 * K, 4 * K, M]),
    bytes("reduce-scatter", "reduce_scatter_block, and an allgather of the result", &[64 * K, 4 * K, M]),
    bytes("sort", "the exchange of a sample-sort: counts by alltoall, data by alltoallv", &[64 * K, 4 * K, M]),
    bytes("gather-counts", "counts by allgather, data by allgatherv", &[64 * K, 4 * K, M]),
    bytes("pivot", "the largest pivot by MAXLOC, its row broadcast by its owner (LU)", &[2 * K, 64 * K]),
    bytes("isend", "Isend and Irecv to the neighbours, around an allreduce of 8 bytes", &[64 * K, K, M]),
    bytes("iallreduce-long", "MPI_Iallreduce with four blocking allreduces of 8 bytes within", &[256 * K]),
    bytes("write", "a collective write to a file (MPI-IO), and an allreduce of 8 bytes", &[64 * K, 4 * K, M]),
    microseconds("imbalance", "random work, of so much in the mean, before an allreduce", &[50, 5, 500]),
    microseconds("late", "the last rank works before an allreduce, the others wait", &[200, 20, 2_000]),
    microseconds("io-barrier", "rank 0 sleeps, as in I/O, the others wait in a barrier", &[1_000, 10_000]),
    microseconds("io-bcast", "the same; the others wait for a broadcast", &[1_000, 10_000]),
    microseconds("io-allreduce", "the same; the others wait in an allreduce", &[1_000, 10_000]),
    microseconds("rows-columns", "work, an allreduce and a broadcast along rows and columns", &[0, 20]),
    calls("dup", "a duplicate of the world that lives for so many allreduces", 1, &[1, 20]),
    calls("split", "halves of the world (of less than 4 ranks: all) that live for so many allreduces", 1, &[1, 20]),
    microseconds("mixed", "work, then bcast, reduce, gather, scatter, allgather, with roots in turn", &[0, 20]),
    microseconds("scan", "work, an exscan and a scan", &[0, 20]),
    microseconds("iallreduce", "MPI_Iallreduce of 8 bytes, work and a blocking one within", &[5, 50]),
    Pattern {
        name: "ping-pong",
        words: "messages of 8 bytes between pairs, and a barrier",
        unit: Unit::Messages,
        least: 1,
        arguments: &[4, 1],
    },
    microseconds("thread-steps", "a thread works beside each rank, then the rank calls an allreduce", &[20, 200]),
    microseconds("thread-busy", "work and an allreduce, while a thread of each rank always works", &[20, 200]),
    calls(START, "whole jobs, from the launcher's start to its end, of so many allreduces", 0, &[0, 1]),
];

/// A pattern with an argument: what one row is about.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The pattern.
    pub pattern: &'static Pattern,
    /// Its argument.
    pub argument: u64,
}

impl Case {
    /// In words: `cg of 100 points`.
    pub fn words(&self) -> String {
        let Pattern { name, unit, .. } = self.pattern;
        format!("{name} of {} {}", unit.show(self.argument), unit.word())
    }

    /// What `--patterns` takes for it.
    pub fn wish(&self) -> String {
        format!("{}:{}", self.pattern.name, self.argument)
    }

    /// Whether its jobs are timed from outside.
    pub fn is_start(&self) -> bool {
        self.pattern.name == START
    }
}

/// The cases of a list of `NAME` and `NAME:ARGUMENT`; all for an empty list. The short form has one for each name.
///
/// # Errors
///
/// [`Error::Usage`] for a name that is none, and an argument that the pattern does not take.
pub fn cases(wishes: &[String], quick: bool) -> Result<Vec<Case>> {
    let usual = |pattern: &'static Pattern| {
        let count = if quick { 1 } else { pattern.arguments.len() };
        pattern.arguments[..count].iter().map(move |&argument| Case { pattern, argument })
    };
    if wishes.is_empty() {
        return Ok(PATTERNS.iter().flat_map(usual).collect());
    }
    let mut cases = Vec::new();
    for wish in wishes {
        let (name, argument) = wish.split_once(':').map_or((wish.as_str(), None), |(name, text)| (name, Some(text)));
        let Some(pattern) = PATTERNS.iter().find(|pattern| pattern.name == name) else {
            let names: Vec<&str> = PATTERNS.iter().map(|pattern| pattern.name).collect();
            let names = names.join(", ");
            return Err(Error::Usage(format!("'{name}' is no pattern: bench steps --list explains {names}")));
        };
        let Some(text) = argument else {
            cases.extend(usual(pattern));
            continue;
        };
        let argument = if text.trim() == "0" { Ok(0) } else { parse_some(text) };
        let argument = argument.map_err(|why| Error::Usage(format!("--patterns {wish}: {why}")))?;
        if !(pattern.least..=1 << 30).contains(&argument) {
            let (least, unit) = (pattern.least, pattern.unit.word());
            return Err(Error::Usage(format!("--patterns {wish}: {name} takes {least} {unit} or more, up to 1G")));
        }
        cases.push(Case { pattern, argument });
    }
    Ok(cases)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::job::PROGRAM;

    #[test]
    fn every_pattern_is_in_the_program_under_its_name() {
        let sources: String = PROGRAM.sources.iter().map(|(_, text)| *text).collect();
        let listed = sources.lines().filter(|line| line.starts_with("    {\"")).count();
        assert_eq!(listed, PATTERNS.len());
        for pattern in PATTERNS {
            assert!(sources.contains(&format!("    {{\"{}\", ", pattern.name)), "{}", pattern.name);
            assert!(pattern.arguments.iter().all(|&argument| argument >= pattern.least), "{}", pattern.name);
        }
    }

    #[test]
    fn patterns_are_chosen_by_name_and_argument() {
        let chosen = |words: &str, quick| -> Vec<String> {
            let words: Vec<String> = words.split_whitespace().map(String::from).collect();
            cases(&words, quick).unwrap().iter().map(Case::words).collect()
        };
        assert_eq!(chosen("pivot late:7", false), ["pivot of 2K bytes", "pivot of 64K bytes", "late of 7 us"]);
        assert_eq!(
            chosen("pivot gradients:16M start:0", true),
            ["pivot of 2K bytes", "gradients of 16M bytes", "start of 0 calls"]
        );
        assert_eq!(chosen("", true).len(), PATTERNS.len());
    }

    #[test]
    fn what_is_no_pattern_is_explained() {
        for (wish, why) in [("cgg", "bench steps --list"), ("cg:5", "96 points or more"), ("cg:many", "'many'")] {
            let error = cases(&[wish.into()], false).unwrap_err();
            assert!(error.to_string().contains(why) && error.status() == 2, "{wish}: {error}");
        }
    }
}
