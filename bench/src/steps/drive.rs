//! The command: all cases on all MPIs, without the library and with it, in turns.

use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::Serialize;

use super::figures::Row;
use super::job::{self, PROGRAM, Taken, Terms, series};
use super::options::Steps;
use super::patterns::{Case, cases};
use super::{picture, report};
use crate::error::{Error, Result};
use crate::keep::Keeper;
use crate::out::{say, show};
use crate::progress::Progress;
use crate::record::host::Host;
use crate::runs::baseline::{self, Baseline, Places};
use crate::scratch::Scratch;
use crate::study::Stop;
use crate::table;

/// After so many cases that failed, one behind the other, an MPI is left out at that rank count.
const MOST_FAILURES: usize = 3;

/// All results of a run, as they are written to `results.json`.
#[derive(Debug, Serialize)]
struct Results<'a> {
    host: &'a Host,
    /// The library.
    library: &'a Path,
    rows: &'a [Row],
    /// What failed, and what the library remarked.
    notes: &'a [String],
}

/// Runs the command.
///
/// # Errors
///
/// [`Error::Usage`] and [`Error::BaselineMissing`] before anything is measured; [`Error::Wrong`] at the first wrong
/// answer; [`Error::Interrupted`]. A case that fails on an MPI is left out there, and the error comes at the end, after
/// the results.
pub fn run(options: &Steps) -> Result<()> {
    if options.list {
        return show(report::list());
    }
    let cases = cases(&options.patterns, options.quick)?;
    if options.rank_counts().contains(&1) {
        return Err(Error::Usage("one rank alone has nobody to wait for: --ranks takes 2 and more".into()));
    }
    let library = library(&options.library)?;
    let scratch = Scratch::new()?;
    let places = Places { compiler: None, launcher: None, peers: &options.peers };
    let baselines = baseline::prepare_all(&options.baseline, &places, PROGRAM, &[], &scratch)?;
    let stop = Stop::listen()?;
    let mut host = Host::look();
    host.baselines = baselines.iter().map(|b| format!("{}: {}", b.name, b.version)).collect();
    say!("{}\n", host.line())?;
    if host.busy.is_some_and(|busy| busy > 0.1) {
        eprintln!("{}: other programs share them, and figures suffer", host.busy_words());
    }
    let steps = options.rank_counts().len() * cases.len() * baselines.len() * options.turns() as usize * 2;
    let mut session = Session {
        options,
        terms: Terms { library: &library, time: options.time(), limit: options.limit(), stop: &stop },
        scratch: &scratch,
        progress: Progress::new(steps),
        keeper: Keeper::open(&options.record, &host, if options.quick { "steps-quick" } else { "steps" }),
        host,
        cases,
        baselines,
        rows: Vec::new(),
        lost: None,
    };
    session.keeper.write("host.txt", &session.host.render());
    let begin = Instant::now();
    let mut outcome = Ok(());
    for ranks in options.rank_counts() {
        outcome = session.measure(ranks);
        if outcome.is_err() {
            break;
        }
    }
    session.progress.finish();
    eprintln!("measured for {:.0} s", begin.elapsed().as_secs_f64());
    session.keep_plots();
    let said = if session.rows.is_empty() { Ok(()) } else { show(report::summary(&session.rows) + "\n") };
    let kept = session.keeper.close();
    outcome.and(said)?;
    session.lost.map_or(Ok(()), Err)?;
    kept
}

/// The absolute path of the library.
fn library(path: &Path) -> Result<PathBuf> {
    path.canonicalize().map_err(|why| {
        let path = path.display();
        Error::Usage(format!("the library {path}: {why}. Build it by scripts/dropin, or name it with --library FILE"))
    })
}

/// What is gathered over the rank counts of one command.
struct Session<'a> {
    options: &'a Steps,
    terms: Terms<'a>,
    scratch: &'a Scratch,
    progress: Progress,
    keeper: Keeper,
    host: Host,
    cases: Vec<Case>,
    baselines: Vec<Baseline>,
    rows: Vec<Row>,
    /// The first failure.
    lost: Option<Error>,
}

