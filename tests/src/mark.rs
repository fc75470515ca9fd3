//! The processes of one job, by a variable of their environment.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The variable.
const VARIABLE: &str = "PHALANX_TEST_MARK";

/// What marks the processes of one job, and of no other on this machine.
#[derive(Clone)]
pub struct Mark(String);

impl Mark {
    /// Another one each time.
    #[expect(clippy::new_without_default, reason = "no two are alike")]
    #[must_use]
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        Self(format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)))
    }

    /// As a variable of the job's environment.
    #[must_use]
    pub fn variable(&self) -> (&str, &str) {
        (VARIABLE, &self.0)
    }

    /// As a part of a file's name.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }

    /// The processes that have it in their environment, dead ones apart.
    ///
    /// # Panics
    /// When /proc cannot be read.
    #[must_use]
    pub fn processes(&self) -> Vec<u32> {
        let sign = format!("{VARIABLE}={}", self.0);
        let is_marked = |pid: &u32| {
            std::fs::read(format!("/proc/{pid}/environ"))
                .is_ok_and(|environment| environment.split(|&byte| byte == 0).any(|entry| entry == sign.as_bytes()))
        };
        let entries = std::fs::read_dir("/proc").expect("the processes").flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter(is_marked).collect()
    }

    /// The command lines of the processes of the job that are there yet, after so long at most to end in.
    #[must_use]
    pub fn left_behind(&self, most: Duration) -> Vec<String> {
        let begin = Instant::now();
        loop {
            let left = self.processes();
            if left.is_empty() || begin.elapsed() > most {
                return left.into_iter().map(command_line).collect();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn command_line(pid: u32) -> String {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).replace('\0', " ")
}
