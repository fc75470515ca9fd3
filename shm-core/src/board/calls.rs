//! The calls of a communicator: noted for others to compare with theirs (C2), ended, left by an error, and what stands
//! against the next one (C1).

use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{FlagWord, SharedBoard};
use crate::counters::add;
use crate::error::{Error, Result};
use crate::protocol::{Board, Edge, RingName, Stamp, Word};
use crate::segment::header::Standing;
use crate::segment::layout::{CALLS, MOST_RANKS};

/// The tag of a call whose arguments a rank refused.
const REFUSED: u32 = 0xff_ffff;

/// What goes into the tags of later calls, of 24 bits: order and number count.
#[inline]
fn mixed(chain: u32) -> u32 {
    chain.wrapping_mul(0x9e37_79b1) >> 8
}

fn is_refused(note: Stamp) -> bool {
    note.0 & u64::from(REFUSED) == u64::from(REFUSED)
}

/// In the place of a call's note: the rank is out of a call in which it has found where the shared result lies.
const FINISHED: u64 = 1;

/// Faults of a communicator: their kind, below that the rank that noticed, and last one plus the rank that differs from
/// it, has refused, or has dropped its handle.
pub(super) const FAULT_MISMATCH: u64 = 1 << (2 * FAULT_RANK_BITS);
pub(super) const FAULT_REFUSED: u64 = 2 << (2 * FAULT_RANK_BITS);
pub(super) const FAULT_DROPPED: u64 = 3 << (2 * FAULT_RANK_BITS);
const FAULT_KIND: u64 = 3 << (2 * FAULT_RANK_BITS);
const FAULT_RANK_BITS: u32 = 24;
const _: () = assert!(MOST_RANKS < 1 << FAULT_RANK_BITS);

/// Between two looks whether others have left a call that this rank leaves by an error.
const LEAVING: Duration = Duration::from_micros(50);

/// The least that it sleeps meanwhile, even if its hook would have it come back at once.
const SHORTEST: Duration = Duration::from_micros(5);

impl SharedBoard {
    pub(super) fn call_word(&self, rank: usize, call: u64) -> &FlagWord {
        self.word(rank, self.call_offset(call))
    }

    /// Where a rank notes a call, in its area.
    #[inline]
    fn call_offset(&self, call: u64) -> usize {
        self.area.calls + (call as usize % CALLS) * 8
    }

    /// Whether this communicator, and the job, can go on; if not, says that this rank is out of its last call, so that
    /// who leaves that by an error does not wait for it.
    #[inline]
    pub fn may_begin(&self) -> Result<()> {
        self.check().inspect_err(|_| {
            // Of a call that it refused nobody waits for it; and that note may be in the place of an earlier call's.
            if self.call.get().1 != REFUSED {
                self.unnote();
            }
        })
    }

    /// Begins a call that does not go in lines, which all ranks must tag alike, where this rank's neighbours run.
    ///
    /// # Errors
    /// As [`begin`](Self::begin).
    #[inline]
    pub fn begin_at_home(&self, tag: u32) -> Result<()> {
        self.may_begin()?;
        if self.shares_cores {
            self.look_for_home();
        }
        self.begin_now(tag)
    }

    /// Begins a call that all ranks must tag alike.
    ///
    /// # Errors
    /// When this communicator, or the job, cannot go on.
    #[inline]
    pub fn begin(&self, tag: u32) -> Result<()> {
        self.may_begin()?;
        self.begin_now(tag)
    }

    /// The same of one that [may begin](Self::may_begin).
    #[inline]
    fn begin_now(&self, tag: u32) -> Result<()> {
        self.note(tag);
        // E1, who may reach into buffers: noted before this look.
        self.watch.light_fence();
        self.check_in(0).inspect_err(|_| self.unnote())
    }

    /// Says that this rank takes no part, or no further part, in the call that it noted last.
    pub fn unnote(&self) {
        let (call, _) = self.call.get();
        let word = if self.sees_result.get() { FINISHED } else { 0 };
        self.call_word(self.rank, call).0.store(word, Ordering::Release);
    }

    /// Notes that this rank has found where the shared result of the call that is running lies.
    pub fn see_result(&self) {
        self.sees_result.set(true);
    }

    /// Whether it has.
    pub fn sees_result(&self) -> bool {
        self.sees_result.get()
    }

