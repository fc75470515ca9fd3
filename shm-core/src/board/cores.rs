//! Who shares a core with whom: whether a rank that waits had better give its core away.
//!
//! Where ranks outnumber cores a wait ends soonest when those who have yet to come get the core. Once all that share
//! this rank's core have come as far as it has, there is nobody to give it to: a yield would cost two changes of
//! address space, and what is missing is about to come from another core. On two cores the ranks of each pass the core
//! on p/2 - 1 times a barrier then, and not p/2 times.
//!
//! Each rank says which core it is on, whenever it looks and finds that this has changed; how far it has come its notes
//! of calls say. Nothing hangs on either but how long a wait takes, so the words have no order, and may be out of date.

use std::sync::atomic::Ordering;

use super::SharedBoard;
use crate::protocol::Stamp;

impl SharedBoard {
    /// Whether another rank on this core could do something while this one waits for `writer`: it is the writer, or has
    /// not yet come to this rank's call. What ranks do that are not in this communicator nobody knows: they may want
    /// any core.
    pub(super) fn is_core_wanted(&self, writer: usize) -> bool {
        if self.members.len() < self.seat.mapping().layout.ranks {
            return true;
        }
        let core = self.note_core();
        let shares = |rank: usize| self.word(rank, self.area.core).0.load(Ordering::Relaxed) == core;
        let mut others = (0..self.layout.size).filter(|&rank| rank != self.rank);
        core == 0 || shares(writer) || others.any(|rank| shares(rank) && self.is_behind(rank))
    }

    /// Says which core this rank is on, and returns it: one more than the system's number, 0 where that is unknown.
    fn note_core(&self) -> u64 {
        let core = nix::sched::sched_getcpu().map_or(0, |core| core as u64 + 1);
        if self.core.replace(core) != core {
            self.word(self.rank, self.area.core).0.store(core, Ordering::Relaxed);
        }
        core
    }

    /// Whether `other` has not yet come to the call that this rank noted last.
    fn is_behind(&self, other: usize) -> bool {
        let (call, _) = self.call.get();
        Stamp(self.call_word(other, call).0.load(Ordering::Relaxed)).position() < call
    }
}

#[cfg(test)]
mod tests {
    use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
    use nix::unistd::Pid;

    use crate::communicator::Communicator;

    /// Whether each of two ranks on these processors finds its core wanted while it waits for the other, which has come
    /// as far.
    fn wanted(processors: [usize; 2]) -> Vec<bool> {
        let ended = Communicator::threads(2, |comm| {
            let mut mask = CpuSet::new();
            mask.set(processors[comm.rank()]).unwrap();
            sched_setaffinity(Pid::from_raw(0), &mask).unwrap();
            comm.enter().unwrap().board.note_core();
            comm.barrier().unwrap();
            let wanted = comm.enter().unwrap().board.is_core_wanted(1 - comm.rank());
            comm.barrier().unwrap();
            wanted
        });
        ended.unwrap()
    }

    #[test]
    fn a_core_is_wanted_by_those_who_share_it() {
        let usable = sched_getaffinity(Pid::from_raw(0)).unwrap();
        let mut usable = (0..CpuSet::count()).filter(|&processor| usable.is_set(processor).unwrap_or(false));
        let one = usable.next().unwrap();
        assert_eq!(wanted([one; 2]), [true; 2]);
        if let Some(other) = usable.next() {
            assert_eq!(wanted([one, other]), [false; 2]);
        }
    }

    /// A rank wants its core while it has yet to come to the call that another one on it has noted, whoever that waits
    /// for.
    #[test]
    fn a_core_is_wanted_by_who_is_behind() {
        let usable = sched_getaffinity(Pid::from_raw(0)).unwrap();
        let mut usable = (0..CpuSet::count()).filter(|&processor| usable.is_set(processor).unwrap_or(false));
        let (one, other) = (usable.next().unwrap(), usable.next());
        let found = Communicator::threads(3, |comm| {
            // Rank 0 shares its core with rank 2, and waits for rank 1.
            let mut mask = CpuSet::new();
            mask.set(if comm.rank() == 1 { other.unwrap_or(one) } else { one }).unwrap();
            sched_setaffinity(Pid::from_raw(0), &mask).unwrap();
            comm.enter().unwrap().board.note_core();
            comm.barrier().unwrap();
            comm.barrier().unwrap();
            if comm.rank() > 0 {
                return None;
            }
            let board = &comm.enter().unwrap().board;
            // Both have published their part of the last call, and note it soon.
            while board.is_behind(1) || board.is_behind(2) {
                std::thread::yield_now();
            }
            let before = board.is_core_wanted(1);
            board.note(1);
            Some((before, board.is_behind(2), board.is_core_wanted(1)))
        });
        // Where there is one core, the rank that is waited for wants it.
        assert_eq!(found.unwrap()[0], Some((other.is_none(), true, true)));
    }
}
