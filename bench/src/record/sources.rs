//! The mark of the sources that a program is built of, so that a record can tell whether they are those of the commit
//! that it names. The build script takes it when the program is built, the program when it measures.

use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::path::{Path, PathBuf};

/// What the benchmark is built of, in the repository.
pub const PARTS: [&str; 12] = [
    "Cargo.lock",
    "Cargo.toml",
    "shm-core/Cargo.toml",
    "shm-core/src",
    "topo/Cargo.toml",
    "topo/src",
    "hier/Cargo.toml",
    "hier/src",
    "bench/Cargo.toml",
    "bench/build.rs",
    "bench/baseline",
    "bench/src",
];

/// The mark of the sources and the manifests of `repository` that the benchmark is built of, and the program of the
/// baselines that it has within: it is another one where a file differs, or there are others.
///
/// # Errors
/// When they cannot be read.
pub fn mark(repository: &Path) -> io::Result<String> {
    let mut files = Vec::new();
    for part in PARTS {
        collect(&repository.join(part), &mut files)?;
    }
    let mut hasher = DefaultHasher::new();
    for file in files {
        let name = file.strip_prefix(repository).unwrap_or(&file);
        hasher.write(name.as_os_str().as_encoded_bytes());
        // No name has this byte, and no text has it.
        hasher.write_u8(0xff);
        hasher.write(&fs::read(&file)?);
        hasher.write_u8(0xff);
    }
    Ok(format!("{:016x}", hasher.finish()))
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
