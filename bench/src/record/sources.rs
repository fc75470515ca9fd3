//! The mark of the sources that the benchmark is built of, so that a record can tell whether they are those of the
//! commit that it names. The build script takes it when the program is built, the program when it measures.

use std::io;
use std::path::Path;

#[path = "../../../shm-core/build/sources.rs"]
mod walk;

/// What the benchmark is built of, in the repository.
pub const PARTS: [&str; 13] = [
    "Cargo.lock",
    "Cargo.toml",
    "shm-core/Cargo.toml",
    "shm-core/build",
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
/// baselines that it has within.
///
/// # Errors
/// When they cannot be read.
pub fn mark(repository: &Path) -> io::Result<String> {
    Ok(format!("{:016x}", walk::mark(repository, &PARTS)?))
}
