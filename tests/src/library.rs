//! The MPIs of this machine, and the programs that are built for each: programs of the tests and of the benchmark,
//! which need the feature `mpi`.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::command;

/// The variable that makes a missing MPI a failure: `PHALANX_TEST_MPI=required`.
const REQUIRED: &str = "PHALANX_TEST_MPI";
/// The variable that says which MPIs are tested: `openmpi,mpich,openmpi5=/opt/openmpi5/bin`. The first two are those of
/// Debian, whose commands end in their names; others are given with the folder of their commands. A name that ends in
/// `-abi` (`mpich5-abi=FOLDER`) has the programs of the drop-in's suite linked with that MPI's library of the standard
/// ABI.
const CHOSEN: &str = "PHALANX_TEST_MPIS";

/// Whose launcher and library it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Open MPI.
    OpenMpi,
    /// MPICH itself.
    Mpich,
    /// Intel MPI, which has MPICH's interface.
    Intel,
}

/// An MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Library {
    /// As its target folder is named.
    pub name: &'static str,
    /// Whose it is.
    pub family: Family,
    /// Where its commands are; those of Debian have its name at the end.
    folder: Option<&'static Path>,
    /// Programs are compiled for MPI 5's standard ABI.
    pub has_standard_abi: bool,
}

impl Library {
    const DEBIAN: [Self; 2] = [
        Self { name: "openmpi", family: Family::OpenMpi, folder: None, has_standard_abi: false },
        Self { name: "mpich", family: Family::Mpich, folder: None, has_standard_abi: false },
    ];

