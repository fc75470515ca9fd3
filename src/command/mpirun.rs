//! `phalanx mpirun`: an MPI program on Phalanx, as it is.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::{Args, ValueEnum};
use hier::launch::check_program;
use hier::remark;

use super::out::say;

/// Start an MPI program, as it is, with its collectives carried out by Phalanx
///
/// Finds the MPI that the program is linked with and that MPI's mpirun, and has the drop-in library loaded into the
/// ranks. The program, its build and its environment stay as they are.
#[derive(Debug, Args)]
#[command(after_help = AFTER, after_long_help = AFTER_LONG)]
pub struct Mpirun {
    /// How many ranks
    #[arg(short = 'n', long = "ranks", value_name = "N", value_parser = ranks)]
    ranks: Option<u32>,

    /// Whose mpirun starts the ranks, where the program does not tell (scripts, interpreters)
    #[arg(long, value_enum)]
    mpi: Option<Mpi>,

    /// The mpirun, if it is not the one beside the program's MPI or on the PATH
    #[arg(long, value_name = "PATH")]
    launcher: Option<PathBuf>,

    /// Print the command instead of executing it
    #[arg(long)]
    show: bool,

    /// Options of mpirun's own, then `--`, then the program and its arguments
    #[arg(required = true, num_args = 1.., allow_hyphen_values = true, trailing_var_arg = true, value_name = "ARGS")]
    rest: Vec<OsString>,
}

const AFTER: &str = "\
Examples:
  phalanx mpirun -n 4 -- ./program --its-own options
  phalanx mpirun -n 4 --oversubscribe --bind-to core -- ./program
  phalanx mpirun --mpi mpich -n 4 -- python3 script.py

`phalanx mpirun --help` tells more: variables, and where libraries are looked for.";

const AFTER_LONG: &str = "\
Examples:
  phalanx mpirun -n 4 -- ./program --its-own options
  phalanx mpirun -n 4 --oversubscribe --bind-to core -- ./program
  phalanx mpirun --mpi mpich -n 4 -- python3 script.py
  PHALANX_STATS=1 phalanx mpirun -n 4 -- ./program

Options that this command does not know go to mpirun, untouched; the program follows behind `--`.

Without this command the same is
  Open MPI           mpirun -x LD_PRELOAD=/path/to/libphalanx_mpi.so -n 4 ./program
  MPICH, Intel MPI   mpirun -env LD_PRELOAD /path/to/libphalanx_mpi.so -n 4 ./program

The library, libphalanx_mpi.so, is looked for in the folders of PHALANX_LIBRARY_PATH, where scripts/dropin puts it (../dropin from this
command), beside this command, and in ../lib from there.

Environment:
  PHALANX_STATS    1: a table of all calls at the end; a file that ends in .json or .csv: there
  PHALANX_DISABLE  collectives that are left to the MPI beneath, parted by commas: barrier, bcast, reduce,
                   allreduce, allgather, allgatherv, alltoall, alltoallv, gather, gatherv, scatter,
                   scatterv, scan, exscan, reduce_scatter, reduce_scatter_block; or all
  PHALANX_TAKE     gains: calls with which two ranks gained where that was measured; of more ranks, on one node,
                   all [default]; all: all that can be taken over
  PHALANX_AFTER    a communicator is taken over with its N-th collective [32; 1000 where ranks
                   outnumber cores]; the world with its first
  PHALANX_VERIFY   1: every result is compared with that of the MPI beneath
and those of `phalanx run --help`. dropin/README.md explains them.";

/// An MPI, by whose launcher it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mpi {
    /// Open MPI 4 or 5
    Openmpi,
    /// MPICH 4 or 5, MVAPICH
    Mpich,
    /// Intel MPI
    Intel,
}

