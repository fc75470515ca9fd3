//! The end of tests that do not end: ranks that hang are threads, so the whole test program goes.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Runs `test`; if it has not ended after `limit`, ends this process with a message that names it.
pub fn watchdog<R>(limit: Duration, test: impl FnOnce() -> R) -> R {
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    let (ended, ends) = channel::<()>();
    std::thread::spawn(move || {
        // The sender is dropped when the test ends, by a panic too.
        if ends.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
            eprintln!("\nwatchdog: {name} has not ended after {limit:?}: ending the test program");
            std::process::abort();
        }
    });
    let result = test();
    drop(ended);
    result
}
