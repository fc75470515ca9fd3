//! The MPIs of this machine, and the programs that are built for each.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use phalanx_tests::command;

/// The variable that makes a missing MPI a failure: `PHALANX_TEST_MPI=required`.
const REQUIRED: &str = "PHALANX_TEST_MPI";

/// An MPI, by the end of its commands' names (`mpirun.openmpi`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    OpenMpi,
    Mpich,
}

impl Library {
    pub const ALL: [Self; 2] = [Self::OpenMpi, Self::Mpich];

    /// As its commands and its target folder are named.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenMpi => "openmpi",
            Self::Mpich => "mpich",
        }
    }

    fn packages(self) -> &'static str {
        match self {
            Self::OpenMpi => "openmpi-bin libopenmpi-dev",
            Self::Mpich => "mpich libmpich-dev",
        }
    }

    /// The path of one of its commands, where it is installed.
    fn command(self, name: &str) -> Option<PathBuf> {
        find(&format!("{name}.{}", self.name()))
    }

    /// Whether it can be tested here; says why not.
    ///
    /// # Panics
    /// When it cannot, and `PHALANX_TEST_MPI=required`.
    pub fn is_here(self) -> bool {
        let missing = ["mpirun", "mpicc"].into_iter().find(|name| self.command(name).is_none());
        let Some(missing) = missing else { return true };
        let (name, packages) = (self.name(), self.packages());
        skip(REQUIRED, &format!("{missing}.{name} is missing: apt-get install --no-install-recommends {packages}"));
        false
    }

    /// The folder of the programs for this MPI, built for it once. Each MPI has a target folder of its own within the
    /// target folder of this test, since rsmpi is not built anew when the compiler's name changes.
    ///
    /// # Panics
    /// When they do not build.
    pub fn programs(self) -> &'static Path {
        static BUILT: [OnceLock<PathBuf>; 2] = [const { OnceLock::new() }; 2];
        BUILT[self as usize].get_or_init(|| {
            let folder = target().join(format!("mpi-{}", self.name()));
            let built = Command::new(env!("CARGO"))
                .args(["build", "--quiet", "--package", "phalanx", "--package", "phalanx-tests"])
                .args(["--features", "phalanx/mpi,phalanx-tests/mpi"])
                .args(["--bin", "mpi_rank", "--example", "digits", "--example", "cg"])
                .arg("--target-dir")
                .arg(&folder)
                .env("MPICC", format!("mpicc.{}", self.name()))
                // They are built for these tests alone; without lines for debuggers in half of the time.
                .env("CARGO_PROFILE_DEV_DEBUG", "0")
                .current_dir(root())
                .output()
                .expect("cargo starts");
            let errors = String::from_utf8_lossy(&built.stderr);
            let hint = match errors.contains("libclang") {
                true => "\nrsmpi wants libclang: apt-get install --no-install-recommends libclang1-14 libclang-common-14-dev",
                false => "",
            };
            assert!(built.status.success(), "the programs for {self:?} do not build:\n{errors}{hint}");
            folder.join("debug")
        })
    }

    /// Its mpirun on this machine, as a test wants it: also for root, for more ranks than cores, with ranks bound nowhere.
    pub fn mpirun(self) -> Command {
        let mut mpirun = command::bare(&self.command("mpirun").expect("it is here"));
        if self == Self::OpenMpi {
            mpirun.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
            mpirun.args(["--oversubscribe", "--bind-to", "none"]);
        }
        mpirun
    }
}

/// The path of a command, where it is installed.
pub fn find(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let sbin = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&folders).chain(sbin).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// Says that something is skipped, past the capture of output; a failure where `variable` is `required`.
pub fn skip(variable: &str, why: &str) {
    use std::io::Write;
    assert!(!std::env::var(variable).is_ok_and(|value| value == "required"), "{variable}=required, but {why}");
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let _ = writeln!(std::io::stderr(), "skipped: {test}: {why}");
}

/// The target folder of this test.
pub fn target() -> &'static Path {
    static TARGET: OnceLock<PathBuf> = OnceLock::new();
    TARGET.get_or_init(|| {
        let test = std::env::current_exe().expect("a test knows its own path");
        test.ancestors().nth(3).expect("a test lies in TARGET/PROFILE/deps").to_owned()
    })
}

/// The root of the project.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace is around this package")
}
