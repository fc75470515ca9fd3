//! What stands beside ours: baselines with their settings, and ours with an algorithm forced.

use crate::command::Collectives;
use crate::error::{Error, Result};
use crate::machine::usable_cores;
use crate::plan::{Case, Plan};
use crate::progress::Progress;
use crate::runs::baseline::{self, Baseline, COLLECTIVES, Places, Series};
use crate::runs::peers::settings;
use crate::runs::{Order, mpi, ours};
use crate::samples::Run;
use crate::scratch::Scratch;

/// Finds and compiles all baselines.
pub fn prepare_baselines(options: &Collectives, scratch: &Scratch) -> Result<Vec<Baseline>> {
    if options.compares() && (options.mpicc.is_some() || options.mpirun.is_some()) {
        return Err(Error::Usage(
            "--mpicc and --mpirun belong to one --baseline; for several write NAME=FOLDER".into(),
        ));
    }
    let places =
        Places { compiler: options.mpicc.as_deref(), launcher: options.mpirun.as_deref(), peers: &options.peers };
    baseline::prepare_all(&options.baseline, &places, COLLECTIVES, &options.mpirun_option, scratch)
}

/// What stands beside ours.
#[derive(Clone, Debug)]
pub enum Other {
    /// A baseline.
    Mpi(Series),
    /// Ours, with this algorithm forced.
    Ours(String),
}

impl Other {
    /// The name in tables and records.
    pub fn name(&self) -> String {
        match self {
            Other::Mpi(series) => series.name(),
            Other::Ours(algorithm) => ours::forced_name(algorithm),
        }
    }

    fn takes(&self, case: &Case) -> bool {
        match self {
            Other::Mpi(series) => series.takes(case),
            Other::Ours(_) => true,
        }
    }

    /// What it measures beside `plan`, and for each of its cases the place there.
    pub fn plan(&self, plan: &Plan) -> (Plan, Vec<usize>) {
        match self {
            Other::Mpi(_) => plan.beside(|case| self.takes(case)),
            Other::Ours(_) => (plan.clone(), (0..plan.cases.len()).collect()),
        }
    }

    /// Measures.
    ///
    /// # Errors
    ///
    /// When a run fails.
    pub fn run(&self, order: &Order<'_>, scratch: &Scratch, progress: &Progress) -> Result<Run> {
        match self {
            Other::Mpi(series) => mpi::run(series, order, scratch, progress),
            Other::Ours(algorithm) => ours::run(order, Some(algorithm), scratch, progress),
        }
    }
}

/// The series beside ours for `ranks` ranks.
pub fn others(options: &Collectives, ranks: usize, baselines: &[Baseline]) -> Vec<Other> {
    let theirs = series(options, ranks, baselines).into_iter().map(Other::Mpi);
    theirs.chain(options.beside.iter().cloned().map(Other::Ours)).collect()
}

/// The series of `baselines` for `ranks` ranks.
pub fn series(options: &Collectives, ranks: usize, baselines: &[Baseline]) -> Vec<Series> {
    let crowded = ranks > usable_cores().len();
    let all = baselines.iter().flat_map(|baseline| {
        let settings = settings(&baseline.name, baseline.family, crowded, options.settings);
        settings.into_iter().map(|setting| Series { baseline: baseline.clone(), setting })
    });
    all.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectives::cases::plan;
    use crate::collectives::cases::tests::options;

    #[test]
    fn ours_beside_ours_measures_the_same_cases_under_a_name_of_its_own() {
        let options = options(&["--beside", "strict", "--beside", "allreduce:shares,leaders=2"]);
        let others = others(&options, 2, &[]);
        let names: Vec<String> = others.iter().map(Other::name).collect();
        assert_eq!(names, ["phalanx-strict", "phalanx-allreduce-shares,leaders=2"]);
        let plan = plan(&options, 2);
        assert_eq!(others[0].plan(&plan).0, plan);
        assert_eq!(others[0].plan(&plan).1.last(), Some(&(plan.cases.len() - 1)));
    }
}
