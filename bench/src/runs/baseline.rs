//! Finding an MPI to compare with, and compiling our program for it.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;

use super::peers::{Family, PEERS, Peer, Setting, known};
use crate::error::{Error, Result};
use crate::plan::Case;
use crate::scratch::Scratch;

/// A program in C that is compiled for each MPI; its sources travel inside this one.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// What it is called.
    pub name: &'static str,
    /// The names of its files, and what is in them.
    pub sources: &'static [(&'static str, &'static str)],
    /// What it is linked with besides.
    pub libraries: &'static [&'static str],
}

/// The collectives as our own ranks measure them.
pub const COLLECTIVES: Program = Program {
    name: "collectives",
    sources: &[
        ("collectives_job.h", include_str!("../../baseline/collectives_job.h")),
        ("collectives_gate.h", include_str!("../../baseline/collectives_gate.h")),
        ("collectives_case.h", include_str!("../../baseline/collectives_case.h")),
        ("collectives.c", include_str!("../../baseline/collectives.c")),
    ],
    libraries: &[],
};

/// An MPI as it is asked for on the command line: the name of a known one, or `NAME=FOLDER`; `all` stands for all known
/// ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The name in tables and plots.
    pub name: String,
    /// The folder of its `mpicc` and `mpirun`, where it is not in its usual place.
    pub folder: Option<PathBuf>,
}

/// The word for all known MPIs.
pub const ALL: &str = "all";

impl FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Wanted, String> {
        let (name, folder) = match text.split_once('=') {
            Some((name, folder)) => (name, Some(PathBuf::from(folder))),
            None => (text, None),
        };
        let is_known = folder.is_some() || name == ALL || known(name).is_some();
        if !is_known
            || name.is_empty()
            || name == super::ours::NAME
            || !name.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c))
        {
            return Err(format!(
                "'{text}' names no MPI: write openmpi, mpich, openmpi5, mpich5, impi, all, or NAME=FOLDER-OF-mpicc-AND-mpirun"
            ));
        }
        Ok(Wanted { name: name.into(), folder })
    }
}

/// An MPI that is here, with a program compiled for it.
#[derive(Clone, Debug)]
pub struct Baseline {
    /// The name in tables and plots.
    pub name: String,
    /// Whose launcher it is.
    pub family: Family,
    /// Its launcher.
    pub launcher: PathBuf,
    /// The program, compiled by its compiler.
    pub program: PathBuf,
    /// What its launcher says of its version.
    pub version: String,
    /// Further options for its launcher.
    pub options: Vec<String>,
    /// What its tools need to find themselves.
    pub environment: Vec<(&'static str, OsString)>,
}

/// A baseline with one of its settings: what one column of a table is about.
#[derive(Clone, Debug)]
pub struct Series {
    /// The MPI.
    pub baseline: Baseline,
    /// How it is run.
    pub setting: Setting,
}

impl Series {
    /// The name in tables and records: the baseline's, and the setting's behind a colon.
    pub fn name(&self) -> String {
        match self.setting.name {
            "" => self.baseline.name.clone(),
            setting => format!("{}:{setting}", self.baseline.name),
        }
    }

    /// Whether it measures `case`.
    pub fn takes(&self, case: &Case) -> bool {
        let has_bytes = case.bytes > 0 || !case.operation.has_bytes();
        case.bytes <= self.setting.most && (has_bytes || !self.setting.needs_bytes)
    }
}

/// Where MPIs are looked for.
#[derive(Clone, Copy, Debug)]
pub struct Places<'a> {
    /// The compiler wrapper, where it is given.
    pub compiler: Option<&'a Path>,
    /// The launcher, where it is given.
    pub launcher: Option<&'a Path>,
    /// The folder of `scripts/peers`.
    pub peers: &'a Path,
}

