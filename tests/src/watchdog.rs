//! The end of tests that do not end.

use std::io::Write;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use crate::random::SEED;

/// Runs `test`; if it has not ended after `limit`, ends this process with a message that names it.
///
/// A rank that hangs cannot be ended alone when it is a thread, so the whole test program goes.
pub fn watchdog<R>(limit: Duration, test: impl FnOnce() -> R) -> R {
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    let (ended, ends) = channel::<()>();
    std::thread::Builder::new()
        .name("watchdog".to_owned())
        .spawn(move || {
            // The sender is dropped when the test ends, by a panic too.
            if ends.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                let seed = std::env::var(SEED).map_or(String::new(), |seed| format!(" ({SEED}={seed})"));
                let message =
                    format!("\nwatchdog: {name} has not ended after {limit:?}{seed}: ending the test program\n");
                let _ = std::io::stderr().write_all(message.as_bytes());
                std::process::abort();
            }
        })
        .expect("the thread of the watchdog");
    let result = test();
    drop(ended);
    result
}