impl Session<'_> {
    /// Measures and prints everything for one rank count; what is finished is kept after each case.
    fn measure(&mut self, ranks: usize) -> Result<()> {
        let mut failures = vec![0; self.baselines.len()];
        let mut outcome = Ok(());
        for case in self.cases.clone() {
            outcome = self.measure_case(ranks, case, &mut failures);
            self.keep();
            if outcome.is_err() {
                break;
            }
        }
        let text = report::table(&self.rows, ranks, &self.cases, &self.names());
        if !text.is_empty() {
            outcome = outcome.and(self.progress.aside(|| say!("{text}\n{}\n", report::LEGEND)));
        }
        outcome
    }

    fn measure_case(&mut self, ranks: usize, case: Case, failures: &mut [usize]) -> Result<()> {
        let turns = self.options.turns();
        let mut taken: Vec<Vec<[Taken; 2]>> = vec![Vec::new(); self.baselines.len()];
        let mut failed = vec![false; self.baselines.len()];
        for turn in 0..turns {
            for at in in_turn(self.baselines.len(), turn) {
                if failed[at] || failures[at] >= MOST_FAILURES {
                    self.progress.skip(2);
                    continue;
                }
                match self.both(&self.baselines[at], ranks, case, turn) {
                    Ok(both) => taken[at].push(both),
                    Err(error @ Error::Wrong { .. }) => {
                        self.progress.note(&error.to_string());
                        return Err(error);
                    }
                    Err(_) if self.terms.stop.is_asked() => return Err(self.interrupted(ranks, case)),
                    Err(error) => {
                        failed[at] = true;
                        failures[at] += 1;
                        self.left_out(&error, at, ranks, failures[at]);
                        self.lost.get_or_insert(error);
                    }
                }
            }
        }
        for (at, taken) in taken.iter().enumerate() {
            if failed[at] || taken.is_empty() {
                continue;
            }
            failures[at] = 0;
            self.rows.extend(Row::of(&self.baselines[at].name, ranks, case, taken));
        }
        Ok(())
    }

    /// The error of a run that a signal has ended in this case.
    fn interrupted(&self, ranks: usize, case: Case) -> Error {
        let is_case = |other: &&Case| other.wish() != case.wish();
        let left: Vec<String> = self.cases.iter().skip_while(is_case).map(Case::wish).collect();
        let counts = self.options.rank_counts();
        let later = counts.iter().skip_while(|&&count| count != ranks).skip(1);
        let mut again = format!("bench steps --ranks {ranks} --patterns {}", left.join(","));
        again.extend(later.map(|count| format!("\n  and the same as before with --ranks {count}")));
        Error::Interrupted { finished: self.rows.len(), again }
    }

    /// One turn of one MPI: a job without the library and one with it, the one that was last in the turn before first.
    fn both(&self, baseline: &Baseline, ranks: usize, case: Case, turn: u32) -> Result<[Taken; 2]> {
        let mut both = [Taken::default(); 2];
        let order = if turn.is_multiple_of(2) { [false, true] } else { [true, false] };
        for (place, with) in order.into_iter().enumerate() {
            let who = series(baseline, with);
            self.progress.stage(format!("{who}, {}, {}, turn {}", table::ranks(ranks), case.words(), turn + 1));
            let remark = |text: &str| {
                let text = format!("{} says: {text}", series(baseline, with));
                if !self.progress.notes().contains(&text) {
                    self.progress.note(&text);
                }
            };
            match job::run(baseline, ranks, case, with, &self.terms, self.scratch, remark) {
                Ok(taken) => both[usize::from(with)] = taken,
                Err(error) => {
                    self.progress.skip(order.len() - place);
                    return Err(error);
                }
            }
            self.progress.step();
        }
        Ok(both)
    }

    fn left_out(&self, error: &Error, at: usize, ranks: usize, failures: usize) {
        let name = &self.baselines[at].name;
        let what = match failures {
            MOST_FAILURES.. => format!("all that is left with {}: {failures} cases failed", table::ranks(ranks)),
            _ => "this case".into(),
        };
        self.progress.note(&format!("{error}\n{name} is left out of {what}"));
    }

    fn names(&self) -> Vec<String> {
        self.baselines.iter().map(|baseline| baseline.name.clone()).collect()
    }

    /// Writes what there is into the record.
    fn keep(&mut self) {
        let (names, notes) = (self.names(), self.progress.notes());
        let results = Results { host: &self.host, library: self.terms.library, rows: &self.rows, notes: &notes };
        self.keeper.write_json("results.json", &results);
        let counts = self.options.rank_counts();
        let tables = counts.iter().map(|&ranks| report::table(&self.rows, ranks, &self.cases, &names));
        let mut text = format!("{}\n\n", report::LEGEND);
        text.extend(tables.filter(|table| !table.is_empty()).map(|table| table + "\n"));
        text += &report::summary(&self.rows);
        text.push('\n');
        text.extend(counts.iter().map(|&ranks| report::details(&self.rows, ranks, &names)));
        if !notes.is_empty() {
            text += &format!("notes\n{}\n", notes.join("\n"));
        }
        self.keeper.write("tables.txt", &text);
    }

    fn keep_plots(&mut self) {
        for ranks in self.options.rank_counts() {
            if let Some(picture) = picture::ratios(&self.rows, ranks, &self.names()) {
                self.keeper.write_plot(&format!("steps-{ranks}-ranks.svg"), &picture);
            }
        }
    }
}

/// Which of so many MPIs come one after the other in this turn: another one first each time.
fn in_turn(count: usize, turn: u32) -> Vec<usize> {
    (0..count).map(|place| (place + turn as usize) % count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_begin_a_turn_in_turn() {
        assert_eq!([0, 1, 3].map(|turn| in_turn(3, turn)), [[0, 1, 2], [1, 2, 0], [0, 1, 2]]);
        assert!(in_turn(0, 5).is_empty());
    }

    #[test]
    fn a_missing_library_says_how_it_is_built() {
        let error = library(Path::new("/nowhere/lib.so")).unwrap_err();
        assert_eq!(error.status(), 2);
        assert!(
            error.to_string().contains("/nowhere/lib.so") && error.to_string().contains("scripts/dropin"),
            "{error}"
        );
    }
}
