//! Whether ranks that are processes may copy from each other's private memory: found out by a job of two, of this very
//! command.

use hier::launch::{Launch, LaunchError};
use phalanx::{Communicator, Reaching};

/// Starts two ranks, and returns what they found out, for people: nothing when they copy.
pub(super) fn between_processes() -> Result<Option<String>, String> {
    let command = std::env::current_exe().map_err(|error| error.to_string())?;
    let launch = Launch::new(command, ["doctor", "--as-rank"]).ranks(2).capture().quiet();
    let outcome = launch.run().map_err(|error: LaunchError| error.to_string())?;
    if !outcome.success() {
        return Err("two ranks of this command could not run".to_owned());
    }
    let said = outcome.captured.into_iter().next().unwrap_or_default();
    let said = String::from_utf8_lossy(&said).trim().to_owned();
    Ok((said != ALLOWED).then_some(said))
}

const ALLOWED: &str = "allowed";

/// What each of the two does.
pub(super) fn as_rank() -> Result<(), String> {
    let failed = |error: phalanx::Error| error.to_string();
    let world = Communicator::world().map_err(failed)?;
    // The first time both have tried, after it both know.
    let _ = world.reaching();
    world.barrier().map_err(failed)?;
    let found = match world.reaching() {
        Reaching::Allowed => ALLOWED.to_owned(),
        Reaching::Refused(why) => why.to_owned(),
        Reaching::Unwanted => "PHALANX_CMA=never".to_owned(),
        Reaching::Unsettled => "the ranks did not find out".to_owned(),
    };
    if world.rank() == 0 {
        super::out::say(&format!("{found}\n"))?;
    }
    // Who leaves early is no longer there to be read.
    world.barrier().map_err(failed)
}
