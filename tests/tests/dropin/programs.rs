//! The programs of the suite, compiled for an MPI.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::job::Done;
use phalanx_tests::library::{self, Family, Library, root, target};

/// A program of the suite.
#[derive(Debug)]
pub struct Program {
    pub name: &'static str,
    pub words: &'static [&'static str],
    /// The fewest ranks that it makes sense on.
    pub least: usize,
    /// Collectives of which some calls must have been taken over, on two ranks and more.
    taken: &'static [&'static str],
    /// More of them.
    more: &'static [&'static str],
    /// The least share of all calls, in percent: what is left are calls of no bytes, on single ranks, with wrong
    /// arguments.
    share: f64,
}

const ALL: &[&str] = &["barrier", "bcast", "reduce", "allreduce"];

const FAMILY: &[&str] = &[
    "allgather",
    "allgatherv",
    "alltoall",
    "alltoallv",
    "gather",
    "gatherv",
    "scatter",
    "scatterv",
    "scan",
    "exscan",
    "reduce_scatter",
    "reduce_scatter_block",
];

const fn program(name: &'static str, share: f64) -> Program {
    Program { name, words: &[], least: 1, taken: ALL, more: &[], share }
}

/// Those in C. What they are for, each says itself.
pub const C: &[Program] = &[
    program("basics", 90.0),
    program("types", 80.0),
    program("communicators", 40.0),
    Program { words: &["200"], taken: &["bcast", "allreduce"], ..program("churn", 30.0) },
    Program { taken: &["reduce", "allreduce", "reduce_scatter"], ..program("operators", 75.0) },
    Program { taken: &["bcast"], ..program("derived", 80.0) },
    Program {
        taken: &["reduce", "allreduce"],
        more: &["scan", "exscan", "reduce_scatter_block"],
        ..program("gaps", 80.0)
    },
    Program {
        taken: &["reduce", "allreduce"],
        more: &["scan", "exscan", "reduce_scatter_block"],
        ..program("aligned", 60.0)
    },
    Program { taken: &["reduce", "allreduce"], more: &["scan", "exscan", "reduce_scatter"], ..program("start", 60.0) },
    Program { taken: &["allreduce"], ..program("nonfinite", 80.0) },
    program("errors", 10.0),
    // On two ranks there is nothing but single ranks and what lies between them.
    Program { least: 2, taken: &["barrier"], ..program("intercommunicators", 1.0) },
    program("interleaved", 90.0),
    program("nonblocking", 80.0),
    // Open MPI 4 has no window of the program's memory on one rank.
    Program { least: 2, ..program("onesided", 80.0) },
    program("isolation", 70.0),
    Program { words: &["24"], ..program("threads", 60.0) },
    Program { taken: &["bcast", "reduce", "allreduce"], ..program("allocated", 80.0) },
    program("attributes", 60.0),
    Program { taken: &["barrier", "allreduce"], ..program("dying", 20.0) },
    Program { taken: &["bcast", "reduce", "allreduce"], ..program("large", 0.0) },
    program("others", 40.0),
    Program { words: &["360"], taken: FAMILY, ..program("family", 40.0) },
    Program { taken: &["barrier", "bcast", "reduce"], ..program("profiled", 60.0) },
    program("sessions", 0.0),
    Program { words: &["pending"], ..program("ends", 40.0) },
    Program { words: &["late"], ..program("ends", 60.0) },
    Program { words: &["fork"], ..program("ends", 60.0) },
    Program { words: &["atexit"], ..program("ends", 40.0) },
];

/// Those that are run with MPI 5's standard ABI, where it is not among the MPIs that are tested as a whole: those that
/// meet most of its handles and constants.
pub const ABI: &[&str] = &["types", "communicators", "derived", "errors"];

/// Those in Fortran.
pub const FORTRAN: &[Program] = &[
    Program { more: FAMILY, ..program("mpifh", 20.0) },
    Program { more: FAMILY, ..program("usempi", 60.0) },
    Program { more: FAMILY, ..program("usempif08", 40.0) },
];

impl Program {
    /// Looks at what the library counted.
    ///
    /// # Panics
    /// When it had too little part in the run.
    pub fn check_share(&self, done: &Done) {
        let stats = done.stats();
        // A program that is about what an MPI need not have may have made no calls.
        if stats.calls() + stats.handed() == 0 && self.share == 0.0 {
            return;
        }
        for collective in self.taken.iter().chain(self.more) {
            // Programs with nothing but the calls of their end count as such.
            let calls = stats.of(collective);
            let made = calls.calls + calls.handed;
            assert!(
                calls.calls > 0 || (self.share == 0.0 && made < 3 * 8),
                "{}: no {collective} was taken over: {stats:?}",
                self.name
            );
        }
        let share = 100.0 * stats.calls() as f64 / (stats.calls() + stats.handed()).max(1) as f64;
        assert!(share >= self.share, "{}: {share:.1} % were taken over, not {} %: {stats:?}", self.name, self.share);
    }
}

/// Whether programs in Fortran can be compiled.
pub fn speaks_fortran(library: Library) -> bool {
    library.command("mpif90").is_some() && Command::new("gfortran").arg("--version").output().is_ok()
}

