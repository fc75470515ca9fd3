//! Sleeping until a rank publishes something, without a fence on the publisher's side.
//!
//! Each rank has a bell. Who wants to sleep until rank `w` publishes announces itself at `w`'s bell, looks once
//! more, and sleeps on the bell's count; `w`, after each publication, looks whether somebody is announced, and if so
//! counts the bell up and wakes them.
//!
//! Two edges keep a wake-up from being lost:
//! * **W1**: publication and announcement must not miss each other (Dekker). The sleeper's side pays: a heavy
//!   fence makes every running rank pass a full barrier, so that the publisher's side needs to keep only its program
//!   order (a light fence). Either the publisher sees the announcement, or the sleeper sees the publication.
//! * **W2**: the count is read before the announcement and checked by the kernel as it puts the sleeper to bed; the
//!   publisher counts up before it wakes. Either the sleeper is asleep and woken, or it never falls asleep.

use std::time::Duration;

/// A 32-bit word that a kernel can sleep on.
pub trait BellWord {
    /// Adds one; everything before is ordered before, everything after after.
    fn add(&self, value: u32);
    /// Takes one away.
    fn sub(&self, value: u32);
    /// Reads with acquire ordering.
    fn read(&self) -> u32;
    /// Reads without ordering.
    fn glance(&self) -> u32;
}

/// What sleeping needs of the system.
pub trait Sleepers {
    /// The kind of word.
    type Word: BellWord;
    /// The publisher's fence: cheap, run on every publication.
    fn light_fence(&self);
    /// The sleeper's fence: makes every light fence count as a full one.
    fn heavy_fence(&self);
    /// Sleeps while `word` is `value`, until woken or `timeout` has passed.
    fn sleep(&self, word: &Self::Word, value: u32, timeout: Duration);
    /// Wakes all who sleep on `word`.
    fn wake(&self, word: &Self::Word);
}

/// The two words of a rank's bell.
#[derive(Debug)]
pub struct Bell<'a, W> {
    /// How many have announced that they are about to sleep.
    pub announced: &'a W,
    /// How often the bell was rung: the word that is slept on.
    pub rung: &'a W,
}

/// After a publication of this rank: wakes who sleeps on it. Returns whether somebody was announced.
#[inline]
pub fn ring_if_needed<S: Sleepers>(system: &S, bell: &Bell<'_, S::Word>) -> bool {
    system.light_fence(); // W1, publisher: publication before this look.
    if bell.announced.glance() == 0 {
        return false;
    }
    ring(system, bell);
    true
}

/// Wakes all who sleep on this bell.
#[cold]
#[inline(never)]
pub fn ring<S: Sleepers>(system: &S, bell: &Bell<'_, S::Word>) {
    bell.rung.add(1); // W2, publisher: counted before woken.
    system.wake(bell.rung);
}

/// Sleeps on a rank's bell unless `arrived` says that there is no need. Returns whether it went to sleep at all.
///
/// Wakes at the latest after `timeout`; the caller looks again and decides.
#[cold]
pub fn sleep_unless<S: Sleepers>(
    system: &S,
    bell: &Bell<'_, S::Word>,
    timeout: Duration,
    arrived: impl Fn() -> bool,
) -> bool {
    let count = bell.rung.read(); // W2, sleeper: before the announcement.
    bell.announced.add(1);
    system.heavy_fence(); // W1, sleeper: announcement before this look.
    let sleeps = !arrived();
    if sleeps {
        system.sleep(bell.rung, count, timeout);
    }
    bell.announced.sub(1);
    sleeps
}
