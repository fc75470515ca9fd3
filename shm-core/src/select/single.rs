//! The calls between two ranks that surely go through one cell, if no buffer is used where it lies: their sizes are
//! known beforehand, and nothing more is chosen when they come.

use super::choice::{Choice, Collective, Regime, Vector};
use super::selection::Selection;

/// Those of some sizes, of one collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Single {
    /// Bytes: from, and below.
    from: usize,
    below: usize,
    /// Bytes and number of the cells that are used.
    pub cell: usize,
    pub slots: usize,
    /// Bytes from which buffers in the job's heap are used where they lie: from there on these are the calls of who
    /// gives what is private, if the other one does too.
    pub direct_from: usize,
}

/// The bands of one collective whose calls take the short way, at most: what further ones have takes the long one.
const MOST: usize = 3;

/// Those of a collective, rising; what follows the last one takes no call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Singles([Option<Single>; MOST]);

impl Singles {
    /// The one for a call of `bytes` bytes.
    #[inline]
    pub fn find(&self, bytes: usize) -> Option<&Single> {
        self.0
            .iter()
            .map_while(Option::as_ref)
            .find(|single| bytes < single.below)
            .filter(|single| bytes >= single.from)
    }

    /// Those of a collective by what the table chooses, of messages that are too short to stay where they lie in
    /// private memory: to be moved into the heap (as they are from `convert_from` bytes on, if they are used there),
    /// or to be reached.
    pub fn of(selection: &Selection, what: Collective, convert_from: u64) -> Self {
        let most = convert_from.max(selection.direct_from(what)).min(selection.reach_from(what));
        let regime = if what == Collective::Allreduce { Regime::Exchange } else { Regime::Cells };
        // With tracing, every call goes the long way, which says what it chose.
        if selection.size() != 2 || selection.debug || what == Collective::Barrier {
            return Self::default();
        }
        let bands = selection.bands(what);
        let of_band = |at: usize| {
            let from = bands[at].from.max(1);
            let choice = selection.choose(what, Vector::of_bytes(from as usize)).ok()?;
            let (cell, slots) = cut(what, &choice);
            let next = bands.get(at + 1).map_or(u64::MAX, |band| band.from);
            // An element is no longer than the message, so that no cell has to be larger for it.
            let below = next.min(most).min(cell as u64 + 1);
            let direct_from = usize::try_from(selection.direct_from(what)).unwrap_or(usize::MAX);
            let single = Single { from: from as usize, below: below as usize, cell, slots, direct_from };
            (choice.regime == regime && from < below).then_some(single)
        };
        let mut found = (0..bands.len()).filter_map(of_band);
        Self(std::array::from_fn(|_| found.next()))
    }
}

/// Bytes and number of the cells that calls go through: down from the root, or up.
fn cut(what: Collective, choice: &Choice) -> (usize, usize) {
    match what {
        Collective::Broadcast => (choice.down_cell, choice.down_slots),
        _ => (choice.up_cell, choice.up_slots),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::select::Tuning;

    /// The short way takes no call that the long one would make otherwise.
    #[test]
    fn the_table_chooses_the_same() {
        let mut seen = 0;
        for rules in [
            "",
            "all:cells,cell=4K",
            "broadcast:cells,down_cell=64",
            "allreduce:exchange,cell=192",
            "all:direct_from=2K",
            "all:shares",
        ] {
            let mut table = Tuning::default();
            table.force(rules).unwrap();
            let selection = table.select(2, 1);
            for what in Collective::ALL {
                let singles = Singles::of(&selection, what, u64::MAX);
                for bytes in 0..40_000 {
                    let Some(single) = singles.find(bytes) else { continue };
                    seen += 1;
                    for element in [1, 8, bytes] {
                        let vector = Vector { element, align: 8, commutative: element != 8, ..Vector::of_bytes(bytes) };
                        let choice = selection.choose(what, vector).unwrap();
                        let wanted = if what == Collective::Allreduce { Regime::Exchange } else { Regime::Cells };
                        assert_eq!(choice.regime, wanted, "{rules}: {what} of {bytes}");
                        assert_eq!(cut(what, &choice), (single.cell, single.slots), "{rules}: {what} of {bytes}");
                        assert!(bytes <= single.cell && single.direct_from as u64 == selection.direct_from(what));
                    }
                }
            }
        }
        assert!(seen > 10_000, "{seen}");
    }
}
