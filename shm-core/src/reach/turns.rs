//! Turns of those who read one process's memory.
//!
//! The kernel copies out of a process page by page, and counts each page's users in the owner's page tables: many who do
//! so at once are slower together than a few after the others (Chakraborty et al., CLUSTER 2017). So a reader waits
//! until fewer than some number read.
//!
//! Turns order nothing, and nothing hangs on them: no edge of the protocols. A reader whose turn does not come within
//! [`PATIENCE`] goes on without one, since one of those before it may have ended amid its turn, or have been put to
//! sleep; ranks that ended so count as readers as long as the job lasts.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long a reader waits for its turn.
const PATIENCE: Duration = Duration::from_millis(1);

/// Looks at the number of readers before a core is given to others between two.
const LOOKS: u32 = 64;

/// Who reads a process's memory: how many.
#[repr(transparent)]
pub(super) struct Turns(AtomicU32);

/// A reader's turn; it ends when this is dropped.
pub(super) struct Turn<'a>(&'a AtomicU32);

impl Turns {
    /// Waits until fewer than `most` read, but not for long.
    pub fn wait(&self, most: u32) -> Turn<'_> {
        if !self.begins(most) {
            self.wait_slowly(most);
        }
        Turn(&self.0)
    }

    /// Whether a reader more is one of `most`; it counts then.
    fn begins(&self, most: u32) -> bool {
        let one_more = |readers: u32| (readers < most).then_some(readers + 1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok()
    }

    #[cold]
    fn wait_slowly(&self, most: u32) {
        let begun = Instant::now();
        loop {
            for _ in 0..LOOKS {
                if self.0.load(Ordering::Relaxed) < most && self.begins(most) {
                    return;
                }
                std::hint::spin_loop();
            }
            if begun.elapsed() >= PATIENCE {
                self.0.fetch_add(1, Ordering::Relaxed);
                return;
            }
            std::thread::yield_now();
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Readers whose turns are short are never more than may be, and all of them read.
    #[test]
    fn no_more_read_than_may() {
        for most in [1, 2, 3] {
            let (turns, reading, read) = (Turns(AtomicU32::new(0)), AtomicU32::new(0), AtomicU32::new(0));
            let mut slow = AtomicU32::new(0);
            std::thread::scope(|scope| {
                for _ in 0..6 {
                    scope.spawn(|| {
                        for _ in 0..200 {
                            let asked = Instant::now();
                            let turn = turns.wait(most);
                            // Who has lost patience counts beside the others.
                            slow.fetch_add(u32::from(asked.elapsed() >= PATIENCE), Ordering::Relaxed);
                            let now = reading.fetch_add(1, Ordering::Relaxed) + 1;
                            assert!(now <= most + slow.load(Ordering::Relaxed), "{now} of {most}");
                            read.fetch_add(1, Ordering::Relaxed);
                            reading.fetch_sub(1, Ordering::Relaxed);
                            drop(turn);
                        }
                    });
                }
            });
            assert_eq!((turns.0.into_inner(), read.into_inner()), (0, 6 * 200));
            assert!(*slow.get_mut() < 6 * 200);
        }
    }

    /// A turn that never ends, as of a rank that was killed in it, costs the others some time and nothing else.
    #[test]
    fn a_turn_that_does_not_end_holds_nobody_up_for_long() {
        let turns = Turns(AtomicU32::new(0));
        std::mem::forget(turns.wait(1));
        for _ in 0..3 {
            let begun = Instant::now();
            drop(turns.wait(1));
            assert!((PATIENCE..Duration::from_secs(20)).contains(&begun.elapsed()));
        }
        assert_eq!(turns.0.into_inner(), 1);
    }
}
