//! What the command says on standard output.

use std::fmt;
use std::io::{self, Write};

use crate::error::{Error, Result};

/// Writes a text, as `print!` does.
///
/// # Errors
///
/// [`Error::Unwritten`], which says nothing further where only the reader has left.
pub fn show(text: impl fmt::Display) -> Result<()> {
    let mut out = io::stdout().lock();
    write!(out, "{text}").and_then(|()| out.flush()).map_err(Error::Unwritten)
}

/// Writes a line, as `println!` does: what cannot be written is the error of [`show`] instead of a panic.
macro_rules! say {
    ($format:literal $($arguments:tt)*) => {
        $crate::out::show(format_args!("{}\n", format_args!($format $($arguments)*)))
    };
}
pub(crate) use say;
