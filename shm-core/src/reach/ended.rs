//! Whether a process that cannot be reached is no more.
//!
//! The system's word is the same (ESRCH) for one that has ended and for one whose first thread alone has: its other
//! threads, and the memory that they use, are there, but nobody else gets at it. Such a process is listed as one that
//! is waited for (a zombie) with more than one thread. So is, for a moment, one that is being killed.

use std::time::{Duration, Instant};

/// How long a process that is killed may take to lose its threads, a thousand times what it takes as a rule.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whether a process lives though it cannot be reached, its first thread having ended. Of one that is ending this waits
/// for the end, but only as long as nobody `knows` of it.
pub(super) fn lives_on(pid: u32, knows: impl Fn() -> bool) -> bool {
    let begun = Instant::now();
    while !knows() && has_lost_its_first_thread(pid) {
        if begun.elapsed() > PATIENCE {
            return true;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    false
}

/// Field 3 of a process's status is its state, field 20 the number of its threads; field 2, its name, is in brackets.
fn has_lost_its_first_thread(pid: u32) -> bool {
    let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    let fields: Vec<&str> = status.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let threads = fields.get(17).and_then(|threads| threads.parse::<u32>().ok());
    fields.first() == Some(&"Z") && threads.is_some_and(|threads| threads > 1)
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
