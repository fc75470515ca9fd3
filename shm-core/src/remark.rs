//! What a library says on standard error.

use std::fmt;
use std::io::Write;

/// Says something on standard error, in one piece, and goes on if nobody listens there: what is said in the midst of a
/// call must not end it.
pub fn remark(text: fmt::Arguments<'_>) {
    // A remark that cannot be written is dropped.
    let _ = std::io::stderr().write_all(format!("phalanx: {text}\n").as_bytes());
}
