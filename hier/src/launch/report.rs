//! What the launcher has to say, on standard error.

use std::fmt;
use std::io::{self, Write};
use std::sync::{PoisonError, TryLockError};
use std::time::{Duration, Instant};

use super::relay::Gate;

/// How long a report waits for its turn at standard error before it speaks anyway.
const MANNERS: Duration = Duration::from_millis(200);

/// Says, or does not say, what happens to the job.
pub(super) struct Report {
    pub(super) quiet: bool,
    /// Shared with the tagged output that leads to the same place.
    pub(super) gate: Gate,
}

impl Report {
    /// One line on standard error, whole among the lines of the ranks.
    pub(super) fn say(&self, what: impl fmt::Display) {
        if self.quiet {
            return;
        }
        let line = format!("phalanx: {what}\n");
        let end = Instant::now() + MANNERS;
        let _turn = loop {
            match self.gate.try_lock() {
                Ok(turn) => break Some(turn),
                Err(TryLockError::Poisoned(poisoned)) => break Some(PoisonError::into_inner(poisoned)),
                Err(TryLockError::WouldBlock) if Instant::now() < end => std::thread::sleep(Duration::from_millis(1)),
                // Its reader is stuck: the line may land inside of another one, if it lands at all.
                Err(TryLockError::WouldBlock) => break None,
            }
        };
        // A standard error that is closed is no reason to end differently.
        let _ = io::stderr().write_all(line.as_bytes());
    }
}

/// `rank 3`, `ranks 0-2 and 5`, for one rank or several (in increasing order).
pub(super) fn ranks(list: &[usize]) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for &rank in list {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == rank => *last = rank,
            _ => runs.push((rank, rank)),
        }
    }
    let mut words: Vec<String> = runs
        .iter()
        .flat_map(|&(first, last)| match last - first {
            0 => vec![first.to_string()],
            1 => vec![first.to_string(), last.to_string()],
            _ => vec![format!("{first}-{last}")],
        })
        .collect();
    let last = words.pop().unwrap_or_else(|| "none".to_owned());
    let noun = if list.len() == 1 { "rank" } else { "ranks" };
    if words.is_empty() { format!("{noun} {last}") } else { format!("{noun} {} and {last}", words.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::ranks;

    #[test]
    fn lists_of_ranks_are_short() {
        for (list, text) in [
            (&[3][..], "rank 3"),
            (&[1, 2], "ranks 1 and 2"),
            (&[0, 1, 2, 5], "ranks 0-2 and 5"),
            (&[0, 2, 4, 5, 6, 7], "ranks 0, 2 and 4-7"),
        ] {
            assert_eq!(ranks(list), text);
        }
    }
}
