//! What can go wrong in a benchmark, and what to do about it.

use std::path::PathBuf;
use std::time::Duration;

/// An error of the benchmark.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A rank got another answer than the oracle.
    #[error(
        "WRONG ANSWER from {series}: {detail}\nNothing of this run was timed to its end; no figure of it should be used."
    )]
    Wrong {
        /// Whose collectives: `phalanx` or the baseline's name.
        series: String,
        /// Rank, collective, size and the first element that differs.
        detail: String,
    },
    /// The ranks of one run did not come to their end.
    #[error("{series} with -n {ranks}: {detail}")]
    Run {
        /// Whose collectives: `phalanx` or the baseline's name.
        series: String,
        /// How many ranks the run had.
        ranks: usize,
        /// What was seen, with the program's own last words.
        detail: String,
    },
    /// A run was ended because it took too long.
    #[error(
        "{series} with -n {ranks} did not end within {} s and was stopped: try fewer or smaller sizes (--max), \
         --quick, or a longer --timeout",
        limit.as_secs()
    )]
    Timeout {
        /// Whose collectives: `phalanx` or the baseline's name.
        series: String,
        /// How many ranks the run had.
        ranks: usize,
        /// The limit that was reached.
        limit: Duration,
    },
    /// The baseline's compiler or launcher is not there.
    #[error("{0}")]
    BaselineMissing(String),
    /// The baseline's program did not compile.
    #[error("{compiler} could not compile the baseline program:\n{output}")]
    BaselineCompile {
        /// The compiler wrapper that was called.
        compiler: PathBuf,
        /// What it printed.
        output: String,
    },
    /// The bare processes of the floor did not come to their end.
    #[error("floor: {0}")]
    Floor(String),
    /// What a rank wrote cannot be read.
    #[error("{}: line {line}: {detail}", path.display())]
    Samples {
        /// The rank's file.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// What is wrong with it.
        detail: String,
    },
    /// A file could not be read or written.
    #[error("{what} {}: {source}", path.display())]
    File {
        /// What was tried: "cannot write".
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The results could not be written to standard output.
    #[error("cannot write: {0}")]
    Unwritten(std::io::Error),
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// Counted bytes are not what the formulas say.
    #[error("{differences} of {all} counts differ from the formulas")]
    Counts {
        /// How many differ.
        differences: usize,
        /// How many there are.
        all: usize,
    },
    /// A collective returned an error.
    #[error("a collective failed: {0}")]
    Collective(#[from] hier::Error),
    /// A signal ended a study before its end.
    #[error("interrupted; what was finished ({finished} measurements) is kept. To go on:\n  {again}")]
    Interrupted {
        /// Measurements that are finished.
        finished: usize,
        /// The command that goes on.
        again: String,
    },
    /// The command line asks for what cannot be done.
    #[error("{0}")]
    Usage(String),
}

/// A result whose error is this crate's.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Wraps a failed file operation.
    pub fn file(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.into();
        move |source| Error::File { what, path, source }
    }

    /// Wraps a failed system call.
    pub fn system<E: Into<std::io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Error {
        let what = what.into();
        move |source| Error::System { what, source: source.into() }
    }

    /// Whether it is only that nobody reads the results any more, as behind `head`: then there is nothing to say.
    pub fn is_unread(&self) -> bool {
        matches!(self, Error::Unwritten(source) if source.kind() == std::io::ErrorKind::BrokenPipe)
    }

    /// The exit status that the command ends with.
    pub fn status(&self) -> u8 {
        match self {
            Error::BaselineMissing(_) | Error::Usage(_) => 2,
            Error::Interrupted { .. } => 130,
            _ => 1,
        }
    }
}
