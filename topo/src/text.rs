//! Files that people write.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;

/// The most bytes of such a file: the switches of a million hosts take fewer.
const MOST: u64 = 16 << 20;

/// The text of a file that people write: of switches, or a table of choices.
///
/// # Errors
///
/// Those of reading; and more than 16 MiB, as of `/dev/zero`, which has no end, are refused.
pub fn read_text(path: impl AsRef<Path>) -> Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MOST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST {
        return Err(Error::new(ErrorKind::InvalidData, "it has more than 16 MiB: is it the file that was meant?"));
    }
    String::from_utf8(bytes).map_err(|error| Error::new(ErrorKind::InvalidData, error))
}
