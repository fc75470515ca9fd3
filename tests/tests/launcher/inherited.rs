//! What a launcher takes over from the program that starts it: ignored signals, a terminal.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::process::Command;
use std::thread;
use std::time::Duration;

use nix::fcntl::OFlag;
use nix::pty::{grantpt, posix_openpt, ptsname_r, unlockpt};

use super::running::{start_by, until};

/// Of children that end where SIGCHLD is ignored the system keeps no status: a launcher would never hear of it.
#[test]
fn ranks_are_waited_for_though_sigchld_is_ignored() {
    let mut command = Command::new("env");
    command.arg("--ignore-signal=CHLD").arg(phalanx_tests::phalanx_command());
    command.args(["run", "-n", "2", "--", "sh", "-c", "exit $((3 * PHALANX_RANK))"]);
    let ended = start_by(&mut command, b"").end();
    assert_eq!(ended.code(), 3, "{}", ended.stderr);
    assert!(ended.stderr.contains("rank 1 (pid ") && ended.stderr.contains("exited with status 3"), "{}", ended.stderr);
    ended.leaves_nothing();
}

/// A terminal that is gone says so at each look.
#[test]
fn a_terminal_that_hangs_up_is_not_looked_at_any_more() {
    /// Hundredths of a second of processor time that the launcher may have used, of a hundred.
    const MOST: u64 = 20;
    // None but this process holds it.
    let master = posix_openpt(OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC).expect("a terminal");
    grantpt(&master).and_then(|()| unlockpt(&master)).expect("its other end is ours");
    let slave = ptsname_r(&master).expect("its other end has a name");
    let slave = OpenOptions::new().read(true).write(true).custom_flags(OFlag::O_NOCTTY.bits()).open(slave);
    let mut launcher = Command::new(phalanx_tests::phalanx_command())
        .args(["run", "-n", "1", "--", "sleep", "1.5"])
        .stdin(slave.expect("its other end opens"))
        .spawn()
        .expect("the launcher starts");
    let stat = format!("/proc/{}/stat", launcher.id());
    // User and system time: the twelfth and the thirteenth field behind the name, which is in brackets.
    let used = || -> u64 {
        let stat = fs::read_to_string(&stat).unwrap_or_default();
        let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
        fields.map(|ticks| ticks.parse::<u64>().expect("a number")).sum()
    };
    thread::sleep(Duration::from_millis(200));
    drop(master);
    thread::sleep(Duration::from_secs(1));
    let ticks = used();
    let mut status = None;
    until("the launcher ends", || {
        status = launcher.try_wait().expect("it is a child");
        status.is_some()
    });
    assert!(status.is_some_and(|status| status.success()), "{status:?}");
    assert!(ticks <= MOST, "{ticks} hundredths of a second in one second");
}
