//! Starting the process of one rank, and what happens in it between fork and exec.

use std::ffi::OsStr;
use std::io;
use std::os::fd::RawFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::unistd::{AccessFlags, Pid, access, getpid, getppid};

use super::error::advice;
use super::{LaunchError, guard};

/// What a rank's process does to itself before it becomes the program.
#[derive(Debug, Clone, Copy)]
pub(super) struct Preparation {
    /// The process to end with.
    pub(super) launcher: Pid,
    /// The link to the guard.
    pub(super) guard: RawFd,
    /// The descriptor of the segment, which the program inherits.
    pub(super) segment: RawFd,
    /// The PUs to run on.
    pub(super) mask: Option<CpuSet>,
}

/// The steps of a preparation, as they are named in an error.
const STEPS: [&str; 4] = [
    "tying its life to the launcher's",
    "making it known to the guard process",
    "binding it to its processors",
    "handing it the shared memory",
];

/// An error from the child comes as one number: the step (from 1) above these bits, the errno below.
const STEP_SHIFT: u32 = 16;

/// Starts the process of `rank` in a process group of its own. Returns when it has become the program.
pub(super) fn start(
    command: &mut Command,
    preparation: Preparation,
    rank: usize,
    ranks: usize,
) -> Result<Child, LaunchError> {
    command.process_group(0);
    // SAFETY: `prepare` makes async-signal-safe system calls only, and allocates nothing.
    unsafe { command.pre_exec(move || prepare(&preparation)) };
    command.spawn().map_err(|error| explain(command.get_program(), error, rank, ranks))
}

fn prepare(preparation: &Preparation) -> io::Result<()> {
    let at = |step: i32| move |errno: Errno| io::Error::from_raw_os_error(step << STEP_SHIFT | errno as i32);
    set_pdeathsig(Signal::SIGKILL).map_err(at(1))?;
    // The wish above counts from now on only: was the launcher gone already?
    if getppid() != preparation.launcher {
        return Err(at(1)(Errno::ESRCH));
    }
    guard::introduce(preparation.guard, getpid()).map_err(at(2))?;
    if let Some(mask) = &preparation.mask {
        sched_setaffinity(Pid::from_raw(0), mask).map_err(at(3))?;
    }
    // SAFETY: the launcher holds the job, and so its descriptor, while it starts ranks.
    let segment = unsafe { std::os::fd::BorrowedFd::borrow_raw(preparation.segment) };
    fcntl(segment, FcntlArg::F_SETFD(FdFlag::empty())).map_err(at(4))?;
    Ok(())
}

/// The set of these PUs, for `sched_setaffinity`.
pub(super) fn mask(pus: &[usize]) -> Result<CpuSet, LaunchError> {
    let mut set = CpuSet::new();
    for &pu in pus {
        set.set(pu).map_err(|errno| LaunchError::System {
            what: "making the set of processors of a rank",
            source: errno.into(),
            advice: "processors from number 1024 on cannot be bound to; use `--bind none`",
        })?;
    }
    Ok(set)
}

/// Whether the system would execute this program, as far as its file tells.
///
/// # Errors
/// [`LaunchError::NotFound`] and [`LaunchError::NotExecutable`], in the words of a launch.
pub fn check_program(program: &OsStr) -> Result<(), LaunchError> {
    let look = |path: &Path| match path.metadata() {
        Ok(data) if data.is_dir() => Err(Errno::EACCES),
        Ok(_) => access(path, AccessFlags::X_OK),
        Err(error) => Err(Errno::from_raw(error.raw_os_error().unwrap_or(libc::ENOENT))),
    };
    let found = if program.as_encoded_bytes().contains(&b'/') {
        look(Path::new(program))
    } else {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        let looks: Vec<_> = std::env::split_paths(&folders).map(|folder| look(&folder.join(program))).collect();
        // As the system does it: a file that may not be executed counts where there is no other.
        let denied = looks.contains(&Err(Errno::EACCES));
        if looks.contains(&Ok(())) { Ok(()) } else { Err(if denied { Errno::EACCES } else { Errno::ENOENT }) }
    };
    found.map_err(|errno| explain(program, errno.into(), 0, 1))
}

