//! The end of ranks that hang: a thread that says where.

use std::sync::Mutex;
use std::time::Duration;

/// How long one step may take, on a machine that does much else.
const LIMIT: Duration = Duration::from_secs(40);

struct Step {
    number: u64,
    text: String,
}

static STEP: Mutex<Step> = Mutex::new(Step { number: 0, text: String::new() });

/// Watches from here on.
pub fn start(first: String) {
    step(first);
    std::thread::spawn(|| {
        let mut seen = 0;
        loop {
            std::thread::sleep(LIMIT);
            let step = STEP.lock().expect("nobody panics with it");
            if step.number == seen {
                eprintln!("watchdog: {} has not ended after {LIMIT:?}", step.text);
                std::process::abort();
            }
            seen = step.number;
        }
    });
}

/// The next step begins.
pub fn step(text: String) {
    let mut step = STEP.lock().expect("nobody panics with it");
    step.number += 1;
    step.text = text;
}