    /// All that are to be tested.
    ///
    /// # Panics
    /// When one is given that cannot be.
    pub fn all() -> &'static [Self] {
        static ALL: OnceLock<Vec<Library>> = OnceLock::new();
        ALL.get_or_init(|| match std::env::var(CHOSEN) {
            Ok(chosen) if !chosen.is_empty() => chosen.split(',').map(Self::chosen).collect(),
            _ => Self::DEBIAN.to_vec(),
        })
    }

    fn chosen(word: &str) -> Self {
        if let Some(library) = Self::DEBIAN.into_iter().find(|library| library.name == word) {
            return library;
        }
        let (name, folder) =
            word.split_once('=').unwrap_or_else(|| panic!("{CHOSEN}: {word:?} is neither of Debian nor NAME=FOLDER"));
        let mpirun = Path::new(folder).join("mpirun");
        let said = Command::new(&mpirun).arg("--version").output();
        let said = said.unwrap_or_else(|error| panic!("{CHOSEN}: {}: {error}", mpirun.display())).stdout;
        let said = String::from_utf8_lossy(&said);
        let signs = [("Open MPI", Family::OpenMpi), ("Intel", Family::Intel), ("HYDRA", Family::Mpich)];
        let family = signs.into_iter().find(|(sign, _)| said.contains(sign));
        let (_, family) = family.unwrap_or_else(|| panic!("{CHOSEN}: {} is of no known MPI", mpirun.display()));
        let folder = Some(Path::new(folder.to_owned().leak()));
        Self { name: name.to_owned().leak(), family, folder, has_standard_abi: name.ends_with("-abi") }
    }

    /// MPICH 5, with programs for MPI 5's standard ABI, where `scripts/peers mpich5` has installed it.
    pub fn with_standard_abi() -> Option<Self> {
        static FOLDER: OnceLock<PathBuf> = OnceLock::new();
        let folder = FOLDER.get_or_init(|| root().join("target/peers/mpich5/bin"));
        let library = Self { name: "mpich5-abi", family: Family::Mpich, folder: Some(folder), has_standard_abi: true };
        ["mpirun", "mpicc"].into_iter().all(|name| library.command(name).is_some()).then_some(library)
    }

    /// What `scripts/cluster/run --mpi` takes.
    pub fn on_cluster(self) -> String {
        let family = if self.family == Family::OpenMpi { "openmpi" } else { "mpich" };
        self.folder.map_or(family.to_owned(), |folder| format!("{family}={}", folder.display()))
    }

    fn packages(self) -> &'static str {
        match self.family {
            Family::OpenMpi => "openmpi-bin libopenmpi-dev",
            _ => "mpich libmpich-dev",
        }
    }

    /// The path of one of its commands, where it is installed.
    pub fn command(self, name: &str) -> Option<PathBuf> {
        let name = if self.has_standard_abi && name == "mpicc" { "mpicc_abi" } else { name };
        match self.folder {
            Some(folder) => Some(folder.join(name)).filter(|path| path.is_file()),
            None => find(&format!("{name}.{}", self.name)),
        }
    }

    /// Whether it can be tested here; says why not.
    ///
    /// # Panics
    /// When it cannot, and `PHALANX_TEST_MPI=required`.
    pub fn is_here(self) -> bool {
        let missing = ["mpirun", "mpicc"].into_iter().find(|name| self.command(name).is_none());
        let Some(missing) = missing else { return true };
        let (name, packages) = (self.name, self.packages());
        skip(REQUIRED, &format!("{missing}.{name} is missing: apt-get install --no-install-recommends {packages}"));
        false
    }

    /// Whether it can go on without a rank that has failed: Open MPI from 5 on, unless it was built without.
    pub fn recovers(self) -> bool {
        if self.family != Family::OpenMpi {
            return false;
        }
        // The option is one of the launcher that has it.
        let mut mpirun = self.mpirun();
        let tried = mpirun.args(["--with-ft", "ulfm", "-n", "1", "true"]).output();
        tried.is_ok_and(|done| done.status.success())
    }

    /// The folder of the programs for this MPI, built for it once.
    ///
    /// # Panics
    /// When they do not build.
    pub fn programs(self) -> PathBuf {
        let examples = ["--example", "transport_mpi", "--example", "digits", "--example", "cg"];
        self.built(&[&["--bin", "mpi_rank", "--bin", "phalanx"], &examples[..]].concat())
    }

    /// The program `bench` for this MPI, whose `across-rank` is what `bench across` starts.
    ///
    /// # Panics
    /// When it does not build.
    pub fn bench(self) -> PathBuf {
        self.built(&["--bin", "bench"]).join("bench")
    }

    /// The folder of programs that cargo is told of by `programs`, built once.
    fn built(self, programs: &[&str]) -> PathBuf {
        static BUILT: Mutex<Vec<(&str, String)>> = Mutex::new(Vec::new());
        let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = target().join(format!("mpi-{}", self.name));
        let build = (self.name, programs.join(" "));
        if !built.contains(&build) {
            self.build(&folder, programs);
            built.push(build);
        }
        folder.join("debug")
    }

    /// What sets the builds for one MPI apart from those for another, though they share with all builds what does not
    /// know MPI: rsmpi's build script does not run anew when the compiler's name changes, but its package is another to
    /// cargo where its profile is. Of what is set there nothing depends on it, so small is the package.
    fn profile(self) -> String {
        let name = self.name.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        format!("profile.dev.package.mpi-sys.codegen-units={}", 1000 + name % 1_000_000)
    }

    fn build(self, folder: &Path, programs: &[&str]) {
        let mpicc = self.command("mpicc").expect("it is here");
        let mut build = command::bare(env!("CARGO").as_ref());
        // The same packages whatever is built: others would have other features of what they share, and that be built
        // again. With these it is what the tests of the whole workspace are built with, which is taken from their
        // folder. What knows MPI is compiled for each of them, unoptimised in a fraction of the time; it computes
        // little.
        build
            .args(["build", "--quiet", "--package", "phalanx", "--package", "phalanx-tests"])
            .args(["--package", "hier", "--package", "bench", "--features"])
            .arg("phalanx/mpi,phalanx-tests/mpi,hier/mpi,bench/mpi")
            .args(programs)
            .args(["--config", &self.profile()])
            .args(
                ["phalanx-tests", "hier", "bench"]
                    .map(|name| format!("--config=profile.dev.package.{name}.opt-level=0")),
            )
            .arg("--target-dir")
            .arg(folder)
            .env("CARGO_BUILD_BUILD_DIR", target())
            .env("MPICC", mpicc)
            .current_dir(root());
        if let Some(commands) = self.folder {
            // Which of several libraries of one name it loads.
            let library = commands.parent().unwrap_or(commands).join("lib");
            build.env("RUSTFLAGS", format!("-Clink-arg=-Wl,-rpath,{}", library.display()));
        }
        self.set_root(&mut build);
        let built = build.output().expect("cargo starts");
        let errors = String::from_utf8_lossy(&built.stderr);
        let hint = match errors.contains("libclang") {
            true => {
                "\nrsmpi wants libclang: apt-get install --no-install-recommends libclang1-14 libclang-common-14-dev"
            }
            false => "",
        };
        assert!(built.status.success(), "the programs for {self:?} do not build:\n{errors}{hint}");
    }

    /// Its mpirun on this machine, as a test wants it: also for root, for more ranks than cores, with ranks bound
    /// nowhere.
    pub fn mpirun(self) -> Command {
        let mut mpirun = command::bare(&self.command("mpirun").expect("it is here"));
        self.set_root(&mut mpirun);
        // Whoever starts them: processes of Open MPI that do not understand their launcher make such folders, too.
        mpirun.env("OMPI_MCA_orte_tmpdir_base", sessions());
        if self.family == Family::OpenMpi {
            mpirun.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
            mpirun.args(["--oversubscribe", "--bind-to", "none"]);
        }
        mpirun
    }

    /// Intel's commands ask where they are.
    pub fn set_root(self, command: &mut Command) {
        if let (Family::Intel, Some(commands)) = (self.family, self.folder) {
            command.env("I_MPI_ROOT", commands.parent().unwrap_or(commands));
        }
    }
}