/// Finds and compiles all that are wanted. One that was asked for by name must be here; of `all`, those that are not
/// are told.
///
/// # Errors
///
/// Those of [`prepare`]; [`Error::BaselineMissing`] where `all` are none.
pub fn prepare_all(
    all: &[Wanted],
    places: &Places<'_>,
    program: Program,
    options: &[String],
    scratch: &Scratch,
) -> Result<Vec<Baseline>> {
    let prepare = |wanted: &Wanted| prepare(wanted, places, program, options, scratch);
    let named: Vec<&Wanted> = all.iter().filter(|wanted| wanted.name != ALL).collect();
    let mut found = Vec::new();
    for &wanted in &named {
        if found.iter().all(|other: &Baseline| other.name != wanted.name) {
            found.push(prepare(wanted)?);
        }
    }
    if named.len() < all.len() {
        for peer in PEERS.iter().filter(|peer| named.iter().all(|wanted| wanted.name != peer.name)) {
            match prepare(&Wanted { name: peer.name.into(), folder: None }) {
                Ok(baseline) => found.push(baseline),
                Err(error) => eprintln!("left out: {error}\n"),
            }
        }
        if found.is_empty() {
            return Err(Error::BaselineMissing("no MPI is on this machine: see above for how to get one".into()));
        }
    }
    Ok(found)
}

/// Finds the wanted MPI and compiles `program` for it.
///
/// # Errors
///
/// [`Error::BaselineMissing`] with the command that installs it, [`Error::BaselineCompile`].
pub fn prepare(
    wanted: &Wanted,
    places: &Places<'_>,
    program: Program,
    options: &[String],
    scratch: &Scratch,
) -> Result<Baseline> {
    let compilers = candidates(wanted, "mpicc", places.compiler, places.peers);
    let launchers = candidates(wanted, "mpirun", places.launcher, places.peers);
    let expected = known(&wanted.name).map(|peer| peer.family);
    let found = launchers.iter().find_map(|path| {
        let version = version(path)?;
        let family = Family::of_version(&version)?;
        (expected.is_none() || expected == Some(family)).then_some((path, family, version))
    });
    let Some((launcher, family, version)) = found else {
        return Err(missing(wanted, &launchers));
    };
    let environment = environment(family, launcher);
    let call = |tool: &Path| {
        let mut command = Command::new(tool);
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        command
    };
    let Some(compiler) = compilers.iter().find(|path| call(path).arg("--version").output().is_ok()) else {
        return Err(missing(wanted, &compilers));
    };
    let folder = scratch.fresh(&wanted.name)?;
    for (name, text) in program.sources {
        let source = folder.join(name);
        fs::write(&source, text).map_err(Error::file("cannot write", &source))?;
    }
    let compiled = program.sources.iter().map(|(name, _)| folder.join(name));
    let binary = folder.join(program.name);
    let output = call(compiler)
        .args(["-std=gnu11", "-O3", "-o"])
        .arg(&binary)
        .args(compiled.filter(|source| source.extension().is_some_and(|end| end == "c")))
        .args(program.libraries)
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
        program: binary,
        version,
        options: options.to_vec(),
        environment,
    })
}

/// What the tools beside `launcher` need to find themselves. Intel's ask the environment where they are, and its mpirun
/// takes the first mpiexec.hydra of the path, which on Debian is MPICH's.
fn environment(family: Family, launcher: &Path) -> Vec<(&'static str, OsString)> {
    let Some(folder) = launcher.parent().filter(|folder| !folder.as_os_str().is_empty()) else {
        return Vec::new();
    };
    let paths = env::var_os("PATH").unwrap_or_default();
    let mut all = vec![folder.to_path_buf()];
    all.extend(env::split_paths(&paths));
    let mut environment: Vec<_> = env::join_paths(all).map(|joined| ("PATH", joined)).into_iter().collect();
    if let (Family::Intel, Some(root)) = (family, folder.parent()) {
        environment.push(("I_MPI_ROOT", root.into()));
        environment.push(("LD_LIBRARY_PATH", root.join("lib").into()));
    }
    environment
}

/// The places where `tool` of the wanted MPI may be, the likeliest first.
fn candidates(wanted: &Wanted, tool: &str, given: Option<&Path>, peers: &Path) -> Vec<PathBuf> {
    match (given, &wanted.folder, known(&wanted.name)) {
        (Some(path), _, _) => vec![path.into()],
        (None, Some(folder), _) => vec![absolute(folder).join(tool)],
        (None, None, Some(Peer { packages: None, name, .. })) => {
            vec![absolute(peers).join(name).join("bin").join(tool)]
        }
        // Debian keeps several MPIs side by side under these names; elsewhere the plain name may be the one.
        (None, None, _) => vec![format!("{tool}.{}", wanted.name).into(), tool.into()],
    }
}

