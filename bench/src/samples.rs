//! What ranks write while they measure, and how the driver reads it.
//!
//! Each rank has a file of its own, so that nothing is torn and no result travels through the
//! collectives that are being judged. The C program of the baselines writes the same lines.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::error::{Error, Result};
use crate::gate::look::Look;

/// The file of `rank` in `folder`.
pub fn sheet_path(folder: &Path, rank: usize) -> PathBuf {
    folder.join(format!("rank-{rank}.txt"))
}

/// What one rank counted over some calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    /// Calls that were counted.
    pub calls: u64,
    /// Payload bytes loaded.
    pub loaded: u64,
    /// Payload bytes stored.
    pub stored: u64,
    /// Waits that did not succeed at once.
    pub waits: u64,
    /// Times the rank gave its core away.
    pub yields: u64,
    /// Times the rank slept in the kernel.
    pub sleeps: u64,
    /// Wake-up calls that the rank made.
    pub wakes: u64,
}

/// A rank's open file.
#[derive(Debug)]
pub struct Sheet {
    path: PathBuf,
    out: BufWriter<File>,
    /// Rank 0's lines are seen at once (they tell the progress), the others' at the end.
    at_once: bool,
}

impl Sheet {
    /// Makes the file of `rank` in `folder`.
    pub fn create(folder: &Path, rank: usize, ranks: usize) -> Result<Sheet> {
        let path = sheet_path(folder, rank);
        let file = File::create(&path).map_err(Error::file("cannot make", &path))?;
        let mut sheet = Sheet { path, out: BufWriter::with_capacity(1 << 20, file), at_once: rank == 0 };
        sheet.line(format!("rank {rank} of {ranks}"))?;
        Ok(sheet)
    }

    fn line(&mut self, text: String) -> Result<()> {
        let mut outcome = writeln!(self.out, "{text}");
        if self.at_once && outcome.is_ok() {
            outcome = self.out.flush();
        }
        outcome.map_err(Error::file("cannot write", &self.path))
    }

    /// The blocks of case `case`: nanoseconds a call, each the average over `iterations` calls; of this rank, and of
    /// whichever rank was the slowest in each call.
    pub fn times(&mut self, case: usize, iterations: u64, blocks: &[[f64; 2]]) -> Result<()> {
        let values = |of: usize| blocks.iter().map(|block| format!(" {:.3}", block[of])).collect::<String>();
        self.line(format!("slowest {case}{}", values(1)))?;
        self.line(format!("times {case} {iterations}{}", values(0)))
    }

    /// How the cores looked before each block of case `case`, and after the last: the exchange and the slowdown of each
    /// look. Nothing where nobody looked.
    pub fn looks(&mut self, case: usize, looks: &[Look]) -> Result<()> {
        if looks.is_empty() {
            return Ok(());
        }
        let values: Vec<String> =
            looks.iter().map(|look| format!("{:.1} {:.2}", look.exchange, look.slowdown)).collect();
        self.line(format!("cores {case} {}", values.join(" ")))
    }

    /// What was counted in case `case`.
    pub fn count(&mut self, case: usize, count: &Count) -> Result<()> {
        let Count { calls, loaded, stored, waits, yields, sleeps, wakes } = count;
        self.line(format!("count {case} {calls} {loaded} {stored} {waits} {yields} {sleeps} {wakes}"))
    }

    /// The algorithm of case `case` and the line transfers on its critical path.
    pub fn choice(&mut self, case: usize, critical_lines: u64, algorithm: &str) -> Result<()> {
        self.line(format!("choice {case} {critical_lines} {}", algorithm.replace('\n', " ")))
    }

    /// Case `case` gave a wrong answer.
    pub fn wrong(&mut self, case: usize, detail: &str) -> Result<()> {
        self.line(format!("wrong {case} {}", detail.replace('\n', " ")))?;
        self.out.flush().map_err(Error::file("cannot write", &self.path))
    }

    /// Closes the file: without this last line it counts as incomplete.
    pub fn end(mut self) -> Result<()> {
        self.line("end".into())?;
        self.out.flush().map_err(Error::file("cannot write", &self.path))
    }
}

