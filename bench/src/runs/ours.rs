//! A run of our own collectives: this program again, once a rank, started by the launcher.

use std::env;
use std::ffi::OsString;

use hier::launch::Launch;
use topo::BindPolicy;

use super::{Binding, Files, Order, conclude, watched};
use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::rank::OUT_OF_TIME;
use crate::samples::Run;
use crate::scratch::Scratch;

/// The name of our series in tables, plots and records.
pub const NAME: &str = "phalanx";

/// The series' name in tables and records with this algorithm forced.
pub fn forced_name(algorithm: &str) -> String {
    // No colon: it stands between a baseline and its setting.
    format!("{NAME}-{}", algorithm.replace(':', "-"))
}

/// Whether a series is ours with an algorithm forced.
pub fn is_forced(series: &str) -> bool {
    series.strip_prefix(NAME).is_some_and(|rest| rest.starts_with('-'))
}

/// Runs `order` through our collectives; `algorithm` forces one, as `PHALANX_ALGORITHM` does.
pub fn run(order: &Order<'_>, algorithm: Option<&str>, scratch: &Scratch, progress: &Progress) -> Result<Run> {
    let files = Files::prepare(order, scratch, NAME)?;
    let program = env::current_exe().map_err(Error::system("path of this program"))?;
    let limit = order.limit.as_secs().to_string();
    let arguments: [OsString; 4] = ["rank".into(), files.plan.into(), files.results.clone().into(), limit.into()];
    let policy = match order.binding {
        Binding::Core => BindPolicy::Core,
        Binding::Numa => BindPolicy::Numa,
        Binding::Auto | Binding::None => BindPolicy::None,
    };
    let mut launch = Launch::new(program, arguments).ranks(order.ranks).bind(policy).quiet();
    if let Some(algorithm) = algorithm {
        launch = launch.env("PHALANX_ALGORITHM", algorithm);
    }
    let outcome = watched(progress, &files.results, order, || launch.run());
    let failure = match outcome {
        Err(error) => Some(error.to_string()),
        Ok(outcome) if i32::from(outcome.status()) == OUT_OF_TIME => {
            return Err(Error::Timeout { series: NAME.into(), ranks: order.ranks, limit: order.limit });
        }
        Ok(outcome) => outcome.first_failure.map(|failure| failure.to_string()),
    };
    conclude(NAME, order, &files.results, failure)
}
