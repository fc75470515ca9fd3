//! Some ranks publish slices, some read them: gathers, scatters, their all-to-all forms, and scans.
//!
//! Who writes and who reads follows from the call and the rank. A rank publishes each slice for its readers, in a slot
//! each, and reads the slots of its sources; either may be nobody. Who reads nothing waits for nothing but the readers
//! of the slots that it fills again, and so runs ahead as far as the slots go.
//! [`exchange_slices`](super::exchange::exchange_slices) is the case in which all ranks do both, and all with all.

use super::board::{Board, Stamp};
use super::location::Location;
use super::ring::{Readers, Ring};
use crate::error::Result;

/// Whose slots a rank reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sources {
    /// Nobody's.
    Nobody,
    /// One rank's.
    One(usize),
    /// Those of all lower ranks.
    Below,
    /// All others'.
    Others,
}

impl Sources {
    /// The ranks, from the reader's next one on where all are meant: so that not all readers begin with the same one.
    pub fn ranks(self, me: usize, size: usize) -> impl Iterator<Item = usize> {
        let (first, then) = match self {
            Sources::Nobody => (0..0, 0..0),
            Sources::One(rank) => (rank..rank + 1, 0..0),
            Sources::Below => (0..me, 0..0),
            Sources::Others => (me + 1..size, 0..me),
        };
        first.chain(then)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(self, me: usize, size: usize) -> bool {
        self.ranks(me, size).next().is_none()
    }
}

/// Where the payload of a source lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The slot.
    pub slot: usize,
    /// Whether it is that of the reader, not of the source.
    pub crossed: bool,
    /// What the source said of it.
    pub location: Location,
}

/// What is done with the payload of [`deliver`] while the protocol holds the slots.
pub trait Delivery {
    /// Where the own payload lies: in cells, or whole in a buffer that is lent.
    fn location(&self) -> Location {
        Location::CELL
    }

    /// Where the own payload lies for those who may find that they do not reach it, where [all offer](super::mutual)
    /// theirs.
    fn offered(&self) -> Location {
        self.location()
    }

    /// Whether `rank` lent its payload whole, so that it is not waited for again.
    fn has(&self, _rank: usize) -> bool {
        false
    }

    /// Whether there is something to read in this slice, which is not the first, of `rank`; if not, it is not waited
    /// for.
    fn takes(&self, _slice: u64, _rank: usize) -> bool {
        true
    }

    /// Positions that the call takes at least, the same on all ranks: those that it has no use for are passed over.
    fn positions(&self) -> u64 {
        0
    }

    /// Whether cells change hands between two ranks from turn to turn of the ring: the same on both, where both publish
    /// and both read every slice.
    fn crosses(&self) -> bool {
        false
    }

    /// Fills the own slot of a slice, or that of the other rank where they are crossed.
    fn write(&mut self, slice: u64, slot: usize, crossed: bool);

    /// Called once the own first slice is published, and before this rank waits: for what nobody waits for.
    fn meanwhile(&mut self) {}

    /// Reads (or notes) the payload of a source: in its slot, in the own one where they are crossed, or where the
    /// location says. A slot stays as it is until after [`complete`](Delivery::complete).
    ///
    /// # Errors
    /// When it cannot be reached.
    fn read(&mut self, slice: u64, rank: usize, from: Origin) -> Result<()>;

    /// Takes the own part of all that `rank` has [offered](super::offer) at that location; says whether it could be
    /// reached. Part of it may have been taken where it could not.
    ///
    /// # Errors
    /// When the two ranks do not agree on how much it is.
    fn take(&mut self, _rank: usize, _location: Location) -> Result<bool> {
        Ok(false)
    }

    /// Puts the own part where the root, `root`, has [opened](super::opening) its buffer to it; says whether all of it
    /// is there. Part of it may be where not all is.
    ///
    /// # Errors
    /// When the two ranks do not agree on how much it is.
    fn put(&mut self, _root: usize, _opened: Location) -> Result<bool> {
        Ok(false)
    }

