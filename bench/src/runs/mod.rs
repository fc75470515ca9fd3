//! Whole runs of ranks: ours through the launcher, a baseline's through its own.

pub mod baseline;
pub mod mpi;
pub mod ours;
pub mod peers;

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::gate;
use crate::machine::usable_cores;
use crate::plan::Plan;
use crate::progress::Progress;
use crate::samples::{Run, read_run, wrong_answers};
use crate::scratch::Scratch;

/// Where ranks are bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Binding {
    /// To cores where there are as many usable cores as ranks, otherwise to nothing.
    Auto,
    /// Each to a core, in turn.
    Core,
    /// Each to a NUMA node, in turn.
    Numa,
    /// To nothing: the kernel places them.
    None,
}

impl Binding {
    /// What `Auto` comes to for `ranks` ranks.
    pub fn resolve(self, ranks: usize) -> Binding {
        match self {
            Binding::Auto if ranks <= usable_cores().len() => Binding::Core,
            Binding::Auto => Binding::None,
            other => other,
        }
    }

    /// In the words of a table's title.
    pub fn words(self) -> &'static str {
        match self {
            Binding::Auto => "bound by default",
            Binding::Core => "bound to cores",
            Binding::Numa => "bound to NUMA nodes",
            Binding::None => "not bound",
        }
    }
}

/// What one run is made of, whoever's collectives it calls.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    /// What the ranks measure.
    pub plan: &'a Plan,
    /// How many ranks there are.
    pub ranks: usize,
    /// Where they are bound; resolved.
    pub binding: Binding,
    /// When they are stopped.
    pub limit: Duration,
}

/// The files of one run.
#[derive(Debug)]
struct Files {
    plan: PathBuf,
    results: PathBuf,
}

impl Files {
    fn prepare(order: &Order<'_>, scratch: &Scratch, name: &str) -> Result<Files> {
        let results = scratch.fresh(name)?;
        let plan = results.join("plan.txt");
        order.plan.write(&plan)?;
        gate::make(&results, order.ranks, order.ranks > usable_cores().len())?;
        Ok(Files { plan, results })
    }
}

/// Reads the results of a run that ended well, or finds out why it did not.
fn conclude(series: &str, order: &Order<'_>, results: &Path, failure: Option<String>) -> Result<Run> {
    let wrong = wrong_answers(results, order.ranks);
    if !wrong.is_empty() {
        return Err(Error::Wrong { series: series.into(), detail: wrong.join("\n  and ") });
    }
    match failure {
        Some(detail) => Err(Error::Run { series: series.into(), ranks: order.ranks, detail }),
        None => {
            let run = read_run(results, order.ranks)?;
            let complete = |case: usize| run.cases.get(&case).is_some_and(|samples| !samples.times.is_empty());
            match (0..order.plan.cases.len()).find(|&case| !complete(case)) {
                Some(case) => Err(Error::Run {
                    series: series.into(),
                    ranks: order.ranks,
                    detail: format!("case {case} of {} has no result", order.plan.cases.len()),
                }),
                None => Ok(run),
            }
        }
    }
}

/// Runs `order` and tells `progress` of each case that rank 0 finishes.
fn watched<T>(progress: &Progress, results: &Path, order: &Order<'_>, run: impl FnOnce() -> T) -> T {
    let watch = progress.watch(results, order.plan.cases.len());
    let outcome = run();
    watch.end();
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Operation;
    use crate::rows::tests::case;
    use crate::samples::Sheet;

    /// What `conclude` says of a run of one rank of which `write` has written the sheet.
    fn concluded(failure: Option<&str>, write: impl FnOnce(Sheet)) -> Result<Run> {
        let scratch = Scratch::new()?;
        let plan = Plan { cases: vec![case(Operation::Reduce, 8)], ..Plan::default() };
        let order = Order { plan: &plan, ranks: 1, binding: Binding::None, limit: Duration::from_secs(1) };
        write(Sheet::create(scratch.path(), 0, 1)?);
        conclude("theirs", &order, scratch.path(), failure.map(String::from))
    }

    #[test]
    fn a_wrong_answer_is_told_before_the_failure_that_it_caused() {
        let error = concluded(Some("exit status 1"), |mut sheet| sheet.wrong(0, "rank 0: element 3 is 7").unwrap());
        let error = error.unwrap_err();
        assert!(matches!(error, Error::Wrong { .. }));
        assert!(error.to_string().contains("WRONG ANSWER from theirs: rank 0: element 3 is 7"), "{error}");
    }

    #[test]
    fn a_failure_and_a_missing_result_are_errors() {
        let error = concluded(Some("killed"), |_| ()).unwrap_err().to_string();
        assert!(error.contains("theirs with -n 1: killed"), "{error}");
        let error = concluded(None, |sheet| sheet.end().unwrap()).unwrap_err().to_string();
        assert!(error.contains("case 0 of 1 has no result"), "{error}");
        let good = concluded(None, |mut sheet| {
            sheet.times(0, 5, &[[1.0; 2]]).unwrap();
            sheet.end().unwrap();
        });
        assert_eq!(good.unwrap().cases.len(), 1);
    }

    #[test]
    fn more_ranks_than_cores_are_not_bound_by_default() {
        assert_eq!(Binding::Auto.resolve(100_000), Binding::None);
        assert_eq!(Binding::Auto.resolve(1), Binding::Core);
        assert_eq!(Binding::Numa.resolve(100_000), Binding::Numa);
    }
}
