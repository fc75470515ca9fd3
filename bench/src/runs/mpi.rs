//! A run of a baseline's collectives through its own launcher.

use std::env;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::baseline::{Baseline, Family};
use super::{Binding, Files, Order, conclude, watched};
use crate::error::{Error, Result};
use crate::machine::usable_cores;
use crate::progress::Progress;
use crate::samples::Run;
use crate::scratch::Scratch;

/// How long a launcher has to end its ranks before it is killed.
const GRACE: Duration = Duration::from_secs(5);

/// Runs `order` through the collectives of `baseline`.
pub fn run(baseline: &Baseline, order: &Order<'_>, scratch: &Scratch, progress: &Progress) -> Result<Run> {
    let files = Files::prepare(order, scratch, &baseline.name)?;
    let said = files.results.join("launcher.txt");
    let out = File::create(&said).map_err(Error::file("cannot make", &said))?;
    let both = out.try_clone().map_err(Error::file("cannot open again", &said))?;
    let this = env::current_exe().map_err(Error::system("path of this program"))?;
    let mut command = Command::new(this);
    command.args(["tethered", &std::process::id().to_string(), "--"]);
    command.arg(&baseline.launcher);
    command.args(launcher_options(baseline.family, order, usable_cores().len()));
    command.args(&baseline.options);
    command.arg(&baseline.program).arg(&files.plan).arg(&files.results);
    command.args([order.ranks.to_string(), order.limit.as_secs().max(1).to_string()]);
    command.envs(launcher_environment(baseline.family, order, &usable_cores()));
    command.stdin(Stdio::null()).stdout(out).stderr(both).process_group(0);

    let ended = watched(progress, &files.results, order, || {
        let child = command.spawn().map_err(Error::system(format!("start of {}", baseline.launcher.display())))?;
        Launcher(child).wait(order.limit)
    })?;
    let last_words = || {
        let text = fs::read_to_string(&said).unwrap_or_default();
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).take(12).collect();
        lines.join("\n  ")
    };
    match ended {
        None => Err(Error::Timeout { series: baseline.name.clone(), ranks: order.ranks, limit: order.limit }),
        Some(status) if status.success() => conclude(&baseline.name, order, &files.results, None),
        Some(status) => {
            let detail = format!("its launcher ended with {status} and said:\n  {}", last_words());
            conclude(&baseline.name, order, &files.results, Some(detail))
        }
    }
}

/// Options of the launcher: rank count, binding like ours, and what makes it yield when ranks
/// outnumber cores.
fn launcher_options(family: Family, order: &Order<'_>, cores: usize) -> Vec<String> {
    let more_than_cores = order.ranks > cores;
    let mut options: Vec<String> = Vec::new();
    let mut add = |words: &[&str]| options.extend(words.iter().map(|word| word.to_string()));
    match family {
        Family::OpenMpi => {
            add(match order.binding {
                Binding::Core if more_than_cores => &["--bind-to", "core:overload-allowed"],
                Binding::Core => &["--bind-to", "core"],
                Binding::Numa => &["--bind-to", "numa"],
                Binding::Auto | Binding::None => &["--bind-to", "none"],
            });
            if more_than_cores {
                add(&["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]);
            }
        }
        Family::Mpich => add(match order.binding {
            Binding::Core => &["-bind-to", "core"],
            Binding::Numa => &["-bind-to", "numa"],
            Binding::Auto | Binding::None => &["-bind-to", "none"],
        }),
        Family::Intel => {}
    }
    add(&["-n", &order.ranks.to_string()]);
    options
}

/// Environment of the launcher. What the user has set stays as it is.
fn launcher_environment(family: Family, order: &Order<'_>, cores: &[usize]) -> Vec<(&'static str, String)> {
    let mut wanted: Vec<(&'static str, String)> = Vec::new();
    match family {
        Family::OpenMpi => {
            wanted.push(("OMPI_ALLOW_RUN_AS_ROOT", "1".into()));
            wanted.push(("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1".into()));
        }
        Family::Mpich => {}
        Family::Intel => {
            wanted.push(("I_MPI_FABRICS", "shm".into()));
            match order.binding {
                Binding::Core => {
                    let list: Vec<String> = cores.iter().map(usize::to_string).collect();
                    wanted.push(("I_MPI_PIN_PROCESSOR_LIST", list.join(",")));
                }
                _ => wanted.push(("I_MPI_PIN", "0".into())),
            }
            if order.ranks > cores.len() {
                wanted.push(("I_MPI_THREAD_YIELD", "3".into()));
            }
        }
    }
    wanted.retain(|(name, _)| env::var_os(name).is_none());
    wanted
}

/// A running launcher in a process group of its own, ended when this is dropped.
struct Launcher(Child);

impl Launcher {
    /// Waits for its end; `None` when the limit came first.
    fn wait(mut self, limit: Duration) -> Result<Option<std::process::ExitStatus>> {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait().map_err(Error::system("wait for the baseline's launcher"))? {
                return Ok(Some(status));
            }
            if begin.elapsed() > limit {
                return Ok(None);
            }
            sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Launcher {
    fn drop(&mut self) {
        if !matches!(self.0.try_wait(), Ok(None)) {
            return;
        }
        let group = Pid::from_raw(self.0.id() as i32);
        let _ = killpg(group, Signal::SIGTERM);
        let begin = Instant::now();
        while begin.elapsed() < GRACE {
            if !matches!(self.0.try_wait(), Ok(None)) {
                return;
            }
            sleep(Duration::from_millis(50));
        }
        let _ = killpg(group, Signal::SIGKILL);
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;

    fn options(family: Family, ranks: usize, binding: Binding) -> String {
        let plan = Plan::default();
        let order = Order { plan: &plan, ranks, binding, limit: Duration::from_secs(1) };
        launcher_options(family, &order, 2).join(" ")
    }

    #[test]
    fn two_ranks_are_bound_alike() {
        assert_eq!(options(Family::OpenMpi, 2, Binding::Core), "--bind-to core -n 2");
        assert_eq!(options(Family::Mpich, 2, Binding::Core), "-bind-to core -n 2");
        assert_eq!(options(Family::Intel, 2, Binding::Core), "-n 2");
    }

    #[test]
    fn more_ranks_than_cores_get_what_makes_them_best() {
        let open = options(Family::OpenMpi, 8, Binding::None);
        assert_eq!(open, "--bind-to none --oversubscribe --mca mpi_yield_when_idle 1 -n 8");
        let plan = Plan::default();
        let order = Order { plan: &plan, ranks: 8, binding: Binding::None, limit: Duration::ZERO };
        let intel = launcher_environment(Family::Intel, &order, &[0, 1]);
        assert!(intel.contains(&("I_MPI_THREAD_YIELD", "3".into())));
    }

    #[test]
    fn a_launcher_that_hangs_is_ended() {
        let mut command = Command::new("sleep");
        command.arg("1000").process_group(0);
        let child = command.spawn().unwrap();
        let pid = child.id();
        let ended = Launcher(child).wait(Duration::from_millis(50)).unwrap();
        assert_eq!(ended, None);
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    }
}