/// A path that holds in other folders too.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.into())
}

/// The first line of what `launcher --version` prints, with more of it where that line says too little.
fn version(launcher: &Path) -> Option<String> {
    // Intel's needs its environment; the others do not mind it.
    let output = Command::new(launcher).arg("--version").envs(environment(Family::Intel, launcher)).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).take(2).collect();
    Some(lines.join("; "))
}

fn missing(wanted: &Wanted, tried: &[PathBuf]) -> Error {
    let name = &wanted.name;
    let tried: Vec<_> = tried.iter().map(|path| path.display().to_string()).collect();
    let tried = tried.join(", ");
    Error::BaselineMissing(match known(name) {
        Some(Peer { packages: None, .. }) => format!(
            "the baseline '{name}' is not on this machine (tried {tried}).\n\
             To get it:\n  \
             scripts/peers {name}\n\
             Elsewhere: --baseline {name}=FOLDER-OF-mpicc-AND-mpirun, or --peers FOLDER-OF-scripts/peers"
        ),
        peer => format!(
            "the baseline '{name}' is not on this machine (tried {tried}).\n\
             To get one:\n  \
             Debian, Ubuntu:   apt-get install -y --no-install-recommends {}\n  \
             from PyPI:        scripts/peers, then --baseline openmpi5, mpich5 or impi\n  \
             any other:        --baseline NAME --mpicc PATH --mpirun PATH",
            peer.and_then(|peer| peer.packages).unwrap_or("openmpi-bin libopenmpi-dev")
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_folders_are_read() {
        assert_eq!("openmpi".parse(), Ok(Wanted { name: "openmpi".into(), folder: None }));
        let wanted: Wanted = "mpich5=/opt/v/bin".parse().unwrap();
        assert_eq!(candidates(&wanted, "mpicc", None, Path::new("/p")), [PathBuf::from("/opt/v/bin/mpicc")]);
        let wanted: Wanted = "impi".parse().unwrap();
        assert_eq!(candidates(&wanted, "mpirun", None, Path::new("/p")), [PathBuf::from("/p/impi/bin/mpirun")]);
        assert!("other=/opt/o/bin".parse::<Wanted>().is_ok());
        // A slip of the pen is no MPI that happens to be on the path.
        for text in ["", "=x", "a b", "phalanx", "openmpi_5", "other"] {
            assert!(text.parse::<Wanted>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_missing_mpi_says_how_to_get_it_and_ends_with_status_2() {
        let wanted: Wanted = "mpich=/nowhere".parse().unwrap();
        let places = Places { compiler: None, launcher: None, peers: Path::new("/nowhere") };
        let error = prepare(&wanted, &places, COLLECTIVES, &[], &Scratch::new().unwrap()).unwrap_err();
        assert_eq!(error.status(), 2);
        assert!(error.to_string().contains("apt-get install -y --no-install-recommends mpich libmpich-dev"), "{error}");
        let error = prepare(&"impi".parse().unwrap(), &places, COLLECTIVES, &[], &Scratch::new().unwrap()).unwrap_err();
        assert!(error.to_string().contains("scripts/peers impi"), "{error}");
    }

    #[test]
    fn tools_with_a_folder_come_first_in_the_path() {
        let environment = environment(Family::Intel, Path::new("/p/impi/bin/mpirun"));
        let value = |wanted: &str| environment.iter().find(|(name, _)| *name == wanted).unwrap().1.to_string_lossy();
        assert!(value("PATH").starts_with("/p/impi/bin"));
        assert_eq!((value("I_MPI_ROOT"), value("LD_LIBRARY_PATH")), ("/p/impi".into(), "/p/impi/lib".into()));
        assert!(super::environment(Family::OpenMpi, Path::new("mpirun.openmpi")).is_empty());
    }
}