/// One case as all ranks saw it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CaseSamples {
    /// Calls in a block.
    pub iterations: u64,
    /// By rank, by block: nanoseconds a call.
    pub times: Vec<Vec<f64>>,
    /// By block: nanoseconds a call on the rank that was the slowest one in that call.
    pub slowest: Vec<f64>,
    /// By rank; empty where nothing is counted.
    pub counts: Vec<Count>,
    /// Line transfers on the critical path, and the algorithm.
    pub choice: Option<(u64, String)>,
    /// How the cores looked before each block and after the last; empty where nobody looked.
    pub looks: Vec<Look>,
}

impl CaseSamples {
    /// For each block the result of `merge` over the ranks' averages.
    fn over_ranks(&self, merge: impl Fn(&mut dyn Iterator<Item = f64>) -> f64) -> Vec<f64> {
        let blocks = self.times.iter().map(Vec::len).min().unwrap_or(0);
        (0..blocks).map(|block| merge(&mut self.times.iter().map(|rank| rank[block]))).collect()
    }

    /// For each block the time of the quickest rank.
    pub fn quickest(&self) -> Vec<f64> {
        self.over_ranks(|ranks| ranks.fold(f64::INFINITY, f64::min))
    }

    /// For each block the mean time of the ranks.
    pub fn average(&self) -> Vec<f64> {
        let ranks = self.times.len() as f64;
        self.over_ranks(|times| times.sum::<f64>() / ranks)
    }
}

/// All that one run measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// By the case's place in the plan.
    pub cases: BTreeMap<usize, CaseSamples>,
}

impl Run {
    /// The only case of a run that had one.
    pub fn into_single(mut self) -> Result<CaseSamples> {
        self.cases.remove(&0).ok_or_else(|| Error::Floor("its processes measured nothing".into()))
    }
}

/// Reads what `ranks` ranks wrote into `folder`, all of which must have come to their end.
pub fn read_run(folder: &Path, ranks: usize) -> Result<Run> {
    let mut run = Run::default();
    for rank in 0..ranks {
        let path = sheet_path(folder, rank);
        let text = fs::read_to_string(&path).map_err(Error::file("a rank left no results:", &path))?;
        let mut ended = false;
        for (index, line) in text.lines().enumerate() {
            let fault = |detail: &str| Error::Samples { path: path.clone(), line: index + 1, detail: detail.into() };
            match line.split_once(' ') {
                _ if index == 0 => {
                    let expected = format!("rank {rank} of {ranks}");
                    if line != expected {
                        return Err(fault(&format!("expected '{expected}', found '{line}'")));
                    }
                }
                None if line == "end" => ended = true,
                Some((word, rest)) => {
                    let (case, rest) = rest.split_once(' ').unwrap_or((rest, ""));
                    let case: usize = case.parse().map_err(|_| fault("no case number"))?;
                    let samples = run.cases.entry(case).or_default();
                    read_line(samples, rank, ranks, word, rest).map_err(|detail| fault(&detail))?;
                }
                None => return Err(fault("neither a result nor the end")),
            }
        }
        if !ended {
            let line = text.lines().count();
            return Err(Error::Samples { path, line, detail: "the rank stopped before its end".into() });
        }
    }
    Ok(run)
}

fn read_line(
    samples: &mut CaseSamples,
    rank: usize,
    ranks: usize,
    word: &str,
    rest: &str,
) -> std::result::Result<(), String> {
    match word {
        "times" => {
            let (iterations, values) = rest.split_once(' ').unwrap_or((rest, ""));
            samples.iterations = iterations.parse().map_err(|_| "no iteration count".to_string())?;
            samples.times.resize(ranks, Vec::new());
            samples.times[rank] = numbers(values)?;
        }
        // All ranks say the same.
        "slowest" => samples.slowest = numbers(rest)?,
        "count" => {
            let values: Vec<u64> = numbers(rest)?;
            let [calls, loaded, stored, waits, yields, sleeps, wakes] = values[..] else {
                return Err(format!("{} counts where 7 belong", values.len()));
            };
            samples.counts.resize(ranks, Count::default());
            samples.counts[rank] = Count { calls, loaded, stored, waits, yields, sleeps, wakes };
        }
        "choice" => {
            let (lines, algorithm) = rest.split_once(' ').unwrap_or((rest, ""));
            let lines = lines.parse().map_err(|_| "no line count".to_string())?;
            samples.choice = Some((lines, algorithm.to_string()));
        }
        "cores" if rank == 0 => {
            let values = numbers(rest)?;
            let (looks, []) = values.as_chunks() else { return Err("an exchange without its slowdown".into()) };
            samples.looks = looks.iter().map(|&[exchange, slowdown]| Look { exchange, slowdown }).collect();
        }
        "cores" => {}
        "wrong" => return Err(format!("wrong answer: {rest}")),
        other => return Err(format!("'{other}' is no kind of result")),
    }
    Ok(())
}

