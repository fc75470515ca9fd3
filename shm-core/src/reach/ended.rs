//! Whether a process that cannot be reached is no more.
//!
//! The system's word is the same (ESRCH) for one that has ended and for one whose first thread alone has: its other
//! threads, and the memory that they use, are there, but nobody else gets at it. Such a process is listed as one that
//! is waited for (a zombie) with more than one thread. So is one that is being killed, for as long as it takes to give
//! its memory back: seconds, of tens of gigabytes. Its threads tell which it is: all are about to end, or are to be
//! killed.

use std::fs::{read_dir, read_to_string};
use std::time::{Duration, Instant};

/// How long a thread may be neither to be killed nor about to end, between the two, where many wait for a core.
const BETWEEN: Duration = Duration::from_millis(100);

/// Whether a process lives though it cannot be reached, its first thread having ended. It is looked at for a while, but
/// only as long as nobody `knows` of its end.
pub(super) fn lives_on(pid: u32, knows: impl Fn() -> bool) -> bool {
    let begun = Instant::now();
    while !knows() && has_lost_its_first_thread(pid) && another_goes_on(pid) {
        if begun.elapsed() > BETWEEN {
            return true;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    false
}

/// The fields of a status behind the name, which is in brackets; the first is the state.
pub(super) fn fields(status: &str) -> Vec<&str> {
    status.rsplit(')').next().unwrap_or_default().split_whitespace().collect()
}

/// Field 3 of a process's status is its state, field 20 the number of its threads.
fn has_lost_its_first_thread(pid: u32) -> bool {
    let Ok(status) = read_to_string(format!("/proc/{pid}/stat")) else { return false };
    let fields = fields(&status);
    let threads = fields.get(17).and_then(|threads| threads.parse::<u32>().ok());
    fields.first() == Some(&"Z") && threads.is_some_and(|threads| threads > 1)
}

/// Whether a thread of a process, not the first, is neither about to end nor to be killed.
fn another_goes_on(pid: u32) -> bool {
    let Ok(threads) = read_dir(format!("/proc/{pid}/task")) else { return false };
    let others = threads.flatten().filter(|thread| thread.file_name() != *pid.to_string());
    others.map(|thread| thread.path()).any(|thread| {
        let [status, words] = ["stat", "status"].map(|name| read_to_string(thread.join(name)).unwrap_or_default());
        let is_there = !status.is_empty() && !words.is_empty();
        is_there && !is_about_to_end(&status) && !is_to_be_killed(&words)
    })
}

/// Field 9 of a thread's status are the kernel's flags, of which PF_EXITING is one (`include/linux/sched.h`).
fn is_about_to_end(status: &str) -> bool {
    const EXITING: u64 = 4;
    fields(status).get(6).and_then(|flags| flags.parse::<u64>().ok()).is_some_and(|flags| flags & EXITING != 0)
}

/// Of the signals that wait for one thread bit 8 is SIGKILL, which all threads of a process that ends get.
fn is_to_be_killed(words: &str) -> bool {
    let pending = words.lines().find_map(|line| line.strip_prefix("SigPnd:"));
    pending.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 << 8 != 0)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use nix::sys::wait::waitpid;
    use nix::unistd::{ForkResult, fork};
    use rustix::process::{Pid, Signal, kill_process};

    use super::*;
    use crate::processes::is_alone;

    #[test]
    fn threads_tell_whether_they_end() {
        let status = |flags: u32| format!("12 (a ) name) S 1 12 12 0 -1 {flags} 0 0");
        assert!(is_about_to_end(&status(0x40_0044)) && !is_about_to_end(&status(0x40_0040)) && !is_about_to_end(""));
        let words = |mask: &str| format!("Name:\tx\nSigPnd:\t{mask}\nShdPnd:\t0000000000000100\n");
        assert!(is_to_be_killed(&words("0000000000000100")) && !is_to_be_killed(&words("0000000000000200")));
    }

    #[test]
    fn a_process_without_its_first_thread_lives() {
        if !is_alone(a_process_without_its_first_thread_lives) {
            return;
        }
        // SAFETY: this process has one thread, so that the child may do what it wants.
        match unsafe { fork() }.unwrap() {
            ForkResult::Child => {
                std::thread::spawn(|| std::thread::sleep(Duration::from_secs(60)));
                // SAFETY: it ends this thread alone, whose stack nobody else uses.
                unsafe { libc::syscall(libc::SYS_exit, 0) };
                unreachable!("this thread has ended")
            }
            ForkResult::Parent { child } => {
                let pid = child.as_raw() as u32;
                let begun = Instant::now();
                while !has_lost_its_first_thread(pid) && begun.elapsed() < Duration::from_secs(20) {
                    std::thread::sleep(Duration::from_millis(1));
                }
                let lives = [lives_on(pid, || false), lives_on(pid, || true), lives_on(std::process::id(), || false)];
                kill_process(Pid::from_raw(child.as_raw()).unwrap(), Signal::KILL).unwrap();
                let lived = lives_on(pid, || false);
                waitpid(child, None).unwrap();
                assert_eq!((lives, lived), ([true, false, false], false));
                assert!(!lives_on(pid, || false));
            }
        }
    }
}
