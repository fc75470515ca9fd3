//! `phalanx tune`: measures this machine, and writes its table.

use std::io::{IsTerminal, stderr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use hier::launch::Launch;
use hier::remark;
use hier::table::{Fingerprint, Table, default_place, with_network_of};
use hier::tune::{Effort, Findings, begin_ledger, check_room, explanation, read_ledger, table_of, tune_rank};
use indicatif::{ProgressBar, ProgressStyle};
use phalanx::Communicator;
use signal_hook::consts::{SIGINT, SIGTERM};

use super::out::tell;
use super::{out, ranks, tune_cluster};

/// Measure this machine, and write the table by which calls choose
///
/// Starts ranks as `phalanx run` does, and compares algorithms, leaders, cells and trees over message sizes, in turns,
/// with answers checked. Another choice than the built-in one is taken only where it wins by more than the spread.
///
/// What is found on a number of ranks counts for numbers near it (more than half of it, and up to a quarter more), in
/// jobs of the same kind: those with a core for each rank, or those whose ranks share cores. All else stays as built in.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct Tune {
    /// Numbers of ranks, rising [default: 2,4,8, and the number of usable cores, if that is another one from 3 to 256]
    #[arg(short = 'n', long, value_delimiter = ',', value_parser = ranks, value_name = "N,..")]
    ranks: Vec<usize>,

    /// How thorough: under a minute instead of a few minutes
    #[arg(long)]
    quick: bool,

    /// Under mpirun: measure the network between the nodes, and write the part of the table that speaks of it
    #[arg(long, conflicts_with = "ranks")]
    cluster: bool,

    /// Where the table goes [default: $XDG_CONFIG_HOME/phalanx/table.toml, or ~/.config/phalanx/table.toml
    /// where that is not set; jobs look for it there]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Print each size's candidates with their times, which one was taken, and why
    #[arg(long)]
    explain: bool,

    /// Measure nothing: print a table's rules as the source of the built-in ones
    #[arg(long, value_name = "TABLE", hide = true)]
    rust: Option<PathBuf>,

    /// The measurement by name: those of `--quick` and without it, and one for tests
    #[arg(long, value_enum, hide = true)]
    effort: Option<Thorough>,

    /// One rank of a measurement; the file has what was finished before
    #[arg(long, value_name = "FILE", hide = true)]
    rank: Option<PathBuf>,
}

/// The measurements that there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Thorough {
    Usual,
    Quick,
    Tiny,
}

const AFTER: &str = "\
Examples:
  phalanx tune                                  a few minutes; jobs take the table from then on
  phalanx tune --quick --explain --output t.toml
  PHALANX_TABLE=t.toml phalanx run -n 4 -- ./program
  mpirun -n 32 phalanx tune --cluster           between nodes; takes a build with --features mpi. It keeps what a table
                                                says of single nodes, and calls take it on as many nodes with as many ranks

Ctrl-C loses no finished measurement: they are in FILE.partial, and the same command goes on from there.";

impl Thorough {
    fn effort(self) -> Effort {
        match self {
            Thorough::Usual => Effort::usual(),
            Thorough::Quick => Effort::quick(),
            Thorough::Tiny => Effort::tiny(),
        }
    }

    /// The same across nodes.
    #[cfg(feature = "mpi")]
    pub fn across(self) -> Effort {
        match self {
            Thorough::Usual => Effort::usual_across(),
            Thorough::Quick => Effort::quick_across(),
            Thorough::Tiny => Effort::tiny_across(),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Thorough::Usual => "usual",
            Thorough::Quick => "quick",
            Thorough::Tiny => "tiny",
        }
    }
}

impl Tune {
    pub fn run(self) -> ExitCode {
        let thorough = self.effort.unwrap_or(if self.quick { Thorough::Quick } else { Thorough::Usual });
        let outcome = match (&self.rank, &self.rust) {
            (Some(ledger), _) => one_rank(thorough, ledger).map(drop),
            (_, Some(table)) => print_source(table),
            _ if self.cluster => tune_cluster::run(thorough, self.output.as_deref(), self.explain),
            _ => self.measure(thorough),
        };
        match outcome {
            Ok(()) => ExitCode::SUCCESS,
            Err(Stopped { why, status }) => {
                if !why.is_empty() {
                    remark(format_args!("{why}"));
                }
                status.into()
            }
        }
    }