impl Mpirun {
    pub fn run(self) -> ExitCode {
        match self.command() {
            Ok(command) if self.show => match say(&format!("{}\n", shown(&command))) {
                Ok(()) => ExitCode::SUCCESS,
                Err(why) => {
                    remark(format_args!("{why}"));
                    ExitCode::FAILURE
                }
            },
            Ok(mut command) => {
                let error = command.exec();
                remark(format_args!("{}: {error}; name another with --launcher PATH", command.get_program().display()));
                ExitCode::from(126)
            }
            Err((why, status)) => {
                remark(format_args!("{why}"));
                ExitCode::from(status)
            }
        }
    }

    /// The command that starts the ranks; else why there is none, and the exit status.
    fn command(&self) -> Result<Command, (String, u8)> {
        let (options, program) = divide(&self.rest).map_err(|why| (why, 125))?;
        if self.mpi.is_none() {
            check_program(&program[0]).map_err(|error| (error.to_string(), error.status()))?;
        }
        let linked = linked_with(&program[0]);
        let mpi = self.mpi.or(linked.as_ref().map(|linked| linked.mpi)).ok_or_else(|| {
            let shown = program[0].display();
            let why = format!(
                "{shown} is not linked with an MPI that Phalanx knows; say whose mpirun to use: --mpi openmpi, mpich or intel"
            );
            (why, 125)
        })?;
        self.command_of(mpi, linked.as_ref(), options, program).map_err(|why| (why, 125))
    }

    fn command_of(
        &self,
        mpi: Mpi,
        linked: Option<&Linked>,
        options: &[OsString],
        program: &[OsString],
    ) -> Result<Command, String> {
        let library = library()?;
        let launcher = match &self.launcher {
            Some(path) => path.clone(),
            None => launcher(mpi, linked)?,
        };
        let mut preload = library.into_os_string();
        // What the user has preloaded stays.
        if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
            preload.push(":");
            preload.push(others);
        }
        let mut command = Command::new(launcher);
        // Not into mpirun itself.
        command.env_remove("LD_PRELOAD");
        match mpi {
            Mpi::Openmpi => {
                let mut setting = OsString::from("LD_PRELOAD=");
                setting.push(&preload);
                command.arg("-x").arg(setting);
                // Open MPI takes only its own variables to other hosts.
                for (name, _) in std::env::vars_os() {
                    if name.to_string_lossy().starts_with("PHALANX_") {
                        command.arg("-x").arg(name);
                    }
                }
            }
            Mpi::Mpich | Mpi::Intel => {
                command.arg("-genv").arg("LD_PRELOAD").arg(&preload);
            }
        }
        if let Some(ranks) = self.ranks {
            command.arg("-n").arg(ranks.to_string());
        }
        command.args(options).args(program);
        Ok(command)
    }
}

/// The command as a shell takes it.
fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<String> = words.map(|word| quoted(&word.to_string_lossy())).collect();
    // As of `Command::env_remove`.
    format!("env -u LD_PRELOAD {}", words.join(" "))
}

/// A word as a shell takes it for one, in quotes if it must be.
fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-+=./,:@%".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// A number of ranks, as it is written; how many there can be is mpirun's to say.
fn ranks(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(0) => Err("a job has at least 1 rank; try `-n 2`".to_owned()),
        Ok(ranks) => Ok(ranks),
        Err(_) => Err("a number of ranks is expected".to_owned()),
    }
}

/// Options of mpirun, and the program with its arguments.
fn divide(rest: &[OsString]) -> Result<(&[OsString], &[OsString]), String> {
    // clap has taken the `--` away where no option stood before it; another one is the program's own.
    if !rest[0].as_encoded_bytes().starts_with(b"-") {
        return Ok((&[], rest));
    }
    match rest.iter().position(|word| word == "--") {
        Some(at) if at + 1 < rest.len() => Ok((&rest[..at], &rest[at + 1..])),
        Some(_) => Err("there is no program behind `--`".to_owned()),
        None => Err("put `--` before the program: phalanx mpirun -n 4 --bind-to core -- ./program".to_owned()),
    }
}

/// The MPI of a program.
struct Linked {
    mpi: Mpi,
    /// The library's file.
    path: Option<PathBuf>,
}

