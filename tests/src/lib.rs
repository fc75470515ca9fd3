//! What the tests across crates share.

#![forbid(unsafe_code)]

pub mod bits;
#[cfg(not(feature = "mpi"))]
pub mod block_call;
#[cfg(not(feature = "mpi"))]
pub mod block_sweep;
pub mod call;
pub mod cases;
pub mod command;
pub mod folding;
pub mod footprint;
mod known;
pub mod library;
pub mod mark;
pub mod mix;
pub mod settings;
pub mod sweep;
pub mod watchdog;

pub use phalanx_oracle::{random, sample};

/// The communicator under test: across nodes with feature `mpi`, of one machine otherwise.
#[cfg(feature = "mpi")]
pub use hier::HierComm as Communicator;
#[cfg(feature = "mpi")]
pub use hier::across::Error;
#[cfg(not(feature = "mpi"))]
pub use hier::{Communicator, Error};

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The command `phalanx`, built in the profile of the test that asks and in its target folder.
///
/// # Panics
///
/// When it does not build.
pub fn phalanx_command() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let test = std::env::current_exe().expect("a test knows its own path");
        let profile = test.parent().and_then(Path::parent).expect("a test lies in TARGET/PROFILE/deps");
        let release = profile.file_name().is_some_and(|name| name == "release");
        // Always asked of cargo, which has nothing to do when the command is there: an old one would be tested else.
        // With the features of the whole workspace, examples among it, or all that the command is made of would be
        // built once more.
        let status = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--workspace", "--bin", "phalanx", "--example", "hello"])
            .args(["--profile", if release { "bench" } else { "test" }])
            .arg("--target-dir")
            .arg(profile.parent().expect("a profile has its folder in the target folder"))
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace is around this package"))
            .status()
            .expect("cargo starts");
        assert!(status.success(), "the command does not build: {status}");
        profile.join("phalanx")
    })
}
