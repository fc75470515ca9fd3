//! Turns of those who read one process's memory.
//!
//! The kernel copies out of a process page by page, and counts each page's users in the owner's page tables: many who do
//! so at once are slower together than a few after the others (Chakraborty et al., CLUSTER 2017). So a reader waits
//! until fewer than some number read.
//!
//! Turns order nothing, and nothing hangs on them: no edge of the protocols. A reader whose turn does not come within
//! [`PATIENCE`] takes it that those before it are no more, or asleep: it goes on, as the only one who counts. So a rank
//! that was killed in its turn costs others one wait; and where readers are merely slow, more than may read do so for a
//! while.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long a reader waits for its turn.
const PATIENCE: Duration = Duration::from_millis(1);

/// Looks at the number of readers before a core is given to others between two.
const LOOKS: u32 = 64;

/// Who reads a process's memory: how many.
#[repr(C, align(64))]
pub(crate) struct Turns(AtomicU32);

/// A reader's turn; it ends when this is dropped.
pub(crate) struct Turn<'a>(&'a AtomicU32);

impl Turns {
    /// Waits until fewer than `most` read, but not for long.
    pub fn wait(&self, most: u32) -> Turn<'_> {
        self.wait_for(most, PATIENCE)
    }

    fn wait_for(&self, most: u32, patience: Duration) -> Turn<'_> {
        if !self.begins(most) {
            self.wait_slowly(most, patience);
        }
        Turn(&self.0)
    }

    /// Whether a reader more is one of `most`; it counts then.
    fn begins(&self, most: u32) -> bool {
        let one_more = |readers: u32| (readers < most).then_some(readers + 1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok()
    }

    #[cold]
    fn wait_slowly(&self, most: u32, patience: Duration) {
        let begun = Instant::now();
        loop {
            for _ in 0..LOOKS {
                if self.0.load(Ordering::Relaxed) < most && self.begins(most) {
                    return;
                }
                std::hint::spin_loop();
            }
            if begun.elapsed() >= patience {
                self.0.store(1, Ordering::Relaxed);
                return;
            }
            std::thread::yield_now();
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // Where somebody has lost patience, not all who read count.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |readers| readers.checked_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More than a test takes.
    const EVER: Duration = Duration::from_secs(600);

    #[test]
    fn no_more_read_than_may() {
        for most in [1, 2, 3] {
            let (turns, reading, most_seen) = (Turns(AtomicU32::new(0)), AtomicU32::new(0), AtomicU32::new(0));
            std::thread::scope(|scope| {
                for _ in 0..6 {
                    scope.spawn(|| {
                        for _ in 0..200 {
                            let turn = turns.wait_for(most, EVER);
                            most_seen.fetch_max(reading.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                            std::thread::yield_now();
                            reading.fetch_sub(1, Ordering::Relaxed);
                            drop(turn);
                        }
                    });
                }
            });
            assert!(most_seen.into_inner() <= most);
            assert_eq!(turns.0.into_inner(), 0);
        }
    }

    /// Turns that never end, as of ranks that were killed in them, cost the next one its patience, and nobody else.
    #[test]
    fn turns_that_do_not_end_hold_nobody_up_for_long() {
        let turns = Turns(AtomicU32::new(0));
        (0..2).for_each(|_| std::mem::forget(turns.wait_for(2, EVER)));
        let begun = Instant::now();
        drop(turns.wait_for(2, PATIENCE));
        assert!(begun.elapsed() >= PATIENCE);
        // They count no more.
        let two = (turns.wait_for(2, EVER), turns.wait_for(2, EVER));
        assert_eq!(turns.0.load(Ordering::Relaxed), 2);
        drop(two);
        assert_eq!(turns.0.into_inner(), 0);
    }
}