/// What the dynamic linker says of a program (or a library, as the modules of interpreters are).
fn linked_with(program: &OsStr) -> Option<Linked> {
    let path = on_path(program)?;
    // glibc's own tool; a script has no libraries, and it says so.
    let output = Command::new("ldd").arg(&path).env_remove("LD_PRELOAD").output().ok()?;
    understand(&String::from_utf8_lossy(&output.stdout))
}

/// The MPI among a program's libraries, as `ldd` lists them.
fn understand(text: &str) -> Option<Linked> {
    text.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let name = words.next()?;
        let path = words.nth(1).filter(|word| word.starts_with('/')).map(PathBuf::from);
        let mpi = if name.starts_with("libmpi.so.40") || name.starts_with("libmpi_mpifh.so") {
            Mpi::Openmpi
        } else if ["libmpi.so.12", "libmpich.so", "libmpi_abi.so"].iter().any(|stem| name.starts_with(stem)) {
            // Intel's libraries have the same names as MPICH's: their home tells.
            let is_intel = path.as_ref().is_some_and(|path| {
                let folder = path.parent().unwrap_or(Path::new("/"));
                folder.join("libmpi_shm_heap_proxy.so").exists() || path.to_string_lossy().contains("intel")
            });
            if is_intel { Mpi::Intel } else { Mpi::Mpich }
        } else {
            return None;
        };
        Some(Linked { mpi, path })
    })
}

