//! Which process this is, without asking the system each time.
//!
//! What a forked child has of its parent's views, buffers and mappings are copies, which count for nothing: so these
//! remember whose they are. But `getpid` is a system call, as long as a short collective (70 ns; AMD EPYC, Zen 5). So
//! its answer is kept, in a page that every child finds zeroed, however it was forked (`MADV_WIPEONFORK`).

use std::num::NonZeroUsize;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap_anonymous, munmap};

/// The number of this process.
#[inline]
pub(crate) fn id() -> u32 {
    static KEPT: OnceLock<Option<&'static AtomicU32>> = OnceLock::new();
    match KEPT.get_or_init(page) {
        Some(kept) => match kept.load(Ordering::Relaxed) {
            0 => ask(kept),
            known => known,
        },
        None => std::process::id(),
    }
}

#[cold]
fn ask(kept: &AtomicU32) -> u32 {
    let id = std::process::id();
    kept.store(id, Ordering::Relaxed);
    id
}

/// A word of such a page; none where the system has no such pages (Linux before 4.14, some emulators).
fn page() -> Option<&'static AtomicU32> {
    let (bytes, protection) = (NonZeroUsize::new(4096)?, ProtFlags::PROT_READ | ProtFlags::PROT_WRITE);
    // SAFETY: new memory, at no address that anybody has.
    let page = unsafe { mmap_anonymous(None, bytes, protection, MapFlags::MAP_PRIVATE) }.ok()?;
    // Emulators may say yes to any advice, and do nothing: then they do so to one that there is not.
    // SAFETY: no advice; the page is this function's, and nobody knows of it.
    let says_yes = unsafe { libc::madvise(page.as_ptr(), bytes.get(), -1) } == 0;
    // SAFETY: in children the page changes to zeros, which are a value of all that lies there.
    let wiped = unsafe { madvise(page, bytes.get(), MmapAdvise::MADV_WIPEONFORK) };
    if says_yes || wiped.is_err() {
        // SAFETY: mapped above, and in nobody's use.
        let _ = unsafe { munmap(page, bytes.get()) };
        return None;
    }
    // SAFETY: mapped for as long as the process lives, and zero: an atomic word, and used as nothing else.
    Some(unsafe { page.cast::<AtomicU32>().as_ref() })
}

#[cfg(test)]
mod tests {
    use nix::sys::wait::{WaitStatus, waitpid};
    use nix::unistd::{ForkResult, fork};

    use super::id;
    use crate::processes::is_alone;

    /// Of itself, and of its parent when that has been asked before.
    #[test]
    fn a_forked_child_is_another_process() {
        if !is_alone(a_forked_child_is_another_process) {
            return;
        }
        let parent = id();
        assert_eq!((parent, id()), (std::process::id(), parent));
        // SAFETY: the child makes system calls and looks at an atomic word, and ends.
        match unsafe { fork() }.unwrap() {
            ForkResult::Child => {
                let right = id() == std::process::id() && id() != parent;
                // SAFETY: no destructor of the parent's runs.
                unsafe { libc::_exit(i32::from(!right)) }
            }
            ForkResult::Parent { child } => assert_eq!(waitpid(child, None), Ok(WaitStatus::Exited(child, 0))),
        }
        assert_eq!(id(), parent);
    }
}