    fn measure(&self, thorough: Thorough) -> Result<(), Stopped> {
        let numbers = match self.ranks.as_slice() {
            [] => {
                let cores = hier::launch::usable_cores();
                usual_numbers(cores.map_err(|error| Stopped::because(error.to_string(), error.status()))?)
            }
            given => given.to_vec(),
        };
        if !numbers.is_sorted_by(|a, b| a < b) {
            return Err(Stopped::because("--ranks: the numbers must rise, as in 2,4,8", 2));
        }
        check_room(&thorough.effort(), &numbers).map_err(|error| Stopped::because(format!("--ranks: {error}"), 2))?;
        let begin = Instant::now();
        let machine = Fingerprint::of_this_machine();
        let (output, partial) = places(self.output.as_deref(), thorough.name(), &machine)?;
        let steps: usize = numbers.iter().map(|&ranks| steps(&thorough.effort(), ranks)).sum();
        let progress = Progress::follow(partial.clone(), steps);
        let asked = ends_asked_for()?;
        let launched = numbers.iter().try_for_each(|&ranks| match asked.load(Ordering::Relaxed) {
            0 => launch(thorough, ranks, &partial),
            signal => Err(interrupted(signal as u8)),
        });
        progress.end();
        launched.map_err(|stopped| Stopped {
            why: format!(
                "{}; {} finished measurements are in {}, and the same command goes on from there",
                stopped.why,
                finished(&partial),
                partial.display()
            ),
            ..stopped
        })?;
        // Everything is in the ledger: the search runs once more here, and asks for nothing that is not there.
        let findings = numbers.iter().map(|&ranks| replay(thorough, ranks, &partial)).collect::<Result<Vec<_>, _>>()?;
        let table = table_of(machine, &findings).map_err(|error| Stopped::because(error.to_string(), 1))?;
        replace(&output, &with_network_of_before(table, &output))?;
        let _ = std::fs::remove_file(&partial);
        if self.explain {
            say(&explanation(&findings))?;
        }
        say(&format!(
            "{} written after {:.0} s; {}\n",
            output.display(),
            begin.elapsed().as_secs_f64(),
            how_to_take(self.output.as_deref())
        ))
    }
}

/// The numbers of ranks where nobody says them: with a core for each rank as many as there are, and usual ones.
fn usual_numbers(cores: usize) -> Vec<usize> {
    let mut numbers = vec![2, 4, 8];
    if (3..=hier::launch::MOST_RANKS).contains(&cores) {
        numbers.push(cores);
    }
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// Where the table goes, and where finished measurements are until then. The folder is there.
pub(super) fn places(
    output: Option<&Path>,
    effort: &str,
    machine: &Fingerprint,
) -> Result<(PathBuf, PathBuf), Stopped> {
    let output = output.map(Path::to_owned).or_else(default_place).ok_or_else(|| {
        Stopped::because("there is neither XDG_CONFIG_HOME nor HOME: say where the table goes with --output", 2)
    })?;
    // Where it leads to, if it is a link: a table is put in the place of the file.
    let output = output.canonicalize().unwrap_or(output);
    if output.is_symlink() {
        return Err(Stopped::because(format!("{} is a link that leads nowhere; name a file", output.display()), 2));
    }
    if output.is_dir() {
        return Err(Stopped::because(format!("{} is a folder; name a file in it", output.display()), 2));
    }
    if output.exists() && !output.is_file() {
        let why = "is no file, and a table would be put in its place; name a file, or one that is not there yet";
        return Err(Stopped::because(format!("{} {why}", output.display()), 2));
    }
    if let Some(folder) = output.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(|error| failed("make", folder, &error))?;
    }
    let mut partial = output.clone().into_os_string();
    partial.push(format!(".{effort}.partial"));
    let partial = PathBuf::from(partial);
    begin_ledger(&partial, &machine.to_string()).map_err(|why| Stopped::because(why, 2))?;
    let before = finished(&partial);
    if before > 0 {
        tell(format_args!("going on from {before} measurements in {}", partial.display()));
    }
    Ok((output, partial))
}