/// A program's file, as a shell finds it.
fn on_path(program: &OsStr) -> Option<PathBuf> {
    if program.as_encoded_bytes().contains(&b'/') {
        return Some(PathBuf::from(program)).filter(|path| path.exists());
    }
    std::env::split_paths(&std::env::var_os("PATH")?).map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// An MPI's mpirun: beside its library, else by its name on the PATH.
fn launcher(mpi: Mpi, linked: Option<&Linked>) -> Result<PathBuf, String> {
    let library = linked.and_then(|linked| linked.path.as_deref());
    let folders = library.into_iter().flat_map(Path::ancestors).skip(1).take(3);
    let beside = folders.map(|folder| folder.join("bin/mpirun")).find(|path| path.is_file());
    // Debian's library lies in /usr/lib, which is /lib too; bin/mpirun there is whichever was chosen last.
    let is_chosen = |path: &PathBuf| {
        path.parent().and_then(|folder| folder.canonicalize().ok()).is_some_and(|f| f == Path::new("/usr/bin"))
    };
    let beside = beside.filter(|path| !is_chosen(path));
    let names: &[&str] = match mpi {
        Mpi::Openmpi => &["mpirun.openmpi", "mpirun"],
        Mpi::Mpich => &["mpirun.mpich", "mpirun"],
        Mpi::Intel => &["mpiexec.hydra", "mpirun"],
    };
    beside.or_else(|| names.iter().find_map(|name| on_path(OsStr::new(name)))).ok_or_else(|| {
        format!(
            "none of {} is on the PATH; install that MPI's launcher, or name it with --launcher PATH",
            names.join(", ")
        )
    })
}

/// The library that is preloaded.
fn library() -> Result<PathBuf, String> {
    const NAME: &str = "libphalanx_mpi.so";
    let mut folders: Vec<PathBuf> =
        std::env::var_os("PHALANX_LIBRARY_PATH").iter().flat_map(std::env::split_paths).collect();
    if let Some(own) =
        std::env::current_exe().ok().and_then(|path| Some(path.canonicalize().ok()?.parent()?.to_owned()))
    {
        // A build's own folder is target/release, where the front lies without the cores that belong beside it.
        folders.extend([own.join("../dropin"), own.clone(), own.join("../lib")]);
    }
    folders.retain(|folder| !folder.as_os_str().is_empty());
    let found = folders.iter().map(|folder| folder.join(NAME)).find(|path| path.is_file());
    found.and_then(|path| path.canonicalize().ok()).ok_or_else(|| {
        let folders: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
        format!(
            "{NAME} is in none of {}; build it (scripts/dropin), or name its folder in PHALANX_LIBRARY_PATH",
            folders.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_and_program_are_told_apart() {
        let words = |text: &str| text.split_whitespace().map(OsString::from).collect::<Vec<_>>();
        let all = words("--bind-to core -- ./program -- x");
        let (options, program) = divide(&all).unwrap();
        assert_eq!((options, program), (&words("--bind-to core")[..], &words("./program -- x")[..]));
        let all = words("./program -n 3");
        assert_eq!(divide(&all).unwrap(), (&[][..], &all[..]));
        // The program's own.
        let all = words("./program -v -- x");
        assert_eq!(divide(&all).unwrap(), (&[][..], &all[..]));
        assert!(divide(&words("--bind-to core ./program")).unwrap_err().contains("put `--`"));
        assert!(divide(&words("--bind-to core --")).unwrap_err().contains("no program"));
    }

    #[test]
    fn programs_that_are_not_there_and_no_ranks_are_told_as_such() {
        let mpirun =
            |rest: &str| Mpirun { ranks: None, mpi: None, launcher: None, show: true, rest: vec![rest.into()] };
        for (program, code, word) in [
            ("./not/there", 127, "no such file"),
            ("no-such-program-anywhere", 127, "no such program"),
            ("/tmp", 126, "folder"),
            ("./README.md", 126, "chmod +x"),
        ] {
            let (why, status) = mpirun(program).command().unwrap_err();
            assert!(status == code && why.contains(word), "{program}: {status}, {why}");
        }
        let (why, status) = mpirun("/bin/sh").command().unwrap_err();
        assert!(status == 125 && why.contains("--mpi"), "{why}");
        assert!(ranks("0").unwrap_err().contains("at least 1") && ranks("x").unwrap_err().contains("expected"));
        assert_eq!(ranks("300"), Ok(300));
    }

    #[test]
    fn what_is_shown_can_be_given_to_a_shell() {
        for word in ["plain", "", "a b", "it's", "$HOME", "x;y", "-x", "LD_PRELOAD=/a/b.so:/c"] {
            let line = format!("printf %s {}", quoted(word));
            let said = Command::new("sh").args(["-c", &line]).output().unwrap().stdout;
            assert_eq!(String::from_utf8(said).unwrap(), word, "{line}");
        }
        let mut command = Command::new("mpirun.x");
        command.args(["-n", "2", "sh", "-c", "echo a b"]);
        assert_eq!(shown(&command), "env -u LD_PRELOAD mpirun.x -n 2 sh -c 'echo a b'");
    }

    #[test]
    fn libraries_tell_the_mpi() {
        let mpi = |text: &str| understand(text).map(|linked| linked.mpi);
        assert_eq!(
            mpi("\tlibmpi.so.40 => /usr/lib/libmpi.so.40 (0x7f)\n\tlibc.so.6 => /lib/libc.so.6 (0x7f)"),
            Some(Mpi::Openmpi)
        );
        assert_eq!(
            mpi("\tlibm.so.6 => /lib/libm.so.6 (0x7f)\n\tlibmpich.so.12 => /usr/lib/libmpich.so.12 (0x7f)"),
            Some(Mpi::Mpich)
        );
        assert_eq!(mpi("\tlibmpi.so.12 => /opt/intel/oneapi/mpi/lib/libmpi.so.12 (0x7f)"), Some(Mpi::Intel));
        assert_eq!(mpi("\tlibmpi_abi.so.1 => /opt/mpich5/lib/libmpi_abi.so.1 (0x7f)"), Some(Mpi::Mpich));
        assert_eq!(mpi("\tlibmpi_abi.so.1 => /opt/intel/oneapi/mpi/lib/libmpi_abi.so.1 (0x7f)"), Some(Mpi::Intel));
        assert_eq!(mpi("\tlibmpi.so.12 => not found"), Some(Mpi::Mpich));
        assert_eq!(mpi("\tnot a dynamic executable"), None);
    }
}
