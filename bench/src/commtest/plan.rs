//! What the ranks of one run do, and how what they finish is called.

use std::path::{Path, PathBuf};

use super::options::{CommTestRank, Exchange};
use super::partners::Pattern;
use super::protocol::{Program, Protocol};
use crate::error::{Error, Result};

/// What the ranks of one run do; the same on all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Bytes that a rank sends and receives.
    pub total: usize,
    /// Numbers of packets.
    pub packets: Vec<usize>,
    /// Timed repetitions.
    pub iterations: usize,
    /// Protocols.
    pub protocols: Vec<Protocol>,
    /// Programs.
    pub programs: Vec<Program>,
    /// Who exchanges with whom.
    pub pattern: Pattern,
    /// The file of finished measurements.
    pub lines: PathBuf,
    /// What their keys begin with.
    pub prefix: String,
}

/// The pattern of some options, with the distance that stands where none is given.
pub fn pattern(exchange: &Exchange, distance: usize) -> Pattern {
    Pattern {
        command: exchange.command,
        distance: exchange.distance.unwrap_or(distance),
        only_zero: exchange.only_zero,
        cycles: exchange.cycles.clone(),
    }
}

impl Plan {
    /// The plan of a rank's options.
    ///
    /// # Errors
    ///
    /// [`Error::Usage`] for numbers of packets that cannot be.
    pub fn of(options: &CommTestRank) -> Result<Plan> {
        let exchange = &options.exchange;
        let total = exchange.total as usize;
        if let Some(packets) = options.packets.iter().find(|&&packets| packets == 0 || packets > total.max(1)) {
            return Err(Error::Usage(format!("{total} bytes cannot be {packets} packets")));
        }
        Ok(Plan {
            total,
            packets: options.packets.clone(),
            iterations: exchange.iterations.unwrap_or(1) as usize,
            protocols: exchange.protocols(),
            programs: exchange.programs.clone(),
            pattern: pattern(exchange, 1),
            lines: options.lines.clone(),
            prefix: options.prefix.clone(),
        })
    }

    /// The words of the command line of a rank, behind the program: what [`Plan::of`] reads.
    pub fn to_words(&self, ranks: usize) -> Vec<String> {
        let list = |all: Vec<String>| all.join(",");
        let Pattern { command, distance, only_zero, cycles } = &self.pattern;
        let mut words: Vec<String> = vec!["commtest-rank".into()];
        let mut add = |name: &str, value: String| words.extend([name.to_owned(), value]);
        add("--command", command.to_string());
        add("--total", self.total.to_string());
        add("--distance", distance.to_string());
        add("--protocols", list(self.protocols.iter().map(Protocol::to_string).collect()));
        add("--programs", list(self.programs.iter().map(Program::to_string).collect()));
        add("--iterations", self.iterations.to_string());
        add("--packets", list(self.packets.iter().map(usize::to_string).collect()));
        add("--ranks", ranks.to_string());
        add("--lines", self.lines.display().to_string());
        add("--prefix", self.prefix.clone());
        if let Some(cycles) = cycles {
            add("--cycles", cycles.to_string());
        }
        if *only_zero {
            words.push("--only-zero".into());
        }
        words
    }

    /// The protocols with each of their programs.
    pub fn pairs(&self) -> Vec<(Protocol, Program)> {
        let of = |&protocol: &Protocol| self.programs.iter().map(move |&program| (protocol, program));
        let all = self.protocols.iter().flat_map(of);
        all.filter(|(protocol, program)| *program == Program::Basic || protocol.can_be_reorganised()).collect()
    }
}

/// The key of a finished measurement.
pub fn key(prefix: &str, protocol: Protocol, program: Program, packets: usize) -> String {
    format!("{prefix}/{protocol}/{program}/{packets}")
}

/// The prefix of what one carrier finishes in a turn.
pub fn prefix(carrier: &str, turn: usize) -> String {
    format!("{carrier}/{turn}")
}

/// A file of finished measurements in `folder`.
pub fn lines_in(folder: &Path) -> PathBuf {
    folder.join("finished.jsonl")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::command::{Cli, Command};

    fn read(words: &[String]) -> CommTestRank {
        match Cli::try_parse_from(["bench".to_owned()].iter().chain(words)).unwrap().command {
            Command::CommTestRank(options) => *options,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_plan_is_read_as_it_was_written() {
        let plan = Plan {
            total: 1 << 20,
            packets: vec![1, 8],
            iterations: 5,
            protocols: vec!["0.3".parse().unwrap(), "1.10".parse().unwrap()],
            programs: vec![Program::Reorganised],
            pattern: Pattern {
                command: super::super::partners::Command::SendRecv,
                distance: 3,
                only_zero: true,
                cycles: Some("0-2,1-3".parse().unwrap()),
            },
            lines: "/tmp/a b".into(),
            prefix: "openmpi/1".into(),
        };
        let options = read(&plan.to_words(4));
        assert_eq!((Plan::of(&options).unwrap(), options.ranks), (plan, 4));
    }

    #[test]
    fn packets_have_a_byte_at_least() {
        let plan = Plan { total: 4, packets: vec![8], iterations: 1, lines: "l".into(), ..Plan::default() };
        let plan = Plan { protocols: Protocol::all(), programs: Program::ALL.to_vec(), prefix: "x".into(), ..plan };
        let error = Plan::of(&read(&plan.to_words(2))).unwrap_err().to_string();
        assert!(error.contains("8 packets"), "{error}");
        assert_eq!(plan.pairs().len(), 37);
    }
}
