//! Which process groups have somebody alive in them.
//!
//! The system only tells whether a group has members, and counts those that are dead and not yet waited for. Their
//! waiting is up to process 1, which in a container may take its time, or never do it.

use std::collections::HashSet;
use std::fs;

/// The groups with a living member. `None` where `/proc` cannot be read.
pub(super) fn living() -> Option<HashSet<i32>> {
    let processes = fs::read_dir("/proc")
        .ok()?
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit));
    // One that ends while this looks at it is not alive.
    let stats = processes.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
    let living: HashSet<i32> = stats.filter_map(|stat| group_if_alive(&stat)).collect();
    // Without even this process in it, it is not the list of processes that it should be.
    living.contains(&nix::unistd::getpgrp().as_raw()).then_some(living)
}

/// Reads `/proc/PID/stat`: the number, the name in parentheses, state, parent, group, and so on.
fn group_if_alive(stat: &str) -> Option<i32> {
    const GROUP: usize = 2;
    const THREADS: usize = 17;
    // The name may hold anything, parentheses and spaces too.
    let fields: Vec<&str> = stat[stat.rfind(')')? + 1..].split_ascii_whitespace().collect();
    let dead = matches!(*fields.first()?, "Z" | "X");
    // A process whose first thread has ended before the others looks dead, and is not.
    let threads: u32 = fields.get(THREADS)?.parse().ok()?;
    if dead && threads <= 1 { None } else { fields.get(GROUP)?.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    #[test]
    fn names_may_hold_anything() {
        let line =
            |state: &str, threads: u32| format!("7 (a) Z (b) {state} 1 77 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 {threads} 0 9");
        assert_eq!(group_if_alive(&line("S", 1)), Some(77));
        assert_eq!(group_if_alive(&line("Z", 1)), None);
        assert_eq!(group_if_alive(&line("Z", 2)), Some(77));
        assert_eq!(group_if_alive("7 (a"), None);
    }

    #[test]
    fn a_dead_child_is_no_life() {
        let mut child = Command::new("sleep").arg("20").process_group(0).spawn().unwrap();
        let group = child.id() as i32;
        assert!(living().unwrap().contains(&group));
        child.kill().unwrap();
        // Not waited for yet: it is there, and dead a moment later.
        let gone = (0..500).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(2));
            !living().unwrap().contains(&group)
        });
        child.wait().unwrap();
        assert!(gone);
    }
}
