//! What the command says on standard output.

use std::io::{self, Write};

/// Writes all of `text`; else why it cannot be. A reader that has seen enough (`| head`) is no error.
pub(super) fn say(text: &str) -> Result<(), String> {
    let mut out = io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(format!("cannot write: {error}")),
        _ => Ok(()),
    }
}
