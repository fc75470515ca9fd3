//! Whether MPI is ready, for whom, and which one it is.

use std::cell::Cell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};

use super::super::{Error, Result};
use super::calls;

/// What MPI grants to threads (MPI 4.0, 11.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ThreadLevel {
    /// There is one thread.
    Single,
    /// Only the main thread calls MPI.
    Funneled,
    /// One thread at a time calls MPI.
    Serialized,
    /// Any thread, at any time.
    Multiple,
}

impl ThreadLevel {
    /// MPI's name of it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Single => "MPI_THREAD_SINGLE",
            Self::Funneled => "MPI_THREAD_FUNNELED",
            Self::Serialized => "MPI_THREAD_SERIALIZED",
            Self::Multiple => "MPI_THREAD_MULTIPLE",
        }
    }

    fn from_number(level: c_int) -> Self {
        let [_, funneled, serialized, multiple] = calls::thread_levels();
        match level {
            _ if level >= multiple => Self::Multiple,
            _ if level >= serialized => Self::Serialized,
            _ if level >= funneled => Self::Funneled,
            _ => Self::Single,
        }
    }
}

/// A number of the calling thread, which no other has or will have. Asked in every call, where the standard library's
/// is one more object to hold.
pub(super) fn thread() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local!(static NUMBER: Cell<u64> = const { Cell::new(0) });
    match NUMBER.get() {
        0 => {
            // Relaxed: numbers need only differ.
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            NUMBER.set(number);
            number
        }
        number => number,
    }
}

/// Whether MPI has begun and is not over.
pub(super) fn is_running() -> bool {
    calls::is_initialised() && !calls::is_finalised()
}

/// Checks that MPI is running and that this thread may use it.
pub(super) fn ready() -> Result<ThreadLevel> {
    if !calls::is_initialised() {
        return Err(Error::NotInitialised);
    }
    if calls::is_finalised() {
        return Err(Error::Finalised);
    }
    let failed = |failure: calls::Failure| failure.of(0, None);
    let level = ThreadLevel::from_number(calls::thread_level().map_err(failed)?);
    if level < ThreadLevel::Serialized && !calls::is_main_thread().map_err(failed)? {
        return Err(Error::Thread { level: level.name() });
    }
    Ok(level)
}

/// Refuses a world of one process when its launcher speaks of more.
pub(super) fn refuse_singletons(world: usize) -> Result<()> {
    match shm_core::job::launcher_says_more() {
        Some((variable, value)) if world == 1 => Err(Error::Singletons { variable, value, library: library() }),
        _ => Ok(()),
    }
}

/// The first line of what the library says of itself.
pub(super) fn library() -> String {
    let text = calls::library_version().unwrap_or_else(|failure| failure.text);
    // Open MPI follows its version with where it was built, MPICH with how.
    let line = text.lines().next().unwrap_or_default();
    let line = line.split(", package").next().unwrap_or(line);
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}