fn explain(program: &OsStr, error: io::Error, rank: usize, ranks: usize) -> LaunchError {
    let code = error.raw_os_error().unwrap_or(0);
    if let Some(step) = STEPS.get(((code >> STEP_SHIFT) as usize).wrapping_sub(1)) {
        let source = io::Error::from_raw_os_error(code & ((1 << STEP_SHIFT) - 1));
        return LaunchError::Start { rank, ranks, step, advice: advice(&source), source };
    }
    let path = Path::new(program);
    let named_by_path = path.components().count() > 1 || program.as_encoded_bytes().contains(&b'/');
    let shown = path.display();
    let (found, reason) = match code {
        libc::ENOENT if !named_by_path && path.exists() => (
            false,
            format!("no such program on the PATH; for the file of this name in this folder write `./{shown}`"),
        ),
        libc::ENOENT if !named_by_path => {
            (false, "no such program on the PATH; check the name, or write the path of the file".to_owned())
        }
        libc::ENOENT if path.exists() => {
            (false, "the file is there, but the interpreter that it names (its `#!` line, or its loader) is not".to_owned())
        }
        libc::ENOENT => (false, "no such file; check the path, or build the program first".to_owned()),
        libc::ENOTDIR => (false, "a part of the path is not a folder; check the path".to_owned()),
        libc::EACCES => (true, refused(path)),
        libc::ENOEXEC => {
            (true, "neither a program of this machine nor a script that begins with `#!`; give its interpreter, as in `-- sh FILE`".to_owned())
        }
        libc::ETXTBSY => (true, "the file is being written; wait until its build is done".to_owned()),
        libc::E2BIG => (true, "its arguments and environment are too long together; put them into a file".to_owned()),
        libc::ELOOP | libc::ENAMETOOLONG | libc::EISDIR => (true, format!("{error}; check the path")),
        _ => {
            let step = "making its process";
            return LaunchError::Start { rank, ranks, step, advice: advice(&error), source: error };
        }
    };
    let program = program.to_owned();
    if found { LaunchError::NotExecutable { program, reason } } else { LaunchError::NotFound { program, reason } }
}

/// Why the system denies to execute a file, as far as one can see from here.
fn refused(path: &Path) -> String {
    let shown = path.display();
    match path.metadata() {
        Ok(data) if data.is_dir() => "it is a folder; name the program inside of it".to_owned(),
        Ok(data) if data.file_type().is_char_device() || data.file_type().is_fifo() => "it is not a file".to_owned(),
        Ok(data) if data.permissions().mode() & 0o111 == 0 => {
            format!("it is not marked executable; `chmod +x {shown}`, or give its interpreter, as in `-- sh {shown}`")
        }
        _ => {
            "permission denied; look at the modes of the file and of the folders on its path, and whether it lies on a \
              `noexec` mount"
                .to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_child_name_their_step() {
        let code = 3 << STEP_SHIFT | libc::EINVAL;
        let error = explain(OsStr::new("x"), io::Error::from_raw_os_error(code), 2, 4);
        assert!(
            error.to_string().starts_with("cannot start rank 2 of 4: binding it to its processors: Invalid"),
            "{error}"
        );
        assert_eq!(error.status(), 125);
    }

    #[test]
    fn programs_are_checked_before_they_are_started() {
        for good in ["sh", "/bin/sh"] {
            check_program(OsStr::new(good)).unwrap();
        }
        for (program, status, why) in [
            ("no-such-program-anywhere", 127, "on the PATH"),
            ("./no/such/file", 127, "no such file"),
            ("/etc/passwd/x", 127, "not a folder"),
            ("/etc/passwd", 126, "chmod +x"),
            ("/", 126, "folder"),
        ] {
            let error = check_program(OsStr::new(program)).unwrap_err();
            assert!(error.status() == status && error.to_string().contains(why), "{program}: {error}");
        }
    }

    #[test]
    fn errors_of_the_program_say_what_is_wrong_with_it() {
        let folder = std::env::temp_dir();
        for (program, code, status, why) in [
            ("no-such-program-anywhere", libc::ENOENT, 127, "on the PATH"),
            ("/no/such/file", libc::ENOENT, 127, "no such file"),
            ("/etc/passwd", libc::EACCES, 126, "chmod +x"),
            (folder.to_str().unwrap(), libc::EACCES, 126, "folder"),
            ("/bin/sh", libc::ENOENT, 127, "interpreter"),
            ("/bin/sh", libc::ENOEXEC, 126, "#!"),
            ("/bin/sh", libc::EAGAIN, 125, "ulimit -u"),
        ] {
            let error = explain(OsStr::new(program), io::Error::from_raw_os_error(code), 0, 1);
            assert!(error.to_string().contains(why), "{error}");
            assert_eq!(error.status(), status, "{error}");
        }
    }
}