fn numbers<T: std::str::FromStr>(text: &str) -> std::result::Result<Vec<T>, String> {
    text.split_whitespace().map(|word| word.parse().map_err(|_| format!("'{word}' is no number"))).collect()
}

/// The wrong answers that the ranks of a failed run wrote down, however incomplete their files.
pub fn wrong_answers(folder: &Path, ranks: usize) -> Vec<String> {
    (0..ranks)
        .filter_map(|rank| fs::read_to_string(sheet_path(folder, rank)).ok())
        .flat_map(|text| {
            text.lines()
                .filter_map(|line| Some(line.strip_prefix("wrong ")?.split_once(' ')?.1.to_string()))
                .collect::<Vec<_>>()
        })
        .collect()
}

/// How many cases rank 0 has finished timing in a run that still goes on.
pub fn finished_cases(folder: &Path) -> usize {
    fs::read_to_string(sheet_path(folder, 0))
        .map(|text| text.lines().filter(|line| line.starts_with("times ")).count())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    fn write_rank(folder: &Path, rank: usize, blocks: &[[f64; 2]]) -> Sheet {
        let mut sheet = Sheet::create(folder, rank, 2).unwrap();
        sheet.times(0, 100, blocks).unwrap();
        sheet.count(0, &Count { calls: 100, loaded: 800 * rank as u64, ..Count::default() }).unwrap();
        sheet
    }

    #[test]
    fn what_ranks_write_is_read_back_and_merged() {
        let scratch = Scratch::new().unwrap();
        let mut first = write_rank(scratch.path(), 0, &[[10.0, 25.0], [30.0, 35.0]]);
        first.choice(0, 4, "line flat").unwrap();
        let looks = [Look { exchange: 36.0, slowdown: 1.0 }, Look { exchange: 190.5, slowdown: 1.03 }];
        first.looks(0, &looks).unwrap();
        assert_eq!(finished_cases(scratch.path()), 1);
        first.end().unwrap();
        write_rank(scratch.path(), 1, &[[20.0, 25.0], [10.0, 35.0]]).end().unwrap();
        let samples = read_run(scratch.path(), 2).unwrap().into_single().unwrap();
        assert_eq!(samples.quickest(), [10.0, 10.0]);
        assert_eq!(samples.average(), [15.0, 20.0]);
        assert_eq!(samples.slowest, [25.0, 35.0]);
        assert_eq!(samples.counts[1].loaded, 800);
        assert_eq!(samples.choice, Some((4, "line flat".into())));
        assert_eq!(samples.looks, looks);
    }

    #[test]
    fn a_rank_that_stopped_early_is_an_error() {
        let scratch = Scratch::new().unwrap();
        write_rank(scratch.path(), 0, &[[1.0; 2]]).end().unwrap();
        let error = read_run(scratch.path(), 2).unwrap_err().to_string();
        assert!(error.contains("rank-1.txt"), "{error}");
        drop(write_rank(scratch.path(), 1, &[[1.0; 2]]));
        let error = read_run(scratch.path(), 2).unwrap_err().to_string();
        assert!(error.contains("stopped before its end"), "{error}");
    }

    #[test]
    fn a_world_of_the_wrong_size_is_an_error() {
        let scratch = Scratch::new().unwrap();
        Sheet::create(scratch.path(), 0, 1).unwrap().end().unwrap();
        let error = read_run(scratch.path(), 2).unwrap_err().to_string();
        assert!(error.contains("expected 'rank 0 of 2'"), "{error}");
    }

    #[test]
    fn wrong_answers_are_found_in_incomplete_files() {
        let scratch = Scratch::new().unwrap();
        let mut sheet = write_rank(scratch.path(), 1, &[[1.0; 2]]);
        sheet.wrong(3, "rank 1: element 5\nis 0").unwrap();
        drop(sheet);
        assert_eq!(wrong_answers(scratch.path(), 2), ["rank 1: element 5 is 0"]);
    }
}