/// Whether programs in C++ can be compiled.
pub fn speaks_cpp(library: Library) -> bool {
    library.command("mpicxx").is_some() && Command::new("g++").arg("--version").output().is_ok()
}

/// The folder of the programs for an MPI, compiled once. What is newer than its source is taken as it is.
///
/// # Panics
/// When one does not compile.
pub fn folder(library: Library) -> PathBuf {
    static COMPILED: Mutex<Vec<&str>> = Mutex::new(Vec::new());
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = target().join("dropin-suite").join(library.name);
    if !compiled.contains(&library.name) {
        let _turn = library::turn_to_build();
        std::fs::create_dir_all(&folder).expect("a folder in the target folder");
        let work = list(library, &folder);
        let next = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while let Some(one) = work.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
                        one.compile(library);
                    }
                });
            }
        });
        compiled.push(library.name);
    }
    folder
}

struct Compilation {
    compiler: PathBuf,
    options: &'static [&'static str],
    source: PathBuf,
    product: PathBuf,
}

fn list(library: Library, folder: &Path) -> Vec<Compilation> {
    let mpicc = library.command("mpicc").expect("it is here");
    let sources = root().join("tests/dropin");
    let mut work = Vec::new();
    let mut names: Vec<&str> = C
        .iter()
        .map(|program| program.name)
        .chain(["stress", "spawned", "revoked", "freed", "refused", "absent"])
        .collect();
    names.dedup();
    let mut add = |compiler: &Path, options, source: &str, product: &str| {
        let (source, product) = (sources.join(source), folder.join(product));
        work.push(Compilation { compiler: compiler.to_owned(), options, source, product });
    };
    let is_sample = library.has_standard_abi && !Library::all().contains(&library);
    for name in names.into_iter().filter(|name| !is_sample || ABI.contains(name)) {
        add(&mpicc, &["-lpthread", "-ldl"], &format!("{name}.c"), name);
    }
    if is_sample {
        return work;
    }
    add(&mpicc, &["-shared", "-fPIC"], "tool.c", "tool.so");
    add(&mpicc, &["-shared", "-fPIC", "-ldl"], "liar.c", "liar.so");
    add(&mpicc, &["-shared", "-fPIC", "-DMODULE"], "plugin.c", "plugin.so");
    add("cc".as_ref(), &["-ldl"], "plugin.c", "plugin");
    if speaks_cpp(library) {
        add(&library.command("mpicxx").expect("it is here"), &[], "throwing.cc", "throwing");
    }
    if speaks_fortran(library) {
        let mpif90 = library.command("mpif90").expect("it is here");
        // Fortran 77 gives buffers of any type to one procedure.
        add(&mpif90, &["-fallow-argument-mismatch"], "mpifh.f", "mpifh");
        add(&mpif90, &[], "usempi.f90", "usempi");
        add(&mpif90, &[], "usempif08.f90", "usempif08");
    }
    work
}

impl Compilation {
    fn compile(&self, library: Library) {
        let time = |path: &Path| path.metadata().and_then(|about| about.modified()).ok();
        let header = root().join("tests/dropin/suite.h");
        let newest = time(&self.source).max(time(&header));
        if time(&self.product).is_some_and(|made| Some(made) > newest) {
            return;
        }
        // Whole or not at all: one that was half made would be newer than its source, too.
        let made = PathBuf::from(format!("{}.new", self.product.display()));
        let mut command = Command::new(&self.compiler);
        command.args(["-O1", "-w", "-o"]).arg(&made).arg(&self.source).args(self.options);
        library.set_root(&mut command);
        let done = command.output().unwrap_or_else(|error| panic!("{}: {error}", self.compiler.display()));
        assert!(done.status.success(), "{command:?}:\n{}", String::from_utf8_lossy(&done.stderr));
        let placed = std::fs::rename(&made, &self.product);
        placed.unwrap_or_else(|error| panic!("{} cannot be replaced: {error}", self.product.display()));
    }
}

/// The library to preload, built once; that of the folder in `PHALANX_TEST_DROPIN`, where that is set.
///
/// # Panics
/// When it does not build.
pub fn preloaded() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let given = std::env::var_os("PHALANX_TEST_DROPIN").filter(|folder| !folder.is_empty());
        let folder = given.map_or_else(build, PathBuf::from);
        folder.canonicalize().unwrap_or(folder).join("libphalanx_mpi.so")
    })
}

/// The core that programs of an MPI need.
fn core(library: Library) -> &'static str {
    match library.family {
        _ if library.has_standard_abi => "abi",
        Family::OpenMpi => "openmpi",
        _ => "mpich",
    }
}

fn build() -> PathBuf {
    let _turn = library::turn_to_build();
    let folder = target().join("dropin-debug");
    let mut build = phalanx_tests::command::bare(&root().join("scripts/dropin"));
    let here = Library::all().iter().copied().filter(|library| library.is_here());
    let mut cores: Vec<&str> = here.chain(Library::with_standard_abi()).map(core).collect();
    cores.dedup();
    build.args(["--debug", "--into"]).arg(&folder).args(cores).env("CARGO_TARGET_DIR", target());
    let done = build.output().expect("scripts/dropin starts");
    assert!(done.status.success(), "the library does not build:\n{}", String::from_utf8_lossy(&done.stderr));
    folder
}
