//! What the command says on standard output, and, of how far it is, on standard error.

use std::fmt;
use std::io::{self, Write};

/// Writes all of `text`; else why it cannot be. A reader that has seen enough (`| head`) is no error.
pub(super) fn say(text: &str) -> Result<(), String> {
    let mut out = io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(format!("cannot write: {error}")),
        _ => Ok(()),
    }
}

/// Says how far something is, a line on standard error, in one piece, as a [`remark`](hier::remark) is said: what cannot be
/// written ends nothing.
pub(super) fn tell(line: fmt::Arguments<'_>) {
    let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
}