    /// All sources' part of a slice is there; what lies in cells lies in slot `slot` of their ranks. Not called where
    /// there are no sources.
    ///
    /// # Errors
    /// When payload cannot be reached.
    fn complete(&mut self, _slice: u64, _slot: usize) -> Result<()> {
        Ok(())
    }
}

/// Publishes the own slices for `readers` and reads those of `sources`, as every rank of the communicator does by its
/// own part: the readers of a rank are those that have it among their sources. Takes `slices` positions, which must be
/// 1 at least and the same on all ranks, or as many as the work says, if those are more.
///
/// A rank publishes slice `s` before it reads slice `s - 1`. Its slot may be filled again when the readers of its last
/// use are past it: the ranks that have this one among their sources, and no others. Where a rank has published slice
/// `s` it has read all of slice `s - 2`: who acquires that stamp knows it. Who reads nothing says at once that it has
/// read all.
///
/// Two ranks that both read all may write each where it read the other's payload in the turn of the ring before
/// ([`Ring::cross`]).
///
/// # Errors
/// When a rank has failed or made another call, or payload cannot be reached.
#[inline]
pub fn deliver<B: Board>(
    board: &B,
    ring: &mut Ring,
    (readers, sources): (Option<&Readers>, Sources),
    slices: u64,
    tag: u32,
    work: &mut impl Delivery,
) -> Result<()> {
    let first = ring.take(work.positions().max(slices));
    let last = first + slices - 1;
    // What is passed over has nothing to read.
    let end = ring.next_position() - 1;
    let (me, size) = (board.rank(), board.size());
    let location = work.location();
    let reads = !sources.is_empty(me, size);
    let crosses = size == 2 && work.crosses();
    for turn in 0..=slices {
        let crossed = crosses && turn < slices && ring.cross(first + turn);
        if let (Some(readers), true) = (readers, turn < slices && !(location.whole && turn > 0)) {
            let position = first + turn;
            let slot = ring.claim(board, position)?;
            if !location.is_lent() {
                work.write(turn, slot, crossed);
            }
            let until = if location.whole { last } else { position };
            ring.publish_at(board, position, until, tag, readers, location);
        }
        if turn == 0 {
            work.meanwhile();
            if !reads {
                ring.finish(board, end);
            }
        }
        if let (Some(slice), true) = (turn.checked_sub(1), reads) {
            let position = first + slice;
            let (slot, stamp) = (ring.slot(position), Stamp::new(position, tag));
            for rank in sources.ranks(me, size) {
                if work.has(rank) || slice > 0 && !work.takes(slice, rank) {
                    continue;
                }
                let location = ring.expect_stamped(board, rank, slot, stamp)?;
                ring.know(rank, if slice == 0 { position - 1 } else { position - 2 });
                work.read(slice, rank, Origin { slot, crossed: crosses && ring.is_crossed(slot), location })?;
            }
            if slice == 0 && sources == Sources::Others {
                ring.prove(first - 1);
            }
            work.complete(slice, slot)?;
            // Who lent waits for the last word alone.
            if slice + 1 == slices {
                ring.finish(board, end);
            } else if !sources.ranks(me, size).all(|rank| work.has(rank)) {
                ring.finish(board, position);
            }
        }
    }
    if location.is_lent() { ring.settle(board, first) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_the_ranks_that_they_say() {
        let ranks = |sources: Sources, me| sources.ranks(me, 5).collect::<Vec<_>>();
        assert_eq!(ranks(Sources::Others, 2), [3, 4, 0, 1]);
        assert_eq!(ranks(Sources::Below, 2), [0, 1]);
        assert_eq!(ranks(Sources::One(4), 2), [4]);
        for (sources, me) in [(Sources::Nobody, 2), (Sources::Below, 0)] {
            assert!(sources.is_empty(me, 5) && ranks(sources, me).is_empty());
        }
        assert!(Sources::Others.is_empty(0, 1) && !Sources::Others.is_empty(0, 2));
    }
}
