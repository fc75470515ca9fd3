//! Runs of ranks: over an MPI on this host or on an emulated cluster, and over our shared memory.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use hier::launch::Launch;
use topo::BindPolicy;

use super::channel::Slots;
use super::options::CommTest;
use super::plan::Plan;
use crate::across::cluster::{self, Supervised};
use crate::across::mode::Mode;
use crate::across::program::Library;
use crate::error::{Error, Result};
use crate::machine::usable_cores;
use crate::runs::Binding;
use crate::runs::peers::{Family, launcher_environment, launcher_options};
use crate::study::Stop;

/// Runs a plan over an MPI. False where an emulated cluster is not allowed.
///
/// # Errors
///
/// [`Error::BaselineMissing`] without a launcher; [`Error::Timeout`]; [`Error::Run`] with the last words of the ranks.
pub fn over_mpi(
    options: &CommTest,
    library: Library,
    program: &Path,
    plan: &Plan,
    folder: &Path,
    stop: &Stop,
) -> Result<bool> {
    let words = plan.to_words(options.size());
    let mode = Mode::usual(options.eager);
    if options.hosts.is_some() {
        return cluster::launch(&options.across()?, library, mode, program, &words, folder, Some(stop));
    }
    let launcher = library.launcher()?;
    let family = match library {
        Library::OpenMpi => Family::OpenMpi,
        Library::Mpich => Family::Mpich,
    };
    let (ranks, limit) = (options.ranks, Duration::from_secs(options.timeout));
    let binding = Binding::Auto.resolve(ranks);
    let cores = usable_cores();
    let this = env::current_exe().map_err(Error::system("path of this program"))?;
    let mut command = Command::new(this);
    command.args(["tethered", &std::process::id().to_string(), "--"]);
    command.arg(launcher).args(launcher_options(family, ranks, binding, cores.len()));
    command.arg(program).args(words);
    command.envs(launcher_environment(family, binding, &cores));
    let series = library.to_string();
    cluster::supervise(command, &Supervised { series: &series, ranks, limit, folder }, Some(stop))
}

/// Runs a plan over our shared memory.
///
/// # Errors
///
/// [`Error::Run`] with what the launcher says of the first rank that failed.
pub fn over_channels(options: &CommTest, slots: Slots, plan: &Plan) -> Result<()> {
    let ranks = options.ranks;
    let program = env::current_exe().map_err(Error::system("path of this program"))?;
    let mut words = plan.to_words(ranks);
    words.extend(["--channels", slots.name()].map(String::from));
    let policy = match Binding::Auto.resolve(ranks) {
        Binding::Core => BindPolicy::Core,
        _ => BindPolicy::None,
    };
    let launch = Launch::new(program, words).ranks(ranks).bind(policy).env("PHALANX_ALGORITHM", slots.rule());
    let failed = |detail: String| Error::Run { series: slots.name().into(), ranks, detail };
    let outcome = launch.quiet().run().map_err(|error| failed(error.to_string()))?;
    outcome.first_failure.map_or(Ok(()), |failure| Err(failed(failure.to_string())))
}

/// The program of ranks for a library: the given one, or one that cargo builds; the launcher is looked for first.
///
/// # Errors
///
/// [`Error::BaselineMissing`] with what to install.
pub fn program(options: &CommTest, library: Library) -> Result<PathBuf> {
    if options.hosts.is_none() {
        library.launcher()?;
    }
    options.program.clone().map_or_else(|| crate::across::program::build(library), Ok)
}