/// The text of a table that takes the place of another one: what that says of the network, which was not measured here,
/// stays, if it was measured on the same machine.
fn with_network_of_before(mut table: Table, output: &Path) -> String {
    let text = table.to_toml();
    let Ok(before) = std::fs::read_to_string(output) else { return text };
    let Ok(known) = Table::from_toml(&before) else { return text };
    if known.network.is_none() || !table.machine.differences(&known.machine).is_empty() {
        return text;
    }
    let kept = with_network_of(&text, &before);
    if Table::from_toml(&kept).is_ok_and(|back| back.network == known.network) {
        return kept;
    }
    // Written by hand, in a form that cannot be told from the rest: without its remarks.
    table.network = known.network;
    table.to_toml()
}

/// Writes a table. Jobs that start meanwhile find the old one or the new one.
pub(super) fn replace(output: &Path, text: &str) -> Result<(), Stopped> {
    let mut new = output.to_owned().into_os_string();
    new.push(".new");
    let new = PathBuf::from(new);
    std::fs::write(&new, text)
        .and_then(|()| std::fs::rename(&new, output))
        .map_err(|error| failed("write", output, &error))
}

pub(super) fn how_to_take(output: Option<&Path>) -> String {
    match output {
        None => "jobs on this machine take it from now on".to_owned(),
        Some(path) => format!("PHALANX_TABLE={} takes it for a job", path.display()),
    }
}

/// Why it went no further, and the exit status.
pub(super) struct Stopped {
    pub why: String,
    pub status: u8,
}

impl Stopped {
    pub fn because(why: impl Into<String>, status: u8) -> Self {
        Self { why: why.into(), status }
    }
}

pub(super) fn failed(verb: &str, path: &Path, error: &std::io::Error) -> Stopped {
    Stopped::because(format!("cannot {verb} {}: {error}; name another place with --output", path.display()), 1)
}

/// The number of a signal that asked for an end while no ranks were running, who listen to it themselves; else 0.
fn ends_asked_for() -> Result<Arc<AtomicUsize>, Stopped> {
    let asked = Arc::new(AtomicUsize::new(0));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_usize(signal, Arc::clone(&asked), signal as usize)
            .map_err(|error| Stopped::because(format!("signals cannot be handled: {error}"), 1))?;
    }
    Ok(asked)
}

fn interrupted(signal: u8) -> Stopped {
    Stopped::because("interrupted", 128 + signal)
}

/// Measures on so many ranks.
fn launch(thorough: Thorough, ranks: usize, partial: &Path) -> Result<(), Stopped> {
    let program = std::env::current_exe()
        .map_err(|error| Stopped::because(format!("this program cannot be found: {error}"), 1))?;
    let args = ["tune".as_ref(), "--effort".as_ref(), thorough.name().as_ref(), "--rank".as_ref(), partial.as_os_str()];
    let outcome = Launch::new(program, args)
        .ranks(ranks)
        .forward_signals()
        .env("PHALANX_TABLE", "none")
        .env("PHALANX_TREES", "")
        // Room for the largest cells that are compared.
        .env("PHALANX_ALGORITHM", "all:up_bytes=2M,down_bytes=2M")
        .env("PHALANX_DEBUG", "0")
        // Room for the buffers in shared memory that are compared.
        .env("PHALANX_HEAP", "1G")
        .run()
        .map_err(|error| Stopped::because(error.to_string(), error.status()))?;
    match (outcome.interrupted, outcome.status()) {
        (Some(_), status) => Err(Stopped::because("interrupted", status)),
        (None, 0) => Ok(()),
        (None, status) => Err(Stopped::because(format!("a rank of {ranks} has failed"), status)),
    }
}

/// One rank of a measurement.
fn one_rank(thorough: Thorough, ledger: &Path) -> Result<Findings, Stopped> {
    let stopped = |error: phalanx::Error| Stopped::because(error.to_string(), 1);
    let comm = Communicator::world().map_err(stopped)?;
    tune_rank(comm, &thorough.effort(), ledger).map_err(stopped)
}

