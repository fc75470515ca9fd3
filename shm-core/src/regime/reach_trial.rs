//! How the root of a long broadcast to one other rank sends its private buffer: by cells, or lent, and who then moves
//! it. Found by timing calls, anew all the time.
//!
//! Long is from 128 KiB on. What is lent is moved by the kernel, once: by both ranks, a half each (`joint`), or by the
//! other one, the taker, alone. Through cells it is moved twice, at the speed of the ranks' own copies, and while the
//! one rank takes the other one fills. What is quickest depends on what the caches hold, on how far apart the cores
//! are, and on whether each rank has one; in virtual machines it changes while a job runs. On a machine with small
//! caches (AMD EPYC, 8 MiB of third level by its own word) 4 MiB took 530 us through cells and 375 to 455 lent while
//! its two cores were near each other, 780 and 550 while they were far apart. Of an Intel Xeon (L2 2 MiB) are these, in
//! us until the taker has loaded the message:
//!
//! |         | unchanged: cells | by both | by the taker | written anew: cells | by both | by the taker |
//! |---------|-------|-------|-------|-------|-------|-------|
//! | 128 KiB | 10.8  | 19.4  | 8.9   | 10.2  | 17.6  | 26.4  |
//! | 256 KiB | 19.3  | 25.8  | 15.7  | 19.1  | 26.7  | 38.0  |
//! | 512 KiB | 36.9  | 43.0  | 29.7  | 36.8  | 47.4  | 71.3  |
//! | 1 MiB   | 73.3  | 85.5  | 80.3  | 75.6  | 95.9  | 180   |
//! | 4 MiB   | 502   | 374   | 577   | 502   | 384   | 615   |
//!
//! A message that has not changed lies in the taker's cache as well, where it alone has looked at it.
//!
//! The root decides alone, and the taker finds what it did. In a trial the taker times calls: from where it finds that
//! the root is there to where it has the message, so that it says nothing how late either came. Then it loads the
//! message, unless the caches do not hold it, as part of the figure: half of one that both have moved was stored by the
//! root's core, whose cache may have it. The figure is left as those of the readers of cells are (`pace`); the root
//! waits for it, no longer than the call has taken, and looks at it at its next call; one that is missed is missed. A
//! root that has filled cells waits until they are read: it would otherwise be ahead of the figures. Other calls whose
//! message the ring holds it leaves once that is filled; to a taker that comes late such a message costs least, and so
//! trials find.
//!
//! Between trials the taker leaves a figure of what it has moved alone, too, without loading it: by these the root sees
//! that messages have come to be written anew, and goes back to what is usual.
//!
//! While it is being found out how cells are best filled, what they cost says nothing: no trial begins, unless messages
//! are lent, when nothing but trials goes through cells. Then it takes many of these to find the ways, and until then
//! cells may be judged too dear; such trials do not become rarer.

mod class;

use super::Engine;
use crate::pace::{self, Lines, Way, ticks};
use crate::protocol::{Board, RingName};
use crate::select::Collective;

use class::Class;

/// Messages of fewer bytes go through cells.
const LEAST: usize = 128 << 10;

/// Classes of messages, by the power of two, from [`LEAST`] on; the last takes all longer ones.
const CLASSES: usize = 7;

/// How a message gets from the root's private buffer to the taker's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transfer {
    /// Through cells.
    Cells,
    /// Lent: each moves a half.
    ByBoth,
    /// Lent: the taker moves all of it.
    ByTaker,
}

impl Transfer {
    const ALL: [Self; 3] = [Self::Cells, Self::ByBoth, Self::ByTaker];
}

/// The next call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Next {
    pub transfer: Transfer,
    /// Whether it is part of a trial.
    pub timed: bool,
}

/// A call of a trial: its position, its bytes, and when its root began it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timed {
    position: u64,
    bytes: usize,
    begun: u64,
}

/// What is known of broadcasts from one root.
pub(super) struct ReachTrial {
    classes: [Class; CLASSES],
    /// The call whose figure has yet to come: its position and its class.
    waiting: Option<(u64, usize, Next)>,
    /// Whether a taker has declined what was lent to it.
    is_declined: bool,
}

impl ReachTrial {
    /// Nothing is known; before it is, and where nothing is clearly better, messages go through cells if `keeps` says
    /// of so many bytes that the caches keep them, and all that belongs to them. Others both ranks move.
    pub fn new(keeps: impl Fn(usize) -> bool) -> Self {
        let class = |class: usize| Class::new(if keeps(LEAST << class) { Transfer::Cells } else { Transfer::ByBoth });
        Self { classes: std::array::from_fn(class), waiting: None, is_declined: false }
    }

