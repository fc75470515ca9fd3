//! The processes of one job, by a variable of their environment.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The variable.
const VARIABLE: &str = "PHALANX_TEST_MARK";

/// What marks the processes of one job, and of no other on this machine.
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

    /// The command lines of the processes of the job that are there yet, after so long at most to end in.
    #[must_use]
    pub fn left_behind(&self, most: Duration) -> Vec<String> {
        let begin = Instant::now();
        loop {
            let left = self.marked();
            if left.is_empty() || begin.elapsed() > most {
                return left;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The command lines of all processes that have the mark in their environment.
    fn marked(&self) -> Vec<String> {
        let sign = format!("{VARIABLE}={}", self.0);
        let processes = std::fs::read_dir("/proc").expect("the processes").flatten();
        processes
            .filter(|process| {
                std::fs::read(process.path().join("environ"))
                    .is_ok_and(|environment| environment.split(|&byte| byte == 0).any(|entry| entry == sign.as_bytes()))
            })
            .map(|process| {
                let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
                String::from_utf8_lossy(&line).replace('\0', " ")
            })
            .collect()
    }
}