/// The findings that follow from finished measurements.
fn replay(thorough: Thorough, ranks: usize, ledger: &Path) -> Result<Findings, Stopped> {
    let crowd = hier::launch::crowd(ranks).map_err(|error| Stopped::because(error.to_string(), error.status()))?;
    hier::tune::replay(&read_ledger(ledger), &thorough.effort(), ranks, crowd)
        .map_err(|error| Stopped::because(error.to_string(), 1))
}

fn print_source(path: &Path) -> Result<(), Stopped> {
    let text = std::fs::read_to_string(path).map_err(|error| failed("read", path, &error))?;
    let table = Table::from_toml(&text).map_err(|flaw| Stopped::because(format!("{}: {flaw}", path.display()), 2))?;
    say(&table.to_rust())
}

/// Says it on standard output.
pub(super) fn say(text: &str) -> Result<(), Stopped> {
    out::say(text).map_err(|why| Stopped::because(why, 1))
}

/// Finished measurements in a file.
fn finished(ledger: &Path) -> usize {
    read_ledger(ledger).lines().filter(|line| line.ends_with("\tend")).count()
}

/// About how many measurements a search makes.
fn steps(effort: &Effort, ranks: usize) -> usize {
    let searches = if effort.strict && ranks > 2 { 5 } else { 3 };
    let trees = if ranks > 2 { 5 } else { 0 };
    // Buffers in shared memory, of those that are no lines.
    let shared = 3 * effort.sizes.len().saturating_sub(1);
    // Private ones that are reached, of those that are long enough.
    let reached = 3 * effort.sizes.iter().filter(|&&bytes| bytes >= hier::tune::LEAST_REACHED).count();
    trees + searches * (effort.sizes.len() + 2 * effort.halvings) + shared + reached
}

/// A bar that follows the ledger; lines, now and then, where there is no terminal.
pub(super) struct Progress {
    stop: Arc<AtomicBool>,
    wake: mpsc::Sender<()>,
    thread: std::thread::JoinHandle<()>,
}

impl Progress {
    pub fn follow(ledger: PathBuf, steps: usize) -> Self {
        const LOOK: Duration = Duration::from_millis(500);
        const LINE_EVERY: Duration = Duration::from_secs(10);
        let bar = if stderr().is_terminal() { ProgressBar::new(steps as u64) } else { ProgressBar::hidden() };
        let style = ProgressStyle::with_template(
            "{bar:28} {pos} of about {len} measurements  {elapsed} gone, about {eta} to go",
        );
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let (wake, sleep) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let (begin, first) = (Instant::now(), finished(&ledger));
            bar.set_position(first as u64);
            let mut last = Instant::now();
            while !stopped.load(Ordering::Relaxed) {
                let _ = sleep.recv_timeout(LOOK);
                let done = finished(&ledger);
                bar.set_position(done.min(steps) as u64);
                if bar.is_hidden() && last.elapsed() >= LINE_EVERY {
                    last = Instant::now();
                    let gone = begin.elapsed().as_secs_f64();
                    let rest = gone * steps.saturating_sub(done) as f64 / done.saturating_sub(first).max(1) as f64;
                    tell(format_args!(
                        "{done} of about {steps} measurements, {gone:.0} s gone, about {rest:.0} s to go"
                    ));
                }
            }
            bar.finish_and_clear();
        });
        Self { stop, wake, thread }
    }

    pub fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.wake.send(());
        let _ = self.thread.join();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_ranks_as_cores_are_measured_too_and_there_is_room_for_them() {
        for (cores, numbers) in [
            (1, &[2, 4, 8][..]),
            (2, &[2, 4, 8]),
            (6, &[2, 4, 6, 8]),
            (8, &[2, 4, 8]),
            (64, &[2, 4, 8, 64]),
            (256, &[2, 4, 8, 256]),
            (257, &[2, 4, 8]),
        ] {
            assert_eq!(usual_numbers(cores), numbers);
            check_room(&Effort::usual(), numbers).unwrap();
        }
    }
}
