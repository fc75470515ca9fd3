//! A person's wish that a study should end: SIGINT and SIGTERM.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use signal_hook::consts::{SIGINT, SIGTERM};

use crate::error::{Error, Result};

/// Whether a signal has asked for the end.
///
/// The first one is noted, and what is under way ends at its next look; the second one ends the process at once.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    asked: Arc<AtomicBool>,
}

impl Stop {
    /// Listens from here on.
    ///
    /// # Errors
    ///
    /// [`Error::System`] when handlers cannot be installed.
    pub fn listen() -> Result<Stop> {
        let stop = Stop::default();
        for signal in [SIGINT, SIGTERM] {
            // In this order: at the first signal the flag is not up yet when the process would end for it.
            signal_hook::flag::register_conditional_default(signal, Arc::clone(&stop.asked))
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop.asked)))
                .map_err(Error::system("handling of SIGINT and SIGTERM"))?;
        }
        Ok(stop)
    }

    /// Whether the end was asked for.
    pub fn is_asked(&self) -> bool {
        self.asked.load(Relaxed)
    }

    /// Asks for it.
    pub fn ask(&self) {
        self.asked.store(true, Relaxed);
    }
}
