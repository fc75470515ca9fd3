//! The mark of the sources that a program is built of: taken by build scripts, and by the benchmark, which compares.

use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::path::{Path, PathBuf};

/// The mark of what `parts` of `root`, files and folders, hold for the compiler: it is another one where a file differs
/// or has another name, or where there are others.
///
/// # Errors
/// When they cannot be read.
pub fn mark(root: &Path, parts: &[&str]) -> io::Result<u64> {
    let mut files = Vec::new();
    for part in parts {
        collect(&root.join(part), &mut files)?;
    }
    let mut hasher = DefaultHasher::new();
    for file in files {
        let name = file.strip_prefix(root).unwrap_or(&file);
        hasher.write(name.as_os_str().as_encoded_bytes());
        // No name has this byte, and no text has it.
        hasher.write_u8(0xff);
        hasher.write(&fs::read(&file)?);
        hasher.write_u8(0xff);
    }
    Ok(hasher.finish())
}

/// Adds the files at `place` that are compiled, in the order of their names.
fn collect(place: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    // What editors leave.
    if place.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b".")) {
        return Ok(());
    }
    if place.is_dir() {
        let mut entries: Vec<PathBuf> =
            fs::read_dir(place)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
        entries.sort();
        return entries.iter().try_for_each(|entry| collect(entry, files));
    }
    if place.extension().is_some_and(|ending| ["rs", "toml", "lock", "c"].iter().any(|compiled| ending == *compiled)) {
        files.push(place.to_owned());
    }
    Ok(())
}