    /// The same, where messages go by this transfer.
    #[cfg(test)]
    fn by(transfer: Transfer) -> Self {
        Self { classes: std::array::from_fn(|_| Class::new(transfer)), waiting: None, is_declined: false }
    }

    /// How a message of `bytes` bytes goes, [`LEAST`] at least, whose call has this position; `figure` gives the one
    /// that the taker has left last. A trial may begin where the ways into cells are `settled`.
    pub fn next(&mut self, bytes: usize, position: u64, figure: impl FnOnce() -> u64, settled: bool) -> Next {
        if self.is_declined {
            return Next { transfer: Transfer::Cells, timed: false };
        }
        if let Some((position, class, last)) = self.waiting.take() {
            let (class, figure) = (&mut self.classes[class], pace::cost_at(figure(), position));
            match figure {
                figure if last.timed => class.learn(last.transfer, figure),
                Some(figure) => class.watch(figure),
                None => {}
            }
        }
        let class = ((bytes / LEAST).max(1).ilog2() as usize).min(CLASSES - 1);
        let next = self.classes[class].next(settled);
        let leaves_figure = next.timed || next.transfer == Transfer::ByTaker;
        self.waiting = leaves_figure.then_some((position, class, next));
        next
    }
}

impl Engine {
    /// Has long broadcasts from this rank go by this transfer, until trials say otherwise.
    #[cfg(test)]
    pub fn send_by(&mut self, transfer: Transfer) {
        self.reach_trial = Some(ReachTrial::by(transfer));
    }

    /// Whether trials say if the root's private buffer is lent in a broadcast of so many bytes that two ranks try to do
    /// together. Both ask: whether they reach each other is found out by asking.
    pub(super) fn tries_to_reach(&self, bytes: usize) -> bool {
        bytes >= LEAST && self.thresholds.tries(Collective::Broadcast) && self.board.can_reach()
    }

    /// How the root goes about it at this position, in slices of `slice` bytes if it fills cells.
    pub(super) fn transfer(&mut self, (bytes, slice): (usize, usize), position: u64) -> (Transfer, Option<Timed>) {
        let Self { board, .. } = self;
        let figure = || board.figure(RingName::Line, 1 - board.rank());
        let settled = !self.down_pace.compares(slice, Lines::Left);
        // Beside a message and its copy lie cells: as much as both is too much.
        let keeps = |bytes: usize| self.thresholds.way_of_results(4 * bytes) == Way::Cached;
        let trial = self.reach_trial.get_or_insert_with(|| ReachTrial::new(keeps));
        let Next { transfer, timed } = trial.next(bytes, position, figure, settled);
        let timed = timed.then(|| {
            self.board.want_figure(position);
            Timed { position, bytes, begun: ticks() }
        });
        (transfer, timed)
    }

    /// Ends a call of a trial, of which the taker has the message: its figure will be there, or is late. A tick a byte
    /// is several times what loading them takes; the call may have taken longer, where the taker came late.
    pub(super) fn await_reach_figure(&self, Timed { position, bytes, begun }: Timed) {
        let now = ticks();
        let most = now.saturating_sub(begun).min(bytes as u64);
        while pace::cost_at(self.board.figure(RingName::Line, 1 - self.board.rank()), position).is_none()
            && ticks().wrapping_sub(now) < most
        {
            if self.takes { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
    }

    /// The taker has declined what was lent: once is enough.
    pub(super) fn reach_no_more(&mut self) {
        if let Some(trial) = &mut self.reach_trial {
            trial.is_declined = true;
        }
    }

    /// Tells the root how long the taker was with the message of this position, since it found the root there: if the
    /// root wants to know, or the taker has moved all of it `alone`.
    ///
    /// # Safety
    /// The message's `bytes` bytes are at `message`, and nobody stores there.
    pub(super) unsafe fn leave_reach_figure(
        &self,
        (message, bytes): (*const u8, usize),
        (position, begun): (u64, u64),
        alone: bool,
    ) {
        let is_wanted = self.board.wants_figure(1 - self.board.rank(), position);
        if !is_wanted && !alone {
            return;
        }
        if is_wanted && self.thresholds.way_of_results(2 * bytes) == Way::Cached {
            // SAFETY: this contract.
            unsafe { pace::load(message, bytes) };
        }
        pace::leave_figure(&self.board, RingName::Line, position, bytes, begun);
    }
}

#[cfg(test)]
mod tests;