    /// The ranks that never found where the shared result lies that this rank provided for the last call, and will not
    /// any more. Of a call that this rank has left by an error: then all others are out of it, or were never told.
    pub fn never_saw_result(&self) -> usize {
        if !self.lends.get() {
            return self.layout.size;
        }
        let (call, tag) = self.call.get();
        let others = (0..self.layout.size).filter(|&other| other != self.rank);
        let never = |&other: &usize| {
            let word = self.call_word(other, call).0.load(Ordering::Acquire);
            // A note of an earlier call, of another one in this one's place, or one that was taken back (0).
            let stamp = Stamp(word);
            word != FINISHED && stamp != Stamp::new(call, tag) && stamp.position() <= call
        };
        others.filter(never).count()
    }

    /// Leaves a call by an error, or by a panic: the others hear of it, and what this rank lent in it is its caller's
    /// again when this returns, since all who could reach it have finished the call (`done` at these positions of the
    /// up and the down ring), left it too, or are gone. Who has yet to begin it finds that this communicator cannot go
    /// on.
    #[cold]
    pub fn leave(&self, last_up: u64, last_down: u64) {
        if std::thread::panicking() {
            let _ = self.seat.condemn(self.seat.rank());
        } else if self.check().is_ok() {
            self.give_up();
        }
        self.unnote();
        if !self.lends.get() {
            return;
        }
        // E1, who lent: what stands against the call is stored before the others' notes are looked at.
        self.seat.heavy_fence();
        let (call, _) = self.call.get();
        let mut panic = None;
        for other in (0..self.layout.size).filter(|&other| other != self.rank) {
            while self.is_within(other, call, last_up, last_down) {
                // Who is waited for may itself be waiting, in an operator, for what this rank's hook moves on.
                let mut nap = LEAVING;
                if !std::thread::panicking() && panic.is_none() {
                    match catch_unwind(AssertUnwindSafe(|| self.idle())) {
                        Ok(due) => nap = due.min(LEAVING),
                        // What was lent is still in use.
                        Err(thrown) => panic = Some(thrown),
                    }
                }
                std::thread::sleep(nap.max(SHORTEST));
            }
        }
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    /// Whether `other` is in the call of this number, and may reach into what was lent to it.
    fn is_within(&self, other: usize, call: u64, last_up: u64, last_down: u64) -> bool {
        let noted = self.call_word(other, call).0.load(Ordering::Acquire) == Stamp::new(call, self.call.get().1).0;
        let done = |ring, last| self.done(ring, other).observe(Edge::UpReuse) >= last;
        let member = self.members[other];
        noted
            && !(done(RingName::Up, last_up) && done(RingName::Down, last_down))
            && (self.seat.reach().is_here(member)
                || (self.seat.mapping().rank(member).standing() as u32) < Standing::Left as u32)
    }

    /// The call that is running has ended well: nothing is lent any more.
    #[inline]
    pub fn keep_own(&self) {
        self.lends.set(false);
    }

    /// Whether this communicator, and the job, can go on with the next call.
    #[inline]
    pub fn check(&self) -> Result<()> {
        self.check_in(1)
    }

    /// The same with the call that was noted last, or with the first behind it.
    #[inline]
    fn check_in(&self, behind: u64) -> Result<()> {
        if self.watch.failed_rank().is_some() || self.header().fault.load(Ordering::Acquire) != 0 {
            return Err(self.fault_in(self.call.get().0 + behind).expect("one of the two was just seen"));
        }
        Ok(())
    }

    /// The tag of the next call, given what the call itself is: the calls before it go into it too, so that ranks which
    /// once differed, or of which one refused its arguments, notice at the next call that waits for all, even if the
    /// call in which they differed waited for nobody.
    #[inline]
    pub fn chained(&self, tag: u32) -> u32 {
        let chained = (tag ^ self.chain.get()) & 0xff_ffff;
        if chained == REFUSED { 0 } else { chained }
    }

    /// All ranks have to go on by this, between the same two calls: goes into the tags of what follows, so that a rank
    /// that goes on by something else is noticed as one that makes another call.
    pub fn go_on_by(&self, what: impl Hash) {
        let mut hasher = DefaultHasher::new();
        what.hash(&mut hasher);
        self.chain.set(mixed(self.chain.get() ^ (hasher.finish() >> 40) as u32));
    }

    /// Notes a call and its tag, for others to compare with theirs: before this rank waits for anybody in it.
    #[inline]
    pub fn note(&self, tag: u32) {
        self.note_call(tag);
        add(&self.tally.calls, 1);
    }

    /// Tells the others that this rank takes no part in this call, because its arguments were wrong.
    pub fn refuse(&self) {
        let before = self.chain.get();
        self.note_call(REFUSED);
        self.chain.set(mixed(before ^ REFUSED));
        self.refused_until.set(self.call.get().0 + CALLS as u64);
        self.watch.ring_if_needed();
    }

    /// Gives up if the note of this call would take the place of that of a call that this rank has refused, and another
    /// has yet to come to: that one would never learn of it. Calls that all ranks make do not come so far ahead of each
    /// other.
    #[cold]
    fn heed_refusal(&self, call: u64) {
        let stamp_of = |rank| Stamp(self.call_word(rank, call).0.load(Ordering::Acquire));
        let own = stamp_of(self.rank);
        let has_come = |other| stamp_of(other) == own || stamp_of(other).position() > own.position();
        if is_refused(own) && !(0..self.layout.size).all(has_come) {
            self.give_up();
        }
    }

    #[inline]
    fn note_call(&self, tag: u32) {
        let call = self.call.get().0 + 1;
        if call <= self.refused_until.get() {
            self.heed_refusal(call);
        }
        self.call.set((call, tag));
        self.chain.set(mixed(tag));
        self.sees_result.set(false);
        // C2, writer.
        self.own_word(self.call_offset(call)).0.store(Stamp::new(call, tag).0, Ordering::Release);
    }

    /// Says that no call so far was the program's own: it does not count them.
    pub fn uncount_all(&self) {
        self.unasked.set(self.call.get().0);
    }

    /// Says that the last call was a part of one that goes on: the program counts them as one.
    pub fn uncount_last(&self) {
        self.unasked.set(self.unasked.get() + 1);
    }

    /// The error that stands for this communicator, if any.
    pub(super) fn fault(&self) -> Option<Error> {
        self.fault_in(self.call.get().0)
    }

    /// The same, as a rank hears of it in its call of that number.
    fn fault_in(&self, call: u64) -> Option<Error> {
        if let Some(rank) = self.watch.failed_rank() {
            return Some(Error::RankFailed { rank });
        }
        // C1, reader.
        let fault = self.header().fault.load(Ordering::Acquire);
        let rank_at = |shift: u32| (fault >> shift) as usize & ((1 << FAULT_RANK_BITS) - 1);
        let rank = rank_at(0).checked_sub(1)?;
        Some(match fault & FAULT_KIND {
            FAULT_REFUSED => Error::Refused { rank },
            FAULT_DROPPED => Error::Dropped { rank },
            _ => Error::Mismatch {
                ranks: [rank, rank_at(FAULT_RANK_BITS)],
                own: self.rank,
                own_call: format!("its call {}", call - self.unasked.get()),
            },
        })
    }

    /// Says that `other` made another call: what it lends, or wants, has `theirs` bytes where this rank's message has
    /// `own`.
    #[cold]
    pub fn differs(&self, other: usize, theirs: u64, own: usize) -> Error {
        self.set_fault(FAULT_MISMATCH, other);
        match self.fault() {
            Some(Error::Mismatch { ranks, own: called, own_call }) if ranks == [other, self.rank] => Error::Mismatch {
                ranks,
                own: called,
                own_call: format!("{own_call} with {own} bytes, where the other's buffer has {theirs}"),
            },
            other => other.expect("it was just written"),
        }
    }

    /// Whether one of the last calls differed between this rank and another; and if so, the rank that refused its
    /// arguments to it, if one did.
    pub(super) fn differing_call(&self, other: usize) -> Option<Option<usize>> {
        (0..CALLS as u64).find_map(|slot| {
            // C2, reader.
            let [own, theirs] =
                [self.rank, other].map(|rank| Stamp(self.call_word(rank, slot).0.load(Ordering::Acquire)));
            let differs = own != theirs && own.same_position(theirs);
            differs.then(|| if is_refused(theirs) { Some(other) } else { is_refused(own).then_some(self.rank) })
        })
    }

    /// C1, writer: says that this communicator cannot go on, and why; the first word stands.
    pub(super) fn set_fault(&self, kind: u64, rank: usize) {
        let fault = &self.header().fault;
        let word = kind | (self.rank as u64) << FAULT_RANK_BITS | (rank as u64 + 1);
        let _ = fault.compare_exchange(0, word, Ordering::AcqRel, Ordering::Acquire);
        self.watch.ring_if_needed();
    }

    /// C3, writer: says that this rank has dropped its handle, and publishes nothing more here.
    pub fn drop_out(&self) {
        self.own_word(self.area.dropped).0.store(1, Ordering::Release);
        self.watch.ring_if_needed();
    }

    /// Whether another has.
    pub(super) fn has_dropped(&self, other: usize) -> bool {
        // C3, reader.
        self.word(other, self.area.dropped).0.load(Ordering::Acquire) != 0
    }

    /// Says that this rank goes on no further.
    pub fn give_up(&self) {
        self.set_fault(FAULT_REFUSED, self.rank);
    }
}

#[cfg(test)]
mod tests;
