//! Whether a rank asks ahead for the lines of the buffer that it copies cells to.
//!
//! The buffer of a long message has left the caches nearest to its core. What is asked for is there when it is stored to; but it stands in the
//! way of the cell's lines. On one machine (AMD EPYC, Zen 4) broadcasts of 1 and 4 MiB between two ranks took 3 and 7 percent less where lines were
//! asked for as long as the cores shared a cache, and a third more where they did not. So the reader tries both, again and again, and times what it
//! copies: it needs nobody's consent, and nothing hangs on it but time. Where there are more ranks than two a reader has different writers at
//! different distances, and asks for nothing; nor is there a difference on a machine on which [`payload`](crate::payload) cannot ask.

use super::ticks;

/// Bytes from which a message is so long.
const LONG: usize = 512 << 10;

/// Slices that are timed of either way in a trial; the median counts.
const TIMED: usize = 48;

/// Slices of a trial that go one way before as many go the other, in the order this, other, other, this: what they cost depends on where in a
/// message they are, too.
const TURN: usize = 8;

/// Slices from the beginning of one trial to that of the next: an odd number, so that trials begin at different places of a message.
const PERIOD: u32 = 8191;

/// What a reader has found out.
pub(crate) struct Asking {
    /// The better way so far.
    asks: bool,
    /// Slices since the last trial began.
    turn: u32,
    /// What the slices of this trial cost that went the better way so far, and those that went the other.
    figures: [[u64; TIMED]; 2],
}

impl Default for Asking {
    /// Asks for nothing; a trial is due.
    fn default() -> Self {
        Self { asks: false, turn: 0, figures: [[0; TIMED]; 2] }
    }
}

impl Asking {
    /// Does `copy(asks)`, which copies a slice of `len` bytes of a message of `bytes` bytes.
    #[inline]
    pub fn copying(&mut self, bytes: usize, len: usize, copy: impl FnOnce(bool)) {
        // The last slice may be short, and say little.
        if bytes < LONG || len < LONG / 64 {
            return copy(false);
        }
        let turn = self.turn as usize;
        self.turn = (self.turn + 1) % PERIOD;
        if turn >= 2 * TIMED {
            return copy(self.asks);
        }
        let begun = ticks();
        copy(self.asks != is_other(turn));
        let took = ticks().wrapping_sub(begun).min(1 << 40);
        self.learn(turn, took * 4096 / len as u64);
    }

    /// Takes what 4 KiB cost in a slice of a trial; decides with the last one. The other way has to be worth it.
    fn learn(&mut self, turn: usize, figure: u64) {
        let other = is_other(turn);
        self.figures[usize::from(other)][turn / (2 * TURN) * TURN + turn % TURN] = figure;
        if turn + 1 == 2 * TIMED {
            let [this, other] = self.figures.each_mut().map(|figures| *figures.select_nth_unstable(TIMED / 2).1);
            if other + other / 64 < this {
                self.asks = !self.asks;
            }
        }
    }
}

/// Whether a slice of a trial goes the way that is not the better one so far.
fn is_other(turn: usize) -> bool {
    matches!(turn / TURN % 4, 1 | 2)
}

const _: () = assert!(TIMED.is_multiple_of(2 * TURN));

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a trial in which 4 KiB cost so much where nothing is asked for, and where lines are.
    fn learnt(asking: &mut Asking, costs: [u64; 2]) -> bool {
        let before = asking.asks;
        for turn in 0..2 * TIMED {
            let asks = before != is_other(turn);
            // A rank that lost its core now and then.
            asking.learn(turn, if turn % 5 == 0 { 1 << 30 } else { costs[usize::from(asks)] });
        }
        asking.asks
    }

    #[test]
    fn the_better_way_is_found_and_found_again() {
        let mut asking = Asking::default();
        assert!(learnt(&mut asking, [1000, 950]));
        assert!(learnt(&mut asking, [1000, 1000]), "nothing is gained by a change");
        assert!(!learnt(&mut asking, [3000, 4000]));
        assert!(!learnt(&mut asking, [1000, 995]), "it has to be worth it");
    }

    #[test]
    fn both_ways_are_tried_and_the_better_one_is_gone_on_with() {
        let mut asking = Asking::default();
        let mut ways = Vec::new();
        for _ in 0..PERIOD {
            asking.copying(LONG, LONG / 16, |asks| ways.push(asks));
        }
        let (trial, rest) = ways.split_at(2 * TIMED);
        assert_eq!(trial.iter().filter(|&&asks| asks).count(), TIMED);
        assert!(!trial[0] && trial[TURN] && trial[2 * TURN] && !trial[3 * TURN]);
        assert!(rest.iter().all(|&asks| asks == asking.asks));
        asking.copying(LONG, LONG / 16, |asks| assert_eq!(asks, rest[0], "the next trial begins with it"));
    }

    #[test]
    fn short_messages_and_short_slices_ask_for_nothing_and_take_no_part() {
        let mut asking = Asking::default();
        asking.copying(LONG - 1, LONG / 16, |asks| assert!(!asks));
        asking.copying(LONG, 64, |asks| assert!(!asks));
        assert_eq!(asking.turn, 0);
    }
}
