//! The program of ranks, built for an MPI.
//!
//! The bindings of MPI are made for one library, and cargo does not see that `MPICC` has changed: each library has a
//! target folder of its own, `target/mpi-openmpi` and `target/mpi-mpich`.

use std::env;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;

use crate::error::{Error, Result};

/// An MPI library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// Open MPI.
    OpenMpi,
    /// MPICH.
    Mpich,
}

impl Library {
    /// The name, as the cluster's script has it.
    pub fn name(self) -> &'static str {
        match self {
            Library::OpenMpi => "openmpi",
            Library::Mpich => "mpich",
        }
    }

    /// What has to be installed.
    fn packages(self) -> &'static str {
        match self {
            Library::OpenMpi => "openmpi-bin libopenmpi-dev",
            Library::Mpich => "mpich libmpich-dev",
        }
    }

    /// The launcher: `mpirun.openmpi`, or else the `mpirun` in the path.
    ///
    /// # Errors
    ///
    /// [`Error::BaselineMissing`] with what to install.
    pub fn launcher(self) -> Result<String> {
        let found = [format!("mpirun.{}", self.name()), "mpirun".into()].into_iter().find(|name| in_path(name));
        found.ok_or_else(|| {
            let packages = self.packages();
            Error::BaselineMissing(format!(
                "no mpirun of {self}: apt-get install -y --no-install-recommends {packages}"
            ))
        })
    }

    /// The compiler wrapper: `mpicc.openmpi`, or else the `mpicc` in the path.
    fn compiler(self) -> Option<String> {
        [format!("mpicc.{}", self.name()), "mpicc".into()].into_iter().find(|name| in_path(name))
    }
}

impl fmt::Display for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Library {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Library, String> {
        let all = [Library::OpenMpi, Library::Mpich];
        all.into_iter()
            .find(|library| library.name() == text)
            .ok_or_else(|| format!("{text:?} is no MPI: openmpi, mpich"))
    }
}

fn in_path(name: &str) -> bool {
    env::var_os("PATH").is_some_and(|path| env::split_paths(&path).any(|folder| folder.join(name).is_file()))
}

/// The folder of the repository that this program was built from.
pub fn repository() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package).into()
}

/// The target folder: cargo's, or that of the repository.
pub fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| repository().join("target"), PathBuf::from)
}

/// The program for a library: cargo builds what is missing or stale.
///
/// # Errors
///
/// [`Error::BaselineMissing`] without the library's compiler wrapper, and where cargo fails, with what it said;
/// [`Error::System`] without cargo.
pub fn build(library: Library) -> Result<PathBuf> {
    let compiler = library.compiler().ok_or_else(|| {
        Error::BaselineMissing(format!(
            "no mpicc of {library}: apt-get install -y --no-install-recommends {} libclang1-14 libclang-common-14-dev",
            library.packages()
        ))
    })?;
    let folder = target().join(format!("mpi-{library}"));
    eprintln!(
        "the program of ranks for {library}: cargo build --release -p bench --features mpi, into {}",
        folder.display()
    );
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "--release", "--quiet", "-p", "bench", "--bin", "bench", "--features", "mpi"])
        .current_dir(repository())
        .env("MPICC", &compiler)
        .env("CARGO_TARGET_DIR", &folder)
        .output()
        .map_err(Error::system("cargo, which builds the program of ranks (--program PATH names one that is built)"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Error::BaselineMissing(format!(
            "cargo could not build the program of ranks with MPICC={compiler}; it said:\n{said}"
        )));
    }
    Ok(folder.join("release/bench"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_have_names() {
        assert_eq!("mpich".parse(), Ok(Library::Mpich));
        assert_eq!(Library::OpenMpi.to_string().parse(), Ok(Library::OpenMpi));
        assert!("intel".parse::<Library>().unwrap_err().contains("openmpi, mpich"));
    }

    #[test]
    fn the_repository_has_the_script() {
        assert!(repository().join("scripts/cluster/run").is_file());
    }
}
