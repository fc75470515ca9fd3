//! A job of an MPI on this machine, with the library preloaded into its ranks, or without.

use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use phalanx_tests::command::{self, Ended};

use crate::programs;
use crate::stats::Stats;
use phalanx_tests::library::{Family, Library, target};
use phalanx_tests::mark::Mark;

/// Seconds after which a job is stopped: by SIGTERM, so that its launcher stops all ranks, then by SIGKILL.
const LIMIT: u64 = 120;

/// A job to be run.
pub struct Job {
    library: Library,
    program: PathBuf,
    words: Vec<String>,
    ranks: usize,
    /// What is preloaded, first to last.
    preloads: Vec<PathBuf>,
    variables: Vec<(String, String)>,
    /// Whether the library counts calls.
    is_counted: bool,
}

/// How it ended.
pub struct Done {
    line: String,
    pub ended: Ended,
    stats: PathBuf,
}

impl Job {
    /// A program of the suite on two ranks, every communicator taken over with its first call, and all calls that can
    /// be.
    pub fn new(library: Library, program: &str) -> Self {
        Self {
            library,
            program: programs::folder(library).join(program),
            words: Vec::new(),
            ranks: 2,
            preloads: vec![programs::preloaded().to_owned()],
            variables: [("PHALANX_AFTER", "1"), ("PHALANX_TAKE", "all")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .to_vec(),
            is_counted: true,
        }
    }

    /// With a library that counts no calls.
    pub fn uncounted(mut self) -> Self {
        self.is_counted = false;
        self
    }

    /// Another program than one of the suite.
    pub fn program(mut self, path: impl Into<PathBuf>) -> Self {
        self.program = path.into();
        self
    }

    /// Without the library.
    pub fn native(mut self) -> Self {
        self.preloads.clear();
        self
    }

    pub fn ranks(mut self, ranks: usize) -> Self {
        self.ranks = ranks;
        self
    }

    pub fn words(mut self, words: &[&str]) -> Self {
        self.words = words.iter().map(|&word| word.to_owned()).collect();
        self
    }

    /// What stands in LD_PRELOAD, in this order.
    pub fn preloads(mut self, preloads: Vec<PathBuf>) -> Self {
        self.preloads = preloads;
        self
    }

    /// Sets a variable of the ranks, in place of an earlier one of that name.
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.retain(|(set, _)| set != name);
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Runs it to its end.
    ///
    /// # Panics
    /// When it does not end in time, or leaves processes or files behind.
    pub fn run(self) -> Done {
        // Ranks of two jobs at once would wait for each other's turns on the cores.
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let mark = Mark::new();
        let stats = target().join("dropin-suite").join(format!("stats-{}.csv", mark.text()));
        let mpirun = self.mpirun(&stats);
        let mut job = command::bare("timeout".as_ref());
        job.args(["-k", "5", &LIMIT.to_string()]).arg(mpirun.get_program()).args(mpirun.get_args());
        job.envs(mpirun.get_envs().filter_map(|(name, value)| Some((name, value?))));
        job.envs([mark.variable()]).env("SUITE_SECONDS", (LIMIT - 20).to_string());
        let line = format!("{:?}", mpirun);
        let before = own_files();
        let ended = command::run(&mut job, Duration::from_secs(LIMIT + 20));
        let left = mark.left_behind(Duration::from_secs(2));
        assert!(left.is_empty(), "{line}: left behind: {left:?}");
        let files: Vec<_> = own_files().into_iter().filter(|file| !before.contains(file)).collect();
        assert!(files.is_empty(), "{line}: left in /dev/shm: {files:?}");
        Done { line, ended, stats }
    }

    fn mpirun(&self, stats: &std::path::Path) -> Command {
        let mut mpirun = self.library.mpirun();
        let mut variables = self.variables.clone();
        if !self.preloads.is_empty() {
            let preloads: Vec<String> = self.preloads.iter().map(|path| path.display().to_string()).collect();
            variables.push(("LD_PRELOAD".to_owned(), preloads.join(":")));
            if self.is_counted {
                variables.push(("PHALANX_STATS".to_owned(), stats.display().to_string()));
            }
        }
        for (name, value) in variables {
            match self.library.family {
                Family::OpenMpi => mpirun.args(["-x", &format!("{name}={value}")]),
                _ => mpirun.args(["-env", &name, &value]),
            };
        }
        match self.library.family {
            Family::OpenMpi => mpirun.args(["--mca", "mpi_yield_when_idle", "1"]),
            Family::Intel => mpirun.env("I_MPI_FABRICS", "shm").env("I_MPI_THREAD_YIELD", "3"),
            Family::Mpich => &mut mpirun,
        };
        mpirun.args(["-n", &self.ranks.to_string()]).arg(&self.program).args(&self.words);
        mpirun
    }
}

impl Done {
    /// Everything that was written.
    pub fn text(&self) -> String {
        format!("{}: {}\n{}\n{}", self.line, self.ended.status, self.ended.stdout, self.ended.stderr)
    }

    /// The program ended well, and says so.
    pub fn succeeded(&self, name: &str, ranks: usize) {
        assert!(self.ended.status.success(), "{}", self.text());
        let expected = format!("ok {name}: {ranks} ranks, ");
        assert_eq!(self.ended.stdout.matches(&expected).count(), 1, "no {expected:?} in\n{}", self.text());
    }

    /// What the library counted.
    ///
    /// # Panics
    /// When it wrote nothing.
    pub fn stats(&self) -> Stats {
        let text = std::fs::read_to_string(&self.stats);
        let text = text.unwrap_or_else(|error| panic!("no statistics ({error}) of\n{}", self.text()));
        Stats::from_csv(&text).unwrap_or_else(|line| panic!("{line:?} in the statistics of\n{}", self.text()))
    }
}

impl Drop for Done {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.stats);
    }
}

/// Files in /dev/shm that are of this project. Jobs that run beside make none: their segments have no names.
fn own_files() -> Vec<String> {
    let files = std::fs::read_dir("/dev/shm").map(|files| files.flatten().collect::<Vec<_>>()).unwrap_or_default();
    let names = files.iter().map(|file| file.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.to_lowercase().contains("phalanx")).collect()
}