/// Waits until no other process of tests builds what tests start by other means than cargo alone, which has locks of
/// its own, and keeps others from it.
///
/// # Panics
/// When there can be no such lock.
#[must_use]
pub fn turn_to_build() -> File {
    let path = target().join("tests-build.lock");
    let lock = File::create(&path).and_then(|file| file.lock().map(|()| file));
    lock.unwrap_or_else(|error| panic!("{} cannot be locked: {error}", path.display()))
}

/// The path of a command, where it is installed.
pub fn find(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let sbin = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&folders).chain(sbin).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// Says that something is skipped, past the capture of output; a failure where `variable` is `required`.
///
/// # Panics
/// Where it is.
pub fn skip(variable: &str, why: &str) {
    assert!(!std::env::var(variable).is_ok_and(|value| value == "required"), "{variable}=required, but {why}");
    say_skipped(why);
}

/// The same of what no installation brings: never a failure.
pub fn say_skipped(why: &str) {
    use std::io::Write;
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let _ = writeln!(std::io::stderr(), "skipped: {test}: {why}");
}

/// Where jobs of Open MPI 4 on this machine have their folders. Each makes the one of its host and user, if it is not
/// there, and takes it away again; of two that do so at once one fails. Here it is there, and stays.
fn sessions() -> &'static Path {
    static SESSIONS: OnceLock<PathBuf> = OnceLock::new();
    SESSIONS.get_or_init(|| {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("a host has a name");
        let user = std::fs::metadata("/proc/self").expect("a process sees itself").uid();
        let sessions = target().join("openmpi-sessions");
        let kept = sessions.join(format!("ompi.{}.{user}", host.trim())).join("kept");
        std::fs::create_dir_all(&kept).expect("a folder in the target folder");
        sessions
    })
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
