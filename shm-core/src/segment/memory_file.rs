//! The memory file: made, sized, sealed, reserved piece by piece, given back; and checked when it comes from others.

use std::os::fd::OwnedFd;
use std::sync::OnceLock;

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, FcntlArg, FdFlag, SealFlag, fallocate, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::resource::{Resource, getrlimit};
use nix::sys::stat::{Mode, fchmod, fstat};
use nix::unistd::ftruncate;

use crate::error::{Error, Result};

/// The advice that goes with every shortage of memory.
pub(crate) const MEMORY_ADVICE: &str = "free memory, raise the limit (ulimit -v, the container's memory), use fewer ranks, or set a smaller PHALANX_ARENA or PHALANX_HEAP";

const SEALS: SealFlag = SealFlag::F_SEAL_SHRINK.union(SealFlag::F_SEAL_GROW).union(SealFlag::F_SEAL_SEAL);

/// Makes a sealed memory file of `bytes` bytes, none of which is reserved.
pub(crate) fn create(bytes: u64) -> Result<OwnedFd> {
    // Beyond this limit the system would end the process.
    if getrlimit(Resource::RLIMIT_FSIZE).is_ok_and(|(most, _)| bytes > most) {
        return Err(shortage("the segment", bytes, "the limit on the size of files is lower; ulimit -f"));
    }
    let file = memfd_create("phalanx", MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING)
        .map_err(|e| Error::system("memfd_create", e))?;
    fchmod(&file, Mode::S_IRUSR | Mode::S_IWUSR).map_err(|e| Error::system("fchmod of the segment", e))?;
    ftruncate(&file, bytes as i64).map_err(|e| shortage("the segment", bytes, e.desc()))?;
    fcntl(&file, FcntlArg::F_ADD_SEALS(SEALS)).map_err(|e| Error::system("sealing the segment", e))?;
    Ok(file)
}

/// Reserves memory for a range of the file.
pub(crate) fn reserve(file: &OwnedFd, what: &'static str, offset: u64, bytes: u64) -> Result<()> {
    loop {
        match fallocate(file, FallocateFlags::empty(), offset as i64, bytes as i64) {
            Ok(()) => return Ok(()),
            Err(Errno::EINTR) => {}
            Err(error) => return Err(shortage(what, bytes, error.desc())),
        }
    }
}

/// Whether the system promises no more memory than it has (`vm.overcommit_memory = 2`): there memory that was not
/// reserved may be refused when it is touched, by a signal. Elsewhere who touches it and who reserves it fare alike
/// should there be none.
pub(crate) fn is_counted() -> bool {
    static COUNTED: OnceLock<bool> = OnceLock::new();
    let read = || std::fs::read_to_string("/proc/sys/vm/overcommit_memory");
    *COUNTED.get_or_init(|| read().is_ok_and(|mode| mode.trim() == "2"))
}

/// Gives the memory of a range back; it reads as zeros when it is reserved again.
pub(crate) fn give_back(file: &OwnedFd, offset: u64, bytes: u64) -> Result<()> {
    let mode = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
    fallocate(file, mode, offset as i64, bytes as i64).map_err(|e| Error::system("giving memory back", e))
}

/// Checks that a descriptor which somebody else passed is a sealed memory file, and returns its size.
pub(crate) fn check(file: &OwnedFd) -> Result<u64> {
    let foreign = |why: String| Error::Segment {
        why,
        advice: "start the program with `phalanx run`, and do not set PHALANX_SEGMENT by hand",
    };
    let seals = fcntl(file, FcntlArg::F_GET_SEALS).map_err(|e| foreign(format!("it is not a memory file ({e})")))?;
    let seals = SealFlag::from_bits_truncate(seals);
    if !seals.contains(SEALS) {
        return Err(foreign("it could still shrink or grow".to_owned()));
    }
    let status = fstat(file).map_err(|e| Error::system("fstat of the segment", e))?;
    Ok(status.st_size as u64)
}

/// Keeps the descriptor from programs that this process starts.
pub(crate) fn keep_private(file: &OwnedFd) -> Result<()> {
    fcntl(file, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).map_err(|e| Error::system("fcntl of the segment", e))?;
    Ok(())
}

fn shortage(what: &'static str, bytes: u64, cause: &str) -> Error {
    Error::Memory { rank: None, what, bytes, cause: cause.to_owned(), advice: MEMORY_ADVICE }
}
