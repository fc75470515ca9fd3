//! What the person in front of the terminal sees while it goes on.

use std::io::{IsTerminal, stderr};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::samples::finished_cases;

/// How often a running rank 0 is looked at. Rare enough not to disturb what is measured.
const LOOK: Duration = Duration::from_millis(500);
/// How often a line is written where no bar can be drawn.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Steps done of steps planned, as a bar on a terminal and as occasional lines elsewhere.
#[derive(Clone, Debug)]
pub struct Progress {
    bar: ProgressBar,
    lines: Option<Arc<Mutex<Lines>>>,
    notes: Arc<Mutex<Vec<String>>>,
}

#[derive(Debug)]
struct Lines {
    begin: Instant,
    last: Option<Instant>,
    /// Steps that an earlier run has done.
    already: u64,
}

impl Progress {
    /// Progress over `steps` steps on standard error.
    pub fn new(steps: usize) -> Progress {
        let bar = ProgressBar::with_draw_target(Some(steps as u64), ProgressDrawTarget::stderr_with_hz(2));
        let style = ProgressStyle::with_template("{bar:28} {pos}/{len}  {elapsed} gone, {eta} to go  {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        let now = Instant::now();
        let lines =
            (!stderr().is_terminal()).then(|| Arc::new(Mutex::new(Lines { begin: now, last: Some(now), already: 0 })));
        Progress { bar, lines, notes: Arc::default() }
    }

    /// Progress that nobody sees.
    pub fn silent() -> Progress {
        Progress { bar: ProgressBar::hidden(), lines: None, notes: Arc::default() }
    }

    /// Says what is done at present.
    pub fn stage(&self, text: impl Into<String>) {
        self.bar.set_message(text.into());
        self.line();
    }

    /// One step is done.
    pub fn step(&self) {
        self.bar.inc(1);
        self.line();
    }

    /// Takes `steps` planned steps as done, where they fall away.
    pub fn skip(&self, steps: usize) {
        self.bar.inc(steps as u64);
    }

    /// Takes `steps` planned steps as done by an earlier run: they tell nothing of how long the others take.
    pub fn already(&self, steps: usize) {
        self.bar.inc(steps as u64);
        self.bar.reset_eta();
        if let Some(Ok(mut lines)) = self.lines.as_ref().map(|lines| lines.lock()) {
            lines.already += steps as u64;
        }
    }

    /// A remark above the bar, which is kept.
    pub fn note(&self, text: &str) {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).push(text.to_owned());
        if self.lines.is_some() {
            eprintln!("{text}");
        } else {
            self.bar.suspend(|| eprintln!("{text}"));
        }
    }

    /// The remarks so far.
    pub fn notes(&self) -> Vec<String> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Runs `print` while no bar is drawn, for output that goes to the same terminal.
    pub fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// Follows rank 0's file in `results` until the watch ends; it holds `cases` cases at its end.
    pub fn watch(&self, results: &Path, cases: usize) -> Watch {
        let results = results.to_path_buf();
        self.follow(cases, move || finished_cases(&results))
    }

    /// Asks `finished` from time to time, until the watch ends, how many of `steps` steps are done; then all count as
    /// done.
    pub fn follow(&self, steps: usize, finished: impl Fn() -> usize + Send + 'static) -> Watch {
        let progress = self.clone();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let begin = self.bar.position();
        let thread = thread::spawn(move || {
            while !stopped.load(Relaxed) {
                thread::park_timeout(LOOK);
                progress.bar.set_position(begin + finished().min(steps) as u64);
                progress.line();
            }
            progress.bar.set_position(begin + steps as u64);
        });
        Watch { stop, thread }
    }

    fn line(&self) {
        let Some(lines) = &self.lines else { return };
        let Ok(mut lines) = lines.lock() else { return };
        if lines.last.is_some_and(|last| last.elapsed() < LINE_EVERY) {
            return;
        }
        lines.last = Some(Instant::now());
        let (done, all) = (self.bar.position(), self.bar.length().unwrap_or(0));
        let gone = lines.begin.elapsed().as_secs_f64();
        let rest = rest_of(gone, done.saturating_sub(lines.already), all.saturating_sub(lines.already));
        let rest =
            rest.map_or_else(|| "nothing known yet of what is left".into(), |rest| format!("about {rest:.0} s to go"));
        eprintln!("{done}/{all}  {gone:.0} s gone, {rest}  {}", self.bar.message());
    }
}

/// Seconds to go when `done` of `all` steps took `gone` seconds; none where nothing is done from which it would follow.
fn rest_of(gone: f64, done: u64, all: u64) -> Option<f64> {
    (done > 0).then(|| gone * all.saturating_sub(done) as f64 / done as f64)
}

/// Follows a run from a thread of its own.
#[derive(Debug)]
pub struct Watch {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Watch {
    /// Ends the watch; all of its steps count as done.
    pub fn end(self) {
        self.stop.store(true, Relaxed);
        self.thread.thread().unpark();
        let _ = self.thread.join();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_follows_from_what_was_done() {
        assert_eq!(rest_of(10.0, 5, 15), Some(20.0));
        assert_eq!(rest_of(10.0, 0, 15), None);
        assert_eq!(rest_of(10.0, 15, 15), Some(0.0));
    }

    #[test]
    fn a_watch_ends_at_once_and_counts_its_cases() {
        let progress = Progress::silent();
        let begin = Instant::now();
        progress.watch(Path::new("/nowhere"), 7).end();
        assert!(begin.elapsed() < Duration::from_secs(5));
        assert_eq!(progress.bar.position(), 7);
    }
}
