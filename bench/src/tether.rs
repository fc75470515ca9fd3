//! Children that end with their parent.

use std::os::unix::process::{CommandExt, parent_id};
use std::path::PathBuf;
use std::process::Command;

use nix::sys::prctl;
use nix::sys::signal::Signal;

use crate::error::{Error, Result};

/// Asks the kernel to send `signal` to this process when its parent ends, and looks afterwards
/// whether that parent, `parent`, is still there: it may have ended before the request.
///
/// The request belongs to the *thread* of the parent that started this process, so the parent
/// starts its children from a thread that outlives them.
pub fn tie_to(parent: u32, signal: Signal) -> Result<()> {
    prctl::set_pdeathsig(Some(signal)).map_err(Error::system("PR_SET_PDEATHSIG"))?;
    if parent_id() != parent {
        return Err(Error::Usage(format!(
            "the process {parent} that started this one has ended (parent is {})",
            parent_id()
        )));
    }
    Ok(())
}

/// Becomes `program`, tied to `parent`: the tie outlives the change of program, so a foreign
/// launcher gets its SIGTERM when the benchmark is killed. Returns only when that fails.
pub fn become_program(parent: u32, program: &[PathBuf]) -> Result<std::convert::Infallible> {
    tie_to(parent, Signal::SIGTERM)?;
    let (name, arguments) = program.split_first().ok_or_else(|| Error::Usage("no program to start".into()))?;
    let source = Command::new(name).args(arguments).exec();
    Err(Error::System { what: format!("start {}", name.display()), source })
}
