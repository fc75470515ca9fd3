//! Which way a call takes, found without a search of the table where that can be.

use super::Communicator;
use crate::error::Result;
use crate::regime::JOINT_LEAST;
use crate::select::{Choice, Collective, Selection, Single, Singles, Vector};

impl Communicator {
    /// What a call on a vector takes.
    ///
    /// # Errors
    /// As [`Selection::choose`].
    #[inline]
    pub(crate) fn choose(&self, what: Collective, vector: Vector) -> Result<Choice> {
        match self.chosen[what as usize].get() {
            Some((before, choice)) if before == vector => Ok(choice),
            _ => self.choose_anew(what, vector),
        }
    }

    #[inline(never)]
    fn choose_anew(&self, what: Collective, vector: Vector) -> Result<Choice> {
        let choice = self.selection.choose(what, vector)?;
        self.chosen[what as usize].set(Some((vector, choice)));
        Ok(choice)
    }

    /// Whether a call of `bytes` bytes surely takes one slot of lines, flat.
    #[inline]
    pub(crate) fn fits_a_slot(&self, what: Collective, bytes: usize) -> bool {
        bytes < self.slot_below[what as usize]
    }

    /// How cells are cut for a call of `bytes` bytes, if it surely goes through one of them, as far as this rank has a
    /// say: of what it gives at `given` (null for nothing), and of what it takes.
    #[inline]
    pub(crate) fn single(&self, what: Collective, bytes: usize, given: *const u8) -> Option<&Single> {
        let single = self.singles[what as usize].find(bytes)?;
        // What others may reach takes the longer way; so does who takes what may be done by both.
        let surely = match given.is_null() {
            _ if bytes < single.direct_from => true,
            true => bytes < JOINT_LEAST,
            false => self.seat.mapping().heap_offset(given, bytes).is_none(),
        };
        surely.then_some(single)
    }

    /// The same of a call that copies what it gives and what it takes, wherever they lie.
    #[inline]
    pub(crate) fn single_of_copied(&self, what: Collective, bytes: usize) -> Option<&Single> {
        self.singles[what as usize].find(bytes)
    }
}

/// The calls that go through one cell where no buffer lies in the heap: of fewer bytes than private ones that are
/// reached, or moved there (from `convert_from` on).
pub(super) fn singles(selection: &Selection, convert_from: u64) -> [Singles; 4] {
    Collective::ALL.map(|what| Singles::of(selection, what, convert_from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::select::Tuning;

    /// What was chosen is remembered until the table changes, and no longer.
    #[test]
    fn another_table_forgets_what_was_chosen() {
        let chosen = Communicator::threads(2, |mut comm| {
            let vector = Vector { element: 8, align: 8, ..Vector::of_bytes(8 * 5000) };
            ["cells", "exchange", "shares", "cells"].map(|regime| {
                let mut tuning = Tuning::default();
                tuning.force(&format!("allreduce:{regime}")).unwrap();
                comm.set_tuning(&tuning).unwrap();
                let (mut sum, rank) = (vec![0; 5000], comm.rank() as u64);
                comm.all_reduce_into(&vec![rank + 1; 5000], &mut sum, crate::operator::Sum).unwrap();
                assert!(sum.iter().all(|&sum| sum == 3));
                let remembered = comm.chosen[Collective::Allreduce as usize].get();
                assert!(remembered.is_some_and(|(before, _)| before.bytes == 8 * 5000), "{remembered:?}");
                comm.choose(Collective::Allreduce, vector).unwrap().regime.name()
            })
        });
        assert_eq!(chosen.unwrap(), [["cells", "exchange", "shares", "cells"]; 2]);
    }

    /// Who gives takes the short way with a private buffer of up to a cell, and with one in the heap below the size
    /// from which that is used there; who takes does where nothing is done by both ranks.
    #[test]
    fn who_gives_and_who_takes_know_when_a_call_goes_through_one_cell() {
        Communicator::threads(2, |mut comm| {
            let (private, shared) = (vec![0u8; 40_000], comm.alloc::<u8>(40_000).unwrap());
            let (private, shared, nothing) = (private.as_ptr(), shared.as_ptr(), std::ptr::null());
            let longest = |comm: &Communicator, what, given| {
                (1..40_000).filter(|&bytes| comm.single(what, bytes, given).is_some()).max().unwrap_or(0)
            };
            for what in [Collective::Broadcast, Collective::Reduce] {
                let direct = comm.selection.direct_from(what) as usize;
                let all = [private, shared, nothing].map(|given| longest(&comm, what, given));
                assert_eq!(all, [32 << 10, direct - 1, JOINT_LEAST - 1], "{what}");
            }
            let direct = comm.selection.direct_from(Collective::Allreduce) as usize;
            assert_eq!(longest(&comm, Collective::Allreduce, shared), direct - 1);
            assert_eq!(longest(&comm, Collective::Barrier, private), 0);
            for (rules, wanted) in [
                ("all:direct_from=2K", [32 << 10, 2047, JOINT_LEAST - 1]),
                ("all:reach_from=3K", [3071, 3071, 3071]),
                ("all:direct_from=2K,convert_from=5K", [5119, 2047, 5119]),
                ("all:direct_from=6K,convert_from=5K", [6143, 6143, 6143]),
                ("broadcast:cells,down_cell=4K", [4096, 4096, 4096]),
                ("broadcast:line", [0, 0, 0]),
            ] {
                let mut tuning = Tuning::default();
                tuning.force(rules).unwrap();
                comm.set_tuning(&tuning).unwrap();
                let all = [private, shared, nothing].map(|given| longest(&comm, Collective::Broadcast, given));
                assert_eq!(all, wanted, "{rules}");
            }
        })
        .unwrap();
    }
}
